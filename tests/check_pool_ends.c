/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that end their thread, the hooks of workers, and processes that end while workers are busy. */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_support.h"

/* ---- hooks ---- */

struct hooks {
    atomic_uint starts;
    atomic_uint stops;
    atomic_uint strangers; /* stops on a thread without a start */
};

static _Thread_local bool has_started;

static void on_start(void *arg)
{
    struct hooks *hooks = arg;
    has_started = true;
    atomic_fetch_add(&hooks->starts, 1);
}

static void on_stop(void *arg)
{
    struct hooks *hooks = arg;
    atomic_fetch_add(&hooks->strangers, !has_started);
    has_started = false;
    atomic_fetch_add(&hooks->stops, 1);
}

static weir_config hooked(uint32_t limit, uint32_t depth, struct hooks *hooks)
{
    weir_config config = weir_test_fixed(limit, depth);
    config.on_worker_start = on_start;
    config.on_worker_stop = on_stop;
    config.hook_arg = hooks;
    return config;
}

static void assert_hooks(const struct hooks *hooks, unsigned least)
{
    ck_assert_uint_ge(atomic_load(&hooks->starts), least);
    ck_assert_uint_eq(atomic_load(&hooks->starts), atomic_load(&hooks->stops));
    ck_assert_uint_eq(atomic_load(&hooks->strangers), 0);
}

/* The start hook runs on each worker before its first job, the stop hook on the same worker before destroy returns. */
START_TEST(hooks_in_pairs)
{
    enum { WORKERS = 5 };
    struct weir_test_gate gate;
    struct hooks hooks = {0};
    weir_test_gate_init(&gate);
    weir_config config = hooked(WORKERS, 0, &hooks);
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, WORKERS);
    ck_assert_uint_eq(atomic_load(&hooks.starts), WORKERS);
    ck_assert_uint_eq(atomic_load(&hooks.stops), 0);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    assert_hooks(&hooks, WORKERS);
    ck_assert_uint_eq(atomic_load(&hooks.starts), WORKERS);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* They come in pairs as well when idle workers leave. */
START_TEST(hooks_when_idle_ones_leave)
{
    struct weir_test_gate gate;
    struct hooks hooks = {0};
    weir_test_gate_init(&gate);
    weir_config config = hooked(6, 0, &hooks);
    config.idle_timeout = 1000000;
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, 6);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(atomic_load(&hooks.stops) == 5);
    weir_test_pool_end(pool);
    assert_hooks(&hooks, 6);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- jobs that end their thread ---- */

static atomic_uint cleanups;

static void count_cleanup(void *arg)
{
    (void)arg;
    atomic_fetch_add(&cleanups, 1);
}

static weir_outcome exit_thread(void *arg)
{
    pthread_cleanup_push(count_cleanup, NULL);
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return WEIR_SUCCESS;
}

static weir_outcome cancel_oneself(void *arg)
{
    (void)arg;
    (void)pthread_cancel(pthread_self());
    pthread_testcancel();
    return WEIR_SUCCESS;
}

static weir_outcome leave_a_cancel_pending(void *arg)
{
    (void)arg;
    (void)pthread_cancel(pthread_self());
    return WEIR_SUCCESS;
}

static weir_fn *const enders[] = {exit_thread, cancel_oneself};

/* It costs neither its permit nor a worker: jobs behind it run, drain and destroy return, it counts as WEIR_IGNORE and
 * the stop hook runs. */
START_TEST(ended_threads)
{
    enum { JOBS = 200 };
    struct hooks hooks = {0};
    atomic_uint ran = 0;
    weir_config config = hooked(2, 2 * JOBS, &hooks);
    weir_pool *pool = weir_test_pool_of(&config);
    for (int i = 0; i < JOBS; i++) {
        weir_fn *fn = i % 4 == 0 ? enders[_i] : weir_test_count;
        ck_assert_int_eq(weir_pool_submit(pool, fn, &ran), 0);
    }
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.ignored, JOBS / 4);
    ck_assert_uint_eq(stats.succeeded, JOBS - JOBS / 4);
    ck_assert_uint_eq(stats.running + stats.in_flight, 0);
    ck_assert_uint_eq(atomic_load(&ran), JOBS - JOBS / 4);
    weir_test_pool_end(pool);
    assert_hooks(&hooks, JOBS / 4);
}
END_TEST

