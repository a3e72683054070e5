/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <math.h>

#define LEAST 1e-6  /* seconds */
#define WIDTH 0.005 /* of a bucket, relative */

void sim_histogram_add(struct sim_histogram *histogram, double seconds)
{
    double bucket = log(fmax(seconds, LEAST) / LEAST) / WIDTH;
    histogram->count[bucket < SIM_BUCKETS - 1 ? (size_t)bucket : SIM_BUCKETS - 1]++;
    histogram->total++;
}

void sim_histogram_merge(struct sim_histogram *into, const struct sim_histogram *from)
{
    for (size_t i = 0; i < SIM_BUCKETS; i++)
        into->count[i] += from->count[i];
    into->total += from->total;
}

double sim_histogram_quantile(const struct sim_histogram *histogram, double share)
{
    double wanted = share * (double)histogram->total;
    double seen = 0;
    for (size_t i = 0; i < SIM_BUCKETS; i++) {
        double here = histogram->count[i];
        if (here > 0 && seen + here >= wanted)
            return LEAST * exp(((double)i + (wanted - seen) / here) * WIDTH);
        seen += here;
    }
    return 0;
}
