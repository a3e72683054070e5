/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "pool/pool.h"

/* ---- states ---- */

static enum weir__job_state state_of(const weir_job *job)
{
    const struct weir__handle *handle = (const struct weir__handle *)job->opaque;
    /* acquire pairs with the release in weir__job_publish: who sees the end sees what the job did; and with the one in
     * claim: who sees a job submitted sees its pool */
    uint8_t state = atomic_load_explicit(&handle->unit.state, memory_order_acquire);
    return state == WEIR__CLAIMED ? WEIR__NEW : (enum weir__job_state)state;
}

static bool has_ended(enum weir__job_state state)
{
    return state >= WEIR__SUCCEEDED;
}

/* What weir_job_wait says of an ended job. */
static int status_of(enum weir__job_state state)
{
    if (state == WEIR__CANCELLED)
        return ECANCELED;
    return state == WEIR__EXPIRED ? ETIMEDOUT : 0;
}

int weir_job_outcome(const weir_job *job, weir_outcome *outcome)
{
    if (job == NULL)
        return EINVAL;
    enum weir__job_state state = state_of(job);
    if (state == WEIR__NEW)
        return EINVAL;
    if (!has_ended(state))
        return EINPROGRESS;
    int status = status_of(state);
    if (status == 0 && outcome != NULL)
        *outcome = (weir_outcome)(state - WEIR__SUCCEEDED);
    return status;
}

static void decide_waiters(struct weir__handle *handle, int verdict, struct weir__wakes *wakes)
{
    while (handle->waiters != NULL) {
        struct weir__caller *waiter = (struct weir__caller *)handle->waiters;
        handle->waiters = waiter->unit.next;
        weir__wakes_add(wakes, waiter, verdict);
    }
}

void weir__job_publish(weir_job *job, enum weir__job_state state, struct weir__wakes *wakes)
{
    struct weir__handle *handle = weir__handle_of(job);
    weir_completions *completions = job->completions;
    decide_waiters(handle, status_of(state), wakes);
    /* release pairs with the acquire in state_of */
    atomic_store_explicit(&handle->unit.state, (uint8_t)state, memory_order_release);
    if (completions != NULL) /* under the lock: their order is that of the ends */
        weir__completions_put(completions, job);
}

/* ---- delivery ---- */

void weir__job_deliver(weir_job *job)
{
    job->on_done(job);
}

