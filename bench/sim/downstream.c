/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The downstream: a line in front of c servers, processor sharing over c cores, contention after the universal
 * scalability law (Gunther), a throughput that rises with the load for ever, but less and less, a hard limit, a token
 * bucket. */

#include "world.h"

#include <math.h>
#include <stdlib.h>

#define FAILURE_NS 1000000u /* a refusal takes 1 ms */
#define TIMEOUT_NS 1000000000u
#define SIGMA      0.02 /* contention of the universal scalability law */

static uint64_t in_ns(double seconds)
{
    return (uint64_t)llround(seconds * SIM_NS);
}

/* ---- pauses: work goes on only in what is left of each period ---- */

static double work_until(const struct sim_scenario *s, double t)
{
    double period = s->pause_every_s;
    double whole = floor(t / period);
    return whole * (period - s->pause_s) + fmin(t - whole * period, period - s->pause_s);
}

static double when_worked(const struct sim_scenario *s, double work)
{
    double part = s->pause_every_s - s->pause_s;
    double whole = floor(work / part);
    return whole * s->pause_every_s + (work - whole * part);
}

double sim_working_s(const struct sim_world *world, uint64_t from, uint64_t to)
{
    double begin = (double)from / SIM_NS, end = (double)to / SIM_NS;
    if (world->scenario->pause_s <= 0)
        return end - begin;
    return work_until(world->scenario, end) - work_until(world->scenario, begin);
}

static uint64_t after_work(const struct sim_world *world, uint64_t work)
{
    if (world->scenario->pause_s <= 0)
        return world->now + work;
    double done = work_until(world->scenario, (double)world->now / SIM_NS);
    uint64_t at = in_ns(when_worked(world->scenario, done + (double)work / SIM_NS + 1e-9));
    return at > world->now ? at : world->now + 1;
}

/* ---- returning to the client ---- */

static void send_back(struct sim_world *world, uint32_t call, uint64_t at)
{
    uint64_t grid = in_ns(world->scenario->batch_ms / 1e3);
    if (grid > 0)
        at = (at + grid - 1) / grid * grid;
    sim_schedule(&world->events, at, SIM_RETURNED, call);
}

static void refuse(struct sim_world *world, uint32_t call, uint64_t after)
{
    world->calls[call].outcome = WEIR_DROPPED;
    send_back(world, call, world->now + after);
}

static uint64_t network(const struct sim_world *world)
{
    return in_ns(world->scenario->phases[world->phase].network_ms / 1e3);
}

/* ---- a line in front of c servers ---- */

static void begin_service(struct sim_world *world, uint32_t call)
{
    world->busy++;
    sim_schedule(&world->events, after_work(world, world->calls[call].work), SIM_SERVED, call);
}

static void serve_waiting(struct sim_world *world)
{
    while (world->waiting > 0 && world->busy < (uint32_t)llround(world->truth.servers)) {
        uint32_t call = world->line_head;
        world->line_head = world->calls[call].next;
        world->waiting--;
        begin_service(world, call);
    }
}

static void stand_in_line(struct sim_world *world, uint32_t call)
{
    world->calls[call].next = SIM_NONE;
    if (world->waiting == 0)
        world->line_head = call;
    else
        world->calls[world->line_tail].next = call;
    world->line_tail = call;
    world->waiting++;
    serve_waiting(world);
}

void sim_downstream_served(struct sim_world *world, uint32_t call)
{
    world->busy--;
    world->calls[call].inside = false;
    send_back(world, call, world->now + network(world));
    serve_waiting(world);
}

/* ---- processor sharing and contention: every call inside progresses alike ---- */

static double kappa(const struct sim_scenario *s)
{
    return (1 - SIGMA) / (s->knee * s->knee);
}

/* Service each call gets per unit of time with m inside. */
static double speed(const struct sim_world *world, double m)
{
    if (world->scenario->model == SIM_CONTENTION)
        return world->truth.servers / (1 + SIGMA * (m - 1) + kappa(world->scenario) * m * (m - 1));
    if (world->scenario->model == SIM_CONCAVE)
        return world->truth.servers / (1 + m / world->scenario->half);
    return fmin(1, world->truth.servers / fmax(m, 1));
}

static void advance(struct sim_world *world)
{
    if (world->busy > 0)
        world->progress += (double)(world->now - world->progress_at) * speed(world, world->busy);
    world->progress_at = world->now;
}

static void schedule_departure(struct sim_world *world)
{
    world->generation++;
    double rate = speed(world, world->busy);
    if (world->busy == 0 || rate <= 0)
        return;
    double left = fmax(0, world->departures[0].at - world->progress) / rate;
    sim_schedule(&world->events, world->now + (uint64_t)ceil(left), SIM_DEPARTED, world->generation);
}

