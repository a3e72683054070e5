/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "peers.h"

/* The pool that every textbook has: a list, a mutex, a condition variable, a signal for each job. */

struct item {
    struct item *next;
    void *arg;
};

struct textbook {
    pthread_mutex_t mutex;
    pthread_cond_t has_work;
    struct item *first; /* guarded by mutex */
    struct item **last; /* guarded by mutex */
    bool ends;          /* guarded by mutex */
    unsigned threads;
    pthread_t *ids;
};

static void *serve(void *arg)
{
    struct textbook *pool = arg;
    (void)pthread_mutex_lock(&pool->mutex);
    for (;;) {
        while (pool->first == NULL && !pool->ends)
            (void)pthread_cond_wait(&pool->has_work, &pool->mutex);
        struct item *item = pool->first;
        if (item == NULL)
            break;
        pool->first = item->next;
        if (pool->first == NULL)
            pool->last = &pool->first;
        (void)pthread_mutex_unlock(&pool->mutex);
        job_run(item->arg);
        free(item);
        (void)pthread_mutex_lock(&pool->mutex);
    }
    (void)pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static void *create(unsigned threads)
{
    struct textbook *pool = calloc(1, sizeof *pool);
    (void)pthread_mutex_init(&pool->mutex, NULL);
    (void)pthread_cond_init(&pool->has_work, NULL);
    pool->last = &pool->first;
    pool->threads = threads;
    pool->ids = calloc(threads, sizeof *pool->ids);
    for (unsigned i = 0; i < threads; i++)
        (void)pthread_create(&pool->ids[i], NULL, serve, pool);
    return pool;
}

static void submit(void *owner, void *arg)
{
    struct textbook *pool = owner;
    struct item *item = malloc(sizeof *item);
    item->next = NULL;
    item->arg = arg;
    (void)pthread_mutex_lock(&pool->mutex);
    *pool->last = item;
    pool->last = &item->next;
    (void)pthread_mutex_unlock(&pool->mutex);
    (void)pthread_cond_signal(&pool->has_work);
}

static void destroy(void *owner)
{
    struct textbook *pool = owner;
    (void)pthread_mutex_lock(&pool->mutex);
    pool->ends = true;
    (void)pthread_mutex_unlock(&pool->mutex);
    (void)pthread_cond_broadcast(&pool->has_work);
    for (unsigned i = 0; i < pool->threads; i++)
        (void)pthread_join(pool->ids[i], NULL);
    free(pool->ids);
    free(pool);
}

const struct peer peer_textbook = {
    .name = "textbook", .ranked = true, .create = create, .submit = submit, .destroy = destroy};
