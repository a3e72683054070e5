/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "base/base.h"

/* A child gets a copy of every lock as it was at the fork, and only the thread that forked. What another thread had in
 * hand at that moment would stay half done for ever. So the fork waits for the locks of all that is registered here,
 * and the child finds everything whole. */
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct weir__fork_lock *registry; /* guarded by registry_mutex; the newest first */
static uint64_t last_id;                 /* guarded by registry_mutex */

/* atomic, relaxed: it changes only in a fork child, while that process has a single thread. It begins a cache line, for
 * every submit reads it, and where the library is linked statically a variable of the program might lie before it. */
_Alignas(64) atomic_uint weir__forks;

/* Whether forks are watched: no, yes, or the process whose thread is about to arrange for it. Not a pthread_once: that
 * would keep a failure for ever, and memory is short for a while only. */
enum { UNWATCHED = 0, WATCHED = -1 };
static atomic_int watch;

static void before_fork(void)
{
    WEIR__MUST(pthread_mutex_lock(&registry_mutex));
    for (struct weir__fork_lock *entry = registry; entry != NULL; entry = entry->next)
        WEIR__MUST(pthread_mutex_lock(entry->lock));
    weir__log_before_fork();
}

static void after_fork(void)
{
    weir__log_after_fork();
    for (struct weir__fork_lock *entry = registry; entry != NULL; entry = entry->next)
        WEIR__MUST(pthread_mutex_unlock(entry->lock));
    WEIR__MUST(pthread_mutex_unlock(&registry_mutex));
}

static void in_child(void)
{
    after_fork();
    atomic_fetch_add_explicit(&weir__forks, 1, memory_order_relaxed); /* pairs with nothing: one thread, see above */
}

int weir__fork_watch(void)
{
    for (;;) {
        int seen = atomic_load_explicit(&watch, memory_order_acquire); /* pairs with the release below */
        if (seen == WATCHED)
            return 0;
        int process = (int)getpid(); /* what a fork child finds may be its parent's: that thread does not exist here */
        if (seen != process && atomic_compare_exchange_strong(&watch, &seen, process))
            break;
        (void)sched_yield();
    }
    bool watched = pthread_atfork(before_fork, after_fork, in_child) == 0;
    /* release pairs with the acquire above */
    atomic_store_explicit(&watch, watched ? WATCHED : UNWATCHED, memory_order_release);
    return watched ? 0 : ENOMEM;
}

void weir__fork_register(struct weir__fork_lock *entry, pthread_mutex_t *lock)
{
    entry->lock = lock;
    entry->previous = NULL;
    WEIR__MUST(pthread_mutex_lock(&registry_mutex));
    entry->id = ++last_id;
    entry->next = registry;
    if (registry != NULL)
        registry->previous = entry;
    registry = entry;
    WEIR__MUST(pthread_mutex_unlock(&registry_mutex));
}

void weir__fork_unregister(struct weir__fork_lock *entry)
{
    WEIR__MUST(pthread_mutex_lock(&registry_mutex));
    if (entry->previous != NULL)
        entry->previous->next = entry->next;
    else
        registry = entry->next;
    if (entry->next != NULL)
        entry->next->previous = entry->previous;
    WEIR__MUST(pthread_mutex_unlock(&registry_mutex));
}

uint64_t weir__fork_visit(uint64_t after, void (*visit)(struct weir__fork_lock *entry, void *arg), void *arg)
{
    struct weir__fork_lock *found = NULL;
    WEIR__MUST(pthread_mutex_lock(&registry_mutex));
    for (struct weir__fork_lock *entry = registry; entry != NULL && entry->id > after; entry = entry->next)
        found = entry;
    uint64_t id = found != NULL ? found->id : 0;
    if (found != NULL)
        visit(found, arg);
    WEIR__MUST(pthread_mutex_unlock(&registry_mutex));
    return id;
}
