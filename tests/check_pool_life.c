/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A pool's life: drain, shutdown, destroy, pause and resume, and callers that share its limiter. */

#include <errno.h>
#include <stdint.h>

#include "pool_support.h"

enum { SOON_NS = 20000000 }; /* a deadline that passes */

/* ---- threads that call while the test looks on ---- */

struct caller {
    weir_pool *pool;
    int (*call)(weir_pool *pool);
    int result;
    atomic_bool returned;
    pthread_t thread;
};

static void *caller_thread(void *arg)
{
    struct caller *caller = arg;
    caller->result = caller->call(caller->pool);
    atomic_store(&caller->returned, true);
    return NULL;
}

static void start_caller(struct caller *caller, weir_pool *pool, int (*call)(weir_pool *))
{
    caller->pool = pool;
    caller->call = call;
    caller->result = -1;
    atomic_store(&caller->returned, false);
    caller->thread = weir_test_thread(caller_thread, caller);
}

static int call_drain(weir_pool *pool)
{
    return weir_pool_drain(pool, WEIR_FOREVER);
}

static int call_finish(weir_pool *pool)
{
    return weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER);
}

static int call_cancel(weir_pool *pool)
{
    return weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER);
}

static int call_submit(weir_pool *pool)
{
    return weir_pool_submit(pool, weir_test_nothing, NULL);
}

static int call_call(weir_pool *pool)
{
    return weir_pool_call(pool, weir_test_nothing, NULL, NULL);
}

/* ---- drain ---- */

struct chain {
    weir_pool *pool;
    atomic_uint *ran;
    unsigned left;
};

static weir_outcome run_chain(void *arg)
{
    struct chain chain = *(struct chain *)arg;
    atomic_fetch_add(chain.ran, 1);
    if (chain.left-- > 0)
        (void)weir_pool_submit_copy(chain.pool, run_chain, &chain, sizeof chain);
    return WEIR_SUCCESS;
}

/* drain waits for admitted work and for work that it spawns; the pool stays open. */
START_TEST(drain_waits_for_spawned_work)
{
    atomic_uint ran = 0;
    weir_pool *pool = weir_test_pool(2, 8);
    struct chain chain = {.pool = pool, .ran = &ran, .left = 99};
    ck_assert_int_eq(weir_pool_drain(pool, 0), 0);
    ck_assert_int_eq(weir_pool_submit_copy(pool, run_chain, &chain, sizeof chain), 0);
    ck_assert_int_eq(weir_pool_submit_copy(pool, run_chain, &chain, sizeof chain), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 200);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 201);
    weir_test_pool_end(pool);
}
END_TEST

/* drain gives up at its deadline and leaves the pool as it is. */
START_TEST(drain_deadline)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 2);
    weir_test_occupy(pool, &gate, 1);
    uint64_t deadline = weir_after_ns(SOON_NS);
    ck_assert_int_eq(weir_pool_drain(pool, deadline), ETIMEDOUT);
    ck_assert_uint_ge(weir_now_ns(), deadline);
    ck_assert_int_eq(weir_pool_drain(pool, 0), ETIMEDOUT);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* One end of work releases all who wait for it. */
START_TEST(drain_releases_all)
{
    enum { WAITERS = 4 };
    struct weir_test_gate gate;
    struct caller waiters[WAITERS];
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 2);
    for (int round = 0; round < 20; round++) {
        weir_test_gate_close(&gate);
        weir_test_occupy(pool, &gate, 1);
        for (int i = 0; i < WAITERS; i++)
            start_caller(&waiters[i], pool, call_drain);
        for (int i = 0; i < WAITERS; i++)
            ck_assert(!atomic_load(&waiters[i].returned));
        weir_test_gate_open(&gate);
        for (int i = 0; i < WAITERS; i++) {
            (void)weir_test_join(waiters[i].thread);
            ck_assert_int_eq(waiters[i].result, 0);
        }
    }
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- shutdown ---- */

