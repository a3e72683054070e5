/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Clocks that jump, sleeps that end for no reason, jobs that run for days, and counters that wrap.
 *
 * The linker puts the functions named __wrap_ in the place of clock_gettime and syscall: the test decides what time it
 * is, and how a futex answers. A sleep with a deadline is cut into short ones, for the kernel knows nothing of the
 * test's time. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#ifdef HAVE_LINUX_FUTEX_H
#include <linux/futex.h>
#endif

#include "pool/pool.h"
#include "pool_support.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS   (3600 * SECOND_NS)
#define DAY_NS    (24 * HOUR_NS)

/* ---- time ---- */

static _Atomic int64_t monotonic_offset_ns;
static _Atomic int64_t wall_offset_ns;

static struct {
    atomic_uint readings; /* since the jump was set */
    atomic_uint at;       /* the reading at which it happens, from 1; 0: none */
    _Atomic int64_t by_ns;
} jump;

int __real_clock_gettime(clockid_t clock, struct timespec *time);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock == CLOCK_MONOTONIC && atomic_fetch_add(&jump.readings, 1) + 1 == atomic_load(&jump.at))
        atomic_fetch_add(&monotonic_offset_ns, atomic_load(&jump.by_ns));
    int result = __real_clock_gettime(clock, time);
    bool is_monotonic = clock == CLOCK_MONOTONIC;
#ifdef CLOCK_MONOTONIC_COARSE
    is_monotonic = is_monotonic || clock == CLOCK_MONOTONIC_COARSE;
#endif
    int64_t offset_ns = atomic_load(is_monotonic ? &monotonic_offset_ns : &wall_offset_ns);
    if (is_monotonic || clock == CLOCK_REALTIME) {
        int64_t ns = (int64_t)time->tv_sec * SECOND_NS + time->tv_nsec + offset_ns;
        time->tv_sec = (time_t)(ns / SECOND_NS);
        time->tv_nsec = (long)(ns % SECOND_NS);
    }
    return result;
}

static void set_jump(unsigned at, int64_t by_ns)
{
    atomic_store(&jump.at, 0);
    atomic_store(&jump.by_ns, by_ns);
    atomic_store(&jump.readings, 0);
    atomic_store(&jump.at, at);
}

static void no_time_passes_oddly(void)
{
    set_jump(0, 0);
    atomic_store(&monotonic_offset_ns, 0);
    atomic_store(&wall_offset_ns, 0);
}

/* ---- sleep ---- */

static struct {
    atomic_uint waits; /* since it was set */
    atomic_uint first; /* the wait that ends at once, from 1; 0: none */
    atomic_uint many;
    atomic_int error; /* what it says; 0: it returns 0 */
} sleeper;

long __real_syscall(long number, long a, long b, long c, void *d, void *e, long f);

#ifdef HAVE_LINUX_FUTEX_H
static bool ends_at_once(void)
{
    unsigned wait = atomic_fetch_add(&sleeper.waits, 1) + 1;
    unsigned first = atomic_load(&sleeper.first);
    return first != 0 && wait >= first && wait - first < atomic_load(&sleeper.many);
}

/* One short sleep toward a deadline of the test's time. */
static long sleep_a_little(long number, long word, long operation, long value, const struct timespec *deadline, long f)
{
    enum { MOST_NS = 2000000 };
    struct timespec now;
    (void)__real_clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t real_ns = (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
    int64_t left_ns =
        (int64_t)deadline->tv_sec * SECOND_NS + deadline->tv_nsec - real_ns - atomic_load(&monotonic_offset_ns);
    if (left_ns <= 0) {
        errno = ETIMEDOUT;
        return -1;
    }
    int64_t until_ns = real_ns + (left_ns < MOST_NS ? left_ns : MOST_NS);
    struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND_NS), .tv_nsec = (long)(until_ns % SECOND_NS)};
    long result = __real_syscall(number, word, operation, value, &until, NULL, f);
    if (result != 0 && errno == ETIMEDOUT)
        errno = EINTR;
    return result;
}
#endif

long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long);
    long b = va_arg(arguments, long);
    long c = va_arg(arguments, long);
    void *d = va_arg(arguments, void *);
    void *e = va_arg(arguments, void *);
    long f = va_arg(arguments, long);
    va_end(arguments);
#ifdef HAVE_LINUX_FUTEX_H
    if (number == SYS_futex && (b & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
        if (ends_at_once()) {
            errno = atomic_load(&sleeper.error);
            return errno == 0 ? 0 : -1;
        }
        if (d != NULL)
            return sleep_a_little(number, a, b, c, d, f);
    }
#endif
    return __real_syscall(number, a, b, c, d, e, f);
}

