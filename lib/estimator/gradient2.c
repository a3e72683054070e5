/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Gradient2: the limit follows the ratio of a long average of the RTT to the RTT of now. Outcomes play no part. */

#include "estimator/estimator.h"

#include <math.h>

#define WARMUP         10u  /* samples until the long average turns exponential */
#define LEAST_GRADIENT 0.5  /* a sample never asks for less than half */
#define STALE_RATIO    2.0  /* a long average this many times the RTT dates from a slower time ... */
#define STALE_DECAY    0.95 /* ... and is brought down at every sample */

void weir__gradient2_init(struct weir__gradient2_state *state, const struct weir__gradient2_parameters *parameters)
{
    state->parameters = *parameters;
    state->estimate = parameters->initial;
    weir__average_init(&state->rtt_long, parameters->long_window, WARMUP);
    state->reason = "";
}

static struct weir__gradient2_parameters parameters_of(const weir_config *config)
{
    return (struct weir__gradient2_parameters){
        .initial = config->initial_limit,
        .min = config->min_limit,
        .max = config->max_limit,
        .smoothing = config->smoothing,
        .rtt_tolerance = config->rtt_tolerance,
        .long_window = config->long_window,
        .allowance = {weir__constant, weir__trunc32(config->queue_allowance)},
    };
}

static int init(void *state, const weir_config *config)
{
    struct weir__gradient2_parameters parameters = parameters_of(config);
    weir__gradient2_init(state, &parameters);
    return 0;
}

static double allowance_of(const struct weir__gradient2_state *state)
{
    const struct weir__of_limit *allowance = &state->parameters.allowance;
    return (double)allowance->apply(weir__trunc32(state->estimate), allowance->argument);
}

static uint32_t limit_of(const struct weir__gradient2_state *state)
{
    return (uint32_t)weir__trunc32(state->estimate);
}

static uint32_t retune(void *opaque, const weir_config *config)
{
    struct weir__gradient2_state *state = opaque;
    struct weir__average span;
    state->parameters = parameters_of(config);
    weir__average_init(&span, state->parameters.long_window, WARMUP);
    state->rtt_long.divisor = span.divisor;
    state->estimate = weir__dmax(state->parameters.min, weir__dmin(state->parameters.max, state->estimate));
    return limit_of(state);
}

/* An RTT of 0 would make NaN of the gradient and keep it for ever: it counts as 1 ns. */
static uint32_t update(void *opaque, const weir_sample *sample)
{
    struct weir__gradient2_state *state = opaque;
    const struct weir__gradient2_parameters *p = &state->parameters;
    double queue = allowance_of(state);
    double rtt = sample->rtt_ns == 0 ? 1.0 : (double)sample->rtt_ns;
    double rtt_long = weir__average_add(&state->rtt_long, rtt);
    if ((rtt_long / rtt) > STALE_RATIO)
        state->rtt_long.value = state->rtt_long.value * STALE_DECAY;
    if ((double)sample->in_flight < (state->estimate / 2))
        return limit_of(state);

    double gradient = weir__dmax(LEAST_GRADIENT, weir__dmin(1.0, ((p->rtt_tolerance * rtt_long) / rtt)));
    double next = (state->estimate * gradient) + queue;
    next = (state->estimate * (1 - p->smoothing)) + (next * p->smoothing);
    next = weir__dmax(p->min, weir__dmin(p->max, next));

    uint32_t old_limit = limit_of(state);
    state->estimate = next;
    if (limit_of(state) != old_limit)
        state->reason = limit_of(state) > old_limit ? "growth" : "gradient";
    return limit_of(state);
}

static void figures(const void *opaque, weir_figures *out)
{
    const struct weir__gradient2_state *state = opaque;
    out->rtt_noload_ns = weir__trunc_u64(state->rtt_long.value);
    out->estimate = state->estimate;
    out->reason = state->reason;
}

/* At the least gradient g a window takes the estimate E to rE + sq, with r = 1 - s(1 - g), whose fixed point is
 * F = q/(1 - g): after n windows it is F + (E - F)r^n. Where F leaves no room for half, the time to come within one
 * permit of F. */
static struct weir__halving halving(const void *opaque)
{
    const struct weir__gradient2_state *state = opaque;
    double estimate = state->estimate;
    double rate = 1 - state->parameters.smoothing * (1 - LEAST_GRADIENT);
    double fixed_point = allowance_of(state) / (1 - LEAST_GRADIENT);
    double target = fmax(fmax(estimate / 2, fixed_point + 1), state->parameters.min);
    if (target >= estimate || fixed_point >= estimate)
        return (struct weir__halving){0};
    return (struct weir__halving){.windows = log((target - fixed_point) / (estimate - fixed_point)) / log(rate)};
}

const struct weir__algorithm weir__gradient2 = {
    .class = {.name = "gradient2", .state_size = sizeof(struct weir__gradient2_state), .init = init, .update = update},
    .initial_limit = 20,
    .figures = figures,
    .windowed = true,
    .halving = halving,
    .retune = retune,
};
