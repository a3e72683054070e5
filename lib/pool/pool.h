/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_POOL_PRIVATE_H
#define WEIR_POOL_PRIVATE_H

/* Workers and the jobs they run.
 *
 * A job's way: it is pushed to the queue; as soon as it is among the first for which a permit is free, a permit is
 * reserved for it (limiter->backlog.reserved; reserved jobs are always the first of the queue); a worker takes the
 * first job and turns its reservation into a permit in flight. A blocked submitter's job lies on the submitter's stack
 * until there is room.
 *
 * note:chained-wake -- at most one worker is on its way at a time (`waking`). Whoever reserves a permit while none is
 * sends one; a worker that arrives, and finds that more is reserved than it takes, sends the next before it runs its
 * job. A worker that ends a job looks for the next itself (`looking`). Hence: reserved > looking implies that a worker
 * is waking, or that its start has failed and a running worker will look. Wake-ups are what pools spend their time on:
 * this way a flood of short jobs is served by the workers that are awake. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/pool.h>

#include "limiter/limiter.h"

/* ---- queue.c ---- */

/* What a worker is to do. */
struct weir__work {
    weir_fn *fn; /* NULL: nothing */
    void *arg;
    uint32_t copy_size; /* with is_copy: arg names this many bytes, at most WEIR__COPY_BYTES, that are to be copied */
    bool is_copy;
};

enum {
    WEIR__CHUNK_SLOTS = 255, /* a chunk is 4 KiB on 64-bit machines */
    WEIR__COPY_BYTES = 48
};

/* 16 bytes of a queue. A job takes one; one with a copied argument takes a head and its bytes, side by side. */
union weir__slot {
    struct {
        weir_fn *fn;
        void *arg;
    } plain;
    struct {
        weir_fn *mark;
        weir_fn *fn;
    } head;
    unsigned char bytes[16];
};

enum { WEIR__COPY_SLOTS = 1 + WEIR__COPY_BYTES / sizeof(union weir__slot) };

struct weir__chunk {
    struct weir__chunk *next;
    union weir__slot slots[WEIR__CHUNK_SLOTS];
};

/* First in, first out, in chunks: it grows without moving and a push allocates nothing, for whoever may push has made
 * sure of room before. */
struct weir__queue {
    struct weir__chunk *first; /* guarded by the limiter's lock */
    struct weir__chunk *last;  /* guarded by the limiter's lock */
    struct weir__chunk *spare; /* guarded by the limiter's lock: empty chunks */
    uint32_t head;             /* guarded by the limiter's lock: index in first of the next job */
    uint32_t tail;             /* guarded by the limiter's lock: index in last of the next free slot */
    uint32_t spares;           /* guarded by the limiter's lock */
    uint32_t promised;         /* guarded by the limiter's lock: slots that blocked submitters will need */
    uint64_t count;            /* guarded by the limiter's lock: jobs */
};

struct weir__chunk *weir__chunk_create(void);
void weir__chunks_free(struct weir__chunk *chunk);

/* Slots that the work may need in the worst case, the rest of a chunk that it does not fit into included. */
static inline uint32_t weir__queue_need(const struct weir__work *work)
{
    return work->is_copy ? 2 * WEIR__COPY_SLOTS - 1 : 1;
}

/* All below: lock held. Whether there are `slots` free slots besides those promised. */
static inline bool weir__queue_has(const struct weir__queue *queue, uint32_t slots)
{
    uint64_t room = (uint64_t)queue->spares * WEIR__CHUNK_SLOTS + (WEIR__CHUNK_SLOTS - queue->tail);
    return room >= (uint64_t)queue->promised + slots;
}
void weir__queue_grow(struct weir__queue *queue, struct weir__chunk *chunk);
void weir__queue_push(struct weir__queue *queue, const struct weir__work *work);

/* The first job; copied bytes go to buffer, WEIR__COPY_BYTES long, and arg then names it. */
struct weir__work weir__queue_pop(struct weir__queue *queue, void *buffer);

/* A chunk that the queue can do without, to be freed without the lock, or NULL. */
struct weir__chunk *weir__queue_surplus(struct weir__queue *queue);

/* ---- a pool ---- */

enum weir__pool_state { WEIR__OPEN, WEIR__FINISHING, WEIR__CANCELLING };

/* What a thread waits for in lifecycle.c. */
struct weir__watcher {
    struct weir__caller caller;
    bool for_threads; /* immutable after joining: until the last thread has left, else until the last job has ended */
};

struct weir__job_counters {
    uint64_t submitted;
    uint64_t started;
    uint64_t ended[3]; /* by weir_outcome */
    uint64_t cancelled;
    uint64_t shed;
    uint64_t timed_out;
    uint64_t start_failures;
};

/* A submitter at the ceiling, with its job. */
struct weir__submitter {
    struct weir__caller caller;
    struct weir__work work; /* immutable after joining */
    uint32_t promised;      /* immutable after joining: slots of the queue kept free for it; 0: memory was short */
};

