/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Permits: who gets one, when, and who is told no. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "limiter_support.h"

enum { CLIENTS = 8 };

/* ---- granting ---- */

/* As many permits as the limit says, and not one more; what was given back can be had again. */
START_TEST(limit_is_the_number_of_permits)
{
    weir_limiter *limiter = weir_test_fixed_limiter(3);
    weir_permit permits[3] = {0};
    weir_permit extra = {0};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &permits[i]), 0);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    ck_assert_int_eq(weir_limiter_timedacquire(limiter, &extra, 0), ETIMEDOUT);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &extra, 1, NULL, 0), ETIMEDOUT);
    weir_test_give(limiter, &permits[1]);
    weir_test_take(limiter, &extra);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &permits[1]), EAGAIN);
    weir_test_give(limiter, &extra);
    weir_test_give(limiter, &permits[0]);
    weir_test_give(limiter, &permits[2]);
    weir_test_destroy(limiter);
}
END_TEST

/* Acquire waits for a permit as long as it takes. */
START_TEST(acquire_waits)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    struct weir_test_client client;
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    weir_test_client_queue(&client, limiter, 1, WEIR_FOREVER);
    ck_assert(!weir_test_client_answered(&client));
    weir_test_give(limiter, &permit);
    WEIR_TEST_UNTIL(weir_test_client_answered(&client));
    ck_assert_uint_eq(weir_test_stats(limiter).in_flight, 1);
    ck_assert_int_eq(weir_test_client_finish(&client), 0);
    weir_test_destroy(limiter);
}
END_TEST

/* Callers get their permits in the order in which they came. */
START_TEST(first_come_first_served)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    struct weir_test_client clients[CLIENTS];
    weir_permit permit = {0};
    weir_test_clients_reset();
    weir_test_take(limiter, &permit);
    for (int i = 0; i < CLIENTS; i++)
        weir_test_client_queue(&clients[i], limiter, 1, WEIR_FOREVER);
    for (int i = 0; i < CLIENTS; i++)
        weir_test_gate_open(&clients[i].gate);
    weir_test_give(limiter, &permit);
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(weir_test_client_finish(&clients[i]), 0);
    for (unsigned i = 0; i < CLIENTS; i++)
        ck_assert_uint_eq(atomic_load(&clients[i].turn), i);
    weir_test_destroy(limiter);
}
END_TEST

/* A caller that gives up leaves the order of the others as it was. */
START_TEST(who_leaves_the_line_changes_nothing_for_others)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    struct weir_test_client clients[3];
    struct weir_test_client leaver;
    weir_permit permit = {0};
    weir_test_clients_reset();
    weir_test_take(limiter, &permit);
    weir_test_client_queue(&clients[0], limiter, 1, WEIR_FOREVER);
    weir_test_client_start(&leaver, limiter, 1, weir_after_ns(20000000));
    WEIR_TEST_UNTIL(weir_test_stats(limiter).waiting == 2 || weir_test_client_answered(&leaver));
    weir_test_client_start(&clients[1], limiter, 1, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_client_answered(&leaver) && weir_test_stats(limiter).waiting == 2);
    weir_test_client_queue(&clients[2], limiter, 1, WEIR_FOREVER);
    ck_assert_int_eq(weir_test_client_finish(&leaver), ETIMEDOUT);
    for (int i = 0; i < 3; i++)
        weir_test_gate_open(&clients[i].gate);
    weir_test_give(limiter, &permit);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_test_client_finish(&clients[i]), 0);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(atomic_load(&clients[i].turn), i);
    weir_test_destroy(limiter);
}
END_TEST

/* A permit that comes back belongs to the first waiter, even before that one has woken up: nobody can slip in. */
START_TEST(newcomer_never_overtakes)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    for (unsigned i = weir_test_scaled(300); i > 0; i--) {
        struct weir_test_client client;
        weir_permit permit = {0};
        weir_permit barging = {0};
        weir_test_take(limiter, &permit);
        weir_test_client_queue(&client, limiter, 1, WEIR_FOREVER);
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &barging), EAGAIN);
        weir_test_give(limiter, &permit);
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &barging), EAGAIN);
        ck_assert_int_eq(weir_limiter_timedacquire(limiter, &barging, 0), ETIMEDOUT);
        ck_assert_int_eq(weir_test_client_finish(&client), 0);
    }
    weir_test_destroy(limiter);
}
END_TEST

