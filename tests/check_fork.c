/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A process that forks while it has pools: what the child can do with them, and that it can have its own. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_support.h"
#include "sanitized.h"

/* The sanitizers' own locks and thread tables do not survive a fork with threads: there the children do less. */
enum { CHILD_MAY_START_THREADS = !IS_THREAD_SANITIZED };

/* What a child reports by its exit code: the line that went wrong cannot be asserted there. */
enum { CHILD_IS_FINE = 0, CALLS_WRONG = 11, SLOW = 12, DESTROY_WRONG = 13, NEW_POOL_WRONG = 14 };

/* Every call on an inherited pool and limiter says ECHILD. */
static bool all_calls_refused(weir_pool *pool, weir_permit *held)
{
    weir_permit permit = {0};
    weir_stats stats = {0};
    weir_partition_stats part = {0};
    weir_limiter *limiter = weir_pool_limiter(pool);
    const int results[] = {
        weir_pool_submit(pool, weir_test_nothing, NULL),
        weir_pool_trysubmit(pool, weir_test_nothing, NULL),
        weir_pool_timedsubmit(pool, weir_test_nothing, NULL, WEIR_FOREVER),
        weir_pool_submit_copy(pool, weir_test_nothing, "", 1),
        weir_pool_submit_copy(pool, weir_test_nothing, (char[100]){0}, 100),
        weir_pool_trysubmit_copy(pool, weir_test_nothing, (char[100]){0}, 100),
        weir_pool_call(pool, weir_test_nothing, NULL, NULL),
        weir_pool_drain(pool, WEIR_FOREVER),
        weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER),
        weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER),
        weir_pool_pause(pool),
        weir_pool_resume(pool),
        weir_pool_stats(pool, &stats),
        weir_limiter_acquire(limiter, &permit),
        weir_limiter_tryacquire(limiter, &permit),
        weir_limiter_timedacquire(limiter, &permit, WEIR_FOREVER),
        weir_limiter_acquire_many(limiter, &permit, 1, NULL, WEIR_FOREVER),
        weir_limiter_release(limiter, held, WEIR_SUCCESS),
        weir_limiter_freeze(limiter),
        weir_limiter_thaw(limiter),
        weir_limiter_stats(limiter, &stats),
        weir_pool_partition_stats(pool, NULL, &part),
        weir_limiter_partition_stats(limiter, NULL, &part),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i] != ECHILD)
            return false;
    }
    return true;
}

static bool new_pool_works(void)
{
    atomic_uint ran = 0;
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(3, 10);
    if (weir_pool_create(&pool, "child", &config) != 0)
        return false;
    for (int i = 0; i < 10; i++) {
        if (weir_pool_submit(pool, weir_test_count, &ran) != 0)
            return false;
    }
    bool called = weir_pool_call(pool, weir_test_count, &ran, NULL) == 0;
    return called && weir_pool_drain(pool, WEIR_FOREVER) == 0 && weir_pool_destroy(pool) == 0 && ran == 11;
}

struct inherited {
    weir_pool *pool;
    weir_permit permit; /* held by the parent */
    bool is_loaded;     /* other threads of the parent allocate and free at the moment of the fork */
};

static int try_everything(struct inherited *inherited)
{
    uint64_t start = weir_now_ns();
    if (!all_calls_refused(inherited->pool, &inherited->permit))
        return CALLS_WRONG;
    if (weir_now_ns() - start > weir_test_patience_ns(UINT64_C(20000000000)))
        return SLOW;
    if (IS_SANITIZED && inherited->is_loaded)
        return CHILD_IS_FINE;
    if (CHILD_MAY_START_THREADS && !new_pool_works())
        return NEW_POOL_WRONG;
    if (weir_pool_destroy(inherited->pool) != 0)
        return DESTROY_WRONG;
    return !CHILD_MAY_START_THREADS || new_pool_works() ? CHILD_IS_FINE : NEW_POOL_WRONG;
}

static int use_everything(void *arg)
{
    int code = try_everything(arg);
    if (IS_SANITIZED)
        _exit(code); /* their leak checks look for threads that exist in the parent only */
    if (((struct inherited *)arg)->is_loaded)
        weir_test_end_unseen(code);
    return code;
}

static int do_nothing(void *arg)
{
    (void)arg;
    return CHILD_IS_FINE;
}

static void assert_fine(int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CHILD_IS_FINE)
        ck_abort_msg("the child ended with status %#x", (unsigned)status);
}

/* In the child every call on an inherited pool says ECHILD at once, destroy frees it and returns 0, a new pool works
 * and exit works; in the parent nothing has changed. The pool is idle, busy with a queue, or has never had work. */