static void enter(struct sim_world *world, uint32_t call)
{
    advance(world);
    if (world->busy == world->departures_room) {
        world->departures_room = world->departures_room == 0 ? 256 : 2 * world->departures_room;
        world->departures = realloc(world->departures, world->departures_room * sizeof *world->departures);
        if (world->departures == NULL)
            abort();
    }
    struct sim_departure departure = {world->progress + (double)world->calls[call].work, call};
    size_t i = world->busy++;
    while (i > 0 && departure.at < world->departures[(i - 1) / 2].at) {
        world->departures[i] = world->departures[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    world->departures[i] = departure;
    schedule_departure(world);
}

static uint32_t leave(struct sim_world *world)
{
    uint32_t call = world->departures[0].call;
    struct sim_departure last = world->departures[--world->busy];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= world->busy)
            break;
        if (child + 1 < world->busy && world->departures[child + 1].at < world->departures[child].at)
            child++;
        if (world->departures[child].at >= last.at)
            break;
        world->departures[i] = world->departures[child];
        i = child;
    }
    world->departures[i] = last;
    return call;
}

void sim_downstream_departed(struct sim_world *world, uint32_t generation)
{
    if (generation != world->generation)
        return;
    advance(world);
    while (world->busy > 0 && world->departures[0].at <= world->progress + 0.5) {
        uint32_t call = leave(world);
        world->calls[call].inside = false;
        send_back(world, call, world->now + network(world));
    }
    schedule_departure(world);
}

/* ---- all of them ---- */

static bool shares(const struct sim_world *world)
{
    enum sim_model model = world->scenario->model;
    return model == SIM_SHARING || model == SIM_CONTENTION || model == SIM_CONCAVE;
}

void sim_downstream_changed(struct sim_world *world)
{
    if (shares(world)) {
        advance(world);
        schedule_departure(world);
    } else {
        serve_waiting(world);
    }
}

/* Gusts and calms alternate, whatever the calls do. */
static bool in_gust(struct sim_world *world)
{
    const struct sim_scenario *s = world->scenario;
    while (s->gust > 0 && world->weather_until <= world->now) {
        world->gusty = !world->gusty;
        double mean = world->gusty ? s->gust_s : s->calm_s;
        world->weather_until += in_ns(mean * sim_exponential(&world->weather));
    }
    return world->gusty;
}

static uint64_t draw_work(struct sim_world *world)
{
    const struct sim_scenario *s = world->scenario;
    const struct sim_phase *phase = &s->phases[world->phase];
    double mean = phase->service_ms * 1e6 * (in_gust(world) ? 1 + s->gust : 1);
    double work = mean;
    if (s->law == SIM_EXPONENTIAL) {
        work = mean * sim_exponential(&world->services);
    } else {
        double sigma2 = log(1 + s->cv * s->cv);
        if (s->law == SIM_BIMODAL && sim_uniform(&world->services) < phase->slow_share)
            work = s->slow_ms * 1e6;
        work *= exp(sqrt(sigma2) * sim_normal(&world->services) - sigma2 / 2);
    }
    return work < 1 ? 1 : (uint64_t)work;
}

static bool take_token(struct sim_world *world)
{
    double burst = fmax(10, world->truth.servers / 50);
    world->tokens += (double)(world->now - world->tokens_at) / SIM_NS * world->truth.servers;
    world->tokens = fmin(world->tokens, burst);
    world->tokens_at = world->now;
    if (world->tokens < 1)
        return false;
    world->tokens--;
    return true;
}

void sim_downstream_take(struct sim_world *world, uint32_t call)
{
    const struct sim_scenario *s = world->scenario;
    const struct sim_phase *phase = &s->phases[world->phase];
    if (s->model == SIM_NESTED && world->calls[call].parent == SIM_NONE) {
        world->calls[call].rest = 3;
        sim_gate_inner(world, call);
        return;
    }
    world->calls[call].work = draw_work(world);
    if (phase->timeouts) {
        refuse(world, call, TIMEOUT_NS);
        return;
    }
    if (phase->fail_share > 0 && sim_uniform(&world->noise) < phase->fail_share) {
        if (!s->fail_late) {
            refuse(world, call, FAILURE_NS);
            return;
        }
        world->calls[call].outcome = WEIR_DROPPED;
    }
    if (s->model == SIM_RATE_LIMIT) {
        if (take_token(world))
            send_back(world, call, world->now + world->calls[call].work + network(world));
        else
            refuse(world, call, FAILURE_NS);
        return;
    }
    if (s->model == SIM_HARD_LIMIT && world->busy + world->waiting >= (size_t)s->hard_limit) {
        refuse(world, call, FAILURE_NS);
        return;
    }
    world->calls[call].inside = true;
    if (shares(world))
        enter(world, call);
    else
        stand_in_line(world, call);
}

double sim_downstream_use(const struct sim_world *world)
{
    if (world->scenario->model == SIM_CONTENTION) {
        double m = world->busy;
        double best = world->scenario->knee;
        double top = best / (1 + SIGMA * (best - 1) + kappa(world->scenario) * best * (best - 1));
        return m < 1 ? 0 : m / (1 + SIGMA * (m - 1) + kappa(world->scenario) * m * (m - 1)) / top;
    }
    if (world->scenario->model == SIM_CONCAVE)
        return world->busy * speed(world, world->busy) / (world->truth.optimum * speed(world, world->truth.optimum));
    return fmin(1, world->busy / fmax(1, world->truth.servers));
}
