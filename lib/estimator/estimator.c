/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The public face of the algorithms: it creates one of them, puts the window in front, and keeps what it answers within
 * the limits that the program set. */

#include "estimator/estimator.h"

#include <errno.h>
#include <math.h>
#include <stdalign.h>
#include <stdlib.h>

#include "base/base.h"
#include "config/config.h"

#define CUSTOM_INITIAL_LIMIT 20u
#define SETTLING_WINDOWS     1.5 /* the mixed one in which a change comes, on average half gone, and a clean one */

/* One allocation: this, the state of the algorithm, then the RTTs of a percentile window. */
struct weir_estimator {
    const weir_estimator_class *class;
    const struct weir__algorithm *algorithm; /* NULL: the caller's own */
    void *state;
    uint32_t min_limit; /* at least 1 */
    uint32_t max_limit;
    uint32_t limit;
    bool windowed;
    struct weir__window window; /* in use if windowed */
    uint64_t rtt_ns;            /* of the last sample that the algorithm was given */
    const char *reason;
    bool retuned; /* the limit was changed last by a change of the configuration */
};

static const struct weir__algorithm *algorithm_of(const weir_config *config)
{
    switch (config->algorithm) {
    case WEIR_VEGAS2:
        return &weir__vegas2;
    case WEIR_GRADIENT2:
        return &weir__gradient2;
    case WEIR_VEGAS:
        return &weir__vegas;
    case WEIR_AIMD:
        return &weir__aimd;
    case WEIR_FIXED:
        return &weir__fixed;
    default:
        return NULL;
    }
}

/* ---- settling a configuration ---- */

static void default_u32(uint32_t *field, uint32_t value)
{
    if (*field == WEIR_BY_ALGORITHM)
        *field = value;
}

static void default_double(double *field, double value)
{
    if (isnan(*field))
        *field = value;
}

/* alpha and beta of vegas stay open: its own depend on the limit. */
static void settle_parameters(weir_config *config)
{
    if (config->algorithm == WEIR_GRADIENT2) {
        default_double(&config->smoothing, 0.2);
        default_double(&config->rtt_tolerance, 1.5);
        default_u32(&config->long_window, 600);
        default_u32(&config->queue_allowance, 4);
    } else if (config->algorithm == WEIR_VEGAS) {
        default_double(&config->smoothing, 1.0);
        default_u32(&config->probe_multiplier, 30);
    }
}

static uint32_t bounded(uint32_t limit, uint32_t min_limit, uint32_t max_limit)
{
    limit = limit < min_limit ? min_limit : limit;
    return limit > max_limit ? max_limit : limit;
}

static int settle_initial_limit(weir_config *config, uint32_t own)
{
    if (config->initial_limit == 0) {
        config->initial_limit = bounded(own, config->min_limit, config->max_limit);
        return 0;
    }
    if (config->initial_limit >= config->min_limit && config->initial_limit <= config->max_limit)
        return 0;
    weir__log(config->log, WEIR_LOG_ERROR,
              "INITIAL_LIMIT is %u, accepted is 0 (the algorithm's own) or MIN_LIMIT to MAX_LIMIT, here %u to %u",
              config->initial_limit, config->min_limit, config->max_limit);
    return EINVAL;
}

static int check_class(const weir_config *config)
{
    const weir_estimator_class *class = config->estimator_class;
    if (class != NULL && class->name != NULL && class->init != NULL && class->update != NULL)
        return 0;
    weir__log(config->log, WEIR_LOG_ERROR,
              "ALGORITHM is custom, which needs an estimator_class with name, init and update");
    return EINVAL;
}