/* WEIR_FINISH runs what is queued; afterwards every submit says ESHUTDOWN and a repeated shutdown 0. */
START_TEST(finish_runs_the_queue)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 50);
    weir_test_occupy(pool, &gate, 2);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 50);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_count, &ran, 0), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_submit_copy(pool, weir_test_count, "", 1), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_submit_copy(pool, weir_test_count, (char[100]){0}, 100), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_trysubmit_copy(pool, weir_test_count, (char[100]){0}, 100), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_FINISH, 0), 0);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, 0), 0);
    ck_assert_int_eq(weir_pool_drain(pool, 0), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.succeeded, 52);
    ck_assert_uint_eq(stats.cancelled, 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 50);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* WEIR_CANCEL empties the queue and counts each job that never ran; copied arguments go with it. */
START_TEST(cancel_empties_the_queue)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    struct caller cancelling;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 1000);
    weir_test_occupy(pool, &gate, 2);
    for (int i = 0; i < 600; i++) {
        int error = i % 2 == 0 ? weir_pool_submit(pool, weir_test_count, &ran)
                               : weir_pool_submit_copy(pool, weir_test_nothing, (char[100]){0}, i % 4 == 1 ? 100 : 20);
        ck_assert_int_eq(error, 0);
    }
    start_caller(&cancelling, pool, call_cancel);
    WEIR_TEST_UNTIL(weir_test_stats(pool).cancelled == 600);
    ck_assert_uint_eq(weir_test_stats(pool).queued, 0);
    ck_assert_uint_eq(weir_test_stats(pool).running, 2);
    ck_assert(!atomic_load(&cancelling.returned));
    weir_test_gate_open(&gate);
    (void)weir_test_join(cancelling.thread);
    ck_assert_int_eq(cancelling.result, 0);
    ck_assert_uint_eq(atomic_load(&ran), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.submitted, 602);
    ck_assert_uint_eq(weir_test_accounted(&stats), 602);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A call whose job is cancelled returns ECANCELED. */
START_TEST(cancelled_call)
{
    struct weir_test_gate gate;
    struct caller called;
    struct caller cancelling;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 2);
    weir_test_occupy(pool, &gate, 1);
    start_caller(&called, pool, call_call);
    WEIR_TEST_UNTIL(weir_test_stats(pool).queued == 1);
    start_caller(&cancelling, pool, call_cancel);
    (void)weir_test_join(called.thread);
    ck_assert_int_eq(called.result, ECANCELED);
    weir_test_gate_open(&gate);
    (void)weir_test_join(cancelling.thread);
    ck_assert_int_eq(cancelling.result, 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A shutdown with a deadline: ETIMEDOUT leaves the pool shutting down; a second one waits on and returns 0. */
START_TEST(shutdown_deadline)
{
    struct weir_test_gate gate;
    weir_shutdown how = _i == 0 ? WEIR_FINISH : WEIR_CANCEL;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 2);
    weir_test_occupy(pool, &gate, 1);
    uint64_t deadline = weir_after_ns(SOON_NS);
    ck_assert_int_eq(weir_pool_shutdown(pool, how, deadline), ETIMEDOUT);
    ck_assert_uint_ge(weir_now_ns(), deadline);
    ck_assert_uint_eq(weir_test_stats(pool).running, 1);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_shutdown(pool, how, 0), ETIMEDOUT);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_shutdown(pool, how, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* WEIR_CANCEL after WEIR_FINISH cancels what is still queued, and the one who waits for the finish returns 0 too. */
START_TEST(cancel_after_finish)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    struct caller finishing;
    struct caller cancelling;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 5);
    weir_test_occupy(pool, &gate, 1);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    start_caller(&finishing, pool, call_finish);
    WEIR_TEST_UNTIL(weir_pool_trysubmit(pool, weir_test_nothing, NULL) == ESHUTDOWN);
    ck_assert_uint_eq(weir_test_stats(pool).queued, 5);
    start_caller(&cancelling, pool, call_cancel);
    WEIR_TEST_UNTIL(weir_test_stats(pool).cancelled == 5);
    weir_test_gate_open(&gate);
    (void)weir_test_join(finishing.thread);
    (void)weir_test_join(cancelling.thread);
    ck_assert_int_eq(finishing.result, 0);
    ck_assert_int_eq(cancelling.result, 0);
    ck_assert_uint_eq(atomic_load(&ran), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Concurrent shutdowns of both kinds all get their answer. */
START_TEST(concurrent_shutdowns)
{
    enum { CALLERS = 6 };
    struct weir_test_gate gate;
    struct caller callers[CALLERS];
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 8);
    weir_test_occupy(pool, &gate, 2);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    for (int i = 0; i < CALLERS; i++)
        start_caller(&callers[i], pool, i % 3 == 0 ? call_cancel : i % 3 == 1 ? call_finish : call_drain);
    weir_test_gate_open(&gate);
    for (int i = 0; i < CALLERS; i++) {
        (void)weir_test_join(callers[i].thread);
        ck_assert_int_eq(callers[i].result, 0);
    }
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(weir_test_accounted(&stats), 10);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Shutdown sends all blocked submitters away with ESHUTDOWN while jobs still run. */
START_TEST(shutdown_releases_submitters)
{
    enum { BLOCKED = 4 };
    struct weir_test_gate gate;
    struct caller blocked[BLOCKED];
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 1);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    for (int i = 0; i < BLOCKED; i++)
        start_caller(&blocked[i], pool, i % 2 == 0 ? call_submit : call_call);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == BLOCKED);
    ck_assert_int_eq(weir_pool_shutdown(pool, _i == 0 ? WEIR_FINISH : WEIR_CANCEL, 0), ETIMEDOUT);
    for (int i = 0; i < BLOCKED; i++) {
        (void)weir_test_join(blocked[i].thread);
        ck_assert_int_eq(blocked[i].result, ESHUTDOWN);
    }
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- from inside ---- */

