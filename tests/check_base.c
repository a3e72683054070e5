/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Clock, error texts, parking and memory. Threads and the log are in check_threads.c. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "suite.h"
#include "support.h"

#define MARK 12345 /* an errno value that no call sets */

/* ---- clock ---- */

/* The clock never goes back. */
START_TEST(clock_is_monotonic)
{
    uint64_t before = weir_now_ns();
    for (int i = 0; i < 100000; i++) {
        uint64_t now = weir_now_ns();
        if (now < before)
            ck_abort_msg("%llu after %llu", (unsigned long long)now, (unsigned long long)before);
        before = now;
    }
    ck_assert_uint_gt(before, 0);
}
END_TEST

/* A deadline lies exactly the duration after an instant within the call. */
START_TEST(deadline_is_now_plus_duration)
{
    const uint64_t durations[] = {0, 1, 999000, 1000000000, UINT64_C(86400000000000) * 365};
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        uint64_t before = weir_now_ns();
        uint64_t deadline = weir_after_ns(durations[i]);
        uint64_t after = weir_now_ns();
        ck_assert_uint_ge(deadline, before + durations[i]);
        ck_assert_uint_le(deadline, after + durations[i]);
    }
}
END_TEST

/* A deadline too far away is WEIR_FOREVER, never one in the past. */
START_TEST(deadline_saturates)
{
    uint64_t now = weir_now_ns();
    ck_assert_uint_eq(weir_after_ns(WEIR_FOREVER), WEIR_FOREVER);
    ck_assert_uint_eq(weir_after_ns(WEIR_FOREVER - 1), WEIR_FOREVER);
    ck_assert_uint_eq(weir_after_ns(WEIR_FOREVER - now), WEIR_FOREVER);
    ck_assert_uint_ge(weir_after_ns(WEIR_FOREVER - UINT64_C(86400000000000) * 36500), now);
}
END_TEST

/* The wall offset turns monotonic time into the date. */
START_TEST(wall_offset_leads_to_the_date)
{
    struct timespec wall;
    ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &wall), 0);
    int64_t seconds = ((int64_t)weir_now_ns() + weir__wall_offset_ns()) / 1000000000;
    ck_assert_int_ge(seconds, wall.tv_sec - 60);
    ck_assert_int_le(seconds, wall.tv_sec + 60);
}
END_TEST

/* ---- error texts ---- */

/* Every value that the library returns has a text of its own; all others share one. */
START_TEST(error_texts_are_distinct)
{
    const int known[] = {0,           EAGAIN, EALREADY, EBUSY,  ECANCELED, ECHILD,   EDEADLK,
                         EINPROGRESS, EINVAL, EIO,      ENOMEM, ESHUTDOWN, ETIMEDOUT};
    const size_t count = sizeof known / sizeof known[0];
    const char *unknown = weir_strerror(99999);
    ck_assert_str_eq(unknown, "unknown error");
    ck_assert_str_eq(weir_strerror(-1), unknown);
    ck_assert_str_eq(weir_strerror(ENOTTY), unknown);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_gt(strlen(weir_strerror(known[i])), 0);
        ck_assert_str_ne(weir_strerror(known[i]), unknown);
        ck_assert_ptr_eq(weir_strerror(known[i]), weir_strerror(known[i]));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(weir_strerror(known[i]), weir_strerror(known[j]));
    }
}
END_TEST

/* ---- memory ---- */

/* Memory comes zeroed, and a request that cannot be met is NULL; errno keeps its value either way. */
START_TEST(memory_is_zeroed)
{
    errno = MARK;
    unsigned char *memory = weir__allocate(4096);
    ck_assert_int_eq(errno, MARK);
    ck_assert_ptr_nonnull(memory);
    for (size_t i = 0; i < 4096; i++)
        if (memory[i] != 0)
            ck_abort_msg("byte %zu is %u", i, memory[i]);
    free(memory);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__has_feature)
    volatile size_t too_much = SIZE_MAX / 2;
    ck_assert_ptr_null(weir__allocate(too_much));
    ck_assert_int_eq(errno, MARK);
#endif
}
END_TEST

/* ---- parking ---- */

/* A wake-up before the wait is not lost, even where the deadline has passed. */
START_TEST(token_before_the_wait_is_kept)
{
    struct weir__parker parker;
    weir__parker_init(&parker);
    weir__unpark(&parker);
    ck_assert(weir__park(&parker, WEIR_FOREVER));
    weir__unpark(&parker);
    ck_assert(weir__park(&parker, 0));
    ck_assert(!weir__park(&parker, 0));
    weir__parker_destroy(&parker);
}
END_TEST

