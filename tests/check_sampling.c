/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the estimator is told, and what becomes known of its answers. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <string.h>

#include "limiter_support.h"

/* Takes and gives back one permit; its sample has reached the estimator, if it ever will, when this returns. */
static void sample_once(weir_limiter *limiter, weir_outcome outcome)
{
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, outcome), 0);
    (void)weir_test_stats(limiter);
}

static unsigned long long updates(void)
{
    return atomic_load_explicit(&weir_test_script.updates, memory_order_acquire);
}

static void pass_time(uint64_t duration_ns)
{
    for (uint64_t end = weir_after_ns(duration_ns); weir_now_ns() < end;)
        weir_test_yield();
}

/* ---- samples ---- */

/* A success and a drop are samples with their outcome; an ignored call is none. */
START_TEST(outcome_decides_what_is_sampled)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_uint_eq(updates(), 1);
    ck_assert_uint_eq(weir_test_script.kept[0].outcome, WEIR_SUCCESS);
    sample_once(limiter, WEIR_DROPPED);
    ck_assert_uint_eq(updates(), 2);
    ck_assert_uint_eq(weir_test_script.kept[1].outcome, WEIR_DROPPED);
    sample_once(limiter, WEIR_IGNORE);
    ck_assert_uint_eq(updates(), 2);
    weir_test_destroy(limiter);
}
END_TEST

/* A sample spans the time from the return of acquire to the call of release. */
START_TEST(rtt_is_the_time_the_permit_was_held)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit permit = {0};
    uint64_t before = weir_now_ns();
    weir_test_take(limiter, &permit);
    uint64_t taken = weir_now_ns();
    pass_time(3000000);
    uint64_t giving = weir_now_ns();
    weir_test_give(limiter, &permit);
    uint64_t given = weir_now_ns();
    (void)weir_test_stats(limiter);
    ck_assert_uint_eq(updates(), 1);
    const weir_sample *sample = &weir_test_script.kept[0];
    ck_assert_uint_ge(sample->start_ns, before);
    ck_assert_uint_le(sample->start_ns, taken);
    ck_assert_uint_ge(sample->start_ns + sample->rtt_ns, giving);
    ck_assert_uint_le(sample->start_ns + sample->rtt_ns, given);
    weir_test_destroy(limiter);
}
END_TEST

/* The wait for the permit is no part of it: the sample begins after the permit came back. */
START_TEST(rtt_excludes_the_wait)
{
    weir_config config = weir_test_scripted(1);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client client;
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    weir_test_client_queue(&client, limiter, 1, WEIR_FOREVER);
    pass_time(20000000);
    uint64_t given = weir_now_ns();
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_IGNORE), 0);
    ck_assert_int_eq(weir_test_client_finish(&client), 0);
    uint64_t ended = weir_now_ns();
    (void)weir_test_stats(limiter);
    ck_assert_uint_eq(updates(), 1);
    const weir_sample *sample = &weir_test_script.kept[0];
    ck_assert_uint_ge(sample->start_ns, given);
    ck_assert_uint_le(sample->start_ns + sample->rtt_ns, ended);
    weir_test_destroy(limiter);
}
END_TEST

/* In flight is the number of permits out at the grant, itself included, whatever happened until the release. */
START_TEST(in_flight_is_that_of_the_grant)
{
    weir_config config = weir_test_scripted(10);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit permits[4] = {0};
    const unsigned weights[4] = {1, 1, 3, 1};
    const int order[4] = {2, 0, 3, 1};
    const unsigned expected[4] = {5, 1, 6, 2};
    for (int i = 0; i < 4; i++)
        weir_test_take_many(limiter, &permits[i], weights[i]);
    for (unsigned i = 0; i < 4; i++) {
        weir_test_give(limiter, &permits[order[i]]);
        (void)weir_test_stats(limiter);
        ck_assert_uint_eq(updates(), i + 1);
        ck_assert_uint_eq(weir_test_script.kept[i].in_flight, expected[i]);
    }
    weir_test_destroy(limiter);
}
END_TEST

