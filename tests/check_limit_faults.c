/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong in limits that adapt themselves, where no other file shows that it does not here: see the register in
 * README.md. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "estimator/estimator.h"
#include "estimator/vegas2_state.h"
#include "pool_support.h"
#include "stream.h"

static weir_config plain_config(void)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.flags = WEIR_NO_ENV;
    return config;
}

/* ---- vegas2 ---- */

/* How long it takes, in round trips, until a client that knows the queue to be its own believes a slower service. */
static double rtts_to_believe(void)
{
    struct stream stream;
    weir_config config;
    set_up(&stream, &config);
    config.drain_interval = 20 * SECOND;
    start(&stream, &config);
    run_for(&stream, 107); /* between two drains */
    stream.rtt_ns *= 2;
    uint64_t change = stream.now_ns, wrong = change;
    while (stream.now_ns < change + 15 * SECOND) {
        step(&stream);
        if (fabs((double)figures_of(&stream).rtt_noload_ns / stream.rtt_ns - 1) > 0.15)
            wrong = stream.now_ns;
    }
    weir_estimator_destroy(stream.estimator);
    return (double)(wrong - change) / stream.rtt_ns;
}

/* A client that has seen R follow its own limit need not wait for the next drain of all, which is more than 300 round
 * trips away: it believes a slower service after a few. */
START_TEST(believes_without_the_others)
{
    double rtts = median_of(rtts_to_believe);
    if (rtts > 100)
        ck_abort_msg("%.0f RTTs", rtts);
}
END_TEST

static double limit_with_answered_calls(void)
{
    struct stream stream;
    weir_config config;
    set_up(&stream, &config);
    start(&stream, &config);
    run_for(&stream, 30);
    stream.answered = 0.03;
    run_for(&stream, 30);
    double limit = mean_limit(&stream, 30);
    weir_estimator_destroy(stream.estimator);
    return limit;
}

/* Calls that succeed in 50 us without having reached the downstream, three of a hundred, are not taken for what it can
 * do: the limit stays near its capacity. */
START_TEST(short_successes_are_no_baseline)
{
    double limit = median_of(limit_with_answered_calls);
    if (limit < 28 || limit > 60)
        ck_abort_msg("limit %.0f", limit);
}
END_TEST

/* Seconds until the limit is back after the downstream had an eighth of its capacity for a while. */
static double seconds_to_recover(void)
{
    struct stream stream;
    weir_config config;
    set_up(&stream, &config);
    start(&stream, &config);
    run_for(&stream, 30);
    stream.servers = 5;
    run_for(&stream, 20);
    double cut = stream.limit;
    stream.servers = 40;
    uint64_t change = stream.now_ns;
    while (stream.limit < 34 && stream.now_ns < change + 60 * SECOND)
        step(&stream);
    weir_estimator_destroy(stream.estimator);
    return cut <= 10 ? (double)(stream.now_ns - change) / 1e9 : 60;
}

/* A limit that was cut comes back by a ramp, not by one permit at a time. */
START_TEST(a_cut_limit_comes_back_by_a_ramp)
{
    double seconds = median_of(seconds_to_recover);
    if (seconds > 6)
        ck_abort_msg("%.1f s", seconds);
}
END_TEST

/* ---- vegas2 and the date ---- */

enum { JUMPS = 60 };

/* One client among many: the queue is that of all, and gone when all drain, at the full seconds of the others' clocks.
 */
struct crowd {
    struct stream stream; /* its clock and its noise */
    struct vegas2 state;
    int64_t offset_ns; /* of this host's date from the monotonic clock; the others' is 0 */
    uint64_t low_ns;   /* when the present low phase began; 0: there is none */
    uint64_t longest_low_ns;
    uint64_t high_ns; /* when the last one ended */
    uint64_t longest_high_ns;
};

static bool drains_with_others(const struct crowd *crowd)
{
    return crowd->state.phase == LOW_PHASE && crowd->state.together_ns != 0;
}

static void begin_crowd(struct crowd *crowd)
{
    weir_config config;
    *crowd = (struct crowd){.offset_ns = 0};
    set_up(&crowd->stream, &config);
    crowd->stream.noise = 0.05;
    crowd->stream.seed = weir_test_seed();
    ck_assert_int_eq(weir__estimator_settle(&config), 0);
    ck_assert_int_eq(weir__vegas2.class.init(&crowd->state, &config), 0);
    crowd->stream.limit = config.initial_limit;
}

