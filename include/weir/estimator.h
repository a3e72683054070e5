/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ESTIMATOR_H
#define WEIR_ESTIMATOR_H

#include <stddef.h>
#include <stdint.h>

#include <weir/api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_config;

/* An estimator decides how much may run: it is fed one sample per completed call and answers with a limit. It reads
 * no clock, takes no lock and allocates nothing after creation, so a simulator drives it as well as a server does.
 * It is not thread-safe: its owner serialises the calls. Limiters and pools own one each; this header is for programs
 * that bring their own gate, and for benches. */

/* How a call ended. */
typedef enum weir_outcome {
    WEIR_SUCCESS = 0, /* its RTT tells something about the downstream */
    WEIR_IGNORE = 1,  /* it says nothing: answered from a cache, refused as malformed, cancelled */
    WEIR_DROPPED = 2  /* the downstream was overloaded: a timeout, a refused connection, a 503 or 429 */
} weir_outcome;

typedef struct weir_sample {
    uint64_t start_ns;  /* monotonic: permit granted and work begun */
    uint64_t rtt_ns;    /* from start to release, never the wait before; 0 counts as 1 */
    uint32_t in_flight; /* permits out when this one was granted, itself included */
    uint32_t outcome;   /* WEIR_SUCCESS or WEIR_DROPPED; others change nothing */
} weir_sample;

typedef struct weir_estimator weir_estimator;

/* What an estimator knows, for people and plots. Fields an algorithm has no notion of are 0. */
typedef struct weir_figures {
    uint64_t rtt_noload_ns;  /* the baseline: RTT of an idle downstream (gradient2: its long average) */
    uint64_t rtt_ns;         /* mean RTT of the last closed window (or of the last sample) */
    double throughput;       /* completions per second the downstream sustains (vegas2's mu) */
    double estimate;         /* the limit before it is cut to a whole number */
    const char *phase;       /* constant string: "startup", "high", "low", "steady" … */
    uint64_t windows;        /* windows closed so far */
    uint64_t drains;         /* low phases begun so far */
    uint32_t window_samples; /* samples the next window needs */
    uint32_t reserved;
    const char *reason; /* constant string: why the limit last changed, "" before */
} weir_figures;

/* A caller's own algorithm, used with WEIR_CUSTOM. init, update and reaction_ns are called one at a time per estimator,
 * under no lock of the library. They must not block. */
typedef struct weir_estimator_class {
    const char *name;
    size_t state_size;                                          /* bytes, zeroed and aligned for any type before init */
    int (*init)(void *state, const struct weir_config *config); /* 0 or an errno value, which creation returns */
    uint32_t (*update)(void *state, const weir_sample *sample); /* the new limit, cut to min_limit … max_limit */
    uint64_t (*reaction_ns)(const void *state);                 /* NULL: not known */
} weir_estimator_class;

/* An estimator of config->algorithm; NULL takes the defaults. The environment is not read. EINVAL: config is
 * contradictory (the log says how). ENOMEM. */
WEIR_API int weir_estimator_create(weir_estimator **estimator, const struct weir_config *config);

/* Feeds one sample, returns the new limit, always within min_limit … max_limit. No input makes it fail. */
WEIR_API unsigned weir_estimator_update(weir_estimator *estimator, const weir_sample *sample);

WEIR_API unsigned weir_estimator_limit(const weir_estimator *estimator);

/* Realtime minus monotonic clock, in ns: vegas2 drains on a grid of wall time so that hosts drain together. The caller
 * refreshes it every few seconds. Other algorithms ignore it. */
WEIR_API int weir_estimator_set_wall_offset(weir_estimator *estimator, int64_t realtime_minus_monotonic_ns);

/* The time it would take, from now, to halve the limit under full congestion, in ns; 0 where it never does (fixed) or
 * nobody knows (custom without reaction_ns). The queue in front is made as deep as this time. */
WEIR_API uint64_t weir_estimator_reaction_ns(const weir_estimator *estimator);

WEIR_API int weir_estimator_figures(const weir_estimator *estimator, struct weir_figures *figures);

/* NULL is allowed. */
WEIR_API void weir_estimator_destroy(weir_estimator *estimator);

#ifdef __cplusplus
}
#endif
#endif
