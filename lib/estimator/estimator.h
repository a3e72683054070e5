/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ESTIMATOR_PRIVATE_H
#define WEIR_ESTIMATOR_PRIVATE_H

/* How much may run. Everything here is a step function of the samples it is fed: no clock, no lock, no thread, and no
 * allocation after creation. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/config.h>
#include <weir/estimator.h>

/* How long an algorithm behind the sample window takes to halve its limit when every window tells it to. */
struct weir__halving {
    double windows;
    uint64_t wait_ns; /* on top: what it has to wait before the first window tells it */
};

/* The greatest dip that the algorithm makes on purpose. */
struct weir__drain {
    double share;       /* of the limit that is gone meanwhile; 0: it never drains */
    double duration_ns; /* about */
};

/* An algorithm the library brings: a class plus what only its own kind offers. */
struct weir__algorithm {
    weir_estimator_class class;
    uint32_t initial_limit;                                    /* its own, where the configuration says 0 */
    void (*figures)(const void *state, weir_figures *figures); /* fills what it knows; may be NULL */
    void (*set_wall_offset)(void *state, int64_t offset_ns);   /* may be NULL */
    void (*restart)(void *state, uint64_t now_ns);             /* begins a fresh window of its own; NULL: it has none */
    struct weir__drain (*drain)(const void *state);            /* NULL: it never drains */
    bool windowed;                                             /* wants config.window in front of it */
    struct weir__halving (*halving)(const void *state);        /* replaces class.reaction_ns if not NULL */
    uint32_t (*retune)(void *state, const weir_config *config); /* takes other parameters; the limit that follows */
};

extern const struct weir__algorithm weir__vegas2;
extern const struct weir__algorithm weir__gradient2;
extern const struct weir__algorithm weir__vegas;
extern const struct weir__algorithm weir__aimd;
extern const struct weir__algorithm weir__fixed;

/* Replaces what a resolved configuration leaves to the algorithm (WEIR_BY_ALGORITHM, NAN, an initial limit of 0) by
 * the algorithm's own values, then refuses contradictions: EINVAL, logged. */
int weir__estimator_settle(weir_config *config);

/* As weir_estimator_create, from a configuration that is resolved and settled. */
int weir__estimator_create(weir_estimator **estimator, const weir_config *config);

/* Forgets what the present window has seen, and begins another at the given time: in between the samples were withheld.
 * What closed windows have taught stays. A caller's own algorithm is not told. */
void weir__estimator_restart(weir_estimator *estimator, uint64_t now_ns);

/* Goes on with the parameters of a changed configuration, which is resolved and settled: bounds, the window's, and the
 * algorithm's own. What has been learned stays. A caller's own algorithm is not told, only its limit is bounded. */
void weir__estimator_retune(weir_estimator *estimator, const weir_config *config);

/* What the present state leads to; all 0 for a caller's own algorithm. */
struct weir__drain weir__estimator_drain(const weir_estimator *estimator);

/* The algorithms below reproduce Netflix/concurrency-limits at commit 78a74b98 to the bit: each double operation
 * is one IEEE operation in the order written (hence -ffp-contract=off). Their parameters have wider ranges here than in
 * the configuration, for the recorded runs of the reference use them. Where the reference throws, wraps or gets stuck
 * at NaN the rule is this library's own and stands beside the code. */

/* ---- arithmetic.c ---- */

/* Toward zero; NaN gives 0, the rest saturates. */
int32_t weir__trunc32(double x);
uint64_t weir__trunc_u64(double x);

/* NaN if either argument is NaN, and -0 is below +0; fmin and fmax prefer the other argument to NaN. */
double weir__dmin(double a, double b);
double weir__dmax(double a, double b);

/* UINT64_MAX where the sum is greater. */
uint64_t weir__add_u64(uint64_t a, uint64_t b);

/* trunc(log10 t), at least 1. */
int32_t weir__root10(int32_t t);

/* trunc(sqrt t), at least 1. */
int32_t weir__root2(int32_t t);

