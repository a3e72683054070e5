/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/probe.h"
#include "pool/pool.h"
#include "stats/live_file.h"

_Thread_local struct weir__current weir__current;

/* ---- who there is; lock held ---- */

static void enlist(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    worker->index = pool->next_index++;
    worker->next = pool->all;
    if (pool->all != NULL)
        pool->all->previous = worker;
    pool->all = worker;
    pool->threads++;
}

static void unlist(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    if (worker->previous != NULL)
        worker->previous->next = worker->next;
    else
        pool->all = worker->next;
    if (worker->next != NULL)
        worker->next->previous = worker->previous;
}

/* note:step-aside -- the warmest idle worker is the next to be woken, so one whose own resource is broken, a database
 * connection that it could not open say, would take every job and fail it, the faster the more of them, while others
 * idle that have theirs. So who has just had a job dropped rests at the bottom of the stack, and does so at once where
 * jobs are ready and another worker is idle. */
static bool has_dropped(const struct weir__worker *worker)
{
    return worker->sample.outcome == WEIR_DROPPED;
}

static void push_idle(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    bool last = has_dropped(worker);
    worker->previous_idle = last ? pool->idle_last : NULL;
    worker->next_idle = last ? NULL : pool->idle;
    if (worker->previous_idle != NULL)
        worker->previous_idle->next_idle = worker;
    else
        pool->idle = worker;
    if (worker->next_idle != NULL)
        worker->next_idle->previous_idle = worker;
    else
        pool->idle_last = worker;
    pool->idle_count++;
    worker->is_idle = true;
}

static void remove_idle(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    if (worker->previous_idle != NULL)
        worker->previous_idle->next_idle = worker->next_idle;
    else
        pool->idle = worker->next_idle;
    if (worker->next_idle != NULL)
        worker->next_idle->previous_idle = worker->previous_idle;
    else
        pool->idle_last = worker->previous_idle;
    pool->idle_count--;
    worker->is_idle = false;
}

struct weir__worker *weir__pool_pop_idle(weir_pool *pool)
{
    struct weir__worker *worker = pool->idle;
    if (worker == NULL)
        return weir__pace_relieve(pool);
    remove_idle(worker);
    return worker;
}

void weir__pool_send_worker(weir_pool *pool, struct weir__wakes *wakes)
{
    if (pool->waking || pool->ready.length <= pool->looking) /* note:chained-wake */
        return;
    if (weir__pace_suffices(pool)) /* note:useful */
        return;
    struct weir__worker *worker = weir__pool_pop_idle(pool);
    if (worker != NULL) {
        wakes->worker = &worker->parker;
    } else {
        pool->workers++;
        wakes->start_worker = true;
    }
    pool->waking = true;
}

/* ---- a job ---- */

/* What a ready unit asks for; its node goes back. Lock held. */
static void open_unit(struct weir__worker *worker, struct weir__unit *unit)
{
    struct weir__work *work = &worker->work;
    work->job = NULL;
    if (unit->kind == WEIR__HANDLE) {
        work->job = weir__job_of((struct weir__handle *)unit);
        work->fn = work->job->fn;
        work->arg = work->job->arg;
        /* relaxed: the end is published with release, this only tells that it has not come */
        atomic_store_explicit(&unit->state, WEIR__RUNNING, memory_order_relaxed);
        return;
    }
    if (unit->kind == WEIR__COPY) {
        memcpy(worker->copy, ((struct weir__copy *)unit)->bytes, WEIR__COPY_BYTES);
        work->fn = ((struct weir__copy *)unit)->fn;
        work->arg = worker->copy;
    } else {
        work->fn = ((struct weir__plain *)unit)->fn;
        work->arg = ((struct weir__plain *)unit)->arg;
    }
    weir__node_return(worker->pool, unit);
}

/* Takes the first ready job; lock held. */
static bool take(struct weir__worker *worker)
{
    weir_pool *pool = worker->pool;
    weir_limiter *limiter = pool->limiter;
    struct weir__unit *unit = pool->ready.first;
    if (unit == NULL)
        return false;
    weir__line_remove(&pool->ready, unit);
    limiter->backlog.reserved -= unit->weight;
    limiter->in_flight += unit->weight;
    limiter->counters.granted++;
    pool->executing++;
    pool->counters.started++;
    weir__pace_begin(pool, worker);
    worker->work.weight = unit->weight;
    worker->work.partition = unit->partition;
    worker->sample.in_flight = limiter->in_flight;
    worker->stamp = unit->stamp;
    open_unit(worker, unit);
    return true;
}

/* Ends the ready jobs at the head whose deadline passed while they waited: they never run. Lock held, dropped
 * meanwhile. */