void weir__job_delivered(weir_pool *pool)
{
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    pool->delivering--;
    weir__pool_notice(pool, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
}

bool weir__job_end_waiting(weir_pool *pool, weir_job *job, enum weir__job_state state, struct weir__wakes *wakes)
{
    struct weir__unit *unit = &weir__handle_of(job)->unit;
    bool delivers = weir__job_has_delivery(job);
    if (state_of(job) == WEIR__QUEUED) {
        weir__partition_leave(&pool->limiter->partitions, unit);
        weir__deadline_remove(pool, weir__handle_of(job));
        weir__deadline_watch_queue(pool);
    } else {
        weir__pool_unready(pool, unit);
    }
    struct weir__partition *partition = &pool->limiter->partitions.all[unit->partition];
    if (state == WEIR__EXPIRED) {
        pool->counters.expired++;
        partition->expired++;
    } else {
        pool->counters.cancelled++;
        partition->cancelled++;
    }
    if (delivers)
        pool->delivering++;
    weir__job_publish(job, state, wakes);
    weir__limiter_dispatch(pool->limiter, wakes);
    weir__pool_settle(pool, wakes); /* there is room in the queue */
    weir__pool_notice(pool, wakes);
    return delivers;
}

/* ---- submit ---- */

/* Claims the job for a submit: EBUSY while an earlier one is not over. */
static int claim(weir_pool *pool, weir_job *job)
{
    int partition = weir__partition_find(&pool->limiter->partitions, job->partition);
    uint32_t weight = job->weight != 0 ? job->weight : 1;
    if (partition < 0 || !weir__limiter_weight_is_good(pool->limiter, weight))
        return EINVAL;
    struct weir__handle *handle = weir__handle_of(job);
    /* acquire pairs with the release in weir__job_publish: the job's earlier end comes before its new life */
    uint8_t state = atomic_load_explicit(&handle->unit.state, memory_order_acquire);
    if ((state != WEIR__NEW && !has_ended((enum weir__job_state)state)) ||
        !atomic_compare_exchange_strong_explicit(&handle->unit.state, &state, WEIR__CLAIMED, memory_order_acquire,
                                                 memory_order_relaxed))
        return EBUSY;
    handle->unit.weight = weight;
    handle->unit.partition = (uint16_t)partition;
    handle->unit.kind = WEIR__HANDLE;
    handle->timer.previous = NULL;
    handle->pool = pool;
    handle->waiters = NULL;
    /* release pairs with the acquire in state_of */
    atomic_store_explicit(&handle->unit.state, WEIR__SUBMITTING, memory_order_release);
    return 0;
}

void weir__job_refuse(weir_job *job, struct weir__wakes *wakes)
{
    struct weir__handle *handle = weir__handle_of(job);
    decide_waiters(handle, EINVAL, wakes); /* as for a job that was never submitted */
    /* release pairs with the acquire in claim */
    atomic_store_explicit(&handle->unit.state, WEIR__NEW, memory_order_release);
}

static int submit(weir_pool *pool, weir_job *job, bool wait, uint64_t deadline_ns)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (job == NULL || job->fn == NULL || (job->on_done != NULL && job->completions != NULL))
        return EINVAL;
    error = claim(pool, job);
    if (error != 0)
        return error;
    return weir__pool_put_job(pool, job, wait, deadline_ns);
}

int weir_job_submit(weir_pool *pool, weir_job *job)
{
    return submit(pool, job, true, WEIR_FOREVER);
}

int weir_job_trysubmit(weir_pool *pool, weir_job *job)
{
    return submit(pool, job, false, 0);
}

int weir_job_timedsubmit(weir_pool *pool, weir_job *job, uint64_t deadline_ns)
{
    return submit(pool, job, true, deadline_ns);
}

/* ---- cancel ---- */

int weir_job_cancel(weir_job *job)
{
    if (job == NULL || state_of(job) == WEIR__NEW)
        return EINVAL;
    if (has_ended(state_of(job)))
        return EALREADY;
    weir_pool *pool = weir__handle_of(job)->pool;
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    struct weir__wakes wakes = {0};
    bool delivers = false;
    weir__lock(pool->limiter);
    enum weir__job_state state = state_of(job);
    if (state == WEIR__QUEUED || state == WEIR__READY || state == WEIR__READY_LATE)
        delivers = weir__job_end_waiting(pool, job, WEIR__CANCELLED, &wakes);
    else
        error = has_ended(state) ? EALREADY : EBUSY;
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    if (delivers) {
        weir__job_deliver(job);
        weir__job_delivered(pool);
    }
    return error;
}

/* ---- wait ---- */

/* Whether a job of this pool may wait for one that has no permits yet: they are free, or a running job that does not
 * wait itself will free some. Lock held. */
static bool may_wait_nested(const weir_pool *pool, uint16_t partition, uint32_t weight)
{
    return weir__limiter_is_free(pool->limiter, partition, weight) || pool->nested_jobs + 1 < pool->executing;
}

/* From the moment a job waits, the ceiling holds a place for what it waits for: the limit may fall meanwhile. */
static void enter_nested(weir_pool *pool, uint32_t awaited)
{
    struct weir__backlog *backlog = &pool->limiter->backlog;
    pool->nested_jobs++;
    weir__pace_block(pool, weir__current.worker);
    backlog->nested += weir__current.worker->work.weight;
    if (awaited > backlog->awaited)
        backlog->awaited = awaited;
}

