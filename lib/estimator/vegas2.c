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

#define MARGIN        0.30 /* the high phase stands MARGIN * sqrt(c) + REST above c */
#define REST          0.25
#define LOW           0.30 /* share of c that the low phase stays below it */
#define PRECISION     0.04 /* standard error of the mean RTT that a window is sized for */
#define RESOLUTION    0.02 /* error that no sample size removes: drift, timers */
#define SIGNIFICANT   3.0  /* standard errors that make a difference a fact */
#define DRIFT_RATE    1e-4 /* variance that a window adds to what is known of mu, relative */
#define DRIFT_RTT     2e-4 /* and a low phase to what is known of R0 */
#define SETTLE        1.5  /* RTTs until the effect of a change is in */
#define BOUND         0.85 /* share of the limit in flight from which on the limit was what held the callers back */
#define QUEUE         1.1  /* R/R0 that shows a queue, noise aside */
#define CHANGED       1.2  /* R above what the high phase causes itself that shows a change, noise aside */
#define EVIDENCE      3.0  /* log likelihood ratio that the knee is further up */
#define LOSS          0.05 /* share of dropped outcomes from which on they count as overload */
#define DRAIN_RTTS    80.0 /* between two low phases, at least */
#define STEP          0.1  /* the first of a growth */
#define DISTRUST      1.5  /* factor from which on a rise of the baseline cannot be the queue of others */
#define PRIOR_CV2     1.0
#define PRIOR_SAMPLES 16.0
#define MEMORY        1000.0 /* samples that the coefficient of variation is averaged over, at least */
#define FEWEST        16.0   /* samples of a window, at least */
#define MOST          5000.0 /* and at most */
#define OLD_NS        5e9    /* age from which on a window closes with what it has */
#define OLD_RTTS      20.0
#define OLD_SAMPLES   10.0
#define UNVERIFIED    8.0    /* an initial limit above may be beyond the knee already */
#define LONGEST_NS    3.6e12 /* an RTT above an hour is not believed */
#define SECOND_NS     1000000000u

enum phase { STARTUP, REGROWTH, HIGH_PHASE, LOW_PHASE };

/* A figure and the relative variance of what is known of it. */
struct estimate {
    double value;
    double variance;
};

/* Successful samples since the window began. */
struct window {
    double n;
    double rtt;       /* sum */
    double rtt2;      /* sum of squares */
    double in_flight; /* sum, as seen by each call at its grant */
    uint64_t begin_ns;
};

/* What a closed window says. */
struct verdict {
    double rtt;  /* R */
    double load; /* N */
    double rate; /* X = N/R */
    double se;   /* relative standard error of R */
    bool bound;
};

struct vegas2 {
    double min_limit;
    double max_limit;
    double ceiling; /* no RTT above this becomes the baseline; 0: none */
    uint64_t drain_interval;
    int64_t wall_offset; /* realtime minus monotonic */

    enum phase phase;
    double limit; /* exact; callers see it cut to a whole number */
    struct estimate mu;
    struct estimate r0; /* value 0: not yet seen */
    double rtt;         /* R of the last window */
    double cv2_weight;
    double span;         /* ns that the last window of the high phase took */
    double cv2;          /* squared coefficient of variation of the RTT, averaged over windows */
    double growth;       /* by which the limit grows while nothing queues */
    double evidence;     /* for a knee further up; a cumulative sum that never falls below 0 */
    double enough;       /* how much of it makes the high phase grow */
    double before;       /* R of the last low window, while the limit falls in stages; 0: none */
    double verified;     /* mu when the baseline was last measured */
    double risen;        /* R0 of the last low window if significantly higher, waiting for a second one; 0: none */
    uint64_t now_ns;     /* latest end of a sample */
    uint64_t cut_ns;     /* when the limit was last lowered: calls granted before do not tell about it */
    uint64_t open_ns;    /* samples that end before belong to the previous limit */
    uint64_t interval;   /* length of the grid's cells */
    uint64_t drain_cell; /* of the grid: the last low phase's */
    bool aligned;        /* this low phase began on the grid, so others drain as well */
    bool provisional;    /* the baseline rose while others may have been queueing: no growth until the grid */
    unsigned grown;      /* windows running that have grown */
    bool falling;        /* lowered, and in flight not yet seen at or below the limit */

