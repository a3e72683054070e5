/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Many threads at one limiter. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <sched.h>

#include "limiter_support.h"

/* What the threads of one test share. */
struct crowd {
    weir_limiter *limiter;
    unsigned rounds;
    atomic_uint inside;  /* permits out, as the threads see it */
    atomic_uint highest; /* greatest inside */
    atomic_uint errors;
    atomic_uint shed;
    atomic_uint timed_out;
    atomic_uint ended[3]; /* by outcome */
    atomic_uint seeds;
    atomic_uint running; /* threads that have not ended */
};

enum { MOST_THREADS = 100 };

static void start_crowd(struct crowd *crowd, pthread_t *threads, unsigned count, void *(*run)(void *))
{
    atomic_store(&crowd->running, count);
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run, crowd), 0);
}

static void join_crowd(pthread_t *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

static void note_entry(struct crowd *crowd)
{
    unsigned now = atomic_fetch_add(&crowd->inside, 1) + 1;
    unsigned highest = atomic_load(&crowd->highest);
    while (now > highest && !atomic_compare_exchange_weak(&crowd->highest, &highest, now))
        ;
}

/* ---- the limit holds ---- */

static void *enter_and_leave(void *arg)
{
    struct crowd *crowd = arg;
    for (unsigned i = crowd->rounds; i > 0; i--) {
        weir_permit permit = {{0}};
        if (weir_limiter_acquire(crowd->limiter, &permit) != 0)
            atomic_fetch_add(&crowd->errors, 1);
        note_entry(crowd);
        (void)sched_yield();
        atomic_fetch_sub(&crowd->inside, 1);
        if (weir_limiter_release(crowd->limiter, &permit, WEIR_SUCCESS) != 0)
            atomic_fetch_add(&crowd->errors, 1);
    }
    return NULL;
}

/* With a hundred threads at a limit of ten, never more than ten hold a permit. */
START_TEST(high_water_mark_is_the_limit)
{
    struct crowd crowd = {.limiter = weir_test_fixed_limiter(10), .rounds = weir_test_scaled(200)};
    pthread_t threads[MOST_THREADS];
    start_crowd(&crowd, threads, MOST_THREADS, enter_and_leave);
    join_crowd(threads, MOST_THREADS);
    ck_assert_uint_eq(atomic_load(&crowd.errors), 0);
    ck_assert_uint_le(atomic_load(&crowd.highest), 10);
    weir_stats stats = weir_test_stats(crowd.limiter);
    ck_assert_uint_eq(stats.succeeded, MOST_THREADS * crowd.rounds);
    ck_assert_uint_eq(stats.in_flight + stats.waiting + stats.running, 0);
    weir_test_destroy(crowd.limiter);
}
END_TEST

static uint64_t limit_state; /* owner: the estimating thread */

static void draw_limit(void)
{
    atomic_store_explicit(&weir_test_script.limit, (unsigned)weir_test_random(&limit_state) % 13, memory_order_relaxed);
}

/* A limit that moves all the time between 1 and 12 loses no permit and no caller, and is never exceeded by more than
 * its greatest value. */
START_TEST(moving_limit_loses_nobody)
{
    weir_config config = weir_test_scripted(4);
    limit_state = weir_test_seed();
    weir_test_script.during = draw_limit;
    struct crowd crowd = {.limiter = weir_test_limiter(&config), .rounds = weir_test_scaled(1000)};
    pthread_t threads[24];
    start_crowd(&crowd, threads, 24, enter_and_leave);
    join_crowd(threads, 24);
    ck_assert_uint_eq(atomic_load(&crowd.errors), 0);
    ck_assert_uint_le(atomic_load(&crowd.highest), 12);
    weir_stats stats = weir_test_stats(crowd.limiter);
    ck_assert_uint_eq(stats.succeeded, 24 * crowd.rounds);
    ck_assert_uint_eq(stats.in_flight + stats.waiting + stats.running, 0);
    ck_assert(!atomic_load(&weir_test_script.overlapped));
    weir_test_destroy(crowd.limiter);
}
END_TEST

/* ---- everybody is served ---- */

enum { CLIENTS = 10, SERVED = 2, ROUNDS = 30 };

struct loop {
    weir_limiter *limiter;
    atomic_bool over;
    atomic_uint served[CLIENTS]; /* how often */
    atomic_bool holds[CLIENTS];
    atomic_bool may_go[CLIENTS];
    atomic_uint errors;
    atomic_uint numbers;
};

/* Holds its permit until it may go, then asks again at once. */
static void *come_back(void *arg)
{
    struct loop *loop = arg;
    unsigned own = atomic_fetch_add(&loop->numbers, 1);
    while (!atomic_load(&loop->over)) {
        weir_permit permit = {{0}};
        if (weir_limiter_acquire(loop->limiter, &permit) != 0)
            atomic_fetch_add(&loop->errors, 1);
        atomic_fetch_add(&loop->served[own], 1);
        atomic_store(&loop->holds[own], true);
        WEIR_TEST_UNTIL(atomic_load(&loop->may_go[own]) || atomic_load(&loop->over));
        atomic_store(&loop->may_go[own], false);
        atomic_store(&loop->holds[own], false);
        if (weir_limiter_release(loop->limiter, &permit, WEIR_SUCCESS) != 0)
            atomic_fetch_add(&loop->errors, 1);
    }
    return NULL;
}

/* Waits until so many services have begun, two of them go on and all other clients wait in the limiter. */
static void settle(struct loop *loop, unsigned services)
{
    for (;;) {
        unsigned holders = 0;
        unsigned begun = 0;
        for (int i = 0; i < CLIENTS; i++) {
            holders += atomic_load(&loop->holds[i]);
            begun += atomic_load(&loop->served[i]);
        }
        if (holders == SERVED && begun == services && weir_test_stats(loop->limiter).waiting == CLIENTS - SERVED)
            return;
        weir_test_yield();
    }
}

/* Ten clients that come back at once share two permits: each is served in every round, a round being ten services. */
START_TEST(closed_loop_serves_everybody)
{
    static struct loop loop;
    loop = (struct loop){.limiter = weir_test_fixed_limiter(SERVED)};
    pthread_t threads[CLIENTS];
    unsigned before[CLIENTS] = {0};
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, come_back, &loop), 0);
    unsigned services = SERVED;
    settle(&loop, services);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++)
            before[i] = atomic_load(&loop.served[i]);
        for (int step = 0; step < CLIENTS / SERVED; step++) {
            bool holds[CLIENTS]; /* all at once: whoever gets in meanwhile stays */
            for (int i = 0; i < CLIENTS; i++)
                holds[i] = atomic_load(&loop.holds[i]);
            for (int i = 0; i < CLIENTS; i++)
                if (holds[i])
                    atomic_store(&loop.may_go[i], true);
            services += SERVED;
            settle(&loop, services);
        }
        for (int i = 0; i < CLIENTS; i++) {
            unsigned served = atomic_load(&loop.served[i]) - before[i];
            ck_assert_uint_eq(served, 1);
        }
    }
    atomic_store(&loop.over, true);
    join_crowd(threads, CLIENTS);
    ck_assert_uint_eq(atomic_load(&loop.errors), 0);
    weir_test_destroy(loop.limiter);
}
END_TEST

