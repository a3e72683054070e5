/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <sched.h>

#include "base/base.h"

void weir__mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    WEIR__MUST(pthread_mutexattr_init(&attributes));
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    WEIR__MUST(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP));
#endif
    WEIR__MUST(pthread_mutex_init(mutex, &attributes));
    WEIR__MUST(pthread_mutexattr_destroy(&attributes));
}

/* Where threads outnumber processors by far, the holder has most likely been preempted by the very thread that wants
 * the lock. If that one sleeps at the lock, every later unlock has to wake one, who finds it taken again: a convoy,
 * with several switches of context per turn. If it steps aside, the holder ends its turn. */
void weir__mutex_lock_taken(pthread_mutex_t *mutex)
{
    enum { SPINS = 40, YIELDS = 4 };
    for (int i = 1; i < SPINS + YIELDS; i++) {
        if (pthread_mutex_trylock(mutex) == 0)
            return;
        if (i >= SPINS)
            (void)sched_yield();
    }
    WEIR__MUST(pthread_mutex_lock(mutex));
}
