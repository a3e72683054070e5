/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_JOB_SUPPORT_H
#define WEIR_TESTS_JOB_SUPPORT_H

/* Jobs that end when the test says so, and threads that block at the ceiling. Neither asserts anything: they record,
 * and the test looks. */

#include <semaphore.h>

#include <weir.h>

#include "support.h"

enum { TEST_LIMIT_S = 120 }; /* of one test, generous: a busy machine is no failure */

/* Adds tests, up to a NULL, under one name. */
void weir_test_add_group(Suite *suite, const char *name, const TTest *const *tests);

/* rounds divided by weir_test_slow, at least 1. */
unsigned weir_test_scaled(unsigned rounds);

/* ---- pools and limiters ---- */

/* A limit that stands still, a queue of the given depth, no environment. */
weir_config weir_test_fixed(uint32_t limit, uint32_t depth, const char *partitions);

/* A limit that follows weir_test_script.limit at the end of each job; max_limit is 100. */
weir_config weir_test_scripted(uint32_t limit, uint32_t depth, const char *partitions);

struct weir_test_script {
    atomic_uint limit;     /* what the next update answers */
    atomic_uint in_flight; /* of the last sample */
    atomic_ullong updates;
};
extern struct weir_test_script weir_test_script;

weir_pool *weir_test_pool(const weir_config *config);       /* asserted */
weir_limiter *weir_test_limiter(const weir_config *config); /* asserted */
weir_stats weir_test_pool_stats(weir_pool *pool);           /* a snapshot of a usable pool */
weir_stats weir_test_limiter_stats(weir_limiter *limiter);  /* likewise */
uint64_t weir_test_accounted(const weir_stats *stats);      /* jobs that ended or are there: equals submitted */

/* ---- a job that begins, and ends when it is told to ---- */

struct weir_test_task {
    weir_job job;
    sem_t go;
    atomic_uint turn; /* 0: not begun; else its place among those that have begun since weir_test_turns_reset */
    weir_outcome outcome;
};

void weir_test_turns_reset(void);
unsigned weir_test_turns(void); /* how many have begun */

void weir_test_task_init(struct weir_test_task *task, const char *partition, uint32_t weight);
void weir_test_task_destroy(struct weir_test_task *task);
weir_outcome weir_test_task_run(void *task);
bool weir_test_task_has_begun(struct weir_test_task *task);
void weir_test_task_go(struct weir_test_task *task);
/* Tells it to end and waits for that; 0 as its status is asserted. */
void weir_test_task_finish(struct weir_test_task *task);

/* How many of the tasks have begun. */
unsigned weir_test_tasks_begun(struct weir_test_task *tasks, unsigned count);

/* ---- a thread that blocks, in a submit or in an acquire ---- */

enum { WEIR_TEST_ASKING = -1 };

struct weir_test_client {
    weir_pool *pool;       /* it submits task */
    weir_limiter *limiter; /* or it acquires, keeps the permits until told, and releases them */
    struct weir_test_task task;
    uint64_t deadline_ns;
    atomic_int result; /* of the submit or acquire; WEIR_TEST_ASKING before */
    atomic_uint turn;  /* limiter: as a task's */
    pthread_t thread;
};

void weir_test_client_submit(struct weir_test_client *client, weir_pool *pool, const char *partition, uint32_t weight,
                             uint64_t deadline_ns);
void weir_test_client_acquire(struct weir_test_client *client, weir_limiter *limiter, const char *partition,
                              uint32_t weight, uint64_t deadline_ns);
bool weir_test_client_answered(struct weir_test_client *client);
/* Its job, or its permits, may end. */
void weir_test_client_go(struct weir_test_client *client);
/* Waits for the thread, and the job if there is one; returns the result. */
int weir_test_client_join(struct weir_test_client *client);

#endif
