/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "pool/pool.h"

/* Jobs with deadlines: shed at submit where they would start too late, dropped from the queue when their time has come,
 * and served newest first while a queue stands.
 *
 * note:keeper -- a thread that sleeps until the next deadline and ends the jobs whose deadline has passed. It is
 * started by the first job with a deadline that has to wait, and leaves when there has been none for IDLE_TIMEOUT.
 * Without it (it could not be started) an expired job is found when its turn comes. */

uint64_t weir__job_due_ns(const struct weir__timer *timer)
{
    const char *handle = (const char *)timer - offsetof(struct weir__handle, timer);
    return ((const weir_job *)(const void *)(handle - offsetof(weir_job, opaque)))->deadline_ns;
}

void weir__deadline_add(weir_pool *pool, struct weir__handle *handle, struct weir__wakes *wakes)
{
    uint64_t due_ns = weir__job_of(handle)->deadline_ns;
    if (due_ns == 0 || due_ns == WEIR_FOREVER)
        return;
    weir__wheel_add(&pool->deadlines, &handle->timer);
    if (pool->keeper.exists) {
        if (due_ns < pool->keeper.wake_ns)
            wakes->keeper = &pool->keeper.parker;
    } else if (!pool->keeper.starting) {
        pool->keeper.starting = true;
        wakes->start_keeper = true;
    }
}

void weir__deadline_remove(weir_pool *pool, struct weir__handle *handle)
{
    weir__wheel_remove(&pool->deadlines, &handle->timer);
}

bool weir__deadline_is_hopeless(weir_pool *pool, uint64_t deadline_ns)
{
    const weir_limiter *limiter = pool->limiter;
    if (deadline_ns == WEIR_FOREVER)
        return false;
    uint64_t now_ns = weir_now_ns();
    if (deadline_ns <= now_ns)
        return true;
    weir__pool_note_patience(pool, deadline_ns - now_ns);
    if (limiter->rtt_mean_ns <= 0 || limiter->backlog.held || pool->standing.newest_first)
        return false; /* nothing is known yet, or the order of the queue says nothing about the wait */
    return weir__wait_is_hopeless(limiter->partitions.queued, limiter->rtt_mean_ns, weir__limiter_ceiling(limiter),
                                  deadline_ns - now_ns);
}

/* ---- a queue that stands ---- */

void weir__deadline_watch_queue(weir_pool *pool)
{
    weir__standing_watch(&pool->standing, pool->limiter->partitions.queued);
}

void weir__deadline_look(weir_pool *pool, uint64_t now_ns)
{
    const weir_limiter *limiter = pool->limiter;
    weir__standing_look(&pool->standing, now_ns, limiter->reaction_ns, limiter->partitions.queued,
                        weir__limiter_ceiling(limiter));
}

struct weir__unit *weir__deadline_choose(weir_pool *pool, struct weir__unit *first)
{
    enum { MOST_STEPS = 16 }; /* submitters and callers stand at the end of a line */
    if (!pool->standing.newest_first || pool->deadlines.count == 0) /* none of those that wait has a deadline */
        return first;
    struct weir__unit *unit = pool->limiter->partitions.all[first->partition].line.last;
    for (int step = 0; unit != NULL && step < MOST_STEPS; step++, unit = unit->previous) {
        if (unit->kind == WEIR__HANDLE && weir__job_of((struct weir__handle *)unit)->deadline_ns != 0 &&
            weir__limiter_fits(pool->limiter, unit->weight))
            return unit;
    }
    return first;
}

/* ---- the keeper ---- */

/* Ends the jobs that are due, one at a time: what on_done does is not the lock's business. Lock held, dropped
 * meanwhile. */
static void expire(weir_pool *pool, uint64_t now_ns)
{
    struct weir__timer *timer;
    while ((timer = weir__wheel_expire(&pool->deadlines, now_ns)) != NULL) {
        struct weir__handle *handle =
            (struct weir__handle *)(void *)((char *)timer - offsetof(struct weir__handle, timer));
        struct weir__wakes wakes = {0};
        weir_job *job = weir__job_of(handle);
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

/* With jobs that wait the keeper looks no more often than this for what their deadlines do not tell, however short
 * IDLE_TIMEOUT is. */
#define LEAST_LOOK_NS UINT64_C(10000000)

static void *keep(void *arg)
{
    weir_pool *pool = arg;
    struct weir__keeper *keeper = &pool->keeper;
    struct weir__wakes wakes = {0};
    weir__current = (struct weir__current){.pool = pool, .fork_generation = weir__fork_generation()};
    WEIR__MUST(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL)); /* on_done must not be cut in two */
    weir__thread_set_name(pool->limiter->name, 0);
    weir__lock(pool->limiter);
    keeper->exists = true;
    keeper->starting = false;
    bool was_empty = false;
    for (;;) {
        expire(pool, weir_now_ns());
        bool empty = pool->deadlines.count == 0;
        if (empty && (pool->state != WEIR__OPEN || was_empty))
            break;
        /* A job that starts, or is cancelled, wakes nobody here, so a far deadline is no reason to sleep on. */
        uint64_t next_ns = weir__wheel_next_ns(&pool->deadlines);
        uint64_t idle_ns = pool->limiter->config.idle_timeout;
        keeper->wake_ns = weir_after_ns(empty || idle_ns > LEAST_LOOK_NS ? idle_ns : LEAST_LOOK_NS);
        if (next_ns < keeper->wake_ns)
            keeper->wake_ns = next_ns;
        uint64_t wake_ns = keeper->wake_ns;
        weir__unlock(pool->limiter);
        bool woken = weir__park(&keeper->parker, wake_ns);
        weir__lock(pool->limiter);
        was_empty = empty && !woken;
    }
    keeper->exists = false;
    weir__current.pool = NULL;
    weir__pool_leave(pool, NULL, &wakes);
    return NULL;
}

void weir__keeper_start(weir_pool *pool)
{
    pthread_t thread;
    weir__lock(pool->limiter);
    pool->threads++;
    weir__unlock(pool->limiter);
    if (weir__thread_start(&thread, pool->limiter->config.stack_size, keep, pool) == 0)
        return;
    struct weir__wakes wakes = {0};
    weir__lock(pool->limiter);
    pool->threads--;
    pool->keeper.starting = false; /* the next job with a deadline tries again */
    pool->counters.start_failures++;
    weir__pool_notice(pool, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
    weir__log(weir__limiter_log(pool->limiter), WEIR_LOG_WARN,
              "pool \"%s\": the thread that minds deadlines could not be started; expired jobs are found in their turn",
              pool->limiter->name);
}
