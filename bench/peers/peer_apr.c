/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <apr_thread_pool.h>
#include <stdlib.h>

#include "peers.h"

static void *APR_THREAD_FUNC run(apr_thread_t *thread, void *arg)
{
    (void)thread;
    job_run(arg);
    return NULL;
}

static void *create(unsigned threads)
{
    static bool is_initialised;
    apr_pool_t *memory;
    apr_thread_pool_t *pool;
    if (!is_initialised)
        (void)apr_initialize();
    is_initialised = true;
    if (apr_pool_create(&memory, NULL) != APR_SUCCESS ||
        apr_thread_pool_create(&pool, threads, threads, memory) != APR_SUCCESS)
        abort();
    return pool;
}

static void submit(void *pool, void *arg)
{
    (void)apr_thread_pool_push(pool, run, arg, APR_THREAD_TASK_PRIORITY_NORMAL, NULL);
}

static void destroy(void *pool)
{
    (void)apr_thread_pool_destroy(pool);
}

const struct peer peer_apr = {
    .name = "apr", .ranked = true, .most_queued = 20000, .create = create, .submit = submit, .destroy = destroy};
