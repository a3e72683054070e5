/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_SOAK_H
#define WEIR_TESTS_SOAK_H

/* Load that lasts, see soak.c. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir.h>

/* Whatever is wrong ends the program: a line on stderr, and status 1. */
_Noreturn void soak_fail(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));

/* A random number below bound; each thread has a state of its own. */
uint64_t soak_random(uint64_t *state, uint64_t bound);

/* ---- server.c: what the jobs talk to ---- */

/* Starts a server in a child process, on a port of 127.0.0.1 that is returned. It takes a few milliseconds for an
 * answer most of the time, and by turns it is slow, stalls, resets connections, or does not listen. It ends with this
 * process. */
uint16_t server_start(pid_t *pid);

/* One request. The job's outcome: dropped if there is no answer in time. Counts what happened. */
struct request_counts {
    atomic_ullong answered;
    atomic_ullong refused; /* or reset */
    atomic_ullong timed_out;
};
weir_outcome request(uint16_t port, struct request_counts *counts);

/* ---- epoch.c: a pool from its creation to its end ---- */

struct totals {
    uint64_t jobs; /* that were accepted */
    uint64_t succeeded, ignored, dropped, cancelled, expired, shed, timed_out;
    uint64_t refused; /* by a shutdown */
    uint64_t permits; /* of direct callers */
    uint64_t pools;   /* small ones besides */
    unsigned most_threads;
};

/* Plays for that long, ends the pool and checks that every job is accounted for. Adds to totals. */
void epoch_run(uint16_t port, struct request_counts *counts, unsigned number, double seconds, struct totals *totals);

/* ---- process.c: this process' own figures ---- */

uint64_t process_rss_kib(void);
uint64_t process_heap_kib(void); /* allocated and not freed; 0 where the libc does not tell */
unsigned process_threads(void);
unsigned process_descriptors(void);

#endif
