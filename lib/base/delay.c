/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "base/base.h"

#ifdef WEIR_TEST_DELAYS

/* A build for tests: where threads meet, one in 16 gives up the processor and one in 64 sleeps for up to 60 us, so that
 * interleavings come about which a machine left to itself shows once in a million rounds. */
void weir__delay(void)
{
    static atomic_uint threads;
    static _Thread_local uint32_t state; /* of an xorshift generator; 0: not begun */
    if (state == 0)                      /* relaxed: the numbers only have to differ */
        state = (atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1) * UINT32_C(2654435761) | 1;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    int saved_errno = errno;
    int cancel = weir__cancel_forbid();
    if (state % 64 == 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)(state >> 8) % 60000}, NULL);
    else if (state % 16 == 0)
        (void)sched_yield();
    weir__cancel_restore(cancel);
    errno = saved_errno;
}

#endif
