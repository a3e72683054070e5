/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "pool/pool.h"

/* Pause and resume, drain and shutdown. The state of a pool is level-triggered: every worker that looks sees it, none
 * consumes it. */

/* ---- waiting; lock held ---- */

static bool is_over(const weir_pool *pool, bool for_threads)
{
    return for_threads ? pool->threads == 0 : weir__pool_is_empty(pool);
}

void weir__pool_notice(weir_pool *pool, struct weir__wakes *wakes)
{
    bool empty = weir__pool_is_empty(pool);
    if (empty && pool->state != WEIR__OPEN && wakes->worker == NULL) {
        /* Idle workers leave one after the other, each waking the next: no crowd at the lock. */
        struct weir__worker *idle = weir__pool_pop_idle(pool);
        if (idle != NULL)
            wakes->worker = &idle->parker;
    }
    struct weir__watcher *watcher = (struct weir__watcher *)pool->watchers.first;
    while (watcher != NULL) {
        struct weir__watcher *next = (struct weir__watcher *)watcher->caller.next;
        if (is_over(pool, watcher->for_threads))
            weir__line_decide(&pool->watchers, &watcher->caller, 0, wakes);
        watcher = next;
    }
}

int weir__pool_watch(weir_pool *pool, bool for_threads, uint64_t deadline_ns)
{
    if (is_over(pool, for_threads))
        return 0;
    struct weir__watcher watcher = {.for_threads = for_threads};
    weir__caller_init(&watcher.caller, 0);
    weir__line_append(&pool->watchers, &watcher.caller);
    int verdict = weir__line_wait(&pool->watchers, &watcher.caller, &pool->limiter->lock, deadline_ns);
    weir__caller_destroy(&watcher.caller);
    return verdict;
}

int weir_pool_drain(weir_pool *pool, uint64_t deadline_ns)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (weir__pool_is_mine(pool))
        return EDEADLK;
    weir__lock(pool->limiter);
    error = weir__pool_watch(pool, false, deadline_ns);
    weir__unlock(pool->limiter);
    return error;
}

/* ---- pause and resume ---- */

/* Lock held: jobs that have not begun give their permits back. */
static void hold(weir_pool *pool)
{
    struct weir__backlog *backlog = &pool->limiter->backlog;
    backlog->held = true;
    backlog->waiting += backlog->reserved;
    backlog->departed -= backlog->reserved;
    backlog->reserved = 0;
}

int weir_pool_pause(weir_pool *pool)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    if (pool->state == WEIR__OPEN) {
        hold(pool);
        weir__limiter_dispatch(pool->limiter, &wakes); /* direct callers of the limiter are not paused */
    } else {
        error = ESHUTDOWN;
    }
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    return error;
}

int weir_pool_resume(weir_pool *pool)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    pool->limiter->backlog.held = false;
    weir__limiter_dispatch(pool->limiter, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    return 0;
}

/* ---- shutdown ---- */

/* Lock held: takes everything that is queued out of the pool. */
static struct weir__queue cancel_queue(weir_pool *pool)
{
    struct weir__backlog *backlog = &pool->limiter->backlog;
    struct weir__queue cancelled = pool->queue;
    pool->queue = (struct weir__queue){0};
    pool->counters.cancelled += cancelled.count;
    backlog->departed += backlog->waiting;
    backlog->waiting = 0;
    backlog->reserved = 0;
    return cancelled;
}

/* Tells whoever waits for the cancelled jobs; without the lock. */
static void discard(struct weir__queue *cancelled)
{
    _Alignas(max_align_t) unsigned char copy[WEIR__COPY_BYTES];
    while (cancelled->count > 0) {
        struct weir__work work = weir__queue_pop(cancelled, copy);
        struct weir__wakes wakes = {0};
        weir__work_discard(&work);
        weir__work_done(&work, WEIR_IGNORE, ECANCELED, &wakes);
        weir__wakes_callers(&wakes);
    }
    weir__chunks_free(cancelled->first);
    weir__chunks_free(cancelled->spare);
}

int weir_pool_shutdown(weir_pool *pool, weir_shutdown how, uint64_t deadline_ns)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (how != WEIR_FINISH && how != WEIR_CANCEL)
        return EINVAL;
    if (weir__pool_is_mine(pool))
        return EDEADLK;
    struct weir__wakes wakes = {0};
    struct weir__queue cancelled = {0};
    weir__lock(pool->limiter);
    if (how == WEIR_CANCEL)
        pool->state = WEIR__CANCELLING;
    else if (pool->state == WEIR__OPEN)
        pool->state = WEIR__FINISHING;
    weir__pool_refuse_submitters(pool, ESHUTDOWN, &wakes);
    if (how == WEIR_CANCEL)
        cancelled = cancel_queue(pool);
    pool->limiter->backlog.held = false;
    weir__limiter_dispatch(pool->limiter, &wakes);
    weir__pool_notice(pool, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    discard(&cancelled);

    weir__lock(pool->limiter);
    error = weir__pool_watch(pool, false, deadline_ns);
    weir__unlock(pool->limiter);
    return error;
}
