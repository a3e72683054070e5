/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>

#include "admission/admission.h"

#define PERIOD_LEAST_NS UINT64_C(100000000)
enum { PERIOD_RTTS = 4, FIRST_PERIOD = 1000 }; /* the first one may be cut short: so many calls tell enough */

static bool is_over(const struct weir__flow *flow, uint64_t end_ns)
{
    if (end_ns < flow->period_start_ns + PERIOD_LEAST_NS) /* most samples are spared the division */
        return false;
    return end_ns >= flow->period_start_ns + PERIOD_RTTS * (flow->rtt_sum_ns / flow->count);
}

bool weir__flow_measure(struct weir__flow *flow, const weir_sample *sample)
{
    if (sample->outcome != WEIR_SUCCESS)
        return false; /* failures tell neither how fast nor how much the downstream works */
    uint64_t end = sample->start_ns + sample->rtt_ns;
    if (flow->period_start_ns == 0)
        flow->period_start_ns = sample->start_ns;
    flow->count++;
    flow->rtt_sum_ns += sample->rtt_ns;
    flow->rtt_squares += (double)sample->rtt_ns * (double)sample->rtt_ns;
    bool is_first = flow->throughput <= 0;
    bool is_cut_short = is_first && flow->count >= FIRST_PERIOD && end > flow->period_start_ns;
    if (!is_cut_short && !is_over(flow, end))
        return false;
    flow->rtt_ns = (double)flow->rtt_sum_ns / (double)flow->count;
    flow->rtt_deviation_ns = sqrt(fmax(0, flow->rtt_squares / (double)flow->count - flow->rtt_ns * flow->rtt_ns));
    if (flow->rtt_ns < 1.0)
        flow->rtt_ns = 1.0;
    flow->throughput = (double)flow->count * 1e9 / (double)(end - flow->period_start_ns);
    flow->period_start_ns = end;
    flow->count = 0;
    flow->rtt_sum_ns = 0;
    flow->rtt_squares = 0;
    return true;
}

double weir__flow_slow_rtt_ns(const struct weir__flow *flow)
{
    return flow->rtt_ns + 3 * flow->rtt_deviation_ns;
}
