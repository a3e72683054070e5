/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The queue in front of a client's gate, by the library's own rules: how deep it is, which job is next, and which are
 * sent away for their deadline. And what is measured about it. */

#include "world.h"

#include "estimator/estimator.h"

#include <math.h>
#include <string.h>

void sim_boundary_open(struct sim_client *client)
{
    memset(&client->boundary, 0, sizeof client->boundary);
    weir__demand_init(&client->boundary.demand);
}

static bool measured(const struct sim_world *world)
{
    return !world->scenario->phases[world->phase].unmeasured && (double)world->now >= world->scenario->warm_s * SIM_NS;
}

static bool knows_deadlines(const struct sim_world *world)
{
    return world->scenario->deadline_ms > 0 && !world->scenario->blind;
}

static uint64_t deadline_of(const struct sim_world *world, uint64_t intended)
{
    return intended + (uint64_t)(world->scenario->deadline_ms * 1e6);
}

/* ---- jobs ---- */

/* All have the same time, so the oldest expire first. */
static void expire(struct sim_world *world, struct sim_client *client)
{
    while (client->queued > 0 && deadline_of(world, client->line[client->head].intended) <= world->now) {
        client->head = (client->head + 1) % client->room;
        client->queued--;
        world->boundary.expired++;
    }
}

bool sim_boundary_admits(struct sim_world *world, struct sim_client *client, const struct sim_job *job)
{
    struct sim_boundary *boundary = &client->boundary;
    boundary->asked.arrivals++;
    if (world->scenario->blocking || world->scenario->model == SIM_NESTED)
        return true;
    if (knows_deadlines(world))
        expire(world, client);
    if (client->in_flight < client->limit && client->queued == 0)
        return true;
    if (knows_deadlines(world)) {
        uint64_t left = deadline_of(world, job->intended) - world->now;
        boundary->asked.patience = (double)left;
        if (boundary->flow.rtt_ns > 0 && !boundary->standing.newest_first &&
            weir__wait_is_hopeless((uint32_t)client->queued, boundary->flow.rtt_ns, client->limit, left))
            return false;
    }
    return client->queued < client->depth;
}

bool sim_boundary_take(struct sim_world *world, struct sim_client *client, struct sim_job *job)
{
    if (knows_deadlines(world))
        expire(world, client);
    if (client->queued == 0)
        return false;
    client->queued--;
    if (knows_deadlines(world) && client->boundary.standing.newest_first) {
        *job = client->line[(client->head + client->queued) % client->room];
    } else {
        *job = client->line[client->head];
        client->head = (client->head + 1) % client->room;
    }
    weir__standing_watch(&client->boundary.standing, (uint32_t)client->queued);
    return true;
}

void sim_boundary_queued(struct sim_world *world, const struct sim_client *client)
{
    struct sim_queue *seen = &world->boundary;
    if (measured(world))
        seen->peak = fmax(seen->peak, (double)client->queued);
    if (!seen->stepped && measured(world) && world->phase == 1) { /* demand has gone up */
        seen->stepped = true;
        seen->step_at = world->now;
        seen->step_rate = client->limit / world->truth.mean_s;
    }
}

/* ---- the depth ---- */

/* What the terms add up to before they are cut. */
static double raw_depth(const weir_config *config, const struct weir__depth_terms *terms)
{
    weir_config free = *config;
    struct weir__depth_terms patient = *terms;
    const char *term;
    free.queue_min = 0;
    free.queue_max = 1u << 24;
    patient.affordable_ns = 1e18;
    return weir__depth(&free, &patient, &term);
}

static void look(struct sim_world *world, struct sim_client *client)
{
    struct sim_boundary *boundary = &client->boundary;
    struct weir__drain drain = weir__estimator_drain(client->estimator);
    struct weir__depth_look now = {.now_ns = world->now,
                                   .limit = client->limit,
                                   .reaction_ns = weir_estimator_reaction_ns(client->estimator),
                                   .dip = drain.share,
                                   .dip_ns = drain.duration_ns,
                                   .asked = boundary->asked};
    struct weir__depth_terms terms = weir__depth_look(&boundary->flow, &boundary->demand, &boundary->meter, &now);
    const char *term;
    client->depth = weir__depth_settle((uint32_t)client->depth, weir__depth(&world->config, &terms, &term));
    if (!measured(world))
        return;
    world->boundary.raw_sum += raw_depth(&world->config, &terms);
    world->boundary.raw_count++;
}

static void watch_climb(struct sim_world *world, const struct sim_client *client)
{
    struct sim_queue *seen = &world->boundary;
    if (seen->stepped && seen->climb_s <= 0 && client->limit >= sim_demand_rate(world) * world->truth.mean_s)
        seen->climb_s = (double)(world->now - seen->step_at) / SIM_NS;
}

void sim_boundary_ended(struct sim_world *world, struct sim_client *client, const weir_sample *sample)
{
    watch_climb(world, client);
    weir_sample moved = *sample;
    moved.start_ns = world->now - sample->rtt_ns;
    if (weir__flow_measure(&client->boundary.flow, &moved) && world->scenario->demand != SIM_BUSY)
        look(world, client);
    weir__standing_look(&client->boundary.standing, world->now, weir_estimator_reaction_ns(client->estimator),
                        (uint32_t)client->queued, client->limit);
}

/* ---- figures ---- */

void sim_boundary_returned(struct sim_world *world, const struct sim_call *call)
{
    if (world->scenario->deadline_ms <= 0 || call->outcome != WEIR_SUCCESS || !measured(world))
        return;
    world->boundary.ran++;
    world->boundary.in_time += world->now <= deadline_of(world, call->intended) ? 1 : 0;
}

void sim_boundary_evaluate(const struct sim_world *world, struct sim_result *result)
{
    const struct sim_queue *seen = &world->boundary;
    double work = 0; /* calls that the downstream could have done */
    for (size_t p = 0; p < sim_phase_count(world->scenario); p++)
        work += world->tallies[p].available * sim_truth(world->scenario, p, 0).rate;
    result->queue_peak = seen->peak;
    if (seen->raw_count > 0)
        result->queue_raw = seen->raw_sum / seen->raw_count;
    if (seen->climb_s > 0) {
        double rate = world->scenario->phases[world->phase].rate;
        double climb = (rate - (rate - seen->step_rate) / log(rate / seen->step_rate)) * seen->climb_s;
        result->queue_climb = seen->peak / climb;
    }
    result->queue_cover = result->queue_raw > 0 ? seen->peak / result->queue_raw : 0;
    result->in_time = seen->ran > 0 ? seen->in_time / seen->ran : 1;
    result->goodput = work > 0 ? seen->in_time / work : 0;
}