    struct window window;
    double outcomes; /* since the last verdict on loss */
    double drops;

    uint64_t windows;
    uint64_t drains;
    const char *reason;
};

static double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* ---- what is known ---- */

static double surprise(const struct estimate *estimate, double observed, double se)
{
    double variance = estimate->variance + se * se + RESOLUTION * RESOLUTION;
    return (observed - estimate->value) / (estimate->value * sqrt(variance));
}

/* Weighs an observation by its variance against what is known; one that noise cannot explain is believed at once. */
static void learn(struct estimate *estimate, double observed, double se, double drift)
{
    estimate->variance += drift;
    if (fabs(surprise(estimate, observed, se)) > SIGNIFICANT) {
        *estimate = (struct estimate){observed, se * se};
        return;
    }
    double gain = estimate->variance / (estimate->variance + se * se);
    estimate->value += gain * (observed - estimate->value);
    estimate->variance *= 1 - gain;
}

static double capacity(const struct vegas2 *v)
{
    return v->mu.value * v->r0.value;
}

static void believe_baseline(struct vegas2 *v, double observed, double se)
{
    if (v->ceiling > 0 && observed > v->ceiling)
        observed = v->ceiling;
    if (v->r0.value <= 0)
        v->r0 = (struct estimate){observed, se * se};
    else
        learn(&v->r0, observed, se, DRIFT_RTT);
}

static double margin(double c)
{
    return MARGIN * sqrt(c) + REST;
}

static double samples_needed(const struct vegas2 *v)
{
    return clamp(v->cv2 / (PRECISION * PRECISION), fmax(FEWEST, v->limit), MOST);
}

/* ---- moving the limit ---- */

static void restart_window(struct vegas2 *v, uint64_t begin_ns)
{
    v->window = (struct window){.begin_ns = begin_ns};
}

/* Moves the limit, by no more than a half downwards, and shuts the window until the change has had its effect. */
static void set_limit(struct vegas2 *v, double target, const char *reason)
{
    double old = v->limit;
    v->limit = clamp(fmax(target, old / 2), v->min_limit, v->max_limit);
    if (floor(v->limit) != floor(old))
        v->reason = reason;
    v->open_ns = v->now_ns;
    if (fabs(floor(v->limit) - floor(old)) > 0.03 * old)
        v->open_ns += (uint64_t)(SETTLE * fmin(v->rtt, 1e11));
    if (floor(v->limit) < floor(old)) {
        v->falling = true;
        v->cut_ns = v->now_ns;
    }
    restart_window(v, v->open_ns);
}

static double low_limit(const struct vegas2 *v)
{
    return fmax(1, floor(capacity(v) * (1 - LOW)));
}

/* How many times as long as for a quiet downstream the baseline has to be looked at. */
static double patience(const struct vegas2 *v)
{
    return clamp(6 * v->cv2, 1, 50);
}

/* The length of the grid's cells: a power of two of seconds, so that cells of different clients nest. It hangs on what
 * clients of one downstream have in common; small changes do not move it. */
static uint64_t drain_interval(struct vegas2 *v)
{
    if (v->drain_interval != WEIR_DRAIN_AUTO)
        return v->drain_interval;
    double least = fmax(DRAIN_RTTS * v->r0.value * patience(v), 6 * v->span);
    if ((double)v->interval >= least && (double)v->interval < 4 * least)
        return v->interval;
    v->interval = SECOND_NS;
    while ((double)v->interval < least && v->interval < (1ull << 12) * SECOND_NS)
        v->interval *= 2;
    return v->interval;
}

/* The cell of the grid on the wall clock that this moment is in; 0 without a grid. */
static uint64_t drain_cell(struct vegas2 *v)
{
    uint64_t interval = drain_interval(v);
    return interval == 0 ? 0 : (v->now_ns + (uint64_t)v->wall_offset) / interval * interval;
}

