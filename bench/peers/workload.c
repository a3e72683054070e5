/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "peers.h"

uint64_t throughput_ns = 100000000;

/* The load being measured; this process measures one. */
static struct load load;
static atomic_uint_fast64_t left;
static sem_t finished;

void job_run(void *arg)
{
    if (arg != NULL) { /* latency.c and cost.c bring their own */
        void (*const *own)(void *) = arg;
        (*own)(arg);
        return;
    }
    if (load.work == WORK_SPIN)
        spin_ns(load.ns);
    else if (load.work == WORK_SLEEP)
        sleep_ns(load.ns);
    /* release: what the job did comes before what follows the last one */
    if (atomic_fetch_sub_explicit(&left, 1, memory_order_acq_rel) == 1)
        (void)sem_post(&finished);
}

struct producer {
    pthread_t thread;
    const struct peer *peer;
    void *pool;
    uint64_t count;
};

static void *produce(void *arg)
{
    const struct producer *producer = arg;
    for (uint64_t i = 0; i < producer->count; i++)
        producer->peer->submit(producer->pool, NULL);
    if (producer->peer->flush != NULL)
        producer->peer->flush(producer->pool);
    return NULL;
}

/* Runs that many jobs to the end. */
static void run(const struct peer *peer, void *pool, uint64_t count)
{
    atomic_store(&left, count);
    if (peer->run != NULL) {
        peer->run(pool, load.threads, count);
    } else {
        struct producer *producers = calloc(load.producers, sizeof *producers);
        for (unsigned i = 0; i < load.producers; i++) {
            producers[i] = (struct producer){.peer = peer, .pool = pool, .count = count / load.producers};
            producers[i].count += i < count % load.producers ? 1 : 0;
            if (i != 0)
                (void)pthread_create(&producers[i].thread, NULL, produce, &producers[i]);
        }
        (void)produce(&producers[0]);
        for (unsigned i = 1; i < load.producers; i++)
            (void)pthread_join(producers[i].thread, NULL);
        free(producers);
    }
    while (sem_wait(&finished) != 0)
        ;
}

static void run_measured(const struct peer *peer, void *pool, uint64_t count, struct throughput *result)
{
    struct usage before = usage_now();
    run(peer, pool, count);
    struct usage after = usage_now();
    *result = (struct throughput){.per_second = (double)count * 1e9 / (double)(after.at_ns - before.at_ns),
                                  .cpu_ns = (after.cpu_ns - before.cpu_ns) / (double)count,
                                  .switches = (after.switches - before.switches) / (double)count,
                                  .count = (double)count};
}

void measure_throughput(const struct peer *peer, const struct load *wanted, struct throughput *result)
{
    enum { LEAST = 1000 };
    load = *wanted;
    (void)sem_init(&finished, 0, 0);
    void *pool = peer->create != NULL ? peer->create(load.threads) : NULL;
    uint64_t count = load.threads * 4 > LEAST ? load.threads * 4 : LEAST;
    run(peer, pool, count); /* every thread is there */
    if (load.count != 0) {
        run_measured(peer, pool, load.count, result);
        return;
    }
    for (;;) { /* ever more, until the run is long enough to be believed */
        run_measured(peer, pool, count, result);
        double took_ns = (double)count * 1e9 / result->per_second;
        if (took_ns >= (double)throughput_ns * 0.5 || count >= DEEPEST - 1)
            break;
        double factor = (double)throughput_ns / took_ns;
        count = (uint64_t)((double)count * (factor < 8.0 ? factor : 8.0));
        count = count < DEEPEST - 1 ? count : DEEPEST - 1;
    }
}
