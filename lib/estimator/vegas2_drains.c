/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* When vegas2 drains, and what a drain that no other client shares says about whose the queue is. */

#include "estimator/estimator.h"
#include "estimator/vegas2_parts.h"

#include <math.h>

#include <weir/config.h>

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

/* While R is long because the fleet grows, it is the baseline that says how often: the sooner that ends. */
static uint64_t between_dips(struct vegas2 *v)
{
    double least = fmax(SECOND_NS, DIP_RTTS * blur(v) * fmin(v->level, v->r0.value));
    if (least > 1.1 * (double)v->regular || least < 0.45 * (double)v->regular)
        v->regular = cell_length(least);
    return vague(v) ? cell_length(fmax(SECOND_NS, NEWCOMER_RTTS * v->r0.value * patience(v))) : v->regular;
}

/* The length of the grid's cells: a power of two of seconds, so that cells of different clients nest. It hangs on what
 * clients of one downstream have in common; small changes do not move it. */
static uint64_t drain_interval(struct vegas2 *v)
{
    if (v->drain_interval != WEIR_DRAIN_AUTO)
        return v->regular = v->drain_interval;
    if (murky(v))
        return between_dips(v);
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

static uint64_t cells_between_alone(const struct vegas2 *v)
{
    if (v->unconfirmed)
        return 1;
    bool undecided = fabs(v->solitude) < SOLITARY;
    if (v->solitude > 0 && v->limit >= FEWEST_PERMITS) /* trials wait for more */
        undecided = fmin(v->solitude, v->influence) < SURELY_ALONE;
    if (undecided && weir__vegas2_margin(v) > TELLING * capacity(v))
        return ALONE_TELLING;
    return fabs(v->influence) < SURE / 2 ? ALONE_UNSURE : ALONE_SURE;
}

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014; the finalizer of splitmix64. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Now and then a client drains when no other does, at a moment of its own within a cell, to see whose queue it is that
 * it sees: the less sure it is, the more often. */
static uint64_t when_to_drain_alone(const struct vegas2 *v)
{
    if (v->interval == 0 || v->in_doubt || (v->murk > MURKY && v->interval != v->regular))
        return UINT64_MAX;
    uint64_t cell = v->drained_ns / v->interval;
    uint64_t dice = mixed(v->own_moment + cell);
    if (dice % cells_between_alone(v) != 0)
        return UINT64_MAX;
    uint64_t finest = newcomer_cell(v); /* any client may drain at a multiple of that */
    if (finest > v->interval)
        return UINT64_MAX;
    uint64_t moment = cell * v->interval + dice / ALONE_SURE % (v->interval / finest) * finest;
    moment += finest / 4 + (dice >> 32) % 1024 * (finest / 2048);
    return moment > v->drained_ns ? moment : UINT64_MAX;
}

/* Sets when the next low phase is due: at the first boundary of the grid after the last one began. */
void weir__vegas2_schedule_drain(struct vegas2 *v)
{
    uint64_t interval = drain_interval(v);
    if (v->drained_ns > wall_ns(v)) /* the wall clock was set back */
        v->drained_ns = wall_ns(v);
    v->interval = interval;
    v->due_ns = interval == 0 ? UINT64_MAX : (v->drained_ns / interval + 1) * interval;
    if (v->looked && fmin(v->influence, v->solitude) > 0 && capacity(v) >= CROWD / 2 && v->due_ns % v->regular != 0)
        v->due_ns += interval;
    v->alone_ns = when_to_drain_alone(v);
}

double weir__vegas2_dip(const struct vegas2 *v, double rtt)
{
    return (DIP_SETTLE + DIP * blur(v)) * fmin(rtt, LONGEST_WAIT_NS);
}

double weir__vegas2_together(const struct vegas2 *v)
{
    if (murky(v))
        return fmax(weir__vegas2_dip(v, v->level), DIP_SHARE * (double)v->interval);
    bool noisy = v->cv2 >= QUIET && capacity(v) >= CROWD; /* then it rather looks for longer */
    if (v->influence > 0 || !v->verified_r0 || noisy)
        return 0;
    double high = fmin(fmax(v->rtt, v->r0.value), LONGEST_WAIT_NS);
    return TOGETHER_HIGH * high + TOGETHER_LOW * fmin(v->r0.value, LONGEST_WAIT_NS);
}

void weir__vegas2_drain(struct vegas2 *v)
{
    if (murky(v) && (double)(wall_ns(v) % v->interval) > DIP_LATE * v->level) { /* the others have begun already */
        v->drained_ns = wall_ns(v);
        weir__vegas2_schedule_drain(v);
        return;
    }
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
    v->looked = false;
    weir__vegas2_go_low(v, "drain");
    v->on_grid = true;
    v->aligned = (v->in_doubt && v->confirmed > 0) || boundary % v->regular == 0;
    v->coarse = boundary % (COARSE * v->regular) == 0;
    v->suspected = v->mu;
    double together = weir__vegas2_together(v);
    if (v->aligned && together > 0)
        v->together_ns = v->now_ns + weir__trunc_u64(together - (double)(wall_ns(v) - boundary));
}

void weir__vegas2_drain_alone(struct vegas2 *v)
{
    if (v->high.n <= 0) { /* nothing to compare with */
        v->alone_ns = UINT64_MAX;
        return;
    }
    v->before = (struct verdict){0};
    v->alarm = (struct verdict){0};
    v->believed = capacity(v);
    v->suspected = v->mu;
    if (v->interval != v->regular) /* it may stand for a drain */
        v->trial_in -= v->trial_in > 0;
    weir__vegas2_go_low(v, "alone");
    v->alone = true;
    v->looked = true;
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
void weir__vegas2_learn_influence(struct vegas2 *v, const struct verdict *w)
{
    if (v->high.n <= 0 || v->losses.lossy > 0) /* below such an edge there is no own queue */
        return;
    double own = log1p(weir__vegas2_margin(v) / capacity(v)) + log(knee_rtt(v) / v->r0.value);
    double fall = log(v->high.rtt / v->high.n / w->rtt);
    double variance = w->se * w->se + 1 / v->high.n + 1e-4 + fmax(0, v->unrest);
    double all = as_expected(fall, own, 0.3, variance);
    double most = as_expected(fall, own, 0.4, variance);
    v->influence = clamp(v->influence + all, -SURE, SURE);
    v->solitude = clamp(v->solitude + most, -SURE, SURE);
    if (v->unconfirmed && most < 0) /* others had given way to the trial */
        v->bend = 1;
    v->unconfirmed = false;
}

/* An event has shown R to fall with the limit. Others may have lowered theirs as well; where R is murky that would not
 * be found out soon. */
void weir__vegas2_seen_to_help(struct vegas2 *v)
{
    if (!v->on_grid && !v->alone && v->influence > -SURE / 2 && v->murk < MURKY)
        v->influence = fmax(v->influence, SURE / 2);
}
