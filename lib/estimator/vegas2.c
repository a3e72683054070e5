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

#include "estimator/vegas2_state.h"

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

/* R at the knee. Where calls hinder each other it is above the RTT of a drained downstream without any queue. */
static double knee_rtt(const struct vegas2 *v)
{
    return v->r0.value * v->bend;
}

static double capacity(const struct vegas2 *v)
{
    return v->mu.value * knee_rtt(v);
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

static void new_baseline(struct vegas2 *v, double observed, double se)
{
    v->r0 = (struct estimate){observed, se * se + NEW_ERROR * NEW_ERROR};
    v->bend = 1;
    v->young = YOUNG;
}

/* Above c by a little more than c itself is uncertain, and concave, so that the smaller of two clients gains. */
static double margin(const struct vegas2 *v)
{
    double c = capacity(v);
    double common = 1 + SHARING * clamp(-v->influence / 2, 0, 1) * clamp((0.35 - v->queue) / 0.1, 0, 1);
    return common * (MARGIN * sqrt(c) + REST) + c * clamp(2.5 * (sqrt(v->r0.variance) - 0.025), 0, 0.3);
}

static double samples_needed(const struct vegas2 *v)
{
    return clamp(v->cv2 * (1 / (PRECISION * PRECISION)), fmax(FEWEST, v->phase == LOW_PHASE ? 0 : v->limit), MOST);
}

/* ---- moving the limit ---- */

static void restart_window(struct vegas2 *v, uint64_t begin_ns)
{
    v->window = (struct window){.begin_ns = begin_ns};
}

/* R that the present limit leads to, as far as is known. */
static double expected_rtt(const struct vegas2 *v)
{
    double rtt = v->mu.value > 0 ? fmax(v->r0.value, fmin(v->rtt, v->limit / v->mu.value)) : v->rtt;
    return fmin(rtt, LONGEST_WAIT_NS);
}

/* Moves the limit, by no more than a half downwards unless nothing speaks for what it was, and shuts the window until
 * the change has had its effect. */
static void set_limit(struct vegas2 *v, double target, const char *reason)
{
    double old = v->limit;
    double least = v->started_high && !v->verified_r0 ? 0 : old / 2;
    v->limit = clamp(fmax(target, least), v->min_limit, v->max_limit);
    if (floor(v->limit) != floor(old))
        v->reason = reason;
    v->open_ns = v->now_ns;
    if (fabs(floor(v->limit) - floor(old)) > 0.03 * old)
        v->open_ns += (uint64_t)((v->limit > old ? SETTLE_UP : SETTLE) * expected_rtt(v));
    if (floor(v->limit) < floor(old)) {
        v->falling = true;
        v->cut_ns = v->now_ns;
    }
    v->rising = floor(v->limit) > floor(old);
    v->moved_ns = v->now_ns;
    restart_window(v, v->open_ns);
}

static double low_limit(const struct vegas2 *v)
{
    return fmax(1, floor(v->mu.value * v->r0.value * (1 - LOW)));
}

/* How many times as long as for a quiet downstream the baseline has to be looked at. */
static double patience(const struct vegas2 *v)
{
    return clamp(6 * v->cv2, 1, 50);
}

/* The smallest cell of the nested grids that is at least that long: powers of two of a 64th of a second. */
static uint64_t cell_length(double least)
{
    uint64_t length = SECOND_NS / 64;
    while ((double)length < least && length < (1ull << 12) * SECOND_NS)
        length *= 2;
    return length;
}

static uint64_t newcomer_cell(const struct vegas2 *v)
{
    return cell_length(fmax(SECOND_NS, NEWCOMER_RTTS * v->r0.value));
}

/* The length of the grid's cells: a power of two of seconds, so that cells of different clients nest. It hangs on what
 * clients of one downstream have in common; small changes do not move it. */
static uint64_t drain_interval(struct vegas2 *v)
{
    if (v->drain_interval != WEIR_DRAIN_AUTO)
        return v->regular = v->drain_interval;
    if (v->in_doubt)
        return cell_length(EMERGENCY_RTTS * fmax(v->rtt, v->r0.value));
    double least = fmax(SECOND_NS, fmax(DRAIN_RTTS * v->r0.value * patience(v), 6 * v->span));
    if ((double)v->regular < least || (double)v->regular >= 4 * least)
        v->regular = cell_length(least);
    bool newcomer = v->confirmed < NEWCOMER_DRAINS && v->cv2 < QUIET && (v->influence <= 0 || capacity(v) < 4 * CROWD);
    bool young = v->influence > 0 && v->young > 0;
    if (young)
        return cell_length(fmax(SECOND_NS, NEWCOMER_RTTS * v->r0.value * patience(v)));
    return newcomer ? newcomer_cell(v) : v->regular;
}

static uint64_t wall_ns(const struct vegas2 *v)
{
    return v->now_ns + (uint64_t)v->wall_offset;
}

static uint64_t cells_between_alone(const struct vegas2 *v)
{
    if (margin(v) > TELLING * capacity(v) && fabs(v->solitude) < SOLITARY)
        return ALONE_TELLING;
    return fabs(v->influence) < SURE / 2 ? ALONE_UNSURE : ALONE_SURE;
}

/* Now and then a client drains when no other does, at a moment of its own within a cell, to see whose queue it is that
 * it sees: the less sure it is, the more often. */
static uint64_t when_to_drain_alone(const struct vegas2 *v)
{
    if (v->interval == 0 || v->interval != v->regular || v->in_doubt)
        return UINT64_MAX;
    uint64_t cell = v->drained_ns / v->interval;
    if ((cell + v->own_moment) % cells_between_alone(v) != 0)
        return UINT64_MAX;
    uint64_t finest = newcomer_cell(v); /* any client may drain at a multiple of that */
    if (finest > v->interval)
        return UINT64_MAX;
    uint64_t moment = cell * v->interval + v->own_moment % (v->interval / finest) * finest;
    moment += finest / 4 + v->own_moment / 4096 % 1024 * (finest / 4096);
    return moment > v->drained_ns ? moment : UINT64_MAX;
}

/* Sets when the next low phase is due: at the first boundary of the grid after the last one began. */
static void schedule_drain(struct vegas2 *v)
{
    uint64_t interval = drain_interval(v);
    if (v->drained_ns > wall_ns(v)) /* the wall clock was set back */
        v->drained_ns = wall_ns(v);
    v->interval = interval;
    v->due_ns = interval == 0 ? UINT64_MAX : (v->drained_ns / interval + 1) * interval;
    v->alone_ns = when_to_drain_alone(v);
}

/* Something has happened that makes earlier failures to grow meaningless. */
static void forget_failures(struct vegas2 *v)
{
    v->growth = STEP;
    v->grown = 0;
    v->enough = EVIDENCE;
}

static void go_high(struct vegas2 *v, const char *reason)
{
    v->phase = HIGH_PHASE;
    v->trial = NO_TRIAL;
    v->fresh = FRESH;
    v->fell = false;
    v->high = (struct window){0};
    v->verified = v->mu.variance < GUESS ? v->mu.value : 0;
    set_limit(v, capacity(v) + margin(v), reason);
}

static void go_low(struct vegas2 *v, const char *reason)
{
    if (v->phase != LOW_PHASE) {
        v->drains++;
        v->on_grid = false;
        v->aligned = false;
        v->coarse = false;
        v->alone = false;
    }
    v->phase = LOW_PHASE;
    v->drained_ns = wall_ns(v);
    set_limit(v, low_limit(v), reason);
}

/* A low phase because R has risen, at a limit that was thought to be c. */
static void go_low_to_learn_why(struct vegas2 *v, const struct verdict *w, double c, const char *reason)
{
    v->alarm = *w;
    v->before = (struct verdict){0};
    v->believed = c;
    v->suspected = v->mu;
    forget_failures(v);
    go_low(v, reason);
}

static void drain(struct vegas2 *v)
{
    v->before = (struct verdict){0};
    v->alarm = (struct verdict){0};
    if (v->evidence < v->enough)
        v->evidence = 0;
    v->believed = capacity(v);
    uint64_t boundary = wall_ns(v) / v->interval * v->interval;
    v->young -= v->young > 0;
    v->trial_in -= v->trial_in > 0;
    v->influence *= STALE;
    v->solitude *= STALE;
    go_low(v, "drain");
    v->on_grid = true;
    v->aligned = v->in_doubt || boundary % v->regular == 0;
    v->coarse = boundary % (COARSE * v->regular) == 0;
    v->suspected = v->mu;
}

static void drain_alone(struct vegas2 *v)
{
    v->before = (struct verdict){0};
    v->alarm = (struct verdict){0};
    v->believed = capacity(v);
    v->suspected = v->mu;
    go_low(v, "alone");
    v->alone = true;
}

/* ---- what a window means ---- */

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
    v->r0 = (struct estimate){o->first, w.se * w.se};
    v->mu = (struct estimate){rate, w.se * w.se};
    go_low_to_learn_why(v, &w, capacity(v), "flooded");
    schedule_drain(v);
}

