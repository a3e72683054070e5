/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A pool's threads: when they come and go, and what they are like inside. */

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool_support.h"

enum { SHORT_TIMEOUT_NS = 2000000 };

static const uint64_t long_timeout_ns = UINT64_C(3600000000000);

/* ---- how many ---- */

/* A pool without work has started no thread, a pool with one job at a time has one, and with n jobs at once n. */
START_TEST(on_demand)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    unsigned before = weir_test_thread_baseline();
    weir_config config = weir_test_fixed(8, 32);
    config.idle_timeout = long_timeout_ns;
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_uint_eq(weir_test_stats(pool).workers, 0);
    ck_assert_uint_eq(weir_test_thread_count(), before);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    ck_assert_uint_eq(weir_test_stats(pool).workers, 1);
    weir_test_occupy(pool, &gate, 3);
    ck_assert_uint_eq(weir_test_stats(pool).workers, 3);
    ck_assert_uint_eq(weir_test_thread_count(), before + 3);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

struct crowd {
    struct weir_test_gate gate;
    atomic_uint now;
    atomic_uint most;
};

static weir_outcome stay_a_while(void *arg)
{
    struct crowd *crowd = arg;
    unsigned now = atomic_fetch_add(&crowd->now, 1) + 1;
    unsigned most = atomic_load(&crowd->most);
    while (now > most && !atomic_compare_exchange_weak(&crowd->most, &most, now))
        ;
    weir_test_gate_pass(&crowd->gate);
    atomic_fetch_sub(&crowd->now, 1);
    return WEIR_SUCCESS;
}

/* The pool grows at once to min(L, work), not only when its queue is full, and never above L. */
START_TEST(never_above_the_limit)
{
    enum { LIMIT = 8, JOBS = 1000 };
    struct crowd crowd = {.now = 0, .most = 0};
    weir_test_gate_init(&crowd.gate);
    unsigned before = weir_test_thread_baseline();
    weir_pool *pool = weir_test_pool(LIMIT, JOBS);
    for (int i = 0; i < JOBS; i++)
        ck_assert_int_eq(weir_pool_submit(pool, stay_a_while, &crowd), 0);
    WEIR_TEST_UNTIL(atomic_load(&crowd.now) == LIMIT);
    ck_assert_uint_eq(weir_test_stats(pool).workers, LIMIT);
    ck_assert_uint_eq(weir_test_thread_count(), before + LIMIT);
    weir_test_gate_open(&crowd.gate);
    while (weir_pool_drain(pool, weir_after_ns(1000000)) == ETIMEDOUT) {
        if (weir_test_stats(pool).workers > LIMIT || weir_test_thread_count() > before + LIMIT)
            ck_abort_msg("more threads than permits");
    }
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&crowd.most), LIMIT);
    weir_test_gate_destroy(&crowd.gate);
}
END_TEST