static void skip_expired(weir_pool *pool)
{
    for (;;) {
        struct weir__unit *unit = pool->ready.first;
        /* relaxed: the state changes under the lock */
        if (unit == NULL || unit->kind != WEIR__HANDLE ||
            atomic_load_explicit(&unit->state, memory_order_relaxed) != WEIR__READY_LATE)
            return;
        weir_job *job = weir__job_of((struct weir__handle *)unit);
        if (job->deadline_ns == 0 || weir_now_ns() < job->deadline_ns)
            return;
        struct weir__wakes wakes = {0};
        weir__pool_enter(pool);
        bool delivers = weir__job_end_waiting(pool, job, WEIR__EXPIRED, &wakes);
        weir__unlock(pool->limiter);
        weir__limiter_wake(pool->limiter, &wakes);
        if (delivers) {
            weir__job_deliver(job);
            weir__job_delivered(pool);
        }
        weir__lock(pool->limiter);
    }
}

/* Books the end of the worker's job; lock held, it may be dropped meanwhile. True: it has to be delivered. */
static bool finish(struct weir__worker *worker, weir_outcome outcome, uint64_t end_ns, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    struct weir__work *work = &worker->work;
    bool delivers = work->job != NULL && weir__job_has_delivery(work->job);
    weir__batch_close(worker);
    worker->sample.rtt_ns = end_ns - worker->sample.start_ns;
    worker->sample.outcome = (uint32_t)outcome;
    weir__probe_end(pool->limiter->name, (uintptr_t)work->fn, worker->sample.rtt_ns, worker->sample.outcome);
    work->fn = NULL;
    weir__limiter_count_job(pool->limiter, work->partition, worker->stamp, worker->sample.start_ns, end_ns);
    /* relaxed: only a snapshot reads it, and no other memory by it */
    atomic_store_explicit(&worker->running_since_ns, 0, memory_order_relaxed);
    weir__pace_end(pool, worker, worker->sample.rtt_ns);
    pool->executing--;
    pool->counters.ended[outcome]++;
    if (delivers)
        pool->delivering++;
    if (work->job != NULL)
        weir__job_publish(work->job, (enum weir__job_state)(WEIR__SUCCEEDED + (int)outcome), wakes);
    weir__limiter_end(pool->limiter, &worker->sample, work->partition, work->weight);
    weir__deadline_look(pool, end_ns);
    return delivers;
}

/* The delivery of an ended job, between two of its worker. Lock held, dropped meanwhile: the permits are free, so other
 * workers go on. */
static void deliver(struct weir__worker *worker, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    weir__pool_enter(pool);
    weir__limiter_dispatch(pool->limiter, wakes);
    weir__pool_send_worker(pool, wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, wakes);
    *wakes = (struct weir__wakes){0};
    weir__job_deliver(worker->work.job);
    weir__lock(pool->limiter);
    pool->delivering--;
}

/* note:cancellation -- the program may cancel the thread of a job, but only inside the job: a worker runs with
 * cancellation disabled otherwise, since the library's own work and the program's callbacks must not be cut in two. A
 * request that the job left pending ends the thread here, with the job's outcome, and never hits another job. Between
 * the jobs of a batch it stays enabled, where nothing is called that is a cancellation point. */
static void allow_cancel(bool allowed)
{
    WEIR__MUST(pthread_setcancelstate(allowed ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, NULL));
}

static weir_outcome checked(const weir_pool *pool, weir_outcome outcome)
{
    if ((unsigned)outcome <= WEIR_DROPPED)
        return outcome;
    weir__log(weir__limiter_log(pool->limiter), WEIR_LOG_WARN,
              "pool \"%s\": a job returned %d, which is no outcome; taken for WEIR_IGNORE", pool->limiter->name,
              (int)outcome);
    return WEIR_IGNORE;
}

/* Cancellation is enabled. */
static weir_outcome call(struct weir__worker *worker)
{
    worker->outcome = WEIR_IGNORE; /* what counts if the job ends its thread */
    worker->outcome = worker->work.fn(worker->work.arg);
    WEIR__MUST(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL));
    allow_cancel(true); /* the job may have switched it off */
    pthread_testcancel();
    return worker->outcome;
}

/* Before a worker gives the lock back to run a job: note:inbox. */
static void mind_inbox(weir_pool *pool, struct weir__wakes *wakes)
{
    if (weir__inbox_may_be_open(pool)) {
        if (!pool->inbox.is_open)
            weir__inbox_open(pool);
    } else if (weir__inbox_close(pool)) {
        weir__limiter_dispatch(pool->limiter, wakes);
        weir__pool_send_worker(pool, wakes);
    }
}

