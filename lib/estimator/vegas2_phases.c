/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What a closed window means to vegas2 in each phase. */

#include "estimator/estimator.h"
#include "estimator/vegas2_parts.h"

#include <math.h>

/* ---- startup and regrowth ---- */

void weir__vegas2_after_growth_window(struct vegas2 *v, const struct verdict *w)
{
    bool queued = w->rtt >= knee_rtt(v) * (QUEUE + 2 * sqrt(w->se * w->se + v->r0.variance));
    if (queued || (v->phase == STARTUP && v->windows == 1 && v->started_high)) {
        v->mu = (struct estimate){w->rate, w->se * w->se};
        if (knows_from_idling(v))
            v->young = 0;
        else
            v->r0.variance += STARTUP_ERROR * STARTUP_ERROR;
        v->exit_rtt = v->phase == STARTUP ? w->rtt : 0;
        weir__vegas2_go_low_to_learn_why(v, w, w->load, "queue seen");
        return;
    }
    if (v->phase == STARTUP && (v->r0.variance > NOISY * NOISY || w->load < 0.5 * v->limit))
        weir__vegas2_believe_baseline(v, w->rtt, w->se);
    if (!w->bound) {
        v->seen_idle = v->seen_idle || w->load < 0.5 * v->limit;
        return;
    }
    v->mu = (struct estimate){w->load / knee_rtt(v), w->se * w->se};
    if (weir__vegas2_held(v)) {
        weir__vegas2_go_high(v, "below loss");
        return;
    }
    bool careful = v->phase == STARTUP && !v->seen_idle && v->limit > NEWCOMER_LIMIT;
    double step = careful ? NEWCOMER_STEP : v->growth;
    weir__vegas2_set_limit(v, v->limit * (1 + step) + 1, v->phase == STARTUP ? "startup" : "regrowth");
}

/* ---- the high phase ---- */

/* Whether R looks more like an idle downstream than like the queue that the margin makes. */
static bool knee_further_up(struct vegas2 *v, const struct verdict *w)
{
    if (v->fresh > 0 && v->evidence < v->enough) { /* the others may still be drained */
        v->fresh--;
        return false;
    }
    double own = weir__vegas2_margin(v) / capacity(v);
    if (v->influence <= 0) /* the queue is that of all, whatever the own share of it */
        own = fmin(own, FOREIGN);
    else if (v->grown > 0)
        own = fmax(own, v->step / 2);
    double variance = 2 * w->se * w->se + 1e-4;
    v->evidence += own * (own / 2 - (w->rtt / knee_rtt(v) - 1)) / variance;
    v->evidence = clamp(v->evidence, 0, v->enough + 2);
    return !weir__vegas2_held(v) && v->evidence >= (v->grown > 0 ? v->enough - 1.5 : v->enough);
}

static void grow(struct vegas2 *v, const struct verdict *w)
{
    v->mu.value = fmax(v->mu.value, w->load / knee_rtt(v));
    v->mu.variance = v->growth * v->growth;
    v->step = v->growth;
    weir__vegas2_set_limit(v, fmax(v->limit * (1 + v->growth), v->limit + 1), "no queue");
    v->growth = fmin(murky(v) ? FASTEST_MURKY : FASTEST, 2 * v->growth);
    if (v->influence <= 0 || wander(v) > GUSTY) /* growth does not show in R, or not at once */
        v->evidence = 0;
    if (++v->grown > 1)
        v->enough = EVIDENCE;
}

/* Whether R is longer than the limit itself explains: by what the margin makes, by chance, and by a call more, for the
 * limit is a whole number. */
static bool unexplained(const struct vegas2 *v, const struct verdict *w)
{
    double c = capacity(v);
    double queue = weir__vegas2_margin(v) / c;
    if (v->influence <= 0)
        queue = fmax(queue, v->queue);
    double own = (1 + queue) * (v->trial == UPWARDS ? TRIAL : 1);
    double noise = sqrt(w->se * w->se + v->r0.variance);
    double usual = v->in_doubt ? v->doubtful_rtt : knee_rtt(v);
    return w->rtt > usual * own * (CHANGED + 2 * noise) + usual / fmax(c, 1);
}