/* Idle workers leave after IDLE_TIMEOUT, down to MIN_LIMIT; the pool grows again afterwards. */
START_TEST(idle_ones_leave)
{
    enum { LIMIT = 16, FLOOR = 2 };
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    unsigned before = weir_test_thread_baseline();
    weir_config config = weir_test_fixed(LIMIT, LIMIT);
    config.idle_timeout = SHORT_TIMEOUT_NS;
    config.min_limit = FLOOR;
    weir_pool *pool = weir_test_pool_of(&config);
    for (int round = 0; round < 3; round++) {
        weir_test_gate_close(&gate);
        weir_test_occupy(pool, &gate, LIMIT);
        ck_assert_uint_eq(weir_test_stats(pool).workers, LIMIT);
        weir_test_gate_open(&gate);
        WEIR_TEST_UNTIL(weir_test_stats(pool).workers == FLOOR);
        WEIR_TEST_UNTIL(weir_test_thread_count() <= before + FLOOR + 1); /* one may be left to be joined */
        uint64_t later = weir_after_ns(20 * (uint64_t)SHORT_TIMEOUT_NS);
        WEIR_TEST_UNTIL(weir_now_ns() > later);
        ck_assert_uint_eq(weir_test_stats(pool).workers, FLOOR);
    }
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A job that comes just when the last idle worker gives up its wait is not lost. */
START_TEST(idle_timeout_race)
{
    unsigned rounds = weir_test_rounds(1500, 50);
    uint64_t random = weir_test_seed();
    weir_config config = weir_test_fixed(3, 8);
    config.idle_timeout = 200000;
    weir_pool *pool = weir_test_pool_of(&config);
    for (unsigned i = 0; i < rounds; i++) {
        atomic_uint ran = 0;
        for (int k = 0; k < 3; k++) {
            if (weir_pool_submit(pool, weir_test_count, &ran) != 0)
                ck_abort_msg("submit");
        }
        if (weir_pool_drain(pool, weir_after_ns(60 * UINT64_C(1000000000))) != 0 || atomic_load(&ran) != 3)
            ck_abort_msg("round %u: lost a job", i);
        uint64_t pause_until = weir_after_ns(weir_test_random(&random) % 400000);
        while (weir_now_ns() < pause_until)
            ;
    }
    weir_test_pool_end(pool);
}
END_TEST

struct identity {
    struct weir_test_gate gate;
    atomic_int thread;
};

static weir_outcome tell_thread(void *arg)
{
    atomic_store(&((struct identity *)arg)->thread, weir_test_thread_id());
    weir_test_gate_pass(&((struct identity *)arg)->gate);
    return WEIR_SUCCESS;
}

/* The worker that went idle last, whose caches are warm, gets the next job; the cold ones may time out. */
START_TEST(warmest_first)
{
    enum { WORKERS = 4 };
    struct identity identities[WORKERS];
    weir_config config = weir_test_fixed(WORKERS, WORKERS);
    config.idle_timeout = long_timeout_ns;
    weir_pool *pool = weir_test_pool_of(&config);
    for (int i = 0; i < WORKERS; i++) {
        weir_test_gate_init(&identities[i].gate);
        atomic_init(&identities[i].thread, 0);
        ck_assert_int_eq(weir_pool_submit(pool, tell_thread, &identities[i]), 0);
    }
    for (unsigned i = 0; i < WORKERS; i++)
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&identities[i].gate) == 1);
    for (unsigned i = 0; i < WORKERS; i++) {
        weir_test_gate_open(&identities[i].gate);
        WEIR_TEST_UNTIL(weir_test_stats(pool).idle == i + 1);
    }
    int warmest = atomic_load(&identities[WORKERS - 1].thread);
    for (int i = 0; i < 20; i++) {
        ck_assert_int_eq(weir_pool_call(pool, tell_thread, &identities[0], NULL), 0);
        ck_assert_int_eq(atomic_load(&identities[0].thread), warmest);
        WEIR_TEST_UNTIL(weir_test_stats(pool).idle == WORKERS);
    }
    weir_test_pool_end(pool);
    for (int i = 0; i < WORKERS; i++)
        weir_test_gate_destroy(&identities[i].gate);
}
END_TEST

static atomic_uint broken_workers;
static atomic_uint broken_jobs;

/* The first worker that comes by has no connection, say: it fails whatever it gets. */
static weir_outcome fail_on_one_worker(void *arg)
{
    static _Thread_local bool is_broken;
    (void)arg;
    if (!is_broken && atomic_fetch_add(&broken_workers, 1) == 0)
        is_broken = true;
    if (is_broken)
        (void)atomic_fetch_add(&broken_jobs, 1);
    return is_broken ? WEIR_DROPPED : WEIR_SUCCESS;
}