static void go_high(struct vegas2 *v, const char *reason)
{
    v->phase = HIGH_PHASE;
    v->risen = 0;
    v->verified = v->mu.value;
    set_limit(v, capacity(v) + margin(capacity(v)), reason);
}

static void go_low(struct vegas2 *v, const char *reason)
{
    if (v->phase != LOW_PHASE) {
        v->drains++;
        v->aligned = false;
        v->evidence = 0;
    }
    v->risen = 0;
    v->phase = LOW_PHASE;
    set_limit(v, low_limit(v), reason);
}

static void drain(struct vegas2 *v)
{
    go_low(v, "drain");
    v->aligned = true;
}

/* Something has happened that makes earlier failures to grow meaningless. */
static void forget_failures(struct vegas2 *v)
{
    v->growth = STEP;
    v->grown = 0;
    v->enough = EVIDENCE;
}

/* ---- what a window means ---- */

static void after_growth_window(struct vegas2 *v, const struct verdict *w)
{
    bool queued = w->rtt >= v->r0.value * (QUEUE + 2 * sqrt(w->se * w->se + v->r0.variance));
    if (queued || (v->phase == STARTUP && v->windows == 1 && v->limit > UNVERIFIED)) {
        v->mu = (struct estimate){w->rate, w->se * w->se};
        forget_failures(v);
        go_low(v, "queue seen");
        return;
    }
    if (v->phase == STARTUP)
        believe_baseline(v, w->rtt, w->se);
    if (!w->bound)
        return;
    v->mu = (struct estimate){w->load / v->r0.value, w->se * w->se};
    set_limit(v, v->limit * (1 + v->growth) + 1, v->phase == STARTUP ? "startup" : "regrowth");
}

/* Whether R looks more like an idle downstream than like the queue that the margin makes. */
static bool knee_further_up(struct vegas2 *v, const struct verdict *w)
{
    double c = capacity(v);
    double own = margin(c) / c;
    double variance = 2 * w->se * w->se + 1e-4;
    v->evidence += own * (own / 2 - (w->rtt / v->r0.value - 1)) / variance;
    v->evidence = clamp(v->evidence, 0, v->enough);
    return v->evidence >= v->enough && !v->provisional;
}

static void grow(struct vegas2 *v, const struct verdict *w)
{
    v->mu.value = fmax(v->mu.value, w->load / v->r0.value);
    v->mu.variance = v->growth * v->growth;
    set_limit(v, fmax(v->limit * (1 + v->growth), v->limit + 1), "no queue");
    v->growth = fmin(1, 2 * v->growth);
    if (++v->grown > 1)
        v->enough = EVIDENCE;
}

static void after_high_window(struct vegas2 *v, const struct verdict *w)
{
    double c = capacity(v);
    double own = 1 + margin(c) / c;
    double noise = sqrt(w->se * w->se + v->r0.variance);
    if (w->rtt > v->r0.value * own * (CHANGED + 2 * noise) + v->r0.value / fmax(c, 1)) {
        learn(&v->mu, w->rate, w->se, DRIFT_RATE);
        forget_failures(v);
        go_low(v, "slower");
        return;
    }
    if (!w->bound)
        return;
    if (knee_further_up(v, w)) {
        grow(v, w);
        return;
    }
    if (v->grown == 1)
        v->enough = fmin(8 * EVIDENCE, 2 * v->enough);
    v->grown = 0;
    v->growth = STEP;
    learn(&v->mu, w->rate, w->se, DRIFT_RATE);
    if (v->mu.value < 0.85 * v->verified) {
        go_low(v, "less throughput");
        return;
    }
    double target = capacity(v) + margin(capacity(v));
    set_limit(v, v->provisional ? fmin(target, v->limit) : target, "throughput");
}

/* A higher baseline says nothing about the capacity in permits: begin from what it was. */
static void accept_rise(struct vegas2 *v, double observed, double se)
{
    double c = fmin(capacity(v), v->verified * v->r0.value);
    v->provisional = !v->aligned && observed < DISTRUST * v->r0.value;
    believe_baseline(v, observed, se);
    v->mu = (struct estimate){c / v->r0.value, 0.25};
    if (v->provisional)
        return;
    v->growth = 0.5;
    v->evidence = v->enough;
}