/* The last thing a pool does may be such a job. */
START_TEST(ended_thread_last)
{
    struct hooks hooks = {0};
    for (int round = 0; round < 50; round++) {
        weir_config config = hooked(1, 4, &hooks);
        weir_pool *pool = weir_test_pool_of(&config);
        ck_assert_int_eq(weir_pool_submit(pool, enders[_i], NULL), 0);
        ck_assert_int_eq(weir_pool_submit(pool, enders[_i], NULL), 0);
        weir_test_pool_end(pool);
    }
    assert_hooks(&hooks, 100);
}
END_TEST

/* A call, and a copied argument small or large, end with the thread. */
START_TEST(ended_thread_of_a_call)
{
    weir_outcome outcome = WEIR_SUCCESS;
    char large[200] = "";
    weir_pool *pool = weir_test_pool(1, 4);
    ck_assert_int_eq(weir_pool_call(pool, enders[_i], NULL, &outcome), 0);
    ck_assert_int_eq(outcome, WEIR_IGNORE);
    ck_assert_int_eq(weir_pool_submit_copy(pool, enders[_i], large, 10), 0);
    ck_assert_int_eq(weir_pool_submit_copy(pool, enders[_i], large, sizeof large), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(weir_test_stats(pool).ignored, 3);
    weir_test_pool_end(pool);
}
END_TEST

struct victim {
    struct weir_test_gate ready; /* the job waits here while it cannot be cancelled */
    pthread_t thread;
    int ends[2];
};

static weir_outcome block_on_a_pipe(void *arg)
{
    struct victim *victim = arg;
    char byte;
    victim->thread = pthread_self();
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    weir_test_gate_pass(&victim->ready);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    ssize_t got = read(victim->ends[0], &byte, 1);
    return got == 1 ? WEIR_SUCCESS : WEIR_DROPPED;
}

/* The program may cancel a thread whose job blocks for ever. */
START_TEST(cancelled_from_outside)
{
    struct victim victim;
    struct hooks hooks = {0};
    weir_test_gate_init(&victim.ready);
    ck_assert_int_eq(pipe(victim.ends), 0);
    weir_config config = hooked(1, 2, &hooks);
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_int_eq(weir_pool_submit(pool, block_on_a_pipe, &victim), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&victim.ready) == 1);
    weir_test_gate_open(&victim.ready);
    ck_assert_int_eq(pthread_cancel(victim.thread), 0);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    ck_assert_uint_eq(weir_test_stats(pool).ignored, 1);
    weir_test_pool_end(pool);
    assert_hooks(&hooks, 2);
    (void)close(victim.ends[0]);
    (void)close(victim.ends[1]);
    weir_test_gate_destroy(&victim.ready);
}
END_TEST

/* A cancellation that is still pending when the job returns never acts inside the library: not in a trace, not in a
 * hook. It may take a later job's thread, at that job's cancellation points, and nothing else. */
static void cancellable_trace(const weir_trace_event *event, void *arg)
{
    (void)event;
    (void)arg;
    pthread_testcancel();
}

static void cancellable_stop(void *arg)
{
    pthread_testcancel();
    on_stop(arg);
}

static int start_alternating(void *state, const struct weir_config *config)
{
    (void)config;
    *(uint32_t *)state = 0;
    return 0;
}

static uint32_t alternate(void *state, const weir_sample *sample)
{
    uint32_t *turn = state;
    (void)sample;
    *turn = !*turn;
    return *turn != 0 ? 3 : 4;
}

START_TEST(pending_cancellation)
{
    static const weir_estimator_class alternating = {
        .name = "alternating", .state_size = 8, .init = start_alternating, .update = alternate};
    enum { JOBS = 300 };
    struct hooks hooks = {0};
    weir_config config = hooked(4, JOBS, &hooks);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &alternating;
    config.trace = cancellable_trace;
    config.on_worker_stop = cancellable_stop;
    weir_pool *pool = weir_test_pool_of(&config);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(weir_pool_submit(pool, i % 10 == 0 ? leave_a_cancel_pending : weir_test_nothing, NULL), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.succeeded, JOBS);
    ck_assert_uint_eq(stats.in_flight, 0);
    weir_test_pool_end(pool);
    assert_hooks(&hooks, 1);
}
END_TEST

/* A job that switches cancellation off, or to asynchronous, leaves that to no other job. */
static weir_outcome upset_cancellation(void *arg)
{
    (void)arg;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    (void)pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return WEIR_SUCCESS;
}

