/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "pool/pool.h"

/* How many workers are of use, and who notices when that was wrong.
 *
 * note:useful -- jobs pass one lock, so with jobs of duration d and a serial part c no more than 1 + d/c workers can be
 * kept busy: one more only waits for the others (the saturation point of a closed system; P. Denning and J. Buzen, "The
 * Operational Analysis of Queueing Network Models", 1978). Waking it costs more than it brings, which is why pools of
 * 64 threads are slower at short jobs than pools of one. So a further worker is woken only below that number.
 *
 * note:watch -- d is a guess about jobs that have not ended. While work waits for the sake of that guess, one idle
 * worker is the watch: it sleeps for WATCH_NS at a time, and a job that has been running at two of its looks counts as
 * no help any more. When there are fewer helping workers than are of use, the watch goes to work itself, and the chain
 * goes on from there. It leaves its post when nothing has waited for a worker at two looks: an idle pool is idle. */

#define WATCH_NS  UINT64_C(100000)
#define SERIAL_NS UINT64_C(250)
#define LEAST_NS  UINT64_C(1000)    /* what an outlier counts for at least */
#define MOST_NS   UINT64_C(1000000) /* and at most: a later change is noticed sooner */
#define SHORT_NS  UINT64_C(10000)   /* twice what it takes to wake a thread */
enum { SMOOTHING = 8, OUTLIER = 4 };

void weir__pace_init(struct weir__pace *pace)
{
    pace->job_ns = MOST_NS; /* until jobs are known to be short they are taken for long */
}

static void learn(struct weir__pace *pace, uint64_t ns)
{
    if (ns > MOST_NS)
        ns = MOST_NS;
    pace->job_ns = pace->job_ns - pace->job_ns / SMOOTHING + ns / SMOOTHING;
}

void weir__pace_begin(weir_pool *pool, struct weir__worker *worker)
{
    worker->period = pool->pace.period;
    pool->pace.fresh[0]++;
}

/* The worker's job is no help to those that wait. */
static void leave_fresh(struct weir__pace *pace, const struct weir__worker *worker)
{
    unsigned age = pace->period - worker->period;
    if (age < 2)
        pace->fresh[age]--;
}

void weir__pace_block(weir_pool *pool, struct weir__worker *worker)
{
    leave_fresh(&pool->pace, worker);
    worker->period = pool->pace.period - 2;
}

void weir__pace_learn(struct weir__pace *pace, uint64_t ns)
{
    uint64_t most = pace->job_ns * OUTLIER + LEAST_NS; /* one job that was interrupted says nothing about the others */
    learn(pace, ns < most ? ns : most);
}

void weir__pace_end(weir_pool *pool, struct weir__worker *worker, uint64_t ns)
{
    leave_fresh(&pool->pace, worker);
    weir__pace_learn(&pool->pace, ns);
}

uint32_t weir__pace_helping(const weir_pool *pool)
{
    return pool->pace.fresh[0] + pool->pace.fresh[1] + pool->looking;
}

static uint64_t useful(const struct weir__pace *pace)
{
    return 1 + pace->job_ns / SERIAL_NS;
}

bool weir__pace_is_short(const weir_pool *pool)
{
    return pool->pace.job_ns < SHORT_NS;
}

bool weir__pace_suffices(const weir_pool *pool)
{
    return pool->pace.watch != NULL && weir__pace_helping(pool) >= useful(&pool->pace);
}

bool weir__pace_is_superfluous(const weir_pool *pool)
{
    uint64_t most = useful(&pool->pace);
    if (pool->pace.watch != NULL)
        most += most / 2; /* who is awake stays awake a little longer: waking costs more */
    return weir__pace_helping(pool) >= most;
}

/* One look; true: the watch is needed as a worker. */
static bool look(weir_pool *pool, bool *quiet)
{
    struct weir__pace *pace = &pool->pace;
    uint32_t stale = pace->fresh[1];
    pace->fresh[1] = pace->fresh[0];
    pace->fresh[0] = 0;
    pace->period++;
    *quiet = pool->ready.length == 0; /* those in line lack permits, not workers */
    if (pool->ready.length <= pool->looking)
        return false;
    for (uint32_t i = 0; i < stale && pace->job_ns < WATCH_NS; i++)
        learn(pace, MOST_NS);
    return !pool->waking && weir__pace_helping(pool) < useful(pace);
}

bool weir__pace_watch(struct weir__worker *worker, struct weir__wakes *wakes)
{
    weir_pool *pool = worker->pool;
    bool was_quiet = false;
    pool->pace.watch = worker;
    pool->idle_count++;
    uint64_t deadline_ns = weir_after_ns(WATCH_NS);
    for (;;) {
        if (weir__worker_sleep(worker, deadline_ns, wakes))
            return true;
        if (pool->pace.watch != worker) { /* chosen in the last moment: the wake-up is on its way */
            deadline_ns = WEIR_FOREVER;
            continue;
        }
        bool quiet = false;
        bool is_needed = look(pool, &quiet);
        if (is_needed || (quiet && was_quiet)) {
            weir__pace_relieve(pool);
            return is_needed;
        }
        was_quiet = quiet;
        deadline_ns = weir_after_ns(WATCH_NS);
    }
}

struct weir__worker *weir__pace_relieve(weir_pool *pool)
{
    struct weir__worker *watch = pool->pace.watch;
    if (watch != NULL) {
        pool->pace.watch = NULL;
        pool->idle_count--;
    }
    return watch;
}