/* Capacity lost, or a slower service: the low phase will tell. What the capacity was believed to be is kept for the
 * latter. */
static void after_slow_high_window(struct vegas2 *v, const struct verdict *w)
{
    double believed = v->verified > 0 || v->influence <= 0 ? v->verified * knee_rtt(v) : capacity(v);
    weir__vegas2_learn(&v->mu, w->rate, w->se, DRIFT_RATE);
    weir__vegas2_go_low_to_learn_why(v, w, believed, "slower");
}

/* Adds to what the high phase has shown since the last drain, against which low windows and trials are held. */
static void remember_high_window(struct vegas2 *v, const struct verdict *w)
{
    v->queue += 0.1 * (w->rtt / knee_rtt(v) - 1 - v->queue);
    v->high.n += 1 / (w->se * w->se);
    v->high.rtt += w->rtt / (w->se * w->se);
    v->high.in_flight += w->load / (w->se * w->se);
}

static void follow_throughput(struct vegas2 *v, const struct verdict *w)
{
    if (v->grown == 1) /* growth that came to nothing: ask for more before the next */
        v->enough = fmin(8 * EVIDENCE, 2 * v->enough);
    v->grown = 0;
    v->growth = STEP;
    weir__vegas2_learn(&v->mu, w->rate, w->se, murky(v) ? DRIFT_MURKY : DRIFT_RATE);
    /* Were it the baseline that rose, c would shrink to nothing. */
    v->mu.value = fmax(v->mu.value, LEAST_TRUST * v->verified);
    weir__vegas2_set_limit(v, capacity(v) + weir__vegas2_margin(v), "throughput");
}

void weir__vegas2_after_high_window(struct vegas2 *v, const struct verdict *w)
{
    if (unexplained(v, w)) {
        after_slow_high_window(v, w);
        return;
    }
    if (!w->bound || v->in_doubt)
        return;
    if (v->trial != NO_TRIAL) {
        weir__vegas2_after_trial_window(v, w);
        return;
    }
    remember_high_window(v, w);
    if (weir__vegas2_trial_due(v))
        weir__vegas2_begin_trial(v);
    else if (knee_further_up(v, w))
        grow(v, w);
    else
        follow_throughput(v, w);
}

/* ---- the low phase ---- */

/* No baseline lies above the ceiling: whatever R is above it is a queue, and so is what is in flight beyond
 * X * ceiling. */
static void hold_to_ceiling(struct vegas2 *v, const struct verdict *w)
{
    v->r0 = (struct estimate){v->ceiling, RESOLUTION * RESOLUTION};
    v->mu = (struct estimate){w->rate, w->se * w->se};
    v->in_doubt = false;
    weir__vegas2_go_high(v, "above ceiling");
}

/* One of a crowd gives way. But they all see the same R, and all do: if R has not fallen after a second time, when each
 * has cut its limit to less than a quarter, or has nothing left to give, it is no queue. */
static bool give_way(struct vegas2 *v, const struct verdict *w)
{
    if (v->crowded == 0)
        v->crowded_c = v->believed;
    bool given = v->limit <= v->crowded_c / 4 || (v->limit <= v->min_limit && w->rtt > FAR_SLOWER * knee_rtt(v));
    if (++v->crowded >= CROWDED && given) {
        v->believed = v->crowded_c;
        return false;
    }
    v->mu = v->suspected;
    weir__vegas2_go_high(v, "crowded");
    return true;
}

/* Whether the startup has ended just now where R is murky, and dips come soon. */
static bool newcomer_to_noise(const struct vegas2 *v)
{
    bool noise = v->murk > MURKY && blur(v) <= FEW_DIPS;
    return noise && v->influence <= 0 && !v->verified_r0 && v->drain_interval != 0;
}