static weir_outcome tell_cancellation(void *arg)
{
    int *states = arg;
    (void)pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &states[1]);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &states[0]);
    return WEIR_SUCCESS;
}

START_TEST(cancellation_state_of_a_job)
{
    weir_pool *pool = weir_test_pool(1, 1);
    for (int round = 0; round < 3; round++) {
        int states[2] = {-1, -1};
        ck_assert_int_eq(weir_pool_call(pool, tell_cancellation, states, NULL), 0);
        ck_assert_int_eq(states[0], PTHREAD_CANCEL_ENABLE);
        ck_assert_int_eq(states[1], PTHREAD_CANCEL_DEFERRED);
        ck_assert_int_eq(weir_pool_call(pool, upset_cancellation, NULL, NULL), 0);
    }
    weir_test_pool_end(pool);
}
END_TEST

/* ---- processes that end ---- */

static weir_pool *left_behind; /* reachable, so no leak of a process that ends on purpose */
static struct weir_test_gate never_opened;
static atomic_uint busy;

static weir_outcome spin(void *arg)
{
    (void)arg;
    atomic_fetch_add(&busy, 1);
    for (;;)
        (void)atomic_load(&busy);
    return WEIR_SUCCESS;
}

static weir_outcome exit_process(void *status)
{
    exit(*(int *)status);
    return WEIR_SUCCESS;
}

static bool occupy_all(void)
{
    weir_config config = weir_test_fixed(8, 8);
    weir_test_gate_init(&never_opened);
    if (weir_pool_create(&left_behind, "left", &config) != 0)
        return false;
    for (int i = 0; i < 4; i++) {
        if (weir_pool_submit(left_behind, weir_test_pass, &never_opened) != 0)
            return false;
        if (i < 2 && weir_pool_submit(left_behind, spin, NULL) != 0)
            return false;
    }
    WEIR_TEST_UNTIL(atomic_load(&busy) == 2 && weir_test_gate_waiting(&never_opened) == 4);
    return true;
}

static int end_by_exit(void *arg)
{
    (void)arg;
    return occupy_all() ? 7 : 1;
}

static int end_by_job(void *arg)
{
    if (!occupy_all() || weir_pool_submit(left_behind, exit_process, arg) != 0)
        return 1;
    for (;;)
        weir_test_yield();
    return 1;
}

static int end_idle(void *arg)
{
    (void)arg;
    weir_config config = weir_test_fixed(2, 8);
    if (weir_pool_create(&left_behind, "left", &config) != 0)
        return 1;
    return weir_pool_call(left_behind, weir_test_nothing, NULL, NULL) == 0 ? 7 : 1;
}

/* exit ends the process at once, with blocked, spinning and idle workers, from the main thread or from a job: the
 * library has no handler that would join. */
START_TEST(process_exit)
{
    static int (*const bodies[])(void *) = {end_by_exit, end_by_job, end_idle};
    int code = 7;
    for (unsigned round = weir_test_scaled(10, 1); round > 0; round--) {
        int status = weir_test_in_child(bodies[_i], &code);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %#x", (unsigned)status);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool ends");
    TCase *hook_tests = tcase_create("hooks");
    tcase_set_timeout(hook_tests, TEST_LIMIT_S);
    tcase_add_test(hook_tests, hooks_in_pairs);
    tcase_add_test(hook_tests, hooks_when_idle_ones_leave);
    suite_add_tcase(suite, hook_tests);
    TCase *ends = tcase_create("jobs that end their thread");
    tcase_set_timeout(ends, TEST_LIMIT_S);
    tcase_add_loop_test(ends, ended_threads, 0, 2);
    tcase_add_loop_test(ends, ended_thread_last, 0, 2);
    tcase_add_loop_test(ends, ended_thread_of_a_call, 0, 2);
    tcase_add_test(ends, cancelled_from_outside);
    tcase_add_test(ends, pending_cancellation);
    tcase_add_test(ends, cancellation_state_of_a_job);
    suite_add_tcase(suite, ends);
    TCase *exits = tcase_create("exit");
    tcase_set_timeout(exits, TEST_LIMIT_S);
    tcase_add_loop_test(exits, process_exit, 0, 3);
    suite_add_tcase(suite, exits);
    return weir_test_main(suite);
}
