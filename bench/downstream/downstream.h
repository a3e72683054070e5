/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_DOWNSTREAM_H
#define BENCH_DOWNSTREAM_H

/* Pools before real downstreams, while these degrade. A part is one downstream: it starts the server in a directory of
 * its own, changes its state from phase to phase, and makes one blocking call per job. For each part a sweep finds the
 * best fixed number of threads for the quiet phase; then every pool gets the same open-loop load through all phases.
 *     main.c       the parts and their order
 *     options.c    the command line
 *     place.c      the directory, and the processes that run in it
 *     sweep.c      pools of a fixed number that always have work
 *     run.c        one pool through all phases
 *     load.c       arrivals, the job, what it measured
 *     report.c     the table and the verdict
 *     plot.c       the data files and the pictures
 *     fleet.c      the odd one: many processes, one PostgreSQL
 *     http.c postgresql.c redis.c disk.c cpu.c    the other parts
 * Times are ns of the monotonic clock, latencies in histograms us. */

#include <sys/types.h>

#include "common.h"

/* --- options.c -------------------------------------------------------------------------------------------------- */

#define POOLS_MAX 16

struct pool_kind {
    char label[24];     /* "vegas2", "16", "best" */
    uint32_t algorithm; /* weir_algorithm */
    unsigned fixed;     /* WEIR_FIXED: threads; 0: the sweep's best */
};

struct options {
    const char *parts[16];
    size_t part_count; /* 0: all */
    struct pool_kind pools[POOLS_MAX];
    size_t pool_count;
    double seconds;       /* of a measured phase; 0: the part's own */
    double load;          /* the rate by what the best fixed number completes */
    const char *output;   /* directory */
    const char *locks[2]; /* files; NULL: none */
    unsigned rounds;
    bool trace;
    bool check;
};

enum options_result options_parse(struct options *options, int argc, char **argv);

/* --- place.c ---------------------------------------------------------------------------------------------------- */

/* A temporary directory, and who runs servers in it: ourselves, or an unprivileged user if we are root. */
struct place {
    char path[128];
    uid_t user;
    gid_t group;
};

/* All that return an int return 0 or an errno value, having said on stderr what failed. */
int place_create(struct place *place, const char *part);
void place_remove(struct place *place);
/* A file of this name in the place, with this text. */
int place_write(const struct place *place, const char *name, const char *text);
int free_port(unsigned *port); /* on loopback */

/* How a process is started: in the place, as its user, with its output in NAME.log. It ends with this process. */
struct spawn {
    const char *name;
    char *const *arguments; /* the first is looked up in PATH and the sbin directories */
    int end_signal;         /* asks it to end */
};
int place_spawn(const struct place *place, const struct spawn *spawn, pid_t *pid);
int place_run(const struct place *place, const struct spawn *spawn); /* and waits until it has ended well */
void place_log(const struct place *place, const char *name);         /* its last lines, to stderr */
bool program_exists(const char *name);
bool process_ended(pid_t *pid);                /* reaps it: pid becomes 0 */
void process_stop(pid_t *pid, int end_signal); /* by force after some seconds */

/* --- parts ------------------------------------------------------------------------------------------------------ */

#define PHASES_MAX 6

struct phase {
    const char *name;
    bool absent; /* start() found that it cannot be had, and has said why */
};

enum ending {
    ENDED_WELL,
    ENDED_REFUSED, /* too much: an error that says so */
    ENDED_BUSY     /* an error that says nothing of the load */
};

struct part {
    const char *name;
    const char *title;
    unsigned widest;    /* fixed number of the sweep; 0: the part has a run of its own */
    double seconds;     /* of a measured phase */
    size_t phase_count; /* the first is the quiet one */
    struct phase phases[PHASES_MAX];
    const char *missing; /* what this build lacks; NULL: nothing */

