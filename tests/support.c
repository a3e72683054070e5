/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir.h>

int weir_test_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    const char *tap = getenv("WEIR_TAP");
    if (tap != NULL && tap[0] != '\0')
        srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

uint64_t weir_test_seed(void)
{
    const char *given = getenv("WEIR_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : weir_now_ns();
    (void)fprintf(stderr, "# seed: WEIR_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

uint64_t weir_test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double weir_test_uniform(uint64_t *state)
{
    return (double)(weir_test_random(state) >> 11) * 0x1p-53;
}

static unsigned number_of(const char *variable)
{
    const char *text = getenv(variable);
    unsigned long number = text != NULL ? strtoul(text, NULL, 10) : 0;
    return number <= 1000000000 ? (unsigned)number : 0;
}

unsigned weir_test_slow(void)
{
    unsigned divisor = number_of("WEIR_TEST_SLOW");
    return divisor > 1 ? divisor : 1;
}

uint64_t weir_test_patience_ns(uint64_t ns)
{
    enum { MOST = 10 };
    unsigned slow = weir_test_slow();
    return ns * (slow < MOST ? slow : MOST);
}

unsigned weir_test_rounds(unsigned rounds, unsigned least)
{
    unsigned asked = number_of("WEIR_TEST_ROUNDS");
    if (asked > 0)
        return asked;
    rounds /= weir_test_slow();
    return rounds > least ? rounds : least;
}

void weir_test_gate_init(struct weir_test_gate *gate)
{
    (void)pthread_mutex_init(&gate->mutex, NULL);
    (void)pthread_cond_init(&gate->condition, NULL);
    gate->open = false;
    gate->waiting = 0;
}

void weir_test_gate_destroy(struct weir_test_gate *gate)
{
    (void)pthread_mutex_destroy(&gate->mutex);
    (void)pthread_cond_destroy(&gate->condition);
}

void weir_test_gate_pass(struct weir_test_gate *gate)
{
    (void)pthread_mutex_lock(&gate->mutex);
    gate->waiting++;
    while (!gate->open)
        (void)pthread_cond_wait(&gate->condition, &gate->mutex);
    gate->waiting--;
    (void)pthread_mutex_unlock(&gate->mutex);
}

static void set_open(struct weir_test_gate *gate, bool open)
{
    (void)pthread_mutex_lock(&gate->mutex);
    gate->open = open;
    (void)pthread_cond_broadcast(&gate->condition);
    (void)pthread_mutex_unlock(&gate->mutex);
}

void weir_test_gate_open(struct weir_test_gate *gate)
{
    set_open(gate, true);
}

void weir_test_gate_close(struct weir_test_gate *gate)
{
    set_open(gate, false);
}

unsigned weir_test_gate_waiting(struct weir_test_gate *gate)
{
    (void)pthread_mutex_lock(&gate->mutex);
    unsigned waiting = gate->waiting;
    (void)pthread_mutex_unlock(&gate->mutex);
    return waiting;
}

void weir_test_yield(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static char log_text[65536]; /* guarded by log_mutex */

static void collect(weir_log_level level, const char *message, void *arg)
{
    (void)level;
    (void)arg;
    (void)pthread_mutex_lock(&log_mutex);
    size_t used = strlen(log_text);
    (void)snprintf(log_text + used, sizeof log_text - used, "%s\n", message);
    (void)pthread_mutex_unlock(&log_mutex);
}

void weir_test_log_capture(void)
{
    log_text[0] = '\0';
    weir_set_log(collect, NULL);
}

const char *weir_test_log_text(void)
{
    return log_text;
}

void weir_test_log_release(void)
{
    weir_set_log(NULL, NULL);
}
