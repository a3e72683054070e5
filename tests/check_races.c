/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Threads that get in each other's way: shutdown, deadlines, pauses and callers of the pool's limiter against
 * submitters. WEIR_TEST_SLOW divides the numbers of rounds. */

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "pool_support.h"

enum { SUBMITTERS = 8 };

/* ---- shutdown against submit ---- */

struct race {
    weir_pool *pool;
    atomic_uint accepted;
    atomic_uint cancelled_calls;
    atomic_uint ran;
    atomic_uint faults;
    atomic_uint turns; /* to give each submitter a kind */
};

static weir_outcome run_racer(void *arg)
{
    struct race *race;
    memcpy(&race, arg, sizeof race);
    atomic_fetch_add(&race->ran, 1);
    return WEIR_SUCCESS;
}

static int submit_racer(struct race *race, unsigned kind)
{
    char large[80] = {0};
    memcpy(large, &race, sizeof race);
    switch (kind % 4) {
    case 0:
        return weir_pool_submit_copy(race->pool, run_racer, &race, sizeof race);
    case 1:
        return weir_pool_submit_copy(race->pool, run_racer, large, sizeof large);
    case 2:
        return weir_pool_call(race->pool, run_racer, large, NULL);
    default: /* the job lives longer than this frame */
        return weir_pool_trysubmit(race->pool, weir_test_count, &race->ran);
    }
}

static void *submit_until_shutdown(void *arg)
{
    struct race *race = arg;
    unsigned kind = atomic_fetch_add(&race->turns, 1);
    for (;;) {
        int error = submit_racer(race, kind);
        if (error == ESHUTDOWN)
            return NULL;
        if (error == 0 || error == ECANCELED)
            atomic_fetch_add(&race->accepted, 1);
        else if (error == EAGAIN)
            (void)sched_yield();
        else
            atomic_fetch_add(&race->faults, 1);
        atomic_fetch_add(&race->cancelled_calls, error == ECANCELED);
    }
}

static void race_shutdown(unsigned round, unsigned head_start)
{
    struct race race = {.pool = weir_test_pool(1 + round % 4, round % 3 * 20)};
    pthread_t threads[SUBMITTERS];
    weir_shutdown how = round % 2 == 0 ? WEIR_CANCEL : WEIR_FINISH;
    for (int i = 0; i < SUBMITTERS; i++)
        threads[i] = weir_test_thread(submit_until_shutdown, &race);
    while (atomic_load(&race.accepted) < head_start)
        (void)sched_yield();
    int error = weir_pool_shutdown(race.pool, how, WEIR_FOREVER);
    for (int i = 0; i < SUBMITTERS; i++)
        (void)weir_test_join(threads[i]);
    weir_stats stats = weir_test_stats(race.pool);
    int destroyed = weir_pool_destroy(race.pool);
    if (error != 0 || destroyed != 0 || atomic_load(&race.faults) != 0)
        ck_abort_msg("round %u: shutdown %d, destroy %d, %u odd errors", round, error, destroyed,
                     atomic_load(&race.faults));
    if (atomic_load(&race.accepted) != atomic_load(&race.ran) + stats.cancelled ||
        stats.submitted != atomic_load(&race.accepted))
        ck_abort_msg("round %u: %u accepted, %u ran, %llu cancelled", round, atomic_load(&race.accepted),
                     atomic_load(&race.ran), (unsigned long long)stats.cancelled);
    if (stats.cancelled < atomic_load(&race.cancelled_calls) || (how == WEIR_FINISH && stats.cancelled != 0))
        ck_abort_msg("round %u: %llu cancelled", round, (unsigned long long)stats.cancelled);
}

/* Eight submitters loop while main shuts down: what was accepted ran or was cancelled, once, and nothing else ran. */
START_TEST(shutdown_race)
{
    unsigned rounds = weir_test_rounds(200, 10);
    uint64_t random = weir_test_seed();
    for (unsigned round = 0; round < rounds; round++)
        race_shutdown(round, (unsigned)(weir_test_random(&random) % 200));
}
END_TEST

/* ---- deadlines against room ---- */

static weir_outcome work_a_little(void *arg)
{
    uint64_t until = weir_after_ns(10000);
    while (weir_now_ns() < until)
        ;
    return weir_test_count(arg);
}

static atomic_uint timed_out;
static atomic_uint rounds_left;

