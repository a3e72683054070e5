/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One run: the loop over events, and what is measured on the way. */

#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOW 3.0 /* times the unloaded mean: overloaded */

static void *grown(void *array, size_t *room, size_t size)
{
    *room = *room == 0 ? 1024 : 2 * *room;
    array = realloc(array, *room * size);
    if (array == NULL)
        abort();
    return array;
}

uint32_t sim_call_new(struct sim_world *world)
{
    if (world->free_call == SIM_NONE) {
        size_t old = world->calls_room;
        world->calls = grown(world->calls, &world->calls_room, sizeof *world->calls);
        for (size_t i = old; i < world->calls_room; i++)
            world->calls[i].next = i + 1 < world->calls_room ? (uint32_t)(i + 1) : SIM_NONE;
        world->free_call = (uint32_t)old;
    }
    uint32_t call = world->free_call;
    world->free_call = world->calls[call].next;
    return call;
}

void sim_call_free(struct sim_world *world, uint32_t call)
{
    world->calls[call].next = world->free_call;
    world->free_call = call;
}

double sim_demand_rate(const struct sim_world *world)
{
    const struct sim_scenario *s = world->scenario;
    if (s->demand == SIM_BUSY)
        return INFINITY;
    return s->phases[world->phase].rate;
}

/* ---- measurement ---- */

static bool measured(const struct sim_world *world)
{
    return !world->scenario->phases[world->phase].unmeasured && (double)world->now >= world->scenario->warm_s * SIM_NS;
}

void sim_account(struct sim_world *world)
{
    if (world->now == world->used_at)
        return;
    if (measured(world)) {
        double span = sim_working_s(world, world->used_at, world->now);
        world->tallies[world->phase].available += span;
        world->tallies[world->phase].used += span * sim_downstream_use(world);
    }
    world->used_at = world->now;
}

static void end_episode(struct sim_world *world)
{
    if (world->episode_counted)
        world->overloaded += (double)(world->now - world->slow_since) / SIM_NS;
    world->slow_since = 0;
    world->episode_counted = false;
}

static void watch_for_episodes(struct sim_world *world, double rtt)
{
    unsigned slot = world->ring_count % 50;
    if (world->ring_count >= 50)
        world->ring_sum -= world->ring[slot];
    world->ring[slot] = rtt;
    world->ring_sum += rtt;
    world->ring_count++;
    if (world->ring_count < 50)
        return;
    if (world->ring_sum / 50 <= SLOW * world->truth.mean_s) {
        end_episode(world);
        return;
    }
    if (world->slow_since == 0)
        world->slow_since = world->now;
    if (!world->episode_counted && world->now - world->slow_since > (uint64_t)SIM_NS) {
        world->episodes++;
        world->episode_counted = true;
    }
}

void sim_saw_rtt(struct sim_world *world, const struct sim_call *call)
{
    if (call->outcome != WEIR_SUCCESS)
        return;
    double rtt = (double)(world->now - call->granted) / SIM_NS;
    watch_for_episodes(world, rtt);
    if (!measured(world))
        return;
    sim_histogram_add(&world->tallies[world->phase].rtt, rtt);
    world->tallies[world->phase].completed++;
    sim_histogram_add(&world->total, (double)(world->now - call->intended) / SIM_NS);
}

static void look(struct sim_world *world)
{
    double limit = 0, queued = 0;
    size_t count = world->scenario->model == SIM_NESTED ? 1 : world->clients_count;
    for (size_t i = 0; i < count; i++) {
        if (!world->clients[i].joined)
            continue;
        limit += world->clients[i].limit;
        queued += (double)world->clients[i].queued;
    }
    struct sim_tally *tally = &world->tallies[world->phase];
    tally->peak_queue = fmax(tally->peak_queue, queued);
    if (world->looks_count == world->looks_room)
        world->looks = grown(world->looks, &world->looks_room, sizeof *world->looks);
    world->looks[world->looks_count++] =
        (struct sim_look){.at = (float)((double)(world->now - world->phase_began) / SIM_NS),
                          .limit = (float)limit,
                          .optimum = (float)world->truth.optimum,
                          .flight = (float)world->total_in_flight,
                          .phase = (uint8_t)world->phase,
                          .all = world->all_joined};
    struct sim_trace *trace = world->trace;
    if (trace == NULL || !trace->wanted || (double)world->now / SIM_NS < world->trace_next)
        return;
    world->trace_next += trace->interval_s;
    if (trace->count == trace->room)
        trace->points = grown(trace->points, &trace->room, sizeof *trace->points);
    unsigned seen = world->ring_count < 50 ? world->ring_count : 50;
    trace->points[trace->count++] = (struct sim_point){.at = (double)world->now / SIM_NS,
                                                       .limit = limit,
                                                       .optimum = world->truth.optimum,
                                                       .in_flight = (double)world->total_in_flight,
                                                       .rtt = seen > 0 ? world->ring_sum / seen : 0,
                                                       .queue = queued};
}

/* ---- the loop ---- */

static void refresh_truth(struct sim_world *world)
{
    sim_account(world);
    world->truth = sim_truth(world->scenario, world->phase, (double)(world->now - world->phase_began) / SIM_NS);
    sim_downstream_changed(world);
    if (world->controller->algorithm == 0)
        sim_gate_follow_oracle(world);
}

static double burst_rate(const struct sim_world *world)
{
    double rate = sim_demand_rate(world);
    if (world->scenario->demand != SIM_BURSTS)
        return rate;
    double t = fmod((double)world->now / SIM_NS, 1.0);
    return t < 0.1 ? 10 * rate : rate;
}

