/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "pool/pool.h"
#include "stats/stats.h"

/* The structure of the first release: a caller that says less, or nothing, has at least this. */
#define FIRST_SIZE (offsetof(weir_stats, depth_term) + sizeof(const char *))

void weir__stats_deliver(weir_stats *stats, const weir_stats *snapshot)
{
    size_t size = stats->size < FIRST_SIZE ? FIRST_SIZE : stats->size;
    if (size > sizeof *snapshot)
        size = sizeof *snapshot;
    memcpy(stats, snapshot, size);
    stats->size = size;
}

/* What limiter and pool share; lock held. */
static void snapshot_limiter(const weir_limiter *limiter, weir_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->limit = weir__limiter_ceiling(limiter);
    stats->in_flight = limiter->in_flight + limiter->backlog.reserved;
    stats->queue_depth = limiter->depth;
    stats->waiting = limiter->partitions.callers;
    stats->estimate = limiter->estimate;
    stats->frozen = limiter->frozen;
    stats->rtt_noload_ns = limiter->figures.rtt_noload_ns;
    stats->rtt_ns = limiter->figures.rtt_ns;
    stats->reaction_ns = limiter->reaction_ns;
    stats->throughput = limiter->throughput;
    stats->phase = limiter->figures.phase;
    stats->arrival_rate = limiter->demand.rate * 1e9;
    stats->burstiness = limiter->demand.dispersion;
    stats->depth_term = limiter->depth_term;
    stats->shed = limiter->counters.shed;
    stats->timed_out = limiter->counters.timed_out;
    stats->limit_changes = limiter->counters.limit_changes;
}

int weir_limiter_stats(weir_limiter *limiter, weir_stats *stats)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    if (stats == NULL)
        return EINVAL;
    weir_stats snapshot;
    weir__lock(limiter);
    (void)weir__samples_process(limiter);
    snapshot_limiter(limiter, &snapshot);
    const struct weir__counters *counters = &limiter->counters;
    if (limiter->backlog.owner == NULL) { /* no queue, and nobody counts arrivals */
        snapshot.queue_depth = 0;
        snapshot.burstiness = 0;
        snapshot.depth_term = "";
    }
    snapshot.submitted = counters->granted;
    snapshot.started = counters->granted;
    snapshot.succeeded = counters->ended[WEIR_SUCCESS];
    snapshot.ignored = counters->ended[WEIR_IGNORE];
    snapshot.dropped = counters->ended[WEIR_DROPPED];
    weir__unlock(limiter);
    snapshot.running = (uint32_t)(snapshot.submitted - snapshot.succeeded - snapshot.ignored - snapshot.dropped);
    weir__stats_deliver(stats, &snapshot);
    return 0;
}

int weir_pool_stats(weir_pool *pool, weir_stats *stats)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (stats == NULL)
        return EINVAL;
    weir_stats snapshot;
    weir__lock(pool->limiter);
    (void)weir__samples_process(pool->limiter);
    snapshot_limiter(pool->limiter, &snapshot);
    const struct weir__job_counters *counters = &pool->counters;
    snapshot.queued = pool->limiter->partitions.queued;
    snapshot.running = pool->executing + pool->ready.length;
    snapshot.waiting += pool->limiter->partitions.submitters;
    snapshot.workers = pool->workers;
    snapshot.idle = pool->idle_count;
    snapshot.submitted = counters->submitted;
    snapshot.started = counters->started;
    snapshot.succeeded = counters->ended[WEIR_SUCCESS];
    snapshot.ignored = counters->ended[WEIR_IGNORE];
    snapshot.dropped = counters->ended[WEIR_DROPPED];
    snapshot.expired = counters->expired;
    snapshot.cancelled = counters->cancelled;
    snapshot.shed = counters->shed;
    snapshot.timed_out = counters->timed_out;
    snapshot.worker_start_failures = counters->start_failures;
    weir__unlock(pool->limiter);
    weir__stats_deliver(stats, &snapshot);
    return 0;
}
