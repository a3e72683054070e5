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
#define FIRST_SIZE (offsetof(weir_stats, reason) + sizeof(const char *))

void weir__stats_deliver(weir_stats *stats, const weir_stats *snapshot)
{
    size_t size = stats->size < FIRST_SIZE ? FIRST_SIZE : stats->size;
    if (size > sizeof *snapshot)
        size = sizeof *snapshot;
    memcpy(stats, snapshot, size);
    stats->size = size;
}

/* How long the first of each line has waited; lock held. Where most jobs are not stamped, one without a stamp came
 * after whatever the next one says and before: it is given one, so that a queue that stands still does not go
 * unnoticed. */
static uint64_t oldest_wait_ns(weir_limiter *limiter, uint64_t now_ns)
{
    uint64_t oldest = 0;
    for (uint16_t i = 0; i < limiter->partitions.count; i++) {
        struct weir__unit *first = limiter->partitions.all[i].line.first;
        struct weir__unit *unit = first;
        for (unsigned look = 0; unit != NULL && unit->stamp == 0 && look < WEIR__STAMP_EVERY; look++)
            unit = unit->next;
        if (first != NULL && (unit == NULL || unit->stamp == 0)) {
            unit = first;
            unit->stamp = weir__stamp_make(now_ns, 0);
        }
        uint64_t age = unit != NULL ? weir__stamp_age_ns(unit->stamp, now_ns) : 0;
        oldest = age > oldest ? age : oldest;
    }
    return oldest;
}

/* Lock held. */
static uint64_t longest_run_ns(const weir_pool *pool, uint64_t now_ns)
{
    uint64_t oldest_ns = now_ns;
    for (const struct weir__worker *worker = pool->all; worker != NULL; worker = worker->next) {
        /* relaxed: a figure, which leads to no other memory */
        uint64_t since_ns = atomic_load_explicit(&worker->running_since_ns, memory_order_relaxed);
        if (since_ns != 0 && since_ns < oldest_ns)
            oldest_ns = since_ns;
    }
    return now_ns - oldest_ns;
}

static uint64_t since(uint64_t ns, uint64_t now_ns)
{
    return now_ns > ns ? now_ns - ns : 0;
}

/* What limiter and pool share; lock held. */
static void snapshot_limiter(weir_limiter *limiter, uint64_t now_ns, weir_stats *stats)
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
    stats->limit_changed_ns = since(limiter->changed_ns, now_ns);
    stats->reason = limiter->figures.reason;
    stats->pinned = limiter->pinned;
    stats->pinned_ns = limiter->pinned != WEIR_NOT_PINNED ? since(limiter->pinned_since_ns, now_ns) : 0;
    stats->oldest_wait_ns = oldest_wait_ns(limiter, now_ns);
}

/* A limiter by itself, or that of a pool without its queue; lock held. */
static void snapshot_calls(weir_limiter *limiter, uint64_t now_ns, weir_stats *stats)
{
    const struct weir__counters *counters = &limiter->counters;
    snapshot_limiter(limiter, now_ns, stats);
    if (limiter->backlog.owner == NULL) { /* no queue, and nobody counts arrivals */
        stats->queue_depth = 0;
        stats->burstiness = 0;
        stats->depth_term = "";
    }
    stats->submitted = counters->granted;
    stats->started = counters->granted;
    stats->succeeded = counters->ended[WEIR_SUCCESS];
    stats->ignored = counters->ended[WEIR_IGNORE];
    stats->dropped = counters->ended[WEIR_DROPPED];
    stats->running = (uint32_t)(stats->submitted - stats->succeeded - stats->ignored - stats->dropped);
}

/* Lock held. */
static void snapshot_jobs(weir_limiter *limiter, const weir_pool *pool, uint64_t now_ns, weir_stats *stats)
{
    const struct weir__job_counters *counters = &pool->counters;
    snapshot_limiter(limiter, now_ns, stats);
    stats->longest_run_ns = longest_run_ns(pool, now_ns);
    stats->queued = limiter->partitions.queued;
    stats->running = pool->executing + pool->ready.length;
    stats->waiting += limiter->partitions.submitters;
    /* A pool's very first worker may be asleep before its starter comes to count it, see weir__pool_first_worker. */
    stats->workers = pool->workers > pool->idle_count ? pool->workers : pool->idle_count;
    stats->idle = pool->idle_count;
    stats->submitted = counters->submitted;
    stats->started = counters->started;
    stats->succeeded = counters->ended[WEIR_SUCCESS];
    stats->ignored = counters->ended[WEIR_IGNORE];
    stats->dropped = counters->ended[WEIR_DROPPED];
    stats->expired = counters->expired;
    stats->cancelled = counters->cancelled;
    stats->shed = counters->shed;
    stats->timed_out = counters->timed_out;
    stats->worker_start_failures = counters->start_failures;
}

void weir__stats_snapshot(weir_limiter *limiter, uint64_t now_ns, weir_stats *stats)
{
    if (limiter->backlog.owner != NULL)
        snapshot_jobs(limiter, limiter->backlog.owner, now_ns, stats);
    else
        snapshot_calls(limiter, now_ns, stats);
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
    snapshot_calls(limiter, weir_now_ns(), &snapshot);
    weir__unlock(limiter);
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
    snapshot_jobs(pool->limiter, pool, weir_now_ns(), &snapshot);
    weir__unlock(pool->limiter);
    weir__stats_deliver(stats, &snapshot);
    return 0;
}
