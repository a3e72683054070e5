/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "pool/pool.h"

/* A pool's limit is a number of threads. */
enum { GREATEST_MAX_LIMIT = 65536 };

#define READMISSION_NS UINT64_C(1000000) /* a hundred of the longest jobs that count as short: note:readmission */

/* In a fork child: large copied arguments of jobs that the parent runs. Callers and submitters lie on stacks that the
 * child may have used again, so no link is followed into one: jobs stand before submitters; where direct callers stand
 * among them, the copies are left to the end of the process. */
static void discard_jobs(const struct weir__unit *unit, uint32_t count)
{
    for (; unit != NULL && count > 0; count--, unit = unit->next) {
        if (unit->kind != WEIR__HANDLE)
            weir__unit_discard(unit);
    }
}

static void discard_lines(const weir_pool *pool)
{
    discard_jobs(pool->ready.first, pool->ready.length);
    discard_jobs(pool->inbox.jobs.first, UINT32_MAX);
    uint16_t count = pool->limiter != NULL ? pool->limiter->partitions.count : 0;
    for (uint16_t i = 0; i < count; i++) {
        const struct weir__partition *partition = &pool->limiter->partitions.all[i];
        if (partition->callers == 0)
            discard_jobs(partition->line.first, partition->queued);
    }
}

/* Frees what a pool without threads, or of another process, consists of. */
static void free_pool(weir_pool *pool)
{
    discard_lines(pool);
    for (const struct weir__worker *worker = pool->all; worker != NULL; worker = worker->next)
        weir__batch_discard(worker);
    weir__blocks_free(pool->blocks);
    while (pool->all != NULL) { /* in a fork child: workers that exist in the parent only */
        struct weir__worker *worker = pool->all;
        pool->all = worker->next;
        free(worker);
    }
    if (pool->limiter != NULL)
        weir__limiter_free(pool->limiter);
    free(pool);
}

int weir_pool_create(weir_pool **pool, const char *name, const weir_config *config)
{
    if (pool == NULL)
        return EINVAL;
    weir_pool *created = weir__allocate(sizeof *created);
    if (created == NULL)
        return ENOMEM;
    struct weir__backlog backlog = {.owner = created,
                                    .greatest_limit = GREATEST_MAX_LIMIT,
                                    .grant = weir__pool_grant,
                                    .settle = weir__pool_settle,
                                    .enter = weir__pool_enter,
                                    .exit = weir__pool_exit,
                                    .after = weir__pool_after,
                                    .demand = weir__pool_demand};
    weir__inbox_init(&created->inbox);
    created->readmission_ns = READMISSION_NS;
    int error = weir__limiter_create(&created->limiter, name, config, "pool", &backlog);
    if (error == 0)
        error = weir__nodes_reserve(created);
    if (error != 0) {
        free_pool(created);
        return error;
    }
    weir__pace_init(&created->pace);
    weir__parker_init(&created->keeper.parker);
    weir__wheel_init(&created->deadlines, weir_now_ns(), weir__job_due_ns);
    WEIR__MUST(pthread_mutex_init(&created->start_lock, NULL));
    *pool = created;
    return 0;
}

int weir_pool_configure(weir_pool *pool, const char *option, const char *value)
{
    return pool == NULL ? EINVAL : weir_limiter_configure(pool->limiter, option, value);
}

weir_limiter *weir_pool_limiter(weir_pool *pool)
{
    return pool == NULL ? NULL : pool->limiter;
}

/* Lock held. */
static bool has_direct_callers(const weir_pool *pool)
{
    return pool->limiter->holders != 0 || pool->limiter->partitions.callers != 0;
}

int weir_pool_destroy(weir_pool *pool)
{
    int error = weir__pool_usable(pool);
    if (error == ECHILD) {
        free_pool(pool);
        return 0;
    }
    if (error == 0)
        error = weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER);
    if (error != 0)
        return error;
    weir__lock(pool->limiter);
    (void)weir__pool_watch(pool, true, WEIR_FOREVER);
    bool busy = has_direct_callers(pool);
    bool has_corpse = pool->corpse_is_set;
    pool->corpse_is_set = false;
    weir__unlock(pool->limiter);
    int cancel = weir__cancel_forbid();
    if (has_corpse)
        WEIR__MUST(pthread_join(pool->corpse, NULL));
    weir__cancel_restore(cancel);
    if (busy)
        return EBUSY;
    WEIR__MUST(pthread_mutex_destroy(&pool->start_lock));
    WEIR__MUST(pthread_mutex_destroy(&pool->inbox.lock));
    weir__parker_destroy(&pool->keeper.parker);
    free_pool(pool);
    return 0;
}
