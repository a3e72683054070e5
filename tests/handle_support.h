/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_HANDLE_SUPPORT_H
#define WEIR_TESTS_HANDLE_SUPPORT_H

/* What the tests of job handles have in common. Jobs and helping threads never assert: they record. */

#include <stddef.h>

#include <weir.h>

#include "support.h"

enum { WEIR_TEST_LIMIT_S = 120 }; /* of one test, generous: a busy machine is no failure */
#define WEIR_TEST_SHORT_NS UINT64_C(5000000)

/* number divided by weir_test_slow, at least least. */
unsigned weir_test_divided(unsigned number, unsigned least);

/* A limit that stands still, a queue of the given depth, no environment. */
weir_config weir_test_plain_config(uint32_t limit, uint32_t depth);
weir_pool *weir_test_plain_pool(uint32_t limit, uint32_t depth); /* asserted */
weir_stats weir_test_snapshot(weir_pool *pool);

/* Whether submitted equals what has ended and what is there. */
bool weir_test_adds_up(const weir_stats *stats);

/* A job that counts what happens to it. */
struct weir_test_counted {
    weir_job job; /* first, so that on_done finds the rest */
    weir_outcome outcome;
    atomic_uint ran;
    atomic_uint done;
    atomic_int status; /* in on_done, what weir_job_outcome said; -1 before */
};
weir_outcome weir_test_run_counted(void *counted);
void weir_test_count_done(weir_job *job);
void weir_test_counted_init(struct weir_test_counted *counted, void (*on_done)(weir_job *));

/* A job that waits at a struct weir_test_gate. */
weir_outcome weir_test_pass(void *gate);

/* A pool whose permits are all taken by jobs at a gate. */
struct weir_test_full {
    weir_pool *pool;
    struct weir_test_gate gate;
};
void weir_test_full_init(struct weir_test_full *full, uint32_t limit, uint32_t depth);
void weir_test_full_init_of(struct weir_test_full *full, const weir_config *config);
void weir_test_full_end(struct weir_test_full *full); /* opens the gate, destroys the pool; asserted */

/* A call that another thread makes. */
struct weir_test_asked {
    weir_pool *pool;
    weir_job *job;
    atomic_int answer; /* -1: none yet */
    pthread_t thread;
};
typedef int weir_test_call(struct weir_test_asked *asked);
int weir_test_submits(struct weir_test_asked *asked);
int weir_test_waits(struct weir_test_asked *asked);
int weir_test_cancels(struct weir_test_asked *asked);
void weir_test_ask(struct weir_test_asked *asked, weir_test_call *call, weir_pool *pool, weir_job *job);
int weir_test_answer(struct weir_test_asked *asked); /* joins the thread */

pthread_t weir_test_start(void *(*run)(void *), void *arg);

/* Threads of this process that are named for the pool. */
unsigned weir_test_threads_of(const char *pool_name);

/* Adds the tests, up to a NULL, as a group. */
void weir_test_group(Suite *suite, const char *name, const TTest *const *tests);

#endif
