/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/probe.h"
#include "pool/pool.h"
#include "stats/live_file.h"

/* A job that asks for admission. */
struct request {
    enum weir__job_kind kind;
    weir_fn *fn;
    const void *arg;
    uint32_t copy_size;
    weir_job *job; /* WEIR__HANDLE */
    bool wait;
    uint64_t deadline_ns;    /* of the wait */
    uint64_t stamp;          /* of the submit, see histogram.h */
    struct weir__unit *node; /* its place in line; NULL: memory is short */
};

static uint32_t weight_of(const struct request *request)
{
    return request->kind == WEIR__HANDLE ? weir__handle_of(request->job)->unit.weight : 1;
}

static uint16_t partition_of(const struct request *request)
{
    return request->kind == WEIR__HANDLE ? weir__handle_of(request->job)->unit.partition : 0;
}

/* ---- lock held: jobs in line ---- */

static void set_state(struct weir__unit *unit, enum weir__job_state state)
{
    /* relaxed: states before the end are read under the lock, or to tell that the end has not come yet */
    atomic_store_explicit(&unit->state, (uint8_t)state, memory_order_relaxed);
}

static enum weir__job_state state_of(const struct weir__unit *unit)
{
    return (enum weir__job_state)atomic_load_explicit(&unit->state, memory_order_relaxed); /* as in set_state */
}

void weir__pool_begin_to_wait(weir_pool *pool, struct weir__unit *unit, struct weir__wakes *wakes)
{
    if (unit->kind != WEIR__HANDLE)
        return;
    set_state(unit, WEIR__QUEUED);
    weir__deadline_add(pool, (struct weir__handle *)unit, wakes);
}

/* The job behind a submitter takes its place in line, and the submitter goes. False: there is no node for it. */
static bool admit(weir_pool *pool, struct weir__submitter *submitter, struct weir__unit **job,
                  struct weir__wakes *wakes)
{
    struct weir__unit *node = submitter->node;
    if (node == NULL)
        node = weir__node_take(&pool->nodes, submitter->kind);
    if (node == NULL)
        return false;
    if (node->kind != WEIR__HANDLE)
        weir__node_fill(node, submitter->fn, submitter->arg, submitter->copy_size);
    node->stamp = submitter->caller.unit.stamp;
    weir__partition_admit(&pool->limiter->partitions, &submitter->caller.unit, node);
    weir__pool_begin_to_wait(pool, node, wakes);
    pool->counters.submitted++;
    pool->limiter->partitions.all[node->partition].submitted++;
    weir__wakes_add(wakes, &submitter->caller, 0);
    *job = node;
    return true;
}

static void make_ready(weir_pool *pool, struct weir__unit *unit)
{
    weir__partition_leave(&pool->limiter->partitions, unit);
    weir__limiter_use(pool->limiter, unit->partition, unit->weight);
    pool->limiter->backlog.reserved += unit->weight;
    if (unit->kind == WEIR__HANDLE) {
        weir__deadline_remove(pool, (struct weir__handle *)unit);
        set_state(unit, state_of(unit) == WEIR__SUBMITTING ? WEIR__READY : WEIR__READY_LATE);
    }
    weir__line_append(&pool->ready, unit);
    weir__deadline_watch_queue(pool);
}

void weir__pool_unready(weir_pool *pool, struct weir__unit *unit)
{
    weir_limiter *limiter = pool->limiter;
    weir__line_remove(&pool->ready, unit);
    limiter->backlog.reserved -= unit->weight;
    weir__limiter_unuse(limiter, unit->partition, unit->weight);
}

bool weir__pool_grant(void *owner, struct weir__unit *unit, struct weir__wakes *wakes)
{
    weir_pool *pool = owner;
    if (unit->kind == WEIR__SUBMITTER) {
        if (!admit(pool, (struct weir__submitter *)unit, &unit, wakes))
            return false;
    } else {
        unit = weir__deadline_choose(pool, unit);
        if (!weir__limiter_fits(pool->limiter, unit->weight))
            return false;
    }
    make_ready(pool, unit);
    return true;
}

/* note:readmission -- each submitter that blocks costs a wake-up, which takes as long as dozens of short jobs. Were it
 * woken for the first place that is free, it would block again at the next submit. So while jobs are short those that
 * wait are let in again when a quarter of the queue is free, all that fit. Their jobs start no later for it, for the
 * queue is not empty before. But the jobs that run may wait for what the submitter does next, so its patience ends
 * after a time in which very many short jobs would have ended. */
