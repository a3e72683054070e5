/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A process of its own, without Check, for what belongs to a whole process: limits on threads, memory, stacks and
 * processor time, and another libc. It uses the public interface only.
 *
 *   pool_process tour          every part of the library once
 *   pool_process crowd N       N jobs that block, on as many threads as can be had; then the same again
 *   pool_process deep K        a job that uses K KiB of its stack
 *   pool_process lower N LIMIT as crowd, but after the first worker there is no room for a further thread, by LIMIT:
 *                              "as", the address space, or "nproc", the threads of the user; then there is again
 *
 * Exit status: 0, or 1 and a line on stderr that says which condition did not hold. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

#include "sanitized.h"

/* The sanitizers' own locks and thread tables do not survive a fork with threads. */
enum { CHILD_MAY_START_THREADS = !IS_SANITIZED };

static void require(bool holds, const char *what, int line)
{
    if (holds)
        return;
    (void)fprintf(stderr, "pool_process.c:%d: %s\n", line, what);
    _exit(1);
}
#define REQUIRE(condition_) require((condition_), #condition_, __LINE__)

static void yield(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}
#define UNTIL(condition_)     \
    do {                      \
        while (!(condition_)) \
            yield();          \
    } while (0)

static weir_config fixed(uint32_t limit, uint32_t depth)
{
    weir_config config;
    REQUIRE(weir_config_init(&config) == 0);
    config.algorithm = WEIR_FIXED;
    config.initial_limit = limit;
    config.max_limit = limit > config.max_limit ? limit : config.max_limit;
    config.queue_depth = depth;
    config.flags = WEIR_NO_ENV;
    return config;
}

static weir_stats snapshot(weir_pool *pool)
{
    weir_stats stats = {.size = sizeof stats};
    REQUIRE(weir_pool_stats(pool, &stats) == 0);
    return stats;
}

/* ---- jobs ---- */

static weir_outcome count(void *counter)
{
    atomic_fetch_add((atomic_uint *)counter, 1);
    return WEIR_SUCCESS;
}

static weir_outcome count_copied(void *copy)
{
    atomic_uint *counter;
    memcpy(&counter, copy, sizeof counter);
    return count(counter);
}

static weir_outcome end_thread(void *arg)
{
    pthread_exit(arg);
    return WEIR_SUCCESS;
}

static atomic_bool open_now;
static atomic_uint inside;

static weir_outcome block(void *arg)
{
    atomic_fetch_add(&inside, 1);
    UNTIL(atomic_load(&open_now));
    atomic_fetch_sub(&inside, 1);
    return count(arg);
}

/* ---- tour ---- */

static void tour_submits(void)
{
    atomic_uint ran = 0;
    atomic_uint *address = &ran;
    char large[100] = {0};
    weir_outcome outcome = WEIR_DROPPED;
    weir_pool *pool = NULL;
    weir_config config = fixed(3, 4);
    memcpy(large, &address, sizeof address);
    REQUIRE(weir_pool_create(&pool, "tour", &config) == 0);
    REQUIRE(weir_pool_call(pool, count, &ran, &outcome) == 0 && outcome == WEIR_SUCCESS);
    REQUIRE(weir_pool_submit_copy(pool, count_copied, &address, sizeof address) == 0);
    REQUIRE(weir_pool_submit_copy(pool, count_copied, large, sizeof large) == 0);
    REQUIRE(weir_pool_drain(pool, WEIR_FOREVER) == 0 && atomic_load(&ran) == 3);
    for (int i = 0; i < 3; i++)
        REQUIRE(weir_pool_submit(pool, end_thread, NULL) == 0);
    REQUIRE(weir_pool_drain(pool, WEIR_FOREVER) == 0 && snapshot(pool).ignored == 3);
    for (int i = 0; i < 7; i++)
        REQUIRE(weir_pool_submit(pool, block, &ran) == 0);
    REQUIRE(weir_pool_trysubmit(pool, block, &ran) == EAGAIN);
    REQUIRE(weir_pool_timedsubmit(pool, block, &ran, weir_after_ns(1000000)) == ETIMEDOUT);
    REQUIRE(weir_pool_drain(pool, weir_after_ns(1000000)) == ETIMEDOUT);
    UNTIL(atomic_load(&inside) == 3);
    atomic_store(&open_now, true);
    REQUIRE(weir_pool_drain(pool, WEIR_FOREVER) == 0 && atomic_load(&ran) == 10);
    REQUIRE(weir_pool_pause(pool) == 0 && weir_pool_submit(pool, count, &ran) == 0);
    REQUIRE(weir_pool_resume(pool) == 0 && weir_pool_drain(pool, WEIR_FOREVER) == 0);
    weir_stats stats = snapshot(pool);
    REQUIRE(stats.submitted == stats.succeeded + stats.ignored && stats.submitted == 14 && stats.shed == 1);
    REQUIRE(weir_pool_destroy(pool) == 0 && atomic_load(&ran) == 11);
    atomic_store(&open_now, false);
}

