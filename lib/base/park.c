/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <limits.h>
#include <time.h>
#ifdef HAVE_LINUX_FUTEX_H
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/base.h"

/* Each sleeper waits on a word of its own: glibc's condition variables before 2.41 can lose a wake-up when several
 * threads wait on one (https://sourceware.org/bugzilla/show_bug.cgi?id=25847), and a private word names the thread to
 * wake. */
enum { EMPTY = 0, TOKEN = 1, ASLEEP = 2 };

static bool take_token(struct weir__parker *parker)
{
    unsigned expected = TOKEN;
    /* acquire pairs with the release in weir__unpark: what the waker wrote before is visible to the woken */
    return atomic_compare_exchange_strong_explicit(&parker->token, &expected, EMPTY, memory_order_acquire,
                                                   memory_order_relaxed);
}

static bool to_timespec(uint64_t deadline_ns, struct timespec *time)
{
    uint64_t seconds = deadline_ns / UINT64_C(1000000000);
    if (sizeof(time_t) < 8 && seconds > INT32_MAX)
        return false; /* farther than such a time_t can say: wait for ever */
    time->tv_sec = (time_t)seconds;
    time->tv_nsec = (long)(deadline_ns % UINT64_C(1000000000));
    return deadline_ns != WEIR_FOREVER;
}

#ifdef HAVE_LINUX_FUTEX_H

#if defined(SYS_futex_time64) && !defined(SYS_futex)
#define SYS_futex SYS_futex_time64
#endif

/* 32-bit machines have two futex calls, one for each width of time_t. */
static long futex_call(void)
{
#ifdef SYS_futex_time64
    if (sizeof(time_t) > sizeof(long))
        return SYS_futex_time64;
#endif
    return SYS_futex;
}

void weir__parker_init(struct weir__parker *parker)
{
    atomic_init(&parker->token, EMPTY);
}

void weir__parker_destroy(struct weir__parker *parker)
{
    (void)parker;
}

static bool park(struct weir__parker *parker, uint64_t deadline_ns)
{
    struct timespec time;
    const struct timespec *timeout = to_timespec(deadline_ns, &time) ? &time : NULL;
    for (;;) {
        WEIR__DELAY();
        if (take_token(parker))
            return true;
        WEIR__DELAY();
        unsigned expected = EMPTY;
        /* relaxed: the token itself is taken with acquire above */
        if (!atomic_compare_exchange_strong_explicit(&parker->token, &expected, ASLEEP, memory_order_relaxed,
                                                     memory_order_relaxed))
            continue;
        WEIR__DELAY();
        long result = 0;
        do { /* FUTEX_WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC */
            result = syscall(futex_call(), &parker->token, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, ASLEEP, timeout,
                             NULL, FUTEX_BITSET_MATCH_ANY);
            /* relaxed: only whether it is still ASLEEP; the token is taken with acquire above */
        } while (atomic_load_explicit(&parker->token, memory_order_relaxed) == ASLEEP &&
                 !(result != 0 && errno == ETIMEDOUT));
        WEIR__DELAY();
        expected = ASLEEP;
        /* relaxed: giving up the wait publishes nothing */
        if (atomic_compare_exchange_strong_explicit(&parker->token, &expected, EMPTY, memory_order_relaxed,
                                                    memory_order_relaxed))
            return false;
    }
}

bool weir__park(struct weir__parker *parker, uint64_t deadline_ns)
{
    int saved_errno = errno;
    bool woken = park(parker, deadline_ns);
    errno = saved_errno;
    return woken;
}

void weir__unpark(struct weir__parker *parker)
{
    int saved_errno = errno;
    WEIR__DELAY();
    /* release pairs with the acquire in take_token. After this line the parker may be gone: the call below only names
     * its address, and a wake-up of nobody, or of another futex that lies there by now, is allowed to be spurious. */
    if (atomic_exchange_explicit(&parker->token, TOKEN, memory_order_release) == ASLEEP) {
        WEIR__DELAY();
        (void)syscall(futex_call(), &parker->token, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
    }
    errno = saved_errno;
}

#else

void weir__parker_init(struct weir__parker *parker)
{
    pthread_condattr_t attributes;
    atomic_init(&parker->token, EMPTY);
    WEIR__MUST(pthread_mutex_init(&parker->mutex, NULL));
    WEIR__MUST(pthread_condattr_init(&attributes));
    WEIR__MUST(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    WEIR__MUST(pthread_cond_init(&parker->condition, &attributes));
    WEIR__MUST(pthread_condattr_destroy(&attributes));
}

void weir__parker_destroy(struct weir__parker *parker)
{
    WEIR__MUST(pthread_cond_destroy(&parker->condition));
    WEIR__MUST(pthread_mutex_destroy(&parker->mutex));
}

bool weir__park(struct weir__parker *parker, uint64_t deadline_ns)
{
    struct timespec time;
    bool timed = to_timespec(deadline_ns, &time);
    int error = 0;
    WEIR__MUST(pthread_mutex_lock(&parker->mutex));
    bool woken = take_token(parker);
    while (!woken && error == 0) { /* one waiter per condition: the lost wake-up named above needs two */
        error = timed ? pthread_cond_timedwait(&parker->condition, &parker->mutex, &time)
                      : pthread_cond_wait(&parker->condition, &parker->mutex);
        woken = take_token(parker);
    }
    WEIR__MUST(pthread_mutex_unlock(&parker->mutex));
    return woken;
}

void weir__unpark(struct weir__parker *parker)
{
    WEIR__MUST(pthread_mutex_lock(&parker->mutex));
    /* release pairs with the acquire in take_token */
    atomic_store_explicit(&parker->token, TOKEN, memory_order_release);
    WEIR__MUST(pthread_cond_signal(&parker->condition));
    WEIR__MUST(pthread_mutex_unlock(&parker->mutex));
}

#endif
