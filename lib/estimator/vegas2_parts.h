/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_VEGAS2_PARTS_H
#define WEIR_VEGAS2_PARTS_H

/* What the files of vegas2 share. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/estimator.h>

#include "estimator/vegas2_state.h"

static inline double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* One instruction each, where fmax and fmin are calls of a function that minds NaN. */
static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* R at the knee. Where calls hinder each other it is above the RTT of a drained downstream without any queue; and where
 * that is shorter than what passes until a thread runs, a queue as short as that costs nothing, but saves the
 * downstream from idling meanwhile. */
static inline double knee_rtt(const struct vegas2 *v)
{
    double negligible = v->ceiling > 0 ? smaller(v->ceiling, NEGLIGIBLE_NS) : NEGLIGIBLE_NS;
    return larger(v->r0.value * v->bend, negligible);
}

/* c, in permits. */
static inline double capacity(const struct vegas2 *v)
{
    return v->mu.value * knee_rtt(v);
}

/* Calls of one moment share its weather: a checkpoint, a neighbour, a garbage collection make all of them slower. How
 * much R wanders beyond what the calls of a window explain is error as well, for what is sought is its mean. A few
 * jumps are no gusts but a change, there and back. In a crowd it is the others that move R, and whoever took no notice
 * of that would keep more than a fair share; while it gathers, nobody knows yet that it is one. */
static inline double wander(const struct vegas2 *v)
{
    if (v->influence <= 0 || v->drains < GUST_SINCE)
        return 0;
    double one = FARTHEST * FARTHEST / GUST_WINDOWS;
    return v->jumps > FEW_JUMPS * one ? GUSTS * sqrt((v->jumps - one) / 2) : 0;
}

/* How many times as long as for a quiet downstream the baseline has to be looked at. */
static inline double patience(const struct vegas2 *v)
{
    return clamp(6 * v->cv2, 1, 50);
}

/* Whether the noise of R hides whose queue it is. Then the client takes itself for one of many: it believes what is
 * seen in drains that all share (dips, in the following), and in no others. */
static inline bool murky(const struct vegas2 *v)
{
    return v->murk > MURKY && v->influence <= 0 && v->verified_r0 && v->drain_interval != 0;
}

/* How many times as long as elsewhere a dip takes. A power of two, for it has to be the same for all clients. */
static inline double blur(const struct vegas2 *v)
{
    double times = 1;
    while (times < v->murk && times < MURKIEST)
        times *= 2;
    return times;
}

/* Whether dips are so far apart that a client which has not seen any yet has to believe its own drains. */
static inline bool impatient(const struct vegas2 *v)
{
    return !v->anchored && v->murk > MURKY && blur(v) > FEW_DIPS;
}

/* Whether its own drains, even if they are clean, tell such a client more than it knows. */
static inline bool vague(const struct vegas2 *v)
{
    return impatient(v) && v->r0.variance > NOISY * NOISY;
}

/* Whether the client has been half idle, and has seen the baseline often meanwhile. */
static inline bool knows_from_idling(const struct vegas2 *v)
{
    return v->seen_idle && v->r0.variance < NOISY * NOISY;
}

/* The grid of drains lies on the wall clock, which the hosts of a fleet share. */
static inline uint64_t wall_ns(const struct vegas2 *v)
{
    return v->now_ns + (uint64_t)v->wall_offset;
}

static inline void restart_window(struct vegas2 *v, uint64_t begin_ns)
{
    v->window = (struct window){.begin_ns = begin_ns};
}

/* ---- vegas2_limit.c ---- */

/* How many standard errors the observation is off. */
double weir__vegas2_surprise(const struct estimate *estimate, double observed, double se);

/* Takes an observation of that relative standard error in; drift: the variance that time has added since the last. */
void weir__vegas2_learn(struct estimate *estimate, double observed, double se, double drift);

/* The baseline as a drained downstream shows it; or one that has nothing to do with the present one. */
void weir__vegas2_believe_baseline(struct vegas2 *v, double observed, double se);
void weir__vegas2_new_baseline(struct vegas2 *v, double observed, double se);

/* Permits that the high phase stands above c. */
double weir__vegas2_margin(const struct vegas2 *v);