/* ---- nothing is lost ---- */

static void *call_nothing(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t state = atomic_fetch_add(&crowd->seeds, 1);
    for (unsigned i = crowd->rounds; i > 0; i--) {
        weir_permit permit = {{0}};
        weir_outcome outcome = (weir_outcome)(weir_test_random(&state) % 3);
        if (weir_limiter_acquire(crowd->limiter, &permit) != 0 ||
            weir_limiter_release(crowd->limiter, &permit, outcome) != 0)
            atomic_fetch_add(&crowd->errors, 1);
        atomic_fetch_add_explicit(&crowd->ended[outcome], 1, memory_order_relaxed); /* a plain count */
    }
    return NULL;
}

/* Every sample reaches the estimator, however fast they come. */
START_TEST(every_sample_is_estimated)
{
    weir_config config = weir_test_scripted(6);
    struct crowd crowd = {.limiter = weir_test_limiter(&config), .rounds = weir_test_scaled(100000)};
    pthread_t threads[8];
    start_crowd(&crowd, threads, 8, call_nothing);
    join_crowd(threads, 8);
    ck_assert_uint_eq(atomic_load(&crowd.errors), 0);
    weir_stats stats = weir_test_stats(crowd.limiter);
    ck_assert_uint_eq(stats.submitted, 8 * (uint64_t)crowd.rounds);
    ck_assert_uint_eq(stats.succeeded, atomic_load(&crowd.ended[WEIR_SUCCESS]));
    ck_assert_uint_eq(stats.ignored, atomic_load(&crowd.ended[WEIR_IGNORE]));
    ck_assert_uint_eq(stats.dropped, atomic_load(&crowd.ended[WEIR_DROPPED]));
    ck_assert_uint_eq(atomic_load(&weir_test_script.updates), stats.succeeded + stats.dropped);
    ck_assert(!atomic_load(&weir_test_script.overlapped));
    weir_test_destroy(crowd.limiter);
}
END_TEST

