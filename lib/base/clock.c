/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <time.h>

#include "base/base.h"

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now); /* fails only for a bad clock or pointer */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t weir_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t weir__coarse_now_ns(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    return read_clock(CLOCK_MONOTONIC_COARSE);
#else
    return weir_now_ns();
#endif
}

uint64_t weir_after_ns(uint64_t duration_ns)
{
    uint64_t now = weir_now_ns();
    return duration_ns > WEIR_FOREVER - now ? WEIR_FOREVER : now + duration_ns;
}

int64_t weir__wall_offset_ns(void)
{
    return (int64_t)(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC));
}
