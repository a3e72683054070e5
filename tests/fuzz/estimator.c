/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Any samples to any algorithm. The first byte chooses it, then come the bounds, then samples, whose numbers are of any
 * size. The limit stays within its bounds, figures are numbers, and nothing is undefined on the way. */

#include "fuzz.h"

#include <math.h>
#include <string.h>

#include <weir.h>

static uint32_t next_limit(struct fuzz_input *input)
{
    return 1 + (uint32_t)fuzz_number(input, 2);
}

/* Numbers of every size are about as frequent. */
static uint64_t next_time(struct fuzz_input *input)
{
    unsigned bytes = (unsigned)fuzz_number(input, 1) % 9;
    return fuzz_number(input, bytes);
}

static int create(weir_estimator **estimator, struct fuzz_input *input)
{
    static const char *const names[] = {"vegas2", "gradient2", "vegas", "aimd", "fixed"};
    weir_config config;
    FUZZ_CHECK(weir_config_init(&config) == 0);
    config.flags = WEIR_NO_ENV;
    config.log = WEIR_LOG_OFF;
    FUZZ_CHECK(weir_config_set(&config, "ALGORITHM", names[fuzz_number(input, 1) % 5]) == 0);
    config.min_limit = next_limit(input);
    config.max_limit = next_limit(input);
    uint64_t bits = fuzz_number(input, 1);
    if ((bits & 1) != 0)
        config.window = 0;
    if ((bits & 2) != 0)
        config.window_percentile = 0.9;
    if ((bits & 4) != 0)
        config.min_rtt = 0;
    if ((bits & 8) != 0)
        config.drain_interval = next_time(input);
    if ((bits & 16) != 0)
        config.rtt_ceiling = next_time(input);
    if ((bits & 32) != 0)
        config.window_min = config.window_max = next_time(input);
    return weir_estimator_create(estimator, &config);
}

static void check_figures(const weir_estimator *estimator, unsigned limit)
{
    weir_figures figures;
    FUZZ_CHECK(weir_estimator_figures(estimator, &figures) == 0);
    FUZZ_CHECK(weir_estimator_limit(estimator) == limit);
    FUZZ_CHECK(isfinite(figures.estimate) && isfinite(figures.throughput));
    FUZZ_CHECK(figures.throughput >= 0);
    FUZZ_CHECK(figures.phase != NULL && figures.reason != NULL);
    (void)weir_estimator_reaction_ns(estimator);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    weir_estimator *estimator = NULL;
    if (size < 6 || create(&estimator, &input) != 0)
        return 0;
    unsigned first = weir_estimator_limit(estimator);
    unsigned low = data[1] * 256u + data[2] + 1;
    unsigned high = data[3] * 256u + data[4] + 1;
    FUZZ_CHECK(first >= low && first <= high);
    uint64_t now_ns = 0;
    while (input.size > 0) {
        uint8_t kind = (uint8_t)fuzz_number(&input, 1);
        now_ns = (kind & 4) != 0 ? next_time(&input) : now_ns + next_time(&input);
        weir_sample sample = {.start_ns = now_ns,
                              .rtt_ns = next_time(&input),
                              .in_flight = (uint32_t)next_time(&input),
                              .outcome = kind % 4u};
        if ((kind & 8) != 0)
            (void)weir_estimator_set_wall_offset(estimator, (int64_t)next_time(&input));
        for (unsigned i = 0; i < 1 + (kind & 16u); i++) {
            unsigned limit = weir_estimator_update(estimator, &sample);
            FUZZ_CHECK(limit >= low && limit <= high);
            check_figures(estimator, limit);
        }
    }
    weir_estimator_destroy(estimator);
    return 0;
}