static void after_growth_window(struct vegas2 *v, const struct verdict *w)
{
    bool queued = w->rtt >= knee_rtt(v) * (QUEUE + 2 * sqrt(w->se * w->se + v->r0.variance));
    if (queued || (v->phase == STARTUP && v->windows == 1 && v->started_high)) {
        v->mu = (struct estimate){w->rate, w->se * w->se};
        v->r0.variance += STARTUP_ERROR * STARTUP_ERROR;
        v->exit_rtt = v->phase == STARTUP ? w->rtt : 0;
        go_low_to_learn_why(v, w, w->load, "queue seen");
        return;
    }
    if (v->phase == STARTUP && v->r0.variance > NOISY * NOISY)
        believe_baseline(v, w->rtt, w->se);
    if (!w->bound) {
        v->seen_idle = v->seen_idle || w->load < 0.5 * v->limit;
        return;
    }
    v->mu = (struct estimate){w->load / knee_rtt(v), w->se * w->se};
    bool careful = v->phase == STARTUP && !v->seen_idle && v->limit > NEWCOMER_LIMIT;
    double step = careful ? NEWCOMER_STEP : v->growth;
    set_limit(v, v->limit * (1 + step) + 1, v->phase == STARTUP ? "startup" : "regrowth");
}

/* Whether R looks more like an idle downstream than like the queue that the margin makes. */
static bool knee_further_up(struct vegas2 *v, const struct verdict *w)
{
    if (v->fresh > 0 && v->evidence < v->enough) { /* the others may still be drained */
        v->fresh--;
        return false;
    }
    double own = margin(v) / capacity(v);
    if (v->influence <= 0) /* the queue is that of all, whatever the own share of it */
        own = fmin(own, FOREIGN);
    else if (v->grown > 0)
        own = fmax(own, v->step / 2);
    double variance = 2 * w->se * w->se + 1e-4;
    v->evidence += own * (own / 2 - (w->rtt / knee_rtt(v) - 1)) / variance;
    v->evidence = clamp(v->evidence, 0, v->enough + 2);
    return v->evidence >= (v->grown > 0 ? v->enough - 1.5 : v->enough);
}