/* The baseline of the startup stands until then: the present R may hold the queue of all others. */
static bool wait_for_dip(struct vegas2 *v)
{
    v->verified_r0 = true;
    v->mu = v->suspected;
    weir__vegas2_go_high(v, "crowded");
    return true;
}

/* Whether what does not fall with the own limit may be the queue of others, for nothing says that they drained as
 * well. Then the limit stands where it was until all drain. A client that holds few permits is likely to be one of
 * many: those drain together where even the clients with longer cells do. */
static bool may_be_others(struct vegas2 *v, const struct verdict *w, bool known)
{
    bool crowd = v->believed < CROWD;
    if (impatient(v) || (murky(v) && v->aligned))
        return false;
    if (newcomer_to_noise(v))
        return wait_for_dip(v);
    if (known || !v->verified_r0 || v->drain_interval == 0)
        return false;
    if (crowd && !v->coarse)
        return give_way(v, w);
    if (v->aligned || (v->in_doubt && ++v->doubts >= (v->cv2 < QUIET ? DOUBTS_QUIET : DOUBTS)))
        return false;
    if (!v->in_doubt)
        v->doubts = 0;
    v->in_doubt = true;
    v->doubtful_rtt = w->rtt;
    v->mu = (struct estimate){v->believed / knee_rtt(v), GUESS};
    weir__vegas2_go_high(v, "in doubt");
    return true;
}

/* What ended the startup was no queue but noise. */
static void start_again(struct vegas2 *v)
{
    v->exit_rtt = 0;
    v->phase = STARTUP;
    weir__vegas2_set_limit(v, v->limit, "startup");
}

/* R did not fall with the limit. If others drained as well, or if R has been seen to follow the own limit, it is a
 * higher baseline, which says nothing about the capacity in permits: go on from what that was. */
