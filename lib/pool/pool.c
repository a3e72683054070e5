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

int weir__pool_usable(const weir_pool *pool)
{
    return pool == NULL ? EINVAL : weir__limiter_usable(pool->limiter);
}

/* Frees what a pool without threads, or of another process, consists of. */
static void free_pool(weir_pool *pool)
{
    weir__chunks_free(pool->queue.first);
    weir__chunks_free(pool->queue.spare);
    while (pool->all != NULL) { /* in a fork child: workers that exist in the parent only */
        struct weir__worker *worker = pool->all;
        pool->all = worker->next;
        free(worker);
    }
    if (pool->limiter != NULL)
        weir__limiter_free(pool->limiter);
    free(pool);
}

static int refuse_max_limit(const weir_limiter *limiter)
{
    if (limiter->config.max_limit <= GREATEST_MAX_LIMIT)
        return 0;
    weir__log(limiter->config.log, WEIR_LOG_ERROR,
              "pool \"%s\": MAX_LIMIT=%u is not accepted: 1 to %d, for each permit of a pool is a thread",
              limiter->name, limiter->config.max_limit, GREATEST_MAX_LIMIT);
    return EINVAL;
}

int weir_pool_create(weir_pool **pool, const char *name, const weir_config *config)
{
    if (pool == NULL)
        return EINVAL;
    weir_pool *created = weir__allocate(sizeof *created);
    struct weir__chunk *chunk = weir__chunk_create();
    if (created == NULL || chunk == NULL) {
        free(created);
        weir__chunks_free(chunk);
        return ENOMEM;
    }
    weir__queue_grow(&created->queue, chunk);
    struct weir__backlog backlog = {
        .owner = created, .settle = weir__pool_settle, .start_worker = weir__pool_start_worker};
    int error = weir__limiter_create(&created->limiter, name, config, "pool", &backlog);
    if (error == 0)
        error = refuse_max_limit(created->limiter);
    if (error != 0) {
        free_pool(created);
        return error;
    }
    WEIR__MUST(pthread_mutex_init(&created->start_lock, NULL));
    *pool = created;
    return 0;
}

weir_limiter *weir_pool_limiter(weir_pool *pool)
{
    return pool == NULL ? NULL : pool->limiter;
}

/* Lock held. */
static bool has_direct_callers(const weir_pool *pool)
{
    return pool->limiter->holders != 0 || pool->limiter->line.length != 0;
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
    if (has_corpse)
        WEIR__MUST(pthread_join(pool->corpse, NULL));
    if (busy)
        return EBUSY;
    WEIR__MUST(pthread_mutex_destroy(&pool->start_lock));
    free_pool(pool);
    return 0;
}
