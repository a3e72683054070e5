/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What the estimator takes of each call: an update of it, by itself. The samples are those of a downstream that serves
 * 40 calls at once, as this estimator's own limits have shaped them; then a second one, which is in the same state all
 * the time, is fed with them. */

#include <stdlib.h>

#include <weir.h>

#include "peers.h"

enum { SAMPLES = 200000, SERVERS = 40 };
#define SERVICE_NS 10000000.0

static weir_estimator *create(uint32_t algorithm)
{
    weir_config config;
    weir_estimator *estimator;
    (void)weir_config_init(&config);
    config.flags |= WEIR_NO_ENV;
    config.algorithm = algorithm;
    if (weir_estimator_create(&estimator, &config) != 0)
        abort();
    return estimator;
}

/* Xorshift; G. Marsaglia, 2003. In [0, 1). */
static double draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-53;
}

static void shape(uint32_t algorithm, weir_sample *samples)
{
    weir_estimator *estimator = create(algorithm);
    uint64_t random = 88172645463325252;
    double now = 1e9;
    unsigned limit = weir_estimator_limit(estimator);
    for (unsigned i = 0; i < SAMPLES; i++) {
        double queue = limit > SERVERS ? (double)limit / SERVERS : 1;
        double rtt = SERVICE_NS * (0.7 + 0.6 * draw(&random)) * queue;
        now += SERVICE_NS * queue / limit;
        samples[i] = (weir_sample){
            .start_ns = (uint64_t)(now - rtt), .rtt_ns = (uint64_t)rtt, .in_flight = limit, .outcome = WEIR_SUCCESS};
        limit = weir_estimator_update(estimator, &samples[i]);
    }
    weir_estimator_destroy(estimator);
}

void measure_update(uint32_t algorithm, struct update *result)
{
    weir_sample *samples = calloc(SAMPLES, sizeof *samples);
    if (samples == NULL)
        abort();
    shape(algorithm, samples);
    weir_estimator *estimator = create(algorithm);
    uint64_t before = mallocs_counted();
    count_mallocs(true);
    uint64_t begin = now_ns();
    for (unsigned i = 0; i < SAMPLES; i++)
        (void)weir_estimator_update(estimator, &samples[i]);
    result->ns = (double)(now_ns() - begin) / SAMPLES;
    count_mallocs(false);
    result->mallocs = (double)(mallocs_counted() - before) / SAMPLES;
    weir_estimator_destroy(estimator);
    free(samples);
}