static void step_in_crowd(struct crowd *crowd)
{
    struct stream *stream = &crowd->stream;
    double rtt = stream->now_ns % SECOND < 250 * MS ? stream->rtt_ns : 1.3 * stream->rtt_ns;
    stream->now_ns += (uint64_t)fmax(1, rtt / stream->limit);
    uint64_t taken = (uint64_t)(rtt * factor(stream));
    weir_sample sample = {.start_ns = stream->now_ns - taken, .rtt_ns = taken, .in_flight = stream->limit};
    stream->limit = weir__vegas2.class.update(&crowd->state, &sample);
    uint64_t now_ns = stream->now_ns;
    bool is_low = crowd->state.phase == LOW_PHASE;
    if (is_low && crowd->low_ns == 0)
        crowd->low_ns = now_ns;
    if (is_low && now_ns - crowd->low_ns > crowd->longest_low_ns)
        crowd->longest_low_ns = now_ns - crowd->low_ns;
    if (!is_low && crowd->low_ns != 0) {
        crowd->low_ns = 0;
        crowd->high_ns = now_ns;
    }
    if (!is_low && crowd->high_ns != 0 && now_ns - crowd->high_ns > crowd->longest_high_ns)
        crowd->longest_high_ns = now_ns - crowd->high_ns;
}

/* The date of this host jumps in the middle of a drain that all clients share, by less than
 * a drain, hours and days, back and forth: the drain ends all the same, and the next ones come when they would have: in
 * cells of 4 s. */
START_TEST(date_jumps_in_a_shared_drain)
{
    static const int64_t jumps_ns[] = {-3600 * (int64_t)SECOND, 3600 * (int64_t)SECOND,   -50 * (int64_t)MS,
                                       50 * (int64_t)MS,        -86400 * (int64_t)SECOND, 86400 * (int64_t)SECOND};
    struct crowd crowd;
    begin_crowd(&crowd);
    while (crowd.stream.now_ns < 1030 * SECOND)
        step_in_crowd(&crowd);
    for (int i = 0; i < JUMPS; i++) {
        uint64_t begin_ns = crowd.stream.now_ns;
        while (!drains_with_others(&crowd) && crowd.stream.now_ns < begin_ns + 100 * SECOND)
            step_in_crowd(&crowd);
        ck_assert_msg(drains_with_others(&crowd), "after %d jumps no drain is shared any more", i);
        crowd.offset_ns += jumps_ns[i % 6];
        weir__vegas2.set_wall_offset(&crowd.state, crowd.offset_ns);
        while (drains_with_others(&crowd) && crowd.longest_low_ns < SECOND)
            step_in_crowd(&crowd);
        ck_assert_uint_lt(crowd.longest_low_ns, SECOND / 2);
        ck_assert_uint_lt(crowd.longest_high_ns, 8 * SECOND);
    }
}
END_TEST

/* The limit of a client that takes itself for one of a crowd, some seconds after each call has begun to take so many
 * times as long; the highest of the last second, for a drain may be on. */
static uint32_t limit_when_slower(double servers, double rtt_ns, double times, uint64_t seconds)
{
    struct crowd crowd;
    begin_crowd(&crowd);
    struct stream *stream = &crowd.stream;
    stream->servers = servers;
    stream->rtt_ns = rtt_ns;
    uint32_t highest = 0;
    for (int i = 0; i < 2; i++) {
        uint64_t end_ns = stream->now_ns + (i == 0 ? 20 : seconds) * SECOND;
        while (stream->now_ns < end_ns) {
            double rtt = rtt_of(stream, stream->limit);
            stream->now_ns += (uint64_t)(rtt / stream->limit);
            uint64_t taken = (uint64_t)(rtt * factor(stream));
            weir_sample sample = {.start_ns = stream->now_ns - taken, .rtt_ns = taken, .in_flight = stream->limit};
            stream->limit = weir__vegas2.class.update(&crowd.state, &sample);
            if (i == 1 && stream->now_ns + SECOND > end_ns && stream->limit > highest)
                highest = stream->limit;
        }
        stream->rtt_ns *= times;
        if (i == 0)
            crowd.state.influence = -SURE / 2;
    }
    return highest;
}

/* A client of few permits takes itself for one of a crowd, and each call begins to take three times as long. In a crowd
 * all would see that and give way, so an R that has not fallen when they have is no queue: the limit is back within
 * seconds, not with the next drain that the whole crowd shares. */
