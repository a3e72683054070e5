/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_GRADIENT1_H
#define WEIR_TESTS_GRADIENT1_H

/* The reference's first gradient algorithm as a program would bring it: a weir_estimator_class. The library does not
 * ship it; it is here to show that a class can do all that the library's own algorithms do. */

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

struct gradient1_parameters {
    double initial;
    double min;
    double max;
    double smoothing;
    double rtt_tolerance;
    double backoff_ratio;
    int32_t queue_least;    /* the allowance is this or the root of the limit */
    int32_t probe_interval; /* -1: no probes */
};

struct gradient1 {
    struct gradient1_parameters parameters;
    double estimate;
    double rtt_noload; /* 0: none yet */
    int64_t countdown; /* samples until the next probe; a recording overwrites it */
    uint64_t random;   /* state of the generator that countdowns are drawn from */
    bool probed;       /* the last sample was a probe */
};

/* weir_config.hook_arg of an estimator of this class: what init takes and gives. */
struct gradient1_setup {
    struct gradient1_parameters parameters;
    struct gradient1 *created;
};

extern const weir_estimator_class gradient1_class;

/* Initial 50 and so on. */
struct gradient1_parameters gradient1_defaults(void);
void gradient1_init(struct gradient1 *state, const struct gradient1_parameters *parameters);

#endif