/* Nor does it matter how long a caller that waited took to wake up. */
START_TEST(in_flight_of_a_waiter_is_that_of_the_grant)
{
    weir_config config = weir_test_scripted(2);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client client;
    weir_permit permits[2] = {0};
    weir_test_take(limiter, &permits[0]);
    weir_test_take(limiter, &permits[1]);
    weir_test_client_queue(&client, limiter, 1, WEIR_FOREVER);
    ck_assert_int_eq(weir_limiter_release(limiter, &permits[0], WEIR_IGNORE), 0);
    ck_assert_int_eq(weir_limiter_release(limiter, &permits[1], WEIR_IGNORE), 0);
    ck_assert_int_eq(weir_test_client_finish(&client), 0);
    (void)weir_test_stats(limiter);
    ck_assert_uint_eq(updates(), 1);
    ck_assert_uint_eq(weir_test_script.kept[0].in_flight, 2);
    weir_test_destroy(limiter);
}
END_TEST

/* A limit that a very short call raised reaches the callers that wait, though no other call comes by. */
START_TEST(short_call_raises_the_limit_for_waiters)
{
    for (unsigned i = weir_test_scaled(20); i > 0; i--) {
        weir_config config = weir_test_scripted(1);
        weir_limiter *limiter = weir_test_limiter(&config);
        struct weir_test_client clients[3];
        weir_permit permit = {0};
        weir_test_take(limiter, &permit);
        for (int j = 0; j < 3; j++)
            weir_test_client_queue(&clients[j], limiter, 1, weir_after_ns(UINT64_C(10000000000)));
        atomic_store(&weir_test_script.limit, 2);
        weir_test_gate_open(&clients[0].gate); /* the first lets go at once, the others keep what they get */
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_IGNORE), 0);
        for (int j = 0; j < 3; j++) /* not by the figures: asking for them would feed the estimator */
            WEIR_TEST_UNTIL(weir_test_client_answered(&clients[j]));
        for (int j = 0; j < 3; j++)
            ck_assert_int_eq(weir_test_client_finish(&clients[j]), 0);
        weir_test_destroy(limiter);
    }
}
END_TEST

/* ---- freeze ---- */

/* While frozen the limit stands still and samples are discarded, but permits flow; freezes are counted. */
START_TEST(frozen_limit_stands_still)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).frozen, 2);
    atomic_store(&weir_test_script.limit, 50);
    for (int i = 0; i < 100; i++)
        sample_once(limiter, i % 2 == 0 ? WEIR_SUCCESS : WEIR_DROPPED);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).frozen, 1);
    sample_once(limiter, WEIR_SUCCESS);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.limit, 4);
    ck_assert_uint_eq(stats.succeeded, 52); /* the counters go on */
    ck_assert_uint_eq(updates(), 1);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 4);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_uint_eq(updates(), 2);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 50);
    weir_test_destroy(limiter);
}
END_TEST

/* A thaw that no freeze preceded is refused. */
START_TEST(thaw_needs_a_freeze)
{
    weir_limiter *limiter = weir_test_fixed_limiter(4);
    ck_assert_int_eq(weir_limiter_thaw(limiter), EINVAL);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    ck_assert_int_eq(weir_limiter_thaw(limiter), EINVAL);
    ck_assert_uint_eq(weir_test_stats(limiter).frozen, 0);
    weir_test_destroy(limiter);
}
END_TEST

/* A call that began before the thaw is not sampled even if it ends after; one that begins after the thaw is. */
START_TEST(calls_begun_before_the_thaw_are_not_sampled)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit before = {0};
    weir_permit meanwhile = {0};
    weir_test_take(limiter, &before);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    weir_test_take(limiter, &meanwhile);
    pass_time(1000000);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    weir_test_give(limiter, &before);
    weir_test_give(limiter, &meanwhile);
    (void)weir_test_stats(limiter);
    ck_assert_uint_eq(updates(), 0);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_uint_eq(updates(), 1);
    weir_test_destroy(limiter);
}
END_TEST

