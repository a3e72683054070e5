/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* How many workers are woken, who notices when that was too few, and the inbox. No time is asserted: a job that waits
 * for another one tells whether that one was started. WEIR_TEST_SLOW divides the numbers of rounds. */

#include <errno.h>
#include <string.h>

#include "limiter/limiter.h"
#include "pool/pool.h"
#include "pool_support.h"

/* ---- a guess that was wrong ---- */

/* So many jobs without content that the pool takes jobs for short. */
static void flood(weir_pool *pool)
{
    for (int i = 0; i < 2000; i++)
        (void)weir_pool_submit(pool, weir_test_nothing, NULL);
}

static void *flood_from(void *pool)
{
    flood(pool);
    return NULL;
}

struct meeting {
    atomic_uint expected;
};

/* Ends when all have come: each needs a worker of its own. */
static weir_outcome meet(void *arg)
{
    struct meeting *meeting = arg;
    atomic_fetch_sub(&meeting->expected, 1);
    WEIR_TEST_UNTIL(atomic_load(&meeting->expected) == 0);
    return WEIR_SUCCESS;
}

static const uint32_t widths[] = {2, 3, 8, 32};

START_TEST(long_jobs_after_short_ones)
{
    uint32_t width = widths[_i];
    weir_pool *pool = weir_test_pool(width, 4096);
    unsigned rounds = weir_test_scaled(100, 5);
    for (unsigned round = 0; round < rounds; round++) {
        struct meeting meeting;
        atomic_init(&meeting.expected, width);
        flood(pool);
        for (uint32_t i = 0; i < width; i++) {
            (void)weir_pool_submit(pool, meet, &meeting);
            if (round % 2 == 0)
                flood(pool);
        }
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    }
    weir_test_pool_end(pool);
}
END_TEST

/* The last submit is long over when the jobs turn out to be long: nobody but the watch can notice. */
START_TEST(nobody_else_comes)
{
    uint32_t width = widths[_i];
    weir_pool *pool = weir_test_pool(width, 4096);
    unsigned rounds = weir_test_scaled(200, 5);
    for (unsigned round = 0; round < rounds; round++) {
        struct meeting meeting;
        atomic_init(&meeting.expected, width);
        weir_pool_pause(pool);
        flood(pool);
        for (uint32_t i = 0; i < width; i++)
            (void)weir_pool_submit(pool, meet, &meeting);
        weir_pool_resume(pool);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    }
    weir_test_pool_end(pool);
}
END_TEST

static bool is_asleep(weir_pool *pool)
{
    weir__lock(pool->limiter);
    bool asleep = pool->pace.watch == NULL && pool->idle_count == pool->workers && !pool->waking;
    weir__unlock(pool->limiter);
    return asleep;
}

START_TEST(the_watch_ends)
{
    weir_pool *pool = weir_test_pool(8, 4096);
    for (int round = 0; round < 20; round++) {
        flood(pool);
        WEIR_TEST_UNTIL(is_asleep(pool));
    }
    weir_test_pool_end(pool);
}
END_TEST

/* Jobs that lack a permit, not a worker, are not watched: nobody works by the clock while a queue stands. */
START_TEST(no_watch_without_permits)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 4096);
    for (int round = 0; round < 20; round++) {
        weir_test_gate_close(&gate);
        flood(pool);
        for (int i = 0; i < 2; i++)
            (void)weir_pool_submit(pool, weir_test_pass, &gate);
        flood(pool);
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 2);
        for (bool watched = true; watched;) {
            weir__lock(pool->limiter);
            watched = pool->pace.watch != NULL;
            weir__unlock(pool->limiter);
            weir_test_yield();
        }
        weir_test_gate_open(&gate);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    }
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Short jobs by the ten thousand: no crowd of workers is started for them. */
START_TEST(short_jobs_wake_few)
{
    weir_pool *pool = weir_test_pool(64, 4096);
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < 20; round++) {
        flood(pool);
        weir_stats stats = weir_test_stats(pool);
        uint64_t awake = stats.workers - stats.idle;
        least = awake < least ? awake : least;
    }
    weir_test_pool_end(pool);
    ck_assert_uint_le(least, 16);
}
END_TEST