static void tour_handles(void)
{
    atomic_uint ran = 0;
    weir_pool *pool = NULL;
    weir_completions *completions = NULL;
    weir_config config = fixed(1, 8);
    weir_job blocking = WEIR_JOB_INIT(block, &ran);
    weir_job cancelled = WEIR_JOB_INIT(count, &ran);
    weir_job expiring = WEIR_JOB_INIT(count, &ran);
    weir_job delivered = WEIR_JOB_INIT(count, &ran);
    REQUIRE(weir_pool_create(&pool, "handles", &config) == 0);
    REQUIRE(weir_job_submit(pool, &blocking) == 0);
    UNTIL(atomic_load(&inside) == 1);
    expiring.deadline_ns = weir_after_ns(100000000);
    REQUIRE(weir_job_submit(pool, &cancelled) == 0);
    REQUIRE(weir_job_submit(pool, &expiring) == 0);
    REQUIRE(weir_job_wait(&expiring, WEIR_FOREVER) == ETIMEDOUT);
    REQUIRE(weir_job_cancel(&cancelled) == 0 && weir_job_wait(&cancelled, WEIR_FOREVER) == ECANCELED);
    int error = weir_completions_create(&completions);
    if (error != ENOSYS) {
        REQUIRE(error == 0);
        delivered.completions = completions;
        REQUIRE(weir_job_submit(pool, &delivered) == 0);
    }
    atomic_store(&open_now, true);
    REQUIRE(weir_job_wait(&blocking, WEIR_FOREVER) == 0);
    if (error == 0) {
        struct pollfd readable = {.fd = weir_completions_fd(completions), .events = POLLIN};
        REQUIRE(poll(&readable, 1, 60000) == 1);
        REQUIRE(weir_completions_next(completions) == &delivered);
        REQUIRE(weir_completions_next(completions) == NULL);
    }
    REQUIRE(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER) == 0);
    REQUIRE(weir_pool_submit(pool, count, &ran) == ESHUTDOWN);
    REQUIRE(weir_pool_destroy(pool) == 0);
    weir_completions_destroy(completions);
    atomic_store(&open_now, false);
}

