/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "pool/pool.h"
#include "stats/live_file.h"

/* note:inbox -- where a submit leaves a job that has but to stand in line. Submitters and workers then meet at one lock
 * and one cache line per batch of jobs, not at a dozen of them per job.
 *
 * The inbox is open only while a submit under the pool's lock would do nothing else: there is room in the queue, one
 * line, nobody blocked in it, no deadline to mind, and no worker to wake, for all permits are out, a worker is on its
 * way, or enough of them are awake and watched. Whoever takes the pool's lock closes it first and puts its jobs in line
 * (weir__inbox_close), so that under the lock everything is where it belongs; whoever gives the lock back opens it if
 * that holds (weir__inbox_open). Only a worker between two jobs leaves it open, and empties it when it has run out of
 * other jobs.
 *
 * With a live file it is open until that is to be stored again: the first submit after that goes the long way and
 * stores it. So the file is as fresh as if every submit took the lock. */

void weir__inbox_init(struct weir__inbox *inbox)
{
    weir__mutex_init(&inbox->lock);
    atomic_init(&inbox->pending, 0);
    inbox->until_ns = UINT64_MAX;
}

bool weir__inbox_put(weir_pool *pool, enum weir__job_kind kind, weir_fn *fn, const void *arg, uint32_t copy_size,
                     uint64_t stamp)
{
    struct weir__inbox *inbox = &pool->inbox;
    /* Not by the stamp, which few have while jobs are short: when those hang, one may come in a second. */
    uint64_t now_ns = pool->limiter->stats_dir_text != NULL ? weir__coarse_now_ns() : 0;
    weir__mutex_lock(&inbox->lock);
    struct weir__unit *node = NULL;
    if (inbox->room != 0 && now_ns < inbox->until_ns)
        node = weir__node_take(&inbox->nodes, kind);
    if (node != NULL) {
        weir__node_fill(node, fn, arg, copy_size);
        if (stamp == 0 && inbox->stamp_turn++ % WEIR__STAMP_EVERY == 0)
            stamp = weir__stamp_make(weir_now_ns(), WEIR__STAMP_EVERY);
        node->stamp = stamp;
        weir__line_append(&inbox->jobs, node);
        inbox->room--;
        /* relaxed: who must see a job has synchronised with its submitter, or takes the inbox's lock */
        atomic_store_explicit(&inbox->pending, inbox->jobs.length, memory_order_relaxed);
    }
    WEIR__MUST(pthread_mutex_unlock(&inbox->lock));
    return node != NULL;
}

/* ---- with the pool's lock held ---- */

static bool must_stay_closed(const weir_pool *pool)
{
    const weir_limiter *limiter = pool->limiter;
    const struct weir__partitions *partitions = &limiter->partitions;
    return pool->state != WEIR__OPEN || pool->workers == 0 || pool->start_failed || partitions->count != 1 ||
           partitions->submitters != 0 || partitions->callers != 0 || pool->deadlines.count != 0 ||
           limiter->backlog.held || partitions->queued >= limiter->depth;
}

/* Whether jobs that come now will be looked at without a wake-up. */
static bool is_attended(const weir_pool *pool)
{
    return !weir__limiter_fits(pool->limiter, 1) || pool->waking || weir__pace_suffices(pool);
}

bool weir__inbox_may_be_open(const weir_pool *pool)
{
    return is_attended(pool) && !must_stay_closed(pool);
}

static uint32_t room(const weir_pool *pool)
{
    return pool->limiter->depth - pool->limiter->partitions.queued;
}

/* Takes what is in it; both locks held. */
static void empty(weir_pool *pool)
{
    struct weir__inbox *inbox = &pool->inbox;
    uint32_t count = inbox->jobs.length;
    weir__nodes_exchange(&pool->nodes, &inbox->nodes);
    if (count == 0)
        return;
    weir__partition_join_line(&pool->limiter->partitions, 0, &inbox->jobs);
    pool->counters.submitted += count;
    atomic_store_explicit(&inbox->pending, 0, memory_order_relaxed); /* as in weir__inbox_put */
}

bool weir__inbox_empty(weir_pool *pool)
{
    struct weir__inbox *inbox = &pool->inbox;
    /* relaxed: as in weir__inbox_put */
    if (!inbox->is_open || atomic_load_explicit(&inbox->pending, memory_order_relaxed) == 0)
        return false;
    weir__mutex_lock(&inbox->lock);
    empty(pool);
    inbox->room = pool->limiter->depth > pool->limiter->partitions.queued ? room(pool) : 0;
    WEIR__MUST(pthread_mutex_unlock(&inbox->lock));
    return true;
}

bool weir__inbox_close(weir_pool *pool)
{
    struct weir__inbox *inbox = &pool->inbox;
    if (!inbox->is_open)
        return false;
    inbox->is_open = false;
    weir__mutex_lock(&inbox->lock);
    bool had_jobs = inbox->jobs.length != 0;
    inbox->room = 0;
    empty(pool);
    WEIR__MUST(pthread_mutex_unlock(&inbox->lock));
    return had_jobs;
}

void weir__inbox_open(weir_pool *pool)
{
    struct weir__inbox *inbox = &pool->inbox;
    inbox->is_open = true;
    weir__mutex_lock(&inbox->lock);
    weir__nodes_exchange(&pool->nodes, &inbox->nodes);
    inbox->room = room(pool);
    inbox->until_ns = pool->limiter->live != NULL ? weir__live_due_ns(pool->limiter) : UINT64_MAX;
    WEIR__MUST(pthread_mutex_unlock(&inbox->lock));
}

bool weir__pool_gather(weir_pool *pool)
{
    bool was_recalled = weir__batches_recall(pool);
    return weir__inbox_close(pool) || was_recalled;
}

/* The jobs get the permits that are free. Nobody is to be woken for them: the inbox was open. */
void weir__pool_enter(void *owner)
{
    weir_pool *pool = owner;
    struct weir__wakes none = {0};
    if (weir__pool_gather(pool))
        (void)weir__limiter_hand_out(pool->limiter, &none);
}

void weir__pool_exit(void *owner)
{
    weir_pool *pool = owner;
    if (weir__inbox_may_be_open(pool))
        weir__inbox_open(pool);
}