static void baseline_rose(struct vegas2 *v, const struct verdict *w)
{
    if (v->ceiling > 0 && w->rtt > v->ceiling) {
        hold_to_ceiling(v, w);
        return;
    }
    bool known = v->influence > 0 && !v->aligned;
    if (may_be_others(v, w, known))
        return;
    v->in_doubt = false;
    v->crowded = 0;
    v->credited = known;
    weir__vegas2_new_baseline(v, w->rtt, w->se);
    v->verified_r0 = true;
    v->mu = (struct estimate){v->believed / knee_rtt(v), GUESS};
    weir__vegas2_forget_failures(v);
    if (known || v->cv2 > QUIET || (v->influence > 0 && v->believed >= CROWD)) { /* the growth itself will verify it */
        v->growth = 0.5;
        v->evidence = v->enough;
    }
    weir__vegas2_go_high(v, "baseline rose");
    if (v->aligned && murky(v) && !v->anchored && v->exit_rtt > 0)
        start_again(v);
    v->anchored = v->anchored || v->aligned;
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

/* Whether the queue of a low phase is certainly not the own one, nor a baseline: that was seen a moment ago, and the
 * others are back already; or nothing has happened, and others drain less often. */
static bool others_are_there(const struct vegas2 *v)
{
    bool crowded = v->influence <= 0 || capacity(v) < CROWD;
    if ((v->fell && crowded) || (v->together_ns != 0 && v->slow_rtt <= 0))
        return true;
    return !impatient(v) && v->influence <= 0 && v->on_grid && !v->aligned && !v->in_doubt && v->verified_r0;
}

/* Whether R is that of a low window before, at a higher load, but for what a queue then would make of it: it falls like
 * the load, to the least value that it can have. */
static bool fell_with_load(const struct vegas2 *v, const struct verdict *w, double least)
{
    double queue = fmax(w->load / v->before.load, least / v->before.rtt);
    return w->rtt < v->before.rtt * fmin(0.95, sqrt(queue));
}

/* All clients that drain together go further down together. */
static void dip_deeper(struct vegas2 *v, const char *reason)
{
    v->together_ns = weir__add_u64(v->now_ns, weir__trunc_u64(weir__vegas2_dip(v, v->rtt)));
    weir__vegas2_go_low(v, reason);
}

/* A dip with too high an R. If a further cut of all helps, it was a queue. If not, it is a higher baseline, but only if
 * two dips running show one: clients that begin do not drain. */
static void after_slow_dip(struct vegas2 *v, const struct verdict *w)
{
    if (!v->fell && (v->before.rtt <= 0 || fell_with_load(v, w, 0)) && v->limit > v->min_limit) {
        v->before = *w;
        v->mu = (struct estimate){w->rate, w->se * w->se};
        dip_deeper(v, "falling");
        return;
    }
    double slow_rtt = v->slow_rtt;
    v->slow_rtt = w->rtt;
    if (!v->fell && v->before.rtt > 0 && (slow_rtt > 0 || !v->anchored || blur(v) > FEW_DIPS)) {
        struct verdict both = lower(&v->before, w);
        if (slow_rtt > 0)
            both.rtt = fmin(both.rtt, slow_rtt);
        v->slow_rtt = 0;
        baseline_rose(v, &both);
        return;
    }
    v->before = (struct verdict){0};
    v->mu = v->suspected;
    weir__vegas2_go_high(v, "crowded");
}

/* A low window with too high an R: still saturated, or a new baseline? A further cut tells, for only the own queue
 * shrinks with it. */
static void after_slow_low_window(struct vegas2 *v, const struct verdict *w)
{
    if (v->together_ns != 0 && murky(v)) {
        after_slow_dip(v, w);
        return;
    }
    bool others = others_are_there(v);
    double slow_rtt = v->slow_rtt;
    if (v->together_ns != 0)
        v->slow_rtt = w->rtt;
    if (others) {
        v->before = (struct verdict){0};
        v->mu = v->suspected;
        weir__vegas2_go_high(v, "crowded");
        return;
    }
    if (v->together_ns != 0) {
        struct verdict both = *w;
        both.rtt = fmin(w->rtt, slow_rtt);
        baseline_rose(v, &both);
        return;
    }
    bool compared = v->before.rtt > 0 && (w->load < LESS * v->before.load || v->limit <= v->min_limit);
    bool helped = compared && fell_with_load(v, w, 0);
    if (compared && !helped) {
        struct verdict both = v->influence > 0 ? pooled(&v->before, w) : lower(&v->before, w);
        baseline_rose(v, &both);
        return;
    }
    if (helped) {
        v->crowded = 0;
        weir__vegas2_seen_to_help(v);
        v->believed = v->verified_r0 ? w->rate * knee_rtt(v) : w->load;
    }
    if (helped || v->before.rtt <= 0)
        v->before = *w;
    v->mu = (struct estimate){w->rate, w->se * w->se};
    if (!v->verified_r0 && v->started_high)
        weir__vegas2_set_limit(v, v->limit / 2, "falling");
    else
        weir__vegas2_go_low(v, "falling");
}

/* The windows of the high phase tell the baseline too, up to the queue of the margin, which is about known. That
 * matters where noise leaves little to see in a short low phase. */
static void learn_from_high_phase(struct vegas2 *v)
{
    if (v->high.n <= 0 || v->r0.variance < NOISY * NOISY)
        return;
    double own = weir__vegas2_margin(v) / capacity(v);
    double observed = v->high.rtt / v->high.n / (1 + own) * v->r0.value / knee_rtt(v);
    double gain = v->r0.variance / (v->r0.variance + 1 / v->high.n + own * own);
    v->r0.value += gain * (observed - v->r0.value);
    if (v->ceiling > 0)
        v->r0.value = fmin(v->r0.value, v->ceiling);
    v->r0.variance *= 1 - gain;
}

/* What a drained downstream says of the baseline and of the client's place among others; fell: R is below the
 * baseline. */
static void learn_from_drain(struct vegas2 *v, const struct verdict *w, bool fell)
{
    if (w->rtt < INFLUENCE * v->alarm.rtt)
        weir__vegas2_seen_to_help(v);
    v->before = (struct verdict){0};
    if (v->aligned && v->credited) { /* was it right to believe the risen baseline without the others? */
        if (fell)
            v->influence = -SURE;
        v->credited = false;
    }
    v->in_doubt = false;
    bool others_drain = v->influence > 0 || v->coarse || (v->aligned && (capacity(v) >= CROWD || murky(v)));
    if (murky(v) && v->aligned && !v->anchored)
        v->r0.variance += w->rtt < v->r0.value ? RAISED * RAISED : LOWERED * LOWERED;
    if (others_drain || vague(v) || fell || v->fell || !v->verified_r0 || v->drain_interval == 0)
        weir__vegas2_believe_baseline(v, w->rtt, w->se);
    if (w->bound && w->rate * (1 - 2 * w->se) > v->mu.value)
        v->mu = (struct estimate){w->rate, w->se * w->se};
    v->confirmed = fell ? 0 : v->confirmed + (capacity(v) < 2 * CROWD ? v->aligned : v->on_grid);
    v->fell = fell;
}

/* Whether the window before a clean one seemed slow by chance, or by little: R did not fall with the load from there,
 * so that window was not saturated either, and its rate is no mu. For who moves R. */
static bool without_queue_before(const struct vegas2 *v, const struct verdict *w)
{
    bool alone = v->influence > 0 && v->solitude > SOLITARY && v->believed >= CROWD;
    return alone && v->before.rtt > 0 && !fell_with_load(v, w, v->r0.value);
}

static void after_clean_low_window(struct vegas2 *v, const struct verdict *w, double noise)
{
    struct verdict both = *w;
    if (without_queue_before(v, w)) {
        v->mu = v->suspected;
        both = pooled(&v->before, w);
    }
    w = &both;
    bool fell = w->rtt < v->r0.value * (1 - fmax(0.05, 2 * noise));
    learn_from_drain(v, w, fell);
    if (fell && v->together_ns != 0 && murky(v)) {
        dip_deeper(v, "baseline");
        return;
    }
    if (fell && v->together_ns == 0) { /* to a c below the one that this phase was made for */
        weir__vegas2_go_low(v, "baseline");
        return;
    }
    learn_from_high_phase(v);
    bool shared = v->aligned || v->murk < MURKY || blur(v) > FEW_DIPS;
    bool mistaken = shared && v->exit_rtt > 0 && w->rtt * (1 + noise) > 0.85 * v->exit_rtt && v->cv2 > QUIET / 2;
    if (shared)
        v->exit_rtt = 0;
    v->anchored = v->anchored || v->aligned;
    if (v->together_ns != 0)
        v->slow_rtt = 0;
    v->crowded = 0;
    v->verified_r0 = true;
    weir__vegas2_go_high(v, "baseline");
    if (mistaken)
        start_again(v);
}

void weir__vegas2_after_low_window(struct vegas2 *v, const struct verdict *w)
{
    double noise = sqrt(w->se * w->se + v->r0.variance);
    bool slow = w->rtt > v->r0.value * (1 + SIGNIFICANT * sqrt(noise * noise + RESOLUTION * RESOLUTION));
    if (v->alone) {
        weir__vegas2_learn_influence(v, w);
        v->alone = false;
        if (v->influence <= 0 || slow) { /* the queue of others is still there: this was no look at the baseline */
            weir__vegas2_go_high(v, "not alone");
            return;
        }
    }
    v->low_load = w->load;
    if (slow || (!v->verified_r0 && v->started_high && v->limit > UNVERIFIED / 2))
        after_slow_low_window(v, w);
    else
        after_clean_low_window(v, w, noise);
}
