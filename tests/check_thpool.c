/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What libweir-thpool promises beyond what the original does; thpool.test is about what both do. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/thpool.h>

#include "pool_support.h"
#include "sanitized.h"

static void count(void *counter)
{
    atomic_fetch_add((atomic_uint *)counter, 1);
}

static void pass(void *gate)
{
    weir_test_gate_pass(gate);
}

static threadpool new_pool(int threads)
{
    threadpool pool = thpool_init(threads);
    ck_assert_ptr_nonnull(pool);
    return pool;
}

static void occupy(threadpool pool, struct weir_test_gate *gate, unsigned jobs)
{
    unsigned before = weir_test_gate_waiting(gate);
    for (unsigned i = 0; i < jobs; i++)
        ck_assert_int_eq(thpool_add_work(pool, pass, gate), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(gate) == before + jobs);
}

static weir_stats stats_of(threadpool pool)
{
    return weir_test_stats(weir_thpool_pool(pool));
}

/* The linker puts __wrap_calloc in the place of calloc. */
static atomic_uint callocs; /* since failing was set */
static atomic_uint failing; /* the one that fails, from 1; 0: none */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
    return atomic_fetch_add(&callocs, 1) + 1 == atomic_load(&failing) ? NULL : __real_calloc(count, size);
}

/* Neither a pause nor the end of one pool is felt by another. */
START_TEST(pools_are_independent)
{
    atomic_uint ran[3] = {0, 0, 0};
    threadpool pools[3];
    for (int i = 0; i < 3; i++)
        pools[i] = new_pool(2);
    thpool_pause(pools[0]);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 100; k++)
            ck_assert_int_eq(thpool_add_work(pools[i], count, &ran[i]), 0);
    }
    thpool_wait(pools[1]);
    thpool_destroy(pools[1]);
    thpool_resume(pools[2]); /* was never paused, and is not pools[0] */
    thpool_wait(pools[2]);
    ck_assert_uint_eq(atomic_load(&ran[0]), 0);
    ck_assert_uint_eq(atomic_load(&ran[1]), 100);
    ck_assert_uint_eq(atomic_load(&ran[2]), 100);
    ck_assert_int_eq(thpool_num_threads_working(pools[0]), 0);
    thpool_resume(pools[0]);
    thpool_wait(pools[0]);
    ck_assert_uint_eq(atomic_load(&ran[0]), 100);
    thpool_destroy(pools[0]);
    thpool_destroy(pools[2]);
}
END_TEST

struct waiter {
    threadpool pool;
    atomic_uint *returned;
};

static void *wait_once(void *arg)
{
    struct waiter *waiter = arg;
    thpool_wait(waiter->pool);
    atomic_fetch_add(waiter->returned, 1);
    return NULL;
}

