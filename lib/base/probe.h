/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PROBE_H
#define WEIR_PROBE_H

/* Static probes of the provider "weir", for perf, bpftrace and SystemTap: a nop each, and a note in the object about
 * where it is and where its arguments lie. weir_trace(7) documents them: keep them together. Arguments have to be at
 * hand: what had to be worked out for a probe would cost those who do not trace. No config.h here: the file that
 * includes this one has it. */

#ifdef WITH_PROBES

#include <sys/sdt.h>

#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments" /* in what sdt.h expands to */
#endif

#define WEIR__PROBE2(name_, a_, b_)         STAP_PROBE2(weir, name_, a_, b_)
#define WEIR__PROBE3(name_, a_, b_, c_)     STAP_PROBE3(weir, name_, a_, b_, c_)
#define WEIR__PROBE4(name_, a_, b_, c_, d_) STAP_PROBE4(weir, name_, a_, b_, c_, d_)

#else

#define WEIR__PROBE2(name_, a_, b_)         ((void)0)
#define WEIR__PROBE3(name_, a_, b_, c_)     ((void)0)
#define WEIR__PROBE4(name_, a_, b_, c_, d_) ((void)0)

#endif

#endif
