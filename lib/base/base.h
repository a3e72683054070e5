/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

/* What the library asks of the operating system: the clock, parking and waking one thread, starting one, the log, and
 * whether this process is a fork child. It knows nothing of the other layers. */

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/log.h>
#include <weir/time.h>

/* For pthread calls that cannot fail in a correct program: a failure is a bug of this library. */
#define WEIR__MUST(call_) weir__must((call_), #call_, __FILE__, __LINE__)
void weir__must_fail(const char *call, const char *file, int line, int error);
static inline void weir__must(int error, const char *call, const char *file, int line)
{
    if (error != 0)
        weir__must_fail(call, file, line, error);
}

/* No function of the library is a cancellation point, though some that it calls are: those stand between these two. A
 * thread that is cancelled in one of them would leave locks, counts and jobs behind. */
static inline int weir__cancel_forbid(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    WEIR__MUST(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before));
    return before;
}

static inline void weir__cancel_restore(int before)
{
    WEIR__MUST(pthread_setcancelstate(before, NULL));
}

/* ---- delay.c ---- */

/* Where threads meet. Nothing, but in a build that is configured with --enable-test-delays. */
#ifdef WEIR_TEST_DELAYS
void weir__delay(void);
#define WEIR__DELAY() weir__delay()
#else
#define WEIR__DELAY() ((void)0)
#endif

/* ---- clock.c ---- */

/* As weir_now_ns, up to some 10 ms behind it, for a fifth of what that costs. */
uint64_t weir__coarse_now_ns(void);

/* Realtime minus monotonic, in ns. */
int64_t weir__wall_offset_ns(void);

/* ---- memory.c ---- */

/* Zeroed memory, or NULL; errno stays as it was. */
void *weir__allocate(size_t size);

/* The same in pages of its own, which take room only once they are used, and no time before. */
void *weir__allocate_pages(size_t size);
void weir__free_pages(void *memory, size_t size);

/* ---- lock.c ---- */

/* For a lock that is held for a fraction of a microsecond: who finds it taken spins a little and then gives up the
 * processor a few times before it sleeps. */
void weir__mutex_init(pthread_mutex_t *mutex);
void weir__mutex_lock_taken(pthread_mutex_t *mutex);
static inline void weir__mutex_lock(pthread_mutex_t *mutex)
{
    WEIR__DELAY();
    if (pthread_mutex_trylock(mutex) != 0)
        weir__mutex_lock_taken(mutex);
}

/* ---- park.c: one thread waits, any thread wakes it ---- */

/* A wake-up that comes before the wait is not lost, several before one wait count as one. The storage may be reused as
 * soon as weir__park has returned true: a waker's last access is the store of the token (the futex call that follows
 * only names the address). */
struct weir__parker {
    atomic_uint token; /* atomic; 0: none, 1: a wake-up is there, 2: none and the owner sleeps */
#ifndef HAVE_LINUX_FUTEX_H
    pthread_mutex_t mutex;
    pthread_cond_t condition;
#endif
};

void weir__parker_init(struct weir__parker *parker);
void weir__parker_destroy(struct weir__parker *parker);

/* Waits for a wake-up and consumes it; false: deadline_ns passed first. Only the owner calls it. */
bool weir__park(struct weir__parker *parker, uint64_t deadline_ns);
void weir__unpark(struct weir__parker *parker);

/* ---- thread.c ---- */

/* Starts a joinable thread with every asynchronous signal blocked from its first instruction on. stack_size 0: the
 * system's default. Returns what pthread_create returned. */
int weir__thread_start(pthread_t *thread, uint64_t stack_size, void *(*run)(void *), void *arg);

/* The least stack size weir__thread_start accepts, in bytes. */
uint64_t weir__thread_least_stack(void);

/* Names the calling thread "<name>/<index>", the name cut so that the index fits into 15 bytes. */
void weir__thread_set_name(const char *name, unsigned index);

/* ---- log.c ---- */

#if defined(__GNUC__)
#define WEIR__PRINTF(text_, first_) __attribute__((__format__(__printf__, text_, first_)))
#else
#define WEIR__PRINTF(text_, first_)
#endif

/* Names and values are anybody's bytes: they must not forge lines or steer a terminal. */
static inline char weir__harmless(char c)
{
    return (char)((unsigned char)c < 0x20 || c == 0x7f ? '?' : c);
}

/* Writes a line of the given level if it is within threshold (a config's log); what is not harmless in it becomes a
 * question mark. Never under a lock. */
void weir__log(uint32_t threshold, weir_log_level level, const char *format, ...) WEIR__PRINTF(3, 4);

/* The log's lock across a fork: a child must not inherit it held by a thread that it does not have. */
void weir__log_before_fork(void);
void weir__log_after_fork(void);

/* ---- fork.c ---- */

/* How many forks lie between the first process that used the library and this one. An object remembers the value of
 * its creation; a different one means that the object was inherited and its threads do not exist. */
extern atomic_uint weir__forks;
static inline unsigned weir__fork_generation(void)
{
    return atomic_load_explicit(&weir__forks, memory_order_relaxed); /* pairs with nothing: see fork.c */
}

/* Arranges for that; called by every creation. 0 or ENOMEM. */
int weir__fork_watch(void);

/* A lock that a fork waits for, so that the child finds what it protects whole. Such locks are never nested. */
struct weir__fork_lock {
    struct weir__fork_lock *next;
    struct weir__fork_lock *previous;
    pthread_mutex_t *lock; /* immutable while registered */
    uint64_t id;           /* immutable while registered: from 1 on, never used again in this process */
};

void weir__fork_register(struct weir__fork_lock *entry, pthread_mutex_t *lock);
void weir__fork_unregister(struct weir__fork_lock *entry);

/* Calls visit for the entry with the least id above after, with the registry locked, so that it stays. The entry's id;
 * 0: there is none. */
uint64_t weir__fork_visit(uint64_t after, void (*visit)(struct weir__fork_lock *entry, void *arg), void *arg);

#endif
