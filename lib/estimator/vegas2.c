/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Vegas with a measured baseline. The capacity of a downstream in permits is c = mu * R0 (Little's law at the knee),
 * the product of the highest completion rate and the RTT without a queue. Above the knee a window of calls tells mu and
 * nothing about R0, below it is the other way round, so the limit alternates between a high phase slightly above c and
 * a short low phase well below it, and each learns only what it can see. Both are averages that know their own error:
 * there is no minimum and no maximum for noise to pile up in. Times are nanoseconds, rates completions per
 * nanosecond. */

#include "estimator/estimator.h"

#include <math.h>

#include "estimator/vegas2_parts.h"

/* ---- windows ---- */

static double samples_needed(const struct vegas2 *v)
{
    double least = v->phase == LOW_PHASE ? FEWEST : larger(v->limit, FEWEST);
    return clamp(v->cv2 * (1 / (PRECISION * PRECISION)), least, MOST);
}

/* ---- the first calls ---- */

/* A high initial limit meets an idle downstream: the first calls to return tell R0, those behind them queue if it was
 * too high. Waiting for a window as long as their RTT would mean to work off all that were let in. */
static bool flooded(struct vegas2 *v, double rtt)
{
    if (v->phase != STARTUP || !v->started_high || v->windows > 0)
        return false;
    struct opening *o = &v->opening;
    o->calls++;
    *(o->calls <= OPENING ? &o->first : &o->last) += rtt / OPENING;
    if (o->calls == OPENING)
        o->began_ns = v->now_ns;
    if (o->calls % OPENING != 0 || o->calls == OPENING)
        return false;
    bool slower = o->last > FLOODED * o->first;
    if (!slower)
        o->last = 0;
    return slower && v->now_ns > o->began_ns;
}

static void leave_flood(struct vegas2 *v)
{
    const struct opening *o = &v->opening;
    double rate = (double)(o->calls - OPENING) / (double)(v->now_ns - o->began_ns);
    struct verdict w = {.rtt = o->last, .load = rate * o->last, .rate = rate, .se = sqrt(PRIOR_CV2 / OPENING)};
    v->windows++;
    v->rtt = w.rtt;
    v->level = o->first;
    v->usual = w.load;
    v->r0 = (struct estimate){o->first, w.se * w.se};
    v->mu = (struct estimate){rate, w.se * w.se};
    weir__vegas2_go_low_to_learn_why(v, &w, capacity(v), "flooded");
    weir__vegas2_schedule_drain(v);
}

/* ---- closing a window ---- */

/* A client that knows the baseline from idling need not see much to know that there is no queue. */
static bool starts_from_known(const struct vegas2 *v)
{
    return v->phase == STARTUP && knows_from_idling(v) && v->cv2 < QUIET;
}

static double fewest_to_decide(const struct vegas2 *v)
{
    bool bound = v->window.in_flight >= BOUND * v->permits * v->window.n;
    return starts_from_known(v) && bound ? FEWEST_KNOWN : FEWEST;
}

/* An average over windows by their samples, n of them in this one; weight is of how many it stands for. */
static void average(double *mean, double *weight, double value, double n)
{
    *weight = smaller(*weight, larger(MEMORY, 3 * n)) + n;
    *mean += (value - *mean) * n / *weight;
}

/* The coefficient of variation. A queue lengthens all calls alike, and hides it. */
static void learn_variation(struct vegas2 *v, double cv2)
{
    average(&v->cv2, &v->cv2_weight, cv2, v->window.n);
    double queue = v->r0.value > 0 ? clamp(v->window.rtt / v->window.n / v->r0.value, 1, MURKY_QUEUE) : 1;
    average(&v->murk, &v->murk_weight, cv2 * queue * queue, v->window.n);
}

/* The part of a move of R that the move of the load does not explain, which may leave R as it was or take it along. */
static double unexplained_move(double rtt, double load, const struct verdict *w)
{
    double move = log(w->rtt / rtt), by_load = log(w->load / load);
    return fabs(move - clamp(move, fmin(0, by_load), fmax(0, by_load)));
}

static double jump_between(const struct verdict *a, const struct verdict *b)
{
    if (larger(a->rtt, b->rtt) < (1 + GUST) * smaller(a->rtt, b->rtt)) /* log(1 + GUST) < GUST: it is none */
        return 0;
    double jump = unexplained_move(a->rtt, a->load, b);
    bool chance = jump < SIGNIFICANT * hypot(a->se, b->se);
    return chance || jump < GUST ? 0 : fmin(FARTHEST, jump);
}

static void learn_wander(struct vegas2 *v, const struct verdict *w)
{
    double jump = v->last.rtt > 0 ? jump_between(&v->last, w) : 0;
    v->jumps += (jump * jump - v->jumps) / GUST_WINDOWS;
    v->last = *w;
}

/* How far R is from its average where neither chance nor the load explains it: what a single look may be off by. */
static void learn_unrest(struct vegas2 *v, const struct verdict *w)
{
    if (v->level <= 0)
        return;
    double off = fmin(FARTHEST, unexplained_move(v->level, v->usual, w));
    v->unrest += (off * off - w->se * w->se - v->unrest) / GUST_WINDOWS;
}

/* Whether the calls of the window began together when the limit was raised, and vary: those that are back by now are
 * the short ones. */
static bool only_short_ones(const struct vegas2 *v)
{
    return v->phase == STARTUP && v->cv2 > QUIET && v->losses.recent.dropped <= 0 && v->now_ns > v->window.begin_ns;
}

/* R, N, X = N/R and how well R is known, from the sums of the window that is open. Little's law tells R as well, by how
 * many calls are back, and does not mind which. */
static struct verdict judge(struct vegas2 *v)
{
    const struct window *sum = &v->window;
    struct verdict w = {.rtt = sum->rtt / sum->n, .load = sum->in_flight / sum->n};
    double variance = larger(sum->rtt2 / sum->n - w.rtt * w.rtt, 0);
    learn_variation(v, variance / (w.rtt * w.rtt));
    w.se = larger(sqrt(v->cv2 / sum->n), LEAST_ERROR);
    w.bound = w.load >= BOUND * v->permits;
    if (only_short_ones(v) && w.bound)
        w.rtt = fmin(v->permits * (double)(v->now_ns - sum->begin_ns) / sum->n, SHORTEST_BY * w.rtt);
    if (w.bound && v->phase == HIGH_PHASE) {
        learn_wander(v, &w);
        learn_unrest(v, &w);
    }
    double gusts = wander(v);
    if (gusts > 0)
        w.se = hypot(w.se, gusts);
    if (w.bound)
        w.load *= weir__vegas2_exact(v);
    w.rate = w.load / w.rtt;
    return w;
}

static void close_window(struct vegas2 *v)
{
    struct verdict w = judge(v);
    v->windows++;
    v->rtt = w.rtt;
    if (v->phase != LOW_PHASE) {
        v->usual += (v->level > 0 ? 0.1 : 1) * (w.load - v->usual);
        v->level += (v->level > 0 ? 0.1 : 1) * (w.rtt - v->level);
    }
    if (v->phase == HIGH_PHASE)
        v->span = (double)(v->now_ns - v->window.begin_ns);
    restart_window(v, v->now_ns);
    if (w.bound)
        weir__vegas2_window_without_loss(v);
    if (v->r0.value <= 0) {
        weir__vegas2_believe_baseline(v, w.rtt, w.se);
        v->mu = (struct estimate){w.rate, w.se * w.se};
    }
    /* The load only ever adds to R, so outside a low phase an R below the baseline is a new one. There are many such
     * windows, so one of them will be low by chance. */
    if (v->phase != LOW_PHASE && weir__vegas2_surprise(&v->r0, w.rtt, w.se) < -OUT_OF_TURN) {
        weir__vegas2_new_baseline(v, w.rtt, w.se);
        v->credited = false;
    }
    if (v->phase == LOW_PHASE)
        weir__vegas2_after_low_window(v, &w);
    else if (v->phase == HIGH_PHASE)
        weir__vegas2_after_high_window(v, &w);
    else
        weir__vegas2_after_growth_window(v, &w);
    weir__vegas2_schedule_drain(v);
}

/* Samples that a window of a start needs. Those of the first one have to say themselves how much they vary. Where that
 * is a lot, a coarse R would end the start too soon as easily as too late. */
static double samples_to_grow(const struct vegas2 *v)
{
    const struct window *sum = &v->window;
    double cv2 = v->cv2;
    if (v->windows == 0) {
        double mean = sum->rtt / sum->n;
        cv2 = larger(sum->rtt2 / sum->n / (mean * mean) - 1, 0);
    }
    double precision = cv2 > QUIET && v->phase == STARTUP ? START_NOISY : STARTUP_PRECISION;
    return cv2 / (precision * precision);
}

/* The rules below are gone through with each sample. Where a quotient decides, a bound that needs none comes first. */

static bool low_window_complete(const struct vegas2 *v, double age)
{
    const struct window *sum = &v->window;
    if (v->together_ns != 0)
        return sum->n >= 2 && v->now_ns >= v->together_ns;
    if (age * sum->n < sum->rtt)
        return false;
    if (sum->n >= samples_needed(v))
        return true;
    return sum->n >= 4 && age > 4 * patience(v) * (sum->rtt / sum->n);
}

/* Whether it has taken so long that it closes with what it has. */
static bool window_overdue(const struct vegas2 *v, double age)
{
    const struct window *sum = &v->window;
    if (sum->n < OLD_SAMPLES || (age <= OLD_NS && age * sum->n < 3.9 * patience(v) * sum->rtt))
        return false;
    double mean = sum->rtt / sum->n;
    return (sum->n >= FEWEST && age > 4 * patience(v) * mean) || age > larger(OLD_NS, OLD_RTTS * mean);
}

/* Whether R has risen so far that it need not be known as well as usual. */
static bool window_alarming(const struct vegas2 *v)
{
    const struct window *sum = &v->window;
    double knee = knee_rtt(v);
    if (sum->rtt < CHANGED * knee * sum->n)
        return false;
    return sum->rtt / sum->n > knee * 1.06 * (CHANGED + 4 * sqrt(v->cv2 / sum->n));
}

/* At least one mean RTT old, and as many samples as tell R well enough for what is decided next. */
static bool window_complete(const struct vegas2 *v)
{
    const struct window *sum = &v->window;
    double age = (double)(v->now_ns - sum->begin_ns);
    if (v->phase == LOW_PHASE)
        return low_window_complete(v, age);
    if (age * sum->n < sum->rtt)
        return false;
    if (sum->n >= samples_needed(v) || window_overdue(v, age))
        return true;
    if (sum->n < larger(v->limit / 2, fewest_to_decide(v)))
        return false;
    if (v->phase != HIGH_PHASE)
        return sum->n >= samples_to_grow(v);
    if (v->grown > 0 || v->evidence >= v->enough)
        return sum->n >= v->cv2 / (GROWTH_PRECISION * GROWTH_PRECISION);
    return window_alarming(v);
}

/* ---- samples ---- */

static void advance_clock(struct vegas2 *v, uint64_t end_ns)
{
    if (v->now_ns == 0)
        v->own_moment = end_ns * 0x9e3779b97f4a7c15u; /* Fibonacci hashing */
    if (end_ns + 10ull * SECOND_NS < v->now_ns || v->now_ns == 0) {
        v->now_ns = end_ns;
        v->open_ns = end_ns;
        v->cut_ns = 0;
        v->moved_ns = 0;
        v->losses.until_ns = end_ns;
        if (v->together_ns > end_ns)
            v->together_ns = end_ns;
        restart_window(v, end_ns);
    }
    if (end_ns > v->now_ns)
        v->now_ns = end_ns;
}

/* The calls that a raise lets in at once see fewer in flight at their grant than there are a moment later, so the
 * window waits for the last of them; or for two of their RTTs where the demand does not fill the limit. */
static bool raise_is_in(const struct vegas2 *v, const weir_sample *sample)
{
    if (v->now_ns < v->open_ns || sample->start_ns < v->moved_ns)
        return false;
    return sample->in_flight >= BOUND * v->permits ||
           (double)(v->now_ns - v->moved_ns) > 2 * smaller((double)sample->rtt_ns, LONGEST_WAIT_NS);
}

/* When the window begins that has this sample for its first. Where few are enough, a round trip more would be half of
 * what the start takes: it is the wave of calls that began with this one. */
static uint64_t since(const struct vegas2 *v, const weir_sample *sample)
{
    return starts_from_known(v) ? sample->start_ns : v->now_ns;
}

/* Whether the sample belongs to the present limit: the last move of it has had its effect. */
static bool settled(struct vegas2 *v, const weir_sample *sample)
{
    if (v->falling && sample->start_ns >= v->cut_ns && sample->in_flight <= v->limit + 1) {
        v->falling = false;
        double open = (double)sample->start_ns + SETTLE * weir__vegas2_expected_rtt(v);
        if (open > (double)v->open_ns)
            v->open_ns = weir__trunc_u64(open);
        restart_window(v, v->open_ns);
    }
    if (v->phase == HIGH_PHASE && v->interval != 0 && wall_ns(v) >= v->due_ns)
        weir__vegas2_drain(v);
    else if (v->phase == HIGH_PHASE && wall_ns(v) >= v->alone_ns)
        weir__vegas2_drain_alone(v);
    if (v->rising && raise_is_in(v, sample)) {
        v->rising = false;
        restart_window(v, since(v, sample));
    }
    return !v->falling && !v->rising && v->now_ns >= v->open_ns;
}

static void count_rtt(struct vegas2 *v, const weir_sample *sample, double rtt)
{
    if (v->phase <= REGROWTH && sample->in_flight >= v->permits &&
        v->window.in_flight < 0.5 * v->limit * v->window.n) /* a burst after idling begins */
        restart_window(v, since(v, sample));
    if (flooded(v, rtt)) {
        leave_flood(v);
        return;
    }
    v->window.n++;
    v->window.rtt += rtt;
    v->window.rtt2 += rtt * rtt;
    v->window.in_flight += sample->in_flight > 1 ? sample->in_flight : 1;
    if (window_complete(v))
        close_window(v);
}

static uint32_t vegas2_update(void *state, const weir_sample *sample)
{
    struct vegas2 *v = state;
    const uint64_t longest_ns = (uint64_t)LONGEST_NS;
    uint64_t rtt_ns = sample->rtt_ns == 0 ? 1 : sample->rtt_ns > longest_ns ? longest_ns : sample->rtt_ns;
    uint64_t end_ns = sample->start_ns + rtt_ns;
    if (end_ns < sample->start_ns)
        end_ns = UINT64_MAX;
    advance_clock(v, end_ns);
    if (sample->outcome != WEIR_IGNORE)
        weir__vegas2_count_outcome(v, sample);
    if (sample->outcome == WEIR_SUCCESS && settled(v, sample))
        count_rtt(v, sample, (double)rtt_ns);
    return (uint32_t)v->permits;
}

/* ---- the algorithm ---- */

static int vegas2_init(void *state, const struct weir_config *config)
{
    struct vegas2 *v = state;
    v->min_limit = config->min_limit;
    v->max_limit = config->max_limit;
    v->ceiling = (double)config->rtt_ceiling;
    v->drain_interval = config->drain_interval;
    v->limit = clamp(config->initial_limit, v->min_limit, v->max_limit);
    v->permits = floor(v->limit);
    v->phase = STARTUP;
    v->started_high = v->limit > UNVERIFIED;
    v->growth = 1;
    v->bend = 1;
    v->trial_pause = 1;
    v->trial_in = 2;
    v->young = YOUNG;
    v->cv2 = PRIOR_CV2;
    v->cv2_weight = PRIOR_SAMPLES;
    v->enough = EVIDENCE;
    v->losses.decided = true;
    v->losses.served_known = true;
    v->reason = "";
    return 0;
}

static uint32_t vegas2_retune(void *state, const weir_config *config)
{
    struct vegas2 *v = state;
    v->min_limit = config->min_limit;
    v->max_limit = config->max_limit;
    v->ceiling = (double)config->rtt_ceiling;
    if (v->ceiling > 0)
        v->r0.value = fmin(v->r0.value, v->ceiling);
    v->drain_interval = config->drain_interval;
    if (v->windows > 0)
        weir__vegas2_schedule_drain(v);
    if (v->limit < v->min_limit || v->limit > v->max_limit)
        weir__vegas2_set_limit(v, v->limit, "configured");
    return (uint32_t)v->permits;
}

/* One RTT until the first call that knows, half a mixed window and a clean one, then one drain. A window that shows
 * twice the RTT closes early: 4 standard errors have to fit into what is left of the factor 2. */
static uint64_t vegas2_reaction_ns(const void *state)
{
    const struct vegas2 *v = state;
    if (v->mu.value <= 0)
        return 0;
    double alarm = fmax(fmax(FEWEST, v->limit / 2), v->cv2 * (4 / (2 / 1.06 - CHANGED)) * (4 / (2 / 1.06 - CHANGED)));
    double rtt = fmin(v->rtt, LONGEST_WAIT_NS);
    double high = fmax(rtt, fmin(alarm, samples_needed(v)) / v->mu.value);
    return (uint64_t)clamp(rtt + 1.5 * high + SETTLE * rtt + fmax(rtt, FEWEST / v->mu.value), 1, LONGEST_NS);
}

static void vegas2_figures(const void *state, weir_figures *figures)
{
    static const char *const names[] = {"startup", "regrowth", "high", "low"};
    const struct vegas2 *v = state;
    figures->rtt_noload_ns = (uint64_t)v->r0.value;
    figures->rtt_ns = (uint64_t)v->rtt;
    figures->throughput = v->mu.value * SECOND_NS;
    figures->estimate = v->limit;
    figures->phase = names[v->phase];
    figures->windows = v->windows;
    figures->drains = v->drains;
    figures->window_samples = (uint32_t)samples_needed(v);
    figures->reason = v->reason;
}

static void vegas2_set_wall_offset(void *state, int64_t offset_ns)
{
    struct vegas2 *v = state;
    v->wall_offset = offset_ns;
}

/* The limit stood while samples were withheld, so nothing is left in flight of what the last window saw: calls come as
 * after a raise, and the window waits for the last of them in the same way, but longer, for they are all there is.
 * Before the first window it begins as at creation, where the first calls to return are the ones that tell R0. */
static void vegas2_restart(void *state, uint64_t now_ns)
{
    struct vegas2 *v = state;
    v->opening = (struct opening){0};
    weir__vegas2_take_put_off(v);
    v->losses.verdict = (struct tally){0};
    v->rising = v->windows > 0;
    uint64_t settled_ns = weir__add_u64(now_ns, v->rising ? weir__trunc_u64(SETTLE * weir__vegas2_expected_rtt(v)) : 0);
    if (v->open_ns < settled_ns)
        v->open_ns = settled_ns;
    v->moved_ns = now_ns;
    if (v->falling)
        v->cut_ns = now_ns;
    restart_window(v, v->open_ns);
}

/* To the share 1 - LOW: RTTs until the limit has its effect, then a window of one RTT and of FEWEST samples at least.
 */
static struct weir__drain vegas2_drain(const void *state)
{
    const struct vegas2 *v = state;
    double window = v->mu.value > 0 ? fmax(v->rtt, FEWEST / v->mu.value) : v->rtt;
    return (struct weir__drain){.share = LOW, .duration_ns = fmax(SETTLE * v->rtt + window, weir__vegas2_together(v))};
}

const struct weir__algorithm weir__vegas2 = {
    .class = {.name = "vegas2",
              .state_size = sizeof(struct vegas2),
              .init = vegas2_init,
              .update = vegas2_update,
              .reaction_ns = vegas2_reaction_ns},
    .initial_limit = 4,
    .figures = vegas2_figures,
    .set_wall_offset = vegas2_set_wall_offset,
    .restart = vegas2_restart,
    .drain = vegas2_drain,
    .windowed = false,
    .retune = vegas2_retune,
};
