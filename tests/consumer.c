/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A program of somebody else: it knows the installed headers only, and is compiled as C11 and as C++17. It uses every
 * function of the interface once and exits with the number of the step that failed. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir.h>

static int runs; /* written by one job at a time: the pool's limit is 1 */

static weir_outcome count(void *arg)
{
    runs += *(int *)arg;
    return WEIR_SUCCESS;
}

static int custom_init(void *state, const weir_config *config)
{
    *(uint32_t *)state = config->initial_limit;
    return 0;
}

static uint32_t custom_update(void *state, const weir_sample *sample)
{
    return *(uint32_t *)state += sample->outcome == WEIR_SUCCESS ? 1 : 0;
}

static uint64_t custom_reaction(const void *state)
{
    (void)state;
    return 1000000;
}

static void hook(void *arg)
{
    (void)arg;
}

static void trace(const weir_trace_event *event, void *arg)
{
    (void)arg;
    (void)event->new_limit;
}

static void quiet(weir_log_level level, const char *message, void *arg)
{
    (void)level;
    (void)message;
    (void)arg;
}

#define STEP(condition_)   \
    do {                   \
        step++;            \
        if (!(condition_)) \
            return step;   \
    } while (0)

static int use_config(void)
{
    int step = 10;
    weir_config config;
    FILE *out = tmpfile();
    STEP(weir_config_init(&config) == 0 && config.size == sizeof config);
    STEP(config.algorithm == WEIR_VEGAS2 && config.max_limit == 1000 && config.queue_depth == WEIR_QUEUE_AUTO);
    STEP(weir_config_set(&config, "max_limit", "50") == 0 && config.max_limit == 50);
    weir_set_log(quiet, NULL);
    STEP(weir_config_set(&config, "MAX_LIMIT", "many") == EINVAL && config.max_limit == 50);
    weir_set_log(NULL, NULL);
    STEP(weir_config_load_env(&config, "consumer") == 0);
    STEP(out != NULL && weir_config_print(&config, out) == 0);
    return fclose(out) == 0 ? 0 : step;
}

static int use_estimator(void)
{
    int step = 20;
    static const weir_estimator_class custom = {"counting", sizeof(uint32_t), custom_init, custom_update,
                                                custom_reaction};
    weir_config config;
    weir_estimator *estimator = NULL;
    weir_sample sample = {1000, 1000, 1, WEIR_SUCCESS};
    weir_figures figures;
    STEP(weir_config_init(&config) == 0);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &custom;
    config.initial_limit = 3;
    STEP(weir_estimator_create(&estimator, &config) == 0 && weir_estimator_limit(estimator) == 3);
    STEP(weir_estimator_update(estimator, &sample) == 4);
    STEP(weir_estimator_set_wall_offset(estimator, -5) == 0);
    STEP(weir_estimator_reaction_ns(estimator) == 1000000);
    STEP(weir_estimator_figures(estimator, &figures) == 0 && figures.estimate >= 4);
    weir_estimator_destroy(estimator);
    return 0;
}

static int use_limiter(void)
{
    int step = 30;
    weir_limiter *limiter = NULL;
    weir_permit permit;
    weir_stats stats;
    memset(&permit, 0, sizeof permit);
    memset(&stats, 0, sizeof stats);
    STEP(weir_limiter_create(&limiter, "consumer", NULL) == 0);
    STEP(weir_limiter_acquire(limiter, &permit) == 0);
    STEP(weir_limiter_destroy(limiter) == EBUSY);
    STEP(weir_limiter_release(limiter, &permit, WEIR_SUCCESS) == 0);
    STEP(weir_limiter_release(limiter, &permit, WEIR_SUCCESS) == EINVAL);
    STEP(weir_limiter_tryacquire(limiter, &permit) == 0 && weir_limiter_release(limiter, &permit, WEIR_IGNORE) == 0);
    STEP(weir_limiter_timedacquire(limiter, &permit, weir_after_ns(1000000)) == 0);
    STEP(weir_limiter_release(limiter, &permit, WEIR_DROPPED) == 0);
    STEP(weir_limiter_acquire_many(limiter, &permit, 2, NULL, WEIR_FOREVER) == 0);
    STEP(weir_limiter_freeze(limiter) == 0 && weir_limiter_thaw(limiter) == 0);
    STEP(weir_limiter_thaw(limiter) == EINVAL);
    STEP(weir_limiter_stats(limiter, &stats) == 0 && stats.in_flight == 2);
    STEP(weir_limiter_release(limiter, &permit, WEIR_SUCCESS) == 0);
    STEP(weir_limiter_destroy(limiter) == 0);
    return 0;
}

static int use_pool(void)
{
    int step = 60;
    int one = 1;
    weir_pool *pool = NULL;
    weir_config config;
    weir_stats stats;
    weir_outcome outcome = WEIR_IGNORE;
    memset(&stats, 0, sizeof stats);
    STEP(weir_config_init(&config) == 0);
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 1;
    config.on_worker_start = hook;
    config.on_worker_stop = hook;
    config.trace = trace;
    config.flags = WEIR_NO_ENV;
    STEP(weir_pool_create(&pool, "consumer", &config) == 0);
    STEP(weir_pool_submit(pool, count, &one) == 0);
    STEP(weir_pool_timedsubmit(pool, count, &one, weir_after_ns(10000000000u)) == 0);
    STEP(weir_pool_submit_copy(pool, count, &one, sizeof one) == 0);
    STEP(weir_pool_call(pool, count, &one, &outcome) == 0 && outcome == WEIR_SUCCESS);
    STEP(weir_pool_pause(pool) == 0 && weir_pool_resume(pool) == 0);
    STEP(weir_pool_drain(pool, WEIR_FOREVER) == 0 && runs == 4);
    STEP(weir_pool_trysubmit(pool, count, &one) == 0);
    STEP(weir_pool_limiter(pool) != NULL);
    STEP(weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER) == 0 && runs == 5);
    STEP(weir_pool_submit(pool, count, &one) == ESHUTDOWN);
    STEP(weir_pool_stats(pool, &stats) == 0 && stats.submitted == 5 && stats.succeeded == 5);
    STEP(weir_pool_destroy(pool) == 0);
    return 0;
}

int main(void)
{
    int step = 0;
    STEP(weir_now_ns() > 0);
    STEP(strcmp(weir_strerror(EAGAIN), weir_strerror(ESHUTDOWN)) != 0);
    int failed = use_config();
    if (failed == 0)
        failed = use_estimator();
    if (failed == 0)
        failed = use_limiter();
    if (failed == 0)
        failed = use_pool();
    return failed;
}