static void schedule_arrival(struct sim_world *world, uint32_t client)
{
    double clients = world->scenario->model == SIM_NESTED ? 1 : (double)world->clients_count;
    double rate = burst_rate(world) / clients;
    double wait = rate > 0 ? sim_exponential(&world->arrivals) / rate : 0.01;
    if (world->scenario->demand == SIM_BURSTS && wait > 0.02)
        wait = 0.02;
    world->clients[client].arrives_at = world->now + (uint64_t)(wait * SIM_NS);
    sim_schedule(&world->events, world->clients[client].arrives_at, SIM_ARRIVAL, client);
}

static bool open_loop(const struct sim_world *world, size_t client)
{
    return world->scenario->demand != SIM_BUSY && !(world->scenario->model == SIM_NESTED && client == 1);
}

static void next_phase(struct sim_world *world)
{
    sim_account(world);
    world->phase++;
    world->phase_began = world->now;
    refresh_truth(world);
    end_episode(world);
    for (size_t i = 0; i < world->clients_count; i++) {
        if (world->all_joined)
            world->clients[i].completed = 0;
        if (world->clients[i].joined && open_loop(world, i))
            schedule_arrival(world, (uint32_t)i); /* at the rate of the new phase, in place of the one under way */
    }
}

static void retry(struct sim_world *world, uint32_t id)
{
    struct sim_call call = world->calls[id];
    sim_call_free(world, id);
    struct sim_job job = {.intended = call.intended, .parent = SIM_NONE, .retries = call.rest};
    sim_gate_arrive(world, call.client, &job);
}

static void happen(struct sim_world *world, const struct sim_event *event, uint64_t tick)
{
    switch ((enum sim_event_kind)event->kind) {
    case SIM_ARRIVAL: {
        if (world->clients[event->subject].arrives_at != event->at)
            break;
        struct sim_job job = {.intended = world->now, .parent = SIM_NONE, .retries = 3};
        sim_gate_arrive(world, event->subject, &job);
        schedule_arrival(world, event->subject);
        break;
    }
    case SIM_SERVED:
        sim_account(world);
        sim_downstream_served(world, event->subject);
        break;
    case SIM_DEPARTED:
        sim_account(world);
        sim_downstream_departed(world, event->subject);
        break;
    case SIM_RETURNED:
        sim_gate_return(world, event->subject);
        break;
    case SIM_JOIN:
        sim_gate_join(world, event->subject);
        if (open_loop(world, event->subject))
            schedule_arrival(world, event->subject);
        break;
    case SIM_PHASE:
        next_phase(world);
        break;
    case SIM_TICK:
        if (world->scenario->sine > 0)
            refresh_truth(world);
        look(world);
        sim_schedule(&world->events, world->now + tick, SIM_TICK, 0);
        break;
    case SIM_RETRY:
        retry(world, event->subject);
        break;
    }
}

static void prepare(struct sim_world *world, uint64_t seed)
{
    const struct sim_scenario *s = world->scenario;
    world->free_call = SIM_NONE;
    world->arrivals.state = seed * 3 + 1;
    world->services.state = seed * 5 + 0x1234567;
    world->noise.state = seed * 7 + 0x7654321;
    world->weather.state = seed * 11 + 0x2345671;
    world->truth = sim_truth(s, 0, 0);
    world->clients_count = s->model == SIM_NESTED ? 2 : s->clients == 0 ? 1 : s->clients;
    world->clients = calloc(world->clients_count, sizeof *world->clients);
    if (world->clients == NULL)
        abort();
    double at = 0;
    for (size_t i = 0; i < world->clients_count; i++) {
        sim_gate_open(world, (uint32_t)i, world->controller);
        sim_schedule(&world->events, (uint64_t)(at * SIM_NS), SIM_JOIN, (uint32_t)i);
        if (s->model != SIM_NESTED)
            at += s->join_s;
    }
    at = 0;
    for (size_t i = 0; i + 1 < sim_phase_count(s); i++) {
        at += s->phases[i].seconds;
        sim_schedule(&world->events, (uint64_t)(at * SIM_NS), SIM_PHASE, 0);
    }
}

static void dispose(struct sim_world *world)
{
    for (size_t i = 0; i < world->clients_count; i++)
        sim_gate_close(&world->clients[i]);
    free(world->clients);
    free(world->calls);
    free(world->departures);
    free(world->looks);
    free(world->events.heap);
    free(world);
}

void sim_run(const struct sim_scenario *scenario, const struct sim_controller *controller, uint64_t seed,
             const struct sim_oracle *oracle, struct sim_trace *trace, struct sim_result *result)
{
    static const struct sim_oracle plain = {.factor = {1, 1, 1, 1, 1, 1, 1, 1}};
    struct sim_world *world = calloc(1, sizeof *world);
    if (world == NULL)
        abort();
    world->scenario = scenario;
    world->controller = controller;
    world->oracle = oracle == NULL ? &plain : oracle;
    world->trace = trace;
    prepare(world, seed);
    double duration = sim_duration(scenario);
    uint64_t end = (uint64_t)(duration * SIM_NS);
    uint64_t tick = (uint64_t)(fmax(world->truth.mean_s / 2, duration / 100000) * SIM_NS);
    sim_schedule(&world->events, tick, SIM_TICK, 0);
    if (trace != NULL)
        trace->interval_s = duration / 4000;
    struct sim_event event;
    while (sim_next(&world->events, &event) && event.at < end) {
        world->now = event.at;
        happen(world, &event, tick);
    }
    world->now = end;
    sim_account(world);
    end_episode(world);
    sim_evaluate(world, result);
    sim_boundary_evaluate(world, result);
    dispose(world);
}
