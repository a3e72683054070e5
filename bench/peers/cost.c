/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "peers.h"

/* ---- a pool whose only thread stands at a gate, so that everything else is queued ---- */

struct gated {
    void (*run)(void *arg); /* first: job_run calls it */
    sem_t entered;
    sem_t gate;
};

static void wait_at_gate(void *arg)
{
    struct gated *gated = arg;
    (void)sem_post(&gated->entered);
    while (sem_wait(&gated->gate) != 0)
        ;
}

static void count_down(void *arg);

struct counted {
    void (*run)(void *arg); /* first */
    atomic_uint_fast64_t left;
    sem_t finished;
};

static void count_down(void *arg)
{
    struct counted *counted = arg;
    if (atomic_fetch_sub(&counted->left, 1) == 1)
        (void)sem_post(&counted->finished);
}

static void close_gate(const struct peer *peer, void *pool, struct gated *gated)
{
    peer->submit(pool, gated);
    while (sem_wait(&gated->entered) != 0)
        ;
}

static void submit_many(const struct peer *peer, void *pool, struct counted *counted, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        peer->submit(pool, counted);
}

static void open_gate(const struct peer *peer, void *pool, struct gated *gated, struct counted *counted)
{
    (void)sem_post(&gated->gate);
    if (peer->flush != NULL)
        peer->flush(pool);
    while (sem_wait(&counted->finished) != 0)
        ;
}

static double submit_ns(const struct peer *peer, void *pool, struct counted *counted, unsigned count)
{
    uint64_t begin = now_ns();
    submit_many(peer, pool, counted, count);
    return (double)(now_ns() - begin) / count;
}

void measure_cost(const struct peer *peer, unsigned many, struct cost *result)
{
    enum { FEW = 10, PROBE = 1000, BLOCK = 100 };
    struct gated gated = {.run = wait_at_gate};
    struct counted counted = {.run = count_down};
    (void)sem_init(&gated.entered, 0, 0);
    (void)sem_init(&gated.gate, 0, 0);
    (void)sem_init(&counted.finished, 0, 0);
    void *pool = peer->create(1);

    double least = 1e18;
    for (int round = 0; round < PROBE / BLOCK; round++) { /* 10 to 110 queued */
        atomic_store(&counted.left, FEW + BLOCK);
        close_gate(peer, pool, &gated);
        submit_many(peer, pool, &counted, FEW);
        double ns = submit_ns(peer, pool, &counted, BLOCK);
        least = ns < least ? ns : least;
        open_gate(peer, pool, &gated, &counted);
    }
    result->few_ns = least;

    atomic_store(&counted.left, (uint64_t)many + PROBE);
    close_gate(peer, pool, &gated);
    double before = resident_bytes();
    submit_many(peer, pool, &counted, many);
    result->bytes = (resident_bytes() - before) / many;
    least = 1e18;
    for (int round = 0; round < PROBE / BLOCK; round++) {
        double ns = submit_ns(peer, pool, &counted, BLOCK);
        least = ns < least ? ns : least;
    }
    result->many_ns = least;
    open_gate(peer, pool, &gated, &counted);

    atomic_store(&counted.left, PROBE); /* the pool has run before: in its stride */
    close_gate(peer, pool, &gated);
    count_mallocs(true);
    submit_many(peer, pool, &counted, PROBE);
    count_mallocs(false);
    result->mallocs = (double)mallocs_counted() / PROBE;
    open_gate(peer, pool, &gated, &counted);
}

/* ---- birth and death ---- */

struct meeting {
    void (*run)(void *arg); /* first */
    pthread_barrier_t barrier;
};

static void meet(void *arg)
{
    struct meeting *meeting = arg;
    (void)pthread_barrier_wait(&meeting->barrier);
}

static void nap(void *arg)
{
    (void)arg;
    sleep_ns(1000000);
}

/* Makes sure that the pool has all its threads: they meet. */
static void fill_with_threads(const struct peer *peer, void *pool, unsigned threads)
{
    struct meeting meeting = {.run = meet};
    (void)pthread_barrier_init(&meeting.barrier, NULL, threads + 1);
    submit_many(peer, pool, (struct counted *)&meeting, threads);
    (void)pthread_barrier_wait(&meeting.barrier);
    if (peer->flush != NULL)
        peer->flush(pool);
    sleep_ns(30000000); /* all are idle; also, the barrier is left */
}

static double destroy_us(const struct peer *peer, void *pool)
{
    uint64_t begin = now_ns();
    peer->destroy(pool);
    return (double)(now_ns() - begin) / 1e3;
}

void measure_life(const struct peer *peer, unsigned threads, uint64_t idle_ns, struct life *result)
{
    static void (*const napper)(void *) = nap;
    uint64_t begin = now_ns();
    void *pool = peer->create(threads);
    result->create_us = (double)(now_ns() - begin) / 1e3;
    result->create_threads = thread_count() - 1;

    fill_with_threads(peer, pool, threads);
    if (idle_ns != 0) {
        sleep_ns(100000000);
        struct usage before = usage_now();
        sleep_ns(idle_ns);
        struct usage after = usage_now();
        result->idle_switches = after.switches - before.switches - 1; /* this thread's own sleep */
        result->idle_cpu_us = (after.cpu_ns - before.cpu_ns) / 1e3;
    }
    if (peer->destroy == NULL)
        return;
    result->destroy_idle_us = destroy_us(peer, pool);
    pool = peer->create(threads);
    fill_with_threads(peer, pool, threads);
    for (unsigned i = 0; i < threads; i++)
        peer->submit(pool, (void *)(uintptr_t)&napper);
    result->destroy_busy_us = destroy_us(peer, pool);
}