static void after_low_window(struct vegas2 *v, const struct verdict *w)
{
    double noise = sqrt(w->se * w->se + v->r0.variance);
    bool staged = v->limit > low_limit(v) * 1.05 + 1;
    bool helped = v->before <= 0 || w->rtt < 0.85 * v->before;
    if (staged && helped && w->rtt > v->r0.value * (QUEUE + 2 * noise)) {
        v->before = w->rtt;
        v->mu = (struct estimate){w->rate, w->se * w->se};
        go_low(v, "falling");
        return;
    }
    v->before = 0;
    bool rose = surprise(&v->r0, w->rtt, w->se) > SIGNIFICANT;
    if (rose && v->risen <= 0) {
        v->risen = w->rtt;
        return;
    }
    bool fell = w->rtt < v->r0.value * (1 - fmax(0.05, 2 * noise));
    double observed = v->risen > 0 ? fmin(v->risen, w->rtt) : w->rtt;
    v->provisional = v->provisional && !v->aligned;
    if (rose)
        accept_rise(v, observed, w->se);
    else
        believe_baseline(v, observed, w->se);
    if (w->bound && w->rate * (1 - 2 * w->se) > v->mu.value)
        v->mu = (struct estimate){w->rate, w->se * w->se};
    if (fell)
        go_low(v, "baseline");
    else
        go_high(v, "baseline");
}

/* The coefficient of variation, averaged over windows by their samples. */
static void learn_variation(struct vegas2 *v, double cv2)
{
    v->cv2_weight = fmin(v->cv2_weight, fmax(MEMORY, 3 * v->window.n)) + v->window.n;
    v->cv2 += (cv2 - v->cv2) * v->window.n / v->cv2_weight;
}

static void close_window(struct vegas2 *v)
{
    const struct window *sum = &v->window;
    struct verdict w = {.rtt = sum->rtt / sum->n, .load = sum->in_flight / sum->n};
    double variance = fmax(0, sum->rtt2 / sum->n - w.rtt * w.rtt);
    learn_variation(v, variance / (w.rtt * w.rtt));
    w.se = sqrt(v->cv2 / sum->n);
    w.rate = w.load / w.rtt;
    w.bound = w.load >= BOUND * floor(v->limit);
    v->windows++;
    v->rtt = w.rtt;
    if (v->phase == HIGH_PHASE)
        v->span = (double)(v->now_ns - sum->begin_ns);
    restart_window(v, v->now_ns);
    if (v->r0.value <= 0) {
        believe_baseline(v, w.rtt, w.se);
        v->mu = (struct estimate){w.rate, w.se * w.se};
    }
    if (v->phase != LOW_PHASE && surprise(&v->r0, w.rtt, w.se) < -SIGNIFICANT)
        v->r0 = (struct estimate){w.rtt, w.se * w.se};
    if (v->phase == LOW_PHASE)
        after_low_window(v, &w);
    else if (v->phase == HIGH_PHASE)
        after_high_window(v, &w);
    else
        after_growth_window(v, &w);
}

static bool window_complete(const struct vegas2 *v)
{
    const struct window *sum = &v->window;
    double age = (double)(v->now_ns - sum->begin_ns);
    double mean = sum->rtt / sum->n;
    if (age < mean)
        return false;
    if (sum->n >= samples_needed(v))
        return true;
    if (v->phase == LOW_PHASE)
        return sum->n >= 4 && age > 4 * patience(v) * mean;
    if (sum->n >= OLD_SAMPLES && age > fmax(OLD_NS, OLD_RTTS * mean))
        return true;
    if (sum->n < fmax(FEWEST, v->limit / 2))
        return false;
    if (v->phase != HIGH_PHASE || v->grown > 0)
        return true;
    return mean > v->r0.value * 1.06 * (CHANGED + 4 * sqrt(v->cv2 / sum->n));
}
/* Dropped calls say nothing about the RTT: a downstream that fails in 2 ms is not a fast one. */
static void count_outcome(struct vegas2 *v, const weir_sample *sample)
{
    if (sample->start_ns < v->cut_ns)
        return;
    v->outcomes++;
    if (sample->outcome == WEIR_DROPPED)
        v->drops++;
    if (v->outcomes < fmax(10, v->limit))
        return;
    double share = v->drops / v->outcomes;
    v->outcomes = 0;
    v->drops = 0;
    if (share <= LOSS)
        return;
    double keep = 1 - 0.5 * fmin(1, share);
    v->mu.value *= keep;
    v->phase = REGROWTH;
    v->growth = 0.25;
    set_limit(v, v->limit * keep, "loss");
    v->cut_ns = v->now_ns;
}

