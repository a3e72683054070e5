/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "base/probe.h"

#ifdef WITH_PROBES

#include <sys/sdt.h>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments" /* in what sdt.h expands to */
#endif

/* Where the whole program is optimised at once, a function could be copied, and the probe with it. */
#if defined __GNUC__ && !defined __clang__
#define ONE_PLACE __attribute__((__noipa__))
#else
#define ONE_PLACE __attribute__((__noinline__))
#endif

ONE_PLACE void weir__probe_submit(const char *name, uintptr_t fn, int error)
{
    STAP_PROBE3(weir, submit, name, fn, error);
}

ONE_PLACE void weir__probe_start(const char *name, uintptr_t fn, uint32_t in_flight)
{
    STAP_PROBE3(weir, start, name, fn, in_flight);
}

ONE_PLACE void weir__probe_end(const char *name, uintptr_t fn, uint64_t rtt_ns, uint32_t outcome)
{
    STAP_PROBE4(weir, end, name, fn, rtt_ns, outcome);
}

ONE_PLACE void weir__probe_shed(const char *name, uint16_t partition, uint32_t queued)
{
    STAP_PROBE3(weir, shed, name, partition, queued);
}

ONE_PLACE void weir__probe_limit(const char *name, uint32_t old_limit, uint32_t new_limit, const char *reason)
{
    STAP_PROBE4(weir, limit, name, old_limit, new_limit, reason);
}

ONE_PLACE void weir__probe_phase(const char *name, const char *old_phase, const char *new_phase)
{
    STAP_PROBE3(weir, phase, name, old_phase, new_phase);
}

#endif
