/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "base/probe.h"
#include "pool/pool.h"

/* note:batch -- very short jobs that a worker takes several of at a time. Each turn of the pool's lock moves a dozen
 * cache lines from one processor to the other, which takes as long as a microsecond's work; so where jobs are shorter
 * than that, a worker takes as many as it can run in the time in which a thread is woken, runs them one after the
 * other, and books them together.
 *
 * To the pool the first of a batch runs until the batch is booked, and the others wait where they were: in a line, or
 * ready with their permits. One runs at a time, so a batch is one job in flight. Nobody has to wait for it to end:
 * whoever takes the pool's lock, but for a submit and a worker between two jobs, recalls what has not begun, as does a
 * worker that would rest. A batch is taken only while the inbox may be open, so somebody always will: another worker
 * that is awake or on its way, the watch, or whoever lets a further job run. A worker that ends a batch looks after the
 * others', for it may never run out of other jobs.
 *
 * The owner claims its jobs without the lock, by the one word that who recalls takes them back with. */

#define BATCH_NS   UINT64_C(10000) /* twice what it takes to wake a thread */
#define BATCHED_NS UINT64_C(2000)  /* what a job may take; above it the lock's share is small */
#define LATE_NS    UINT64_C(100000)

enum { CLAIMED = 0xffff, COUNT_SHIFT = 16 };

static uint32_t claimed(uint32_t claims)
{
    return claims & CLAIMED;
}

static uint32_t count(uint32_t claims)
{
    return claims >> COUNT_SHIFT;
}

/* ---- taking ---- */

static bool may_follow(const struct weir__unit *unit)
{
    return unit != NULL && (unit->kind == WEIR__PLAIN || unit->kind == WEIR__COPY);
}

/* How many jobs there should be in a batch: of those that wait no more than half of the worker's part, or the others
 * would run out of jobs and go to sleep. */
static uint32_t wanted(const weir_pool *pool)
{
    uint32_t waiting = pool->ready.length + pool->limiter->partitions.all[0].line.length;
    uint32_t part = waiting / (2 * weir__pace_helping(pool));
    uint64_t most = BATCH_NS / (pool->pace.job_ns + 1);
    if (most > WEIR__BATCH_MOST)
        most = WEIR__BATCH_MOST;
    return part < most ? part : (uint32_t)most;
}

/* Takes jobs from the head of a line, until there are most. */
static void add_from(struct weir__batch *batch, struct weir__line *line, uint32_t most, uint32_t *size)
{
    struct weir__unit *unit = line->first;
    uint32_t before = *size;
    for (; *size < most && may_follow(unit); unit = unit->next)
        batch->units[(*size)++] = unit;
    weir__line_cut(line, unit, *size - before);
}

static void enlist(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    struct weir__batch *batch = &worker->batch;
    batch->previous = NULL;
    batch->next = pool->batches;
    if (pool->batches != NULL)
        pool->batches->batch.previous = worker;
    pool->batches = worker;
}

static void unlist(struct weir__worker *worker)
{
    const struct weir__batch *batch = &worker->batch;
    if (batch->previous != NULL)
        batch->previous->batch.next = batch->next;
    else
        worker->pool->batches = batch->next;
    if (batch->next != NULL)
        batch->next->batch.previous = batch->previous;
}

void weir__batch_fill(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    struct weir__batch *batch = &worker->batch;
    if (!pool->inbox.is_open || pool->pace.job_ns >= BATCHED_NS || worker->work.job != NULL)
        return;
    uint32_t most = wanted(pool);
    uint32_t size = 1; /* the one that the worker has taken */
    add_from(batch, &pool->ready, most, &size);
    batch->reserved = size - 1;
    if (pool->ready.length == 0)
        add_from(batch, &pool->limiter->partitions.all[0].line, most, &size);
    if (size == 1)
        return;
    batch->booked = 0;
    batch->current = 0;
    batch->is_open = true;
    /* relaxed: others look at it under the lock */
    atomic_store_explicit(&batch->claims, size << COUNT_SHIFT | 1, memory_order_relaxed);
    enlist(worker);
}

/* ---- running ---- */

bool weir__batch_next(struct weir__worker *worker, weir_outcome outcome, uint64_t end_ns)
{
    struct weir__batch *batch = &worker->batch;
    if (!batch->is_open || outcome == WEIR_DROPPED) /* note:step-aside */
        return false;
    batch->ended[batch->current] = (struct weir__ended){.ns = end_ns, .outcome = (uint32_t)outcome};
    WEIR__DELAY();
    /* release pairs with the acquire in recall: who sees the claim sees how the job before it ended.
     * acquire pairs with nothing: units are read and written by this thread. */
    uint32_t claims = atomic_fetch_add_explicit(&batch->claims, 1, memory_order_release);
    if (claimed(claims) >= count(claims))
        return false;
    weir__probe_end(worker->pool->limiter->name, (uintptr_t)worker->work.fn, end_ns - worker->sample.start_ns,
                    (uint32_t)outcome);
    worker->sample.start_ns = end_ns;
    const struct weir__unit *unit = batch->units[++batch->current];
    if (unit->kind == WEIR__COPY) {
        worker->work.fn = ((const struct weir__copy *)unit)->fn;
        worker->work.arg = ((struct weir__copy *)(uintptr_t)unit)->bytes;
    } else {
        worker->work.fn = ((const struct weir__plain *)unit)->fn;
        worker->work.arg = ((const struct weir__plain *)unit)->arg;
    }
    return true;
}

