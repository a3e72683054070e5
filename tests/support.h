/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_SUPPORT_H
#define WEIR_TESTS_SUPPORT_H

/* What every test program needs and Check does not bring. */

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Runs the suite, in TAP form if WEIR_TAP is set; the value for main to return. */
int weir_test_main(Suite *suite);

/* The seed of this run, printed on stderr once: WEIR_TEST_SEED, else the clock's. */
uint64_t weir_test_seed(void);

/* A small generator (splitmix64), so that a seed gives the same run everywhere. */
uint64_t weir_test_random(uint64_t *state);
double weir_test_uniform(uint64_t *state); /* [0, 1) */

/* How much less is to be done where a sanitizer or valgrind makes everything slow: WEIR_TEST_SLOW, at least 1. */
unsigned weir_test_slow(void);

/* How long a test may wait for what comes at once: ns, and WEIR_TEST_SLOW times as long where everything is slow. At
 * most ten times, so that what comes by a timer of hours, or never, is still found out. */
uint64_t weir_test_patience_ns(uint64_t ns);

/* How often a race is run: WEIR_TEST_ROUNDS if that is set, else rounds divided by WEIR_TEST_SLOW, at least least. */
unsigned weir_test_rounds(unsigned rounds, unsigned least);

/* A gate: threads wait in pass until it is opened. Also counts who waits. */
struct weir_test_gate {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    bool open;        /* guarded by mutex */
    unsigned waiting; /* guarded by mutex */
};
void weir_test_gate_init(struct weir_test_gate *gate);
void weir_test_gate_destroy(struct weir_test_gate *gate);
void weir_test_gate_pass(struct weir_test_gate *gate);
void weir_test_gate_open(struct weir_test_gate *gate);
void weir_test_gate_close(struct weir_test_gate *gate);
unsigned weir_test_gate_waiting(struct weir_test_gate *gate);

/* Waits until the condition holds; the test's time limit is the only bound. Yields in between. */
#define WEIR_TEST_UNTIL(condition_) \
    do {                            \
        while (!(condition_))       \
            weir_test_yield();      \
    } while (0)
void weir_test_yield(void);

/* Log lines that the library writes are collected instead of printed. */
void weir_test_log_capture(void);
const char *weir_test_log_text(void); /* all lines since the capture began, one string */
void weir_test_log_release(void);

#endif
