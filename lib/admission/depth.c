/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>

#include "admission/admission.h"

/* While arrivals exceed completions a queue grows. It is worth holding the work that only the limiter's own lag lets
 * in: what comes in excess until the limit has settled. When the downstream halves that is X*T_r jobs, X being the rate
 * that L permits complete, L/R (Little's law). The last of them then waits one reaction time.
 * A queue is never longer than the wait its jobs can afford, ten RTTs or 100 ms, and never shorter than the chance
 * fluctuation of L independent calls, sqrt(L). A limit that never moves has no reaction time: there the affordable wait
 * alone decides. */
enum { AFFORDABLE_RTTS = 10 };
#define AFFORDABLE_NS 1e8

static double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

uint32_t weir__depth(const weir_config *config, const struct weir__depth_terms *terms)
{
    if (config->queue_depth != WEIR_QUEUE_AUTO)
        return config->queue_depth;
    double rate_per_ns = terms->limit / terms->rtt_ns;
    double affordable_ns = terms->rtt_ns * AFFORDABLE_RTTS;
    if (affordable_ns < AFFORDABLE_NS)
        affordable_ns = AFFORDABLE_NS;
    double hold_ns = terms->reaction_ns != 0 ? (double)terms->reaction_ns : affordable_ns;
    double most = floor(rate_per_ns * affordable_ns);
    double least = ceil(sqrt(terms->limit));
    if (least < config->queue_min)
        least = config->queue_min;
    if (most > config->queue_max)
        most = config->queue_max;
    if (most < least) /* a short affordable wait never takes the queue away altogether */
        most = least < config->queue_max ? least : config->queue_max;
    return (uint32_t)clamp(ceil(rate_per_ns * hold_ns), least < most ? least : most, most);
}

uint32_t weir__depth_settle(uint32_t current, uint32_t wanted)
{
    uint32_t apart = wanted > current ? wanted - current : current - wanted;
    return apart > current / 4 ? wanted : current;
}
