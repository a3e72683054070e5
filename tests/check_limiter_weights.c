/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Permits that count for several. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "limiter_support.h"

/* A permit takes as much of the limit as it weighs, and is one call in the counters. */
START_TEST(weight_counts_in_flight)
{
    weir_limiter *limiter = weir_test_fixed_limiter(10);
    weir_permit heavy = {0};
    weir_permit light = {0};
    weir_permit extra = {0};
    weir_test_take_many(limiter, &heavy, 7);
    weir_test_take_many(limiter, &light, 3);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.in_flight, 10);
    ck_assert_uint_eq(stats.submitted, 2);
    ck_assert_uint_eq(stats.running, 2);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    weir_test_give(limiter, &light);
    ck_assert_uint_eq(weir_test_stats(limiter).in_flight, 7);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &extra, 4, NULL, 0), ETIMEDOUT);
    weir_test_take_many(limiter, &extra, 3);
    weir_test_give(limiter, &extra);
    weir_test_give(limiter, &heavy);
    ck_assert_uint_eq(weir_test_stats(limiter).in_flight, 0);
    weir_test_destroy(limiter);
}
END_TEST

static int ask(weir_limiter *limiter, unsigned weight, const char *partition)
{
    weir_permit permit = {0};
    int error = weir_limiter_acquire_many(limiter, &permit, weight, partition, 0);
    if (error == 0)
        weir_test_give(limiter, &permit);
    return error;
}

/* A weight that no limit could ever admit is refused, as is a partition that does not exist. */
START_TEST(impossible_weights_are_refused)
{
    weir_limiter *fixed = weir_test_fixed_limiter(5);
    ck_assert_int_eq(ask(fixed, 0, NULL), EINVAL);
    ck_assert_int_eq(ask(fixed, 5, NULL), 0);
    ck_assert_int_eq(ask(fixed, 6, NULL), EINVAL);
    ck_assert_int_eq(ask(fixed, UINT32_MAX, NULL), EINVAL);
    ck_assert_int_eq(ask(fixed, 1, "live"), EINVAL);
    ck_assert_int_eq(ask(fixed, 1, ""), EINVAL);
    weir_config config = weir_test_scripted(5);
    config.max_limit = 50;
    weir_limiter *moving = weir_test_limiter(&config);
    ck_assert_int_eq(ask(moving, 0, NULL), EINVAL);
    ck_assert_int_eq(ask(moving, 50, NULL), 0);
    ck_assert_int_eq(ask(moving, 51, NULL), EINVAL);
    weir_stats stats = weir_test_stats(fixed);
    ck_assert_uint_eq(stats.submitted, 1);
    ck_assert_uint_eq(stats.shed + stats.timed_out, 0);
    weir_test_destroy(fixed);
    weir_test_destroy(moving);
}
END_TEST

/* In monitor mode MAX_LIMIT is what is enforced, also of a fixed algorithm. */
START_TEST(monitor_admits_up_to_max_limit)
{
    weir_config config = weir_test_config();
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 5;
    config.max_limit = 50;
    config.mode = WEIR_MONITOR;
    weir_limiter *limiter = weir_test_limiter(&config);
    ck_assert_int_eq(ask(limiter, 50, NULL), 0);
    ck_assert_int_eq(ask(limiter, 51, NULL), EINVAL);
    weir_test_destroy(limiter);
}
END_TEST

/* While a heavy caller stands first nobody behind it goes ahead, even where permits enough for a light one are free. */
START_TEST(heavy_head_is_not_overtaken)
{
    weir_limiter *limiter = weir_test_fixed_limiter(4);
    struct weir_test_client heavy;
    struct weir_test_client light;
    weir_permit permits[3] = {0};
    weir_permit barging = {0};
    for (int i = 0; i < 3; i++)
        weir_test_take(limiter, &permits[i]);
    weir_test_client_queue(&heavy, limiter, 4, WEIR_FOREVER);
    weir_test_client_queue(&light, limiter, 1, WEIR_FOREVER);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &barging), EAGAIN);
        ck_assert(!weir_test_client_answered(&heavy));
        ck_assert(!weir_test_client_answered(&light));
        weir_test_give(limiter, &permits[i]);
    }
    WEIR_TEST_UNTIL(weir_test_client_answered(&heavy));
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.in_flight, 4);
    ck_assert_uint_eq(stats.waiting, 1);
    ck_assert(!weir_test_client_answered(&light));
    ck_assert_int_eq(weir_test_client_finish(&heavy), 0);
    ck_assert_int_eq(weir_test_client_finish(&light), 0);
    weir_test_destroy(limiter);
}
END_TEST

/* A weight above the limit waits for an empty limiter and then runs alone; the published limit covers it until then. */
START_TEST(weight_above_the_limit_runs_alone)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client heavy;
    weir_permit permits[2] = {0};
    weir_permit extra = {0};
    for (int i = 0; i < 2; i++)
        weir_test_take(limiter, &permits[i]);
    weir_test_client_queue(&heavy, limiter, 9, WEIR_FOREVER);
    weir_test_give(limiter, &permits[0]);
    ck_assert(!weir_test_client_answered(&heavy));
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 4);
    weir_test_give(limiter, &permits[1]);
    WEIR_TEST_UNTIL(weir_test_client_answered(&heavy));
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.in_flight, 9);
    ck_assert_uint_eq(stats.limit, 9);
    ck_assert_uint_eq(stats.estimate, 4);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    ck_assert_int_eq(weir_test_client_finish(&heavy), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 4);
    for (int i = 0; i < 2; i++)
        weir_test_take(limiter, &permits[i]);
    for (int i = 0; i < 2; i++)
        weir_test_give(limiter, &permits[i]);
    weir_test_destroy(limiter);
}
END_TEST

