/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BENCH_SIM_WORLD_H
#define WEIR_BENCH_SIM_WORLD_H

/* The state of one run. */

#include "sim.h"

#include "admission/admission.h"

#define SIM_NONE UINT32_MAX

struct sim_call {
    uint64_t intended; /* arrival that its latency counts from */
    uint64_t granted;
    uint64_t work; /* ns of service */
    uint32_t client;
    uint32_t in_flight; /* at its grant, itself included */
    uint32_t outcome;   /* weir_outcome */
    uint32_t next;      /* in the downstream's line or the list of free calls */
    uint32_t parent;    /* NESTED: the outer call of an inner one */
    uint8_t rest;       /* NESTED: inner calls still to make; else retries left */
    bool inside;        /* counted by the downstream */
};

/* What the library keeps about the queue of a pool. */
struct sim_boundary {
    struct weir__flow flow;
    struct weir__demand demand;
    struct weir__depth_meter meter;
    struct weir__standing standing;
    struct weir__asked asked;
};

/* What is measured about queues. */
struct sim_queue {
    double peak;
    double raw_sum;
    double raw_count;
    bool stepped;
    uint64_t step_at;
    double step_rate; /* calls per second that the limit allowed then */
    double climb_s;   /* until it allowed what is asked for; 0: not yet */
    double ran, in_time, expired;
};

/* A job that waits for a permit. */
struct sim_job {
    uint64_t intended;
    uint32_t parent;
    uint32_t retries;
};

struct sim_client {
    weir_estimator *estimator;
    uint32_t limit; /* enforced */
    uint32_t in_flight;
    bool joined;
    uint64_t arrives_at; /* when its next arrival is due; others are stale */
    uint64_t completed;  /* successes since the measurement of fairness began */
    double mirrored;     /* FLIPPED: the published limit */
    uint32_t last;       /* what the estimator said last */
    uint64_t offset_at;  /* when the wall offset was last told */
    int64_t skew;        /* of its wall clock */

    struct sim_job *line; /* ring */
    size_t head, queued, room;
    size_t depth;
    struct sim_boundary boundary;
};

/* Busy integral, RTTs and limits of one phase. */
struct sim_tally {
    double used;      /* integral of the share of capacity in use */
    double available; /* seconds */
    struct sim_histogram rtt;
    double peak_queue;
    double completed;
};

struct sim_world {
    const struct sim_scenario *scenario;
    const struct sim_controller *controller;
    const struct sim_oracle *oracle;
    struct sim_events events;
    uint64_t now;
    size_t phase;
    uint64_t phase_began;
    struct sim_truth truth;
    struct sim_random arrivals, services, noise, weather;

    struct sim_call *calls;
    size_t calls_room;
    uint32_t free_call;

    struct sim_client *clients;
    weir_config config;   /* defaults */
    size_t clients_count; /* NESTED: the second one is the inner limiter */
    uint64_t total_in_flight;
    bool all_joined;

    /* downstream */
    uint32_t line_head, line_tail;
    size_t waiting;  /* in its line */
    uint32_t busy;   /* servers or, where they share, calls inside */
    double progress; /* SHARING: service every call inside has had, ns */
    uint64_t progress_at;
    struct sim_departure {
        double at; /* of progress */
        uint32_t call;
    } * departures; /* heap */
    size_t departures_room;
    uint32_t generation; /* of the scheduled departure */
    double tokens;
    uint64_t tokens_at;
    bool gusty;
    uint64_t weather_until;

    /* measurement */
    struct sim_queue boundary;
    struct sim_tally tallies[SIM_PHASES];
    struct sim_histogram total; /* latency from the intended arrival */
    uint64_t used_at;
    uint64_t arrivals_count, shed_count, avoidable_count;
    double ring[50]; /* last RTTs, seconds */
    unsigned ring_count;
    double ring_sum;
    uint64_t slow_since; /* 0: not slow */
    bool episode_counted;
    double episodes, overloaded;

    /* what is seen on the ticks; at: seconds since the phase began */
    struct sim_look {
        float at, limit, optimum, flight;
        uint8_t phase;
        bool all; /* clients have joined */
    } * looks;
    size_t looks_count, looks_room;
    struct sim_trace *trace;
    double trace_next;
};

/* ---- downstream.c ---- */
void sim_downstream_take(struct sim_world *world, uint32_t call);
void sim_downstream_served(struct sim_world *world, uint32_t call);
void sim_downstream_departed(struct sim_world *world, uint32_t generation);
void sim_downstream_changed(struct sim_world *world);     /* the truth has */
double sim_downstream_use(const struct sim_world *world); /* share of the capacity in use, 0 … 1 */
double sim_working_s(const struct sim_world *world, uint64_t from, uint64_t to); /* without pauses */

/* ---- gate.c ---- */
void sim_gate_open(struct sim_world *world, uint32_t client, const struct sim_controller *controller);
void sim_gate_close(struct sim_client *client);
void sim_gate_join(struct sim_world *world, uint32_t client);
void sim_gate_arrive(struct sim_world *world, uint32_t client, const struct sim_job *job);
void sim_gate_return(struct sim_world *world, uint32_t call);
void sim_gate_follow_oracle(struct sim_world *world);
void sim_gate_inner(struct sim_world *world, uint32_t parent); /* NESTED: the next inner call of an outer one */

/* ---- boundary.c ---- */
void sim_boundary_open(struct sim_client *client);
/* Whether a job may join the queue, or begin. */
bool sim_boundary_admits(struct sim_world *world, struct sim_client *client, const struct sim_job *job);
/* Takes the next job out of the queue; false: there is none. */
bool sim_boundary_take(struct sim_world *world, struct sim_client *client, struct sim_job *job);
/* The queue is as long as it gets. */
void sim_boundary_queued(struct sim_world *world, const struct sim_client *client);
/* The estimator has had a sample. */
void sim_boundary_ended(struct sim_world *world, struct sim_client *client, const weir_sample *sample);
/* A call is back. */
void sim_boundary_returned(struct sim_world *world, const struct sim_call *call);
void sim_boundary_evaluate(const struct sim_world *world, struct sim_result *result);

/* ---- run.c ---- */
uint32_t sim_call_new(struct sim_world *world);
void sim_call_free(struct sim_world *world, uint32_t call);
void sim_account(
    struct sim_world *world); /* brings the integrals up to now; before the use of the downstream changes */
void sim_saw_rtt(struct sim_world *world, const struct sim_call *call);
double sim_demand_rate(const struct sim_world *world); /* calls per second, all clients; INFINITY: busy */

/* ---- evaluate.c ---- */
void sim_evaluate(const struct sim_world *world, struct sim_result *result);

#endif
