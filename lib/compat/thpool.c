/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

/* thpool's interface, by the public interface of libweir alone. */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir.h>
#include <weir/thpool.h>

/* As deep as a queue can be: it grows as it fills, so this costs nothing, and memory is short before it is full. */
#define UNBOUNDED    (UINT32_C(1) << 24)
/* Threads stay, as thpool's do: the longest IDLE_TIMEOUT there is, a year. */
#define NEVER_LEAVE  (UINT64_C(365) * 24 * 3600 * 1000000000)
#define DEFAULT_NAME "thpool"

struct thpool_ {
    weir_pool *pool;     /* immutable */
    bool has_bound;      /* immutable: somebody has asked for a queue that ends, so adding waits at its end */
    bool has_no_threads; /* immutable: thpool_init(0), which stays paused */
};

struct work {
    void (*function)(void *arg);
    void *arg;
};

/* A thpool job has no outcome: all that it tells is how long it took. */
static weir_outcome run(void *arg)
{
    const struct work *work = arg;
    work->function(work->arg);
    return WEIR_SUCCESS;
}

/* To a caller whom no return value reaches. */
static void complain(const char *function, int error)
{
    (void)fprintf(stderr, "weir: %s: %s; the call has no effect\n", function, weir_strerror(error));
}

int weir_thpool_config(weir_config *config, int num_threads)
{
    int error = weir_config_init(config);
    if (error != 0)
        return error;
    config->algorithm = WEIR_FIXED;
    config->initial_limit = num_threads > 0 ? (uint32_t)num_threads : 1;
    config->max_limit = config->initial_limit;
    config->queue_depth = UNBOUNDED;
    config->idle_timeout = NEVER_LEAVE;
    return 0;
}

/* Read from the pool, for the environment has its say, too. */
static bool has_bound(weir_pool *pool)
{
    weir_stats stats = {.size = sizeof stats};
    return weir_pool_stats(pool, &stats) == 0 && stats.queue_depth != UNBOUNDED;
}

int weir_thpool_create(threadpool *pool, const char *name, const weir_config *config)
{
    if (pool == NULL)
        return EINVAL;
    struct thpool_ *created = calloc(1, sizeof *created);
    if (created == NULL)
        return ENOMEM;
    int error = weir_pool_create(&created->pool, name, config);
    if (error != 0) {
        free(created);
        return error;
    }
    created->has_bound = has_bound(created->pool);
    *pool = created;
    return 0;
}

threadpool thpool_init(int num_threads)
{
    threadpool pool = NULL;
    weir_config config;
    int error = weir_thpool_config(&config, num_threads);
    if (error == 0)
        error = weir_thpool_create(&pool, DEFAULT_NAME, &config);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    pool->has_no_threads = num_threads < 1;
    if (pool->has_no_threads)
        (void)weir_pool_pause(pool->pool); /* a new pool of this process: it cannot fail */
    return pool;
}

int thpool_add_work(threadpool pool, void (*function_p)(void *), void *arg_p)
{
    int error = EINVAL;
    if (pool != NULL && function_p != NULL) {
        const struct work work = {function_p, arg_p};
        error = pool->has_bound ? weir_pool_submit_copy(pool->pool, run, &work, sizeof work)
                                : weir_pool_trysubmit_copy(pool->pool, run, &work, sizeof work);
    }
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

void thpool_wait(threadpool pool)
{
    if (pool == NULL)
        return;
    int error = weir_pool_drain(pool->pool, WEIR_FOREVER);
    if (error != 0)
        complain("thpool_wait", error);
}

void thpool_pause(threadpool pool)
{
    if (pool != NULL)
        (void)weir_pool_pause(pool->pool); /* ECHILD: nothing runs in a fork child anyway */
}

void thpool_resume(threadpool pool)
{
    if (pool != NULL && !pool->has_no_threads)
        (void)weir_pool_resume(pool->pool); /* as above */
}

void thpool_destroy(threadpool pool)
{
    if (pool == NULL)
        return;
    int error = weir_pool_shutdown(pool->pool, WEIR_CANCEL, WEIR_FOREVER);
    if (error == 0 || error == ECHILD)
        error = weir_pool_destroy(pool->pool);
    if (error != 0) {
        complain("thpool_destroy", error);
        return;
    }
    free(pool);
}

int thpool_num_threads_working(threadpool pool)
{
    weir_stats stats = {.size = sizeof stats};
    if (pool == NULL || weir_pool_stats(pool->pool, &stats) != 0)
        return 0;
    return stats.running < INT_MAX ? (int)stats.running : INT_MAX;
}

weir_pool *weir_thpool_pool(threadpool pool)
{
    return pool != NULL ? pool->pool : NULL;
}