static void grow(struct vegas2 *v, const struct verdict *w)
{
    v->mu.value = fmax(v->mu.value, w->load / knee_rtt(v));
    v->mu.variance = v->growth * v->growth;
    v->step = v->growth;
    set_limit(v, fmax(v->limit * (1 + v->growth), v->limit + 1), "no queue");
    v->growth = fmin(FASTEST, 2 * v->growth);
    if (v->influence <= 0) /* growth does not show in R, so it must not live on what was seen before it */
        v->evidence = 0;
    if (++v->grown > 1)
        v->enough = EVIDENCE;
}

/* ---- trials: does the throughput still rise with the load? ---- */

/* R alone cannot tell a queue from calls that hinder each other, nor an unlucky baseline from a queue. So now and then
 * the limit is moved by a step, up, or down where it already stands above the drained RTT's knee, and the throughput is
 * watched. Only for who moves R: in a crowd everyone's own throughput rises with the own load. */
static bool trial_due(const struct vegas2 *v)
{
    return v->trial_in == 0 && v->solitude > SOLITARY && v->young == 0 && v->grown == 0 && v->verified_r0 &&
           v->low_load > 0 && v->drain_interval != 0 && v->limit >= FEWEST_PERMITS &&
           v->limit * TRIAL <= v->max_limit && v->high.n >= 1 / (TRIAL_PRECISION * TRIAL_PRECISION);
}

