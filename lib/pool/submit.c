/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "pool/pool.h"

/* ---- lock held ---- */

static void enqueue(weir_pool *pool, const struct weir__work *work)
{
    weir__queue_push(&pool->queue, work);
    pool->counters.submitted++;
}

void weir__pool_settle(void *owner, struct weir__wakes *wakes)
{
    weir_pool *pool = owner;
    const weir_limiter *limiter = pool->limiter;
    while (pool->submitters.first != NULL) {
        struct weir__submitter *first = (struct weir__submitter *)pool->submitters.first;
        bool has_permit = pool->queue.count < limiter->backlog.reserved;
        if (!has_permit && weir__pool_queued(pool) >= limiter->depth)
            break;
        if (first->promised == 0 && !weir__queue_has(&pool->queue, weir__queue_need(&first->work)))
            break;
        pool->queue.promised -= first->promised;
        enqueue(pool, &first->work);
        weir__line_decide(&pool->submitters, &first->caller, 0, wakes);
    }
    weir__pool_send_worker(pool, wakes);
}

static void leave_backlog(weir_pool *pool, const struct weir__submitter *submitter)
{
    struct weir__backlog *backlog = &pool->limiter->backlog;
    pool->queue.promised -= submitter->promised;
    if (backlog->waiting > 0) {
        backlog->waiting--;
        backlog->departed++;
    } else { /* it had its permit, and memory was short */
        backlog->reserved--;
    }
}

void weir__pool_refuse_submitters(weir_pool *pool, int verdict, struct weir__wakes *wakes)
{
    while (pool->submitters.first != NULL) {
        struct weir__submitter *first = (struct weir__submitter *)pool->submitters.first;
        leave_backlog(pool, first);
        weir__line_decide(&pool->submitters, &first->caller, verdict, wakes);
    }
}

/* Whether a job that comes now is within L + D. */
static bool has_room(const weir_pool *pool)
{
    const weir_limiter *limiter = pool->limiter;
    if (pool->submitters.first != NULL)
        return false;
    if (weir__pool_queued(pool) < limiter->depth)
        return true;
    return limiter->backlog.waiting == 0 && !limiter->backlog.held && limiter->line.first == NULL &&
           weir__limiter_fits(limiter, 1);
}

/* Makes sure of storage; drops the lock while it allocates. False: no memory. */
static bool has_storage(weir_pool *pool, uint32_t slots)
{
    while (!weir__queue_has(&pool->queue, slots)) {
        weir__unlock(pool->limiter);
        struct weir__chunk *chunk = weir__chunk_create();
        weir__lock(pool->limiter);
        if (chunk == NULL)
            return weir__queue_has(&pool->queue, slots);
        weir__queue_grow(&pool->queue, chunk);
    }
    return true;
}

static int wait_at_ceiling(weir_pool *pool, const struct weir__work *work, bool has_memory, uint64_t deadline_ns,
                           struct weir__wakes *wakes)
{
    weir_limiter *limiter = pool->limiter;
    struct weir__submitter submitter = {.work = *work, .promised = has_memory ? weir__queue_need(work) : 0};
    weir__caller_init(&submitter.caller, 1);
    pool->queue.promised += submitter.promised;
    limiter->backlog.arrived++;
    limiter->backlog.waiting++;
    weir__line_append(&pool->submitters, &submitter.caller);
    int verdict = weir__line_wait(&pool->submitters, &submitter.caller, &limiter->lock, deadline_ns);
    weir__caller_destroy(&submitter.caller);
    if (verdict == ETIMEDOUT) {
        leave_backlog(pool, &submitter);
        pool->counters.timed_out++;
        weir__limiter_dispatch(limiter, wakes);
    }
    return verdict;
}

static int put(weir_pool *pool, const struct weir__work *work, bool wait, uint64_t deadline_ns,
               struct weir__wakes *wakes)
{
    weir_limiter *limiter = pool->limiter;
    bool has_memory;
    do { /* each step may drop the lock, so all is looked at again */
        if (pool->state != WEIR__OPEN)
            return ESHUTDOWN;
        if (pool->workers == 0) {
            int error = weir__pool_first_worker(pool);
            if (error != 0)
                return error;
        }
        has_memory = has_storage(pool, weir__queue_need(work));
    } while (pool->workers == 0 || pool->state != WEIR__OPEN || (!has_room(pool) && weir__samples_process(limiter)));

    if (has_memory && has_room(pool)) {
        limiter->backlog.arrived++;
        limiter->backlog.waiting++;
        enqueue(pool, work);
        weir__limiter_dispatch(limiter, wakes);
        return 0;
    }
    if (!wait) {
        pool->counters.shed++;
        return EAGAIN;
    }
    if (weir__pool_is_mine(pool))
        return EDEADLK;
    return wait_at_ceiling(pool, work, has_memory, deadline_ns, wakes);
}

/* ---- without the lock ---- */

int weir__pool_put(weir_pool *pool, const struct weir__work *work, bool wait, uint64_t deadline_ns)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (work->fn == NULL)
        return EINVAL;
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    error = put(pool, work, wait, deadline_ns, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    return error;
}

int weir_pool_submit(weir_pool *pool, weir_fn *fn, void *arg)
{
    return weir__pool_put(pool, &(struct weir__work){.fn = fn, .arg = arg}, true, WEIR_FOREVER);
}

int weir_pool_trysubmit(weir_pool *pool, weir_fn *fn, void *arg)
{
    return weir__pool_put(pool, &(struct weir__work){.fn = fn, .arg = arg}, false, 0);
}

int weir_pool_timedsubmit(weir_pool *pool, weir_fn *fn, void *arg, uint64_t deadline_ns)
{
    return weir__pool_put(pool, &(struct weir__work){.fn = fn, .arg = arg}, true, deadline_ns);
}