static void *submit_timed(void *arg)
{
    struct race *race = arg;
    uint64_t random = 7 * (uint64_t)atomic_fetch_add(&race->turns, 1) + 1;
    for (;;) {
        unsigned left = atomic_load(&rounds_left);
        while (left > 0 && !atomic_compare_exchange_weak(&rounds_left, &left, left - 1))
            ;
        if (left == 0)
            return NULL;
        uint64_t deadline = weir_after_ns(weir_test_random(&random) % 150000);
        int error = weir_pool_timedsubmit(race->pool, work_a_little, &race->ran, deadline);
        atomic_fetch_add(&race->accepted, error == 0);
        atomic_fetch_add(&timed_out, error == ETIMEDOUT);
        atomic_fetch_add(&race->faults, error != 0 && error != ETIMEDOUT);
    }
}

/* A deadline that passes just when room comes: either the job is accepted and runs, or the call timed out and it never
 * does; the figures agree. */
START_TEST(deadline_race)
{
    struct race race = {.pool = weir_test_pool(2, (uint32_t)_i)};
    pthread_t threads[SUBMITTERS];
    unsigned attempts = weir_test_rounds(60000, 1000);
    atomic_store(&timed_out, 0);
    atomic_store(&rounds_left, attempts);
    for (int i = 0; i < SUBMITTERS; i++)
        threads[i] = weir_test_thread(submit_timed, &race);
    for (int i = 0; i < SUBMITTERS; i++)
        (void)weir_test_join(threads[i]);
    ck_assert_int_eq(weir_pool_drain(race.pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(race.pool);
    weir_test_pool_end(race.pool);
    ck_assert_uint_eq(atomic_load(&race.faults), 0);
    ck_assert_uint_eq(atomic_load(&race.accepted) + atomic_load(&timed_out), attempts);
    ck_assert_uint_eq(atomic_load(&race.ran), atomic_load(&race.accepted));
    ck_assert_uint_eq(stats.submitted, atomic_load(&race.accepted));
    ck_assert_uint_eq(stats.timed_out, atomic_load(&timed_out));
    ck_assert_uint_eq(stats.waiting, 0);
}
END_TEST

/* ---- pause against everything ---- */

static void *submit_some(void *arg)
{
    struct race *race = arg;
    unsigned jobs = weir_test_rounds(10000, 200);
    unsigned kind = atomic_fetch_add(&race->turns, 1);
    for (unsigned i = 0; i < jobs; i++) {
        int error = submit_racer(race, kind);
        while (error == EAGAIN) {
            (void)sched_yield();
            error = submit_racer(race, kind);
        }
        atomic_fetch_add(&race->accepted, error == 0);
        atomic_fetch_add(&race->faults, error != 0);
    }
    return NULL;
}

/* Between pause and resume no job starts, however the submitters press; nothing is lost. */
START_TEST(pause_race)
{
    enum { LIMIT = 3, DEPTH = 16 };
    struct race race = {.pool = weir_test_pool(LIMIT, DEPTH)};
    unsigned jobs = SUBMITTERS * weir_test_rounds(10000, 200);
    pthread_t threads[SUBMITTERS];
    for (int i = 0; i < SUBMITTERS; i++)
        threads[i] = weir_test_thread(submit_some, &race);
    while (atomic_load(&race.accepted) + atomic_load(&race.faults) < jobs) {
        int error = weir_pool_pause(race.pool);
        weir_stats first = weir_test_stats(race.pool);
        weir_test_yield();
        weir_stats last = weir_test_stats(race.pool);
        if (error != 0 || first.started != last.started || last.running > first.running)
            ck_abort_msg("pause %d, %llu and %llu started", error, (unsigned long long)first.started,
                         (unsigned long long)last.started);
        /* Jobs that had a permit but no thread yet go back to the queue, so it may exceed its depth by the limit. */
        if (last.queued > DEPTH + LIMIT || weir_test_accounted(&last) != last.submitted)
            ck_abort_msg("%u queued", last.queued);
        if (weir_pool_resume(race.pool) != 0)
            ck_abort_msg("resume");
        (void)sched_yield();
    }
    for (int i = 0; i < SUBMITTERS; i++)
        (void)weir_test_join(threads[i]);
    weir_test_pool_end(race.pool);
    ck_assert_uint_eq(atomic_load(&race.faults), 0);
    ck_assert_uint_eq(atomic_load(&race.ran), jobs);
}
END_TEST

/* ---- direct callers of the pool's limiter ---- */

struct sharing {
    weir_pool *pool;
    weir_limiter *limiter;
    atomic_uint inside; /* jobs and direct callers at work */
    atomic_uint most;
    atomic_uint ran;
    atomic_uint granted;
    atomic_uint refused;
    atomic_uint faults;
    atomic_uint turns;
};

static void stay_inside(struct sharing *sharing)
{
    unsigned now = atomic_fetch_add(&sharing->inside, 1) + 1;
    unsigned most = atomic_load(&sharing->most);
    while (now > most && !atomic_compare_exchange_weak(&sharing->most, &most, now))
        ;
    (void)sched_yield();
    atomic_fetch_sub(&sharing->inside, 1);
}

static weir_outcome run_shared(void *arg)
{
    struct sharing *sharing = arg;
    stay_inside(sharing);
    atomic_fetch_add(&sharing->ran, 1);
    return WEIR_SUCCESS;
}

static int acquire_somehow(struct sharing *sharing, weir_permit *permit, unsigned kind)
{
    switch (kind % 4) {
    case 0:
        return weir_limiter_tryacquire(sharing->limiter, permit);
    case 1:
        return weir_limiter_timedacquire(sharing->limiter, permit, weir_after_ns(20000));
    case 2:
        return weir_limiter_acquire_many(sharing->limiter, permit, 2, NULL, WEIR_FOREVER);
    default:
        return weir_limiter_acquire(sharing->limiter, permit);
    }
}

static void *share(void *arg)
{
    struct sharing *sharing = arg;
    unsigned rounds = weir_test_rounds(10000, 200);
    unsigned kind = atomic_fetch_add(&sharing->turns, 1);
    for (unsigned i = 0; i < rounds; i++) {
        weir_permit permit = {0};
        if (kind % 2 == 0) {
            atomic_fetch_add(&sharing->faults, weir_pool_submit(sharing->pool, run_shared, sharing) != 0);
            continue;
        }
        int error = acquire_somehow(sharing, &permit, i);
        if (error == 0) {
            stay_inside(sharing);
            error = weir_limiter_release(sharing->limiter, &permit, WEIR_SUCCESS);
            atomic_fetch_add(&sharing->granted, 1);
        } else if ((i % 4 == 0 && error == EAGAIN) || (i % 4 == 1 && error == ETIMEDOUT)) {
            atomic_fetch_add(&sharing->refused, 1);
            error = 0;
        }
        atomic_fetch_add(&sharing->faults, error != 0);
    }
    return NULL;
}

/* Jobs and direct callers together never exceed the limit, both get on, and all permits come back. */
START_TEST(sharing_race)
{
    enum { LIMIT = 3 };
    struct sharing sharing = {.pool = weir_test_pool(LIMIT, 8)};
    pthread_t threads[SUBMITTERS];
    unsigned rounds = weir_test_rounds(10000, 200);
    sharing.limiter = weir_pool_limiter(sharing.pool);
    for (int i = 0; i < SUBMITTERS; i++)
        threads[i] = weir_test_thread(share, &sharing);
    while (atomic_load(&sharing.ran) < SUBMITTERS / 2 * rounds) {
        weir_stats stats = weir_test_stats(sharing.pool);
        if (stats.in_flight > LIMIT || stats.running > stats.in_flight || stats.queued > 8)
            ck_abort_msg("%u in flight, %u running, %u queued", stats.in_flight, stats.running, stats.queued);
        weir_test_yield();
    }
    for (int i = 0; i < SUBMITTERS; i++)
        (void)weir_test_join(threads[i]);
    weir_stats stats = {0};
    ck_assert_int_eq(weir_pool_drain(sharing.pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_limiter_stats(sharing.limiter, &stats), 0);
    weir_test_pool_end(sharing.pool);
    ck_assert_uint_eq(atomic_load(&sharing.faults), 0);
    ck_assert_uint_le(atomic_load(&sharing.most), LIMIT);
    ck_assert_uint_eq(stats.in_flight + stats.waiting, 0);
    ck_assert_uint_eq(stats.succeeded, atomic_load(&sharing.ran) + atomic_load(&sharing.granted));
    ck_assert_uint_eq(atomic_load(&sharing.ran) + atomic_load(&sharing.granted) + atomic_load(&sharing.refused),
                      SUBMITTERS * rounds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("races");
    TCase *shutdowns = tcase_create("shutdown"); /* by itself: a round is a pool here, a job elsewhere */
    tcase_set_timeout(shutdowns, 2 * TEST_LIMIT_S);
    tcase_add_test(shutdowns, shutdown_race);
    suite_add_tcase(suite, shutdowns);
    TCase *tests = tcase_create("races");
    tcase_set_timeout(tests, 2 * TEST_LIMIT_S);
    tcase_add_loop_test(tests, deadline_race, 0, 3);
    tcase_add_test(tests, pause_race);
    tcase_add_test(tests, sharing_race);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
