/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PROBE_H
#define WEIR_PROBE_H

/* Static probes of the provider "weir", for perf, bpftrace and SystemTap: a nop each, and a note in the object about
 * where it is and where its arguments lie. weir_trace(7) documents them: keep them together. Arguments have to be at
 * hand: what had to be worked out for a probe would cost those who do not trace. No config.h here: the file that
 * includes this one has it.
 *
 * A probe is at one place only, in a function of its own, though several call it: perf finds the first place of a name
 * and takes no other. It costs a call, some 2 ns. */

#include <stdint.h>

/* fn: the job's function, 0 for a call with a permit of a limiter. */
#ifdef WITH_PROBES
void weir__probe_submit(const char *name, uintptr_t fn, int error);
void weir__probe_start(const char *name, uintptr_t fn, uint32_t in_flight);
void weir__probe_end(const char *name, uintptr_t fn, uint64_t rtt_ns, uint32_t outcome);
void weir__probe_shed(const char *name, uint16_t partition, uint32_t queued);
void weir__probe_limit(const char *name, uint32_t old_limit, uint32_t new_limit, const char *reason);
void weir__probe_phase(const char *name, const char *old_phase, const char *new_phase);
#else
/* Functions, for they take note of their arguments: a variable that is there for a probe only is used without probes,
 * too. */
static inline void weir__probe_submit(const char *name, uintptr_t fn, int error)
{
    (void)name, (void)fn, (void)error;
}

static inline void weir__probe_start(const char *name, uintptr_t fn, uint32_t in_flight)
{
    (void)name, (void)fn, (void)in_flight;
}

static inline void weir__probe_end(const char *name, uintptr_t fn, uint64_t rtt_ns, uint32_t outcome)
{
    (void)name, (void)fn, (void)rtt_ns, (void)outcome;
}

static inline void weir__probe_shed(const char *name, uint16_t partition, uint32_t queued)
{
    (void)name, (void)partition, (void)queued;
}

static inline void weir__probe_limit(const char *name, uint32_t old_limit, uint32_t new_limit, const char *reason)
{
    (void)name, (void)old_limit, (void)new_limit, (void)reason;
}

static inline void weir__probe_phase(const char *name, const char *old_phase, const char *new_phase)
{
    (void)name, (void)old_phase, (void)new_phase;
}
#endif

#endif
