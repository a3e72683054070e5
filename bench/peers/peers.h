/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEERS_H
#define PEERS_H

/* The pools that C programs use, measured side by side. Every measurement is a process of its own (cell.c), so that one
 * pool's threads, memory and settings never meet another's; the measurements of one row are interleaved. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every job does: run.c says what. A peer calls it on one of its threads, once for each submit. */
void job_run(void *arg);

struct peer {
    const char *name;
    bool ranked;          /* whether it may be the best peer of a row */
    bool is_weir;         /* one of ours */
    unsigned most;        /* threads it can have, 0: any number */
    unsigned producers;   /* threads that may submit, 0: any number */
    unsigned most_queued; /* jobs it can have in a reasonable time, 0: any number */
    void *(*create)(unsigned threads);
    void (*submit)(void *pool, void *arg);
    void (*flush)(void *pool); /* by each producer after its last submit; NULL: not needed */
    void (*destroy)(void *pool);
    /* Instead of submitting: begins count jobs on the given number of threads. */
    void (*run)(void *pool, unsigned threads, uint64_t count);
};

/* NULL-terminated: the peers this build has; those it lacks are told at the start. */
extern const struct peer *const peers[];
extern const char *const missing_peers[];

extern const struct peer peer_weir;       /* the default algorithm with a limit that cannot move */
extern const struct peer peer_weir_fixed; /* no estimator */
extern const struct peer peer_textbook;
extern const struct peer peer_thpool;
extern const struct peer peer_glib;
extern const struct peer peer_uv;
extern const struct peer peer_apr;
extern const struct peer peer_openmp;
extern const struct peer peer_raw; /* the same work in bare threads */

/* The deepest queue that any workload asks for. */
enum { DEEPEST = 1 << 20 };

/* ---- clock.c ---- */

uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
void calibrate_spin(void); /* before the first measurement, so that all spin alike */
void spin_ns(uint64_t ns); /* work, not time: a thread that is preempted still has it to do */

/* ---- workload.c: many jobs ---- */

enum work { WORK_NOTHING, WORK_SPIN, WORK_SLEEP };

struct load {
    enum work work;
    uint64_t ns; /* of one job */
    unsigned threads;
    unsigned producers;
    uint64_t count; /* jobs; 0: as many as last for the time below */
};

struct throughput {
    double per_second;
    double cpu_ns;   /* per job, of the whole process */
    double switches; /* per job, voluntary and not */
    double count;
};

/* How long a measurement of throughput lasts, ns. */
extern uint64_t throughput_ns;

void measure_throughput(const struct peer *peer, const struct load *load, struct throughput *result);

/* ---- latency.c: one job ---- */

enum { PERCENTILES = 5 };
extern const double percentiles[PERCENTILES]; /* 50 first */

/* Submit and wait, ns by percentile; pause_ns before each. */
/* The same for two threads with a semaphore each. */
void measure_semaphores(uint64_t pause_ns, unsigned rounds, double *result);
void measure_ping(const struct peer *peer, unsigned threads, uint64_t pause_ns, unsigned rounds, double *result);

/* ---- cost.c: what a queue costs ---- */

struct cost {
    double bytes;   /* resident, per queued job */
    double mallocs; /* per submit, of a pool that has run before */
    double few_ns;  /* a submit at 10 queued */
    double many_ns; /* a submit at MANY queued */
};
enum { MANY = 1000000 };
void measure_cost(const struct peer *peer, unsigned many, struct cost *result);

struct life {
    double create_us;
    double create_threads; /* started by it */
    double destroy_idle_us;
    double destroy_busy_us; /* each thread in a job of a millisecond */
    double idle_switches;   /* of the process over idle_ns */
    double idle_cpu_us;
};
void measure_life(const struct peer *peer, unsigned threads, uint64_t idle_ns, struct life *result);

/* ---- gate.c: permits ---- */

enum gate { GATE_WEIR, GATE_WEIR_FIXED, GATE_SEMAPHORE, GATE_CONDITION, GATES };
extern const char *const gate_names[GATES];

/* ns per acquire and release, of the whole process's time, by threads that share the permits. */
double measure_gate(enum gate gate, unsigned threads, unsigned permits);

/* ---- update.c: the estimator alone ---- */

struct update {
    double ns;      /* per sample */
    double mallocs; /* per sample */
};
void measure_update(uint32_t algorithm, struct update *result);

/* ---- scale.c: weir alone ---- */

struct scale {
    double ns;     /* per job */
    double cpu_ns; /* per job */
};
void measure_pools(unsigned pools, struct scale *result);

/* ---- cell.c: a measurement in a process of its own ---- */

typedef void measure_fn(const void *what, double *figures);

/* False: it crashed, or took longer than the patience. */
bool cell_run(measure_fn *measure, const void *what, double *figures, unsigned count);

/* ---- process.c ---- */

struct usage {
    double cpu_ns;
    double switches;
    uint64_t at_ns;
};
struct usage usage_now(void);
double resident_bytes(void);
unsigned thread_count(void);
void count_mallocs(bool on);
uint64_t mallocs_counted(void);

/* ---- report.c ---- */

/* Figures of one cell, by round. */
enum { MOST_PEERS = 16, MOST_ROUNDS = 15 };
struct series {
    double values[MOST_ROUNDS];
    unsigned count;
};
void series_add(struct series *series, double value);
double median(const struct series *series);
double spread(const struct series *series); /* half the distance between the quartiles, over the median */

enum unit { UNIT_RATE, UNIT_NS, UNIT_US, UNIT_NUMBER };
struct row {
    char label[48];
    enum unit unit;
    bool more_is_better;
    struct series by_peer[MOST_PEERS];
};
void report_heading(const char *title);
void report_row(const struct row *row);
void report_cell(enum unit unit, const struct series *series); /* one figure and its spread */

/* Files for the charts; without a directory they are not written. */
void plot_open(const char *directory);
void plot_line(const char *file, const char *format, ...) __attribute__((__format__(__printf__, 2, 3)));
void plot_draw(void);

#endif
