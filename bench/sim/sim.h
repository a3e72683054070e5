/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BENCH_SIM_H
#define WEIR_BENCH_SIM_H

/* A discrete-event simulation of callers, gates and one downstream on a virtual clock. A run depends on nothing but its
 * scenario, the controller and the seed: there is no thread and no real clock in it, events of the same instant happen
 * in the order in which they were scheduled. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/config.h>
#include <weir/estimator.h>

#define SIM_NS     1000000000.0
#define SIM_PHASES 8

/* ---- random.c ---- */

struct sim_random {
    uint64_t state;
    double spare; /* the second of a pair of normal deviates */
    bool has_spare;
};
double sim_uniform(struct sim_random *random); /* (0, 1) */
double sim_normal(struct sim_random *random);
double sim_exponential(struct sim_random *random); /* mean 1 */

/* ---- histogram.c: RTTs in buckets half a percent wide ---- */

#define SIM_BUCKETS 4700
struct sim_histogram {
    uint32_t count[SIM_BUCKETS];
    uint64_t total;
};
void sim_histogram_add(struct sim_histogram *histogram, double seconds);
void sim_histogram_merge(struct sim_histogram *into, const struct sim_histogram *from);
double sim_histogram_quantile(const struct sim_histogram *histogram, double share); /* seconds; 0 if empty */

/* ---- scenarios.c ---- */

enum sim_model { SIM_FIFO, SIM_SHARING, SIM_CONTENTION, SIM_HARD_LIMIT, SIM_RATE_LIMIT, SIM_NESTED, SIM_CONCAVE };
enum sim_law { SIM_LOGNORMAL, SIM_EXPONENTIAL, SIM_BIMODAL };
enum sim_demand { SIM_BUSY, SIM_POISSON, SIM_BURSTS };

struct sim_phase {
    double seconds;
    double servers;    /* c; RATE_LIMIT: calls per second */
    double service_ms; /* mean; BIMODAL: of the fast calls */
    double network_ms;
    double rate;       /* of open-loop demand, calls per second, all clients together */
    double slow_share; /* BIMODAL */
    double fail_share; /* fail in 1 ms, or late */
    bool timeouts;     /* every call is a timeout after 1 s */
    bool unmeasured;   /* left out of utilisation and quantiles */
};

/* One condition on a figure of the result; what the suite demands of the default controller. */
struct sim_goal {
    size_t figure; /* offset of a double in struct sim_result */
    const char *name;
    bool at_least;
    double bound;
};

struct sim_scenario {
    const char *id; /* "2", "2ps" … unique */
    const char *title;
    enum sim_model model;
    enum sim_law law;
    double cv;      /* LOGNORMAL */
    double slow_ms; /* BIMODAL: mean of the slow calls */
    enum sim_demand demand;
    unsigned clients; /* 0 counts as 1 */
    double join_s;    /* between two clients */
    double skew_ms;   /* standard deviation of the clients' wall clocks */
    double pause_s;   /* the downstream stops that long … */
    double pause_every_s;
    double gust;        /* calls that begin in a gust take longer by that share ... */
    double gust_s;      /* ... which lasts that long on average ... */
    double calm_s;      /* ... with this between two of them */
    bool fail_late;     /* what fails is served like any other call, and fails then */
    double batch_ms;    /* completions are delivered on this grid */
    double sine;        /* amplitude of the capacity, share of servers … */
    double sine_s;      /* … and its period */
    double hard_limit;  /* HARD_LIMIT: K */
    double knee;        /* CONTENTION: the optimum, sigma is 0.02 */
    double half;        /* CONCAVE: calls inside that do half of what any number could */
    bool retries;       /* three, 10 ms apart, of a call that was shed */
    bool blocking;      /* open-loop callers wait instead of being shed */
    double deadline_ms; /* of each job, from its arrival; 0: none */
    bool blind;         /* the queue does not know of deadlines */
    double warm_s;      /* before this nothing is measured */
    unsigned initial;   /* limit; 0: the algorithm's own */
    unsigned max_limit; /* 0: 1000 */
    double rtt_ceiling_ms;
    struct sim_phase phases[SIM_PHASES];
    struct sim_goal goals[8];
    bool quick;          /* part of the short regression */
    bool heavy;          /* two seeds are enough for the references */
    uint64_t drawn_from; /* the seed of a random scenario; 0: one of the suite */
};

extern const struct sim_scenario sim_scenarios[];
extern const size_t sim_scenarios_count;
const struct sim_scenario *sim_find_scenario(const char *id);
size_t sim_phase_count(const struct sim_scenario *scenario);
double sim_duration(const struct sim_scenario *scenario); /* seconds */

/* What the downstream can do at a moment: calls per second, and in flight at the knee by Little's law. */
struct sim_truth {
    double servers;
    double mean_s; /* unloaded RTT */
    double rate;
    double optimum;
};
struct sim_truth sim_truth(const struct sim_scenario *scenario, size_t phase, double seconds);

