/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From what a run has seen to the figures of its result. */

#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR          0.2  /* "at the optimum": within that share of it */
#define SETTLED_RTTS  60.0 /* and staying there for 20 windows of three RTTs … */
#define SETTLED_SHARE 0.8  /* … all but the drains */

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* First moment from which the limit stays near the level (in optima); negative: never. */
static double settled(const struct sim_look *looks, size_t count, double level, double span)
{
    if (count < 2)
        return INFINITY;
    size_t needed = (size_t)fmax(4, span / (double)(looks[1].at - looks[0].at));
    if (needed > count)
        needed = count;
    size_t inside = 0;
    for (size_t i = count; i-- > 0;) {
        inside += fabs(looks[i].limit / looks[i].optimum / level - 1) <= NEAR;
        if (i + needed < count)
            inside -= fabs(looks[i + needed].limit / looks[i + needed].optimum / level - 1) <= NEAR;
    }
    /* inside now counts the first `needed` looks; slide forward */
    for (size_t i = 0; i < count; i++) {
        size_t have = i + needed <= count ? needed : count - i;
        bool here = fabs(looks[i].limit / looks[i].optimum / level - 1) <= NEAR;
        if (here && (double)inside >= SETTLED_SHARE * (double)have)
            return looks[i].at;
        inside -= here;
        if (i + needed < count)
            inside += fabs(looks[i + needed].limit / looks[i + needed].optimum / level - 1) <= NEAR;
    }
    return INFINITY;
}

static void evaluate_phase(const struct sim_world *world, size_t phase, const struct sim_look *looks, size_t count,
                           struct sim_phase_result *result)
{
    const struct sim_tally *tally = &world->tallies[phase];
    *result = (struct sim_phase_result){.reached_s = INFINITY, .least = INFINITY, .settled_s = INFINITY};
    result->utilisation = tally->available > 0 ? tally->used / tally->available : 0;
    if (world->scenario->model == SIM_RATE_LIMIT && tally->available > 0)
        result->utilisation = tally->completed / tally->available / world->scenario->phases[phase].servers;
    result->p99 = sim_histogram_quantile(&tally->rtt, 0.99);
    result->peak_queue = tally->peak_queue;
    result->optimum = sim_truth(world->scenario, phase, 0).optimum;
    double sum = 0, n = 0;
    for (size_t i = 0; i < count; i++) {
        result->least = fmin(result->least, looks[i].limit);
        result->most = fmax(result->most, looks[i].limit);
        if (!isfinite(result->reached_s) && looks[i].limit >= 0.9 * looks[i].optimum)
            result->reached_s = looks[i].at;
        if (5 * i < 2 * count)
            continue;
        sum += looks[i].limit;
        n++;
    }
    if (n > 0)
        result->limit = sum / n;
    double level = world->oracle->factor[phase];
    result->settled_s = settled(looks, count, level, SETTLED_RTTS * sim_truth(world->scenario, phase, 0).mean_s);
}

/* Figures over the time after all clients have joined and the warm-up, in measured phases. */
static void evaluate_limits(const struct sim_world *world, struct sim_result *result)
{
    double began[SIM_PHASES] = {0};
    for (size_t p = 1; p < SIM_PHASES; p++)
        began[p] = began[p - 1] + world->scenario->phases[p - 1].seconds;
    float *steady = malloc((world->looks_count + 1) * sizeof *steady);
    if (steady == NULL)
        abort();
    size_t count = 0;
    double above = 0, below = 0, sum = 0, n = 0;
    for (size_t i = 0; i < world->looks_count; i++) {
        const struct sim_look *look = &world->looks[i];
        const struct sim_phase *phase = &world->scenario->phases[look->phase];
        if (!look->all || phase->unmeasured || began[look->phase] + look->at < world->scenario->warm_s)
            continue;
        double ratio = look->limit / look->optimum;
        n++;
        sum += ratio;
        above += ratio > 1.5;
        below += ratio < 0.7 * world->oracle->factor[look->phase] - 0.02;
        if (look->at > 0.4 * phase->seconds) {
            steady[count++] = (float)ratio;
            result->peak = fmax(result->peak, look->flight / look->optimum);
        }
    }
    qsort(steady, count, sizeof *steady, ascending);
    if (count > 0)
        result->spread = steady[(count - 1) * 95 / 100] - steady[(count - 1) * 5 / 100];
    if (n > 0) {
        result->mean_limit = sum / n;
        result->above = above / n;
        result->below = below / n;
    }
    free(steady);
}

static double jain(const struct sim_world *world)
{
    double sum = 0, squares = 0, n = 0;
    for (size_t i = 0; i < world->clients_count; i++) {
        double x = (double)world->clients[i].completed;
        sum += x;
        squares += x * x;
        n++;
    }
    return squares > 0 ? sum * sum / (n * squares) : 0;
}

void sim_evaluate(const struct sim_world *world, struct sim_result *result)
{
    *result = (struct sim_result){0};
    struct sim_histogram *all = calloc(1, sizeof *all);
    if (all == NULL)
        abort();
    double used = 0, available = 0;
    size_t begin = 0;
    for (size_t p = 0; p < sim_phase_count(world->scenario); p++) {
        size_t end = begin;
        while (end < world->looks_count && world->looks[end].phase == p)
            end++;
        evaluate_phase(world, p, world->looks + begin, end - begin, &result->phases[p]);
        begin = end;
        const struct sim_tally *tally = &world->tallies[p];
        sim_histogram_merge(all, &tally->rtt);
        double capacity = tally->available * sim_truth(world->scenario, p, 0).rate;
        used += result->phases[p].utilisation * capacity;
        available += capacity;
        if (tally->available > 0)
            result->settled_s = fmax(result->settled_s, result->phases[p].settled_s);
    }
    result->utilisation = available > 0 ? used / available : 0;
    result->p50 = sim_histogram_quantile(all, 0.5);
    result->p99 = sim_histogram_quantile(all, 0.99);
    free(all);
    result->p99_total = sim_histogram_quantile(&world->total, 0.99);
    result->episodes = world->episodes;
    result->overloaded_s = world->overloaded;
    result->jain = world->scenario->model == SIM_NESTED ? 1 : jain(world);
    double arrivals = (double)world->arrivals_count;
    if (arrivals > 0) {
        result->shed = (double)world->shed_count / arrivals;
        result->avoidable = (double)world->avoidable_count / arrivals;
    }
    evaluate_limits(world, result);
}

void sim_compare(struct sim_result *result, const struct sim_result *oracle)
{
    result->relative = oracle->utilisation > 0 ? result->utilisation / oracle->utilisation : 0;
    result->p99_ratio = oracle->p99 > 0 ? result->p99 / oracle->p99 : 0;
    result->more_episodes = result->episodes - oracle->episodes;
    result->more_overloaded_s = result->overloaded_s - oracle->overloaded_s;
}

const struct sim_goal *sim_missed(const struct sim_scenario *scenario, const struct sim_result *result)
{
    for (size_t i = 0; i < sizeof scenario->goals / sizeof scenario->goals[0]; i++) {
        const struct sim_goal *goal = &scenario->goals[i];
        if (goal->name == NULL)
            break;
        double value;
        memcpy(&value, (const char *)result + goal->figure, sizeof value);
        if (goal->at_least ? !(value >= goal->bound) : !(value <= goal->bound))
            return goal;
    }
    return NULL;
}
