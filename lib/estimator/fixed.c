/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The initial limit for ever. */

#include "estimator/estimator.h"

static int init(void *state, const weir_config *config)
{
    uint32_t *limit = state;
    *limit = config->initial_limit;
    return 0;
}

static uint32_t update(void *state, const weir_sample *sample)
{
    (void)sample;
    const uint32_t *limit = state;
    return *limit;
}

static uint32_t retune(void *state, const weir_config *config)
{
    (void)init(state, config);
    return config->initial_limit;
}

const struct weir__algorithm weir__fixed = {
    .class = {.name = "fixed", .state_size = sizeof(uint32_t), .init = init, .update = update},
    .initial_limit = 20,
    .retune = retune,
};
