/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What vegas2 makes of dropped calls. Some say that the downstream has more than it can serve. Others that it takes so
 * many calls and no more (max_connections, a full thread pool), which R does not tell, for what it takes it serves at
 * once; that has a sharp edge, which can be remembered. And others that it fails whatever the limit: then a lower one
 * would only add to the damage. A cut tells which. */

#include "estimator/estimator.h"
#include "estimator/vegas2_parts.h"

#include <math.h>

static void count(struct tally *tally, double dropped)
{
    tally->seen++;
    tally->dropped += dropped;
}

/* Of about as many last ones. */
static void count_last(struct tally *tally, double dropped, double memory)
{
    if (tally->seen >= memory) {
        tally->seen /= 2;
        tally->dropped /= 2;
    }
    count(tally, dropped);
}

/* The same for many calls, none of them dropped. */
static void count_last_successes(struct tally *tally, double number, double memory)
{
    while (number > 0) {
        if (tally->seen + number <= memory) {
            tally->seen += number;
            return;
        }
        if (tally->seen >= memory) {
            tally->seen /= 2;
            tally->dropped /= 2;
        }
        double fit = smaller(number, ceil(memory - tally->seen));
        tally->seen += fit;
        number -= fit;
    }
}

static double share(const struct tally *tally)
{
    return tally->seen > 0 ? tally->dropped / tally->seen : 0;
}

void weir__vegas2_limit_moved(struct vegas2 *v)
{
    v->losses.moved = (struct tally){0};
}

/* ---- the edge ---- */

static uint64_t first_wait(const struct vegas2 *v)
{
    return (uint64_t)(fmax(SECOND_NS, EDGE_RTTS * fmin(v->rtt, LONGEST_WAIT_NS)));
}

double weir__vegas2_most(const struct vegas2 *v)
{
    const struct losses *l = &v->losses;
    if (l->lossy <= 0 || v->now_ns >= l->until_ns)
        return v->max_limit;
    double gap = l->lossy - l->safe;
    double most = gap > fmax(1, EDGE * l->safe) ? floor(l->safe + gap / 2) : l->safe;
    return clamp(most, v->min_limit, v->max_limit);
}

bool weir__vegas2_held(const struct vegas2 *v)
{
    return v->losses.lossy > 0 && v->permits >= weir__vegas2_most(v);
}

static void forget_edge(struct vegas2 *v)
{
    v->losses.safe = 0;
    v->losses.lossy = 0;
    v->losses.wait_ns = 0;
}

void weir__vegas2_window_without_loss(struct vegas2 *v)
{
    struct losses *l = &v->losses;
    weir__vegas2_take_put_off(v);
    if (l->moved.dropped > LOSS * l->moved.seen)
        return;
    if (l->lossy > 0 && v->permits >= l->lossy)
        forget_edge(v);
    l->safe = larger(l->safe, v->permits);
}

/* Whether far more is dropped at this limit than was at lower ones. */
static bool beyond_edge(const struct vegas2 *v)
{
    const struct losses *l = &v->losses;
    double usual = (l->below.dropped + 1) / (l->below.seen + 1 / LOSS);
    return l->safe > 0 && v->permits > l->safe && l->moved.dropped >= EDGE_DROPS &&
           l->moved.dropped > (2 * LOSS + EDGE_DROPS_MORE * usual) * l->moved.seen;
}

/* The limit is lossy; it has to stay nearer to the one that is safe, for a while that grows with each attempt in vain.
 */
static void remember_edge(struct vegas2 *v, double lossy)
{
    struct losses *l = &v->losses;
    uint64_t first = first_wait(v);
    bool in_vain = l->lossy > 0 && v->now_ns >= l->until_ns;
    l->wait_ns = in_vain ? 2 * l->wait_ns : l->wait_ns;
    if (l->wait_ns < first)
        l->wait_ns = first;
    if (l->wait_ns > first + EDGE_LONGEST_NS)
        l->wait_ns = first + EDGE_LONGEST_NS;
    l->lossy = lossy;
    l->until_ns = weir__add_u64(v->now_ns, l->wait_ns);
    weir__vegas2_forget_failures(v);
    v->trial = NO_TRIAL;
}

/* Back to what was known to be taken. */
static void stay_below_edge(struct vegas2 *v)
{
    remember_edge(v, v->permits);
    if (v->r0.value > 0)
        v->mu.value = fmax(fmin(v->mu.value, v->losses.safe / knee_rtt(v)), SLOWEST);
    weir__vegas2_set_limit(v, v->losses.safe, "loss");
}

/* ---- cuts ---- */

static void cut(struct vegas2 *v, double dropped_share)
{
    struct losses *l = &v->losses;
    if (v->permits <= l->safe)
        forget_edge(v);
    if (l->decided && l->served_known) {
        l->first = v->permits;
        l->mu = v->mu;
        l->before = l->recent;
        l->lower = (struct tally){0};
        l->decided = false;
    }
    double keep = 1 - 0.5 * fmin(1, dropped_share);
    v->mu.value = fmax(v->mu.value * keep, SLOWEST);
    weir__vegas2_set_limit(v, v->limit * keep, "loss");
    l->served = 0;
    l->served_known = false;
}

static void lose(struct vegas2 *v)
{
    bool edge = beyond_edge(v);
    if (v->phase != HIGH_PHASE || !edge) {
        v->phase = REGROWTH;
        v->growth = 0.25;
    }
    if (edge)
        stay_below_edge(v);
    else
        cut(v, share(&v->losses.verdict));
    weir__vegas2_limit_moved(v);
    v->cut_ns = v->now_ns;
}

