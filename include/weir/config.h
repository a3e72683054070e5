/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/api.h>
#include <weir/estimator.h>
#include <weir/log.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_algorithm {
    WEIR_VEGAS2 = 1, /* the default: finds the knee of the throughput curve */
    WEIR_GRADIENT2,  /* these three follow Netflix/concurrency-limits to the bit */
    WEIR_VEGAS,
    WEIR_AIMD,  /* loss only */
    WEIR_FIXED, /* initial_limit for ever: a plain pool */
    WEIR_CUSTOM /* config.estimator_class */
} weir_algorithm;

typedef enum weir_mode {
    WEIR_ENFORCE = 0,
    WEIR_MONITOR = 2 /* estimate and publish, enforce only max_limit; also accepted as a bit of flags */
} weir_mode;

/* Bits of weir_config.flags. */
#define WEIR_NO_ENV 1u /* creation does not read the environment */

/* A field whose default depends on the algorithm holds this until it is set (fields of type double hold NAN). */
#define WEIR_BY_ALGORITHM UINT32_MAX
/* queue_depth: from the reaction time of the limiter. */
#define WEIR_QUEUE_AUTO   UINT32_MAX
/* drain_interval: from the RTT. */
#define WEIR_DRAIN_AUTO   UINT64_MAX

/* One change of a limit, see weir_config.trace. Figures are 0 where the algorithm has no notion of them. */
typedef struct weir_trace_event {
    uint64_t time_ns; /* monotonic: the end of the sample that caused the change */
    const char *name; /* of the pool or limiter */
    uint32_t old_limit;
    uint32_t new_limit;
    const char *reason;     /* constant string */
    const char *phase;      /* constant string */
    uint64_t rtt_ns;        /* R, the last window's mean RTT */
    uint64_t rtt_noload_ns; /* R0 */
    double throughput;      /* X, completions per second */
    uint32_t in_flight;     /* N, permits out at that moment */
    uint32_t queue_depth;   /* D after the change */
    const char *depth_term; /* constant string: the term or bound that decides on D, see weir_stats */
    uint64_t reaction_ns;   /* T_r after the change */
} weir_trace_event;

typedef void weir_trace_fn(const weir_trace_event *event, void *arg);

/* Every option is a field with the option's name in lower case; weir_environ(7) describes each. Durations are ns.
 * Fill it by weir_config_init, change what you need, pass it to a creation, which copies it. */
typedef struct weir_config {
    size_t size; /* set by weir_config_init */

    uint32_t algorithm;     /* weir_algorithm */
    uint32_t initial_limit; /* 0: the algorithm's own */
    uint32_t min_limit;
    uint32_t max_limit;
    uint32_t queue_depth; /* WEIR_QUEUE_AUTO, or jobs */
    uint32_t queue_min;
    uint32_t queue_max;
    uint32_t window; /* 0 or 1 */
    uint32_t window_samples;
    uint32_t window_capacity;
    uint32_t long_window;      /* WEIR_BY_ALGORITHM, or samples */
    uint32_t queue_allowance;  /* WEIR_BY_ALGORITHM, or permits */
    uint32_t alpha;            /* WEIR_BY_ALGORITHM, or permits */
    uint32_t beta;             /* WEIR_BY_ALGORITHM, or permits */
    uint32_t probe_multiplier; /* WEIR_BY_ALGORITHM, or a factor */
    uint32_t mode;             /* weir_mode */
    uint32_t log;              /* weir_log_level */
    uint32_t flags;            /* WEIR_NO_ENV */
    uint64_t window_min;
    uint64_t window_max;
    uint64_t min_rtt;
    uint64_t timeout;
    uint64_t drain_interval; /* WEIR_DRAIN_AUTO, 0: off, or ns */
    uint64_t rtt_ceiling;    /* 0: none */
    uint64_t idle_timeout;
    uint64_t stack_size;      /* bytes, 0: the system's default */
    double window_percentile; /* 0: the mean */
    double smoothing;         /* NAN: by algorithm */
    double rtt_tolerance;     /* NAN: by algorithm */
    double backoff_ratio;
    const char *partitions; /* NULL: none; read at creation, so the string must live until then */
    const char *stats_dir;  /* NULL: off; likewise */

    /* Set by the program only. */
    const weir_estimator_class *estimator_class; /* WEIR_CUSTOM; must outlive the pool or limiter */
    void (*on_worker_start)(void *hook_arg);     /* on each worker before its first job */
    void (*on_worker_stop)(void *hook_arg);      /* on each worker that ends, also when a job ended its thread */
    void *hook_arg;
    weir_trace_fn *trace; /* called once per limit change, in order, under no lock */
    void *trace_arg;

    uint8_t origin[64]; /* the library's: where each option's value came from */
} weir_config;

/* Fills in the defaults and size. EINVAL: NULL. */
WEIR_API int weir_config_init(weir_config *config);

/* Sets one option, by its name in either case, from text in the syntax of the environment; "default" resets it. Strings
 * are not copied: they must live until the creation. EINVAL: no such option, syntax or range; config stays as it was
 * and a log line says what is accepted. */
WEIR_API int weir_config_set(weir_config *config, const char *option, const char *value);

/* Applies WEIR_<OPTION> and then WEIR_<OPTION>__<POOL> for every option; pool_name NULL means "default". An empty value
 * counts as unset. EINVAL as above, naming the variable; every bad variable is reported, none is applied then.
 * In set-user-ID programs it does nothing. */
WEIR_API int weir_config_load_env(weir_config *config, const char *pool_name);

/* Prints every option, its value and where it came from, one a line. EIO: the stream failed. */
WEIR_API int weir_config_print(const weir_config *config, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
