/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include <weir.h>

#include "peers.h"

static weir_outcome run(void *arg)
{
    job_run(arg);
    return WEIR_SUCCESS;
}

static void *create_with(uint32_t algorithm, unsigned threads)
{
    weir_pool *pool;
    weir_config config;
    (void)weir_config_init(&config);
    config.flags |= WEIR_NO_ENV;
    config.algorithm = algorithm;
    config.initial_limit = config.min_limit = config.max_limit = threads; /* as many threads as the peers have */
    config.queue_depth = config.queue_max = DEEPEST;                      /* they never refuse a job */
    int error = weir_pool_create(&pool, "bench", &config);
    if (error != 0) {
        (void)fprintf(stderr, "peers: no pool: %s\n", weir_strerror(error));
        exit(1);
    }
    return pool;
}

static void *create(unsigned threads)
{
    return create_with(WEIR_VEGAS2, threads);
}

static void *create_fixed(unsigned threads)
{
    return create_with(WEIR_FIXED, threads);
}

static void submit(void *pool, void *arg)
{
    if (weir_pool_submit(pool, run, arg) != 0)
        abort();
}

static void destroy(void *pool)
{
    if (weir_pool_destroy(pool) != 0)
        abort();
}

const struct peer peer_weir = {.name = "weir", .is_weir = true, .create = create, .submit = submit, .destroy = destroy};
const struct peer peer_weir_fixed = {
    .name = "weir-fixed", .is_weir = true, .create = create_fixed, .submit = submit, .destroy = destroy};

/* ---- many pools at once ---- */

static void nothing(void *arg)
{
    (void)arg;
}

void measure_pools(unsigned pools, struct scale *result)
{
    enum { ROUNDS = 20 };
    static void (*const job)(void *) = nothing;
    void *arg = (void *)(uintptr_t)&job;
    weir_pool **all = calloc(pools, sizeof(weir_pool *));
    for (unsigned i = 0; i < pools; i++) {
        all[i] = create(2);
        (void)weir_pool_call(all[i], run, arg, NULL); /* its first thread is there */
    }
    struct usage before = usage_now();
    for (unsigned i = 0; i < ROUNDS * pools; i++)
        (void)weir_pool_call(all[i % pools], run, arg, NULL);
    struct usage after = usage_now();
    result->ns = (double)(after.at_ns - before.at_ns) / (ROUNDS * pools);
    result->cpu_ns = (after.cpu_ns - before.cpu_ns) / (ROUNDS * pools);
    free(all);
}
