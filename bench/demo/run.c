/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* One run: a server, a pool, the load, and a reading five times a second. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define DRAIN_NS (REQUEST_TIMEOUT_NS + 5 * NS_PER_S)

struct state {
    const struct run *run;
    struct result *result;
    struct server_process server;
    struct target target;
    struct recorder recorder;
    struct load load;
    uint64_t phase_start_ns;
    /* The last second, tick by tick; the oldest is overwritten. */
    struct interval recent[TICKS_PER_S];
    uint64_t recent_start_ns[TICKS_PER_S];
    size_t ticks;
    uint64_t tick_ns; /* of the last one */
};

int bench_complain(const char *what, const char *why)
{
    view_end();
    fprintf(stderr, "demo: %s: %s\n", what, why);
    return EIO;
}

static int enter_phase(struct state *state, size_t phase, uint64_t now)
{
    const struct plan *plan = &state->run->options->plan;
    if (plan->own_server) {
        int error = server_process_serve(&state->server, plan->phases[phase].handlers, plan->phases[phase].service_us);
        if (error != 0)
            return error;
    }
    pthread_mutex_lock(&state->recorder.mutex);
    state->recorder.phase = phase;
    pthread_mutex_unlock(&state->recorder.mutex);
    state->phase_start_ns = now;
    return 0;
}

static void leave_phase(struct state *state, uint64_t now)
{
    state->result->phases[state->recorder.phase].seconds = (double)(now - state->phase_start_ns) / NS_PER_S;
}

static struct reading *next_reading(struct result *result)
{
    if (result->reading_count == result->reading_capacity) {
        size_t capacity = result->reading_capacity == 0 ? 256 : result->reading_capacity * 2;
        struct reading *readings = realloc(result->readings, capacity * sizeof *readings);
        if (readings == NULL)
            return NULL;
        result->readings = readings;
        result->reading_capacity = capacity;
    }
    return &result->readings[result->reading_count++];
}

/* Takes what was noted since the last tick and sums up the last second. */
static void sum_recent(struct state *state, uint64_t now, struct reading *reading)
{
    size_t slot = state->ticks++ % TICKS_PER_S;
    pthread_mutex_lock(&state->recorder.mutex);
    state->recent[slot] = state->recorder.interval;
    memset(&state->recorder.interval, 0, sizeof state->recorder.interval);
    pthread_mutex_unlock(&state->recorder.mutex);
    state->recent_start_ns[slot] = state->tick_ns;
    state->tick_ns = now;

    size_t held = state->ticks < TICKS_PER_S ? state->ticks : TICKS_PER_S;
    uint64_t since = state->recent_start_ns[state->ticks < TICKS_PER_S ? 0 : state->ticks % TICKS_PER_S];
    double seconds = (double)(now - since) / NS_PER_S;
    struct histogram rtt = {0};
    uint64_t completed = 0, shed = 0;
    for (size_t i = 0; i < held; i++) {
        histogram_merge(&rtt, &state->recent[i].rtt);
        completed += state->recent[i].tally.completed;
        shed += state->recent[i].tally.shed;
    }
    reading->completed_per_s = (double)completed / seconds;
    reading->shed_per_s = (double)shed / seconds;
    reading->p50_ms = histogram_quantile_ms(&rtt, 0.50);
    reading->p99_ms = histogram_quantile_ms(&rtt, 0.99);
}

static int tick(struct state *state, uint64_t now)
{
    weir_stats stats = {0};
    int error = weir_pool_stats(state->load.pool, &stats);
    if (error != 0)
        return bench_complain("the pool gives no figures", weir_strerror(error));
    struct reading *reading = next_reading(state->result);
    if (reading == NULL)
        return bench_complain("the readings", strerror(ENOMEM));
    *reading = (struct reading){
        .at_s = (double)(now - state->load.start_ns) / NS_PER_S,
        .phase = state->recorder.phase,
        .limit = stats.limit,
        .in_flight = stats.in_flight,
        .queued = stats.queued,
    };
    sum_recent(state, now, reading);
    struct phase_record *phase = &state->result->phases[state->recorder.phase];
    phase->limit_sum += stats.limit;
    phase->limit_samples++;
    view_show(state->run, state->result);
    return 0;
}

