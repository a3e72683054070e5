/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

static size_t bucket_of(uint64_t us)
{
    if (us < HISTOGRAM_SUB)
        return (size_t)us;
    unsigned shift = 0;
    while ((us >> shift) >= 2 * HISTOGRAM_SUB)
        shift++;
    size_t bucket = (shift + 1) * HISTOGRAM_SUB + (size_t)((us >> shift) - HISTOGRAM_SUB);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

static double middle_of(size_t bucket)
{
    if (bucket < HISTOGRAM_SUB)
        return (double)bucket + 0.5;
    unsigned shift = (unsigned)(bucket / HISTOGRAM_SUB - 1);
    double low = (double)((uint64_t)(bucket % HISTOGRAM_SUB + HISTOGRAM_SUB) << shift);
    return low + (double)(1ull << shift) / 2;
}

void histogram_add(struct histogram *histogram, uint64_t us)
{
    histogram->count++;
    histogram->bucket[bucket_of(us)]++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    into->count += from->count;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
}

double histogram_quantile_ms(const struct histogram *histogram, double quantile)
{
    if (histogram->count == 0)
        return 0;
    double rank = quantile * (double)histogram->count;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->bucket[i];
        if (seen > 0 && (double)seen >= rank)
            return middle_of(i) / 1000;
    }
    return middle_of(HISTOGRAM_BUCKETS - 1) / 1000;
}