/* A limit that falls below the weight of a caller that waits already does not strand it. */
START_TEST(fallen_limit_does_not_strand_a_heavy_caller)
{
    weir_config config = weir_test_scripted(8);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client heavy;
    weir_permit permits[4] = {0};
    for (int i = 0; i < 4; i++)
        weir_test_take(limiter, &permits[i]);
    weir_test_client_queue(&heavy, limiter, 8, WEIR_FOREVER);
    atomic_store(&weir_test_script.limit, 2);
    for (int i = 0; i < 4; i++) {
        ck_assert(!weir_test_client_answered(&heavy));
        weir_test_give(limiter, &permits[i]);
        (void)weir_test_stats(limiter);
    }
    WEIR_TEST_UNTIL(weir_test_client_answered(&heavy));
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 8);
    ck_assert_int_eq(weir_test_client_finish(&heavy), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 2);
    weir_test_destroy(limiter);
}
END_TEST

static struct weir_test_gate update_gate;

static void stand_at_gate(void)
{
    weir_test_gate_pass(&update_gate);
}

/* The limit counts as much as a heavy permit until that very one is given back, whatever others weigh. */
START_TEST(heavy_permit_is_covered_until_it_ends)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client light;
    weir_permit heavy = {0};
    weir_permit alike = {0};
    weir_permit last = {0};
    weir_test_gate_init(&update_gate);
    weir_test_script.during = stand_at_gate;
    weir_test_client_start(&light, limiter, 1, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_client_answered(&light));
    for (uint64_t long_enough = weir_after_ns(1000000); weir_now_ns() < long_enough;)
        weir_test_yield(); /* a call this long is estimated at once */
    atomic_store(&weir_test_script.limit, 17);
    weir_test_gate_open(&light.gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&update_gate) == 1);
    weir_test_take_many(limiter, &heavy, 8); /* above the limit of 4, while the estimator is about to say 17 */
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 8);
    weir_test_gate_open(&update_gate);
    ck_assert_int_eq(weir_test_client_finish(&light), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 17);
    weir_test_take_many(limiter, &alike, 8);
    weir_test_take(limiter, &last);
    weir_test_give(limiter, &alike);
    atomic_store(&weir_test_script.limit, 4);
    weir_test_give(limiter, &last);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.estimate, 4);
    ck_assert_uint_eq(stats.in_flight, 8);
    ck_assert_uint_eq(stats.limit, 8);
    weir_test_give(limiter, &heavy);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 4);
    weir_test_destroy(limiter);
    weir_test_gate_destroy(&update_gate);
}
END_TEST

/* When a heavy caller gives up, the light ones behind it go on at once. */
START_TEST(heavy_that_gives_up_lets_light_ones_go_on)
{
    weir_limiter *limiter = weir_test_fixed_limiter(4);
    struct weir_test_client heavy;
    struct weir_test_client lights[3];
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    weir_test_client_start(&heavy, limiter, 4, weir_after_ns(200000000));
    WEIR_TEST_UNTIL(weir_test_stats(limiter).waiting == 1 || weir_test_client_answered(&heavy));
    for (int i = 0; i < 3; i++)
        weir_test_client_start(&lights[i], limiter, 1, WEIR_FOREVER);
    for (int i = 0; i < 3; i++) /* nothing is given back: only the heavy one's leaving can let them in */
        WEIR_TEST_UNTIL(weir_test_client_answered(&lights[i]));
    ck_assert_uint_eq(weir_test_stats(limiter).in_flight, 4);
    ck_assert_int_eq(weir_test_client_finish(&heavy), ETIMEDOUT);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_test_client_finish(&lights[i]), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).timed_out, 1);
    weir_test_give(limiter, &permit);
    weir_test_destroy(limiter);
}
END_TEST

struct crowd {
    weir_limiter *limiter;
    atomic_bool over;
    atomic_uint errors;
};

static void *take_lightly(void *arg)
{
    struct crowd *crowd = arg;
    weir_permit permit = {0};
    while (!atomic_load(&crowd->over)) {
        if (weir_limiter_acquire(crowd->limiter, &permit) != 0 ||
            weir_limiter_release(crowd->limiter, &permit, WEIR_SUCCESS) != 0)
            atomic_fetch_add(&crowd->errors, 1);
    }
    return NULL;
}

/* A heavy caller is served however many light ones come and go. */
START_TEST(heavy_caller_does_not_starve)
{
    struct crowd crowd = {.limiter = weir_test_fixed_limiter(4)};
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_lightly, &crowd), 0);
    for (unsigned i = weir_test_scaled(500); i > 0; i--) {
        weir_permit heavy = {0};
        int error = weir_limiter_acquire_many(crowd.limiter, &heavy, 4, NULL, WEIR_FOREVER);
        uint32_t in_flight = weir_test_stats(crowd.limiter).in_flight;
        if (error == 0)
            error = weir_limiter_release(crowd.limiter, &heavy, WEIR_SUCCESS);
        if (error != 0 || in_flight != 4)
            ck_abort_msg("error %d, in flight %u", error, in_flight);
    }
    atomic_store(&crowd.over, true);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(atomic_load(&crowd.errors), 0);
    weir_test_destroy(crowd.limiter);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("weights");
    weir_test_add_group(
        suite, "weights",
        (const TTest *const[]){weight_counts_in_flight, impossible_weights_are_refused, monitor_admits_up_to_max_limit,
                               heavy_head_is_not_overtaken, weight_above_the_limit_runs_alone,
                               fallen_limit_does_not_strand_a_heavy_caller, heavy_permit_is_covered_until_it_ends,
                               heavy_that_gives_up_lets_light_ones_go_on, heavy_caller_does_not_starve, NULL});
    return weir_test_main(suite);
}