/* Several wake-ups before one wait count as one. */
START_TEST(tokens_do_not_add_up)
{
    struct weir__parker parker;
    weir__parker_init(&parker);
    for (int i = 0; i < 3; i++)
        weir__unpark(&parker);
    ck_assert(weir__park(&parker, WEIR_FOREVER));
    ck_assert(!weir__park(&parker, 0));
    weir__parker_destroy(&parker);
}
END_TEST

/* Without a wake-up a wait ends at its deadline and not before; one in the past ends at once. */
START_TEST(deadline_ends_the_wait)
{
    struct weir__parker parker;
    weir__parker_init(&parker);
    ck_assert(!weir__park(&parker, 0));
    ck_assert(!weir__park(&parker, 1));
    ck_assert(!weir__park(&parker, weir_now_ns()));
    const uint64_t durations[] = {1, 1000, 999000, 20000000};
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        uint64_t deadline = weir_after_ns(durations[i]);
        ck_assert(!weir__park(&parker, deadline));
        ck_assert_uint_ge(weir_now_ns(), deadline);
    }
    weir__unpark(&parker); /* a wait that timed out leaves the parker in order */
    ck_assert(weir__park(&parker, 0));
    weir__parker_destroy(&parker);
}
END_TEST

struct sleeper {
    struct weir__parker parker;
    uint64_t deadline_ns;
    bool woken;
    int error_number;
    pthread_t thread;
};

static void *sleep_once(void *arg)
{
    struct sleeper *sleeper = arg;
    errno = MARK;
    sleeper->woken = weir__park(&sleeper->parker, sleeper->deadline_ns);
    sleeper->error_number = errno;
    return NULL;
}

static void wake_sleeper(uint64_t deadline_ns)
{
    struct sleeper sleeper = {.deadline_ns = deadline_ns};
    weir__parker_init(&sleeper.parker);
    ck_assert_int_eq(pthread_create(&sleeper.thread, NULL, sleep_once, &sleeper), 0);
    for (int i = 0; i < 5; i++) /* so that it sleeps most of the time; correct either way */
        weir_test_yield();
    errno = MARK;
    weir__unpark(&sleeper.parker);
    ck_assert_int_eq(errno, MARK);
    ck_assert_int_eq(pthread_join(sleeper.thread, NULL), 0);
    ck_assert(sleeper.woken);
    ck_assert_int_eq(sleeper.error_number, MARK);
    weir__parker_destroy(&sleeper.parker);
}

/* A sleeping thread is woken, also where its deadline is the farthest that can be said. */
START_TEST(sleeper_is_woken)
{
    wake_sleeper(WEIR_FOREVER);
    wake_sleeper(WEIR_FOREVER - 1);
    wake_sleeper(UINT64_C(1) << 63);
    wake_sleeper(weir_after_ns(UINT64_C(3600000000000)));
}
END_TEST

struct player {
    struct weir__parker *own;
    struct weir__parker *other;
    unsigned rounds;
    unsigned *ball; /* whose turn it is changes with each wake-up, which orders the accesses */
};

static void *play(void *arg)
{
    struct player *player = arg;
    for (unsigned i = 0; i < player->rounds; i++) {
        (void)weir__park(player->own, WEIR_FOREVER);
        ++*player->ball;
        weir__unpark(player->other);
    }
    return NULL;
}

/* Two threads that wake each other in turn lose no wake-up and see what the other wrote. */
START_TEST(ping_pong)
{
    struct weir__parker parkers[2];
    unsigned ball = 0;
    unsigned rounds = weir_test_scaled(50000);
    weir__parker_init(&parkers[0]);
    weir__parker_init(&parkers[1]);
    struct player players[2] = {{&parkers[0], &parkers[1], rounds, &ball}, {&parkers[1], &parkers[0], rounds, &ball}};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, play, &players[1]), 0);
    weir__unpark(&parkers[0]);
    (void)play(&players[0]);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(ball, 2 * rounds);
    ck_assert(weir__park(&parkers[0], 0));
    weir__parker_destroy(&parkers[0]);
    weir__parker_destroy(&parkers[1]);
}
END_TEST

struct storm {
    struct weir__parker parker;
    atomic_uint work;
    atomic_bool over;
    unsigned rounds;
};

static void *bring_work(void *arg)
{
    struct storm *storm = arg;
    for (unsigned i = 0; i < storm->rounds; i++) {
        atomic_fetch_add(&storm->work, 1);
        weir__unpark(&storm->parker);
        if (i % 64 == 0)
            (void)sched_yield();
    }
    atomic_store(&storm->over, true);
    weir__unpark(&storm->parker);
    return NULL;
}