static uint32_t readmission_depth(const weir_pool *pool, const struct weir__submitter *first)
{
    uint32_t depth = pool->limiter->depth;
    if (depth < 8 || !first->is_patient || pool->limiter->backlog.held || !weir__pace_is_short(pool))
        return depth;
    return depth - depth / 4 + 1; /* below that a quarter is free */
}

void weir__pool_settle(void *owner, struct weir__wakes *wakes)
{
    weir_pool *pool = owner;
    struct weir__partitions *partitions = &pool->limiter->partitions;
    for (uint16_t i = 0; i < partitions->count && partitions->submitters != 0; i++) {
        struct weir__unit *job;
        const struct weir__submitter *first = (struct weir__submitter *)partitions->all[i].blocked;
        if (first == NULL || !weir__partition_has_room(partitions, i, readmission_depth(pool, first)))
            continue;
        while (partitions->all[i].blocked != NULL && weir__partition_has_room(partitions, i, pool->limiter->depth)) {
            if (!admit(pool, (struct weir__submitter *)partitions->all[i].blocked, &job, wakes))
                break;
        }
    }
    weir__pool_send_worker(pool, wakes);
}

void weir__pool_refuse_submitters(weir_pool *pool, int verdict, struct weir__wakes *wakes)
{
    struct weir__partitions *partitions = &pool->limiter->partitions;
    for (uint16_t i = 0; i < partitions->count; i++) {
        while (partitions->all[i].blocked != NULL) {
            struct weir__unit *unit = partitions->all[i].blocked;
            weir__partition_leave(partitions, unit);
            weir__wakes_add(wakes, (struct weir__caller *)unit, verdict);
        }
    }
}

/* ---- lock held: at the ceiling ---- */

static bool can_start_at_once(const weir_pool *pool, const struct request *request)
{
    return !pool->limiter->backlog.held &&
           weir__limiter_is_free(pool->limiter, partition_of(request), weight_of(request));
}

/* Whether a job that comes now is within L + D. */
static bool has_room(const weir_pool *pool, const struct request *request)
{
    const struct weir__partitions *partitions = &pool->limiter->partitions;
    uint16_t partition = partition_of(request);
    if (request->node == NULL || partitions->all[partition].submitters != 0)
        return false;
    return weir__partition_has_room(partitions, partition, pool->limiter->depth) || can_start_at_once(pool, request);
}

/* Before a submitter sleeps: who is to be woken may be who makes room. Lock held on entry and exit, dropped meanwhile.
 */
static void wake_first(weir_limiter *limiter, struct weir__wakes *wakes)
{
    weir__unlock(limiter);
    weir__limiter_wake(limiter, wakes);
    *wakes = (struct weir__wakes){0};
    weir__lock(limiter);
}

/* Lock held on entry and exit, dropped meanwhile. */
static int wait_for_place(weir_pool *pool, struct weir__submitter *submitter, uint64_t deadline_ns,
                          struct weir__wakes *wakes)
{
    weir_limiter *limiter = pool->limiter;
    if (wakes->callers != NULL || wakes->worker != NULL || wakes->start_worker)
        wake_first(limiter, wakes);
    uint64_t patience_ns = weir__pace_is_short(pool) ? weir_after_ns(pool->readmission_ns) : 0;
    if (patience_ns == 0 || deadline_ns <= patience_ns)
        return weir__limiter_wait(limiter, &submitter->caller, deadline_ns);
    submitter->is_patient = true;
    int verdict = weir__limiter_wait(limiter, &submitter->caller, patience_ns);
    if (verdict != ETIMEDOUT)
        return verdict;
    submitter->is_patient = false;
    weir__pool_settle(pool, wakes);
    wake_first(limiter, wakes);
    return weir__limiter_wait(limiter, &submitter->caller, deadline_ns);
}

static int wait_at_ceiling(weir_pool *pool, struct request *request, struct weir__wakes *wakes)
{
    weir_limiter *limiter = pool->limiter;
    struct weir__submitter submitter = {.node = request->node,
                                        .fn = request->fn,
                                        .arg = request->arg,
                                        .copy_size = request->copy_size,
                                        .kind = request->kind};
    weir__caller_init(&submitter.caller, WEIR__SUBMITTER, weight_of(request), partition_of(request));
    submitter.caller.unit.stamp = request->stamp;
    weir__partition_join(&limiter->partitions, &submitter.caller.unit);
    pool->counters.blocked++;
    int verdict = wait_for_place(pool, &submitter, request->deadline_ns, wakes);
    weir__caller_destroy(&submitter.caller);
    if (verdict == 0) {
        request->node = NULL; /* it is the queue's now */
    } else if (verdict == ETIMEDOUT) {
        weir__partition_leave(&limiter->partitions, &submitter.caller.unit);
        pool->counters.timed_out++;
        limiter->partitions.all[submitter.caller.unit.partition].timed_out++;
        weir__limiter_dispatch(limiter, wakes); /* a heavy job that leaves may have held up lighter ones */
    }
    return verdict;
}