START_TEST(small_client_outlives_slower_calls)
{
    uint32_t limit = limit_when_slower(9, 20.0 * (double)MS, 3, 5);
    ck_assert_uint_ge(limit, 6);
    ck_assert_uint_le(limit, 14);
}
END_TEST

/* One that is down to a single permit has no more to give. Nine of them, for some come upon a common drain. */
START_TEST(smallest_client_outlives_far_slower_calls)
{
    for (int i = 0; i < 9; i++) {
        uint32_t limit = limit_when_slower(3, 0.5 * (double)MS, 20, 4);
        ck_assert_uint_ge(limit, 2);
        ck_assert_uint_le(limit, 6);
    }
}
END_TEST

/* ---- every algorithm ---- */

/* RTTs of two and three nanoseconds are as good as any: nothing is divided by a rounded zero. */
START_TEST(nanoseconds_are_fine_enough)
{
    weir_config config = plain_config();
    weir_estimator *estimator = NULL;
    config.algorithm = (uint32_t)_i;
    config.window = 0;
    ck_assert_int_eq(weir_estimator_create(&estimator, &config), 0);
    for (uint64_t k = 0; k < 5000; k++) {
        weir_sample sample = {.start_ns = 1000 + 3 * k, .rtt_ns = 2 + k % 2};
        sample.in_flight = weir_estimator_limit(estimator);
        uint32_t limit = weir_estimator_update(estimator, &sample);
        ck_assert(limit >= config.min_limit && limit <= config.max_limit);
    }
    weir_figures figures = {0};
    ck_assert_int_eq(weir_estimator_figures(estimator, &figures), 0);
    ck_assert(isfinite(figures.estimate) && isfinite(figures.throughput));
    weir_estimator_destroy(estimator);
}
END_TEST

/* A limit of 4.9 admits four: the estimate is cut, never rounded up. */
START_TEST(fractions_admit_nobody)
{
    struct stream stream;
    weir_config config;
    unsigned fractions = 0;
    set_up(&stream, &config);
    config.algorithm = (uint32_t)_i;
    config.window_min = config.window_max = 50 * MS;
    start(&stream, &config);
    for (int k = 0; k < 20000; k++) {
        step(&stream);
        double estimate = figures_of(&stream).estimate;
        ck_assert(stream.limit <= estimate || stream.limit == config.min_limit);
        fractions += estimate > stream.limit;
    }
    if (_i != WEIR_VEGAS) /* it moves by whole permits, from a whole one */
        ck_assert_uint_gt(fractions, 0);
    weir_estimator_destroy(stream.estimator);
}
END_TEST

/* For aimd a call that takes TIMEOUT has just been in time, and one that takes a nanosecond more has not; no other
 * algorithm has a timeout of its own. */
START_TEST(timeout_is_exact_and_aimds)
{
    weir_config config = plain_config();
    weir_estimator *estimator = NULL;
    config.algorithm = WEIR_AIMD;
    config.window = 0;
    config.initial_limit = 20;
    ck_assert_int_eq(weir_estimator_create(&estimator, &config), 0);
    weir_sample sample = {.start_ns = SECOND, .rtt_ns = config.timeout, .in_flight = 20};
    ck_assert_uint_eq(weir_estimator_update(estimator, &sample), 21);
    sample.rtt_ns = config.timeout + 1;
    sample.in_flight = 21;
    ck_assert_uint_eq(weir_estimator_update(estimator, &sample), 18);
    weir_estimator_destroy(estimator);
    config.algorithm = WEIR_VEGAS;
    ck_assert_int_eq(weir_estimator_create(&estimator, &config), 0);
    sample.in_flight = 20;
    ck_assert_uint_ge(weir_estimator_update(estimator, &sample), 20);
    weir_estimator_destroy(estimator);
}
END_TEST

/* ---- what a pool tells its estimator ---- */

static struct {
    atomic_uint samples;
    _Atomic uint64_t sum_ns;
} told;

static int start_telling(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    atomic_store(&told.samples, 0);
    atomic_store(&told.sum_ns, 0);
    return 0;
}

static uint32_t tell(void *state, const weir_sample *sample)
{
    (void)state;
    atomic_fetch_add(&told.samples, 1);
    atomic_fetch_add(&told.sum_ns, sample->rtt_ns);
    return 1;
}

static const weir_estimator_class telling = {.name = "telling", .state_size = 8, .init = start_telling, .update = tell};