/* The default algorithm, and callers with threads of their own. */
static void tour_limiter(void)
{
    weir_limiter *limiter = NULL;
    weir_permit permits[2] = {{{0}}};
    weir_config config = fixed(1, 0);
    REQUIRE(weir_limiter_create(&limiter, "tour", &config) == 0);
    REQUIRE(weir_limiter_acquire(limiter, &permits[0]) == 0);
    REQUIRE(weir_limiter_tryacquire(limiter, &permits[1]) == EAGAIN);
    REQUIRE(weir_limiter_timedacquire(limiter, &permits[1], weir_after_ns(1000000)) == ETIMEDOUT);
    REQUIRE(weir_limiter_release(limiter, &permits[0], WEIR_SUCCESS) == 0);
    REQUIRE(weir_limiter_release(limiter, &permits[0], WEIR_SUCCESS) == EINVAL);
    REQUIRE(weir_limiter_destroy(limiter) == 0);
    weir_pool *pool = NULL;
    atomic_uint ran = 0;
    REQUIRE(weir_config_init(&config) == 0);
    config.flags = WEIR_NO_ENV;
    REQUIRE(weir_pool_create(&pool, NULL, &config) == 0);
    for (int i = 0; i < 2000; i++)
        REQUIRE(weir_pool_submit(pool, count, &ran) == 0);
    REQUIRE(weir_pool_drain(pool, WEIR_FOREVER) == 0 && atomic_load(&ran) == 2000);
    FILE *out = tmpfile();
    REQUIRE(out != NULL && weir_stats_write(out, WEIR_PROMETHEUS) == 0 && weir_stats_write(out, WEIR_JSON) == 0);
    REQUIRE(ftell(out) > 1000 && fclose(out) == 0);
    REQUIRE(weir_pool_destroy(pool) == 0);
}