/* ---- a limit that moves ---- */

/* A raised limit wakes as many as it admits, the first in line, and no more. */
START_TEST(raised_limit_wakes_whom_it_admits)
{
    weir_config config = weir_test_scripted(2);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client clients[CLIENTS];
    weir_permit permits[2] = {0};
    for (int i = 0; i < 2; i++)
        weir_test_take(limiter, &permits[i]);
    for (int i = 0; i < CLIENTS; i++)
        weir_test_client_queue(&clients[i], limiter, 1, WEIR_FOREVER);
    atomic_store(&weir_test_script.limit, 6);
    weir_test_give(limiter, &permits[0]); /* 1 is out, 6 may be: 5 of the 8 get in */
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.limit, 6);
    ck_assert_uint_eq(stats.in_flight, 6);
    ck_assert_uint_eq(stats.waiting, CLIENTS - 5);
    for (int i = 0; i < 5; i++)
        WEIR_TEST_UNTIL(weir_test_client_answered(&clients[i]));
    for (int i = 5; i < CLIENTS; i++)
        ck_assert(!weir_test_client_answered(&clients[i]));
    for (int i = 0; i < CLIENTS; i++)
        weir_test_gate_open(&clients[i].gate);
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(weir_test_client_finish(&clients[i]), 0);
    weir_test_give(limiter, &permits[1]);
    weir_test_destroy(limiter);
}
END_TEST

/* A lowered limit takes nothing away; it takes effect as permits come back. */
START_TEST(lowered_limit_waits_for_permits_to_come_back)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit permits[4] = {0};
    weir_permit extra = {0};
    for (int i = 0; i < 4; i++)
        weir_test_take(limiter, &permits[i]);
    atomic_store(&weir_test_script.limit, 2);
    weir_test_give(limiter, &permits[0]);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.limit, 2);
    ck_assert_uint_eq(stats.in_flight, 3);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    weir_test_give(limiter, &permits[1]);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    weir_test_give(limiter, &permits[2]);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), 0);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &permits[2]), EAGAIN);
    weir_test_give(limiter, &extra);
    weir_test_give(limiter, &permits[3]);
    weir_test_destroy(limiter);
}
END_TEST

/* Whatever an algorithm answers, the limit stays between MIN_LIMIT and MAX_LIMIT, and one call can always go on. */
START_TEST(limit_never_leaves_its_bounds)
{
    weir_config config = weir_test_scripted(4);
    config.max_limit = 10;
    weir_limiter *limiter = weir_test_limiter(&config);
    const struct {
        unsigned answer;
        unsigned limit;
    } rows[] = {{0, 1}, {1, 1}, {10, 10}, {11, 10}, {0, 1}, {UINT32_MAX, 10}, {0x80000000u, 10}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_permit permit = {0};
        atomic_store(&weir_test_script.limit, rows[i].answer);
        weir_test_take(limiter, &permit);
        weir_test_give(limiter, &permit);
        ck_assert_uint_eq(weir_test_stats(limiter).limit, rows[i].limit);
    }
    weir_test_destroy(limiter);
}
END_TEST

/* ---- deadlines ---- */

/* What is free is granted, however long ago the deadline was. */
START_TEST(free_permit_needs_no_time)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    const uint64_t deadlines[] = {0, 1, weir_now_ns() - 1, weir_after_ns(999000), WEIR_FOREVER};
    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        weir_permit permit = {0};
        ck_assert_int_eq(weir_limiter_timedacquire(limiter, &permit, deadlines[i]), 0);
        weir_test_give(limiter, &permit);
        ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 1, NULL, deadlines[i]), 0);
        weir_test_give(limiter, &permit);
    }
    weir_test_destroy(limiter);
}
END_TEST

/* A wait ends at its deadline and not before, also where that is less than a millisecond away. */
START_TEST(wait_ends_at_its_deadline)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    const uint64_t durations[] = {0, 1, 999000, 1000000, 20000000};
    weir_permit permit = {0};
    weir_permit extra = {0};
    weir_test_take(limiter, &permit);
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        uint64_t deadline = weir_after_ns(durations[i]);
        ck_assert_int_eq(weir_limiter_timedacquire(limiter, &extra, deadline), ETIMEDOUT);
        ck_assert_uint_ge(weir_now_ns(), deadline);
        ck_assert_int_eq(weir_limiter_release(limiter, &extra, WEIR_SUCCESS), EINVAL);
    }
    ck_assert_uint_eq(weir_test_stats(limiter).waiting, 0);
    weir_test_give(limiter, &permit);
    weir_test_destroy(limiter);
}
END_TEST

