/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What vegas2 makes of dropped calls. Some say that the downstream fails whatever the limit; others that it takes so
 * many calls and no more (max_connections, a full thread pool), which R does not tell, for what it takes it serves at
 * once. The latter has a sharp edge that can be remembered. */

#include "estimator/estimator.h"
#include "estimator/vegas2_parts.h"

#include <math.h>

void weir__vegas2_limit_moved(struct vegas2 *v)
{
    v->losses.seen = 0;
    v->losses.dropped = 0;
}

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
    if (l->dropped > LOSS * l->seen)
        return;
    if (l->lossy > 0 && v->permits >= l->lossy)
        forget_edge(v);
    l->safe = fmax(l->safe, v->permits);
}

/* Whether far more is dropped at this limit than was at lower ones. */
static bool beyond_edge(const struct vegas2 *v)
{
    const struct losses *l = &v->losses;
    double usual = (l->below_dropped + 1) / (l->below_seen + 1 / LOSS);
    return l->safe > 0 && v->permits > l->safe && l->dropped >= EDGE_DROPS &&
           l->dropped > (2 * LOSS + EDGE_DROPS_MORE * usual) * l->seen;
}

/* Back to what was known to be taken, and no further for a while that grows with each attempt in vain. */
static void stay_below_edge(struct vegas2 *v)
{
    struct losses *l = &v->losses;
    uint64_t first = first_wait(v);
    bool in_vain = l->lossy > 0 && v->now_ns >= l->until_ns;
    l->wait_ns = in_vain ? 2 * l->wait_ns : l->wait_ns;
    if (l->wait_ns < first)
        l->wait_ns = first;
    if (l->wait_ns > first + EDGE_LONGEST_NS)
        l->wait_ns = first + EDGE_LONGEST_NS;
    l->lossy = v->permits;
    l->until_ns = weir__add_u64(v->now_ns, l->wait_ns);
    weir__vegas2_forget_failures(v);
    v->trial = NO_TRIAL;
    if (v->r0.value > 0)
        v->mu.value = fmax(fmin(v->mu.value, l->safe / knee_rtt(v)), SLOWEST);
    weir__vegas2_set_limit(v, l->safe, "loss");
}

/* Of the last thousand or so. */
static void count_below(struct losses *l, double dropped)
{
    if (l->below_seen >= MEMORY) {
        l->below_seen /= 2;
        l->below_dropped /= 2;
    }
    l->below_seen++;
    l->below_dropped += dropped;
}

/* The downstream has dropped so large a share. */
static void lose(struct vegas2 *v, double share)
{
    bool edge = beyond_edge(v);
    if (v->phase != HIGH_PHASE || !edge) {
        v->phase = REGROWTH;
        v->growth = 0.25;
    }
    if (edge) {
        stay_below_edge(v);
    } else {
        if (v->permits <= v->losses.safe)
            forget_edge(v);
        double keep = 1 - 0.5 * fmin(1, share);
        v->mu.value = fmax(v->mu.value * keep, SLOWEST);
        weir__vegas2_set_limit(v, v->limit * keep, "loss");
    }
    weir__vegas2_limit_moved(v);
    v->cut_ns = v->now_ns;
}

/* Dropped calls say nothing about the RTT: a downstream that fails in 2 ms is not a fast one. */
void weir__vegas2_count_outcome(struct vegas2 *v, const weir_sample *sample)
{
    struct losses *l = &v->losses;
    if (sample->start_ns < v->cut_ns)
        return;
    double dropped = sample->outcome == WEIR_DROPPED;
    l->outcomes++;
    l->drops += dropped;
    if (sample->start_ns >= v->moved_ns) {
        l->seen++;
        l->dropped += dropped;
        if (v->permits <= l->safe)
            count_below(l, dropped);
    }
    if (l->outcomes < fmax(10, v->limit))
        return;
    double share = l->drops / l->outcomes;
    l->outcomes = 0;
    l->drops = 0;
    if (share > LOSS)
        lose(v, share);
}