/* A worker that fails its jobs does not get all of them, while others are idle that would not. */
START_TEST(broken_one_steps_aside)
{
    enum { WORKERS = 3, BURSTS = 4, JOBS = 100 };
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_config config = weir_test_fixed(WORKERS, JOBS);
    config.idle_timeout = long_timeout_ns;
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, WORKERS);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_configure(pool, "INITIAL_LIMIT", "1"), 0);
    for (int burst = 0; burst < BURSTS; burst++) {
        ck_assert_int_eq(weir_pool_pause(pool), 0);
        for (int i = 0; i < JOBS; i++)
            ck_assert_int_eq(weir_pool_submit(pool, fail_on_one_worker, NULL), 0);
        ck_assert_int_eq(weir_pool_resume(pool), 0);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    }
    /* Once at first, and perhaps once more in each burst that begins before it has gone to rest. */
    ck_assert_uint_ge(atomic_load(&broken_jobs), 1);
    ck_assert_uint_le(atomic_load(&broken_jobs), BURSTS);
    ck_assert_uint_eq(weir_test_stats(pool).dropped, atomic_load(&broken_jobs));
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- what they are like ---- */

struct naming {
    struct weir_test_gate gate;
    pthread_mutex_t mutex;
    unsigned count;
    char names[64][32];
};

static weir_outcome tell_name(void *arg)
{
    struct naming *naming = arg;
    char name[32] = "";
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    (void)pthread_mutex_lock(&naming->mutex);
    memcpy(naming->names[naming->count++], name, sizeof name);
    (void)pthread_mutex_unlock(&naming->mutex);
    weir_test_gate_pass(&naming->gate);
    return WEIR_SUCCESS;
}

static void assert_name(const char *name, const char *start, bool *seen, unsigned workers)
{
    const char *slash = strrchr(name, '/');
    ck_assert_uint_le(strlen(name), 15);
    ck_assert_msg(slash != NULL && strncmp(name, start, (size_t)(slash - name)) == 0, "thread name %s", name);
    ck_assert_msg(slash - name == (ptrdiff_t)strlen(start) || strlen(name) == 15, "%s is cut too short", name);
    char *end;
    unsigned long index = strtoul(slash + 1, &end, 10);
    ck_assert(*end == '\0' && index < workers && !seen[index]);
    seen[index] = true;
}

/* Threads are named after the pool and an index of their own; the name is cut to 15 bytes, the index never. */
START_TEST(names)
{
    static const char *const pool_names[] = {"db", "a pool with a very long name", ""};
    enum { WORKERS = 12 };
    for (int i = 0; i < 3; i++) {
        struct naming naming = {.mutex = PTHREAD_MUTEX_INITIALIZER};
        bool seen[WORKERS] = {false};
        weir_pool *pool = NULL;
        weir_config config = weir_test_fixed(WORKERS, 0);
        weir_test_gate_init(&naming.gate);
        ck_assert_int_eq(weir_pool_create(&pool, pool_names[i], &config), 0);
        for (int k = 0; k < WORKERS; k++)
            ck_assert_int_eq(weir_pool_submit(pool, tell_name, &naming), 0);
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&naming.gate) == WORKERS);
        for (int k = 0; k < WORKERS; k++)
            assert_name(naming.names[k], pool_names[i], seen, WORKERS);
        weir_test_gate_open(&naming.gate);
        weir_test_pool_end(pool);
        weir_test_gate_destroy(&naming.gate);
    }
}
END_TEST

/* More than is usual: libcs give a new thread the stack of one that has left, if that is not very much larger. */
enum { STACK_BYTES = 16384 * 1024 };

/* One frame of a descent that touches as much of the stack as asked for. */
static unsigned descend(unsigned kilobytes)
{
    volatile unsigned char block[1024];
    block[0] = (unsigned char)kilobytes;
    block[1023] = 1;
    return kilobytes == 0 ? 0 : block[1023] + descend(kilobytes - 1) + block[0] - (unsigned char)kilobytes;
}

static weir_outcome use_stack(void *arg)
{
    size_t *size = arg;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstacksize(&attributes, size);
        (void)pthread_attr_destroy(&attributes);
    }
    /* Half of it in blocks of 1 KiB: with instrumented frames that is most of it. */
    return descend(STACK_BYTES / 1024 / 2) > 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

