/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_LIMITER_SUPPORT_H
#define WEIR_TESTS_LIMITER_SUPPORT_H

/* What the tests of the limiter have in common: an algorithm whose limit the test moves, and clients that wait. */

#include <weir.h>

#include "suite.h"
#include "support.h"

/* ---- limiters ---- */

/* The defaults, without the environment. */
weir_config weir_test_config(void);

/* A limiter whose limit stays as it is. */
weir_limiter *weir_test_fixed_limiter(uint32_t limit);

weir_limiter *weir_test_limiter(const weir_config *config);

/* The statistics, asserted. Asking for them hands waiting samples to the estimator. */
weir_stats weir_test_stats(weir_limiter *limiter);

/* acquire, release and destroy, asserted to succeed. */
void weir_test_take(weir_limiter *limiter, weir_permit *permit);
void weir_test_take_many(weir_limiter *limiter, weir_permit *permit, unsigned weight);
void weir_test_give(weir_limiter *limiter, weir_permit *permit);
void weir_test_destroy(weir_limiter *limiter);

/* ---- the algorithm ---- */

enum { WEIR_TEST_KEPT = 1024 };

/* There is one, for the class has no argument of its own; every test starts it afresh. */
struct weir_test_script {
    atomic_uint limit;      /* what the next update answers */
    atomic_ullong updates;  /* samples so far; its increment publishes the sample kept below */
    atomic_int inside;      /* calls at this moment */
    atomic_bool overlapped; /* there were two at once */
    _Atomic uint64_t reaction_ns;
    weir_sample kept[WEIR_TEST_KEPT]; /* owner: the estimating thread */
    void (*during)(void);             /* called in each update; immutable while a limiter lives */
};
extern struct weir_test_script weir_test_script;

/* A configuration that uses it, from this limit on; max_limit is 1000. Starts the script afresh. */
weir_config weir_test_scripted(uint32_t limit);

/* ---- clients: threads that ask for a permit, keep it until told, and give it back ---- */

enum { WEIR_TEST_ASKING = -1 };

struct weir_test_client {
    weir_limiter *limiter;
    unsigned weight;
    uint64_t deadline_ns;
    struct weir_test_gate gate; /* the client keeps its permit until it opens */
    atomic_int result;          /* of acquire; WEIR_TEST_ASKING before */
    atomic_uint turn;           /* counts the clients of the test that got a permit */
    int release_result;
    pthread_t thread;
};

/* Starts the count of turns again. */
void weir_test_clients_reset(void);

void weir_test_client_start(struct weir_test_client *client, weir_limiter *limiter, unsigned weight,
                            uint64_t deadline_ns);

/* Starts it and returns once it waits. Nobody else may come or go meanwhile. */
void weir_test_client_queue(struct weir_test_client *client, weir_limiter *limiter, unsigned weight,
                            uint64_t deadline_ns);

/* Whether it has its permit, or an error, by now. */
bool weir_test_client_answered(struct weir_test_client *client);

/* Lets it go on; waits for its end. Returns what acquire returned. */
int weir_test_client_finish(struct weir_test_client *client);

#endif
