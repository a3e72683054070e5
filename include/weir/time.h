/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TIME_H
#define WEIR_TIME_H

#include <stdint.h>

#include <weir/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Time is nanoseconds of CLOCK_MONOTONIC: it never steps, and it has no relation to the date. Deadlines are absolute.
 * One that lies in the past means "try once": what is free is granted all the same. */

/* The deadline that never comes. */
#define WEIR_FOREVER UINT64_MAX

/* Now. MT-Safe, async-signal-safe. */
WEIR_API uint64_t weir_now_ns(void);

/* The deadline duration_ns from now; saturates at WEIR_FOREVER. MT-Safe, async-signal-safe. */
WEIR_API uint64_t weir_after_ns(uint64_t duration_ns);

#ifdef __cplusplus
}
#endif
#endif
