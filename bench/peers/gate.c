/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include <weir.h>

#include "peers.h"

const char *const gate_names[GATES] = {"weir", "weir-fixed", "semaphore", "mutex+cond"};

struct gate_state {
    enum gate kind;
    weir_limiter *limiter;
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    unsigned free; /* guarded by mutex */
};

static void through_limiter(weir_limiter *limiter)
{
    weir_permit permit;
    if (weir_limiter_acquire(limiter, &permit) != 0 || weir_limiter_release(limiter, &permit, WEIR_SUCCESS) != 0)
        abort();
}

static void through_semaphore(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
    (void)sem_post(semaphore);
}

static void through_condition(struct gate_state *state)
{
    (void)pthread_mutex_lock(&state->mutex);
    while (state->free == 0)
        (void)pthread_cond_wait(&state->condition, &state->mutex);
    state->free--;
    (void)pthread_mutex_unlock(&state->mutex);
    (void)pthread_mutex_lock(&state->mutex);
    state->free++;
    (void)pthread_mutex_unlock(&state->mutex);
    (void)pthread_cond_signal(&state->condition);
}

static void pass(struct gate_state *state, uint64_t times)
{
    for (uint64_t i = 0; i < times; i++) {
        if (state->kind == GATE_SEMAPHORE)
            through_semaphore(&state->semaphore);
        else if (state->kind == GATE_CONDITION)
            through_condition(state);
        else
            through_limiter(state->limiter);
    }
}

struct passer {
    pthread_t thread;
    struct gate_state *state;
    uint64_t times;
};

static void *passer_main(void *arg)
{
    const struct passer *passer = arg;
    pass(passer->state, passer->times);
    return NULL;
}

static double run(struct gate_state *state, unsigned threads, uint64_t times)
{
    struct passer *passers = calloc(threads, sizeof *passers);
    uint64_t begin = now_ns();
    for (unsigned i = 0; i < threads; i++) {
        passers[i] = (struct passer){.state = state, .times = times / threads};
        (void)pthread_create(&passers[i].thread, NULL, passer_main, &passers[i]);
    }
    for (unsigned i = 0; i < threads; i++)
        (void)pthread_join(passers[i].thread, NULL);
    double took = (double)(now_ns() - begin);
    free(passers);
    return took;
}

static void open_gate(struct gate_state *state, enum gate kind, unsigned permits)
{
    *state = (struct gate_state){.kind = kind, .free = permits};
    (void)sem_init(&state->semaphore, 0, permits);
    (void)pthread_mutex_init(&state->mutex, NULL);
    (void)pthread_cond_init(&state->condition, NULL);
    weir_config config;
    (void)weir_config_init(&config);
    config.flags |= WEIR_NO_ENV;
    config.algorithm = kind == GATE_WEIR_FIXED ? WEIR_FIXED : WEIR_VEGAS2;
    config.initial_limit = config.min_limit = config.max_limit = permits;
    if (weir_limiter_create(&state->limiter, "gate", &config) != 0)
        abort();
}

double measure_gate(enum gate kind, unsigned threads, unsigned permits)
{
    struct gate_state state;
    open_gate(&state, kind, permits);
    uint64_t times = 2000;
    times = times > threads * 8 ? times : threads * 8;
    for (;;) {
        double took = run(&state, threads, times);
        if (took > (double)throughput_ns * 0.5 || times > 10000000)
            return took / (double)times;
        double factor = (double)throughput_ns / took;
        times = (uint64_t)((double)times * (factor < 8.0 ? factor : 8.0));
    }
}