static void begin_trial(struct vegas2 *v)
{
    v->trial = v->bend > SAME && !v->went_down ? DOWNWARDS : UPWARDS;
    v->went_down = v->trial == DOWNWARDS;
    v->trial_evidence = 0;
    v->trial_windows = (struct window){0};
    double limit = v->limit;
    set_limit(v, v->trial == UPWARDS ? limit * TRIAL : limit / TRIAL_DOWN, "trial");
}

/* How much the throughput follows the load between the low phase and the high one: near 1 where only a queue makes the
 * difference, less where calls hinder each other long before the knee. */
static double elasticity(const struct vegas2 *v)
{
    double more = log(v->high.in_flight / v->high.n / v->low_load);
    return more > 0.1 ? clamp(1 - log(v->high.rtt / v->high.n / v->r0.value) / more, 0.15, 1) : 1;
}

/* A trial upwards may have crossed the knee: c lies as far up as the throughput has followed. One downwards that cost
 * nothing began beyond the knee, and what it leaves has room for the margin. */
static void move_knee(struct vegas2 *v)
{
    double load = v->trial_windows.in_flight / v->trial_windows.n, rtt = v->trial_windows.rtt / v->trial_windows.n;
    double variance = 1 / v->trial_windows.n, before = v->high.in_flight / v->high.n;
    double c = load / (1 + margin(v) / capacity(v));
    if (v->trial == UPWARDS) {
        double followed = log(load / rtt * v->high.rtt / v->high.in_flight) / log(load / before);
        c = before * pow(load / before, clamp(followed / elasticity(v), 0, 1));
        if (rtt < knee_rtt(v) * (1 + 2 * sqrt(v->r0.variance + variance) + RESOLUTION))
            v->r0 = (struct estimate){rtt / v->bend, variance + RESOLUTION * RESOLUTION};
    }
    v->mu = (struct estimate){load / rtt, variance};
    v->bend = fmax(1, c / (v->mu.value * v->r0.value));
}

static void end_trial(struct vegas2 *v, bool moved)
{
    bool noisy = v->r0.variance > NOISY * NOISY;
    if (moved)
        move_knee(v);
    v->trial_pause = moved ? 1 : (unsigned)fmin(noisy ? 4 : LONGEST_PAUSE, 4 * v->trial_pause);
    v->trial_in = v->trial_pause - 1;
    v->trial = NO_TRIAL;
    v->high = (struct window){0};
    v->evidence = 0;
    set_limit(v, capacity(v) + margin(v), "trial");
}

/* A sequential test of a throughput that goes on following the load nearly as it did so far against one that does not
 * follow any more. Queues have a sharp knee, hindrance has a round one. */
static void after_trial_window(struct vegas2 *v, const struct verdict *w)
{
    double weight = 1 / (w->se * w->se);
    double more = log(w->load * v->high.n / v->high.in_flight);
    double faster = log(w->rate * v->high.rtt / v->high.in_flight);
    v->trial_windows.n += weight;
    v->trial_windows.rtt += weight * w->rtt;
    v->trial_windows.in_flight += weight * w->load;
    double follow = elasticity(v) * more; /* as it did so far; the hypotheses are three and one quarter of that */
    v->trial_evidence += follow / 2 * (faster - follow / 2) / (w->se * w->se + 1 / v->high.n + WANDER * WANDER);
    if (fabs(v->trial_evidence) < EVIDENCE)
        return;
    bool follows = v->trial_evidence > 0;
    end_trial(v, follows == (v->trial == UPWARDS));
}

