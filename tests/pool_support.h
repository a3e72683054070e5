/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_POOL_SUPPORT_H
#define WEIR_TESTS_POOL_SUPPORT_H

/* What the tests of pools have in common. Jobs never assert: they count into atomics, the test reads those. */

#include <sys/types.h>

#include <weir.h>

#include "support.h"

enum { TEST_LIMIT_S = 120 }; /* of one test, generous: a busy machine is no failure */

/* A permit count that stands still, a queue of the given depth, no environment. */
weir_config weir_test_fixed(uint32_t limit, uint32_t depth);

/* Creates a pool, asserted. */
weir_pool *weir_test_pool_of(const weir_config *config);
weir_pool *weir_test_pool(uint32_t limit, uint32_t depth);

/* Destroys it, asserted. */
void weir_test_pool_end(weir_pool *pool);

/* A snapshot; only for pools that are usable. */
weir_stats weir_test_stats(weir_pool *pool);

/* Ended and still admitted jobs of a snapshot: equals submitted. */
uint64_t weir_test_accounted(const weir_stats *stats);

/* The pool takes its jobs to last so long, until it has seen some. */
void weir_test_take_jobs_for(weir_pool *pool, uint64_t ns);

/* ---- jobs ---- */

weir_outcome weir_test_count(void *counter); /* adds one to an atomic_uint */
weir_outcome weir_test_nothing(void *unused);
weir_outcome weir_test_pass(void *gate); /* waits at a struct weir_test_gate */

/* Submits jobs that wait at the gate and returns once all of them are there; asserted. */
void weir_test_occupy(weir_pool *pool, struct weir_test_gate *gate, unsigned jobs);

/* Appends numbers in the order in which they come. */
enum { WEIR_TEST_RECORD_SIZE = 4096 };
struct weir_test_record {
    pthread_mutex_t mutex;
    unsigned count;                         /* guarded by mutex */
    unsigned values[WEIR_TEST_RECORD_SIZE]; /* guarded by mutex */
};
#define WEIR_TEST_RECORD_INIT              \
    {                                      \
        .mutex = PTHREAD_MUTEX_INITIALIZER \
    }
void weir_test_record_add(struct weir_test_record *record, unsigned value);
bool weir_test_record_has(struct weir_test_record *record, unsigned value);

/* ---- threads and the process ---- */

pthread_t weir_test_thread(void *(*run)(void *), void *arg);
void *weir_test_join(pthread_t thread);

unsigned weir_test_thread_count(void);    /* entries of /proc/self/task */
unsigned weir_test_thread_baseline(void); /* the same before a test starts threads: sanitizers add one of theirs */
pid_t weir_test_thread_id(void);

/* jobs divided by weir_test_slow, at least least. */
unsigned weir_test_scaled(unsigned jobs, unsigned least);

/* Forks a child that runs body(arg) and ends with its value by exit (not _exit), and returns the child's wait status.
 * No thread should exist in the caller unless the test is about that. */
int weir_test_in_child(int (*body)(void *), void *arg);

/* For the child of a process whose other threads are at work: what they had in hand at the fork is lost to it, which
 * valgrind would tell at its end. So where Check does not fork, as for valgrind, it ends as another program. */
void weir_test_end_unseen(int code);

#endif
