/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "peers.h"

const double percentiles[PERCENTILES] = {50, 10, 90, 99, 99.9};

struct ping {
    void (*run)(void *arg); /* first: job_run calls it */
    sem_t answered;
};

static void answer(void *arg)
{
    struct ping *ping = arg;
    (void)sem_post(&ping->answered);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double once(const struct peer *peer, void *pool, struct ping *ping)
{
    uint64_t begin = now_ns();
    peer->submit(pool, ping);
    while (sem_wait(&ping->answered) != 0)
        ;
    double took = (double)(now_ns() - begin);
    if (peer->flush != NULL)
        peer->flush(pool);
    return took;
}

void measure_ping(const struct peer *peer, unsigned threads, uint64_t pause_ns, unsigned rounds, double *result)
{
    void *pool = peer->create(threads);
    struct ping ping = {.run = answer};
    (void)sem_init(&ping.answered, 0, 0);
    double *took = calloc(rounds, sizeof *took);
    for (unsigned i = 0; i < rounds / 10 + threads; i++)
        (void)once(peer, pool, &ping);
    for (unsigned i = 0; i < rounds; i++) {
        if (pause_ns != 0)
            sleep_ns(pause_ns);
        took[i] = once(peer, pool, &ping);
    }
    qsort(took, rounds, sizeof *took, compare);
    for (unsigned i = 0; i < PERCENTILES; i++)
        result[i] = took[(unsigned)((rounds - 1) * percentiles[i] / 100.0)];
    free(took);
}

/* ---- the same without a pool ---- */

struct echo {
    sem_t asked;
    struct ping *ping;
};

static void *echo_main(void *arg)
{
    struct echo *echo = arg;
    for (;;) {
        while (sem_wait(&echo->asked) != 0)
            ;
        echo->ping->run(echo->ping);
    }
    return NULL;
}

static void *create_echo(unsigned threads)
{
    pthread_t thread;
    struct echo *echo = calloc(threads, sizeof *echo);
    (void)sem_init(&echo->asked, 0, 0);
    (void)pthread_create(&thread, NULL, echo_main, echo);
    return echo;
}

static void ask(void *pool, void *arg)
{
    struct echo *echo = pool;
    echo->ping = arg;
    (void)sem_post(&echo->asked);
}

void measure_semaphores(uint64_t pause_ns, unsigned rounds, double *result)
{
    static const struct peer semaphores = {.create = create_echo, .submit = ask};
    measure_ping(&semaphores, 1, pause_ns, rounds, result);
}