static void after_high_window(struct vegas2 *v, const struct verdict *w)
{
    double c = capacity(v);
    double own = (1 + margin(v) / c) * (v->trial == UPWARDS ? TRIAL : 1);
    double noise = sqrt(w->se * w->se + v->r0.variance);
    double usual = v->in_doubt ? v->doubtful_rtt : knee_rtt(v);
    if (w->rtt > usual * own * (CHANGED + 2 * noise) + usual / fmax(c, 1)) {
        double believed = v->verified > 0 || v->influence <= 0 ? v->verified * knee_rtt(v) : c;
        learn(&v->mu, w->rate, w->se, DRIFT_RATE);
        go_low_to_learn_why(v, w, believed, "slower");
        return;
    }
    if (!w->bound || v->in_doubt)
        return;
    if (v->trial != NO_TRIAL) {
        after_trial_window(v, w);
        return;
    }
    v->queue += 0.1 * (w->rtt / knee_rtt(v) - 1 - v->queue);
    v->high.n += 1 / (w->se * w->se);
    v->high.rtt += w->rtt / (w->se * w->se);
    v->high.in_flight += w->load / (w->se * w->se);
    if (trial_due(v)) {
        begin_trial(v);
        return;
    }
    if (knee_further_up(v, w)) {
        grow(v, w);
        return;
    }
    if (v->grown == 1)
        v->enough = fmin(8 * EVIDENCE, 2 * v->enough);
    v->grown = 0;
    v->growth = STEP;
    learn(&v->mu, w->rate, w->se, DRIFT_RATE);
    /* Were it the baseline that rose, c would shrink to nothing. */
    v->mu.value = fmax(v->mu.value, LEAST_TRUST * v->verified);
    set_limit(v, capacity(v) + margin(v), "throughput");
}

/* R did not fall with the limit. If others drained as well it is a higher baseline, which says nothing about the
 * capacity in permits: go on from what that was. Otherwise it may be their queue: stand still until all drain. */
static void baseline_rose(struct vegas2 *v, const struct verdict *w)
{
    if (v->ceiling > 0 && w->rtt > v->ceiling) { /* never a baseline */
        v->r0 = (struct estimate){v->ceiling, RESOLUTION * RESOLUTION};
        v->mu = (struct estimate){w->rate, w->se * w->se};
        v->in_doubt = false;
        go_high(v, "above ceiling");
        return;
    }
    bool crowd = v->believed < CROWD;
    bool known = v->influence > 0 && !v->aligned;
    if (!known && crowd && v->verified_r0 && !v->coarse && v->drain_interval != 0) {
        v->mu = v->suspected;
        go_high(v, "crowded");
        return;
    }
    if (!known && !v->aligned && v->verified_r0 && v->drain_interval != 0) {
        v->in_doubt = true;
        v->doubtful_rtt = w->rtt;
        v->mu = (struct estimate){v->believed / knee_rtt(v), GUESS};
        go_high(v, "in doubt");
        return;
    }
    v->in_doubt = false;
    v->credited = known;
    new_baseline(v, w->rtt, w->se);
    v->verified_r0 = true;
    v->mu = (struct estimate){v->believed / v->r0.value, GUESS};
    forget_failures(v);
    if (known || v->cv2 > QUIET || (v->influence > 0 && v->believed >= CROWD)) {
        v->growth = 0.5;
        v->evidence = v->enough;
    }
    go_high(v, "baseline rose");
}

static struct verdict lower(const struct verdict *a, const struct verdict *b)
{
    return a->rtt < b->rtt ? *a : *b;
}

/* Two low windows whose R does not depend on the load, as one. If they disagree the lower counts: a pause of the
 * downstream is not a new baseline. */
static struct verdict pooled(const struct verdict *a, const struct verdict *b)
{
    struct verdict both = lower(a, b);
    double error = sqrt(a->se * a->se + b->se * b->se + RESOLUTION * RESOLUTION);
    if (fabs(a->rtt - b->rtt) > 2 * error * both.rtt)
        return both;
    double weight = a->se * a->se / (a->se * a->se + b->se * b->se);
    both.rtt = a->rtt + weight * (b->rtt - a->rtt);
    both.se = sqrt(weight) * b->se;
    return both;
}

/* An event has shown R to fall with the limit. Others may have lowered theirs as well. */
static void seen_to_help(struct vegas2 *v)
{
    if (!v->on_grid && !v->alone && v->influence > -SURE / 2)
        v->influence = fmax(v->influence, SURE / 2);
}

/* A low window with too high an R: still saturated, or a new baseline? A further cut tells, for only the own queue
 * shrinks with it. */
static void after_slow_low_window(struct vegas2 *v, const struct verdict *w)
{
    bool compared = v->before.rtt > 0 && (w->load < LESS * v->before.load || v->limit <= v->min_limit);
    bool helped = compared && w->rtt < v->before.rtt * fmin(0.95, sqrt(w->load / v->before.load));
    if (compared && !helped) {
        struct verdict both = v->influence > 0 ? pooled(&v->before, w) : lower(&v->before, w);
        baseline_rose(v, &both);
        return;
    }
    if (helped) {
        seen_to_help(v);
        v->believed = v->verified_r0 ? w->rate * knee_rtt(v) : w->load;
    }
    if (helped || v->before.rtt <= 0)
        v->before = *w;
    v->mu = (struct estimate){w->rate, w->se * w->se};
    if (!v->verified_r0 && v->started_high)
        set_limit(v, v->limit / 2, "falling");
    else
        go_low(v, "falling");
}

