/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEMO_H
#define WEIR_DEMO_H

/* The demo sends one open-loop load of HTTP requests through two pools, one after the other, while the server behind
 * them loses capacity, slows down and recovers. It consists of
 *     main.c       the two runs and their order
 *     options.c    the command line and the two plans (own server with its phases, a given URL without)
 *     http.c       one blocking GET
 *     load.c       arrivals, the job, what it measured
 *     run.c        one run: server, pool, load and view from start to end
 *     view.c       the live view
 *     report.c     the closing table and the verdict
 *     plot.c       the data files and the picture
 * and of the server, a process of its own, in bench/common. Times are ns of the monotonic clock, latencies in
 * histograms us. */

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <weir.h>

#include "common.h"

/* --- options.c -------------------------------------------------------------------------------------------------- */

#define PHASES_MAX 5

struct phase {
    const char *name;
    unsigned handlers;   /* of the own server */
    unsigned service_us; /* mean */
    double weight;       /* its part of the duration, over the sum of all weights */
    bool halved;         /* the phase the tail is judged in */
};

struct plan {
    bool own_server;
    size_t phase_count;
    struct phase phases[PHASES_MAX];
};

struct url {
    char host[256];
    char port[8];
    char path[1024];
};

struct options {
    struct plan plan;
    struct url url;
    double rate;           /* requests per second */
    double duration_s;     /* of each of the two runs */
    unsigned fixed;        /* permits of the pool to compare with */
    const char *algorithm; /* NULL: the library's default or the environment's */
    const char *output;    /* directory */
    bool check;
};

enum options_result options_parse(struct options *options, int argc, char **argv);

/* Where the phase begins, in seconds from the start; phase_count gives the end. */
double plan_start_s(const struct plan *plan, size_t phase, double duration_s);

/* --- http.c ----------------------------------------------------------------------------------------------------- */

struct target {
    struct sockaddr_storage address;
    socklen_t address_size;
    size_t request_size;
    char request[2048];
};

void target_of_server(struct target *target, const struct server_process *server);
/* Resolves the URL and connects once to see that somebody listens. Says on stderr what failed. */
int target_of_url(struct target *target, const struct url *url);

/* Sends the request on the calling thread's own connection and reads the whole answer. The status (100 to 599), or
 * minus an errno value: -ECANCELED once *abandoned is set, -ETIMEDOUT after REQUEST_TIMEOUT_NS. */
#define REQUEST_TIMEOUT_NS (10 * NS_PER_S)
int http_get(const struct target *target, const atomic_bool *abandoned);
/* A pool's on_worker_stop: closes the calling thread's connection. */
void http_close(void *unused);

/* --- load.c ----------------------------------------------------------------------------------------------------- */

struct tally {
    uint64_t arrived;
    uint64_t shed;
    uint64_t completed; /* 2xx, 3xx */
    uint64_t refused;   /* 429, 5xx */
    uint64_t ignored;   /* other 4xx */
    uint64_t failed;    /* no answer */
};

struct phase_record {
    struct tally tally;
    struct histogram rtt;        /* of completed requests, as the job saw them */
    struct histogram end_to_end; /* from the intended arrival, the wait in the pool included */
    double seconds;
    double limit_sum; /* over limit_samples readings */
    uint64_t limit_samples;
};

struct interval {
    struct tally tally;
    struct histogram rtt;
};

/* What the jobs and the load thread note. A request belongs to the phase in which it ends. */
struct recorder {
    pthread_mutex_t mutex; /* guards all below */
    bool closed;           /* what ends now belongs to no phase */
    size_t phase;
    struct interval interval;
    struct phase_record *phases;
};

struct load {
    weir_pool *pool;
    const struct target *target;
    struct recorder *recorder;
    double rate;
    uint64_t start_ns;
    uint64_t end_ns;
    atomic_bool abandoned; /* arrivals stop, queued jobs end at once */
    atomic_int error;      /* what a submit returned, other than EAGAIN */
    pthread_t thread;
};

int load_start(struct load *load);
void load_join(struct load *load);

/* --- run.c ------------------------------------------------------------------------------------------------------ */

#define TICK_NS     (NS_PER_S / 5)
#define TICKS_PER_S 5u

/* One reading; rates and quantiles are over the second before. */
struct reading {
    double at_s;
    size_t phase;
    uint32_t limit;
    uint32_t in_flight;
    uint32_t queued;
    double completed_per_s;
    double shed_per_s;
    double p50_ms;
    double p99_ms;
};

struct result {
    const char *label;
    struct phase_record phases[PHASES_MAX];
    struct reading *readings;
    size_t reading_count;
    size_t reading_capacity;
};

struct run {
    const struct options *options;
    const char *label;     /* "adaptive" */
    const char *algorithm; /* "vegas2" */
    unsigned number;       /* of 2 */
    const weir_config *config;
};

/* 0, EINTR after a signal, or an errno value that has been explained on stderr. */
int run_once(const struct run *run, struct result *result);
void result_free(struct result *result);

/* main.c: set by SIGINT, SIGTERM and SIGHUP. */
bool interrupted(void);

/* --- view.c ----------------------------------------------------------------------------------------------------- */

void view_begin(const struct run *run);
void view_show(const struct run *run, const struct result *result);
void view_end(void); /* restores the terminal; may be called twice */

/* --- report.c, plot.c ------------------------------------------------------------------------------------------- */

/* Prints the table and the verdict; whether the expectations hold (true where there are none). */
bool report(const struct options *options, const struct result *adaptive, const struct result *fixed);
/* Writes the data files, draws the picture and prints where it is. 0 or an errno value, explained on stderr. */
int plot(const struct options *options, const struct result *adaptive, const struct result *fixed);

#endif