/* STACK_SIZE is what a worker has, also where it is no multiple of a page; a job may use it. */
START_TEST(stack_size)
{
    weir_config config = weir_test_fixed(1, 1);
    config.stack_size = STACK_BYTES - 1000;
    weir_pool *pool = weir_test_pool_of(&config);
    size_t size = 0;
    weir_outcome outcome = WEIR_DROPPED;
    ck_assert_int_eq(weir_pool_call(pool, use_stack, &size, &outcome), 0);
    ck_assert_int_eq(outcome, WEIR_SUCCESS);
    ck_assert_uint_ge(size, STACK_BYTES - 1000);
    ck_assert_uint_le(size, 2 * STACK_BYTES);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- signals ---- */

static weir_outcome tell_mask(void *arg)
{
    (void)pthread_sigmask(SIG_SETMASK, NULL, arg);
    return WEIR_SUCCESS;
}

/* In a worker every asynchronous signal is blocked, SIGPIPE included, and none that reports a fault of the running
 * code; the creating thread's mask stays as it was. */
START_TEST(signal_mask)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    static const int others[] = {SIGTERM, SIGINT,  SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGALRM,
                                 SIGUSR1, SIGUSR2, SIGURG, SIGPROF, SIGIO,   SIGWINCH};
    sigset_t before;
    sigset_t after;
    sigset_t mask;
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    (void)sigemptyset(&mask);
    weir_pool *pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_pool_call(pool, tell_mask, &mask, NULL), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        ck_assert_int_eq(sigismember(&mask, faults[i]), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        ck_assert_int_eq(sigismember(&mask, others[i]), 1);
    ck_assert_int_eq(sigismember(&mask, SIGRTMIN), 1);
    for (int number = 1; number < NSIG; number++)
        ck_assert_int_eq(sigismember(&after, number), sigismember(&before, number));
    weir_test_pool_end(pool);
}
END_TEST

static atomic_uint signals_taken;
static atomic_int signal_strays;
static _Atomic pid_t main_thread;

static void note_thread(int number)
{
    (void)number;
    if (weir_test_thread_id() != atomic_load(&main_thread))
        atomic_fetch_add(&signal_strays, 1);
    atomic_fetch_add(&signals_taken, 1);
}

/* Signals to the process never land in a worker, be it idle, busy or just starting: each is sent while this thread
 * would not take it, so that any other that would has it, and taken when it does again. */
START_TEST(signals_stay_out)
{
    enum { SIGNALS = 1000, LIMIT = 8 };
    struct weir_test_gate gate;
    struct sigaction action = {.sa_handler = note_thread, .sa_flags = SA_RESTART};
    struct sigaction before;
    sigset_t one;
    weir_test_gate_init(&gate);
    (void)sigemptyset(&one);
    (void)sigaddset(&one, SIGUSR1);
    atomic_store(&main_thread, weir_test_thread_id());
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &before), 0);
    weir_config config = weir_test_fixed(LIMIT, LIMIT);
    config.idle_timeout = SHORT_TIMEOUT_NS;
    weir_pool *pool = weir_test_pool_of(&config);
    for (int i = 0; i < SIGNALS; i++) {
        if (i % 100 == 0 && weir_pool_submit(pool, weir_test_pass, &gate) != 0)
            ck_abort_msg("submit");
        if (i == SIGNALS / 2)
            weir_test_gate_open(&gate);
        unsigned taken = atomic_load(&signals_taken);
        if (pthread_sigmask(SIG_BLOCK, &one, NULL) != 0 || kill(getpid(), SIGUSR1) != 0 ||
            weir_pool_call(pool, weir_test_nothing, NULL, NULL) > 0 || pthread_sigmask(SIG_UNBLOCK, &one, NULL) != 0)
            ck_abort_msg("signal %d", i);
        WEIR_TEST_UNTIL(atomic_load(&signals_taken) > taken);
    }
    weir_test_pool_end(pool);
    ck_assert_int_eq(sigaction(SIGUSR1, &before, NULL), 0);
    ck_assert_int_eq(atomic_load(&signal_strays), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

static void note_fault(int number)
{
    (void)number;
    atomic_fetch_add(&signals_taken, 1);
}

static weir_outcome raise_fault(void *arg)
{
    (void)arg;
    return pthread_kill(pthread_self(), SIGBUS) == 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

static weir_outcome write_to_nobody(void *arg)
{
    int *ends = arg;
    ssize_t written = write(ends[1], "x", 1);
    ends[0] = written < 0 ? errno : 0;
    return WEIR_SUCCESS;
}

/* A fault in a job reaches the program's handler; writing to a closed pipe is EPIPE and no death. */
START_TEST(faults_and_broken_pipes)
{
    struct sigaction action = {.sa_handler = note_fault};
    struct sigaction before;
    int ends[2];
    atomic_store(&signals_taken, 0);
    ck_assert_int_eq(sigaction(SIGBUS, &action, &before), 0);
    weir_pool *pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_pool_call(pool, raise_fault, NULL, NULL), 0);
    ck_assert_uint_eq(atomic_load(&signals_taken), 1);
    ck_assert_int_eq(sigaction(SIGBUS, &before, NULL), 0);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq(weir_pool_call(pool, write_to_nobody, ends, NULL), 0);
    ck_assert_int_eq(ends[0], EPIPE);
    ck_assert_int_eq(close(ends[1]), 0);
    weir_test_pool_end(pool);
}
END_TEST

/* No disposition of the process changes over the life of a pool. */
START_TEST(dispositions)
{
    struct sigaction before[NSIG];
    bool known[NSIG];
    for (int number = 1; number < NSIG; number++)
        known[number] = sigaction(number, NULL, &before[number]) == 0;
    weir_pool *pool = weir_test_pool(4, 4);
    for (int round = 0; round < 2; round++) {
        for (int number = 1; number < NSIG; number++) {
            struct sigaction now;
            if (!known[number])
                continue;
            ck_assert_int_eq(sigaction(number, NULL, &now), 0);
            ck_assert(now.sa_handler == before[number].sa_handler && now.sa_flags == before[number].sa_flags);
        }
        if (round == 0) {
            ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
            weir_test_pool_end(pool);
        }
    }
}
END_TEST

/* ---- the end of threads ---- */

static pthread_key_t late_key;
static atomic_uint late_ends;

static void end_late(void *value)
{
    (void)value;
    for (int i = 0; i < 10; i++)
        weir_test_yield();
    atomic_fetch_add(&late_ends, 1);
}

static weir_outcome set_late(void *gate)
{
    (void)pthread_setspecific(late_key, gate);
    weir_test_gate_pass(gate);
    return WEIR_SUCCESS;
}

/* destroy returns when every thread has ended, its destructors of thread-specific data included. */
START_TEST(gone_after_destroy)
{
    enum { WORKERS = 8 };
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    atomic_store(&late_ends, 0);
    ck_assert_int_eq(pthread_key_create(&late_key, end_late), 0);
    unsigned before = weir_test_thread_baseline();
    weir_pool *pool = weir_test_pool(WORKERS, 0);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(weir_pool_submit(pool, set_late, &gate), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == WORKERS);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&late_ends), WORKERS);
    WEIR_TEST_UNTIL(weir_test_thread_count() == before); /* the kernel drops a joined thread's entry a moment later */
    ck_assert_int_eq(pthread_key_delete(late_key), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool threads");
    TCase *numbers = tcase_create("how many");
    tcase_set_timeout(numbers, TEST_LIMIT_S);
    tcase_add_test(numbers, on_demand);
    tcase_add_test(numbers, never_above_the_limit);
    tcase_add_test(numbers, idle_ones_leave);
    tcase_add_test(numbers, idle_timeout_race);
    tcase_add_test(numbers, warmest_first);
    tcase_add_test(numbers, broken_one_steps_aside);
    tcase_add_test(numbers, gone_after_destroy);
    suite_add_tcase(suite, numbers);
    TCase *kinds = tcase_create("what they are like");
    tcase_set_timeout(kinds, TEST_LIMIT_S);
    tcase_add_test(kinds, names);
    tcase_add_test(kinds, stack_size);
    tcase_add_test(kinds, signal_mask);
    tcase_add_test(kinds, signals_stay_out);
    tcase_add_test(kinds, faults_and_broken_pipes);
    tcase_add_test(kinds, dispositions);
    suite_add_tcase(suite, kinds);
    return weir_test_main(suite);
}
