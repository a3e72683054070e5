/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the estimator would go on if it were not for the bounds. */
typedef enum weir_pinned {
    WEIR_NOT_PINNED = 0,
    WEIR_PINNED_AT_FLOOR,  /* the estimate is min_limit */
    WEIR_PINNED_AT_CEILING /* the estimate is max_limit */
} weir_pinned;

/* A snapshot of one instant. At every snapshot
 *     submitted = queued + running + succeeded + ignored + dropped + expired + cancelled,
 * running <= limit unless the limit has just fallen, queued <= queue_depth unless the depth has just fallen.
 * For a limiter "submitted" counts permits granted and "running" is in_flight. */
typedef struct weir_stats {
    size_t size; /* set by the library to what it filled in; a caller may leave it 0 */

    /* gauges */
    uint32_t limit;       /* permits enforced now */
    uint32_t in_flight;   /* permits out, those of direct callers of a pool's limiter included */
    uint32_t running;     /* jobs that hold a permit, those whose worker is waking included */
    uint32_t queued;      /* jobs that wait for a permit */
    uint32_t queue_depth; /* how many may */
    uint32_t waiting;     /* callers blocked in submit or acquire */
    uint32_t workers;     /* threads alive */
    uint32_t idle;        /* of these, asleep */
    uint32_t estimate;    /* what the estimator says; differs from limit in monitor mode */
    uint32_t frozen;      /* freezes not yet thawed */
    uint64_t rtt_noload_ns;
    uint64_t rtt_ns;
    uint64_t reaction_ns;
    double throughput; /* completions per second, measured */
    const char *phase; /* constant string, the estimator's */

    /* counters, since creation */
    uint64_t submitted;
    uint64_t started;
    uint64_t succeeded;
    uint64_t ignored;
    uint64_t dropped;
    uint64_t expired;
    uint64_t cancelled;
    uint64_t shed;      /* refused with EAGAIN; not in submitted */
    uint64_t timed_out; /* refused with ETIMEDOUT; not in submitted */
    uint64_t worker_start_failures;
    uint64_t limit_changes;

    /* demand, of a pool; see weir_stats(3) */
    double arrival_rate;    /* lambda: jobs submitted per second, refused ones included; 0: unknown, or callers block */
    double burstiness;      /* c_a^2 of the arrivals; 1 for a Poisson process */
    const char *depth_term; /* constant string: the term or bound that decides on queue_depth */

    /* for how long, in ns */
    uint64_t oldest_wait_ns;   /* the job or caller that has waited longest, so far; 0: none waits */
    uint64_t longest_run_ns;   /* the job that has run longest, so far; 0: none runs; not for direct callers */
    uint64_t limit_changed_ns; /* since the estimate last changed, or since creation */
    uint64_t pinned_ns;        /* since pinned has its value; 0 while it is WEIR_NOT_PINNED */
    uint32_t pinned;           /* weir_pinned */
    uint32_t reserved;
    const char *reason; /* of the last change, a constant string, the estimator's; "": there was none */
} weir_stats;

/* The part of one partition, jobs and direct calls together, of one instant:
 *     submitted = queued + running + succeeded + ignored + dropped + expired + cancelled. */
typedef struct weir_partition_stats {
    size_t size; /* as in weir_stats */

    /* gauges */
    double share;         /* guaranteed, of the limit and of queue_depth; 0: none */
    uint32_t in_flight;   /* permits in use */
    uint32_t running;     /* jobs and calls that hold them */
    uint32_t queued;      /* jobs that wait for a permit */
    uint32_t queue_depth; /* places in the queue that are guaranteed to it */
    uint32_t waiting;     /* callers blocked in submit or acquire */
    uint32_t reserved;

    /* counters, since creation */
    uint64_t submitted;
    uint64_t succeeded;
    uint64_t ignored;
    uint64_t dropped;
    uint64_t expired;
    uint64_t cancelled;
    uint64_t shed;      /* refused with EAGAIN; not in submitted */
    uint64_t timed_out; /* refused with ETIMEDOUT; not in submitted */
} weir_partition_stats;

/* How long something took, by buckets. The first 64 have a width of 1 ns; from there on each power of two is cut into
 * 64, so that the middle of a bucket is within 0.8 % of every time in it. The last takes whatever is longer, from 18
 * minutes on. It is plain data: copy it, write it to a file, compare two of them. */
enum { WEIR_HISTOGRAM_BUCKETS = 2240 };
typedef struct weir_histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t buckets[WEIR_HISTOGRAM_BUCKETS];
} weir_histogram;

/* What weir_pool_histogram and weir_limiter_histogram can tell about. */
typedef enum weir_histogram_kind {
    WEIR_HISTOGRAM_WAIT,      /* from the call of submit or acquire to the start of the job, or the permit */
    WEIR_HISTOGRAM_RTT,       /* from there to the end */
    WEIR_HISTOGRAM_END_TO_END /* from the call of submit to the end of the job; direct callers are not in it */
} weir_histogram_kind;

/* Adds what from has counted to into: of several pools, processes or hosts. EINVAL: NULL. */
WEIR_API int weir_histogram_merge(weir_histogram *into, const weir_histogram *from);

/* The time that the given fraction of all did not exceed, within 0.8 %; 0: nothing was counted, or histogram is NULL.
 * fraction is cut to 0 ... 1; at 1 it is the greatest of all, exactly. */
WEIR_API uint64_t weir_histogram_quantile_ns(const weir_histogram *histogram, double fraction);

/* The least time that falls into a bucket; of WEIR_HISTOGRAM_BUCKETS and beyond, UINT64_MAX. */
WEIR_API uint64_t weir_histogram_bound_ns(unsigned bucket);

typedef enum weir_stats_format {
    WEIR_PROMETHEUS = 1, /* text exposition format 0.0.4 */
    WEIR_JSON
} weir_stats_format;

/* Writes the figures of every pool and limiter of the process. Each is a snapshot of one instant, in the order of their
 * creation; what another thread destroys meanwhile may be missing. EINVAL: out is NULL or no such format. ENOMEM. EIO:
 * the stream failed. */
WEIR_API int weir_stats_write(FILE *out, weir_stats_format format);

#ifdef __cplusplus
}
#endif
#endif