/* Makes sure of a node; drops the lock while it allocates. True: the lock was dropped. */
static bool find_node(weir_pool *pool, struct request *request)
{
    if (request->node != NULL)
        return false;
    weir__nodes_exchange(&pool->nodes, &pool->inbox.nodes); /* the lock is held and the inbox closed: both are ours */
    request->node = weir__node_take(&pool->inbox.nodes, request->kind);
    if (request->node != NULL)
        return false;
    uint32_t count = weir__block_next(pool, request->kind);
    weir__unlock(pool->limiter);
    struct weir__block *block = weir__block_allocate(request->kind, count);
    weir__lock(pool->limiter);
    if (block != NULL)
        weir__block_adopt(pool, block);
    request->node = weir__node_take(&pool->nodes, request->kind);
    return true;
}

/* Everything a submit needs before it looks at the ceiling. Each step may drop the lock, so all is looked at again. */
static int prepare(weir_pool *pool, struct request *request)
{
    for (;;) {
        if (pool->state != WEIR__OPEN)
            return ESHUTDOWN;
        if (pool->workers == 0) {
            int error = weir__pool_first_worker(pool);
            if (error != 0)
                return error;
            continue;
        }
        if (find_node(pool, request) && request->node != NULL)
            continue;
        if (has_room(pool, request) || !weir__samples_process(pool->limiter))
            return 0;
    }
}

static void enqueue(weir_pool *pool, struct request *request, struct weir__wakes *wakes)
{
    struct weir__unit *unit = request->node;
    request->node = NULL;
    if (unit->kind != WEIR__HANDLE)
        weir__node_fill(unit, request->fn, request->arg, request->copy_size);
    unit->stamp = request->stamp;
    weir__partition_join(&pool->limiter->partitions, unit);
    pool->counters.submitted++;
    pool->limiter->partitions.all[unit->partition].submitted++;
    weir__limiter_dispatch(pool->limiter, wakes);
    weir__pool_send_worker(pool, wakes); /* again, where a start failed before */
    if (unit->kind == WEIR__HANDLE && state_of(unit) == WEIR__SUBMITTING)
        weir__pool_begin_to_wait(pool, unit, wakes);
}

/* The jobs of a batch that have begun hold their places until they are booked. A request that may have to wait brings
 * in the others, too, for nobody stands in a line with a batch before it. */
static bool has_room_after_all(weir_pool *pool, const struct request *request, struct weir__wakes *wakes)
{
    if (!(request->wait ? weir__pool_gather(pool) : weir__batches_book(pool)))
        return false;
    weir__limiter_dispatch(pool->limiter, wakes);
    return has_room(pool, request);
}

static int put(weir_pool *pool, struct request *request, struct weir__wakes *wakes)
{
    int error = prepare(pool, request);
    if (error != 0)
        return error;
    uint64_t deadline_ns = request->kind == WEIR__HANDLE ? request->job->deadline_ns : 0;
    if (deadline_ns != 0 && !can_start_at_once(pool, request) && weir__deadline_is_hopeless(pool, deadline_ns)) {
        pool->counters.timed_out++;
        pool->limiter->partitions.all[partition_of(request)].timed_out++;
        return ETIMEDOUT;
    }
    if (has_room(pool, request) || has_room_after_all(pool, request, wakes)) {
        enqueue(pool, request, wakes);
        return 0;
    }
    if (!request->wait) {
        pool->counters.shed++;
        pool->limiter->partitions.all[partition_of(request)].shed++;
        weir__probe_shed(pool->limiter->name, partition_of(request), pool->limiter->partitions.queued);
        return EAGAIN;
    }
    if (weir__pool_is_mine(pool))
        return EDEADLK;
    if (deadline_ns != 0 && deadline_ns < request->deadline_ns)
        request->deadline_ns = deadline_ns;
    return wait_at_ceiling(pool, request, wakes);
}

/* ---- without the lock ---- */

static bool leave_in_inbox(weir_pool *pool, const struct request *request)
{
    return weir__inbox_put(pool, request->kind, request->fn, request->arg, request->copy_size, request->stamp);
}

/* Batches may stay out: a job that joins comes after theirs anyway, see note:batch. */
static void lock_to_submit(weir_pool *pool)
{
    struct weir__wakes none = {0}; /* as in weir__pool_enter */
    weir__mutex_lock(&pool->limiter->lock);
    if (weir__inbox_close(pool))
        (void)weir__limiter_hand_out(pool->limiter, &none);
}

