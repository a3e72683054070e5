/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

/* Jobs that are more than a function and its argument: called ones, and those with a large copied argument. Both are
 * told from plain ones by their function. */

/* ---- a large copy: an allocation of its own, which the job frees ---- */

struct large_copy {
    weir_fn *fn;
    _Alignas(max_align_t) unsigned char bytes[];
};

static weir_outcome run_large_copy(void *arg)
{
    struct large_copy *copy = arg;
    weir_outcome outcome = WEIR_IGNORE;
    pthread_cleanup_push(free, copy); /* also when the job ends its thread */
    outcome = copy->fn(copy->bytes);
    pthread_cleanup_pop(1);
    return outcome;
}

int weir_pool_submit_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size)
{
    if (fn == NULL || (data == NULL && size != 0))
        return EINVAL;
    if (size <= WEIR__COPY_BYTES) {
        struct weir__work small = {
            .fn = fn, .arg = (void *)(uintptr_t)data, .copy_size = (uint32_t)size, .is_copy = true};
        return weir__pool_put(pool, &small, true, WEIR_FOREVER);
    }
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    struct large_copy *copy = size <= SIZE_MAX - sizeof *copy ? weir__allocate(sizeof *copy + size) : NULL;
    if (copy == NULL)
        return ENOMEM;
    copy->fn = fn;
    memcpy(copy->bytes, data, size);
    struct weir__work work = {.fn = run_large_copy, .arg = copy};
    error = weir__pool_put(pool, &work, true, WEIR_FOREVER);
    if (error != 0)
        free(copy);
    return error;
}

/* ---- a call: its submitter waits ---- */

struct call {
    struct weir__caller caller; /* its verdict is the call's error */
    weir_fn *fn;                /* immutable */
    void *arg;                  /* immutable */
    weir_outcome outcome;       /* written before the verdict */
};

static weir_outcome run_call(void *arg)
{
    struct call *call = arg;
    return call->fn(call->arg);
}

void weir__work_done(const struct weir__work *work, weir_outcome outcome, int verdict, struct weir__wakes *wakes)
{
    if (work->fn != run_call)
        return;
    struct call *call = work->arg;
    call->outcome = outcome;
    weir__wakes_add(wakes, &call->caller, verdict);
}

void weir__work_discard(const struct weir__work *work)
{
    if (work->fn == run_large_copy)
        free(work->arg);
}

/* Whether a job of this pool may wait for one that it submits now: a permit is free for that, or a running job that
 * does not wait itself will free one. From the moment it may, the ceiling holds a place for the job it waits for. */
static bool enter_nested(weir_pool *pool)
{
    weir_limiter *limiter = pool->limiter;
    weir__lock(limiter);
    bool free_permit = limiter->backlog.waiting == 0 && limiter->line.first == NULL && weir__limiter_fits(limiter, 1);
    bool may_wait = free_permit || limiter->backlog.nested + 1 < pool->executing;
    if (may_wait)
        limiter->backlog.nested++;
    weir__unlock(limiter);
    return may_wait;
}

static void leave_nested(weir_pool *pool)
{
    weir__lock(pool->limiter);
    pool->limiter->backlog.nested--;
    weir__unlock(pool->limiter);
}

int weir_pool_call(weir_pool *pool, weir_fn *fn, void *arg, weir_outcome *outcome)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (fn == NULL)
        return EINVAL;
    bool nested = weir__pool_is_mine(pool);
    if (nested && !enter_nested(pool))
        return EDEADLK;
    struct call call = {.fn = fn, .arg = arg, .outcome = WEIR_IGNORE};
    weir__caller_init(&call.caller, 1);
    struct weir__work work = {.fn = run_call, .arg = &call};
    error = weir__pool_put(pool, &work, true, WEIR_FOREVER);
    if (error == 0) {
        (void)weir__park(&call.caller.parker, WEIR_FOREVER);
        error = call.caller.verdict;
    }
    if (nested)
        leave_nested(pool);
    if (error == 0 && outcome != NULL)
        *outcome = call.outcome;
    weir__caller_destroy(&call.caller);
    return error;
}