/* ---- draw.c ---- */

struct sim_drawn {
    struct sim_scenario scenario; /* points into what follows */
    char id[32];
    char title[256];
};
/* The random scenario of that seed. */
void sim_draw(struct sim_drawn *drawn, uint64_t seed);

/* ---- events.c ---- */

enum sim_event_kind {
    SIM_ARRIVAL,  /* at a client */
    SIM_SERVED,   /* a server is done with a call */
    SIM_DEPARTED, /* the next call of a processor-sharing downstream is done */
    SIM_RETURNED, /* the call is back at its client */
    SIM_JOIN,     /* a client begins */
    SIM_PHASE,    /* the next phase begins */
    SIM_TICK,     /* the world is looked at */
    SIM_RETRY
};

struct sim_event {
    uint64_t at;
    uint64_t order; /* of scheduling; breaks ties */
    uint32_t kind;
    uint32_t subject; /* call, client or generation */
};

struct sim_events {
    struct sim_event *heap;
    size_t count, room;
    uint64_t orders;
};
void sim_schedule(struct sim_events *events, uint64_t at, enum sim_event_kind kind, uint32_t subject);
bool sim_next(struct sim_events *events, struct sim_event *event);

/* ---- controllers: who decides on the limit ---- */

enum sim_twist {
    SIM_STRAIGHT,
    SIM_FLIPPED,     /* every change in the other direction */
    SIM_NO_DRAIN,    /* low phases are not carried out */
    SIM_IDLE_GROWTH, /* grows while less than half is in use */
    SIM_WAIT_COUNTED /* the RTT begins when the call arrives, not when it is granted */
};

struct sim_controller {
    const char *name;
    const char *title;
    uint32_t algorithm; /* weir_algorithm; 0: the oracle */
    uint32_t fixed;     /* WEIR_FIXED: the limit */
    enum sim_twist twist;
    bool mutant;
};
extern const struct sim_controller sim_controllers[];
extern const size_t sim_controllers_count;
const struct sim_controller *sim_find_controller(const char *name);

/* ---- result of a run ---- */

struct sim_phase_result {
    double utilisation;
    double p99;
    double limit;       /* mean over the last 60 % */
    double least, most; /* limit */
    double settled_s;   /* from the beginning of the phase; INFINITY: never */
    double reached_s;   /* first moment with a limit of 0.9 optima; INFINITY: never */
    double peak_queue;
    double optimum;
};

struct sim_result {
    double utilisation; /* of what the downstream could do, 0 … 1 */
    double relative;    /* utilisation by the oracle's */
    double p50, p99;    /* RTT, seconds */
    double p99_ratio;   /* by the oracle's */
    double p99_total;   /* from the intended arrival */
    double episodes;
    double overloaded_s;
    double more_episodes; /* than the oracle has */
    double more_overloaded_s;
    double settled_s;  /* the slowest phase */
    double spread;     /* (p95 - p5)/optimum of the limit once settled */
    double above;      /* share of time with a limit above 1.5 optima */
    double below;      /* and below 0.7 */
    double peak;       /* most in flight once all clients are there, by the optimum */
    double mean_limit; /* by the optimum */
    double jain;
    double shed;        /* share of arrivals */
    double avoidable;   /* share of arrivals shed while demand was below the capacity */
    double update_ns;   /* only filled by --cost */
    double queue_peak;  /* jobs */
    double queue_raw;   /* mean depth by the library's arithmetic, before its bounds */
    double queue_cover; /* peak by that */
    double queue_climb; /* peak by that of a demand step, for the time that the limit climbed */
    double in_time;     /* share of the jobs that ran */
    double goodput;     /* jobs that ended in time, of what the downstream could do */
    struct sim_phase_result phases[SIM_PHASES];
};

struct sim_point {
    double at, limit, optimum, in_flight, rtt, queue;
};
struct sim_trace {
    bool wanted; /* points are */
    struct sim_point *points;
    size_t count, room;
    double interval_s;
    FILE *decisions; /* a line for each change of a limit; NULL: none */
};

/* What the oracle plays: optimum times factor, for each phase. */
struct sim_oracle {
    double factor[SIM_PHASES];
};

/* ---- run.c, oracle.c ---- */

/* trace may be NULL. oracle: NULL counts as factors of 1. */
void sim_run(const struct sim_scenario *scenario, const struct sim_controller *controller, uint64_t seed,
             const struct sim_oracle *oracle, struct sim_trace *trace, struct sim_result *result);

/* Sweeps fixed limits in steps of 1.1. */
void sim_find_oracle(const struct sim_scenario *scenario, uint64_t seed, bool coarse, struct sim_oracle *oracle);

/* Fills in the figures that compare with the oracle's run of the same seed. */
void sim_compare(struct sim_result *result, const struct sim_result *oracle);

/* The first goal of the scenario that a result misses, or NULL. */
const struct sim_goal *sim_missed(const struct sim_scenario *scenario, const struct sim_result *result);

#endif