/* What has ended in batches is to be seen in the live file. */
static void note_live(weir_pool *pool, struct weir__wakes *wakes)
{
    uint64_t now_ns = weir_now_ns();
    if (now_ns >= weir__live_due_ns(pool->limiter) && weir__batches_book(pool))
        weir__limiter_dispatch(pool->limiter, wakes);
    weir__live_note(pool->limiter, now_ns, false);
}

static int submit(weir_pool *pool, struct request *request)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    /* relaxed: a hint that may come late */
    if (!atomic_load_explicit(&pool->limiter->sparse, memory_order_relaxed))
        request->stamp = weir__stamp_make(weir_now_ns(), 1);
    if (request->kind != WEIR__HANDLE && leave_in_inbox(pool, request)) {
        weir__probe_submit(pool->limiter->name, (uintptr_t)request->fn, 0);
        return 0;
    }
    weir_fn *fn = request->kind == WEIR__HANDLE ? request->job->fn : request->fn;
    struct weir__wakes wakes = {0};
    lock_to_submit(pool);
    if (request->stamp == 0 && pool->stamp_turn++ % WEIR__STAMP_EVERY == 0)
        request->stamp = weir__stamp_make(weir_now_ns(), WEIR__STAMP_EVERY);
    error = put(pool, request, &wakes);
    if (request->node != NULL && request->kind != WEIR__HANDLE)
        weir__node_return(pool, request->node);
    if (error != 0 && request->kind == WEIR__HANDLE)
        weir__job_refuse(request->job, &wakes);
    if (pool->limiter->live != NULL)
        note_live(pool, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    weir__probe_submit(pool->limiter->name, (uintptr_t)fn, error);
    return error;
}

int weir__pool_put_job(weir_pool *pool, weir_job *job, bool wait, uint64_t deadline_ns)
{
    struct request request = {.kind = WEIR__HANDLE,
                              .job = job,
                              .wait = wait,
                              .deadline_ns = deadline_ns,
                              .node = &weir__handle_of(job)->unit};
    return submit(pool, &request);
}

static int put_plain(weir_pool *pool, weir_fn *fn, void *arg, bool wait, uint64_t deadline_ns)
{
    if (pool == NULL || fn == NULL)
        return EINVAL;
    struct request request = {.kind = WEIR__PLAIN, .fn = fn, .arg = arg, .wait = wait, .deadline_ns = deadline_ns};
    return submit(pool, &request);
}

int weir_pool_submit(weir_pool *pool, weir_fn *fn, void *arg)
{
    return put_plain(pool, fn, arg, true, WEIR_FOREVER);
}

int weir_pool_trysubmit(weir_pool *pool, weir_fn *fn, void *arg)
{
    return put_plain(pool, fn, arg, false, 0);
}

int weir_pool_timedsubmit(weir_pool *pool, weir_fn *fn, void *arg, uint64_t deadline_ns)
{
    return put_plain(pool, fn, arg, true, deadline_ns);
}

/* ---- copied arguments ---- */

/* A large copy is an allocation of its own, which the job frees. */
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

void weir__unit_discard(const struct weir__unit *unit)
{
    if (unit->kind == WEIR__PLAIN && ((const struct weir__plain *)unit)->fn == run_large_copy)
        free(((const struct weir__plain *)unit)->arg);
}

static int put_large_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size, bool wait)
{
    struct large_copy *copy = size <= SIZE_MAX - sizeof *copy ? weir__allocate(sizeof *copy + size) : NULL;
    if (copy == NULL)
        return ENOMEM;
    copy->fn = fn;
    memcpy(copy->bytes, data, size);
    int error = put_plain(pool, run_large_copy, copy, wait, WEIR_FOREVER);
    if (error != 0)
        free(copy);
    return error;
}

static int put_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size, bool wait)
{
    int error = weir__pool_usable(pool);
    if (error != 0)
        return error;
    if (fn == NULL || (data == NULL && size != 0))
        return EINVAL;
    if (size > WEIR__COPY_BYTES)
        return put_large_copy(pool, fn, data, size, wait);
    struct request request = {.kind = WEIR__COPY,
                              .fn = fn,
                              .arg = data,
                              .copy_size = (uint32_t)size,
                              .wait = wait,
                              .deadline_ns = WEIR_FOREVER};
    return submit(pool, &request);
}

int weir_pool_submit_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size)
{
    return put_copy(pool, fn, data, size, true);
}

int weir_pool_trysubmit_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size)
{
    return put_copy(pool, fn, data, size, false);
}