/* Every thread in wait goes on when the last job ends, and none before. */
START_TEST(all_waiters_return)
{
    enum { WAITERS = 10 };
    pthread_t threads[WAITERS];
    atomic_uint returned = 0;
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    threadpool pool = new_pool(2);
    struct waiter waiter = {pool, &returned};
    occupy(pool, &gate, 2);
    for (int i = 0; i < WAITERS; i++)
        threads[i] = weir_test_thread(wait_once, &waiter);
    for (int i = 0; i < 100; i++)
        weir_test_yield();
    ck_assert_uint_eq(atomic_load(&returned), 0);
    weir_test_gate_open(&gate);
    for (int i = 0; i < WAITERS; i++)
        (void)weir_test_join(threads[i]);
    ck_assert_uint_eq(atomic_load(&returned), WAITERS);
    thpool_destroy(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A pause is no interruption: the job that runs goes on, while nothing else starts. */
START_TEST(pause_lets_jobs_end)
{
    atomic_uint ran = 0;
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    threadpool pool = new_pool(2);
    occupy(pool, &gate, 2);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(thpool_add_work(pool, count, &ran), 0);
    thpool_pause(pool);
    thpool_pause(pool);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(thpool_num_threads_working(pool) == 0);
    ck_assert_uint_eq(atomic_load(&ran), 0);
    ck_assert_uint_eq(stats_of(pool).queued, 10);
    thpool_resume(pool);
    thpool_wait(pool);
    ck_assert_uint_eq(atomic_load(&ran), 10);
    thpool_destroy(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A paused pool is destroyed as any other, and drops what it holds. */
START_TEST(destroy_while_paused)
{
    atomic_uint ran = 0;
    threadpool pool = new_pool(2);
    thpool_pause(pool);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(thpool_add_work(pool, count, &ran), 0);
    thpool_destroy(pool);
    ck_assert_uint_eq(atomic_load(&ran), 0);
}
END_TEST

/* A thousand threads, and they leave with the pool. */
START_TEST(a_thousand_threads)
{
    unsigned threads = weir_test_scaled(1000, 100);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    unsigned before = weir_test_thread_baseline();
    threadpool pool = new_pool((int)threads);
    occupy(pool, &gate, threads);
    ck_assert_int_eq(thpool_num_threads_working(pool), (int)threads);
    weir_test_gate_open(&gate);
    thpool_wait(pool);
    ck_assert_int_eq(thpool_num_threads_working(pool), 0);
    thpool_destroy(pool);
    WEIR_TEST_UNTIL(weir_test_thread_count() <= before);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Adding never waits, far beyond any depth that weir's own rule would give. */
START_TEST(queue_without_bound)
{
    unsigned jobs = weir_test_scaled(300000, 70000);
    atomic_uint ran = 0;
    threadpool pool = new_pool(4);
    thpool_pause(pool);
    for (unsigned i = 0; i < jobs; i++)
        ck_assert_int_eq(thpool_add_work(pool, count, &ran), 0);
    thpool_resume(pool);
    thpool_wait(pool);
    ck_assert_uint_eq(atomic_load(&ran), jobs);
    thpool_destroy(pool);
}
END_TEST

static weir_config config_of(int threads, const char *option, const char *value)
{
    weir_config config;
    ck_assert_int_eq(weir_thpool_config(&config, threads), 0);
    if (option != NULL)
        ck_assert_int_eq(weir_config_set(&config, option, value), 0);
    return config;
}

struct adder {
    threadpool pool;
    atomic_uint *ran;
    int result;
    int error;
    atomic_bool returned;
};

static void add_one(void *arg)
{
    struct adder *adder = arg;
    errno = 0;
    adder->result = thpool_add_work(adder->pool, count, adder->ran);
    adder->error = errno;
    atomic_store(&adder->returned, true);
}

static void *add_in_thread(void *arg)
{
    add_one(arg);
    return NULL;
}

/* With a bound that somebody has asked for, adding waits for room; a job that would wait for its own pool is told. */
START_TEST(queue_with_bound)
{
    atomic_uint ran = 0;
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_config config = config_of(2, "QUEUE_DEPTH", "3");
    threadpool pool;
    ck_assert_int_eq(weir_thpool_create(&pool, "bounded", &config), 0);
    struct adder from_job = {.pool = pool, .ran = &ran};
    struct adder from_thread = {.pool = pool, .ran = &ran};
    occupy(pool, &gate, 1);
    thpool_pause(pool);
    ck_assert_int_eq(thpool_add_work(pool, add_one, &from_job), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(thpool_add_work(pool, pass, &gate), 0);
    pthread_t thread = weir_test_thread(add_in_thread, &from_thread);
    WEIR_TEST_UNTIL(stats_of(pool).waiting == 1);
    ck_assert(!atomic_load(&from_thread.returned));
    thpool_resume(pool); /* the thread's job takes the place of the adder, which then finds none */
    weir_test_gate_open(&gate);
    (void)weir_test_join(thread);
    thpool_wait(pool);
    ck_assert_int_eq(from_thread.result, 0);
    ck_assert(from_job.result == 0 || from_job.error == EDEADLK);
    ck_assert_uint_eq(atomic_load(&ran), from_job.result == 0 ? 2 : 1);
    thpool_destroy(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

START_TEST(job_at_its_own_bound)
{
    atomic_uint ran = 0;
    weir_config config = config_of(1, "QUEUE_DEPTH", "0");
    threadpool pool;
    ck_assert_int_eq(weir_thpool_create(&pool, "bounded", &config), 0);
    struct adder adder = {.pool = pool, .ran = &ran};
    ck_assert_int_eq(thpool_add_work(pool, add_one, &adder), 0);
    thpool_wait(pool);
    ck_assert_int_eq(adder.result, -1);
    ck_assert_int_eq(adder.error, EDEADLK);
    thpool_destroy(pool);
    ck_assert_uint_eq(atomic_load(&ran), 0);
}
END_TEST

/* The program's number is the limit; the environment makes it the cap of an estimate, for this kind of pool alone. */
START_TEST(environment)
{
    threadpool pool = new_pool(7);
    weir_stats stats = stats_of(pool);
    ck_assert_uint_eq(stats.limit, 7);
    ck_assert_str_eq(stats.phase, "steady");
    thpool_destroy(pool);

    ck_assert_int_eq(setenv("WEIR_ALGORITHM__THPOOL", "vegas2", 1), 0);
    ck_assert_int_eq(setenv("WEIR_QUEUE_DEPTH__THPOOL", "auto", 1), 0);
    pool = new_pool(7);
    stats = stats_of(pool);
    ck_assert_str_eq(stats.phase, "startup");
    ck_assert_uint_eq(stats.limit, 7);
    ck_assert_uint_lt(stats.queue_depth, 65537);
    atomic_uint ran = 0;
    for (int i = 0; i < 2000; i++)
        ck_assert_int_eq(thpool_add_work(pool, count, &ran), 0);
    thpool_wait(pool);
    ck_assert_uint_eq(atomic_load(&ran), 2000);
    ck_assert_uint_le(stats_of(pool).limit, 7);
    thpool_destroy(pool);

    weir_test_log_capture();
    ck_assert_int_eq(setenv("WEIR_ALGORITHM__THPOOL", "tahoe", 1), 0);
    errno = 0;
    ck_assert_ptr_null(thpool_init(7));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "WEIR_ALGORITHM__THPOOL"));
    weir_test_log_release();
}
END_TEST

/* Monitor mode: as many threads as ever, and an estimate beside them. */
START_TEST(monitor)
{
    ck_assert_int_eq(setenv("WEIR_ALGORITHM__THPOOL", "vegas2", 1), 0);
    ck_assert_int_eq(setenv("WEIR_MODE__THPOOL", "monitor", 1), 0);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    threadpool pool = new_pool(12);
    occupy(pool, &gate, 12);
    ck_assert_uint_eq(stats_of(pool).limit, 12);
    weir_test_gate_open(&gate);
    thpool_wait(pool);
    thpool_destroy(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

static void wait_for_own_pool(void *pool)
{
    thpool_wait(*(threadpool *)pool);
    thpool_destroy(*(threadpool *)pool);
}

/* The original hangs there for ever. */
START_TEST(job_that_waits_for_its_pool)
{
    threadpool pool = new_pool(1);
    ck_assert_int_eq(thpool_add_work(pool, wait_for_own_pool, &pool), 0);
    thpool_wait(pool);
    thpool_destroy(pool);
}
END_TEST

static void end_thread(void *unused)
{
    (void)unused;
    pthread_exit(NULL);
}

/* A job that ends its thread costs the pool nothing. */
START_TEST(job_that_ends_its_thread)
{
    atomic_uint ran = 0;
    threadpool pool = new_pool(2);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(thpool_add_work(pool, end_thread, NULL), 0);
        ck_assert_int_eq(thpool_add_work(pool, count, &ran), 0);
    }
    thpool_wait(pool);
    ck_assert_uint_eq(atomic_load(&ran), 10);
    thpool_destroy(pool);
}
END_TEST

START_TEST(bad_arguments)
{
    atomic_uint ran = 0;
    weir_config config;
    threadpool pool = new_pool(1);
    errno = 0;
    ck_assert_int_eq(thpool_add_work(pool, NULL, NULL), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(thpool_add_work(NULL, count, &ran), -1);
    thpool_wait(NULL);
    thpool_pause(NULL);
    thpool_resume(NULL);
    thpool_destroy(NULL);
    ck_assert_int_eq(thpool_num_threads_working(NULL), 0);
    ck_assert_ptr_null(weir_thpool_pool(NULL));
    ck_assert_int_eq(weir_thpool_config(NULL, 1), EINVAL);
    ck_assert_int_eq(weir_thpool_config(&config, 1), 0);
    ck_assert_int_eq(weir_thpool_create(NULL, "x", &config), EINVAL);
    weir_test_log_capture();
    errno = 0;
    ck_assert_ptr_null(thpool_init(65537));
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "65536"));
    weir_test_log_release();
    thpool_destroy(pool);
    ck_assert_uint_eq(atomic_load(&ran), 0);
}
END_TEST

/* The sanitizers' own locks and thread tables do not survive a fork with threads: another may be inside the allocator.
 */
enum { CHILD_MAY_START_THREADS = !IS_SANITIZED };

static bool new_pool_works(void)
{
    atomic_uint ran = 0;
    threadpool pool = thpool_init(2);
    if (pool == NULL || thpool_add_work(pool, count, &ran) != 0)
        return false;
    thpool_wait(pool);
    thpool_destroy(pool);
    return atomic_load(&ran) == 1;
}

static int in_child(void *arg)
{
    threadpool pool = arg;
    atomic_uint ran = 0;
    errno = 0;
    bool refused = thpool_add_work(pool, count, &ran) == -1 && errno == ECHILD;
    refused = refused && thpool_num_threads_working(pool) == 0;
    thpool_pause(pool);
    thpool_resume(pool);
    thpool_destroy(pool);
    if (!refused || atomic_load(&ran) != 0)
        _exit(1);
    /* qemu-user gives up when the child of a process with threads starts one */
    bool may_start_threads = CHILD_MAY_START_THREADS && getenv("WEIR_TEST_EMULATED") == NULL;
    /* _exit: leak checks look for threads that exist in the parent only */
    _exit(!may_start_threads || new_pool_works() ? 0 : 2);
}

/* The original takes jobs there that never run, and hangs in destroy. */
START_TEST(fork_child)
{
    atomic_uint ran = 0;
    threadpool pool = new_pool(2);
    thpool_pause(pool);
    ck_assert_int_eq(thpool_add_work(pool, count, &ran), 0);
    int status = weir_test_in_child(in_child, pool);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    thpool_resume(pool);
    thpool_wait(pool);
    ck_assert_uint_eq(atomic_load(&ran), 1);
    thpool_destroy(pool);
}
END_TEST

/* Whichever allocation of the creation fails: there is no pool, and errno says why. */
START_TEST(no_memory)
{
    unsigned refused = 0;
    weir_test_log_capture();
    for (;; refused++) {
        atomic_store(&callocs, 0);
        atomic_store(&failing, refused + 1);
        errno = 0;
        threadpool pool = thpool_init(2);
        int error = errno;
        unsigned calls = atomic_load(&callocs);
        atomic_store(&failing, 0);
        if (calls <= refused) {
            ck_assert_ptr_nonnull(pool);
            thpool_destroy(pool);
            break;
        }
        ck_assert_ptr_null(pool);
        ck_assert_int_eq(error, ENOMEM);
    }
    weir_test_log_release();
    ck_assert_uint_ge(refused, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thpool");
    TCase *all = tcase_create("thpool");
    tcase_set_timeout(all, TEST_LIMIT_S);
    tcase_add_test(all, pools_are_independent);
    tcase_add_test(all, all_waiters_return);
    tcase_add_test(all, pause_lets_jobs_end);
    tcase_add_test(all, destroy_while_paused);
    tcase_add_test(all, a_thousand_threads);
    tcase_add_test(all, queue_without_bound);
    tcase_add_test(all, queue_with_bound);
    tcase_add_test(all, job_at_its_own_bound);
    tcase_add_test(all, environment);
    tcase_add_test(all, monitor);
    tcase_add_test(all, job_that_waits_for_its_pool);
    tcase_add_test(all, job_that_ends_its_thread);
    tcase_add_test(all, bad_arguments);
    tcase_add_test(all, no_memory);
    tcase_add_test(all, fork_child);
    suite_add_tcase(suite, all);
    return weir_test_main(suite);
}
