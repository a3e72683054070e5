/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What goes wrong in pools of threads, where no other file shows that it does not here: see the register in README.md.
 *
 * The linker puts the functions named __wrap_ in the place of those that initialise and destroy mutexes and condition
 * variables, and of weir__unpark, so that their calls can be watched. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "pool_support.h"
#include "sanitized.h"

/* A thread sanitizer keeps signals back while a thread sleeps in a system call that it does not know. */
enum { SIGNALS_COME_AT_ONCE = !IS_THREAD_SANITIZED };

/* ---- what is initialised, and who is woken ---- */

enum { MOST_OBJECTS = 256 };

static struct {
    atomic_flag busy;
    const void *objects[MOST_OBJECTS]; /* guarded by busy: those that exist */
    unsigned count;                    /* guarded by busy */
    unsigned made;                     /* guarded by busy: since the start */
    unsigned faults;                   /* guarded by busy: made twice, or destroyed without having been made */
} objects = {.busy = ATOMIC_FLAG_INIT};

static void made(const void *object)
{
    while (atomic_flag_test_and_set(&objects.busy))
        ;
    objects.made++;
    for (unsigned i = 0; i < objects.count; i++)
        objects.faults += objects.objects[i] == object;
    if (objects.count < MOST_OBJECTS)
        objects.objects[objects.count++] = object;
    else
        objects.faults++;
    atomic_flag_clear(&objects.busy);
}

static void destroyed(const void *object)
{
    while (atomic_flag_test_and_set(&objects.busy))
        ;
    unsigned i = 0;
    while (i < objects.count && objects.objects[i] != object)
        i++;
    if (i < objects.count)
        objects.objects[i] = objects.objects[--objects.count];
    else
        objects.faults++;
    atomic_flag_clear(&objects.busy);
}

static atomic_uint wakes;

void __real_weir__unpark(struct weir__parker *parker);
int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __real_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __real_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int __real_pthread_cond_destroy(pthread_cond_t *condition);

void __wrap_weir__unpark(struct weir__parker *parker);
void __wrap_weir__unpark(struct weir__parker *parker)
{
    atomic_fetch_add(&wakes, 1);
    __real_weir__unpark(parker);
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
    made(mutex);
    return __real_pthread_mutex_init(mutex, attributes);
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    destroyed(mutex);
    return __real_pthread_mutex_destroy(mutex);
}

int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
    made(condition);
    return __real_pthread_cond_init(condition, attributes);
}

int __wrap_pthread_cond_destroy(pthread_cond_t *condition);
int __wrap_pthread_cond_destroy(pthread_cond_t *condition)
{
    destroyed(condition);
    return __real_pthread_cond_destroy(condition);
}

static weir_outcome end_thread(void *arg)
{
    pthread_exit(arg);
    return WEIR_SUCCESS;
}

static weir_outcome block_in_gate(void *gate)
{
    weir_test_gate_pass(gate);
    return WEIR_SUCCESS;
}

/* Each kind of object comes and goes: workers that leave or are ended, a keeper, callers that wait. */
static void use_all_kinds(void)
{
    struct weir_test_gate gate;
    weir_limiter *limiter = NULL;
    weir_permit permit = {0};
    weir_config config = weir_test_fixed(3, 4);
    config.idle_timeout = 1000000;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, 3);
    weir_job expiring = WEIR_JOB_INIT(weir_test_nothing, NULL);
    expiring.deadline_ns = weir_after_ns(100000000);
    ck_assert_int_eq(weir_job_submit(pool, &expiring), 0);
    ck_assert_int_eq(weir_job_wait(&expiring, WEIR_FOREVER), ETIMEDOUT);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(weir_pool_submit(pool, end_thread, NULL), 0);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_nothing, NULL, weir_after_ns(1000000)), ETIMEDOUT);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(weir_test_stats(pool).workers <= 1);
    weir_test_pool_end(pool);
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", &config), 0);
    ck_assert_int_eq(weir_limiter_acquire(limiter, &permit), 0);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    weir_test_gate_destroy(&gate);
}

/* Mutexes and condition variables are initialised once and destroyed once, each, whatever happens in between. */
START_TEST(primitives_are_initialised_once)
{
    for (int round = 0; round < 5; round++)
        use_all_kinds();
    ck_assert_uint_ge(objects.made, 5 * 4);
    ck_assert_uint_eq(objects.faults, 0);
    ck_assert_uint_eq(objects.count, 0);
}
END_TEST