/* ---- booking; lock held ---- */

/* A job of the batch has ended and the one behind it begun in its place. */
static void book(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    weir_limiter *limiter = pool->limiter;
    struct weir__batch *batch = &worker->batch;
    uint32_t i = batch->booked++;
    struct weir__ended ended = batch->ended[i];
    weir_sample sample = {.start_ns = worker->booked_ns,
                          .rtt_ns = ended.ns - worker->booked_ns,
                          .in_flight = worker->sample.in_flight,
                          .outcome = ended.outcome};
    weir__limiter_count_job(limiter, 0, worker->stamp, sample.start_ns, ended.ns);
    weir__pace_learn(&pool->pace, sample.rtt_ns);
    pool->counters.ended[ended.outcome]++;

    worker->booked_ns = ended.ns;
    worker->stamp = batch->units[i + 1]->stamp;
    pool->counters.started++;
    limiter->counters.granted++;
    if (i < batch->reserved) {
        limiter->backlog.reserved--;
        weir__limiter_unuse(limiter, 0, 1);
    } else {
        limiter->partitions.queued--;
        limiter->partitions.all[0].queued--;
        weir__deadline_watch_queue(pool);
    }
    if (i > 0)
        weir__node_return(pool, batch->units[i]);
    weir__limiter_count_end(limiter, &sample, 0);
}

/* ---- recalling; lock held ---- */

/* Where they were: the batch's jobs are older than all that wait. */
static void put_back(weir_pool *pool, const struct weir__batch *batch, uint32_t first, uint32_t end)
{
    while (end-- > first) {
        bool is_ready = end <= batch->reserved;
        weir__line_prepend(is_ready ? &pool->ready : &pool->limiter->partitions.all[0].line, batch->units[end]);
    }
}

/* Books the jobs of a batch that have ended, all but the last that has begun: it may run long, and nobody waits for
 * that. True: there may be more permits or places free than before. */
static bool book_ended(struct weir__worker *worker)
{
    struct weir__batch *batch = &worker->batch;
    /* acquire, here and below, pairs with the release in weir__batch_next */
    uint32_t claims = atomic_load_explicit(&batch->claims, memory_order_acquire);
    uint32_t begun = claimed(claims) < count(claims) ? claimed(claims) : count(claims);
    bool any = batch->booked + 1 < begun;
    while (batch->booked + 1 < begun)
        book(worker);
    return any;
}

/* True: there may be more ready, or more free than before. */
static bool recall(struct weir__worker *worker)
{
    struct weir__batch *batch = &worker->batch;
    WEIR__DELAY();
    uint32_t claims = atomic_load_explicit(&batch->claims, memory_order_acquire);
    while (claimed(claims) < count(claims) &&
           !atomic_compare_exchange_weak_explicit(&batch->claims, &claims,
                                                  claimed(claims) << COUNT_SHIFT | claimed(claims),
                                                  memory_order_acquire, memory_order_acquire))
        ;
    bool any = claimed(claims) < count(claims);
    put_back(worker->pool, batch, claimed(claims), count(claims));
    return book_ended(worker) || any;
}

void weir__batch_close(struct weir__worker *worker)
{
    struct weir__batch *batch = &worker->batch;
    if (!batch->is_open)
        return;
    (void)recall(worker); /* what a dropped job has left; the last that has begun is not booked by that */
    worker->sample.start_ns = worker->booked_ns;
    if (batch->current > 0)
        weir__node_return(worker->pool, batch->units[batch->current]);
    batch->is_open = false;
    unlist(worker);
}

bool weir__batches_recall(weir_pool *pool)
{
    bool any = false;
    for (struct weir__worker *worker = pool->batches; worker != NULL; worker = worker->batch.next)
        any = recall(worker) || any;
    return any;
}

bool weir__batches_book(weir_pool *pool)
{
    bool any = false;
    for (struct weir__worker *worker = pool->batches; worker != NULL; worker = worker->batch.next)
        any = book_ended(worker) || any;
    return any;
}

void weir__batches_look(weir_pool *pool, uint64_t now_ns)
{
    for (struct weir__worker *worker = pool->batches; worker != NULL; worker = worker->batch.next) {
        /* relaxed: it leads to no other memory */
        uint64_t since_ns = atomic_load_explicit(&worker->running_since_ns, memory_order_relaxed);
        if (now_ns > since_ns && now_ns - since_ns > LATE_NS)
            (void)recall(worker);
    }
}

void weir__batch_discard(const struct weir__worker *worker)
{
    /* relaxed: the child has no other thread */
    uint32_t claims = atomic_load_explicit(&worker->batch.claims, memory_order_relaxed);
    for (uint32_t i = claimed(claims); worker->batch.is_open && i < count(claims); i++)
        weir__unit_discard(worker->batch.units[i]);
}