static void set_sleeper(unsigned first, unsigned many, int error)
{
    atomic_store(&sleeper.first, 0);
    atomic_store(&sleeper.many, many);
    atomic_store(&sleeper.error, error);
    atomic_store(&sleeper.waits, 0);
    atomic_store(&sleeper.first, first);
}

/* ---- a scenario with every kind of sleep and every reading of the clock ---- */

static void *call_some(void *arg)
{
    for (int i = 0; i < 3; i++) {
        if (weir_pool_call(arg, weir_test_nothing, NULL, NULL) != 0)
            return arg;
    }
    return NULL;
}

static weir_outcome sleep_a_moment(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    return WEIR_SUCCESS;
}

static bool is_one_of(int error, int a, int b)
{
    return error == a || error == b;
}

static void call_directly(weir_limiter *limiter)
{
    weir_permit permit = {0};
    int error = weir_limiter_timedacquire(limiter, &permit, weir_after_ns(100000));
    ck_assert(is_one_of(error, 0, ETIMEDOUT));
    if (error == 0)
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
}

/* Everything ends, in one of the ways it may, and once. */
static void run_scenario(uint32_t algorithm)
{
    struct weir_test_gate gate;
    weir_config config = weir_test_fixed(2, 4);
    config.algorithm = algorithm;
    config.idle_timeout = 1000000;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    weir_job patient = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_job expiring = WEIR_JOB_INIT(weir_test_nothing, NULL);
    patient.deadline_ns = weir_after_ns(UINT64_C(200) * 24 * 3600 * UINT64_C(1000000000));
    expiring.deadline_ns = weir_after_ns(1000000);
    int expired = weir_job_submit(pool, &expiring); /* refused at once, if its time was over by then */
    ck_assert(is_one_of(expired, 0, ETIMEDOUT));
    ck_assert(is_one_of(weir_job_submit(pool, &patient), 0, ETIMEDOUT));
    ck_assert_int_eq(weir_pool_drain(pool, weir_after_ns(2000000)), weir_test_stats(pool).queued > 0 ? ETIMEDOUT : 0);
    if (expired == 0) {
        ck_assert(is_one_of(weir_job_wait(&expiring, weir_after_ns(100000)), EINPROGRESS, ETIMEDOUT));
        ck_assert_int_eq(weir_job_wait(&expiring, WEIR_FOREVER), ETIMEDOUT);
    }
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    pthread_t thread = weir_test_thread(call_some, pool);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(weir_pool_submit(pool, sleep_a_moment, NULL), 0);
    int error = weir_pool_timedsubmit(pool, sleep_a_moment, NULL, weir_after_ns(100000));
    ck_assert(is_one_of(error, 0, ETIMEDOUT));
    call_directly(weir_pool_limiter(pool));
    ck_assert_ptr_null(weir_test_join(thread));
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.submitted, weir_test_accounted(&stats));
    ck_assert_uint_eq(stats.queued + stats.running + stats.in_flight, 0);
    ck_assert_uint_ge(stats.limit, 1);
    ck_assert_uint_le(stats.limit, config.max_limit);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}

/* ---- clocks that jump ---- */

/* The monotonic clock leaps ahead, as that of a machine that was suspended may, at the k-th look at it: by an hour, by
 * a year, or back by some milliseconds, which it must not, but does on some machines. */
START_TEST(monotonic_clock_jumps)
{
    static const int64_t jumps_ns[] = {HOUR_NS, 365 * DAY_NS, -3000000};
    no_time_passes_oddly();
    run_scenario(WEIR_VEGAS2);
    unsigned reached = atomic_load(&jump.readings);
    ck_assert_uint_ge(reached, 20);
    unsigned step = weir_test_slow() > 1 ? 5 : 1;
    for (unsigned k = 1; k <= reached; k += step) {
        no_time_passes_oddly();
        set_jump(k, jumps_ns[_i]);
        run_scenario(WEIR_VEGAS2);
    }
    no_time_passes_oddly();
}
END_TEST