/* What ended before the freeze still counts. */
START_TEST(samples_before_the_freeze_count)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit permit = {0};
    atomic_store(&weir_test_script.limit, 9);
    weir_test_take(limiter, &permit);
    weir_test_give(limiter, &permit);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    ck_assert_uint_eq(updates(), 1);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 9);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    weir_test_destroy(limiter);
}
END_TEST

/* The window goes on afresh after a thaw: failures from before the freeze do not lower the limit then. */
START_TEST(thaw_begins_a_fresh_window)
{
    weir_config config = weir_test_config();
    config.algorithm = WEIR_AIMD;
    config.initial_limit = 20;
    config.window_min = config.window_max = 200000000;
    config.window_samples = 10;
    config.min_rtt = 1;
    weir_limiter *limiter = weir_test_limiter(&config);
    sample_once(limiter, WEIR_SUCCESS); /* the very first sample closes a window */
    for (int i = 0; i < 9; i++)
        sample_once(limiter, WEIR_DROPPED);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 20);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    pass_time(1000000);
    for (uint64_t end_ns = weir_after_ns(2 * config.window_min); weir_now_ns() < end_ns;)
        sample_once(limiter, WEIR_SUCCESS);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 20); /* one call at a time gives no reason to raise it either */
    ck_assert_uint_eq(weir_test_stats(limiter).limit_changes, 0);
    weir_test_destroy(limiter);
}
END_TEST

/* ---- callbacks that use their own limiter ---- */

enum { OWN = 80 }; /* more than the samples that fit into the buffer */

static struct own {
    weir_limiter *limiter;
    weir_permit permits[OWN];
    bool released;
    unsigned failures;
} own;

static void release_all(const weir_trace_event *event, void *arg)
{
    (void)event;
    (void)arg;
    for (int i = 0; !own.released && i < OWN; i++)
        own.failures += weir_limiter_release(own.limiter, &own.permits[i], WEIR_SUCCESS) != 0;
    own.released = true;
}

/* A trace gives back more permits than samples fit into the buffer that only its own thread empties. */
START_TEST(trace_may_release)
{
    weir_config config = weir_test_scripted(OWN + 1);
    config.max_limit = 2 * OWN;
    config.trace = release_all;
    own = (struct own){.limiter = weir_test_limiter(&config)};
    for (int i = 0; i < OWN; i++)
        weir_test_take(own.limiter, &own.permits[i]);
    atomic_store(&weir_test_script.limit, OWN + 2);
    sample_once(own.limiter, WEIR_SUCCESS);
    weir_stats stats = weir_test_stats(own.limiter);
    ck_assert(own.released);
    ck_assert_uint_eq(own.failures, 0);
    ck_assert_uint_eq(stats.in_flight, 0);
    ck_assert_uint_eq(stats.succeeded, OWN + 1);
    weir_test_destroy(own.limiter);
}
END_TEST

static unsigned echoes;

static int init_echo(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    return 0;
}

/* Each sample makes another one. */
static uint32_t echo(void *state, const weir_sample *sample)
{
    weir_permit permit = {0};
    (void)state;
    (void)sample;
    if (echoes++ > 100000)
        return 4;
    own.failures += weir_limiter_tryacquire(own.limiter, &permit) != 0;
    pass_time(30000);
    own.failures += weir_limiter_release(own.limiter, &permit, WEIR_SUCCESS) != 0;
    return 4;
}

static const weir_estimator_class echo_class = {.name = "echo", .state_size = 1, .init = init_echo, .update = echo};