static uint64_t boundary_ns(const struct state *state, size_t phase)
{
    const struct options *options = state->run->options;
    return state->load.start_ns +
           (uint64_t)(plan_start_s(&options->plan, phase, options->duration_s) * (double)NS_PER_S);
}

static int still_well(struct state *state)
{
    if (interrupted())
        return EINTR;
    if (server_process_ended(&state->server))
        return EIO;
    int error = atomic_load(&state->load.error);
    return error == 0 ? 0 : bench_complain("the pool takes no more jobs", weir_strerror(error));
}

/* Walks through the phases while the load runs. */
static int drive(struct state *state)
{
    size_t phases = state->run->options->plan.phase_count;
    size_t phase = 0;
    uint64_t next_tick = state->load.start_ns + TICK_NS;
    for (;;) {
        int error = still_well(state);
        if (error != 0)
            return error;
        uint64_t now = weir_now_ns();
        uint64_t boundary = boundary_ns(state, phase + 1);
        if (now >= next_tick) {
            error = tick(state, now);
            next_tick += TICK_NS;
        }
        if (error == 0 && now >= boundary) {
            leave_phase(state, now);
            if (++phase == phases)
                return 0;
            error = enter_phase(state, phase, now);
        }
        if (error != 0)
            return error;
        sleep_until(next_tick < boundary ? next_tick : boundary);
    }
}

/* Ends the load and the pool; jobs in flight may finish unless the run has failed. */
static int wind_up(struct state *state, int error)
{
    pthread_mutex_lock(&state->recorder.mutex);
    state->recorder.closed = true;
    pthread_mutex_unlock(&state->recorder.mutex);
    if (error != 0)
        atomic_store(&state->load.abandoned, true);
    load_join(&state->load);
    int drained = weir_pool_drain(state->load.pool, weir_after_ns(DRAIN_NS));
    atomic_store(&state->load.abandoned, true);
    int destroyed = weir_pool_destroy(state->load.pool);
    if (error == 0 && drained != 0)
        return bench_complain("the pool does not drain", weir_strerror(drained));
    if (error == 0 && destroyed != 0)
        return bench_complain("the pool cannot be destroyed", weir_strerror(destroyed));
    return error;
}

static int run_pool(struct state *state)
{
    const struct options *options = state->run->options;
    int error = weir_pool_create(&state->load.pool, state->run->label, state->run->config);
    if (error != 0)
        return bench_complain("the pool cannot be created", weir_strerror(error));
    state->load.target = &state->target;
    state->load.recorder = &state->recorder;
    state->load.rate = options->rate;
    state->load.start_ns = state->phase_start_ns = state->tick_ns = weir_now_ns();
    state->load.end_ns = boundary_ns(state, options->plan.phase_count);
    error = load_start(&state->load);
    if (error != 0) {
        weir_pool_destroy(state->load.pool);
        return bench_complain("the load does not start", strerror(error));
    }
    view_begin(state->run);
    error = drive(state);
    view_end();
    return wind_up(state, error);
}

static int find_target(struct state *state)
{
    const struct options *options = state->run->options;
    if (!options->plan.own_server)
        return target_of_url(&state->target, &options->url);
    int error = server_process_start(&state->server);
    if (error != 0)
        return error;
    target_of_server(&state->target, &state->server);
    return enter_phase(state, 0, weir_now_ns());
}

int run_once(const struct run *run, struct result *result)
{
    struct state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return bench_complain("the run", strerror(ENOMEM));
    state->run = run;
    state->result = result;
    state->server = (struct server_process)SERVER_PROCESS_NONE;
    pthread_mutex_init(&state->recorder.mutex, NULL);
    state->recorder.phases = result->phases;
    result->label = run->label;
    int error = find_target(state);
    if (error == 0)
        error = run_pool(state);
    server_process_stop(&state->server);
    pthread_mutex_destroy(&state->recorder.mutex);
    free(state);
    return error;
}

void result_free(struct result *result)
{
    free(result->readings);
    result->readings = NULL;
}