struct inside {
    weir_pool *pool;
    int results[6];
    weir_stats stats;
};

static weir_outcome wait_inside(void *arg)
{
    struct inside *inside = arg;
    inside->results[0] = weir_pool_drain(inside->pool, WEIR_FOREVER);
    inside->results[1] = weir_pool_drain(inside->pool, 0);
    inside->results[2] = weir_pool_shutdown(inside->pool, WEIR_FINISH, WEIR_FOREVER);
    inside->results[3] = weir_pool_shutdown(inside->pool, WEIR_CANCEL, 0);
    inside->results[4] = weir_pool_destroy(inside->pool);
    inside->results[5] = weir_pool_stats(inside->pool, &inside->stats);
    return WEIR_SUCCESS;
}

/* A job that drains, shuts down or destroys its own pool gets EDEADLK and nothing happens, whatever the limit. */
START_TEST(waiting_for_oneself)
{
    weir_pool *pool = weir_test_pool((uint32_t)_i, 2);
    struct inside inside = {.pool = pool};
    ck_assert_int_eq(weir_pool_call(pool, wait_inside, &inside, NULL), 0);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(inside.results[i], EDEADLK);
    ck_assert_int_eq(inside.results[5], 0);
    ck_assert_uint_eq(inside.stats.running, 1);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    weir_test_pool_end(pool);
}
END_TEST

static weir_outcome use_the_other(void *arg)
{
    struct inside *inside = arg;
    inside->results[0] = weir_pool_call(inside->pool, weir_test_nothing, NULL, NULL);
    inside->results[1] = weir_pool_drain(inside->pool, WEIR_FOREVER);
    inside->results[2] = weir_pool_destroy(inside->pool);
    return WEIR_SUCCESS;
}

/* Another pool is not its own: a job may call, drain and destroy it. */
START_TEST(waiting_for_another)
{
    weir_pool *outer = weir_test_pool(1, 1);
    struct inside inside = {.pool = weir_test_pool(1, 1), .results = {-1, -1, -1}};
    ck_assert_int_eq(weir_pool_call(outer, use_the_other, &inside, NULL), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(inside.results[i], 0);
    weir_test_pool_end(outer);
}
END_TEST

/* ---- destroy ---- */

/* destroy runs what is queued. A pool that never had work has nothing to wait for. */
START_TEST(destroy_finishes)
{
    atomic_uint ran = 0;
    weir_test_pool_end(weir_test_pool(4, 4));
    weir_pool *pool = weir_test_pool(2, 500);
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 500);
}
END_TEST

