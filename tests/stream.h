/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_STREAM_H
#define WEIR_TESTS_STREAM_H

/* An estimator fed by synthetic samples: one client of a downstream that works on so many calls at once, and whose
 * callers are always busy. The clock is the stream's own. */

#include <math.h>
#include <stdlib.h>

#include <weir.h>

#include "support.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

struct stream {
    weir_estimator *estimator;
    uint64_t now_ns;
    uint64_t seed;
    double rtt_ns;   /* R0 */
    double servers;  /* c: more in flight queue */
    double noise;    /* sigma of a lognormal factor */
    double answered; /* the share of calls that never reach the downstream, for example from a cache */
    bool contention; /* calls hinder each other instead of queueing */
    uint32_t demand; /* most in flight; 0: as much as the limit */
    uint32_t outcome;
    uint32_t limit;
};

/* A downstream of 40 servers and 20 ms; the documented defaults, without the environment. */
static inline void set_up(struct stream *stream, weir_config *config)
{
    *stream = (struct stream){.now_ns = 1000 * SECOND, .rtt_ns = 20.0 * (double)MS, .servers = 40, .noise = 0.2};
    ck_assert_int_eq(weir_config_init(config), 0);
    config->flags |= WEIR_NO_ENV;
}

/* Creates the estimator, asserted; each start has a seed of its own. */
static inline void start(struct stream *stream, const weir_config *config)
{
    static uint64_t base_seed; /* of this test's process */
    if (base_seed == 0)
        base_seed = weir_test_seed();
    stream->seed = weir_test_random(&base_seed);
    ck_assert_int_eq(weir_estimator_create(&stream->estimator, config), 0);
    stream->limit = weir_estimator_limit(stream->estimator);
}

/* A lognormal factor of mean 1. */
static inline double factor(struct stream *stream)
{
    if (stream->noise <= 0)
        return 1;
    double sum = 0; /* of twelve uniform deviates: nearly normal */
    for (int i = 0; i < 12; i++)
        sum += weir_test_uniform(&stream->seed);
    return exp(stream->noise * (sum - 6) - stream->noise * stream->noise / 2);
}

/* Of so many calls in flight, noise aside. Contention follows the universal scalability law with the most throughput at
 * that many servers. */
static inline double rtt_of(const struct stream *stream, double n)
{
    if (!stream->contention)
        return fmax(stream->rtt_ns, stream->rtt_ns * n / stream->servers);
    double kappa = (1 - 0.02) / (stream->servers * stream->servers);
    return stream->rtt_ns * (1 + 0.02 * (n - 1) + kappa * n * (n - 1));
}

/* The next completion. */
static inline void step(struct stream *stream)
{
    uint32_t in_flight = stream->demand != 0 && stream->demand < stream->limit ? stream->demand : stream->limit;
    double rtt = rtt_of(stream, in_flight);
    stream->now_ns += (uint64_t)fmax(1, rtt / in_flight);
    uint64_t taken = (uint64_t)fmax(1, rtt * factor(stream));
    if (stream->answered > 0 && weir_test_uniform(&stream->seed) < stream->answered)
        taken = 50000;
    weir_sample sample = {
        .start_ns = stream->now_ns - taken, .rtt_ns = taken, .in_flight = in_flight, .outcome = stream->outcome};
    stream->limit = weir_estimator_update(stream->estimator, &sample);
}

static inline void run_for(struct stream *stream, double seconds)
{
    uint64_t end = stream->now_ns + (uint64_t)(seconds * 1e9);
    while (stream->now_ns < end)
        step(stream);
}

static inline weir_figures figures_of(const struct stream *stream)
{
    weir_figures figures = {0};
    ck_assert_int_eq(weir_estimator_figures(stream->estimator, &figures), 0);
    return figures;
}

static inline int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over runs with different seeds: noise may mislead one of them for a moment. */
static inline double median_of(double (*run)(void))
{
    double results[9];
    for (int i = 0; i < 9; i++)
        results[i] = run();
    qsort(results, 9, sizeof results[0], ascending);
    return results[4];
}

/* The mean of the limit over some seconds, which pass. */
static inline double mean_limit(struct stream *stream, double seconds)
{
    uint64_t begin = stream->now_ns;
    uint64_t end = begin + (uint64_t)(seconds * 1e9);
    double sum = 0;
    while (stream->now_ns < end) {
        uint64_t before = stream->now_ns;
        uint32_t limit = stream->limit;
        step(stream);
        sum += limit * (double)(stream->now_ns - before);
    }
    return sum / (double)(stream->now_ns - begin);
}

#endif
