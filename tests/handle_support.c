/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "handle_support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

unsigned weir_test_divided(unsigned number, unsigned least)
{
    unsigned divided = number / weir_test_slow();
    return divided > least ? divided : least;
}

weir_config weir_test_plain_config(uint32_t limit, uint32_t depth)
{
    weir_config config;
    if (weir_config_init(&config) != 0)
        ck_abort_msg("no configuration");
    config.algorithm = WEIR_FIXED;
    config.initial_limit = limit;
    config.queue_depth = depth;
    config.flags = WEIR_NO_ENV;
    return config;
}

weir_pool *weir_test_plain_pool(uint32_t limit, uint32_t depth)
{
    weir_config config = weir_test_plain_config(limit, depth);
    weir_pool *pool = NULL;
    ck_assert_int_eq(weir_pool_create(&pool, "test", &config), 0);
    return pool;
}

weir_stats weir_test_snapshot(weir_pool *pool)
{
    weir_stats stats = {0};
    (void)weir_pool_stats(pool, &stats);
    return stats;
}

bool weir_test_adds_up(const weir_stats *stats)
{
    return stats->submitted == (uint64_t)stats->queued + stats->running + stats->succeeded + stats->ignored +
                                   stats->dropped + stats->expired + stats->cancelled;
}

weir_outcome weir_test_run_counted(void *arg)
{
    struct weir_test_counted *counted = arg;
    (void)atomic_fetch_add(&counted->ran, 1);
    return counted->outcome;
}

void weir_test_count_done(weir_job *job)
{
    struct weir_test_counted *counted = (struct weir_test_counted *)job;
    atomic_store(&counted->status, weir_job_outcome(job, NULL));
    (void)atomic_fetch_add(&counted->done, 1);
}

void weir_test_counted_init(struct weir_test_counted *counted, void (*on_done)(weir_job *))
{
    memset(counted, 0, sizeof *counted);
    counted->job = (weir_job)WEIR_JOB_INIT(weir_test_run_counted, counted);
    counted->job.on_done = on_done;
    atomic_store(&counted->status, -1);
}

weir_outcome weir_test_pass(void *gate)
{
    weir_test_gate_pass(gate);
    return WEIR_SUCCESS;
}

void weir_test_full_init_of(struct weir_test_full *full, const weir_config *config)
{
    full->pool = NULL;
    ck_assert_int_eq(weir_pool_create(&full->pool, "test", config), 0);
    weir_test_gate_init(&full->gate);
    for (uint32_t i = 0; i < config->initial_limit; i++)
        ck_assert_int_eq(weir_pool_submit(full->pool, weir_test_pass, &full->gate), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&full->gate) == config->initial_limit);
}

void weir_test_full_init(struct weir_test_full *full, uint32_t limit, uint32_t depth)
{
    weir_config config = weir_test_plain_config(limit, depth);
    weir_test_full_init_of(full, &config);
}

void weir_test_full_end(struct weir_test_full *full)
{
    weir_test_gate_open(&full->gate);
    ck_assert_int_eq(weir_pool_destroy(full->pool), 0);
    weir_test_gate_destroy(&full->gate);
}

int weir_test_submits(struct weir_test_asked *asked)
{
    return weir_job_submit(asked->pool, asked->job);
}

int weir_test_waits(struct weir_test_asked *asked)
{
    return weir_job_wait(asked->job, WEIR_FOREVER);
}

int weir_test_cancels(struct weir_test_asked *asked)
{
    return weir_job_cancel(asked->job);
}

struct errand {
    struct weir_test_asked *asked;
    weir_test_call *call;
};

static void *run_errand(void *arg)
{
    struct errand errand = *(struct errand *)arg;
    free(arg);
    atomic_store(&errand.asked->answer, errand.call(errand.asked));
    return NULL;
}

void weir_test_ask(struct weir_test_asked *asked, weir_test_call *call, weir_pool *pool, weir_job *job)
{
    struct errand *errand = malloc(sizeof *errand);
    if (errand == NULL)
        ck_abort_msg("no memory");
    asked->pool = pool;
    asked->job = job;
    atomic_init(&asked->answer, -1);
    *errand = (struct errand){asked, call};
    asked->thread = weir_test_start(run_errand, errand);
}

int weir_test_answer(struct weir_test_asked *asked)
{
    if (pthread_join(asked->thread, NULL) != 0)
        ck_abort_msg("no join");
    return atomic_load(&asked->answer);
}

pthread_t weir_test_start(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, arg) != 0)
        ck_abort_msg("no thread for the test");
    return thread;
}

/* Whether the thread is named for the pool; a sanitizer's own threads are not. */
static bool is_named(const char *id, const char *pool_name)
{
    char path[64];
    char name[32] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", id);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool read = fgets(name, sizeof name, file) != NULL;
    (void)fclose(file);
    size_t length = strlen(pool_name);
    return read && strncmp(name, pool_name, length) == 0 && name[length] == '/';
}

unsigned weir_test_threads_of(const char *pool_name)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
        count += entry->d_name[0] != '.' && is_named(entry->d_name, pool_name);
    (void)closedir(tasks);
    return count;
}

void weir_test_group(Suite *suite, const char *name, const TTest *const *tests)
{
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, WEIR_TEST_LIMIT_S);
    for (; *tests != NULL; tests++)
        tcase_add_test(group, *tests);
    suite_add_tcase(suite, group);
}