/* Hundreds of idle workers, each in its long keep-alive wait, do not make destroy slow. */
START_TEST(destroy_with_many_idle)
{
    enum { WORKERS = 256 };
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_config config = weir_test_fixed(WORKERS, WORKERS);
    config.idle_timeout = UINT64_C(3600000000000);
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, WORKERS);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(weir_test_stats(pool).idle == WORKERS);
    uint64_t start = weir_now_ns();
    weir_test_pool_end(pool);
    ck_assert_uint_lt(weir_now_ns() - start, weir_test_patience_ns(UINT64_C(20000000000)));
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Create, a few short jobs, destroy, many times: no wake-up of a leaving worker is lost. */
START_TEST(create_and_destroy)
{
    unsigned rounds = weir_test_rounds(2000, 20);
    for (unsigned round = 0; round < rounds; round++) {
        atomic_uint ran = 0;
        weir_config config = weir_test_fixed(4, 16);
        weir_pool *pool = NULL;
        if (weir_pool_create(&pool, "round", &config) != 0)
            ck_abort_msg("create, round %u", round);
        for (int i = 0; i < 17; i++) {
            if (weir_pool_submit(pool, weir_test_count, &ran) != 0)
                ck_abort_msg("submit, round %u", round);
        }
        if (weir_pool_destroy(pool) != 0 || atomic_load(&ran) != 17)
            ck_abort_msg("round %u: %u of 17 ran", round, atomic_load(&ran));
    }
}
END_TEST

/* ---- pause ---- */

/* Paused, no job starts and running ones go on; jobs are queued up to D; resume starts them. Both are idempotent. */
START_TEST(pause_and_resume)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 3);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), EAGAIN);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(weir_test_stats(pool).succeeded == 1);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), EAGAIN);
    ck_assert_int_eq(weir_pool_drain(pool, weir_after_ns(SOON_NS)), ETIMEDOUT);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.queued, 3);
    ck_assert_uint_eq(stats.running, 0);
    ck_assert_uint_eq(atomic_load(&ran), 0);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 3);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A pool that was paused before its first job starts none; with a blocked submitter it resumes in order. */
START_TEST(paused_from_the_start)
{
    struct caller blocked;
    weir_pool *pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    start_caller(&blocked, pool, call_submit);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 1);
    ck_assert_uint_eq(weir_test_stats(pool).started, 0);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    (void)weir_test_join(blocked.thread);
    ck_assert_int_eq(blocked.result, 0);
    weir_test_pool_end(pool);
}
END_TEST

/* shutdown(WEIR_FINISH) and destroy resume a paused pool; shutdown(WEIR_CANCEL) cancels what it holds. */
START_TEST(paused_to_the_end)
{
    atomic_uint ran = 0;
    weir_pool *pool = weir_test_pool(2, 8);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    if (_i == 0)
        ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER), 0);
    else if (_i == 1)
        ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), _i == 1 ? 0 : 8);
}
END_TEST

/* ---- the pool's limiter ---- */