/* Load by what the limit would be if permits could be divided. Where others share the queue, R does not depend on the
 * own limit, and the shares become equal only by what the fractions say. */
double weir__vegas2_exact(const struct vegas2 *v);

/* R that the present limit leads to, as far as is known. */
double weir__vegas2_expected_rtt(const struct vegas2 *v);

/* Every move of the limit goes through here. */
void weir__vegas2_set_limit(struct vegas2 *v, double target, const char *reason);

/* Something has happened that makes earlier failures to grow meaningless. */
void weir__vegas2_forget_failures(struct vegas2 *v);

/* Into a phase, and the limit to where it belongs there. The last: because R has risen, as the window says, at a limit
 * that was thought to be c. */
void weir__vegas2_go_high(struct vegas2 *v, const char *reason);
void weir__vegas2_go_low(struct vegas2 *v, const char *reason);
void weir__vegas2_go_low_to_learn_why(struct vegas2 *v, const struct verdict *w, double c, const char *reason);

/* ---- vegas2_drains.c ---- */

/* Sets when the next low phases are due. */
void weir__vegas2_schedule_drain(struct vegas2 *v);

/* How long clients that drain together do so, from the boundary on; 0: this one does not wait for others. */
double weir__vegas2_together(const struct vegas2 *v);

/* How long a dip takes, once R is that. */
double weir__vegas2_dip(const struct vegas2 *v, double rtt);

/* Begins a low phase that others share, or one that they do not. */
void weir__vegas2_drain(struct vegas2 *v);
void weir__vegas2_drain_alone(struct vegas2 *v);

/* What a low window says about whose the queue of the high phase is: one that no other client shares, or one after an
 * alarm that has shown R to fall with the limit. */
void weir__vegas2_learn_influence(struct vegas2 *v, const struct verdict *w);
void weir__vegas2_seen_to_help(struct vegas2 *v);

/* ---- vegas2_trial.c ---- */

/* A trial begins when due, takes the windows of the high phase until it is decided, and moves the limit. */
bool weir__vegas2_trial_due(const struct vegas2 *v);
void weir__vegas2_begin_trial(struct vegas2 *v);
void weir__vegas2_after_trial_window(struct vegas2 *v, const struct verdict *w);

/* ---- vegas2_loss.c ---- */

/* Takes the outcome of a call in, and cuts the limit if too many are dropped. */
void weir__vegas2_take_outcome(struct vegas2 *v, const weir_sample *sample);

/* The same, but as long as all goes well the calls are taken in together, before somebody looks at the tallies or what
 * they are of changes. */
static inline void weir__vegas2_count_outcome(struct vegas2 *v, const weir_sample *sample)
{
    struct losses *l = &v->losses;
    if (sample->start_ns < v->cut_ns) {
        l->served += sample->outcome == WEIR_SUCCESS;
    } else if (sample->outcome == WEIR_SUCCESS && l->put_off < l->put_off_most) {
        l->put_off++;
        l->put_off_moved += sample->start_ns >= v->moved_ns;
    } else {
        weir__vegas2_take_outcome(v, sample);
    }
}

/* Takes those in that were put off. */
void weir__vegas2_take_put_off(struct vegas2 *v);

/* A window that fills the limit has closed: if nothing was dropped the downstream takes that many calls. */
void weir__vegas2_window_without_loss(struct vegas2 *v);

/* The limit has moved: what was counted belongs to the previous one. */
void weir__vegas2_limit_moved(struct vegas2 *v);

/* The highest limit that may be taken at this moment: beyond it calls have been dropped, or it is the configured one.
 */
double weir__vegas2_most(const struct vegas2 *v);

/* Whether dropped calls keep the limit from growing. */
bool weir__vegas2_held(const struct vegas2 *v);

/* ---- vegas2_phases.c ---- */

/* Take a closed window in, and decide on the phase and the limit. */
void weir__vegas2_after_growth_window(struct vegas2 *v, const struct verdict *w);
void weir__vegas2_after_high_window(struct vegas2 *v, const struct verdict *w);
void weir__vegas2_after_low_window(struct vegas2 *v, const struct verdict *w);

#endif