START_TEST(inherited_pool)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    struct inherited inherited = {.pool = weir_test_pool(3, 600)};
    ck_assert_int_eq(weir_limiter_acquire(weir_pool_limiter(inherited.pool), &inherited.permit), 0);
    if (_i == 1)
        ck_assert_int_eq(weir_pool_call(inherited.pool, weir_test_nothing, NULL, NULL), 0);
    if (_i == 2) {
        weir_test_occupy(inherited.pool, &gate, 2);
        for (int i = 0; i < 600; i++)
            ck_assert_int_eq(weir_pool_submit(inherited.pool, weir_test_nothing, NULL), 0);
    }
    assert_fine(weir_test_in_child(use_everything, &inherited));
    if (!IS_SANITIZED)
        assert_fine(weir_test_in_child(do_nothing, NULL));
    ck_assert_int_eq(weir_limiter_release(weir_pool_limiter(inherited.pool), &inherited.permit, WEIR_SUCCESS), 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_call(inherited.pool, weir_test_nothing, NULL, NULL), 0);
    weir_test_pool_end(inherited.pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

static int use_limiter(void *arg)
{
    weir_permit permit = {0};
    if (weir_limiter_acquire(arg, &permit) != ECHILD)
        return CALLS_WRONG;
    return weir_limiter_destroy(arg) == 0 ? CHILD_IS_FINE : DESTROY_WRONG;
}

/* The same for a limiter of its own, although a permit of it is out. */
START_TEST(inherited_limiter)
{
    weir_limiter *limiter = NULL;
    weir_permit permit = {0};
    weir_config config = weir_test_fixed(2, 0);
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", &config), 0);
    ck_assert_int_eq(weir_limiter_acquire(limiter, &permit), 0);
    assert_fine(weir_test_in_child(use_limiter, limiter));
    ck_assert_int_eq(weir_limiter_destroy(limiter), EBUSY);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

static int create_first_and_fork(void *arg)
{
    struct inherited inherited = {.pool = NULL};
    weir_config config = weir_test_fixed(2, 2);
    (void)arg;
    if (!new_pool_works() || weir_pool_create(&inherited.pool, "child", &config) != 0)
        return NEW_POOL_WRONG;
    if (weir_limiter_acquire(weir_pool_limiter(inherited.pool), &inherited.permit) != 0)
        return NEW_POOL_WRONG;
    int status = weir_test_in_child(use_everything, &inherited);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CHILD_IS_FINE)
        return WIFEXITED(status) ? WEXITSTATUS(status) : CALLS_WRONG;
    if (weir_limiter_release(weir_pool_limiter(inherited.pool), &inherited.permit, WEIR_SUCCESS) != 0)
        return CALLS_WRONG;
    return weir_pool_destroy(inherited.pool) == 0 ? CHILD_IS_FINE : DESTROY_WRONG;
}

/* A child may fork again: its own pool is then inherited by the grandchild and goes on in the child. */
START_TEST(grandchild)
{
    weir_pool *pool = weir_test_pool(2, 2);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    assert_fine(weir_test_in_child(create_first_and_fork, NULL));
    weir_test_pool_end(pool);
}
END_TEST

/* ---- a job that forks ---- */

static weir_outcome fork_inside(void *arg)
{
    struct inherited *inherited = arg;
    pid_t child = fork();
    if (child == 0)
        _exit(try_everything(inherited));
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == CHILD_IS_FINE ? WEIR_SUCCESS : WEIR_DROPPED;
}

/* A job may fork: in its child the inherited pool is as dead as elsewhere, and a new pool is not taken for it. */
START_TEST(fork_from_a_job)
{
    weir_outcome outcome = WEIR_IGNORE;
    struct inherited inherited = {.pool = weir_test_pool(2, 2)};
    ck_assert_int_eq(weir_limiter_acquire(weir_pool_limiter(inherited.pool), &inherited.permit), 0);
    ck_assert_int_eq(weir_pool_call(inherited.pool, fork_inside, &inherited, &outcome), 0);
    ck_assert_int_eq(outcome, WEIR_SUCCESS);
    ck_assert_int_eq(weir_limiter_release(weir_pool_limiter(inherited.pool), &inherited.permit, WEIR_SUCCESS), 0);
    weir_test_pool_end(inherited.pool);
}
END_TEST

/* ---- under load ---- */

struct load {
    weir_pool *pool;
    atomic_bool stop;
    atomic_uint accepted;
    atomic_uint ran;
};

static void *submit_load(void *arg)
{
    struct load *load = arg;
    char large[100] = {0};
    while (!atomic_load(&load->stop)) {
        bool accepted = weir_pool_submit(load->pool, weir_test_count, &load->ran) == 0;
        atomic_fetch_add(&load->accepted, accepted);
        (void)weir_pool_submit_copy(load->pool, weir_test_nothing, large, sizeof large);
        (void)weir_pool_submit_copy(load->pool, weir_test_nothing, large, 20);
    }
    return NULL;
}

/* Forks in a loop while submitters and workers are in the middle of everything: each child gets its errors, frees the
 * pool, runs its own and exits; the parent loses no job. */
START_TEST(fork_under_load)
{
    enum { SUBMITTERS = 2 };
    unsigned forks = weir_test_rounds(150, 5);
    struct load load = {.stop = false};
    pthread_t threads[SUBMITTERS];
    weir_config config = weir_test_fixed(3, 700);
    config.idle_timeout = 100000;
    struct inherited inherited = {.pool = weir_test_pool_of(&config), .is_loaded = true};
    ck_assert_int_eq(weir_limiter_acquire(weir_pool_limiter(inherited.pool), &inherited.permit), 0);
    load.pool = inherited.pool;
    for (int i = 0; i < SUBMITTERS; i++)
        threads[i] = weir_test_thread(submit_load, &load);
    for (unsigned i = 0; i < forks; i++)
        assert_fine(weir_test_in_child(use_everything, &inherited));
    atomic_store(&load.stop, true);
    for (int i = 0; i < SUBMITTERS; i++)
        (void)weir_test_join(threads[i]);
    ck_assert_int_eq(weir_limiter_release(weir_pool_limiter(inherited.pool), &inherited.permit, WEIR_SUCCESS), 0);
    weir_test_pool_end(inherited.pool);
    ck_assert_uint_eq(atomic_load(&load.ran), atomic_load(&load.accepted));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tests = tcase_create("fork");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_loop_test(tests, inherited_pool, 0, 3);
    tcase_add_test(tests, inherited_limiter);
    if (CHILD_MAY_START_THREADS)
        tcase_add_test(tests, grandchild);
    tcase_add_test(tests, fork_from_a_job);
    tcase_add_test(tests, fork_under_load);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
