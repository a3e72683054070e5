/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <math.h>

#include "pool/pool.h"
#include "stats/stats.h"

enum { EXACT = 64 }; /* buckets with a width of 1 ns, and buckets for each power of two that follows */

uint64_t weir_histogram_bound_ns(unsigned bucket)
{
    if (bucket >= WEIR_HISTOGRAM_BUCKETS)
        return UINT64_MAX;
    if (bucket < EXACT)
        return bucket;
    return (uint64_t)(EXACT + bucket % EXACT) << (bucket / EXACT - 1);
}

int weir_histogram_merge(weir_histogram *into, const weir_histogram *from)
{
    if (into == NULL || from == NULL)
        return EINVAL;
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    if (from->max_ns > into->max_ns)
        into->max_ns = from->max_ns;
    for (unsigned i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
    return 0;
}

static uint64_t middle_ns(const weir_histogram *histogram, unsigned bucket)
{
    if (bucket + 1 == WEIR_HISTOGRAM_BUCKETS)
        return histogram->max_ns;
    uint64_t low = weir_histogram_bound_ns(bucket);
    uint64_t middle = low + (weir_histogram_bound_ns(bucket + 1) - 1 - low) / 2;
    return middle < histogram->max_ns ? middle : histogram->max_ns;
}

uint64_t weir_histogram_quantile_ns(const weir_histogram *histogram, double fraction)
{
    if (histogram == NULL || histogram->count == 0)
        return 0;
    if (fraction >= 1.0)
        return histogram->max_ns;
    double rank = fraction > 0 ? ceil(fraction * (double)histogram->count) : 1.0;
    uint64_t seen = 0;
    for (unsigned i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > 0 && (double)seen >= rank)
            return middle_ns(histogram, i);
    }
    return histogram->max_ns;
}

static int copy(weir_limiter *limiter, const struct weir__histograms *all, weir_histogram_kind kind,
                weir_histogram *histogram)
{
    if (histogram == NULL || (unsigned)kind > WEIR_HISTOGRAM_END_TO_END)
        return EINVAL;
    weir__lock(limiter);
    *histogram = kind == WEIR_HISTOGRAM_WAIT ? all->wait : kind == WEIR_HISTOGRAM_RTT ? all->rtt : all->end_to_end;
    weir__unlock(limiter);
    return 0;
}

int weir_limiter_histogram(weir_limiter *limiter, weir_histogram_kind kind, weir_histogram *histogram)
{
    int error = weir__limiter_usable(limiter);
    return error != 0 ? error : copy(limiter, limiter->histograms, kind, histogram);
}

int weir_limiter_partition_histogram(weir_limiter *limiter, const char *partition, weir_histogram_kind kind,
                                     weir_histogram *histogram)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    int index = weir__partition_find(&limiter->partitions, partition);
    if (index < 0)
        return EINVAL;
    const struct weir__histograms *own = limiter->partitions.all[index].histograms;
    return copy(limiter, own != NULL ? own : limiter->histograms, kind, histogram);
}

int weir_pool_partition_histogram(weir_pool *pool, const char *partition, weir_histogram_kind kind,
                                  weir_histogram *histogram)
{
    return pool == NULL ? EINVAL : weir_limiter_partition_histogram(pool->limiter, partition, kind, histogram);
}

int weir_pool_histogram(weir_pool *pool, weir_histogram_kind kind, weir_histogram *histogram)
{
    return pool == NULL ? EINVAL : weir_limiter_histogram(pool->limiter, kind, histogram);
}