/* Nobody is kept at feeding the estimator for as long as samples come. */
START_TEST(feeding_ends)
{
    weir_config config = weir_test_scripted(4);
    config.estimator_class = &echo_class;
    own = (struct own){.limiter = weir_test_limiter(&config)};
    echoes = 0;
    sample_once(own.limiter, WEIR_SUCCESS);
    ck_assert_uint_gt(echoes, 1);
    ck_assert_uint_lt(echoes, 1000);
    ck_assert_uint_eq(own.failures, 0);
    weir_test_destroy(own.limiter);
}
END_TEST

/* ---- monitor mode and other algorithms ---- */

/* In monitor mode the estimate moves and is published, but MAX_LIMIT is what is enforced. */
START_TEST(monitor_mode_only_watches)
{
    weir_config config = weir_test_scripted(2);
    config.max_limit = 5;
    config.mode = WEIR_MONITOR;
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit permits[5] = {0};
    weir_permit extra = {0};
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 5);
    ck_assert_uint_eq(weir_test_stats(limiter).estimate, 2);
    atomic_store(&weir_test_script.limit, 1);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 5);
    ck_assert_uint_eq(weir_test_stats(limiter).estimate, 1);
    ck_assert_uint_eq(weir_test_stats(limiter).limit_changes, 1);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &permits[i]), 0);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    for (int i = 0; i < 5; i++)
        weir_test_give(limiter, &permits[i]);
    weir_test_destroy(limiter);
}
END_TEST

/* The mode may also be given as a flag. */
START_TEST(monitor_mode_by_flag)
{
    weir_config config = weir_test_scripted(2);
    config.max_limit = 5;
    config.flags |= WEIR_MONITOR;
    weir_limiter *limiter = weir_test_limiter(&config);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 5);
    ck_assert_uint_eq(weir_test_stats(limiter).estimate, 2);
    weir_test_destroy(limiter);
}
END_TEST

/* An algorithm of the library's own is fed and obeyed the same way: a drop costs aimd a tenth. */
START_TEST(drop_lowers_the_limit_of_aimd)
{
    weir_config config = weir_test_config();
    config.algorithm = WEIR_AIMD;
    config.initial_limit = 20;
    config.window = 0;
    weir_limiter *limiter = weir_test_limiter(&config);
    sample_once(limiter, WEIR_DROPPED);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 18);
    sample_once(limiter, WEIR_DROPPED);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 16);
    weir_test_destroy(limiter);
}
END_TEST

/* A fixed limit never moves. */
START_TEST(fixed_limit_never_moves)
{
    weir_limiter *limiter = weir_test_fixed_limiter(7);
    for (int i = 0; i < 200; i++)
        sample_once(limiter, i % 3 == 0 ? WEIR_DROPPED : WEIR_SUCCESS);
    weir_stats stats = weir_test_stats(limiter);
    ck_assert_uint_eq(stats.limit, 7);
    ck_assert_uint_eq(stats.limit_changes, 0);
    weir_test_destroy(limiter);
}
END_TEST

/* ---- callbacks ---- */

enum { EVENTS = 64 };

static struct {
    weir_limiter *limiter;
    atomic_uint count;
    weir_trace_event events[EVENTS]; /* owner: the tracing thread */
    atomic_uint disagreements;
} trace;

static void note_event(const weir_trace_event *event, void *arg)
{
    unsigned number = atomic_load_explicit(&trace.count, memory_order_relaxed); /* calls do not overlap */
    weir_stats stats = {0};
    if (arg != &trace || weir_limiter_stats(trace.limiter, &stats) != 0 || stats.estimate != event->new_limit)
        atomic_fetch_add(&trace.disagreements, 1);
    if (number < EVENTS)
        trace.events[number] = *event;
    atomic_store_explicit(&trace.count, number + 1, memory_order_release); /* pairs with the loads of the tests */
}

