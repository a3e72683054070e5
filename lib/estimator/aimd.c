/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* AIMD: one permit more while the permits are in use, a fraction of them gone at each loss. Latency counts only where
 * it exceeds the timeout, which is a loss. */

#include "estimator/estimator.h"

#include <math.h>

void weir__aimd_init(struct weir__aimd_state *state, const struct weir__aimd_parameters *parameters)
{
    *state = (struct weir__aimd_state){.parameters = *parameters, .limit = parameters->initial, .reason = ""};
}

static struct weir__aimd_parameters parameters_of(const weir_config *config)
{
    return (struct weir__aimd_parameters){
        .initial = weir__trunc32(config->initial_limit),
        .min = weir__trunc32(config->min_limit),
        .max = weir__trunc32(config->max_limit),
        .backoff_ratio = config->backoff_ratio,
        .timeout_ns = config->timeout,
    };
}

static int init(void *state, const weir_config *config)
{
    struct weir__aimd_parameters parameters = parameters_of(config);
    weir__aimd_init(state, &parameters);
    return 0;
}

static int32_t bounded(int32_t limit, const struct weir__aimd_parameters *p)
{
    limit = limit < p->min ? p->min : limit;
    return limit > p->max ? p->max : limit;
}

static uint32_t retune(void *opaque, const weir_config *config)
{
    struct weir__aimd_state *state = opaque;
    state->parameters = parameters_of(config);
    state->limit = bounded(state->limit, &state->parameters);
    return (uint32_t)state->limit;
}

/* The doubled in-flight count is taken in 64 bits, so that it cannot wrap. */
static uint32_t update(void *opaque, const weir_sample *sample)
{
    struct weir__aimd_state *state = opaque;
    const struct weir__aimd_parameters *p = &state->parameters;
    const char *reason = "growth";
    int32_t limit = state->limit;
    if (sample->outcome == WEIR_DROPPED || sample->rtt_ns > p->timeout_ns) {
        reason = sample->outcome == WEIR_DROPPED ? "drop" : "timeout";
        limit = weir__trunc32(limit * p->backoff_ratio);
    } else if ((int64_t)sample->in_flight * 2 >= limit && limit < INT32_MAX) {
        limit = limit + 1;
    }
    limit = bounded(limit, p);

    if (limit != state->limit)
        state->reason = reason;
    state->limit = limit;
    return (uint32_t)limit;
}

static void figures(const void *opaque, weir_figures *out)
{
    const struct weir__aimd_state *state = opaque;
    out->estimate = state->limit;
    out->reason = state->reason;
}

/* Cutting to whole permits takes at least one a window, which bounds what a ratio near 1 would need. */
static struct weir__halving halving(const void *opaque)
{
    const struct weir__aimd_state *state = opaque;
    double target = fmax(state->limit / 2.0, state->parameters.min);
    if (target >= state->limit)
        return (struct weir__halving){.wait_ns = state->parameters.timeout_ns};
    double by_ratio = ceil(log(target / state->limit) / log(state->parameters.backoff_ratio));
    double by_ones = ceil(state->limit - target);
    return (struct weir__halving){.windows = fmin(by_ratio, by_ones), .wait_ns = state->parameters.timeout_ns};
}

const struct weir__algorithm weir__aimd = {
    .class = {.name = "aimd", .state_size = sizeof(struct weir__aimd_state), .init = init, .update = update},
    .initial_limit = 20,
    .figures = figures,
    .windowed = true,
    .halving = halving,
    .retune = retune,
};
