/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "peers.h"

/* No pool: each thread does its part of the jobs, one after the other. */

struct part {
    pthread_t thread;
    sem_t begins;
    uint64_t count;
};

static void *do_parts(void *arg)
{
    struct part *part = arg;
    for (;;) {
        while (sem_wait(&part->begins) != 0)
            ;
        for (uint64_t i = 0; i < part->count; i++)
            job_run(NULL);
    }
    return NULL;
}

static void *create(unsigned threads)
{
    struct part *parts = calloc(threads, sizeof *parts);
    for (unsigned i = 0; i < threads; i++) {
        (void)sem_init(&parts[i].begins, 0, 0);
        (void)pthread_create(&parts[i].thread, NULL, do_parts, &parts[i]);
    }
    return parts;
}

static void run(void *pool, unsigned threads, uint64_t count)
{
    struct part *parts = pool;
    for (unsigned i = 0; i < threads; i++) {
        parts[i].count = count / threads + (i < count % threads ? 1 : 0);
        (void)sem_post(&parts[i].begins);
    }
}

const struct peer peer_raw = {.name = "raw", .create = create, .run = run};