/* However many workers are idle, a job wakes one of them. */
START_TEST(one_wake_per_job)
{
    enum { WORKERS = 32, JOBS = 200 };
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_config config = weir_test_fixed(WORKERS, WORKERS);
    config.idle_timeout = UINT64_C(3600000000000);
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, WORKERS);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(weir_test_stats(pool).idle == WORKERS);
    unsigned before = atomic_load(&wakes);
    for (unsigned i = 0; i < JOBS; i++) {
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
        WEIR_TEST_UNTIL(atomic_load(&ran) == i + 1 && weir_test_stats(pool).idle == WORKERS);
    }
    ck_assert_uint_le(atomic_load(&wakes) - before, JOBS);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- signals ---- */

static atomic_uint signals_taken;

static void take_signal(int number)
{
    (void)number;
    atomic_fetch_add(&signals_taken, 1);
}

/* A handler that does nothing, and system calls are not restarted after it. */
static void install_handler(struct sigaction *before)
{
    struct sigaction action = {.sa_handler = take_signal};
    ck_assert_int_eq(sigaction(SIGURG, &action, before), 0);
}

struct blocked {
    weir_pool *pool;
    weir_limiter *limiter;
    weir_job *job;
    int which;
    atomic_bool returned;
    int result;
};

enum { BLOCKING_CALLS = 11 };

static int make_blocking_call(struct blocked *blocked)
{
    weir_permit permit = {0};
    weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
    uint64_t hours_ns = weir_after_ns(UINT64_C(7200000000000));
    int error = EINVAL;
    switch (blocked->which) {
    case 0:
        return weir_pool_submit(blocked->pool, weir_test_nothing, NULL);
    case 1:
        return weir_pool_timedsubmit(blocked->pool, weir_test_nothing, NULL, hours_ns);
    case 2:
        return weir_pool_submit_copy(blocked->pool, weir_test_nothing, "", 1);
    case 3:
        return weir_pool_call(blocked->pool, weir_test_nothing, NULL, NULL);
    case 4:
        error = weir_job_submit(blocked->pool, &job);
        return error != 0 ? error : weir_job_wait(&job, WEIR_FOREVER);
    case 5:
        return weir_job_wait(blocked->job, hours_ns);
    case 6:
        return weir_pool_drain(blocked->pool, WEIR_FOREVER);
    case 7:
        error = weir_limiter_acquire(blocked->limiter, &permit);
        break;
    case 8:
        error = weir_limiter_timedacquire(blocked->limiter, &permit, hours_ns);
        break;
    case 9:
        error = weir_limiter_acquire_many(blocked->limiter, &permit, 1, NULL, WEIR_FOREVER);
        break;
    default:
        return weir_pool_shutdown(blocked->pool, WEIR_FINISH, hours_ns);
    }
    return error != 0 ? error : weir_limiter_release(blocked->limiter, &permit, WEIR_SUCCESS);
}

static void *block(void *arg)
{
    struct blocked *blocked = arg;
    blocked->result = make_blocking_call(blocked);
    atomic_store(&blocked->returned, true);
    return NULL;
}

