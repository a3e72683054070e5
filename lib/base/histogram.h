/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_HISTOGRAM_H
#define WEIR_HISTOGRAM_H

/* Counting durations by buckets, and stamps that tell what is to be counted. It owns no lock. */

#include <stdint.h>

#include <weir/stats.h>

/* ---- buckets ----
 *
 * Log-linear ones, after G. Tene's HdrHistogram: the highest bit of a time chooses the row, the next six the bucket in
 * it. */

enum { WEIR__HISTOGRAM_BITS = 6, WEIR__HISTOGRAM_ROW = 1 << WEIR__HISTOGRAM_BITS };

/* Of a value above 0. */
static inline unsigned weir__highest_bit(uint64_t value)
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

static inline unsigned weir__histogram_bucket(uint64_t ns)
{
    if (ns < WEIR__HISTOGRAM_ROW)
        return (unsigned)ns;
    unsigned shift = weir__highest_bit(ns) - WEIR__HISTOGRAM_BITS;
    unsigned bucket = shift * WEIR__HISTOGRAM_ROW + (unsigned)(ns >> shift);
    return bucket < WEIR_HISTOGRAM_BUCKETS ? bucket : WEIR_HISTOGRAM_BUCKETS - 1;
}

/* count durations of ns. */
static inline void weir__histogram_add(weir_histogram *histogram, uint64_t ns, uint64_t count)
{
    histogram->count += count;
    histogram->sum_ns += ns * count;
    if (ns > histogram->max_ns)
        histogram->max_ns = ns;
    histogram->buckets[weir__histogram_bucket(ns)] += count;
}

struct weir__histograms {
    weir_histogram wait;
    weir_histogram rtt;
    weir_histogram end_to_end;
};

/* ---- stamps ----
 *
 * note:stamps -- to tell how long a job waited takes one more look at the clock, at its submit, and three entries at
 * its end. That is nothing next to a job that blocks, but a tenth of what a job costs that does next to nothing. So
 * while jobs are short, one in 16 is stamped, and stands for all 16.
 *
 * A stamp is a monotonic time, rounded to 32 ns, with the number of jobs that it stands for in its lowest bits: 1, 16,
 * or 0 for one that a snapshot has put on a job without any, so that the next snapshot can tell how long that has
 * waited. No stamp is 0. */

enum { WEIR__STAMP_EVERY = 16, WEIR__STAMP_COUNT = 31 };

static inline uint64_t weir__stamp_make(uint64_t ns, unsigned count)
{
    return (ns & ~(uint64_t)WEIR__STAMP_COUNT) | count;
}

static inline unsigned weir__stamp_count(uint64_t stamp)
{
    return (unsigned)(stamp & WEIR__STAMP_COUNT);
}

/* How long ago it was at the given time. */
static inline uint64_t weir__stamp_age_ns(uint64_t stamp, uint64_t now_ns)
{
    uint64_t ns = stamp & ~(uint64_t)WEIR__STAMP_COUNT;
    return now_ns > ns ? now_ns - ns : 0;
}

/* ---- histogram.c ---- */

/* A stamped job has run from start_ns to end_ns. */
void weir__histograms_add_job(struct weir__histograms *histograms, uint64_t stamp, uint64_t start_ns, uint64_t end_ns);

#endif