static void leave_nested(weir_pool *pool)
{
    struct weir__backlog *backlog = &pool->limiter->backlog;
    pool->nested_jobs--;
    backlog->nested -= weir__current.worker->work.weight;
    if (pool->nested_jobs == 0)
        backlog->awaited = 0;
}

static bool is_nested(const weir_pool *pool)
{
    return weir__pool_is_mine(pool) && weir__current.worker != NULL;
}

static void forget_waiter(struct weir__handle *handle, struct weir__caller *waiter)
{
    struct weir__unit **link = &handle->waiters;
    while (*link != &waiter->unit)
        link = &(*link)->next;
    *link = waiter->unit.next;
}

/* Lock held, dropped meanwhile; the job has not ended. */
static int wait_for(weir_pool *pool, weir_job *job, uint64_t deadline_ns, struct weir__wakes *wakes)
{
    struct weir__handle *handle = weir__handle_of(job);
    bool nested = is_nested(pool);
    if (nested) {
        enum weir__job_state state = state_of(job);
        if ((state == WEIR__QUEUED || state == WEIR__SUBMITTING) &&
            !may_wait_nested(pool, handle->unit.partition, handle->unit.weight))
            return EDEADLK;
        enter_nested(pool, handle->unit.weight);
        weir__limiter_dispatch(pool->limiter, wakes);
        weir__pool_send_worker(pool, wakes);
    }
    struct weir__caller waiter;
    weir__caller_init(&waiter, WEIR__CALLER, 0, 0);
    waiter.unit.next = handle->waiters;
    handle->waiters = &waiter.unit;
    if (wakes->callers != NULL || wakes->worker != NULL || wakes->start_worker) {
        weir__unlock(pool->limiter);
        weir__limiter_wake(pool->limiter, wakes);
        *wakes = (struct weir__wakes){0};
        weir__lock(pool->limiter);
    }
    int verdict = weir__limiter_wait(pool->limiter, &waiter, deadline_ns);
    if (verdict == ETIMEDOUT && waiter.verdict == WEIR__PENDING) {
        forget_waiter(handle, &waiter);
        verdict = EINPROGRESS;
    }
    weir__caller_destroy(&waiter);
    if (nested)
        leave_nested(pool);
    return verdict; /* who decided it took it off the list. NOLINT(clang-analyzer-core.StackAddressEscape) */
}

int weir_job_wait(weir_job *job, uint64_t deadline_ns)
{
    if (job == NULL || state_of(job) == WEIR__NEW)
        return EINVAL;
    if (has_ended(state_of(job)))
        return status_of(state_of(job));
    weir_pool *pool = weir__handle_of(job)->pool;
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    enum weir__job_state state = state_of(job);
    error = has_ended(state) ? status_of(state) : wait_for(pool, job, deadline_ns, &wakes);
    weir__unlock(pool->limiter);
    return error;
}

/* ---- call ---- */

int weir_pool_call(weir_pool *pool, weir_fn *fn, void *arg, weir_outcome *outcome)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (fn == NULL)
        return EINVAL;
    if (is_nested(pool)) { /* look before queueing what could not be waited for */
        weir__lock(pool->limiter);
        bool may_wait = may_wait_nested(pool, 0, 1);
        weir__unlock(pool->limiter);
        if (!may_wait)
            return EDEADLK;
    }
    weir_job job = WEIR_JOB_INIT(fn, arg);
    error = weir_job_submit(pool, &job);
    if (error != 0)
        return error;
    error = weir_job_wait(&job, WEIR_FOREVER);
    while (error == EDEADLK) { /* since the look above the others have begun to wait, too */
        if (weir_job_cancel(&job) == 0)
            return EDEADLK;
        error = weir_job_wait(&job, WEIR_FOREVER);
    }
    if (error == 0 && outcome != NULL)
        (void)weir_job_outcome(&job, outcome);
    return error;
}