/* No signal ends the wait of a blocked caller, and it goes on as usual afterwards. */
START_TEST(signals_during_every_blocking_call)
{
    struct weir_test_gate gate;
    struct sigaction before;
    weir_test_gate_init(&gate);
    install_handler(&before);
    weir_pool *pool = weir_test_pool(1, 1);
    weir_job job = WEIR_JOB_INIT(block_in_gate, &gate);
    ck_assert_int_eq(weir_job_submit(pool, &job), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    struct blocked blocked = {.pool = pool, .limiter = weir_pool_limiter(pool), .job = &job, .which = _i};
    pthread_t thread = weir_test_thread(block, &blocked);
    for (unsigned i = 0; i < 100; i++) {
        unsigned taken = atomic_load(&signals_taken);
        ck_assert_int_eq(pthread_kill(thread, SIGURG), 0);
        WEIR_TEST_UNTIL(atomic_load(&signals_taken) != taken);
        ck_assert(!atomic_load(&blocked.returned));
    }
    weir_test_gate_open(&gate);
    (void)weir_test_join(thread);
    ck_assert_int_eq(blocked.result, 0);
    weir_test_pool_end(pool);
    ck_assert_int_eq(sigaction(SIGURG, &before, NULL), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

static void *storm(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) {
        (void)kill(getpid(), SIGURG);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

/* Signals by the thousand while workers sleep and jobs trickle in: no job is lost, none runs twice. */
START_TEST(signals_while_jobs_trickle)
{
    unsigned jobs = weir_test_rounds(1000, 10);
    atomic_bool stop = false;
    atomic_uint ran = 0;
    struct sigaction before;
    install_handler(&before);
    weir_config config = weir_test_fixed(2, 4);
    config.idle_timeout = UINT64_C(3600000000000);
    weir_pool *pool = weir_test_pool_of(&config);
    pthread_t thread = weir_test_thread(storm, &stop);
    for (unsigned i = 0; i < jobs; i++) {
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
        ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    }
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    atomic_store(&stop, true);
    (void)weir_test_join(thread);
    ck_assert_uint_eq(atomic_load(&ran), 2 * jobs);
    ck_assert_uint_ge(weir_test_stats(pool).workers, 1);
    ck_assert_uint_gt(atomic_load(&signals_taken), 0);
    weir_test_pool_end(pool);
    ck_assert_int_eq(sigaction(SIGURG, &before, NULL), 0);
}
END_TEST

/* ---- who runs what ---- */

static weir_outcome tell_thread(void *arg)
{
    atomic_store((_Atomic pid_t *)arg, weir_test_thread_id());
    return WEIR_SUCCESS;
}

/* No submit, cancel or shutdown runs a job on its caller's thread, however full the pool is. */
START_TEST(never_on_the_submitters_thread)
{
    enum { JOBS = 12 };
    struct weir_test_gate gate;
    _Atomic pid_t threads[JOBS] = {0};
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, JOBS);
    weir_test_occupy(pool, &gate, 1);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(weir_pool_submit(pool, tell_thread, &threads[i]), 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_nothing, NULL), EAGAIN);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_nothing, NULL, weir_after_ns(1000000)), ETIMEDOUT);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(atomic_load(&threads[i]), 0);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    for (int i = 0; i < JOBS; i++) {
        ck_assert_int_ne(atomic_load(&threads[i]), 0);
        ck_assert_int_ne(atomic_load(&threads[i]), weir_test_thread_id());
    }
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Jobs that block hold up nobody while there are permits. */
START_TEST(blocked_jobs_do_not_hold_up_others)
{
    enum { BLOCKED = 4, JOBS = 100 };
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(BLOCKED + 1, JOBS);
    weir_test_occupy(pool, &gate, BLOCKED);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    WEIR_TEST_UNTIL(atomic_load(&ran) == JOBS);
    ck_assert_uint_eq(weir_test_gate_waiting(&gate), BLOCKED);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

struct flood {
    weir_pool *pool;
    atomic_bool stop;
};

static void *keep_busy(void *arg)
{
    struct flood *flood = arg;
    while (!atomic_load(&flood->stop))
        (void)weir_pool_submit(flood->pool, weir_test_nothing, NULL);
    return NULL;
}

/* Who waits for jobs of its own need not wait until the pool has nothing else to do. */
START_TEST(own_jobs_on_a_busy_pool)
{
    enum { JOBS = 10 };
    struct flood flood = {.pool = weir_test_pool(2, 8)};
    weir_job jobs[JOBS];
    pthread_t thread = weir_test_thread(keep_busy, &flood);
    WEIR_TEST_UNTIL(weir_test_stats(flood.pool).started > 0);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (weir_job)WEIR_JOB_INIT(weir_test_nothing, NULL);
        ck_assert_int_eq(weir_job_submit(flood.pool, &jobs[i]), 0);
    }
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(weir_job_wait(&jobs[i], WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_call(flood.pool, weir_test_nothing, NULL, NULL), 0);
    atomic_store(&flood.stop, true);
    (void)weir_test_join(thread);
    weir_test_pool_end(flood.pool);
}
END_TEST

/* ---- waiting ---- */

static uint64_t processor_time_ns(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static void *drain(void *pool)
{
    return weir_pool_drain(pool, WEIR_FOREVER) == 0 ? NULL : pool;
}

/* One job runs long, many workers are idle, somebody waits: none of them takes processor time, where one thread that
 * polls or spins would take all of the interval, and one that looks every millisecond a good part of it. */
START_TEST(waiting_costs_no_time)
{
    enum { WORKERS = 32, INTERVAL_NS = 300000000 };
    struct weir_test_gate gates[2];
    for (int i = 0; i < 2; i++)
        weir_test_gate_init(&gates[i]);
    weir_pool *pool = weir_test_pool(WORKERS, 4);
    weir_test_occupy(pool, &gates[0], WORKERS - 1);
    weir_test_occupy(pool, &gates[1], 1);
    weir_test_gate_open(&gates[0]);
    WEIR_TEST_UNTIL(weir_test_stats(pool).idle == WORKERS - 1);
    pthread_t thread = weir_test_thread(drain, pool);
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* it waits by then, or it counts against us */
    uint64_t before = processor_time_ns();
    (void)nanosleep(&(struct timespec){.tv_nsec = INTERVAL_NS}, NULL);
    uint64_t taken = processor_time_ns() - before;
    ck_assert_uint_lt(taken, INTERVAL_NS / 10);
    weir_test_gate_open(&gates[1]);
    ck_assert_ptr_null(weir_test_join(thread));
    weir_test_pool_end(pool);
    for (int i = 0; i < 2; i++)
        weir_test_gate_destroy(&gates[i]);
}
END_TEST

/* Between jobs that come one at a time nobody spins: what they cost beside their own work is wake-ups. */
START_TEST(gaps_cost_no_spinning)
{
    enum { JOBS = 100, GAP_NS = 2000000 };
    weir_pool *pool = weir_test_pool(8, 8);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    uint64_t began = weir_now_ns();
    uint64_t before = processor_time_ns();
    for (int i = 0; i < JOBS; i++) {
        ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
        (void)nanosleep(&(struct timespec){.tv_nsec = GAP_NS}, NULL);
    }
    uint64_t taken = processor_time_ns() - before;
    ck_assert_uint_lt(taken, (weir_now_ns() - began) / 3);
    weir_test_pool_end(pool);
}
END_TEST

/* Each call with a deadline ends at it and not before, on a pool where nothing moves: their time is kept by the caller,
 * not by a thread of the pool. A deadline in the past tries once. */
START_TEST(every_timed_call_ends_in_time)
{
    struct weir_test_gate gate;
    weir_permit permit = {0};
    weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_job queued = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 1);
    weir_limiter *limiter = weir_pool_limiter(pool);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_job_submit(pool, &queued), 0);
    for (int which = 0; which < 14; which++) {
        uint64_t deadline_ns = which % 2 == 0 ? weir_after_ns(10000000) : 1;
        int expected = ETIMEDOUT;
        int result = 0;
        switch (which / 2) {
        case 0:
            result = weir_pool_timedsubmit(pool, weir_test_nothing, NULL, deadline_ns);
            break;
        case 1:
            result = weir_job_timedsubmit(pool, &job, deadline_ns);
            break;
        case 2:
            expected = EINPROGRESS;
            result = weir_job_wait(&queued, deadline_ns);
            break;
        case 3:
            result = weir_pool_drain(pool, deadline_ns);
            break;
        case 4:
            result = weir_limiter_timedacquire(limiter, &permit, deadline_ns);
            break;
        case 5:
            result = weir_limiter_acquire_many(limiter, &permit, 1, NULL, deadline_ns);
            break;
        default:
            result = weir_pool_shutdown(pool, WEIR_FINISH, deadline_ns);
        }
        ck_assert_msg(result == expected, "call %d returned %d", which, result);
        ck_assert_uint_ge(weir_now_ns(), deadline_ns);
    }
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- promises that no fault asks for ---- */

/* A paused pool with queued jobs does not drain, one without does. */
START_TEST(paused_pools_do_not_drain)
{
    weir_pool *pool = weir_test_pool(2, 4);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    ck_assert_int_eq(weir_pool_drain(pool, weir_after_ns(5000000)), ETIMEDOUT);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
}
END_TEST

struct ending {
    weir_job job; /* first, so that on_done finds the rest */
    _Atomic pid_t done_by;
    _Atomic pid_t ran_on;
};

static weir_outcome note_worker(void *arg)
{
    atomic_store(&((struct ending *)arg)->ran_on, weir_test_thread_id());
    return WEIR_SUCCESS;
}

static void note_ending(weir_job *job)
{
    atomic_store(&((struct ending *)job)->done_by, weir_test_thread_id());
}

static void submit_ending(weir_pool *pool, struct ending *ending, uint64_t deadline_ns)
{
    memset(ending, 0, sizeof *ending);
    ending->job = (weir_job)WEIR_JOB_INIT(note_worker, ending);
    ending->job.on_done = note_ending;
    ending->job.deadline_ns = deadline_ns;
    ck_assert_int_eq(weir_job_submit(pool, &ending->job), 0);
}

/* on_done of a job that ran is called by its worker, of a cancelled one by who cancels, of an expired one by neither.
 */
START_TEST(who_calls_on_done)
{
    struct weir_test_gate gate;
    struct ending endings[4];
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 8);
    weir_test_occupy(pool, &gate, 1);
    submit_ending(pool, &endings[0], 0);
    submit_ending(pool, &endings[1], 0);
    submit_ending(pool, &endings[2], weir_after_ns(1000000));
    ck_assert_int_eq(weir_job_cancel(&endings[1].job), 0);
    ck_assert_int_eq(atomic_load(&endings[1].done_by), weir_test_thread_id());
    WEIR_TEST_UNTIL(atomic_load(&endings[2].done_by) != 0);
    ck_assert_int_ne(atomic_load(&endings[2].done_by), weir_test_thread_id());
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_ne(atomic_load(&endings[0].ran_on), 0);
    ck_assert_int_eq(atomic_load(&endings[0].done_by), atomic_load(&endings[0].ran_on));
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    submit_ending(pool, &endings[3], 0);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    ck_assert_int_eq(atomic_load(&endings[3].done_by), weir_test_thread_id());
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

static weir_job *watched;
static atomic_uint handler_faults;

static void use_safe_functions(int number)
{
    weir_outcome outcome = WEIR_IGNORE;
    (void)number;
    int status = weir_job_outcome(watched, &outcome);
    bool is_fine = status == EINPROGRESS || (status == 0 && outcome == WEIR_SUCCESS);
    is_fine = is_fine && weir_after_ns(WEIR_FOREVER) == WEIR_FOREVER && weir_now_ns() > 0;
    is_fine = is_fine && weir_strerror(EAGAIN) != NULL;
    atomic_fetch_add(&handler_faults, !is_fine);
    atomic_fetch_add(&signals_taken, 1);
}

/* The functions that are called async-signal-safe are: a handler calls them while its thread is inside the library. */
START_TEST(safe_in_signal_handlers)
{
    struct sigaction action = {.sa_handler = use_safe_functions};
    struct sigaction before;
    atomic_bool stop = false;
    weir_pool *pool = weir_test_pool(2, 2);
    weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
    ck_assert_int_eq(weir_job_submit(pool, &job), 0);
    watched = &job;
    ck_assert_int_eq(sigaction(SIGURG, &action, &before), 0);
    pthread_t thread = weir_test_thread(storm, &stop);
    for (unsigned i = 0; i < 200 || atomic_load(&signals_taken) < 20; i++)
        ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    atomic_store(&stop, true);
    (void)weir_test_join(thread);
    ck_assert_int_eq(sigaction(SIGURG, &before, NULL), 0);
    ck_assert_uint_eq(atomic_load(&handler_faults), 0);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- costs ---- */

static uint64_t time_of_submits(weir_pool *pool, unsigned jobs)
{
    uint64_t began = weir_now_ns();
    for (unsigned i = 0; i < jobs; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    return weir_now_ns() - began;
}

/* A submit behind two hundred thousand jobs costs what it costs behind none. A walk along them would cost thousands of
 * times as much; the least of a few batches is compared, for an interruption is no cost. */
START_TEST(submit_costs_the_same_behind_a_long_queue)
{
    enum { BATCH = 500, BATCHES = 10 };
    unsigned length = weir_test_scaled(200000, 20000);
    struct weir_test_gate gate;
    uint64_t least[2] = {UINT64_MAX, UINT64_MAX};
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, length + 2 * BATCH * BATCHES);
    weir_test_occupy(pool, &gate, 1);
    for (int end = 0; end < 2; end++) {
        for (int i = 0; i < BATCHES; i++) {
            uint64_t taken = time_of_submits(pool, BATCH);
            least[end] = taken < least[end] ? taken : least[end];
        }
        if (end == 0)
            (void)time_of_submits(pool, length);
    }
    ck_assert_uint_lt(least[1], 20 * least[0]);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- surroundings ---- */

/* Memory that malloc hands out, and what free leaves behind, is filled with rubbish: nothing relies on zeros. */
START_TEST(perturbed_memory)
{
#ifdef M_PERTURB
    (void)mallopt(M_PERTURB, 165);
#endif
    for (int round = 0; round < 5; round++)
        use_all_kinds();
}
END_TEST

/* Those that this process may use, and the first of them. */
static void find_processors(cpu_set_t *all, cpu_set_t *one)
{
    ck_assert_int_eq(sched_getaffinity(0, sizeof *all, all), 0);
    CPU_ZERO(one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(one) == 0; i++) {
        if (CPU_ISSET(i, all))
            CPU_SET(i, one);
    }
}

/* Nothing is sized by the number of processors: on one, the defaults are the same, and as many jobs block at once. */
START_TEST(processors_do_not_matter)
{
    enum { WORKERS = 6 };
    cpu_set_t all;
    cpu_set_t one;
    weir_config configs[2];
    struct weir_test_gate gate;
    find_processors(&all, &one);
    memset(configs, 0, sizeof configs);
    ck_assert_int_eq(weir_config_init(&configs[0]), 0);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_int_eq(weir_config_init(&configs[1]), 0);
    ck_assert_uint_eq(configs[0].initial_limit, configs[1].initial_limit);
    ck_assert_uint_eq(configs[0].max_limit, configs[1].max_limit);
    ck_assert_uint_eq(configs[0].queue_max, configs[1].queue_max);
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(WORKERS, 1);
    weir_test_occupy(pool, &gate, WORKERS);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- races ---- */

/* On one processor and on all there are: pools that live for a few jobs, whose workers are told to leave while they are
 * on their way to sleep. */
START_TEST(short_lives)
{
    enum { JOBS = 17 };
    unsigned rounds = weir_test_rounds(300, 10);
    cpu_set_t all;
    cpu_set_t one;
    find_processors(&all, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, _i == 0 ? &one : &all), 0);
    for (unsigned round = 0; round < rounds; round++) {
        atomic_uint ran = 0;
        weir_pool *pool = weir_test_pool(4, JOBS);
        for (int i = 0; i < JOBS; i++)
            ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
        weir_test_pool_end(pool);
        ck_assert_uint_eq(atomic_load(&ran), JOBS);
    }
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

static void *call_often(void *arg)
{
    struct flood *flood = arg;
    while (!atomic_load(&flood->stop)) {
        if (weir_pool_call(flood->pool, weir_test_nothing, NULL, NULL) != 0)
            return arg;
    }
    return NULL;
}

/* Two submitters that wait for every job, and few workers: each hand-over is a wake-up that must not be lost. A stall
 * would last until the test's time is up. */
START_TEST(every_hand_over_arrives)
{
    unsigned rounds = weir_test_rounds(5000, 10);
    struct flood flood = {.pool = weir_test_pool((uint32_t)(2 + _i), 2)};
    pthread_t thread = weir_test_thread(call_often, &flood);
    for (unsigned round = 0; round < rounds; round++)
        ck_assert_int_eq(weir_pool_call(flood.pool, weir_test_nothing, NULL, NULL), 0);
    atomic_store(&flood.stop, true);
    ck_assert_ptr_null(weir_test_join(thread));
    weir_test_pool_end(flood.pool);
}
END_TEST

/* ---- */

static TCase *group(Suite *suite, const char *name)
{
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, TEST_LIMIT_S);
    suite_add_tcase(suite, tests);
    return tests;
}

int main(void)
{
    Suite *suite = suite_create("pool faults");
    TCase *tests = group(suite, "objects and wake-ups");
    tcase_add_test(tests, primitives_are_initialised_once);
    tcase_add_test(tests, one_wake_per_job);
    tests = group(suite, "signals");
    if (SIGNALS_COME_AT_ONCE)
        tcase_add_loop_test(tests, signals_during_every_blocking_call, 0, BLOCKING_CALLS);
    tcase_add_test(tests, signals_while_jobs_trickle);
    tests = group(suite, "who runs what");
    tcase_add_test(tests, never_on_the_submitters_thread);
    tcase_add_test(tests, blocked_jobs_do_not_hold_up_others);
    tcase_add_test(tests, own_jobs_on_a_busy_pool);
    tests = group(suite, "waiting");
    tcase_add_test(tests, waiting_costs_no_time);
    tcase_add_test(tests, gaps_cost_no_spinning);
    tcase_add_test(tests, every_timed_call_ends_in_time);
    tests = group(suite, "promises");
    tcase_add_test(tests, paused_pools_do_not_drain);
    tcase_add_test(tests, who_calls_on_done);
    tcase_add_test(tests, safe_in_signal_handlers);
    tests = group(suite, "costs and surroundings");
    tcase_add_test(tests, submit_costs_the_same_behind_a_long_queue);
    tcase_add_test(tests, perturbed_memory);
    tcase_add_test(tests, processors_do_not_matter);
    tests = group(suite, "races");
    tcase_add_loop_test(tests, short_lives, 0, 2);
    tcase_add_loop_test(tests, every_hand_over_arrives, 0, 3);
    return weir_test_main(suite);
}