/* The date is set by years, there and back: only the moments of drains depend on it. */
START_TEST(wall_clock_steps)
{
    static const int64_t steps_ns[] = {3650 * DAY_NS, -3650 * DAY_NS, HOUR_NS, -HOUR_NS};
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_config config = weir_test_fixed(2, 8);
    config.algorithm = WEIR_VEGAS2;
    no_time_passes_oddly();
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool_of(&config);
    for (unsigned step = 0; step < 8; step++) {
        atomic_store(&wall_offset_ns, steps_ns[step % 4]);
        atomic_fetch_add(&monotonic_offset_ns, 10 * SECOND_NS); /* the offset is looked at again */
        for (int i = 0; i < 40; i++)
            ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
        ck_assert_uint_ge(weir_test_stats(pool).limit, 1);
    }
    ck_assert_uint_eq(atomic_load(&ran), 320);
    weir_test_pool_end(pool);
    no_time_passes_oddly();
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- jobs that run for days ---- */

/* A job runs for forty days: the figures tell while it does, and afterwards; others pass it by, and each algorithm goes
 * on with a limit within its bounds and figures that are numbers. */
START_TEST(job_that_runs_for_days)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_config config = weir_test_fixed(4, 8);
    config.algorithm = (uint32_t)_i;
    config.window_min = 1000000;
    config.window_max = 1000000;
    no_time_passes_oddly();
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, 1);
    atomic_fetch_add(&monotonic_offset_ns, 40 * DAY_NS);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_ge(stats.longest_run_ns, (uint64_t)(40 * DAY_NS));
    ck_assert_uint_lt(stats.longest_run_ns, (uint64_t)(41 * DAY_NS));
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    for (int i = 0; i < 50; i++) {
        atomic_fetch_add(&monotonic_offset_ns, 2000000);
        ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    }
    weir_histogram histogram;
    ck_assert_int_eq(weir_pool_histogram(pool, WEIR_HISTOGRAM_RTT, &histogram), 0);
    ck_assert_uint_ge(histogram.max_ns, (uint64_t)(40 * DAY_NS));
    stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.succeeded, 101);
    ck_assert_uint_eq(stats.longest_run_ns, 0);
    ck_assert_uint_ge(stats.limit, 1);
    ck_assert_uint_le(stats.limit, config.max_limit);
    ck_assert(isfinite(stats.throughput) && stats.throughput >= 0);
    weir_test_pool_end(pool);
    no_time_passes_oddly();
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- sleeps that end for no reason ---- */

/* The k-th sleep ends at once, and so do all from there on for a while, by a signal, by chance, or because the word has
 * changed: each is slept again, and nothing is late, early, lost or done twice. */
START_TEST(sleeps_end_for_no_reason)
{
    static const int errors[] = {EINTR, EAGAIN, 0};
    no_time_passes_oddly();
    set_sleeper(0, 0, 0);
    run_scenario(WEIR_FIXED);
    unsigned reached = atomic_load(&sleeper.waits);
    for (unsigned k = 1; k <= reached; k++) {
        set_sleeper(k, k % 2 == 0 ? 1 : 1000, errors[_i]);
        run_scenario(WEIR_FIXED);
    }
    set_sleeper(0, 0, 0);
}
END_TEST

/* ---- counters ---- */

static void set_counters(weir_pool *pool, unsigned value)
{
    weir__lock(pool->limiter);
    pool->next_index = value;
    pool->pace.period = value;
    pool->stamp_turn = value;
    weir__unlock(pool->limiter);
    WEIR__MUST(pthread_mutex_lock(&pool->inbox.lock));
    pool->inbox.stamp_turn = value;
    WEIR__MUST(pthread_mutex_unlock(&pool->inbox.lock));
}

static bool have_wrapped(weir_pool *pool)
{
    weir__lock(pool->limiter);
    bool wrapped = pool->next_index < UINT32_MAX / 2 && pool->pace.period < UINT32_MAX / 2;
    weir__unlock(pool->limiter);
    return wrapped;
}

/* The 32-bit counters of a pool pass their greatest value: nothing stands still, is lost or is taken twice. Such a
 * number is reached in an hour by a busy pool, so it is set here. */
START_TEST(counters_wrap)
{
    enum { ROUNDS = 50, JOBS = 16, SHORT_JOBS = 20000 };
    atomic_uint ran = 0;
    unsigned rounds = 0;
    no_time_passes_oddly();
    weir_config config = weir_test_fixed(3, JOBS);
    config.idle_timeout = 100000;
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    set_counters(pool, UINT32_MAX - 3);
    for (; rounds < ROUNDS || !have_wrapped(pool); rounds++) {
        weir_test_take_jobs_for(pool, 0); /* however slow the machine is: then there is a watch, which counts periods */
        for (int i = 0; i < JOBS; i++)
            ck_assert_int_eq(weir_pool_submit(pool, i == 0 ? sleep_a_moment : weir_test_count, &ran), 0);
        ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    }
    for (int i = 0; i < SHORT_JOBS; i++) /* the times of only some of them are looked at */
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), rounds * JOBS + SHORT_JOBS);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.succeeded, 1 + rounds * (JOBS + 1) + SHORT_JOBS);
    ck_assert_uint_eq(stats.submitted, stats.succeeded);
    weir_test_pool_end(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock faults");
    TCase *tests = tcase_create("time");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_loop_test(tests, monotonic_clock_jumps, 0, 3);
    tcase_add_test(tests, wall_clock_steps);
    tcase_add_loop_test(tests, job_that_runs_for_days, WEIR_VEGAS2, WEIR_CUSTOM);
    tcase_add_loop_test(tests, sleeps_end_for_no_reason, 0, 3);
    tcase_add_test(tests, counters_wrap);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