/* A permit that comes back before the deadline is granted. */
START_TEST(permit_in_time_is_granted)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    struct weir_test_client client;
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    weir_test_client_queue(&client, limiter, 1, weir_after_ns(UINT64_C(3600000000000)));
    weir_test_give(limiter, &permit);
    ck_assert_int_eq(weir_test_client_finish(&client), 0);
    weir_test_destroy(limiter);
}
END_TEST

/* ---- figures ---- */

/* Every grant and every end is counted once; who was refused is counted apart. */
START_TEST(figures_count_everything_once)
{
    weir_limiter *limiter = weir_test_fixed_limiter(3);
    weir_permit permits[3] = {0};
    weir_permit extra = {0};
    for (int i = 0; i < 3; i++)
        weir_test_take(limiter, &permits[i]);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(weir_limiter_timedacquire(limiter, &extra, 0), ETIMEDOUT);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.size, sizeof stats);
    ck_assert_uint_eq(stats.limit, 3);
    ck_assert_uint_eq(stats.estimate, 3);
    ck_assert_uint_eq(stats.submitted, 3);
    ck_assert_uint_eq(stats.started, 3);
    ck_assert_uint_eq(stats.running, 3);
    ck_assert_uint_eq(stats.in_flight, 3);
    ck_assert_uint_eq(stats.shed, 4);
    ck_assert_uint_eq(stats.timed_out, 5);
    ck_assert_uint_eq(stats.queued + stats.expired + stats.cancelled, 0);
    const weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_IGNORE, WEIR_DROPPED};
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_limiter_release(limiter, &permits[i], outcomes[i]), 0);
    stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.succeeded, 1);
    ck_assert_uint_eq(stats.ignored, 1);
    ck_assert_uint_eq(stats.dropped, 1);
    ck_assert_uint_eq(stats.running, 0);
    ck_assert_uint_eq(stats.submitted, 3);
    ck_assert_ptr_nonnull(stats.phase);
    weir_test_destroy(limiter);
}
END_TEST

/* A program built with a shorter structure gets no byte beyond it; one that left the size 0 gets everything. */
START_TEST(figures_respect_the_callers_size)
{
    weir_limiter *limiter = weir_test_fixed_limiter(3);
    struct {
        weir_stats stats;
        unsigned char beyond[16];
    } box;
    memset(&box, 0xa5, sizeof box);
    box.stats.size = 0;
    ck_assert_int_eq(weir_limiter_stats(limiter, &box.stats), 0);
    ck_assert_uint_eq(box.stats.size, sizeof box.stats);
    ck_assert_uint_eq(box.stats.limit_changes, 0);
    box.stats.size = sizeof box.stats + sizeof box.beyond; /* a newer program: the library knows less */
    ck_assert_int_eq(weir_limiter_stats(limiter, &box.stats), 0);
    ck_assert_uint_eq(box.stats.size, sizeof box.stats);
    for (size_t i = 0; i < sizeof box.beyond; i++)
        ck_assert_uint_eq(box.beyond[i], 0xa5);
    weir_test_destroy(limiter);
}
END_TEST

/* ---- refusals ---- */