static weir_limiter *traced_limiter(weir_config *config)
{
    config->trace = note_event;
    config->trace_arg = &trace;
    atomic_store(&trace.count, 0);
    atomic_store(&trace.disagreements, 0);
    trace.limiter = weir_test_limiter(config);
    return trace.limiter;
}

/* Each change of the limit is traced once, in order, under no lock; samples that change nothing are not. */
START_TEST(each_change_is_traced_once)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = traced_limiter(&config);
    const unsigned answers[] = {4, 9, 9, 3, 0, 1, 1, 50};
    const unsigned changes[][2] = {{4, 9}, {9, 3}, {3, 1}, {1, 50}};
    uint64_t before = weir_now_ns();
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        atomic_store(&weir_test_script.limit, answers[i]);
        sample_once(limiter, WEIR_SUCCESS);
    }
    ck_assert_uint_eq(atomic_load_explicit(&trace.count, memory_order_acquire), 4);
    ck_assert_uint_eq(atomic_load(&trace.disagreements), 0);
    for (size_t i = 0; i < 4; i++) {
        const weir_trace_event *event = &trace.events[i];
        ck_assert_uint_eq(event->old_limit, changes[i][0]);
        ck_assert_uint_eq(event->new_limit, changes[i][1]);
        ck_assert_str_eq(event->name, "test");
        ck_assert_str_eq(event->reason, "script");
        ck_assert_uint_ge(event->time_ns, before);
        ck_assert_uint_le(event->time_ns, weir_now_ns());
        ck_assert_uint_eq(event->in_flight, 0);
        before = event->time_ns;
    }
    ck_assert_uint_eq(weir_test_stats(limiter).limit_changes, 4);
    weir_test_destroy(limiter);
}
END_TEST

/* While frozen nothing is traced. */
START_TEST(frozen_limiter_traces_nothing)
{
    weir_config config = weir_test_scripted(4);
    weir_limiter *limiter = traced_limiter(&config);
    ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
    atomic_store(&weir_test_script.limit, 9);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
    ck_assert_uint_eq(atomic_load(&trace.count), 0);
    sample_once(limiter, WEIR_SUCCESS);
    ck_assert_uint_eq(atomic_load(&trace.count), 1);
    weir_test_destroy(limiter);
}
END_TEST

static struct weir_test_gate update_gate;

static void stand_at_gate(void)
{
    weir_test_gate_pass(&update_gate);
}

/* While one thread is inside the algorithm nobody else enters it, and nobody waits for it: calls come and go, very many
 * for each permit, and their samples follow in order. */
START_TEST(slow_algorithm_is_left_alone)
{
    enum { CALLS = 1000 };
    weir_config config = weir_test_scripted(4);
    config.max_limit = 4;
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client client;
    weir_test_gate_init(&update_gate);
    weir_test_script.during = stand_at_gate;
    weir_test_client_start(&client, limiter, 1, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_client_answered(&client));
    pass_time(1000000); /* a call this long is estimated at once */
    weir_test_gate_open(&client.gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&update_gate) == 1);
    for (unsigned i = 0; i < CALLS; i++) {
        weir_permit permit = {0};
        weir_test_take(limiter, &permit);
        if (i % 10 == 0)
            pass_time(100000);
        weir_test_give(limiter, &permit);
        ck_assert_int_eq(weir_limiter_freeze(limiter), 0);
        ck_assert_int_eq(weir_limiter_thaw(limiter), 0);
        ck_assert_uint_eq(weir_test_stats(limiter).succeeded, i + 2);
    }
    ck_assert_uint_eq(weir_test_gate_waiting(&update_gate), 1);
    ck_assert_uint_eq(updates(), 0);
    weir_test_gate_open(&update_gate);
    ck_assert_int_eq(weir_test_client_finish(&client), 0);
    (void)weir_test_stats(limiter);
    ck_assert_uint_eq(updates(), CALLS + 1);
    ck_assert(!atomic_load(&weir_test_script.overlapped));
    for (int i = 1; i <= CALLS; i++)
        ck_assert_uint_ge(weir_test_script.kept[i].start_ns, weir_test_script.kept[i - 1].start_ns);
    weir_test_destroy(limiter);
    weir_test_gate_destroy(&update_gate);
}
END_TEST