/* Where the log is the program's it is not called inside a job. */
static weir_outcome corrected(struct weir__worker *worker, weir_outcome outcome)
{
    allow_cancel(false);
    weir__current.worker = NULL;
    outcome = checked(worker->pool, outcome);
    weir__current.worker = worker;
    allow_cancel(true);
    return outcome;
}

/* Calls the job that take has set up, and those that were taken with it; when and how the last of them ended. */
static uint64_t run_batch(struct weir__worker *worker, weir_outcome *outcome)
{
    const weir_limiter *limiter = worker->pool->limiter;
    uint64_t now_ns = worker->sample.start_ns;
    weir__current.worker = worker;
    allow_cancel(true);
    do {
        /* relaxed: as in finish */
        atomic_store_explicit(&worker->running_since_ns, now_ns, memory_order_relaxed);
        weir__probe_start(limiter->name, (uintptr_t)worker->work.fn, worker->sample.in_flight);
        *outcome = call(worker);
        now_ns = weir_now_ns();
        if ((unsigned)*outcome > WEIR_DROPPED)
            *outcome = corrected(worker, *outcome);
    } while (weir__batch_next(worker, *outcome, now_ns));
    allow_cancel(false);
    weir__current.worker = NULL;
    return now_ns;
}

/* Runs the job that take has set up. Lock held on entry and exit, dropped meanwhile; *now_ns is the time if it is known
 * to be fresh, else 0. */
static void run(struct weir__worker *worker, uint64_t *now_ns, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    mind_inbox(pool, wakes);
    weir__batch_fill(worker);
    bool fresh = *now_ns != 0 && wakes->callers == NULL && wakes->worker == NULL && !wakes->start_worker;
    WEIR__MUST(pthread_mutex_unlock(&pool->limiter->lock));
    weir__limiter_wake(pool->limiter, wakes);
    *wakes = (struct weir__wakes){0};

    /* The end of one job is the start of the next where nothing lies between but the queue. */
    worker->sample.start_ns = worker->booked_ns = fresh ? *now_ns : weir_now_ns();
    weir_outcome outcome;
    uint64_t end_ns = run_batch(worker, &outcome);
    *now_ns = end_ns;
    if (pthread_mutex_trylock(&pool->limiter->lock) != 0) {
        weir__mutex_lock(&pool->limiter->lock);
        *now_ns = 0; /* the wait for the lock is not the next job's */
    }
    pool->looking++;
    bool delivers = finish(worker, outcome, end_ns, wakes);
    if (weir__samples_due(pool->limiter) && weir__samples_process(pool->limiter))
        *now_ns = 0;
    if (delivers) {
        pool->looking--;
        deliver(worker, wakes);
        pool->looking++;
        *now_ns = 0;
    }
    weir__batches_look(pool, end_ns);
    weir__limiter_dispatch(pool->limiter, wakes);
    if (pool->ready.length == 0 && weir__inbox_empty(pool))
        weir__limiter_dispatch(pool->limiter, wakes);
    pool->looking--;
}

/* ---- a worker's life ---- */

static bool may_leave(const weir_pool *pool)
{
    return pool->state != WEIR__OPEN && pool->ready.length == 0 && pool->limiter->partitions.queued == 0;
}

bool weir__worker_sleep(struct weir__worker *worker, uint64_t deadline_ns, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, wakes);
    *wakes = (struct weir__wakes){0};
    bool woken = weir__park(&worker->parker, deadline_ns);
    weir__lock(pool->limiter);
    if (woken)
        pool->waking = false;
    return woken;
}

/* Sleeps until there is work; false: the worker has left the pool instead. Lock held on entry and exit. */
static bool rest(struct weir__worker *worker, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    uint64_t deadline_ns = weir_after_ns(pool->limiter->config.idle_timeout);
    if (may_leave(pool))
        return false;
    push_idle(worker);
    if (pool->limiter->live != NULL)
        weir__live_note(pool->limiter, weir_now_ns(), true);
    for (;;) {
        if (weir__worker_sleep(worker, deadline_ns, wakes))
            return true;
        if (!worker->is_idle) {
            deadline_ns = WEIR_FOREVER; /* chosen in the last moment: the wake-up is on its way */
        } else if (pool->workers > pool->limiter->config.min_limit) {
            remove_idle(worker);
            return false;
        } else {
            deadline_ns = WEIR_FOREVER;
        }
    }
}

/* Jobs are ready, but the worker would be of no use: it becomes the watch, or rests. False: it has left the pool. */
static bool step_down(struct weir__worker *worker, struct weir__wakes *wakes)
{
    if (worker->pool->pace.watch == NULL && weir__pace_watch(worker, wakes))
        return true;
    return rest(worker, wakes);
}