int weir__estimator_settle(weir_config *config)
{
    const struct weir__algorithm *algorithm = algorithm_of(config);
    if (algorithm == NULL && config->algorithm != WEIR_CUSTOM) {
        weir__log(config->log, WEIR_LOG_ERROR, "ALGORITHM is %u, which is none of weir_algorithm", config->algorithm);
        return EINVAL;
    }
    settle_parameters(config);
    int error = settle_initial_limit(config, algorithm != NULL ? algorithm->initial_limit : CUSTOM_INITIAL_LIMIT);
    if (error == 0 && algorithm == NULL)
        error = check_class(config);
    return error;
}

/* ---- creating ---- */

/* The size rounded up to where an object of any type may follow; 0: too large. */
static size_t padded(size_t size)
{
    const size_t alignment = alignof(max_align_t);
    return size > SIZE_MAX - alignment ? 0 : (size + alignment - 1) / alignment * alignment;
}

/* NULL: out of memory. */
static weir_estimator *allocate(size_t state_size, size_t rtts, uint64_t **rtts_out)
{
    const size_t head = padded(sizeof(weir_estimator));
    size_t state = padded(state_size > 0 ? state_size : 1);
    if (state == 0 || rtts > SIZE_MAX / sizeof(uint64_t) || head > SIZE_MAX - state ||
        head + state > SIZE_MAX - rtts * sizeof(uint64_t))
        return NULL;
    char *memory = weir__allocate(head + state + rtts * sizeof(uint64_t));
    if (memory == NULL)
        return NULL;
    weir_estimator *estimator = (weir_estimator *)(void *)memory;
    estimator->state = memory + head;
    *rtts_out = (uint64_t *)(void *)(memory + head + state);
    return estimator;
}

static struct weir__window_parameters window_parameters(const weir_config *config, uint64_t *rtts)
{
    return (struct weir__window_parameters){
        .min_ns = config->window_min,
        .max_ns = config->window_max,
        .min_rtt_ns = config->min_rtt,
        .samples = config->window_samples,
        .percentile = config->window_percentile,
        .rtts = rtts,
        .capacity = config->window_capacity,
    };
}

int weir__estimator_create(weir_estimator **estimator, const weir_config *config)
{
    const struct weir__algorithm *algorithm = algorithm_of(config);
    const weir_estimator_class *class = algorithm != NULL ? &algorithm->class : config->estimator_class;
    bool windowed = algorithm != NULL && algorithm->windowed && config->window != 0;
    uint64_t *rtts;
    weir_estimator *created =
        allocate(class->state_size, windowed && config->window_percentile > 0 ? config->window_capacity : 0, &rtts);
    if (created == NULL)
        return ENOMEM;

    created->class = class;
    created->algorithm = algorithm;
    created->min_limit = config->min_limit > 0 ? config->min_limit : 1;
    created->max_limit = config->max_limit;
    created->limit = config->initial_limit;
    created->windowed = windowed;
    created->reason = "";
    if (windowed) {
        struct weir__window_parameters parameters = window_parameters(config, rtts);
        weir__window_init(&created->window, &parameters);
    }
    int error = class->init(created->state, config);
    if (error != 0) {
        free(created);
        return error;
    }
    *estimator = created;
    return 0;
}

int weir_estimator_create(weir_estimator **estimator, const weir_config *config)
{
    if (estimator == NULL)
        return EINVAL;
    weir_config settled;
    int error = weir__config_resolve(&settled, config, NULL, false);
    if (error == 0)
        error = weir__estimator_settle(&settled);
    if (error == 0)
        error = weir__estimator_create(estimator, &settled);
    return error;
}

void weir_estimator_destroy(weir_estimator *estimator)
{
    free(estimator);
}

/* ---- running ---- */

unsigned weir_estimator_update(weir_estimator *estimator, const weir_sample *sample)
{
    if (sample->outcome != WEIR_SUCCESS && sample->outcome != WEIR_DROPPED)
        return estimator->limit;
    weir_sample other;
    const weir_sample *given = sample;
    if (sample->rtt_ns == 0 || estimator->windowed) {
        other = *sample;
        if (other.rtt_ns == 0)
            other.rtt_ns = 1;
        if (estimator->windowed && !weir__window_add(&estimator->window, sample, &other))
            return estimator->limit;
        given = &other;
    }

    estimator->rtt_ns = given->rtt_ns;
    uint32_t limit = estimator->class->update(estimator->state, given);
    limit = bounded(limit, estimator->min_limit, estimator->max_limit);
    if (limit != estimator->limit) {
        estimator->reason = estimator->class->name;
        estimator->retuned = false;
    }
    estimator->limit = limit;
    return limit;
}

