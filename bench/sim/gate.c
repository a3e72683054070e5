/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The clients: each has an estimator, permits, and a line of jobs in front of them. */

#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH_NS        5000000000000u      /* of the simulated monotonic clock */
#define WALL_NS         1700000000123456789 /* what the simulated wall clock is ahead of it */
#define OFFSET_EVERY_NS 5000000000u         /* how often the estimator is told the offset */
#define RETRY_NS        10000000u

static bool follows_oracle(const struct sim_world *world, uint32_t client)
{
    return world->controller->algorithm == 0 && !(world->scenario->model == SIM_NESTED && client == 1);
}

void sim_gate_open(struct sim_world *world, uint32_t index, const struct sim_controller *controller)
{
    struct sim_client *client = &world->clients[index];
    const struct sim_scenario *s = world->scenario;
    sim_boundary_open(client);
    client->depth = 16;
    client->limit = 1;
    client->skew = (int64_t)(s->skew_ms * 1e6 * sim_normal(&world->noise));
    if (follows_oracle(world, index))
        return;
    weir_config config;
    if (weir_config_init(&config) != 0)
        abort();
    world->config = config;
    config.flags |= WEIR_NO_ENV;
    config.algorithm = controller->algorithm == 0 ? WEIR_FIXED : controller->algorithm;
    config.max_limit = s->max_limit == 0 ? 1000 : s->max_limit;
    config.initial_limit = controller->fixed != 0 ? controller->fixed : s->initial;
    config.rtt_ceiling = (uint64_t)(s->rtt_ceiling_ms * 1e6);
    if (s->model == SIM_NESTED && index == 1 && config.algorithm == WEIR_FIXED)
        config.initial_limit = 100;
    if (weir_estimator_create(&client->estimator, &config) != 0)
        abort();
    (void)weir_estimator_set_wall_offset(client->estimator, WALL_NS + client->skew);
    client->limit = weir_estimator_limit(client->estimator);
    client->last = client->limit;
    client->mirrored = controller->twist == SIM_FLIPPED ? client->limit : 0;
}

void sim_gate_close(struct sim_client *client)
{
    weir_estimator_destroy(client->estimator);
    free(client->line);
}

void sim_gate_follow_oracle(struct sim_world *world)
{
    size_t joined = 0;
    for (size_t i = 0; i < world->clients_count; i++)
        joined += world->clients[i].joined;
    if (world->scenario->model == SIM_NESTED)
        joined = 1;
    double total = fmax(1, world->oracle->factor[world->phase] * world->truth.optimum);
    for (size_t i = 0, k = 0; i < world->clients_count; i++) {
        struct sim_client *client = &world->clients[i];
        if (!client->joined || !follows_oracle(world, (uint32_t)i))
            continue;
        double share =
            floor(total * (double)(k + 1) / (double)joined + 0.5) - floor(total * (double)k / (double)joined + 0.5);
        k++;
        client->limit = share < 1 ? 1 : (uint32_t)share;
    }
}

static bool endless(const struct sim_world *world, uint32_t client)
{
    return world->scenario->demand == SIM_BUSY && !(world->scenario->model == SIM_NESTED && client == 1);
}

static void grant(struct sim_world *world, uint32_t index, const struct sim_job *job)
{
    struct sim_client *client = &world->clients[index];
    uint32_t id = sim_call_new(world);
    client->in_flight++;
    world->total_in_flight++;
    world->calls[id] = (struct sim_call){
        .intended = job->intended,
        .granted = world->now,
        .client = index,
        .in_flight = client->in_flight,
        .outcome = WEIR_SUCCESS,
        .next = SIM_NONE,
        .parent = job->parent,
    };
    sim_account(world);
    sim_downstream_take(world, id);
}

static void dispatch(struct sim_world *world, uint32_t index)
{
    struct sim_client *client = &world->clients[index];
    while (client->joined && client->in_flight < client->limit) {
        struct sim_job job = {.intended = world->now, .parent = SIM_NONE};
        if (!endless(world, index)) {
            if (!sim_boundary_take(world, client, &job))
                return;
        }
        grant(world, index, &job);
    }
}

void sim_gate_join(struct sim_world *world, uint32_t index)
{
    world->clients[index].joined = true;
    world->all_joined = true;
    for (size_t i = 0; i < world->clients_count; i++)
        world->all_joined = world->all_joined && world->clients[i].joined;
    if (world->controller->algorithm == 0)
        sim_gate_follow_oracle(world);
    dispatch(world, index);
}

static void put_in_line(struct sim_client *client, const struct sim_job *job)
{
    if (client->queued == client->room) {
        size_t room = client->room == 0 ? 64 : 2 * client->room;
        struct sim_job *line = malloc(room * sizeof *line);
        if (line == NULL)
            abort();
        for (size_t i = 0; i < client->queued; i++)
            line[i] = client->line[(client->head + i) % client->room];
        free(client->line);
        client->line = line;
        client->head = 0;
        client->room = room;
    }
    client->line[(client->head + client->queued++) % client->room] = *job;
}