    int (*start)(const struct place *place); /* ENOTSUP: cannot be had here, and has said why */
    int (*enter)(size_t phase);              /* puts the downstream into the state of that phase */
    void (*stop)(void);                      /* also after a start that failed */
    bool (*ended)(void);                     /* the downstream is gone, which it should not be; may be NULL */
    void (*worker_start)(void);              /* may be NULL, as the next */
    void (*worker_stop)(void);
    enum ending (*call)(uint64_t random);
    int (*run)(struct part *part, const struct place *place, const struct options *options); /* instead of all that */
};

extern struct part part_http, part_postgresql, part_redis, part_disk, part_cpu, part_fleet;
extern struct part *const parts[]; /* NULL-terminated */
struct part *part_find(const char *name);

/* main.c: set by SIGINT, SIGTERM and SIGHUP. */
bool interrupted(void);
/* Sleeps unless interrupted; EINTR then. */
int pause_ns(uint64_t ns);
/* After this nobody else who locks the same files measures. */
int lock_machine(const struct options *options);
/* Between two runs: lets others measure, if it has been locked for long. */
void yield_machine(void);
void unlock_machine(void);

/* --- load.c ----------------------------------------------------------------------------------------------------- */

struct tally {
    uint64_t arrived;
    uint64_t shed;
    uint64_t completed;
    uint64_t refused;
    uint64_t busy;
};

struct figures {
    struct tally tally;
    struct histogram rtt;        /* of completed calls, as the job saw them */
    struct histogram end_to_end; /* from the intended arrival, the wait in the pool included */
};
void figures_add(struct figures *into, const struct figures *from);

struct load {
    struct part *part;
    weir_pool *pool;
    double rate;   /* 0: always busy */
    uint64_t seed; /* of the arrivals */
    uint64_t start_ns;
    atomic_bool stopped; /* arrivals end */
    atomic_int error;    /* what a submit returned, other than EAGAIN */
    pthread_t thread;
};

/* The pool's configuration; its workers run the part's hooks and note what its jobs measured. */
void load_configure(struct part *part, const struct pool_kind *kind, weir_config *config);
int load_start(struct load *load);
void load_stop(struct load *load); /* joins */
/* Takes all that was noted since the last call, by jobs of any load. */
void load_collect(struct figures *figures);

/* --- sweep.c ---------------------------------------------------------------------------------------------------- */

struct sweep {
    unsigned best; /* threads */
    double rate;   /* the greatest that any number completed, per second */
};
int sweep(struct part *part, const struct options *options, struct sweep *result);

/* --- run.c ------------------------------------------------------------------------------------------------------ */

/* The beginning of a phase, in which a pool may still be finding out. */
#define ONSET_S 1.0

struct phase_record {
    struct figures figures;
    struct figures settled; /* without the onset */
    double seconds, settled_seconds;
    double limit_sum; /* over readings */
    uint64_t readings;
};

struct reading {
    double at_s;
    size_t phase;
    uint32_t limit, in_flight, queued;
    double completed_per_s, failed_per_s, shed_per_s;
    double p50_ms, p99_ms; /* RTT */
    double noload_ms, rtt_ms;
    const char *state; /* of the estimator */
};

struct result {
    struct pool_kind kind;
    struct phase_record phases[PHASES_MAX];
    struct reading *readings;
    size_t reading_count, reading_capacity;
    double seconds;              /* all of it */
    double warm_s;               /* until the first phase begins, where times are 0 */
    double phase_at[PHASES_MAX]; /* when each begins, s */
    double generator_cpu;        /* of this process, in processors */
};

/* 0, EINTR, or an errno value that has been explained. */
int run_pool(struct part *part, const struct options *options, double rate, struct result *result);
void result_free(struct result *result);

/* --- report.c, plot.c ------------------------------------------------------------------------------------------- */

struct outcome {
    struct part *part;
    const struct options *options;
    struct sweep sweep;
    double rate;
    struct result *results; /* pool_count for each round */
    size_t count;
};

bool report(const struct outcome *outcome); /* whether all that is expected of vegas2 holds */
int plot(const struct outcome *outcome);

#endif