/* ---- let in again ---- */

enum { READMISSION_DEPTH = 40 };
#define AN_HOUR_NS UINT64_C(3600000000000)

struct blocked {
    weir_pool *pool;
    atomic_int answer; /* -1: none yet */
};

static void *block(void *arg)
{
    struct blocked *blocked = arg;
    atomic_store(&blocked->answer, weir_pool_submit(blocked->pool, weir_test_nothing, NULL));
    return NULL;
}

/* How many places have to become free before one that blocks is let in. */
static unsigned places_until_let_in(uint64_t job_ns, uint64_t patience_ns, bool paused)
{
    struct weir_test_gate gate;
    static weir_job jobs[READMISSION_DEPTH];
    weir_pool *pool = weir_test_pool(1, READMISSION_DEPTH);
    weir_test_gate_init(&gate);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    for (int i = 0; i < READMISSION_DEPTH; i++) {
        jobs[i] = (weir_job)WEIR_JOB_INIT(weir_test_nothing, NULL);
        ck_assert_int_eq(weir_job_submit(pool, &jobs[i]), 0);
    }
    if (paused)
        ck_assert_int_eq(weir_pool_pause(pool), 0);
    struct blocked blocked = {.pool = pool};
    atomic_init(&blocked.answer, -1);
    pthread_t thread;
    weir_test_take_jobs_for(pool, job_ns);
    pool->readmission_ns = patience_ns;
    ck_assert_int_eq(pthread_create(&thread, NULL, block, &blocked), 0);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 1);
    unsigned places = 0;
    while (weir_test_stats(pool).waiting == 1) {
        ck_assert_int_eq(weir_job_cancel(&jobs[places++]), 0);
        if (patience_ns != AN_HOUR_NS)
            WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 0);
    }
    (void)pthread_join(thread, NULL);
    ck_assert_int_eq(atomic_load(&blocked.answer), 0);
    if (paused)
        ck_assert_int_eq(weir_pool_resume(pool), 0);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
    return places;
}

/* While jobs are short those that block come in many at a time, for each costs a wake-up: note:readmission. */
START_TEST(let_in_again)
{
    ck_assert_uint_eq(places_until_let_in(100, AN_HOUR_NS, false), READMISSION_DEPTH / 4);
    ck_assert_uint_eq(places_until_let_in(1000000, AN_HOUR_NS, false), 1);
    ck_assert_uint_eq(places_until_let_in(100, AN_HOUR_NS, true), 1); /* no job of a paused pool is short */
}
END_TEST

/* The job that runs may wait for what the submitter does next, so no submitter waits for more than one place for long:
 * not if the place is free before its patience ends, nor after. */
START_TEST(patience_ends)
{
    ck_assert_uint_eq(places_until_let_in(100, UINT64_C(20000000), false), 1);
    ck_assert_uint_eq(places_until_let_in(100, 1, false), 1);
}
END_TEST

/* However shallow the queue and however many block, all are let in. */
START_TEST(let_in_from_any_depth)
{
    static const uint32_t depths[] = {0, 1, 2, 3, 4, 5, 100};
    pthread_t threads[8];
    weir_pool *pool = weir_test_pool(2, depths[_i]);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, flood_from, pool), 0);
    for (int i = 0; i < 8; i++)
        (void)pthread_join(threads[i], NULL);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(weir_test_stats(pool).succeeded, UINT64_C(8) * 2000);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- the inbox ---- */

struct ordered {
    atomic_uint *next;
    unsigned number;
    atomic_uint *faults;
};

static weir_outcome run_ordered(void *arg)
{
    struct ordered ordered;
    memcpy(&ordered, arg, sizeof ordered);
    if (atomic_fetch_add(ordered.next, 1) != ordered.number)
        atomic_fetch_add(ordered.faults, 1);
    return WEIR_SUCCESS;
}