/* Calls that fail at once return before those that began with them and succeed. */
static bool even(const struct vegas2 *v)
{
    return (double)(v->now_ns - v->moved_ns) > v->rtt;
}

/* More than what is dropped at any limit, by what chance does not explain. */
static void judge(struct vegas2 *v)
{
    struct losses *l = &v->losses;
    if (l->verdict.dropped <= 0) {
        l->verdict = (struct tally){0};
        return;
    }
    double accepted = share(&l->usual) + LOSS;
    double noise = sqrt(accepted * (1 - accepted) / l->verdict.seen);
    if (share(&l->verdict) > accepted + LOSS_SIGNIFICANT * noise)
        lose(v);
    else if (share(&l->verdict) > accepted && l->verdict.seen < LOSS_OUTCOMES)
        return;
    l->verdict = (struct tally){0};
}

/* ---- what the cuts have shown ---- */

/* Log likelihood ratio that as many are dropped at lower limits as before, rather than a quarter of that. */
static double evidence_for_usual(const struct losses *l)
{
    double dropped = share(&l->before);
    if (dropped > USUAL_MOST)
        return -l->lower.seen;
    if (l->lower.seen < FEWEST || share(&l->lower) > USUAL_MOST)
        return 0;
    return l->lower.dropped * log(4) + (l->lower.seen - l->lower.dropped) * log((1 - dropped) / (1 - dropped / 4));
}

/* The limit has nothing to do with it: back to what it was. */
static void accept_as_usual(struct vegas2 *v)
{
    struct losses *l = &v->losses;
    l->usual = l->lower;
    l->served_known = true;
    l->verdict = (struct tally){0};
    forget_edge(v);
    if (l->mu.value > 0)
        v->mu = l->mu;
    if (v->r0.value > 0 && v->mu.value > 0)
        weir__vegas2_go_high(v, "usual loss");
    else
        weir__vegas2_set_limit(v, l->first, "usual loss");
}

/* Those calls were served that succeeded although they were among too many. That is a limit by itself, and nearer to
 * the right one than what the cuts have come to. */
static void go_on_from_served(struct vegas2 *v)
{
    struct losses *l = &v->losses;
    l->served_known = true;
    if (v->r0.value <= 0 || l->served < v->permits + 1 || l->served >= l->first)
        return;
    l->safe = l->served;
    remember_edge(v, l->first);
    v->mu = (struct estimate){l->served / knee_rtt(v), GUESS};
    weir__vegas2_go_high(v, "served");
}

/* Whether the limit has come down so far that a downstream which minds it would drop fewer. */
static bool spared(const struct vegas2 *v)
{
    const struct losses *l = &v->losses;
    return v->permits <= SPARED * l->first || (l->served_known && v->permits <= l->served + weir__vegas2_margin(v));
}

static void learn_from_cuts(struct vegas2 *v, double dropped)
{
    struct losses *l = &v->losses;
    if (!spared(v))
        return;
    count_last(&l->lower, dropped, RECENT);
    double evidence = evidence_for_usual(l);
    l->decided = fabs(evidence) > EVIDENCE;
    if (evidence > EVIDENCE)
        accept_as_usual(v);
}

/* ---- outcomes ---- */

void weir__vegas2_take_put_off(struct vegas2 *v)
{
    struct losses *l = &v->losses;
    l->put_off_most = 0;
    if (l->put_off == 0)
        return;
    l->verdict.seen += l->put_off;
    l->moved.seen += l->put_off_moved;
    count_last_successes(&l->recent, l->put_off, RECENT);
    if (v->permits <= l->safe)
        count_last_successes(&l->below, l->put_off_moved, MEMORY);
    l->put_off = 0;
    l->put_off_moved = 0;
}

/* Outcomes after which there is a verdict. */
static double outcomes_needed(const struct vegas2 *v)
{
    return larger(v->limit, 10);
}

/* How many calls may succeed before one of them decides something. */
static uint32_t put_off_most(const struct vegas2 *v)
{
    const struct losses *l = &v->losses;
    if (l->usual.seen > 0 || !l->decided || !l->served_known)
        return 0;
    double more = outcomes_needed(v) - l->verdict.seen;
    uint32_t whole = more > 0 ? (uint32_t)more : 0;
    return whole > 0 && more <= whole ? whole - 1 : whole;
}

/* Dropped calls say nothing about the RTT: a downstream that fails in 2 ms is not a fast one. */
static void take_outcome(struct vegas2 *v, const weir_sample *sample)
{
    struct losses *l = &v->losses;
    double dropped = sample->outcome == WEIR_DROPPED;
    bool tolerant = l->usual.seen > 0;
    if (!tolerant || even(v))
        count(&l->verdict, dropped);
    count_last(&l->recent, dropped, RECENT);
    if (sample->start_ns >= v->moved_ns) {
        count(&l->moved, dropped);
        if (v->permits <= l->safe)
            count_last(&l->below, dropped, MEMORY);
        if (v->phase == LOW_PHASE && tolerant && even(v))
            count_last(&l->usual, dropped, USUAL_MEMORY);
        if (!l->decided && even(v))
            learn_from_cuts(v, dropped);
    }
    if (!l->served_known && (double)(v->now_ns - v->cut_ns) > 2 * v->rtt)
        go_on_from_served(v);
    if (l->verdict.seen >= outcomes_needed(v))
        judge(v);
}

void weir__vegas2_take_outcome(struct vegas2 *v, const weir_sample *sample)
{
    weir__vegas2_take_put_off(v);
    take_outcome(v, sample);
    v->losses.put_off_most = put_off_most(v);
}