/* The windows of the high phase tell the baseline too, up to the queue of the margin, which is about known. That
 * matters where noise leaves little to see in a short low phase. */
static void learn_from_high_phase(struct vegas2 *v)
{
    if (v->high.n <= 0 || v->r0.variance < NOISY * NOISY)
        return;
    double own = margin(v) / capacity(v);
    double observed = v->high.rtt / v->high.n / (1 + own) / v->bend;
    double gain = v->r0.variance / (v->r0.variance + 1 / v->high.n + own * own);
    v->r0.value += gain * (observed - v->r0.value);
    if (v->ceiling > 0)
        v->r0.value = fmin(v->r0.value, v->ceiling);
    v->r0.variance *= 1 - gain;
}

/* Log likelihood ratio that R fell by as much as expected rather than by a share of that or by far more, which are
 * equally likely otherwise. variance: of the fall. */
static double as_expected(double fall, double expected, double share, double variance)
{
    double less = (1 - share) * expected * (fall - (1 + share) / 2 * expected) / variance;
    double more = (FAR_MORE - 1) * expected * ((1 + FAR_MORE) / 2 * expected - fall) / variance;
    return -log((exp(fmin(-less, 50)) + exp(fmin(-more, 50))) / 2);
}

/* What a low window that no other client shares says about whose the queue of the high phase is: the own one is gone,
 * that of others is not. */
static void learn_influence(struct vegas2 *v, const struct verdict *w)
{
    if (v->high.n <= 0)
        return;
    double own = log1p(margin(v) / capacity(v)) + log(v->bend);
    double fall = log(v->high.rtt / v->high.n / w->rtt);
    double variance = w->se * w->se + 1 / v->high.n + 1e-4;
    double all = as_expected(fall, own, 0.3, variance);
    double most = as_expected(fall, own, 0.4, variance);
    v->influence = clamp(v->influence + all, -SURE, SURE);
    v->solitude = clamp(v->solitude + most, -SURE, SURE);
}

static void after_low_window(struct vegas2 *v, const struct verdict *w)
{
    if (v->alone) {
        learn_influence(v, w);
        v->alone = false;
        if (v->influence <= 0) {
            go_high(v, "not alone");
            return;
        }
    }
    v->low_load = w->load;
    double noise = sqrt(w->se * w->se + v->r0.variance);
    bool slow = w->rtt > v->r0.value * (1 + SIGNIFICANT * sqrt(noise * noise + RESOLUTION * RESOLUTION));
    if (slow || (!v->verified_r0 && v->started_high && v->limit > UNVERIFIED / 2)) {
        after_slow_low_window(v, w);
        return;
    }
    bool fell = w->rtt < v->r0.value * (1 - fmax(0.05, 2 * noise));
    if (w->rtt < INFLUENCE * v->alarm.rtt)
        seen_to_help(v);
    v->before = (struct verdict){0};
    if (v->aligned && v->credited) {
        if (fell)
            v->influence = -SURE;
        v->credited = false;
    }
    v->in_doubt = false;
    bool others_drain = v->influence > 0 || v->coarse || (v->aligned && capacity(v) >= CROWD);
    if (others_drain || fell || v->fell || !v->verified_r0 || v->drain_interval == 0)
        believe_baseline(v, w->rtt, w->se);
    if (w->bound && w->rate * (1 - 2 * w->se) > v->mu.value)
        v->mu = (struct estimate){w->rate, w->se * w->se};
    v->confirmed = fell ? 0 : v->confirmed + (capacity(v) < 2 * CROWD ? v->aligned : v->on_grid);
    v->fell = fell;
    if (fell) {
        go_low(v, "baseline");
        return;
    }
    learn_from_high_phase(v);
    if (v->exit_rtt > 0 && w->rtt > 0.85 * v->exit_rtt && v->cv2 > QUIET / 2) { /* that was no queue but noise */
        v->growth = 0.5;
        v->evidence = v->enough;
    }
    v->exit_rtt = 0;
    v->verified_r0 = true;
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
    w.se = fmax(LEAST_ERROR, sqrt(v->cv2 / sum->n));
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
    if (v->phase != LOW_PHASE && surprise(&v->r0, w.rtt, w.se) < -SIGNIFICANT) {
        new_baseline(v, w.rtt, w.se);
        v->credited = false;
    }
    if (v->phase == LOW_PHASE)
        after_low_window(v, &w);
    else if (v->phase == HIGH_PHASE)
        after_high_window(v, &w);
    else
        after_growth_window(v, &w);
    schedule_drain(v);
}