static int ask_somehow(struct crowd *crowd, weir_permit *permit, uint64_t *state)
{
    switch (weir_test_random(state) % 4) {
    case 0:
        return weir_limiter_tryacquire(crowd->limiter, permit);
    case 1:
        return weir_limiter_timedacquire(crowd->limiter, permit, weir_after_ns(weir_test_random(state) % 30000));
    case 2:
        return weir_limiter_acquire_many(crowd->limiter, permit, 1, NULL, weir_test_random(state) % 2);
    default:
        return weir_limiter_acquire(crowd->limiter, permit);
    }
}

static void *call_somehow(void *arg)
{
    struct crowd *crowd = arg;
    uint64_t state = atomic_fetch_add(&crowd->seeds, 1);
    for (unsigned i = crowd->rounds; i > 0; i--) {
        weir_permit permit = {{0}};
        int error = ask_somehow(crowd, &permit, &state);
        atomic_uint *count = error == EAGAIN ? &crowd->shed : error == ETIMEDOUT ? &crowd->timed_out : &crowd->errors;
        if (error != 0) {
            atomic_fetch_add(count, 1);
            continue;
        }
        if (weir_test_random(&state) % 4 == 0)
            (void)sched_yield();
        weir_outcome outcome = (weir_outcome)(weir_test_random(&state) % 3);
        if (weir_limiter_release(crowd->limiter, &permit, outcome) != 0)
            atomic_fetch_add(&crowd->errors, 1);
        atomic_fetch_add(&crowd->ended[outcome], 1);
    }
    atomic_fetch_sub(&crowd->running, 1);
    return NULL;
}

static void check_snapshot(const weir_stats *stats, const weir_stats *before, uint32_t limit)
{
    uint64_t ended = stats->succeeded + stats->ignored + stats->dropped;
    bool adds_up = stats->submitted == stats->running + ended && stats->running == stats->in_flight;
    bool is_within = stats->limit == limit && stats->in_flight <= limit;
    bool grows = stats->submitted >= before->submitted && stats->succeeded >= before->succeeded &&
                 stats->ignored >= before->ignored && stats->dropped >= before->dropped &&
                 stats->shed >= before->shed && stats->timed_out >= before->timed_out;
    if (!adds_up || !is_within || !grows)
        ck_abort_msg("submitted %llu, running %u, in flight %u, ended %llu, limit %u",
                     (unsigned long long)stats->submitted, stats->running, stats->in_flight, (unsigned long long)ended,
                     stats->limit);
}

