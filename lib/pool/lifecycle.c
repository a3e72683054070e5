/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

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
    if (empty && pool->state != WEIR__OPEN && pool->keeper.exists)
        wakes->keeper = &pool->keeper.parker;
    struct weir__watcher *watcher = (struct weir__watcher *)pool->watchers.first;
    while (watcher != NULL) {
        struct weir__watcher *next = (struct weir__watcher *)watcher->caller.unit.next;
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
    weir__caller_init(&watcher.caller, WEIR__CALLER, 0, 0);
    weir__line_append(&pool->watchers, &watcher.caller.unit);
    int verdict = weir__limiter_wait(pool->limiter, &watcher.caller, deadline_ns);
    if (verdict == ETIMEDOUT)
        weir__line_remove(&pool->watchers, &watcher.caller.unit);
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

/* Lock held: ready jobs give their permits back and return to the head of their lines, in their order. */
static void hold(weir_pool *pool, struct weir__wakes *wakes)
{
    struct weir__partitions *partitions = &pool->limiter->partitions;
    pool->limiter->backlog.held = true;
    while (pool->ready.last != NULL) {
        struct weir__unit *unit = pool->ready.last;
        weir__pool_unready(pool, unit);
        weir__partition_return(partitions, unit);
        weir__pool_begin_to_wait(pool, unit, wakes);
    }
}

int weir_pool_pause(weir_pool *pool)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    if (pool->state == WEIR__OPEN) {
        hold(pool, &wakes);
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
    if (pool->state != WEIR__CANCELLING)
        pool->limiter->backlog.held = false;
    weir__limiter_dispatch(pool->limiter, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    return 0;
}

/* ---- shutdown ---- */

/* What is left to do for a cancelled job, without the lock. */
enum left { LEFT_NONE, LEFT_NOTHING, LEFT_DELIVERY, LEFT_NODE };

/* Ends one job that waits, in a line or ready; LEFT_NONE: there is none. Lock held. A handle that is left nothing to do
 * for is the caller's again. */
static enum left cancel_one(weir_pool *pool, struct weir__unit **cancelled, struct weir__wakes *wakes)
{
    struct weir__partitions *partitions = &pool->limiter->partitions;
    struct weir__unit *unit = pool->ready.first;
    for (uint16_t i = 0; unit == NULL && i < partitions->count; i++) {
        unit = partitions->all[i].line.first;
        while (unit != NULL && unit->kind == WEIR__CALLER)
            unit = unit->next;
    }
    *cancelled = unit;
    if (unit == NULL)
        return LEFT_NONE;
    if (unit->kind == WEIR__HANDLE) {
        weir_job *job = weir__job_of((struct weir__handle *)unit);
        return weir__job_end_waiting(pool, job, WEIR__CANCELLED, wakes) ? LEFT_DELIVERY : LEFT_NOTHING;
    }
    if (unit == pool->ready.first)
        weir__pool_unready(pool, unit);
    else
        weir__partition_leave(partitions, unit);
    pool->counters.cancelled++;
    partitions->all[unit->partition].cancelled++;
    return LEFT_NODE;
}

/* Takes everything that waits out of the pool, a few jobs per turn of the lock: a million of them must not stop those
 * that run. Lock held on entry and exit. */
static void cancel_waiting(weir_pool *pool)
{
    enum { PER_TURN = 64 };
    enum left left;
    do {
        struct weir__wakes wakes = {0};
        struct weir__unit *nodes[PER_TURN];
        weir_job *jobs[PER_TURN];
        unsigned node_count = 0;
        unsigned job_count = 0;
        for (int i = 0; i < PER_TURN; i++) {
            struct weir__unit *unit;
            left = cancel_one(pool, &unit, &wakes);
            if (left == LEFT_NONE)
                break;
            if (left == LEFT_DELIVERY)
                jobs[job_count++] = weir__job_of((struct weir__handle *)unit);
            else if (left == LEFT_NODE)
                nodes[node_count++] = unit;
        }
        weir__unlock(pool->limiter);
        weir__limiter_wake(pool->limiter, &wakes);
        for (unsigned i = 0; i < node_count; i++)
            weir__unit_discard(nodes[i]);
        for (unsigned i = 0; i < job_count; i++) {
            weir__job_deliver(jobs[i]);
            weir__job_delivered(pool);
        }
        weir__lock(pool->limiter);
        for (unsigned i = 0; i < node_count; i++)
            weir__node_return(pool, nodes[i]);
    } while (left != LEFT_NONE);
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
    weir__lock(pool->limiter);
    if (how == WEIR_CANCEL)
        pool->state = WEIR__CANCELLING;
    else if (pool->state == WEIR__OPEN)
        pool->state = WEIR__FINISHING;
    weir__pool_refuse_submitters(pool, ESHUTDOWN, &wakes);
    pool->limiter->backlog.held = pool->state == WEIR__CANCELLING; /* nothing starts any more */
    if (pool->state == WEIR__CANCELLING)
        cancel_waiting(pool);
    weir__limiter_dispatch(pool->limiter, &wakes);
    weir__pool_notice(pool, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);

    weir__lock(pool->limiter);
    error = weir__pool_watch(pool, false, deadline_ns);
    weir__unlock(pool->limiter);
    return error;
}