static void tour_fork(void)
{
    atomic_uint ran = 0;
    weir_pool *pool = NULL;
    weir_config config = fixed(2, 2);
    REQUIRE(weir_pool_create(&pool, "fork", &config) == 0 && weir_pool_call(pool, count, &ran, NULL) == 0);
    pid_t child = fork();
    if (child == 0) {
        weir_pool *own = NULL;
        REQUIRE(weir_pool_submit(pool, count, &ran) == ECHILD && weir_pool_destroy(pool) == 0);
        REQUIRE(weir_pool_create(&own, "own", &config) == 0);
        REQUIRE(!CHILD_MAY_START_THREADS || weir_pool_call(own, count, &ran, NULL) == 0);
        REQUIRE(weir_pool_destroy(own) == 0);
        _exit(0);
    }
    int status = -1;
    REQUIRE(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    REQUIRE(weir_pool_call(pool, count, &ran, NULL) == 0 && weir_pool_destroy(pool) == 0);
}

static void tour(void)
{
    tour_submits();
    tour_handles();
    tour_limiter();
    tour_fork();
    (void)puts("tour: complete");
}

/* ---- crowd ---- */

/* As many of the jobs as there are threads run at once; all run in the end. */
static unsigned crowd_once(weir_pool *pool, unsigned jobs, bool whole)
{
    atomic_uint ran = 0;
    unsigned accepted = 0;
    uint64_t failures = snapshot(pool).worker_start_failures;
    for (unsigned i = 0; i < jobs; i++) {
        int error = weir_pool_trysubmit(pool, block, &ran);
        REQUIRE(error == 0 || ((error == EAGAIN || error == ENOMEM) && !whole));
        accepted += error == 0;
    }
    UNTIL(atomic_load(&inside) == accepted || (!whole && snapshot(pool).worker_start_failures > failures));
    unsigned workers = snapshot(pool).workers;
    atomic_store(&open_now, true);
    REQUIRE(weir_pool_drain(pool, WEIR_FOREVER) == 0);
    REQUIRE(atomic_load(&ran) == accepted);
    atomic_store(&open_now, false);
    return workers;
}

static void quiet(weir_log_level level, const char *message, void *arg)
{
    (void)level;
    (void)message;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static atomic_uint lines;

static void crowd(unsigned jobs)
{
    weir_pool *pool = NULL;
    weir_config config = fixed(jobs, jobs);
    weir_set_log(quiet, &lines);
    REQUIRE(weir_pool_create(&pool, "crowd", &config) == 0);
    unsigned workers = crowd_once(pool, jobs, false);
    (void)crowd_once(pool, jobs, false);
    uint64_t failures = snapshot(pool).worker_start_failures;
    REQUIRE(failures == 0 || (workers < jobs && atomic_load(&lines) > 0));
    REQUIRE(weir_pool_destroy(pool) == 0);
    (void)printf("crowd: %u of %u workers, %llu failures\n", workers, jobs, (unsigned long long)failures);
}

/* ---- lower ---- */

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    REQUIRE(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* For root there is no limit on threads: become a user that has none. */
static void become_somebody(void)
{
    if (geteuid() != 0)
        return;
    uid_t user = 100000 + (uid_t)getpid();
    REQUIRE(setgid(user) == 0 && setuid(user) == 0);
}

/* The resource is named where it is used: glibc has a type of its own for it. */
static int get_limit(bool of_threads, struct rlimit *limit)
{
    return of_threads ? getrlimit(RLIMIT_NPROC, limit) : getrlimit(RLIMIT_AS, limit);
}

static int set_limit(bool of_threads, const struct rlimit *limit)
{
    return of_threads ? setrlimit(RLIMIT_NPROC, limit) : setrlimit(RLIMIT_AS, limit);
}

/* No room for a further thread, then room again: the pool goes on with what it has, and recovers. */
static void lower(unsigned jobs, bool by_threads)
{
    weir_pool *pool = NULL;
    atomic_uint ran = 0;
    struct rlimit before;
    if (by_threads)
        become_somebody();
    weir_config config = fixed(jobs, jobs);
    config.stack_size = 16 << 20;
    weir_set_log(quiet, &lines);
    REQUIRE(weir_pool_create(&pool, "lower", &config) == 0 && weir_pool_call(pool, count, &ran, NULL) == 0);
    REQUIRE(get_limit(by_threads, &before) == 0);
    struct rlimit now = {.rlim_cur = by_threads ? 1 : address_space() + (4 << 20), .rlim_max = before.rlim_max};
    REQUIRE(set_limit(by_threads, &now) == 0);
    unsigned workers = crowd_once(pool, jobs, false);
    REQUIRE(workers < jobs && snapshot(pool).worker_start_failures > 0 && atomic_load(&lines) > 0);
    REQUIRE(set_limit(by_threads, &before) == 0);
    REQUIRE(crowd_once(pool, jobs, true) == jobs);
    REQUIRE(weir_pool_destroy(pool) == 0);
    (void)printf("lower: %u, then %u workers\n", workers, jobs);
}

/* ---- deep ---- */

static unsigned descend(unsigned kilobytes)
{
    volatile unsigned char block_of_stack[1024];
    block_of_stack[0] = (unsigned char)kilobytes;
    block_of_stack[1023] = 1;
    return kilobytes == 0 ? 0 : block_of_stack[1023] + descend(kilobytes - 1);
}

static weir_outcome go_deep(void *arg)
{
    return descend(*(unsigned *)arg) > 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

static void deep(unsigned kilobytes)
{
    weir_pool *pool = NULL;
    weir_outcome outcome = WEIR_DROPPED;
    weir_config config = fixed(2, 2);
    REQUIRE(weir_pool_create(&pool, "deep", &config) == 0);
    REQUIRE(weir_pool_call(pool, go_deep, &kilobytes, &outcome) == 0 && outcome == WEIR_SUCCESS);
    REQUIRE(weir_pool_destroy(pool) == 0);
    (void)printf("deep: %u KiB\n", kilobytes);
}

int main(int argc, char **argv)
{
    unsigned number = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 16;
    const char *what = argc > 1 ? argv[1] : "tour";
    if (strcmp(what, "tour") == 0)
        tour();
    else if (strcmp(what, "crowd") == 0)
        crowd(number);
    else if (strcmp(what, "lower") == 0)
        lower(number, argc > 3 && strcmp(argv[3], "nproc") == 0);
    else if (strcmp(what, "deep") == 0)
        deep(number);
    else
        return 2;
    return 0;
}