static void shed(struct sim_world *world, uint32_t index, const struct sim_job *job)
{
    world->shed_count++;
    if (sim_demand_rate(world) < world->truth.rate)
        world->avoidable_count++;
    if (!world->scenario->retries || job->retries == 0)
        return;
    uint32_t id = sim_call_new(world);
    world->calls[id] = (struct sim_call){
        .intended = job->intended, .client = index, .parent = SIM_NONE, .rest = (uint8_t)(job->retries - 1)};
    sim_schedule(&world->events, world->now + RETRY_NS, SIM_RETRY, id);
}

void sim_gate_arrive(struct sim_world *world, uint32_t index, const struct sim_job *job)
{
    struct sim_client *client = &world->clients[index];
    world->arrivals_count += job->parent == SIM_NONE;
    if (!sim_boundary_admits(world, client, job)) {
        shed(world, index, job);
        return;
    }
    put_in_line(client, job);
    dispatch(world, index);
    sim_boundary_queued(world, client);
}

static uint32_t twist(const struct sim_world *world, struct sim_client *client, const struct sim_call *call,
                      uint32_t limit)
{
    switch (world->controller->twist) {
    case SIM_FLIPPED:
        client->mirrored = fmin(fmax(client->mirrored * client->last / limit, 1), 1000);
        return (uint32_t)client->mirrored;
    case SIM_NO_DRAIN: {
        weir_figures figures = {0};
        (void)weir_estimator_figures(client->estimator, &figures);
        return strcmp(figures.phase, "low") == 0 && limit < client->limit ? client->limit : limit;
    }
    case SIM_IDLE_GROWTH:
        if (2 * call->in_flight < client->limit && client->mirrored < 1000)
            client->mirrored += 0.1;
        return (uint32_t)fmin(1000, limit + client->mirrored);
    case SIM_STRAIGHT:
    case SIM_WAIT_COUNTED:
        break;
    }
    return limit;
}

/* What the estimator went by when it moved the limit. */
static void note_decision(const struct sim_world *world, const struct sim_client *client, uint32_t limit)
{
    weir_figures f = {0};
    if (world->trace == NULL || world->trace->decisions == NULL || limit == client->last ||
        weir_estimator_figures(client->estimator, &f) != 0)
        return;
    (void)fprintf(world->trace->decisions, "%.4f,%td,%u,%u,%s,%s,%.3f,%.3f,%.1f,%u,%.1f\n", (double)world->now / SIM_NS,
                  client - world->clients, client->last, limit, f.phase, f.reason, (double)f.rtt_ns / 1e6,
                  (double)f.rtt_noload_ns / 1e6, f.throughput, client->in_flight, world->truth.optimum);
}

static void tell_estimator(struct sim_world *world, struct sim_client *client, const struct sim_call *call)
{
    if (world->now - client->offset_at >= OFFSET_EVERY_NS) {
        client->offset_at = world->now;
        (void)weir_estimator_set_wall_offset(client->estimator, WALL_NS + client->skew);
    }
    uint64_t start = world->controller->twist == SIM_WAIT_COUNTED ? call->intended : call->granted;
    weir_sample sample = {.start_ns = EPOCH_NS + start,
                          .rtt_ns = world->now - start,
                          .in_flight = call->in_flight,
                          .outcome = call->outcome};
    uint32_t limit = weir_estimator_update(client->estimator, &sample);
    note_decision(world, client, limit);
    client->limit = twist(world, client, call, limit);
    client->last = limit;
    sim_boundary_ended(world, client, &sample);
}

void sim_gate_inner(struct sim_world *world, uint32_t parent)
{
    struct sim_job job = {.intended = world->now, .parent = parent};
    world->calls[parent].rest--;
    sim_gate_arrive(world, 1, &job);
}

void sim_gate_return(struct sim_world *world, uint32_t id)
{
    struct sim_call call = world->calls[id];
    struct sim_client *client = &world->clients[call.client];
    client->in_flight--;
    world->total_in_flight--;
    sim_call_free(world, id);
    if (call.outcome == WEIR_SUCCESS)
        client->completed++;
    if (call.parent == SIM_NONE)
        sim_saw_rtt(world, &call);
    sim_boundary_returned(world, &call);
    if (client->estimator != NULL)
        tell_estimator(world, client, &call);
    dispatch(world, call.client);
    if (call.parent == SIM_NONE)
        return;
    if (world->calls[call.parent].rest > 0)
        sim_gate_inner(world, call.parent);
    else
        sim_schedule(&world->events, world->now, SIM_RETURNED, call.parent);
}