/* Permits of direct callers count against the pool's jobs; destroy says EBUSY as long as one is out. */
START_TEST(shared_limit)
{
    struct weir_test_gate gate;
    weir_permit permits[2] = {0};
    weir_permit none = {0};
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(3, 8);
    weir_limiter *limiter = weir_pool_limiter(pool);
    ck_assert_int_eq(weir_limiter_acquire(limiter, &permits[0]), 0);
    ck_assert_int_eq(weir_limiter_acquire(limiter, &permits[1]), 0);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.running, 1);
    ck_assert_uint_eq(stats.queued, 1);
    ck_assert_uint_eq(stats.in_flight, 3);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &none), EAGAIN);
    ck_assert_int_eq(weir_limiter_release(limiter, &permits[0], WEIR_SUCCESS), 0);
    WEIR_TEST_UNTIL(weir_test_stats(pool).succeeded == 1);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_destroy(pool), EBUSY);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), ESHUTDOWN);
    ck_assert_int_eq(weir_limiter_release(limiter, &permits[1], WEIR_SUCCESS), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A limiter's waiter that was there first gets its permit before a job that came later, and a job that was there first
 * before a waiter that came later. */
struct waiter {
    weir_limiter *limiter;
    struct weir_test_record *record;
    int result;
};

static void *acquire_thread(void *arg)
{
    struct waiter *waiter = arg;
    weir_permit permit = {0};
    waiter->result = weir_limiter_acquire(waiter->limiter, &permit);
    weir_test_record_add(waiter->record, 2);
    if (waiter->result == 0)
        waiter->result = weir_limiter_release(waiter->limiter, &permit, WEIR_SUCCESS);
    return NULL;
}

static struct weir_test_record order = WEIR_TEST_RECORD_INIT;

static weir_outcome record_job(void *arg)
{
    weir_test_record_add(&order, *(unsigned *)arg);
    return WEIR_SUCCESS;
}

START_TEST(shared_order)
{
    unsigned first = 1;
    unsigned last = 3;
    weir_permit held = {0};
    order.count = 0;
    weir_pool *pool = weir_test_pool(1, 8);
    struct waiter waiter = {.limiter = weir_pool_limiter(pool), .record = &order, .result = -1};
    ck_assert_int_eq(weir_limiter_acquire(waiter.limiter, &held), 0);
    ck_assert_int_eq(weir_pool_submit(pool, record_job, &first), 0);
    pthread_t thread = weir_test_thread(acquire_thread, &waiter);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 1);
    ck_assert_int_eq(weir_pool_submit(pool, record_job, &last), 0);
    ck_assert_int_eq(weir_limiter_release(waiter.limiter, &held, WEIR_SUCCESS), 0);
    (void)weir_test_join(thread);
    ck_assert_int_eq(waiter.result, 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(order.count, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(order.values[i], i + 1);
    weir_test_pool_end(pool);
}
END_TEST

static void add_shutdown_tests(Suite *suite)
{
    TCase *tests = tcase_create("shutdown");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, finish_runs_the_queue);
    tcase_add_test(tests, cancel_empties_the_queue);
    tcase_add_test(tests, cancelled_call);
    tcase_add_loop_test(tests, shutdown_deadline, 0, 2);
    tcase_add_test(tests, cancel_after_finish);
    tcase_add_test(tests, concurrent_shutdowns);
    tcase_add_loop_test(tests, shutdown_releases_submitters, 0, 2);
    tcase_add_loop_test(tests, waiting_for_oneself, 1, 3);
    tcase_add_test(tests, waiting_for_another);
    tcase_add_test(tests, destroy_finishes);
    tcase_add_test(tests, destroy_with_many_idle);
    tcase_add_test(tests, create_and_destroy);
    suite_add_tcase(suite, tests);
}

int main(void)
{
    Suite *suite = suite_create("pool life");
    TCase *drains = tcase_create("drain");
    tcase_set_timeout(drains, TEST_LIMIT_S);
    tcase_add_test(drains, drain_waits_for_spawned_work);
    tcase_add_test(drains, drain_deadline);
    tcase_add_test(drains, drain_releases_all);
    suite_add_tcase(suite, drains);
    add_shutdown_tests(suite);
    TCase *pauses = tcase_create("pause and sharing");
    tcase_set_timeout(pauses, TEST_LIMIT_S);
    tcase_add_test(pauses, pause_and_resume);
    tcase_add_test(pauses, paused_from_the_start);
    tcase_add_loop_test(pauses, paused_to_the_end, 0, 3);
    tcase_add_test(pauses, shared_limit);
    tcase_add_test(pauses, shared_order);
    suite_add_tcase(suite, pauses);
    return weir_test_main(suite);
}
