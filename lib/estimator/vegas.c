/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Vegas: the limit times the share of the RTT spent queueing is an estimate of the queue in the downstream, which is
 * kept between alpha and beta. The baseline is the least RTT since the last probe. */

#include "estimator/estimator.h"

#include <math.h>

#define ALPHA 3 /* times root10(limit) */
#define BETA  6

void weir__vegas_init(struct weir__vegas_state *state, const struct weir__vegas_parameters *parameters)
{
    *state = (struct weir__vegas_state){.parameters = *parameters, .estimate = parameters->initial, .reason = ""};
}

static struct weir__of_limit queue_bound(uint32_t configured, int32_t factor)
{
    if (configured == WEIR_BY_ALGORITHM)
        return (struct weir__of_limit){weir__times_root10, factor};
    return (struct weir__of_limit){weir__constant, weir__trunc32(configured)};
}

static struct weir__vegas_parameters parameters_of(const weir_config *config)
{
    return (struct weir__vegas_parameters){
        .initial = config->initial_limit,
        .min = config->min_limit,
        .max = config->max_limit,
        .smoothing = config->smoothing,
        .probe_multiplier = config->probe_multiplier,
        .min_rtt_ns = config->min_rtt,
        .alpha = queue_bound(config->alpha, ALPHA),
        .beta = queue_bound(config->beta, BETA),
        .threshold = {weir__times_root10, 1},
        .increase = {weir__plus_root10, 1},
        .decrease = {weir__plus_root10, -1},
    };
}

static int init(void *state, const weir_config *config)
{
    struct weir__vegas_parameters parameters = parameters_of(config);
    weir__vegas_init(state, &parameters);
    return 0;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static void draw_jitter(struct weir__vegas_state *state)
{
    uint64_t z = (state->random += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    state->jitter = 0.5 + (double)(z >> 11) * 0x1p-54;
}

/* Jitter keeps the limiters of many hosts from probing together, so its seed has to differ between them, and equal
 * samples have to give equal limits. The time and the RTT of the first sample do both. */
static void draw_first_jitter(struct weir__vegas_state *state, const weir_sample *sample)
{
    state->random = sample->start_ns ^ (sample->rtt_ns << 32 | sample->rtt_ns >> 32);
    draw_jitter(state);
}

static int32_t limit_of(const struct weir__vegas_state *state)
{
    return weir__trunc32(state->estimate);
}

static uint32_t retune(void *opaque, const weir_config *config)
{
    struct weir__vegas_state *state = opaque;
    state->parameters = parameters_of(config);
    state->estimate = weir__dmax(state->parameters.min, weir__dmin(state->parameters.max, state->estimate));
    return (uint32_t)limit_of(state);
}

static int32_t queue_of(const struct weir__vegas_state *state, uint64_t rtt)
{
    return weir__trunc32(ceil(state->estimate * (1 - ((double)state->rtt_noload / (double)rtt))));
}

/* Where the estimate goes, before bounds and smoothing. Nowhere: *reason stays as it was. */
static double aim(const struct weir__vegas_state *state, const weir_sample *sample, uint64_t rtt, const char **reason)
{
    const struct weir__vegas_parameters *p = &state->parameters;
    double estimate = state->estimate;
    if (sample->outcome == WEIR_DROPPED) {
        *reason = "drop";
        return p->decrease.apply(estimate, p->decrease.argument);
    }
    if ((double)sample->in_flight * 2 < estimate)
        return estimate;

    int32_t queue = queue_of(state, rtt);
    int32_t alpha = p->alpha.apply(limit_of(state), p->alpha.argument);
    int32_t beta = p->beta.apply(limit_of(state), p->beta.argument);
    int32_t threshold = p->threshold.apply(limit_of(state), p->threshold.argument);
    if (queue <= threshold) {
        *reason = "growth";
        return estimate + beta;
    }
    if (queue < alpha) {
        *reason = "growth";
        return p->increase.apply(estimate, p->increase.argument);
    }
    if (queue > beta) {
        *reason = "queue";
        return p->decrease.apply(estimate, p->decrease.argument);
    }
    return estimate;
}

static bool probe_is_due(const struct weir__vegas_state *state)
{
    return ((state->jitter * state->parameters.probe_multiplier) * state->estimate) <= (double)state->probe_count;
}

/* True: the sample has become the baseline, which is all it is good for. That a drop may do so too, and be lost, is the
 * reference's way. But a failure faster than any answer of the downstream, a refused connection, would spoil the
 * baseline until the next probe: it is only a drop. */
static bool take_baseline(struct weir__vegas_state *state, const weir_sample *sample, uint64_t rtt)
{
    state->probe_count++;
    if (sample->outcome == WEIR_DROPPED && rtt < state->parameters.min_rtt_ns)
        return false;
    if (probe_is_due(state)) {
        draw_jitter(state);
        state->probe_count = 0;
    } else if (state->rtt_noload != 0 && rtt >= state->rtt_noload) {
        return false;
    }
    state->rtt_noload = rtt;
    return true;
}

/* An RTT of 0 counts as 1 ns. */
static uint32_t update(void *opaque, const weir_sample *sample)
{
    struct weir__vegas_state *state = opaque;
    const struct weir__vegas_parameters *p = &state->parameters;
    uint64_t rtt = sample->rtt_ns == 0 ? 1 : sample->rtt_ns;
    if (state->jitter == 0)
        draw_first_jitter(state, sample);
    if (take_baseline(state, sample, rtt))
        return (uint32_t)limit_of(state);

    const char *reason = NULL;
    double next = aim(state, sample, rtt, &reason);
    if (reason == NULL)
        return (uint32_t)limit_of(state);
    next = weir__dmax(p->min, weir__dmin(p->max, next));
    int32_t old_limit = limit_of(state);
    state->estimate = ((1 - p->smoothing) * state->estimate) + (p->smoothing * next);
    if (limit_of(state) != old_limit)
        state->reason = reason;
    return (uint32_t)limit_of(state);
}

static void figures(const void *opaque, weir_figures *out)
{
    const struct weir__vegas_state *state = opaque;
    out->rtt_noload_ns = state->rtt_noload;
    out->estimate = state->estimate;
    out->reason = state->reason;
}

static double power_of_ten(int32_t exponent)
{
    double power = 1;
    for (; exponent > 0; exponent--)
        power *= 10;
    return power;
}

/* Dropped windows take root10(limit) each: decade by decade, for the step is the same within one. A probe in between is
 * left out: under congestion it takes the RTT of then for the baseline, and latency lowers the limit no further. */
static struct weir__halving halving(const void *opaque)
{
    const struct weir__vegas_state *state = opaque;
    double target = fmax(state->estimate / 2, state->parameters.min);
    double windows = 0;
    for (double top = state->estimate; top > target;) {
        int32_t step = weir__root10(weir__trunc32(top));
        double bottom = step > 1 ? fmax(target, power_of_ten(step)) : target;
        windows += (top - bottom) / (step * state->parameters.smoothing);
        top = nextafter(bottom, 0);
    }
    return (struct weir__halving){.windows = windows};
}

const struct weir__algorithm weir__vegas = {
    .class = {.name = "vegas", .state_size = sizeof(struct weir__vegas_state), .init = init, .update = update},
    .initial_limit = 20,
    .figures = figures,
    .windowed = true,
    .halving = halving,
    .retune = retune,
};