static weir_limiter *watched;
static atomic_uint watching_errors;
static struct weir_test_gate start_gate;

static void alternate_and_ask(void)
{
    weir_stats stats = {0};
    if (weir_limiter_stats(watched, &stats) != 0)
        atomic_fetch_add(&watching_errors, 1);
    unsigned limit = atomic_load_explicit(&weir_test_script.limit, memory_order_relaxed);
    atomic_store_explicit(&weir_test_script.limit, limit % 16 + 1, memory_order_relaxed); /* a plain figure */
}

static void *call_often(void *arg)
{
    weir_test_gate_pass(&start_gate);
    for (unsigned i = weir_test_scaled(5000); i > 0; i--) {
        weir_permit permit = {{0}};
        if (weir_limiter_acquire(arg, &permit) != 0 || weir_limiter_release(arg, &permit, WEIR_SUCCESS) != 0)
            atomic_fetch_add(&watching_errors, 1);
    }
    return NULL;
}

/* With many threads at it, update is still called one at a time and under no lock, and the changes that are traced form
 * one chain. */
START_TEST(callbacks_come_one_at_a_time)
{
    weir_config config = weir_test_scripted(16);
    weir_test_script.during = alternate_and_ask;
    watched = traced_limiter(&config);
    atomic_store(&watching_errors, 0);
    pthread_t threads[4];
    weir_test_gate_init(&start_gate);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, watched), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&start_gate) == 4);
    weir_test_gate_open(&start_gate);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    weir_stats stats = weir_test_stats(watched);
    ck_assert_uint_eq(stats.succeeded, 4 * weir_test_scaled(5000));
    ck_assert_uint_eq(updates(), stats.succeeded);
    ck_assert(!atomic_load(&weir_test_script.overlapped));
    ck_assert_uint_eq(atomic_load(&watching_errors), 0);
    unsigned count = atomic_load_explicit(&trace.count, memory_order_acquire);
    ck_assert_uint_eq(count, stats.limit_changes);
    ck_assert_uint_eq(atomic_load(&trace.disagreements), 0);
    for (unsigned i = 0; i < count && i < EVENTS; i++)
        ck_assert_uint_eq(trace.events[i].old_limit, i == 0 ? 16 : trace.events[i - 1].new_limit);
    weir_test_destroy(watched);
    weir_test_gate_destroy(&start_gate);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sampling");
    weir_test_add_group(suite, "samples",
                        (const TTest *const[]){outcome_decides_what_is_sampled, rtt_is_the_time_the_permit_was_held,
                                               rtt_excludes_the_wait, in_flight_is_that_of_the_grant,
                                               in_flight_of_a_waiter_is_that_of_the_grant,
                                               short_call_raises_the_limit_for_waiters, NULL});
    weir_test_add_group(suite, "own", (const TTest *const[]){trace_may_release, feeding_ends, NULL});
    weir_test_add_group(suite, "freeze",
                        (const TTest *const[]){frozen_limit_stands_still, thaw_needs_a_freeze,
                                               calls_begun_before_the_thaw_are_not_sampled,
                                               samples_before_the_freeze_count, thaw_begins_a_fresh_window, NULL});
    weir_test_add_group(suite, "modes",
                        (const TTest *const[]){monitor_mode_only_watches, monitor_mode_by_flag,
                                               drop_lowers_the_limit_of_aimd, fixed_limit_never_moves, NULL});
    weir_test_add_group(suite, "callbacks",
                        (const TTest *const[]){each_change_is_traced_once, frozen_limiter_traces_nothing,
                                               slow_algorithm_is_left_alone, callbacks_come_one_at_a_time, NULL});
    return weir_test_main(suite);
}
