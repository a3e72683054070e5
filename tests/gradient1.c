/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "gradient1.h"

#include "estimator/estimator.h"
#include "support.h"

struct gradient1_parameters gradient1_defaults(void)
{
    return (struct gradient1_parameters){
        .initial = 50,
        .min = 1,
        .max = 1000,
        .smoothing = 0.2,
        .rtt_tolerance = 2.0,
        .backoff_ratio = 0.9,
        .queue_least = 4,
        .probe_interval = 1000,
    };
}

static void draw_countdown(struct gradient1 *state)
{
    int32_t interval = state->parameters.probe_interval;
    state->countdown = interval;
    if (interval > 0)
        state->countdown += (int64_t)(weir_test_random(&state->random) % (uint64_t)interval);
}

void gradient1_init(struct gradient1 *state, const struct gradient1_parameters *parameters)
{
    *state = (struct gradient1){.parameters = *parameters, .estimate = parameters->initial};
    draw_countdown(state);
}

static int init(void *state, const weir_config *config)
{
    struct gradient1_setup *setup = config->hook_arg;
    gradient1_init(state, &setup->parameters);
    setup->created = state;
    return 0;
}

static bool is_probe(struct gradient1 *state)
{
    if (state->parameters.probe_interval == -1)
        return false;
    return state->countdown-- <= 0;
}

static double gradient(struct gradient1 *state, double rtt)
{
    if (state->rtt_noload == 0.0 || rtt < state->rtt_noload)
        state->rtt_noload = rtt;
    return weir__dmax(0.5, weir__dmin(1.0, ((state->parameters.rtt_tolerance * state->rtt_noload) / rtt)));
}

static uint32_t limit_of(const struct gradient1 *state)
{
    return (uint32_t)weir__trunc32(state->estimate);
}

static uint32_t update(void *opaque, const weir_sample *sample)
{
    struct gradient1 *state = opaque;
    const struct gradient1_parameters *p = &state->parameters;
    double queue = weir__root2_or_more(weir__trunc32(state->estimate), p->queue_least);
    state->probed = is_probe(state);
    if (state->probed) {
        draw_countdown(state);
        state->estimate = weir__dmax(p->min, queue);
        state->rtt_noload = 0.0;
        return limit_of(state);
    }

    double slope = gradient(state, (double)sample->rtt_ns);
    double next;
    if (sample->outcome == WEIR_DROPPED)
        next = state->estimate * p->backoff_ratio;
    else if ((double)sample->in_flight < (state->estimate / 2))
        return limit_of(state);
    else
        next = (state->estimate * slope) + queue;
    if (next < state->estimate)
        next = weir__dmax(p->min, (state->estimate * (1 - p->smoothing)) + (p->smoothing * next));
    state->estimate = weir__dmax(queue, weir__dmin(p->max, next));
    return limit_of(state);
}

const weir_estimator_class gradient1_class = {
    .name = "gradient1",
    .state_size = sizeof(struct gradient1),
    .init = init,
    .update = update,
};
