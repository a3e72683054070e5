/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif
#endif