/* Lock held, dropped if there is something to free: true. */
static bool give_memory_back(weir_pool *pool)
{
    struct weir__block *spare = weir__pool_is_empty(pool) ? weir__blocks_spare(pool) : NULL;
    if (spare == NULL)
        return false;
    pool->looking++;
    weir__unlock(pool->limiter);
    weir__blocks_free(spare);
    weir__lock(pool->limiter);
    pool->looking--;
    return true;
}

/* Whether another worker has been sent for what is ready, see note:step-aside. One that is being started may fail to.
 */
static bool may_step_aside(const struct weir__worker *worker, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    if (!has_dropped(worker))
        return false;
    if (wakes->worker == NULL && (pool->waking || (pool->idle == NULL && pool->pace.watch == NULL)))
        return false;
    weir__pool_enter(pool);
    if (wakes->worker == NULL && pool->ready.length > pool->looking) {
        wakes->worker = &weir__pool_pop_idle(pool)->parker; /* not send_worker: one that fails its jobs is no help */
        pool->waking = true;
    }
    return wakes->worker != NULL;
}

static void serve(struct weir__worker *worker, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    uint64_t now_ns = 0;
    for (;;) {
        skip_expired(pool);
        if (pool->ready.length != 0 && weir__pace_is_superfluous(pool)) {
            now_ns = 0;
            weir__pool_enter(pool);
            if (!step_down(worker, wakes))
                break;
            continue;
        }
        bool has_job = take(worker);
        if (pool->limiter->partitions.submitters != 0) { /* for one that lacks but a node, there is one now */
            weir__pool_settle(pool, wakes);
            weir__limiter_dispatch(pool->limiter, wakes);
        }
        weir__pool_send_worker(pool, wakes);
        if (has_job) {
            run(worker, &now_ns, wakes);
            if (may_step_aside(worker, wakes)) {
                now_ns = 0;
                if (!rest(worker, wakes))
                    break;
            }
            continue;
        }
        now_ns = 0;
        if (weir__pool_gather(pool)) {
            weir__limiter_dispatch(pool->limiter, wakes);
            continue;
        }
        if (weir__pool_is_empty(pool))
            weir__pool_notice(pool, wakes);
        if (give_memory_back(pool))
            continue;
        pool->looking++; /* a job that comes meanwhile needs no other worker */
        bool processed = weir__samples_process(pool->limiter);
        pool->looking--;
        if (processed)
            continue;
        if (!rest(worker, wakes))
            break;
    }
    pool->workers--;
}

void weir__pool_leave(weir_pool *pool, void *memory, struct weir__wakes *wakes)
{
    bool has_previous = pool->corpse_is_set;
    pthread_t previous = pool->corpse;
    pool->corpse = pthread_self();
    pool->corpse_is_set = true;
    pool->threads--;
    weir__pool_notice(pool, wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, wakes);
    free(memory);
    if (has_previous)
        WEIR__MUST(pthread_join(previous, NULL));
}

/* Lock held on entry, dropped for good. */
static void leave(struct weir__worker *worker, struct weir__wakes *wakes)
{
    unlist(worker);
    weir__parker_destroy(&worker->parker);
    weir__pool_leave(worker->pool, worker, wakes);
}

static void stop_hook(const weir_pool *pool)
{
    if (pool->limiter->config.on_worker_stop != NULL)
        pool->limiter->config.on_worker_stop(pool->limiter->config.hook_arg);
}