/* Each snapshot adds up, whatever goes on meanwhile, and in the end the figures are those of the callers. */
START_TEST(every_snapshot_adds_up)
{
    struct crowd crowd = {.limiter = weir_test_fixed_limiter(3), .rounds = weir_test_scaled(5000)};
    atomic_store(&crowd.seeds, (unsigned)weir_test_seed());
    pthread_t threads[8];
    weir_stats before = {0};
    start_crowd(&crowd, threads, 8, call_somehow);
    while (atomic_load(&crowd.running) != 0) {
        weir_stats stats = weir_test_stats(crowd.limiter);
        check_snapshot(&stats, &before, 3);
        before = stats;
    }
    join_crowd(threads, 8);
    weir_stats stats = weir_test_stats(crowd.limiter);
    check_snapshot(&stats, &before, 3);
    ck_assert_uint_eq(atomic_load(&crowd.errors), 0);
    ck_assert_uint_eq(stats.shed, atomic_load(&crowd.shed));
    ck_assert_uint_eq(stats.timed_out, atomic_load(&crowd.timed_out));
    ck_assert_uint_eq(stats.succeeded, atomic_load(&crowd.ended[WEIR_SUCCESS]));
    ck_assert_uint_eq(stats.ignored, atomic_load(&crowd.ended[WEIR_IGNORE]));
    ck_assert_uint_eq(stats.dropped, atomic_load(&crowd.ended[WEIR_DROPPED]));
    ck_assert_uint_eq(stats.running + stats.waiting, 0);
    weir_permit permits[3] = {0};
    for (int i = 0; i < 3; i++) /* no permit has leaked */
        ck_assert_int_eq(weir_limiter_tryacquire(crowd.limiter, &permits[i]), 0);
    for (int i = 0; i < 3; i++)
        weir_test_give(crowd.limiter, &permits[i]);
    weir_test_destroy(crowd.limiter);
}
END_TEST

/* Freezing and thawing while calls come and go keeps the count and loses nobody. */
START_TEST(freezing_under_load)
{
    weir_config config = weir_test_scripted(3);
    struct crowd crowd = {.limiter = weir_test_limiter(&config), .rounds = weir_test_scaled(4000)};
    pthread_t threads[4];
    start_crowd(&crowd, threads, 4, call_somehow);
    while (atomic_load(&crowd.running) != 0) {
        int error = weir_limiter_freeze(crowd.limiter);
        unsigned long long updates = 0;
        for (int i = 0; error == 0 && i < 3; i++) {
            weir_stats stats = weir_test_stats(crowd.limiter);
            if (stats.frozen != 1)
                ck_abort_msg("frozen %u", stats.frozen);
            updates = atomic_load(&weir_test_script.updates);
        }
        if (error == 0)
            error = weir_limiter_thaw(crowd.limiter);
        if (error != 0 || updates > weir_test_stats(crowd.limiter).submitted)
            ck_abort_msg("error %d, %llu updates", error, updates);
    }
    join_crowd(threads, 4);
    weir_stats stats = weir_test_stats(crowd.limiter);
    ck_assert_uint_eq(atomic_load(&crowd.errors), 0);
    ck_assert_uint_eq(stats.frozen, 0);
    ck_assert_uint_eq(stats.running + stats.waiting, 0);
    ck_assert_uint_le(atomic_load(&weir_test_script.updates), stats.succeeded + stats.dropped);
    weir_test_destroy(crowd.limiter);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("contention");
    weir_test_add_group(suite, "the limit holds",
                        (const TTest *const[]){high_water_mark_is_the_limit, moving_limit_loses_nobody, NULL});
    weir_test_add_group(suite, "everybody is served", (const TTest *const[]){closed_loop_serves_everybody, NULL});
    weir_test_add_group(
        suite, "nothing is lost",
        (const TTest *const[]){every_sample_is_estimated, every_snapshot_adds_up, freezing_under_load, NULL});
    return weir_test_main(suite);
}
