/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What vegas2 knows, and where that puts the limit. */

#include <math.h>

#include "estimator/estimator.h"
#include "estimator/vegas2_parts.h"

double weir__vegas2_surprise(const struct estimate *estimate, double observed, double se)
{
    double variance = estimate->variance + se * se + RESOLUTION * RESOLUTION;
    return (observed - estimate->value) / (estimate->value * sqrt(variance));
}

/* Weighs an observation by its variance against what is known; one that noise cannot explain is believed at once. */
void weir__vegas2_learn(struct estimate *estimate, double observed, double se, double drift)
{
    estimate->variance += drift;
    if (fabs(weir__vegas2_surprise(estimate, observed, se)) > SIGNIFICANT) {
        *estimate = (struct estimate){observed, se * se};
        return;
    }
    double gain = estimate->variance / (estimate->variance + se * se);
    estimate->value += gain * (observed - estimate->value);
    estimate->variance *= 1 - gain;
}

void weir__vegas2_believe_baseline(struct vegas2 *v, double observed, double se)
{
    if (v->ceiling > 0 && observed > v->ceiling)
        observed = v->ceiling;
    double surprise = v->r0.value > 0 ? weir__vegas2_surprise(&v->r0, observed, se) : 0;
    v->risen = v->influence > 0 || murky(v) ? fmax(0, v->risen + surprise - CHANCE) : 0;
    v->sunk = murky(v) ? fmax(0, v->sunk - surprise - CHANCE) : 0;
    if (v->r0.value <= 0 || v->risen > SIGNIFICANT || v->sunk > SIGNIFICANT) {
        v->r0 = (struct estimate){observed, se * se};
        v->risen = 0;
        v->sunk = 0;
    } else {
        weir__vegas2_learn(&v->r0, observed, se, DRIFT_RTT + wander(v) * wander(v) / GUST_DRAINS);
    }
}

void weir__vegas2_new_baseline(struct vegas2 *v, double observed, double se)
{
    v->r0 = (struct estimate){observed, se * se + NEW_ERROR * NEW_ERROR};
    v->bend = 1;
    v->young = YOUNG;
}

/* Share of the queue that is not the own one: 0 where R is known to follow the own limit. */
static double shared(const struct vegas2 *v)
{
    return clamp(-v->influence / 2, 0, 1);
}

/* Above c by a little more than c itself is uncertain, and concave, so that the smaller of two clients gains. Clients
 * whose baselines differ by chance share as unequally as that is by the queue of all, so noise asks for a longer one.
 */
double weir__vegas2_margin(const struct vegas2 *v)
{
    double c = capacity(v);
    double margin = MARGIN * sqrt(c) + REST;
    if (murky(v))
        margin += fmin(WIDER * margin, WIDER_MOST * c);
    return margin - CUT * shared(v) * clamp((v->queue - 0.2) / 0.2, 0, 1) +
           c * clamp(2.5 * (sqrt(v->r0.variance) - 0.025), 0, 0.3);
}

/* R that the present limit leads to, as far as is known. */
double weir__vegas2_expected_rtt(const struct vegas2 *v)
{
    double rtt = v->mu.value > 0 ? fmax(v->r0.value, fmin(v->rtt, v->limit / v->mu.value)) : v->rtt;
    return fmin(rtt, LONGEST_WAIT_NS);
}

double weir__vegas2_exact(const struct vegas2 *v)
{
    return v->phase == HIGH_PHASE ? 1 + shared(v) * (v->limit / v->permits - 1) : 1;
}

/* The fraction of a permit counts as one more in that share of the moves. */
static double whole(struct vegas2 *v)
{
    double most = floor(v->limit);
    if (v->phase != HIGH_PHASE || shared(v) <= 0)
        return most;
    v->dither += 0.6180339887498949;
    v->dither -= floor(v->dither);
    return most + (v->dither < v->limit - most);
}

/* Moves the limit, by no more than a half downwards unless nothing speaks for what it was, and shuts the window until
 * the change has had its effect. Where calls hinder each other, half of a limit is no low phase. */
void weir__vegas2_set_limit(struct vegas2 *v, double target, const char *reason)
{
    weir__vegas2_take_put_off(v);
    double old = v->permits;
    double least = old / (v->phase == LOW_PHASE ? 2 * v->bend : 2);
    if (v->started_high && !v->verified_r0)
        least = 0;
    v->limit = clamp(fmax(target, least), v->min_limit, weir__vegas2_most(v));
    v->permits = whole(v);
    if (v->permits != old) {
        v->reason = reason;
        weir__vegas2_limit_moved(v);
    }
    v->open_ns = v->now_ns;
    if (fabs(v->permits - old) > 0.03 * old)
        v->open_ns = weir__add_u64(
            v->open_ns, weir__trunc_u64((v->permits > old ? SETTLE_UP : SETTLE) * weir__vegas2_expected_rtt(v)));
    if (v->permits < old) {
        v->falling = true;
        v->cut_ns = v->now_ns;
    }
    v->rising = v->permits > old;
    v->moved_ns = v->now_ns;
    restart_window(v, v->open_ns);
}

static double low_limit(const struct vegas2 *v)
{
    return fmax(1, floor(v->mu.value * v->r0.value * (1 - LOW)));
}

/* Something has happened that makes earlier failures to grow meaningless. */
void weir__vegas2_forget_failures(struct vegas2 *v)
{
    v->growth = STEP;
    v->grown = 0;
    v->enough = EVIDENCE;
}

void weir__vegas2_go_high(struct vegas2 *v, const char *reason)
{
    v->phase = HIGH_PHASE;
    v->trial = NO_TRIAL;
    v->fresh = FRESH;
    v->fell = false;
    v->high = (struct window){0};
    v->verified = v->mu.variance < GUESS ? v->mu.value : 0;
    weir__vegas2_set_limit(v, capacity(v) + weir__vegas2_margin(v), reason);
}

void weir__vegas2_go_low(struct vegas2 *v, const char *reason)
{
    if (v->phase != LOW_PHASE) {
        v->drains++;
        v->on_grid = false;
        v->aligned = false;
        v->coarse = false;
        v->alone = false;
        v->together_ns = 0;
    }
    v->phase = LOW_PHASE;
    v->drained_ns = wall_ns(v);
    weir__vegas2_set_limit(v, low_limit(v), reason);
}

/* A low phase because R has risen, at a limit that was thought to be c. */
void weir__vegas2_go_low_to_learn_why(struct vegas2 *v, const struct verdict *w, double c, const char *reason)
{
    v->alarm = *w;
    v->before = (struct verdict){0};
    v->believed = c;
    v->suspected = v->mu;
    weir__vegas2_forget_failures(v);
    weir__vegas2_go_low(v, reason);
}