static bool window_complete(const struct vegas2 *v)
{
    const struct window *sum = &v->window;
    double age = (double)(v->now_ns - sum->begin_ns);
    if (age * sum->n < sum->rtt)
        return false;
    if (sum->n >= samples_needed(v))
        return true;
    double mean = sum->rtt / sum->n;
    if (sum->n >= (v->phase == LOW_PHASE ? 4 : FEWEST) && age > 4 * patience(v) * mean)
        return true;
    if (v->phase == LOW_PHASE)
        return false;
    if (sum->n >= OLD_SAMPLES && age > fmax(OLD_NS, OLD_RTTS * mean))
        return true;
    if (sum->n < fmax(FEWEST, v->limit / 2))
        return false;
    if (v->phase != HIGH_PHASE)
        return sum->n >= v->cv2 / (STARTUP_PRECISION * STARTUP_PRECISION);
    if (v->grown > 0 || v->evidence >= v->enough)
        return sum->n >= v->cv2 / (GROWTH_PRECISION * GROWTH_PRECISION);
    return mean > v->r0.value * 1.06 * (CHANGED + 4 * sqrt(v->cv2 / sum->n));
}

/* ---- samples ---- */

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
    v->mu.value = fmax(v->mu.value * keep, SLOWEST);
    v->phase = REGROWTH;
    v->growth = 0.25;
    set_limit(v, v->limit * keep, "loss");
    v->cut_ns = v->now_ns;
}

static void advance_clock(struct vegas2 *v, uint64_t end_ns)
{
    if (v->now_ns == 0)
        v->own_moment = end_ns * 0x9e3779b97f4a7c15u >> 32; /* Fibonacci hashing */
    if (end_ns + 10ull * SECOND_NS < v->now_ns || v->now_ns == 0) {
        v->now_ns = end_ns;
        v->open_ns = end_ns;
        v->cut_ns = 0;
        v->moved_ns = 0;
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
    return sample->in_flight >= BOUND * floor(v->limit) ||
           (double)(v->now_ns - v->moved_ns) > 2 * fmin((double)sample->rtt_ns, LONGEST_WAIT_NS);
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
        double settled = (double)sample->start_ns + SETTLE * expected_rtt(v);
        if (settled > (double)v->open_ns)
            v->open_ns = (uint64_t)settled;
        restart_window(v, v->open_ns);
    }
    if (v->phase == HIGH_PHASE && v->interval != 0 && wall_ns(v) >= v->due_ns)
        drain(v);
    else if (v->phase == HIGH_PHASE && wall_ns(v) >= v->alone_ns)
        drain_alone(v);
    if (v->rising && raise_is_in(v, sample)) {
        v->rising = false;
        restart_window(v, v->now_ns);
    }
    if (v->falling || v->rising || v->now_ns < v->open_ns)
        return (uint32_t)v->limit;
    if (v->phase <= REGROWTH && sample->in_flight >= floor(v->limit) &&
        v->window.in_flight < 0.5 * v->limit * v->window.n) /* a burst after idling begins */
        restart_window(v, v->now_ns);
    if (flooded(v, rtt)) {
        leave_flood(v);
        return (uint32_t)v->limit;
    }
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
    v->started_high = v->limit > UNVERIFIED;
    v->growth = 1;
    v->bend = 1;
    v->trial_pause = 1;
    v->trial_in = 2;
    v->young = YOUNG;
    v->cv2 = PRIOR_CV2;
    v->cv2_weight = PRIOR_SAMPLES;
    v->enough = EVIDENCE;
    v->reason = "";
    return 0;
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