/* The job has ended its thread, by pthread_exit or because the program cancelled it: this runs as its last cleanup. */
static void ended_by_job(void *arg)
{
    struct weir__worker *worker = arg;
    weir_pool *pool = worker->pool;
    struct weir__wakes wakes = {0};
    uint64_t end_ns = weir_now_ns();
    allow_cancel(false);
    weir__lock(pool->limiter);
    pool->workers--;
    weir__current.worker = NULL;
    if (worker->work.fn == NULL)
        pool->waking = false; /* it died in on_worker_start, on its way */
    else if (finish(worker, checked(pool, worker->outcome), end_ns, &wakes))
        deliver(worker, &wakes);
    weir__limiter_dispatch(pool->limiter, &wakes);
    weir__pool_send_worker(pool, &wakes);
    weir__pool_notice(pool, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    stop_hook(pool);
    weir__current.pool = NULL;
    wakes = (struct weir__wakes){0};
    weir__lock(pool->limiter);
    leave(worker, &wakes);
}

static void *worker_main(void *arg)
{
    struct weir__worker *worker = arg;
    weir_pool *pool = worker->pool;
    struct weir__wakes wakes = {0};
    weir__current = (struct weir__current){.pool = pool, .fork_generation = weir__fork_generation()};
    allow_cancel(false);
    weir__thread_set_name(pool->limiter->name, worker->index);
    pthread_cleanup_push(ended_by_job, worker);
    if (pool->limiter->config.on_worker_start != NULL)
        pool->limiter->config.on_worker_start(pool->limiter->config.hook_arg);
    weir__lock(pool->limiter);
    pool->waking = false;
    pool->start_failed = false;
    serve(worker, &wakes);
    weir__unlock(pool->limiter);
    pthread_cleanup_pop(0);
    weir__limiter_wake(pool->limiter, &wakes);
    stop_hook(pool);
    weir__current.pool = NULL;
    wakes = (struct weir__wakes){0};
    weir__lock(pool->limiter);
    leave(worker, &wakes);
    return NULL;
}

/* ---- starting one ---- */

static int start(weir_pool *pool)
{
    struct weir__worker *worker = weir__allocate(sizeof *worker);
    if (worker == NULL)
        return ENOMEM;
    worker->pool = pool;
    weir__parker_init(&worker->parker);
    weir__lock(pool->limiter);
    enlist(worker);
    weir__unlock(pool->limiter);
    pthread_t thread;
    int error = weir__thread_start(&thread, pool->limiter->config.stack_size, worker_main, worker);
    if (error == 0)
        return 0;
    weir__lock(pool->limiter);
    unlist(worker);
    pool->threads--;
    weir__unlock(pool->limiter);
    weir__parker_destroy(&worker->parker);
    free(worker);
    return error;
}

/* Books that no thread could be started. True: there is no other worker that would look for the reserved jobs. */
static bool start_has_failed(weir_pool *pool, int error)
{
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    bool first = !pool->start_failed;
    pool->start_failed = true;
    pool->counters.start_failures++;
    pool->waking = false;
    weir__pool_notice(pool, &wakes); /* a thread less: destroy may wait for that */
    uint32_t workers = pool->workers;
    /* Those that run wait for those that are queued, and nobody is about to look. */
    bool alone = pool->executing == pool->nested_jobs && pool->looking == 0 && pool->idle_count == 0;
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    if (first)
        weir__log(weir__limiter_log(pool->limiter), WEIR_LOG_WARN,
                  "pool \"%s\": a worker could not be started (error %d); %u workers go on", pool->limiter->name, error,
                  workers);
    return alone;
}

/* Asks for a worker again; true: one is to be started. */
static bool ask_again(weir_pool *pool)
{
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    weir__pool_send_worker(pool, &wakes);
    weir__unlock(pool->limiter);
    if (wakes.worker != NULL)
        weir__unpark(wakes.worker);
    return wakes.start_worker;
}

static void start_worker(weir_pool *pool)
{
    enum { FIRST_PAUSE_NS = 1000000, LAST_PAUSE_NS = 100000000 };
    long pause_ns = FIRST_PAUSE_NS;
    for (;;) {
        int error = start(pool);
        if (error == 0)
            return;
        weir__lock(pool->limiter);
        pool->workers--;
        weir__unlock(pool->limiter);
        /* Without a thread the jobs that were admitted would be lost: whoever is here tries until there is one. */
        if (!start_has_failed(pool, error))
            return;
        int cancel = weir__cancel_forbid();
        (void)nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
        weir__cancel_restore(cancel);
        pause_ns = pause_ns * 2 < LAST_PAUSE_NS ? pause_ns * 2 : LAST_PAUSE_NS;
        if (!ask_again(pool))
            return;
    }
}

void weir__pool_after(void *owner, const struct weir__wakes *wakes)
{
    if (wakes->start_worker)
        start_worker(owner);
    if (wakes->start_keeper)
        weir__keeper_start(owner);
}

int weir__pool_first_worker(weir_pool *pool)
{
    weir_limiter *limiter = pool->limiter;
    int error = 0;
    weir__unlock(limiter);
    WEIR__MUST(pthread_mutex_lock(&pool->start_lock));
    weir__lock(limiter);
    if (pool->workers == 0 && pool->state == WEIR__OPEN) {
        pool->waking = true;
        weir__unlock(limiter);
        error = start(pool);
        if (error != 0)
            (void)start_has_failed(pool, error);
        weir__lock(limiter);
        if (error == 0)
            pool->workers++; /* only now: who sees a worker may leave a job to it */
    }
    WEIR__MUST(pthread_mutex_unlock(&pool->start_lock));
    return error;
}