unsigned weir_estimator_limit(const weir_estimator *estimator)
{
    return estimator->limit;
}

int weir_estimator_set_wall_offset(weir_estimator *estimator, int64_t realtime_minus_monotonic_ns)
{
    if (estimator == NULL)
        return EINVAL;
    if (estimator->algorithm != NULL && estimator->algorithm->set_wall_offset != NULL)
        estimator->algorithm->set_wall_offset(estimator->state, realtime_minus_monotonic_ns);
    return 0;
}

/* One RTT until a call that met the change ends, the windows until one shows nothing but the change, then those that
 * halve the limit. Without a window each RTT counts as one. */
static uint64_t windowed_reaction_ns(const weir_estimator *estimator)
{
    struct weir__halving halving = estimator->algorithm->halving(estimator->state);
    double rtt = (double)estimator->rtt_ns;
    double window = estimator->windowed ? (double)estimator->window.length_ns : rtt;
    uint64_t reaction = weir__trunc_u64(ceil(rtt + (SETTLING_WINDOWS + halving.windows) * window));
    return weir__add_u64(reaction, halving.wait_ns);
}

uint64_t weir_estimator_reaction_ns(const weir_estimator *estimator)
{
    if (estimator->algorithm != NULL && estimator->algorithm->halving != NULL)
        return windowed_reaction_ns(estimator);
    return estimator->class->reaction_ns != NULL ? estimator->class->reaction_ns(estimator->state) : 0;
}

void weir__estimator_restart(weir_estimator *estimator, uint64_t now_ns)
{
    if (estimator->windowed)
        weir__window_restart(&estimator->window, now_ns);
    if (estimator->algorithm != NULL && estimator->algorithm->restart != NULL)
        estimator->algorithm->restart(estimator->state, now_ns);
}

void weir__estimator_retune(weir_estimator *estimator, const weir_config *config)
{
    estimator->min_limit = config->min_limit;
    estimator->max_limit = config->max_limit;
    if (estimator->windowed) {
        struct weir__window_parameters parameters = window_parameters(config, estimator->window.parameters.rtts);
        weir__window_retune(&estimator->window, &parameters);
    }
    uint32_t limit = estimator->limit;
    if (estimator->algorithm != NULL)
        limit = estimator->algorithm->retune(estimator->state, config);
    limit = bounded(limit, estimator->min_limit, estimator->max_limit);
    estimator->retuned = estimator->retuned || limit != estimator->limit;
    estimator->limit = limit;
}

struct weir__drain weir__estimator_drain(const weir_estimator *estimator)
{
    if (estimator->algorithm == NULL || estimator->algorithm->drain == NULL)
        return (struct weir__drain){0};
    return estimator->algorithm->drain(estimator->state);
}

int weir_estimator_figures(const weir_estimator *estimator, weir_figures *figures)
{
    if (estimator == NULL || figures == NULL)
        return EINVAL;
    *figures = (weir_figures){
        .rtt_ns = estimator->rtt_ns,
        .estimate = estimator->limit,
        .phase = "steady",
        .windows = estimator->windowed ? estimator->window.closed : 0,
        .window_samples = estimator->windowed ? estimator->window.parameters.samples : 0,
        .reason = estimator->reason,
    };
    if (estimator->algorithm != NULL && estimator->algorithm->figures != NULL)
        estimator->algorithm->figures(estimator->state, figures);
    if (estimator->retuned)
        figures->reason = "configured";
    return 0;
}
