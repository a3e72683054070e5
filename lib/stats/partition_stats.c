/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "pool/pool.h"

/* The structure of the first release: a caller that says less, or nothing, has at least this. */
#define FIRST_SIZE (offsetof(weir_partition_stats, timed_out) + sizeof(uint64_t))

static void fill(const weir_limiter *limiter, const struct weir__partition *partition, weir_partition_stats *stats)
{
    memset(stats, 0, sizeof *stats);
    stats->share = partition->share;
    stats->in_flight = partition->in_use;
    stats->queued = partition->queued;
    stats->queue_depth = limiter->backlog.owner != NULL ? weir__partition_places(partition, limiter->depth) : 0;
    stats->waiting = partition->callers + partition->submitters;
    stats->submitted = partition->submitted;
    stats->succeeded = partition->ended[WEIR_SUCCESS];
    stats->ignored = partition->ended[WEIR_IGNORE];
    stats->dropped = partition->ended[WEIR_DROPPED];
    stats->expired = partition->expired;
    stats->cancelled = partition->cancelled;
    stats->shed = partition->shed;
    stats->timed_out = partition->timed_out;
    uint64_t over = stats->succeeded + stats->ignored + stats->dropped + stats->expired + stats->cancelled;
    stats->running = (uint32_t)(stats->submitted - over - stats->queued);
}

int weir_limiter_partition_stats(weir_limiter *limiter, const char *partition, weir_partition_stats *stats)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    int index = weir__partition_find(&limiter->partitions, partition);
    if (stats == NULL || index < 0)
        return EINVAL;
    weir_partition_stats snapshot;
    weir__lock(limiter);
    (void)weir__samples_process(limiter);
    fill(limiter, &limiter->partitions.all[index], &snapshot);
    weir__unlock(limiter);
    size_t size = stats->size < FIRST_SIZE ? FIRST_SIZE : stats->size;
    if (size > sizeof snapshot)
        size = sizeof snapshot;
    memcpy(stats, &snapshot, size);
    stats->size = size;
    return 0;
}

int weir_pool_partition_stats(weir_pool *pool, const char *partition, weir_partition_stats *stats)
{
    return pool != NULL ? weir_limiter_partition_stats(pool->limiter, partition, stats) : EINVAL;
}