static weir_pool *telling_pool(void)
{
    weir_config config = weir_test_fixed(1, 16);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &telling;
    return weir_test_pool_of(&config);
}

static weir_outcome take_a_while(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    return WEIR_SUCCESS;
}

/* Five jobs behind one another on one worker: their RTTs do not overlap, so in sum they are no longer than all of it.
 * With the waits in them they would be three times that. */
START_TEST(samples_leave_out_the_wait)
{
    weir_pool *pool = telling_pool();
    uint64_t began = weir_now_ns();
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(weir_pool_submit(pool, take_a_while, NULL), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    uint64_t taken = weir_now_ns() - began;
    (void)weir_test_stats(pool);
    ck_assert_uint_eq(atomic_load(&told.samples), 5);
    ck_assert_uint_le(atomic_load(&told.sum_ns), taken);
    ck_assert_uint_ge(atomic_load(&told.sum_ns), 5 * 2000000);
    weir_test_pool_end(pool);
}
END_TEST

static weir_outcome end_thread(void *arg)
{
    pthread_exit(arg);
    return WEIR_SUCCESS;
}

/* What was cancelled, has expired, or ended its thread tells nothing about the downstream, and leaves no permit behind.
 */
START_TEST(what_never_ran_is_no_sample)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = telling_pool();
    weir_job cancelled = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_job expiring = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_test_occupy(pool, &gate, 1);
    expiring.deadline_ns = weir_after_ns(100000000);
    ck_assert_int_eq(weir_job_submit(pool, &cancelled), 0);
    ck_assert_int_eq(weir_job_submit(pool, &expiring), 0);
    ck_assert_int_eq(weir_job_wait(&expiring, WEIR_FOREVER), ETIMEDOUT);
    ck_assert_int_eq(weir_job_cancel(&cancelled), 0);
    ck_assert_int_eq(weir_pool_submit(pool, end_thread, NULL), 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(atomic_load(&told.samples), 1);
    ck_assert_uint_eq(stats.in_flight, 0);
    ck_assert_uint_eq(stats.cancelled + stats.expired + stats.ignored, 3);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* What is bad for one pool lowers the limit of that one only. */
START_TEST(pools_do_not_share_their_limits)
{
    weir_limiter *limiters[2] = {NULL, NULL};
    weir_config config = plain_config();
    config.algorithm = WEIR_AIMD;
    config.initial_limit = 20;
    config.window = 0;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weir_limiter_create(&limiters[i], "same name", &config), 0);
    for (int k = 0; k < 40; k++) {
        for (int i = 0; i < 2; i++) {
            weir_permit permit = {0};
            ck_assert_int_eq(weir_limiter_acquire(limiters[i], &permit), 0);
            ck_assert_int_eq(weir_limiter_release(limiters[i], &permit, i == 0 ? WEIR_DROPPED : WEIR_SUCCESS), 0);
        }
    }
    weir_stats stats = {0};
    ck_assert_int_eq(weir_limiter_stats(limiters[0], &stats), 0);
    ck_assert_uint_lt(stats.limit, 10);
    ck_assert_int_eq(weir_limiter_stats(limiters[1], &stats), 0);
    ck_assert_uint_ge(stats.limit, 20);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weir_limiter_destroy(limiters[i]), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limit faults");
    TCase *tests = tcase_create("vegas2");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, believes_without_the_others);
    tcase_add_test(tests, short_successes_are_no_baseline);
    tcase_add_test(tests, a_cut_limit_comes_back_by_a_ramp);
    tcase_add_test(tests, date_jumps_in_a_shared_drain);
    tcase_add_test(tests, small_client_outlives_slower_calls);
    tcase_add_test(tests, smallest_client_outlives_far_slower_calls);
    suite_add_tcase(suite, tests);
    tests = tcase_create("every algorithm");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_loop_test(tests, nanoseconds_are_fine_enough, WEIR_VEGAS2, WEIR_FIXED + 1);
    tcase_add_loop_test(tests, fractions_admit_nobody, WEIR_VEGAS2, WEIR_AIMD);
    tcase_add_test(tests, timeout_is_exact_and_aimds);
    suite_add_tcase(suite, tests);
    tests = tcase_create("pools and limiters");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, samples_leave_out_the_wait);
    tcase_add_test(tests, what_never_ran_is_no_sample);
    tcase_add_test(tests, pools_do_not_share_their_limits);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