/* Whatever the interleaving of wake-ups and waits with short deadlines, no work is left behind a sleeping thread. */
START_TEST(storm_loses_no_wake_up)
{
    struct storm storm = {.rounds = weir_test_scaled(100000)};
    weir__parker_init(&storm.parker);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, bring_work, &storm), 0);
    unsigned done = 0;
    uint64_t state = weir_test_seed();
    while (!atomic_load(&storm.over)) {
        unsigned draw = (unsigned)weir_test_random(&state) % 4;
        (void)weir__park(&storm.parker, draw == 0 ? 0 : draw == 1 ? weir_after_ns(1000) : WEIR_FOREVER);
        done += atomic_exchange(&storm.work, 0);
    }
    done += atomic_exchange(&storm.work, 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(done, storm.rounds);
    weir__parker_destroy(&storm.parker);
}
END_TEST

struct frames {
    _Atomic(struct weir__parker *) offered;
    unsigned rounds;
    bool failed;
};

/* Each parker lies on a page of its own that is gone as soon as the wait is over. */
static void *park_on_vanishing_pages(void *arg)
{
    struct frames *frames = arg;
    for (unsigned i = 0; i < frames->rounds; i++) {
        struct weir__parker *parker =
            mmap(NULL, sizeof *parker, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (parker == MAP_FAILED) {
            frames->failed = true;
            return NULL;
        }
        weir__parker_init(parker);
        atomic_store_explicit(&frames->offered, parker, memory_order_release);
        if (!weir__park(parker, WEIR_FOREVER))
            frames->failed = true;
        weir__parker_destroy(parker);
        (void)munmap(parker, sizeof *parker);
    }
    return NULL;
}

/* The memory of a parker may vanish as soon as its owner was woken: the waker touches it no more. */
START_TEST(waker_does_not_touch_a_vanished_parker)
{
    struct frames frames = {.rounds = weir_test_scaled(20000)};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, park_on_vanishing_pages, &frames), 0);
    for (unsigned i = 0; i < frames.rounds; i++) {
        struct weir__parker *parker;
        while ((parker = atomic_exchange_explicit(&frames.offered, NULL, memory_order_acquire)) == NULL)
            (void)sched_yield();
        if (i % 4 == 0)
            (void)sched_yield();
        errno = MARK;
        weir__unpark(parker);
        if (errno != MARK)
            ck_abort_msg("errno is %d", errno);
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(!frames.failed);
}
END_TEST

/* ---- errno ---- */

/* No function of this layer changes errno; those that wait, start threads or write are in the tests of their own. */
START_TEST(errno_is_left_alone)
{
    struct weir__parker parker;
    errno = MARK;
    (void)weir_now_ns();
    (void)weir_after_ns(1);
    (void)weir__wall_offset_ns();
    (void)weir_strerror(EINVAL);
    (void)weir_strerror(-5);
    (void)weir__fork_generation();
    (void)weir__fork_watch();
    (void)weir__thread_least_stack();
    ck_assert_int_eq(errno, MARK);
    weir__parker_init(&parker);
    (void)weir__park(&parker, 0);
    (void)weir__park(&parker, weir_after_ns(1000000));
    weir__unpark(&parker);
    (void)weir__park(&parker, WEIR_FOREVER);
    weir__parker_destroy(&parker);
    ck_assert_int_eq(errno, MARK);
}
END_TEST

/* ---- fork ---- */

/* A fork child has a generation of its own, and so has its child; the parent keeps its own. */
START_TEST(fork_begins_a_generation)
{
    ck_assert_int_eq(weir__fork_watch(), 0);
    ck_assert_int_eq(weir__fork_watch(), 0);
    unsigned before = weir__fork_generation();
    pid_t child = fork();
    if (child == 0) {
        unsigned own = weir__fork_generation();
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(weir__fork_generation() != own && weir__fork_generation() != before ? 0 : 1);
        int status = 1;
        (void)waitpid(grandchild, &status, 0);
        _exit(status == 0 && own != before ? 0 : 1);
    }
    ck_assert_int_gt(child, 0);
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(weir__fork_generation(), before);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("base");
    weir_test_add_group(suite, "clock",
                        (const TTest *const[]){clock_is_monotonic, deadline_is_now_plus_duration, deadline_saturates,
                                               wall_offset_leads_to_the_date, NULL});
    weir_test_add_group(suite, "texts, memory, errno",
                        (const TTest *const[]){error_texts_are_distinct, memory_is_zeroed, errno_is_left_alone, NULL});
    weir_test_add_group(suite, "park",
                        (const TTest *const[]){token_before_the_wait_is_kept, tokens_do_not_add_up,
                                               deadline_ends_the_wait, sleeper_is_woken, ping_pong,
                                               storm_loses_no_wake_up, waker_does_not_touch_a_vanished_parker, NULL});
    weir_test_add_group(suite, "fork", (const TTest *const[]){fork_begins_a_generation, NULL});
    return weir_test_main(suite);
}
