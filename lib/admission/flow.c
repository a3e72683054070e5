/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>

#include "admission/admission.h"

enum { PERIOD_RTTS = 4, FIRST_PERIOD = 1000 }; /* the first one may be cut short: so many calls tell enough */

static bool is_over(const struct weir__flow *flow, uint64_t end_ns)
{
    uint64_t age_ns = PERIOD_RTTS * (flow->rtt_sum_ns / flow->count);
    return end_ns >= flow->period_start_ns + (age_ns > WEIR__PERIOD_LEAST_NS ? age_ns : WEIR__PERIOD_LEAST_NS);
}

bool weir__flow_close(struct weir__flow *flow, uint64_t end_ns)
{
    bool is_first = flow->throughput <= 0;
    bool is_cut_short = is_first && flow->count >= FIRST_PERIOD && end_ns > flow->period_start_ns;
    if (!is_cut_short && !is_over(flow, end_ns))
        return false;
    flow->rtt_ns = (double)flow->rtt_sum_ns / (double)flow->count;
    flow->rtt_deviation_ns = sqrt(fmax(0, flow->rtt_squares / (double)flow->count - flow->rtt_ns * flow->rtt_ns));
    if (flow->rtt_ns < 1.0)
        flow->rtt_ns = 1.0;
    flow->throughput = (double)flow->count * 1e9 / (double)(end_ns - flow->period_start_ns);
    flow->period_start_ns = end_ns;
    flow->count = 0;
    flow->rtt_sum_ns = 0;
    flow->rtt_squares = 0;
    return true;
}

double weir__flow_slow_rtt_ns(const struct weir__flow *flow)
{
    return flow->rtt_ns + 3 * flow->rtt_deviation_ns;
}
