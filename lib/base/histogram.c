/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "base/histogram.h"

#include "base/base.h"

/* Log-linear buckets, after G. Tene's HdrHistogram: the highest bit of a time chooses the row, the next six the bucket
 * in it. */
enum { BITS = 6, PER_ROW = 1 << BITS };

static unsigned highest_bit(uint64_t value)
{
#if defined(__GNUC__)
    return 63u - (unsigned)__builtin_clzll(value);
#else
    unsigned bit = 0;
    while (value >>= 1)
        bit++;
    return bit;
#endif
}

unsigned weir__histogram_bucket(uint64_t ns)
{
    if (ns < PER_ROW)
        return (unsigned)ns;
    unsigned shift = highest_bit(ns) - BITS;
    unsigned bucket = shift * PER_ROW + (unsigned)(ns >> shift);
    return bucket < WEIR_HISTOGRAM_BUCKETS ? bucket : WEIR_HISTOGRAM_BUCKETS - 1;
}

void weir__histogram_add(weir_histogram *histogram, uint64_t ns, uint64_t count)
{
    histogram->count += count;
    histogram->sum_ns += ns * count;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->buckets[weir__histogram_bucket(ns)] += count;
}

void weir__histograms_add_job(struct weir__histograms *histograms, uint64_t stamp, uint64_t start_ns, uint64_t end_ns)
{
    unsigned count = weir__stamp_count(stamp);
    if (count == 0)
        return;
    weir__histogram_add(&histograms->wait, weir__stamp_age_ns(stamp, start_ns), count);
    weir__histogram_add(&histograms->rtt, end_ns - start_ns, count);
    weir__histogram_add(&histograms->end_to_end, weir__stamp_age_ns(stamp, end_ns), count);
}
