/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "base/base.h"

/* atomic, relaxed: it changes only in a fork child, while that process has a single thread */
static atomic_uint generation;

static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static int watch_error; /* written inside watch_once, immutable after */

static void in_child(void)
{
    weir__log_after_fork();
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed); /* pairs with nothing: one thread, see above */
}

static void watch(void)
{
    watch_error = pthread_atfork(weir__log_before_fork, weir__log_after_fork, in_child);
}

unsigned weir__fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed); /* pairs with nothing: as in in_child */
}

int weir__fork_watch(void)
{
    WEIR__MUST(pthread_once(&watch_once, watch));
    return watch_error == 0 ? 0 : ENOMEM;
}