static void advance_clock(struct vegas2 *v, uint64_t end_ns)
{
    if (end_ns + 10ull * SECOND_NS < v->now_ns || v->now_ns == 0) {
        v->now_ns = end_ns;
        v->open_ns = end_ns;
        v->cut_ns = 0;
        restart_window(v, end_ns);
    }
    if (end_ns > v->now_ns)
        v->now_ns = end_ns;
}

static uint32_t vegas2_update(void *state, const weir_sample *sample)
{
    struct vegas2 *v = state;
    double rtt = clamp((double)sample->rtt_ns, 1, LONGEST_NS);
    uint64_t end_ns = sample->start_ns + (uint64_t)rtt;
    if (end_ns < sample->start_ns)
        end_ns = UINT64_MAX;
    advance_clock(v, end_ns);
    if (sample->outcome != WEIR_IGNORE)
        count_outcome(v, sample);
    if (sample->outcome != WEIR_SUCCESS)
        return (uint32_t)v->limit;

    if (v->falling && sample->start_ns >= v->cut_ns && sample->in_flight <= v->limit + 1) {
        v->falling = false;
        double settled = (double)sample->start_ns + SETTLE * fmin(v->rtt, 1e11);
        if (settled > (double)v->open_ns)
            v->open_ns = (uint64_t)settled;
        restart_window(v, v->open_ns);
    }
    if (v->phase == HIGH_PHASE) {
        uint64_t cell = drain_cell(v);
        if (cell != v->drain_cell) {
            v->drain_cell = cell;
            drain(v);
        }
    }
    if (v->falling || v->now_ns < v->open_ns)
        return (uint32_t)v->limit;
    v->window.n++;
    v->window.rtt += rtt;
    v->window.rtt2 += rtt * rtt;
    v->window.in_flight += fmax(1, sample->in_flight);
    if (window_complete(v))
        close_window(v);
    return (uint32_t)v->limit;
}

static int vegas2_init(void *state, const struct weir_config *config)
{
    struct vegas2 *v = state;
    v->min_limit = config->min_limit;
    v->max_limit = config->max_limit;
    v->ceiling = (double)config->rtt_ceiling;
    v->drain_interval = config->drain_interval;
    v->limit = clamp(config->initial_limit, v->min_limit, v->max_limit);
    v->phase = STARTUP;
    v->growth = 1;
    v->cv2 = PRIOR_CV2;
    v->cv2_weight = PRIOR_SAMPLES;
    v->enough = EVIDENCE;
    v->reason = "";
    return 0;
}

/* One RTT until the first call that knows, half a mixed window and a clean one, then one drain. */
static uint64_t vegas2_reaction_ns(const void *state)
{
    const struct vegas2 *v = state;
    if (v->mu.value <= 0)
        return 0;
    double window = fmax(v->rtt, samples_needed(v) / v->mu.value);
    return (uint64_t)clamp(v->rtt + 1.5 * window + SETTLE * v->rtt + window, 1, LONGEST_NS);
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

const struct weir__algorithm weir__vegas2 = {
    .class = {.name = "vegas2",
              .state_size = sizeof(struct vegas2),
              .init = vegas2_init,
              .update = vegas2_update,
              .reaction_ns = vegas2_reaction_ns},
    .initial_limit = 4,
    .figures = vegas2_figures,
    .set_wall_offset = vegas2_set_wall_offset,
    .windowed = false,
};
