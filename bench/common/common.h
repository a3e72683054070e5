/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

/* What the programs that put a pool before a real downstream share. */

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <weir.h>

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* The program's own: its name; and what says on stderr what failed and why, and returns EIO. */
extern const char bench_name[];
int bench_complain(const char *what, const char *why);

/* --- options.c -------------------------------------------------------------------------------------------------- */

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_BAD };

/* Says on stderr that the option's value is not what is wanted. */
enum options_result option_refuse(const char *option, const char *value, const char *wanted);
/* The whole text as a number from low to high; false: it is none, and *number is as before. */
bool option_number(const char *text, double low, double high, double *number);
bool option_whole(const char *text, unsigned low, unsigned high, unsigned *number);

/* --- histogram.c ------------------------------------------------------------------------------------------------ */

/* 64 linear buckets per power of two: a quantile is off by less than 1 %. The last bucket takes all above 2^35 us. */
#define HISTOGRAM_SUB     64u
#define HISTOGRAM_OCTAVES 30u
#define HISTOGRAM_BUCKETS (HISTOGRAM_SUB * HISTOGRAM_OCTAVES)

struct histogram {
    uint64_t count;
    uint32_t bucket[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t us);
void histogram_merge(struct histogram *into, const struct histogram *from);
double histogram_quantile_ms(const struct histogram *histogram, double quantile); /* 0 when empty */

/* --- clock.c ---------------------------------------------------------------------------------------------------- */

/* Sleeps until then or the next signal. */
void sleep_until(uint64_t deadline_ns);
/* A small generator (splitmix64): the same arrivals in every run. [0, 1) */
double random_uniform(uint64_t *state);

/* --- thread.c, gnuplot.c ---------------------------------------------------------------------------------------- */

/* As pthread_create; signals are left to the main thread. */
int thread_start(pthread_t *thread, void *(*function)(void *), void *arg);
/* Runs gnuplot, whose name is the first of the arguments. 0, ENOENT: there is none, EIO: it failed and has said why. */
int gnuplot(char *const arguments[]);

/* --- server.c, server_process.c --------------------------------------------------------------------------------- */

/* An HTTP server of known capacity. The program is its own server: run with these arguments, its main has to call
 * server_main. */
#define SERVER_MODE "--server" /* followed by the descriptor of the control socket */

/* The server's main: serves until the control socket ends. Control lines are "serve HANDLERS SERVICE_US", each answered
 * by "ok" or "error …"; the first line it sends is "listening PORT". */
int server_main(int control);

struct server_process {
    pid_t pid;   /* 0: none */
    int control; /* -1: none */
    struct sockaddr_in address;
};

#define SERVER_PROCESS_NONE     \
    {                           \
        .pid = 0, .control = -1 \
    }

/* All return 0 or an errno value, having said on stderr what failed. */
int server_process_start(struct server_process *process);
int server_process_serve(struct server_process *process, unsigned handlers, unsigned service_us);
bool server_process_ended(struct server_process *process); /* it should not have: says how */
void server_process_stop(struct server_process *process);

#endif
