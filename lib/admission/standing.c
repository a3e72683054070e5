/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "admission/admission.h"

/* A queue absorbs bursts only if it empties between them. When the shortest wait over one reaction time T_r stays above
 * half an RTT, the queue stands: it adds its length to every job's latency and absorbs nothing (after K. Nichols and
 * V. Jacobson, "Controlling Queue Delay", 2012). First in, first out would then serve each job just before it is too
 * late (or after). Newest first serves most of them early and lets the others expire, until the queue has emptied once.
 *
 * Waits need no clock here: by Little's law a wait above R/2 is a queue above L/2. */

#define LOOK_NS UINT64_C(100000000) /* for a limit without a reaction time */

void weir__standing_watch(struct weir__standing *standing, uint32_t queued)
{
    if (queued < standing->least)
        standing->least = queued;
    if (queued == 0)
        standing->newest_first = false;
}

void weir__standing_look(struct weir__standing *standing, uint64_t now_ns, uint64_t reaction_ns, uint32_t queued,
                         uint32_t limit)
{
    if (now_ns - standing->begin_ns < (reaction_ns != 0 ? reaction_ns : LOOK_NS))
        return;
    if (standing->begin_ns != 0 && standing->least > limit / 2)
        standing->newest_first = true;
    standing->begin_ns = now_ns;
    standing->least = queued;
}

/* Before it there are the queued jobs; L permits complete L/R of them per time. It has to start one RTT before its
 * deadline to end in time. */
bool weir__wait_is_hopeless(uint32_t queued, double rtt_ns, uint32_t limit, uint64_t left_ns)
{
    double wait_ns = ((double)queued + 1) * rtt_ns / limit;
    return wait_ns + rtt_ns > (double)left_ns;
}