/* A parameter that depends on the limit. */
struct weir__of_limit {
    int32_t (*apply)(int32_t limit, int32_t argument);
    int32_t argument;
};
int32_t weir__constant(int32_t limit, int32_t argument);
int32_t weir__times_root10(int32_t limit, int32_t factor);
int32_t weir__root2_or_more(int32_t limit, int32_t least);

/* A step of the estimate. */
struct weir__of_estimate {
    double (*apply)(double estimate, double argument);
    double argument;
};
double weir__plus_root10(double estimate, double factor);

/* The mean of the first warmup values, then an exponential average. */
struct weir__average {
    double value;
    double sum;
    double divisor; /* window + 1 */
    uint32_t warmup;
    uint32_t count;
};
void weir__average_init(struct weir__average *average, uint32_t window, uint32_t warmup);
double weir__average_add(struct weir__average *average, double x);

/* ---- gradient2.c ---- */

struct weir__gradient2_parameters {
    double initial;
    double min;
    double max;
    double smoothing;
    double rtt_tolerance;
    uint32_t long_window;
    struct weir__of_limit allowance;
};

struct weir__gradient2_state {
    struct weir__gradient2_parameters parameters;
    double estimate;
    struct weir__average rtt_long;
    const char *reason;
};

void weir__gradient2_init(struct weir__gradient2_state *state, const struct weir__gradient2_parameters *parameters);

/* ---- vegas.c ---- */

struct weir__vegas_parameters {
    double initial;
    double min; /* the reference has 1 */
    double max;
    double smoothing;
    double probe_multiplier;
    uint64_t min_rtt_ns; /* a dropped sample below is no baseline; the reference has 0 */
    struct weir__of_limit alpha;
    struct weir__of_limit beta;
    struct weir__of_limit threshold;
    struct weir__of_estimate increase;
    struct weir__of_estimate decrease;
};

struct weir__vegas_state {
    struct weir__vegas_parameters parameters;
    double estimate;
    double jitter;        /* in [0.5, 1): share of the longest probe interval; 0: not drawn yet */
    uint64_t random;      /* state of the generator it is drawn from */
    uint64_t probe_count; /* samples since the last probe */
    uint64_t rtt_noload;  /* 0: none yet */
    const char *reason;
};

void weir__vegas_init(struct weir__vegas_state *state, const struct weir__vegas_parameters *parameters);

/* ---- aimd.c ---- */

struct weir__aimd_parameters {
    int32_t initial;
    int32_t min;
    int32_t max;
    double backoff_ratio;
    uint64_t timeout_ns;
};

struct weir__aimd_state {
    struct weir__aimd_parameters parameters;
    int32_t limit;
    const char *reason;
};

void weir__aimd_init(struct weir__aimd_state *state, const struct weir__aimd_parameters *parameters);

/* ---- window.c ---- */

struct weir__window_parameters {
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t min_rtt_ns; /* samples below are not counted */
    uint32_t samples;    /* a window with fewer is thrown away */
    double percentile;   /* 0: the mean */
    uint64_t *rtts;      /* room for capacity RTTs, used with a percentile only */
    uint32_t capacity;
};

struct weir__window {
    struct weir__window_parameters parameters;
    uint64_t close_ns;  /* the first sample that ends after this closes the window */
    uint64_t length_ns; /* of the current window */
    uint64_t closed;    /* windows closed so far, thrown away or not */

    uint32_t count;
    uint32_t in_flight; /* greatest */
    bool dropped;       /* any */
    uint64_t min_rtt_ns;
    uint64_t sum_low; /* 128-bit sum of the RTTs */
    uint64_t sum_high;
};

void weir__window_init(struct weir__window *window, const struct weir__window_parameters *parameters);

/* Begins a window afresh. */
void weir__window_restart(struct weir__window *window, uint64_t now_ns);

/* Goes on with other lengths, thresholds and counts; where the RTTs are kept stays. */
void weir__window_retune(struct weir__window *window, const struct weir__window_parameters *parameters);

/* Takes in a sample. True: it closed a window, and summary is what the window says. */
bool weir__window_add(struct weir__window *window, const weir_sample *sample, weir_sample *summary);

#endif
