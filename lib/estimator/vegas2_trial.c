/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Trials of vegas2: does the throughput still rise with the load? */

#include "estimator/vegas2_parts.h"

#include <math.h>

/* Whether R follows this client's limit and no other's. What a noisy R says of the load is little, so more is staked on
 * trials there; where it is quiet one of a few clients may by chance look alone for a while. */
static bool shown_alone(const struct vegas2 *v)
{
    if (v->cv2 > QUIET)
        return v->solitude > SURELY_ALONE && v->influence > 0;
    return fmin(v->solitude, v->influence) > SURELY_ALONE;
}

/* R alone cannot tell a queue from calls that hinder each other, nor an unlucky baseline from a queue. So now and then
 * the limit is moved by a step, up, or down where it already stands above the drained RTT's knee, and the throughput is
 * watched. Only for who moves R: in a crowd everyone's own throughput rises with the own load. */
bool weir__vegas2_trial_due(const struct vegas2 *v)
{
    if (v->cv2 > MURKY && v->confirmed <= NEWCOMER_DRAINS) /* a newcomer's baseline may be the queue of others */
        return false;
    return v->trial_in == 0 && !v->unconfirmed && shown_alone(v) && v->young == 0 && v->grown == 0 && v->verified_r0 &&
           v->low_load > 0 && v->drain_interval != 0 && v->limit >= FEWEST_PERMITS &&
           v->limit * TRIAL <= weir__vegas2_most(v) && v->high.n >= 1 / (TRIAL_PRECISION * TRIAL_PRECISION);
}

void weir__vegas2_begin_trial(struct vegas2 *v)
{
    v->trial = v->bend > SAME && v->down_next ? DOWNWARDS : UPWARDS;
    v->trial_windows = (struct window){0};
    double limit = v->limit;
    weir__vegas2_set_limit(v, v->trial == UPWARDS ? limit * TRIAL : limit / clamp(v->bend, TRIAL_DOWN, TRIAL), "trial");
}

/* How much the throughput follows the load between the low phase and the high one: near 1 where only a queue makes the
 * difference, less where calls hinder each other long before the knee. */
static double elasticity(const struct vegas2 *v)
{
    double more = log(v->high.in_flight / v->high.n / v->low_load);
    return more > 0.1 ? clamp(1 - log(v->high.rtt / v->high.n / v->r0.value) / more, 0.15, 1) : 1;
}

/* What the windows of the trial say in comparison with those before: by the logarithms, how much more load there was,
 * how much of it the throughput has followed, and the variance of that. */
struct outcome {
    double more;
    double faster;
    double variance;
};

static struct outcome outcome(const struct vegas2 *v)
{
    const struct window *before = &v->high, *now = &v->trial_windows;
    double more = log(now->in_flight / now->n * before->n / before->in_flight);
    double slower = log(now->rtt / now->n * before->n / before->rtt);
    return (struct outcome){more, more - slower, 1 / now->n + 1 / before->n};
}

/* Where a trial has found something the knee lies between the two loads, nearer to the higher one the more of the load
 * the throughput has followed, so that a trial from either of them finds the same. An R without a queue is the
 * baseline, which was seen too low. A trial downwards that cost little began beyond the knee, and what it leaves has
 * room for the margin. */
static void move_knee(struct vegas2 *v)
{
    struct outcome o = outcome(v);
    double load = v->trial_windows.in_flight / v->trial_windows.n, rtt = v->trial_windows.rtt / v->trial_windows.n;
    double before = v->high.in_flight / v->high.n, variance = 1 / v->trial_windows.n;
    double follows = clamp(o.faster / o.more / elasticity(v), 0, 1);
    double c = fmin(load, before) * pow(fmax(load, before) / fmin(load, before), follows);
    if (v->trial == DOWNWARDS)
        c /= 1 + weir__vegas2_margin(v) / capacity(v);
    else if (rtt < knee_rtt(v) * (1 + 2 * sqrt(v->r0.variance + variance) + RESOLUTION))
        v->r0 = (struct estimate){rtt / v->bend, variance + RESOLUTION * RESOLUTION};
    v->mu = (struct estimate){load / rtt, variance};
    v->bend = fmax(1, c / (v->mu.value * v->r0.value));
}

static void end_trial(struct vegas2 *v, bool moved)
{
    bool noisy = v->r0.variance > NOISY * NOISY;
    if (moved)
        move_knee(v);
    v->unconfirmed = moved && v->trial == UPWARDS && v->bend > SAME;
    v->trial_pause = moved ? 1 : (unsigned)fmin(noisy ? 4 : LONGEST_PAUSE, 4 * v->trial_pause);
    v->trial_in = v->trial_pause - 1;
    v->down_next = moved == (v->trial == DOWNWARDS);
    v->trial = NO_TRIAL;
    v->high = (struct window){0};
    v->evidence = 0;
    weir__vegas2_set_limit(v, capacity(v) + weir__vegas2_margin(v), "trial");
}

/* A sequential test of a throughput that follows twice as much as is worth the load against one that does not follow at
 * all. Queues have a sharp knee, hindrance has a round one. */
void weir__vegas2_after_trial_window(struct vegas2 *v, const struct verdict *w)
{
    double weight = 1 / (w->se * w->se + WANDER * WANDER);
    v->trial_windows.n += weight;
    v->trial_windows.rtt += weight * w->rtt;
    v->trial_windows.in_flight += weight * w->load;
    struct outcome o = outcome(v);
    double worth = fmax(WORTH, WORTH_BY * elasticity(v)) * o.more;
    double evidence = 2 * worth * (o.faster - worth) / o.variance;
    if (fabs(evidence) >= TRIAL_EVIDENCE)
        end_trial(v, (evidence > 0) == (v->trial == UPWARDS));
}