/* Jobs that take the short way and jobs that take the long one keep their order. */
START_TEST(order)
{
    enum { JOBS = 20000, HANDLES = 64 };
    static struct ordered all[JOBS];
    static weir_job handles[HANDLES];
    atomic_uint next = 0;
    atomic_uint faults = 0;
    uint64_t seed = weir_test_seed();
    weir_pool *pool = weir_test_pool(1, 100);
    for (unsigned i = 0; i < JOBS; i++) {
        all[i] = (struct ordered){&next, i, &faults};
        uint64_t kind = weir_test_random(&seed) % 16;
        if (kind == 0) {
            weir_job *job = &handles[i % HANDLES];
            if (weir_job_outcome(job, NULL) == EINPROGRESS)
                (void)weir_job_wait(job, WEIR_FOREVER);
            job->fn = run_ordered;
            job->arg = &all[i];
            ck_assert_int_eq(weir_job_submit(pool, job), 0);
        } else if (kind < 4) {
            ck_assert_int_eq(weir_pool_submit_copy(pool, run_ordered, &all[i], sizeof all[i]), 0);
        } else if (weir_pool_submit(pool, run_ordered, &all[i]) != 0) {
            ck_abort();
        }
    }
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&faults), 0);
    ck_assert_uint_eq(atomic_load(&next), JOBS);
}
END_TEST

/* What was submitted is in the next snapshot, and the queue's bound holds, on either way. */
START_TEST(bound_and_snapshot)
{
    enum { DEPTH = 50 };
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, DEPTH);
    weir_test_occupy(pool, &gate, 1);
    atomic_uint ran = 0;
    for (unsigned i = 0; i < DEPTH; i++) {
        ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), 0);
        if (i % 5 == 0) {
            weir_stats stats = weir_test_stats(pool);
            ck_assert_uint_eq(stats.submitted, i + 2);
            ck_assert_uint_eq(stats.queued, i + 1);
            ck_assert_uint_eq(weir_test_accounted(&stats), stats.submitted);
        }
    }
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), EAGAIN);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), DEPTH);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A pool that held a hundred thousand jobs while its queue was deep gives their memory back; here the nodes are counted
 * while the depth is made small behind the pool's back. */
START_TEST(memory_comes_back)
{
    enum { JOBS = 100000 };
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, JOBS);
    weir_test_occupy(pool, &gate, 1);
    atomic_uint ran = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        if (weir_pool_trysubmit(pool, weir_test_count, &ran) != 0)
            ck_abort();
    }
    weir__lock(pool->limiter);
    uint32_t most = pool->node_count[0];
    pool->limiter->depth = pool->limiter->config.queue_depth = 10;
    weir__unlock(pool->limiter);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    WEIR_TEST_UNTIL(is_asleep(pool));
    weir__lock(pool->limiter);
    uint32_t least = pool->node_count[0];
    weir__unlock(pool->limiter);
    for (unsigned i = 0; i < 5; i++) /* and it goes on */
        ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
    ck_assert_uint_ge(most, JOBS);
    ck_assert_uint_le(least, 1000);
    ck_assert_uint_eq(atomic_load(&ran), JOBS + 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pace");
    TCase *tests = tcase_create("pace");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_loop_test(tests, long_jobs_after_short_ones, 0, 4);
    tcase_add_loop_test(tests, nobody_else_comes, 0, 4);
    tcase_add_test(tests, the_watch_ends);
    tcase_add_test(tests, no_watch_without_permits);
    tcase_add_test(tests, short_jobs_wake_few);
    tcase_add_test(tests, let_in_again);
    tcase_add_test(tests, patience_ends);
    tcase_add_loop_test(tests, let_in_from_any_depth, 0, 7);
    tcase_add_test(tests, order);
    tcase_add_test(tests, bound_and_snapshot);
    tcase_add_test(tests, memory_comes_back);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
