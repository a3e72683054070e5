/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "pool_support.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool/pool.h"

weir_config weir_test_fixed(uint32_t limit, uint32_t depth)
{
    weir_config config;
    if (weir_config_init(&config) != 0)
        ck_abort_msg("no configuration");
    config.algorithm = WEIR_FIXED;
    config.initial_limit = limit;
    config.max_limit = limit > config.max_limit ? limit : config.max_limit;
    config.queue_depth = depth;
    config.flags = WEIR_NO_ENV;
    return config;
}

weir_pool *weir_test_pool_of(const weir_config *config)
{
    weir_pool *pool = NULL;
    ck_assert_int_eq(weir_pool_create(&pool, "test", config), 0);
    ck_assert_ptr_nonnull(pool);
    return pool;
}

weir_pool *weir_test_pool(uint32_t limit, uint32_t depth)
{
    weir_config config = weir_test_fixed(limit, depth);
    return weir_test_pool_of(&config);
}

void weir_test_pool_end(weir_pool *pool)
{
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}

void weir_test_take_jobs_for(weir_pool *pool, uint64_t ns)
{
    weir__lock(pool->limiter);
    pool->pace.job_ns = ns;
    weir__unlock(pool->limiter);
}

weir_stats weir_test_stats(weir_pool *pool)
{
    weir_stats stats = {0};
    (void)weir_pool_stats(pool, &stats);
    return stats;
}

uint64_t weir_test_accounted(const weir_stats *stats)
{
    return (uint64_t)stats->queued + stats->running + stats->succeeded + stats->ignored + stats->dropped +
           stats->expired + stats->cancelled;
}

weir_outcome weir_test_count(void *counter)
{
    atomic_fetch_add((atomic_uint *)counter, 1);
    return WEIR_SUCCESS;
}

weir_outcome weir_test_nothing(void *unused)
{
    (void)unused;
    return WEIR_SUCCESS;
}

weir_outcome weir_test_pass(void *gate)
{
    weir_test_gate_pass(gate);
    return WEIR_SUCCESS;
}

void weir_test_occupy(weir_pool *pool, struct weir_test_gate *gate, unsigned jobs)
{
    for (unsigned i = 0; i < jobs; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, gate), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(gate) == jobs);
}

void weir_test_record_add(struct weir_test_record *record, unsigned value)
{
    (void)pthread_mutex_lock(&record->mutex);
    if (record->count < WEIR_TEST_RECORD_SIZE)
        record->values[record->count] = value;
    record->count++;
    (void)pthread_mutex_unlock(&record->mutex);
}

bool weir_test_record_has(struct weir_test_record *record, unsigned value)
{
    bool found = false;
    (void)pthread_mutex_lock(&record->mutex);
    for (unsigned i = 0; i < record->count && i < WEIR_TEST_RECORD_SIZE; i++)
        found = found || record->values[i] == value;
    (void)pthread_mutex_unlock(&record->mutex);
    return found;
}

pthread_t weir_test_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, arg) != 0)
        ck_abort_msg("no thread for the test");
    return thread;
}

void *weir_test_join(pthread_t thread)
{
    void *result = NULL;
    if (pthread_join(thread, &result) != 0)
        ck_abort_msg("no join");
    return result;
}

unsigned weir_test_thread_count(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return 0;
    for (struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
        count += entry->d_name[0] != '.';
    (void)closedir(tasks);
    return count;
}

static void *pass_gate(void *gate)
{
    weir_test_gate_pass(gate);
    return NULL;
}

unsigned weir_test_thread_baseline(void)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    pthread_t thread = weir_test_thread(pass_gate, &gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    unsigned count = weir_test_thread_count() - 1;
    weir_test_gate_open(&gate);
    (void)weir_test_join(thread);
    WEIR_TEST_UNTIL(weir_test_thread_count() == count);
    weir_test_gate_destroy(&gate);
    return count;
}

pid_t weir_test_thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

unsigned weir_test_scaled(unsigned jobs, unsigned least)
{
    unsigned scaled = jobs / weir_test_slow();
    return scaled > least ? scaled : least;
}

int weir_test_in_child(int (*body)(void *), void *arg)
{
    (void)fflush(NULL); /* the child's exit would write it a second time */
    pid_t child = fork();
    if (child == 0)
        exit(body(arg));
    int status = -1;
    if (child > 0) {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    return status;
}

void weir_test_end_unseen(int code)
{
    char command[16];
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode == NULL || strcmp(fork_mode, "no") != 0)
        return;
    (void)snprintf(command, sizeof command, "exit %d", code);
    (void)execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}