/* NULL where a pointer is needed is EINVAL, in every function. */
START_TEST(null_is_refused)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    weir_permit permit = {0};
    weir_stats stats = {0};
    ck_assert_int_eq(weir_limiter_create(NULL, "test", NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_acquire(NULL, &permit), EINVAL);
    ck_assert_int_eq(weir_limiter_acquire(limiter, NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_tryacquire(NULL, &permit), EINVAL);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_timedacquire(NULL, &permit, 0), EINVAL);
    ck_assert_int_eq(weir_limiter_timedacquire(limiter, NULL, 0), EINVAL);
    ck_assert_int_eq(weir_limiter_acquire_many(NULL, &permit, 1, NULL, 0), EINVAL);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, NULL, 1, NULL, 0), EINVAL);
    ck_assert_int_eq(weir_limiter_release(NULL, &permit, WEIR_SUCCESS), EINVAL);
    ck_assert_int_eq(weir_limiter_release(limiter, NULL, WEIR_SUCCESS), EINVAL);
    ck_assert_int_eq(weir_limiter_freeze(NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_thaw(NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_stats(NULL, &stats), EINVAL);
    ck_assert_int_eq(weir_limiter_stats(limiter, NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_destroy(NULL), EINVAL);
    stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.submitted + stats.shed + stats.timed_out, 0);
    weir_test_destroy(limiter);
}
END_TEST

/* Only a permit that the limiter gave out can be given back, once and with an outcome that exists. */
START_TEST(bad_release_is_refused)
{
    weir_limiter *limiter = weir_test_fixed_limiter(2);
    weir_limiter *other = weir_test_fixed_limiter(2);
    weir_permit permit = {0};
    weir_permit zeroed = {0};
    ck_assert_int_eq(weir_limiter_release(limiter, &zeroed, WEIR_SUCCESS), EINVAL);
    weir_test_take(limiter, &permit);
    ck_assert_int_eq(weir_limiter_release(other, &permit, WEIR_SUCCESS), EINVAL);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, (weir_outcome)3), EINVAL);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, (weir_outcome)-1), EINVAL);
    ck_assert_uint_eq(weir_test_stats(limiter).in_flight, 1); /* it is still held */
    weir_test_give(limiter, &permit);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), EINVAL);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.in_flight, 0);
    ck_assert_uint_eq(stats.succeeded, 1);
    ck_assert_uint_eq(weir_test_stats(other).submitted, 0);
    weir_test_take(limiter, &permit); /* and the storage can be used again */
    weir_test_give(limiter, &permit);
    weir_test_destroy(other);
    weir_test_destroy(limiter);
}
END_TEST

/* Destroy refuses while permits are out or callers wait, and the limiter works on. */
START_TEST(busy_limiter_is_not_destroyed)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    struct weir_test_client client;
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    ck_assert_int_eq(weir_limiter_destroy(limiter), EBUSY);
    weir_test_client_queue(&client, limiter, 1, WEIR_FOREVER);
    ck_assert_int_eq(weir_limiter_destroy(limiter), EBUSY);
    weir_test_give(limiter, &permit);
    ck_assert_int_eq(weir_limiter_destroy(limiter), EBUSY); /* the client's by now */
    ck_assert_int_eq(weir_test_client_finish(&client), 0);
    weir_test_destroy(limiter);
}
END_TEST

struct carrier {
    weir_limiter *limiter;
    weir_permit permit;
    int result;
};

static void *release_elsewhere(void *arg)
{
    struct carrier *carrier = arg;
    carrier->result = weir_limiter_release(carrier->limiter, &carrier->permit, WEIR_SUCCESS);
    return NULL;
}

/* Any thread may give a permit back. */
START_TEST(any_thread_may_release)
{
    struct carrier carrier = {.limiter = weir_test_fixed_limiter(1), .result = -1};
    pthread_t thread;
    weir_test_take(carrier.limiter, &carrier.permit);
    ck_assert_int_eq(pthread_create(&thread, NULL, release_elsewhere, &carrier), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(carrier.result, 0);
    weir_test_destroy(carrier.limiter);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limiter");
    weir_test_add_group(suite, "granting",
                        (const TTest *const[]){limit_is_the_number_of_permits, acquire_waits, first_come_first_served,
                                               who_leaves_the_line_changes_nothing_for_others, newcomer_never_overtakes,
                                               NULL});
    weir_test_add_group(suite, "moving limit",
                        (const TTest *const[]){raised_limit_wakes_whom_it_admits,
                                               lowered_limit_waits_for_permits_to_come_back,
                                               limit_never_leaves_its_bounds, NULL});
    weir_test_add_group(
        suite, "deadlines",
        (const TTest *const[]){free_permit_needs_no_time, wait_ends_at_its_deadline, permit_in_time_is_granted, NULL});
    weir_test_add_group(suite, "figures",
                        (const TTest *const[]){figures_count_everything_once, figures_respect_the_callers_size, NULL});
    weir_test_add_group(suite, "refusals",
                        (const TTest *const[]){null_is_refused, bad_release_is_refused, busy_limiter_is_not_destroyed,
                                               any_thread_may_release, NULL});
    return weir_test_main(suite);
}