struct weir_pool {
    weir_limiter *limiter;              /* immutable after create; its lock guards what follows */
    struct weir__queue queue;           /* guarded by lock */
    struct weir__line submitters;       /* guarded by lock: blocked at the ceiling */
    struct weir__line watchers;         /* guarded by lock: in drain, shutdown, destroy */
    enum weir__pool_state state;        /* guarded by lock */
    uint32_t executing;                 /* guarded by lock: jobs being run */
    struct weir__job_counters counters; /* guarded by lock */

    uint32_t workers;          /* guarded by lock: threads that serve or are being started */
    uint32_t threads;          /* guarded by lock: workers, and those that have left but still run */
    uint32_t idle_count;       /* guarded by lock */
    uint32_t looking;          /* guarded by lock: workers that have ended a job and are about to take the next */
    bool waking;               /* guarded by lock: note:chained-wake */
    bool start_failed;         /* guarded by lock: the last start of a worker did */
    bool corpse_is_set;        /* guarded by lock */
    pthread_t corpse;          /* guarded by lock: the thread that left last, not joined yet */
    struct weir__worker *idle; /* guarded by lock: a stack, the warmest on top */
    struct weir__worker *all;  /* guarded by lock: every worker, linked by next */
    unsigned next_index;       /* guarded by lock: for the next worker's name */

    pthread_mutex_t start_lock; /* held while the very first worker is started, see limiter.h for its order */
};

struct weir__worker {
    weir_pool *pool;                                            /* immutable after start */
    unsigned index;                                             /* immutable after start */
    struct weir__parker parker;                                 /* atomic */
    struct weir__worker *next_idle;                             /* guarded by lock */
    struct weir__worker *previous_idle;                         /* guarded by lock */
    struct weir__worker *next;                                  /* guarded by lock: of all */
    struct weir__worker *previous;                              /* guarded by lock */
    bool is_idle;                                               /* guarded by lock */
    struct weir__work work;                                     /* owner thread: the job being run; fn NULL: none */
    _Alignas(max_align_t) unsigned char copy[WEIR__COPY_BYTES]; /* owner thread: its argument, if that was copied */
    weir_sample sample;                                         /* owner thread: of that job */
};

/* The worker that is the calling thread, or NULL. */
extern _Thread_local struct weir__worker *weir__current_worker;

/* 0, EINVAL (NULL), or ECHILD in a fork child. */
int weir__pool_usable(const weir_pool *pool);

/* Whether the calling thread is a worker of this pool. */
static inline bool weir__pool_is_mine(const weir_pool *pool)
{
    return weir__current_worker != NULL && weir__current_worker->pool == pool;
}

/* Jobs that wait for a permit; lock held. */
static inline uint32_t weir__pool_queued(const weir_pool *pool)
{
    uint64_t reserved = pool->limiter->backlog.reserved;
    return pool->queue.count > reserved ? (uint32_t)(pool->queue.count - reserved) : 0;
}

/* Lock held: nothing is queued and nothing runs. */
static inline bool weir__pool_is_empty(const weir_pool *pool)
{
    return pool->queue.count == 0 && pool->executing == 0;
}

/* ---- submit.c ---- */

/* Moves blocked submitters' jobs into the queue as far as there is room, and sends a worker if permits are reserved.
 * The backlog's settle: lock held. */
void weir__pool_settle(void *pool, struct weir__wakes *wakes);

/* Queues a job and returns 0, or the submit's error; wait: block at the ceiling until the deadline. */
int weir__pool_put(weir_pool *pool, const struct weir__work *work, bool wait, uint64_t deadline_ns);

/* Sends the blocked submitters away; lock held. */
void weir__pool_refuse_submitters(weir_pool *pool, int verdict, struct weir__wakes *wakes);

/* ---- worker.c ---- */

/* Picks the worker to send, if one should be; lock held. */
void weir__pool_send_worker(weir_pool *pool, struct weir__wakes *wakes);

/* Takes the warmest idle worker off the stack; it will find its way when it is woken. NULL: none. Lock held. */
struct weir__worker *weir__pool_pop_idle(weir_pool *pool);

/* The backlog's start_worker: without the lock, after weir__pool_send_worker has asked for it. */
void weir__pool_start_worker(void *pool);

/* Makes sure that there is a worker, with the lock held on entry and exit and dropped meanwhile: 0, or what
 * pthread_create said. */
int weir__pool_first_worker(weir_pool *pool);

/* ---- job.c ---- */

/* A job has ended, or will never run (verdict ECANCELED): tells who waits for it. Lock held, after it was counted. */
void weir__work_done(const struct weir__work *work, weir_outcome outcome, int verdict, struct weir__wakes *wakes);

/* Frees what a job that will never run owned; without the lock. */
void weir__work_discard(const struct weir__work *work);

/* ---- lifecycle.c ---- */

/* Waits until the last job has ended, or the last thread has left; lock held on entry and exit, dropped meanwhile. 0 or
 * ETIMEDOUT. */
int weir__pool_watch(weir_pool *pool, bool for_threads, uint64_t deadline_ns);

/* Wakes the watchers whose condition has come true; lock held. */
void weir__pool_notice(weir_pool *pool, struct weir__wakes *wakes);

#endif
