/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One pool, and everybody who uses it. */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soak.h"

enum { SUBMITTERS = 6, CALLERS = 2, JOBS = 48, MOST_LIMIT = 40 };

#define MS UINT64_C(1000000)

struct epoch {
    weir_pool *pool;
    uint16_t port;
    struct request_counts *requests;
    weir_completions *completions;
    unsigned number;
    atomic_bool over;       /* nobody begins anything more */
    atomic_bool told_all;   /* all handles are free again */
    atomic_ullong accepted; /* submits that returned 0 */
    atomic_ullong begun;    /* jobs that ran, by their outcome: */
    atomic_ullong ended[3];
    atomic_ullong cancelled; /* as their handles said */
    atomic_ullong expired;
    atomic_ullong handles; /* accepted jobs with a handle, and those whose end was told */
    atomic_ullong told;
    atomic_ullong shed;
    atomic_ullong timed_out;
    atomic_ullong refused;
    atomic_ullong permits;
    atomic_ullong pools;
};

static void rest(uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / UINT64_C(1000000000)), .tv_nsec = (long)(ns % 1000000000)};
    (void)nanosleep(&time, NULL);
}

/* ---- jobs ---- */

static _Thread_local uint64_t job_random;

/* What every job does: mostly a request, sometimes nothing, sometimes it submits another. */
static weir_outcome work(void *arg)
{
    struct epoch *epoch = arg;
    weir_outcome outcome;
    atomic_fetch_add(&epoch->begun, 1);
    if (job_random == 0)
        job_random = weir_now_ns();
    uint64_t choice = soak_random(&job_random, 16);
    if (choice == 0) {
        outcome = WEIR_IGNORE;
    } else if (choice <= 3) {
        outcome = WEIR_SUCCESS;
    } else {
        outcome = request(epoch->port, epoch->requests);
    }
    if (choice == 5) {
        int error = weir_pool_trysubmit(epoch->pool, work, epoch);
        if (error == 0)
            atomic_fetch_add(&epoch->accepted, 1);
        else if (error == EAGAIN)
            atomic_fetch_add(&epoch->shed, 1);
        else if (error != ESHUTDOWN)
            soak_fail("a submit in a job returned %d", error);
    }
    atomic_fetch_add(&epoch->ended[outcome], 1);
    return outcome;
}

static weir_outcome work_on_copy(void *arg)
{
    return work(*(struct epoch **)arg);
}

/* A job with a handle. */
struct task {
    weir_job job;
    struct epoch *epoch;
    atomic_uint state; /* 0: free, 1: on its way, then its end is told once */
};

static void tell(struct task *task)
{
    int status = weir_job_outcome(&task->job, NULL);
    struct epoch *epoch = task->epoch;
    if (status == ECANCELED)
        atomic_fetch_add(&epoch->cancelled, 1);
    else if (status == ETIMEDOUT)
        atomic_fetch_add(&epoch->expired, 1);
    else if (status != 0)
        soak_fail("a job that has ended says %d", status);
    atomic_fetch_add(&epoch->told, 1);
    if (atomic_exchange(&task->state, 0) != 1)
        soak_fail("the end of a job was told twice");
}

static void on_done(weir_job *job)
{
    tell((struct task *)(void *)((char *)job - offsetof(struct task, job)));
}

static weir_outcome work_of_task(void *arg)
{
    return work(((struct task *)arg)->epoch);
}

/* ---- submitters ---- */

/* Counts an answer; true: the job was accepted. */
static bool count_answer(struct epoch *epoch, int error)
{
    if (error == 0)
        atomic_fetch_add(&epoch->accepted, 1);
    else if (error == EAGAIN)
        atomic_fetch_add(&epoch->shed, 1);
    else if (error == ETIMEDOUT)
        atomic_fetch_add(&epoch->timed_out, 1);
    else if (error == ESHUTDOWN)
        atomic_fetch_add(&epoch->refused, 1);
    else
        soak_fail("a submit returned %d (%s)", error, weir_strerror(error));
    return error == 0;
}

static void call(struct epoch *epoch)
{
    weir_outcome outcome;
    int error = weir_pool_call(epoch->pool, work, epoch, &outcome);
    if (error == ECANCELED)
        atomic_fetch_add(&epoch->accepted, 1); /* and in the pool's count of what was cancelled */
    else
        (void)count_answer(epoch, error);
}

static void submit_plain(struct epoch *epoch, uint64_t *random)
{
    uint64_t deadline_ns = weir_after_ns(soak_random(random, 20 * MS));
    switch (soak_random(random, 5)) {
    case 0:
        (void)count_answer(epoch, weir_pool_submit(epoch->pool, work, epoch));
        break;
    case 1:
        (void)count_answer(epoch, weir_pool_trysubmit(epoch->pool, work, epoch));
        break;
    case 2:
        (void)count_answer(epoch, weir_pool_timedsubmit(epoch->pool, work, epoch, deadline_ns));
        break;
    case 3:
        (void)count_answer(epoch, weir_pool_submit_copy(epoch->pool, work_on_copy, &epoch, sizeof epoch));
        break;
    default:
        call(epoch);
        break;
    }
}

static void fill_in(struct task *task, struct epoch *epoch, uint64_t *random)
{
    static const char *const names[] = {NULL, "live", "batch"};
    memset(&task->job, 0, sizeof task->job);
    task->job = (weir_job)WEIR_JOB_INIT(work_of_task, task);
    task->epoch = epoch;
    if (epoch->number % 2 == 0)
        task->job.partition = names[soak_random(random, 3)];
    task->job.weight = soak_random(random, 8) == 0 ? 2 : 0;
    if (soak_random(random, 2) == 0)
        task->job.deadline_ns = weir_after_ns(soak_random(random, 60 * MS));
    if (soak_random(random, 2) == 0)
        task->job.on_done = on_done;
    else
        task->job.completions = epoch->completions;
}

/* The end may be told before the submit returns, so the state is set before. */
static void submit_task(struct epoch *epoch, struct task *task, uint64_t *random)
{
    fill_in(task, epoch, random);
    atomic_store(&task->state, 1);
    uint64_t how = soak_random(random, 3);
    int error = how == 0   ? weir_job_submit(epoch->pool, &task->job)
                : how == 1 ? weir_job_trysubmit(epoch->pool, &task->job)
                           : weir_job_timedsubmit(epoch->pool, &task->job, weir_after_ns(5 * MS));
    if (count_answer(epoch, error))
        atomic_fetch_add(&epoch->handles, 1);
    else
        atomic_store(&task->state, 0);
}

/* A job on the stack: its owner waits for it, or cancels it and waits. */
static void submit_and_wait(struct epoch *epoch, uint64_t *random)
{
    struct task task;
    fill_in(&task, epoch, random);
    task.job.on_done = NULL;
    task.job.completions = NULL;
    atomic_init(&task.state, 1);
    if (!count_answer(epoch, weir_job_submit(epoch->pool, &task.job)))
        return;
    atomic_fetch_add(&epoch->handles, 1);
    if (soak_random(random, 2) == 0) {
        int error = weir_job_cancel(&task.job);
        if (error != 0 && error != EBUSY && error != EALREADY)
            soak_fail("cancel returned %d", error);
    }
    int status = weir_job_wait(&task.job, WEIR_FOREVER);
    if (status != 0 && status != ECANCELED && status != ETIMEDOUT)
        soak_fail("wait returned %d", status);
    tell(&task);
}

static void *submit(void *arg)
{
    static atomic_uint turn;
    struct epoch *epoch = arg;
    struct task *tasks = calloc(JOBS, sizeof *tasks);
    uint64_t random = weir_now_ns() + atomic_fetch_add(&turn, 1);
    if (tasks == NULL)
        soak_fail("no memory");
    while (!atomic_load(&epoch->over)) {
        struct task *task = &tasks[soak_random(&random, JOBS)];
        uint64_t choice = soak_random(&random, 8);
        if (choice < 3)
            submit_plain(epoch, &random);
        else if (choice == 3)
            submit_and_wait(epoch, &random);
        else if (atomic_load(&task->state) == 0)
            submit_task(epoch, task, &random);
        else if (choice == 4 && task->job.completions != NULL)
            (void)weir_job_cancel(&task->job); /* its memory is ours until it is free, and only we fill it in */
        else
            rest(MS / 5);
    }
    for (unsigned i = 0; i < JOBS; i++) {
        while (atomic_load(&tasks[i].state) != 0)
            rest(MS);
    }
    free(tasks);
    return NULL;
}

/* ---- others ---- */

static void *take_completions(void *arg)
{
    struct epoch *epoch = arg;
    for (;;) {
        bool over = atomic_load(&epoch->told_all);
        weir_job *job = weir_completions_next(epoch->completions);
        if (job != NULL)
            on_done(job);
        else if (over)
            return NULL;
        else
            rest(MS / 2);
    }
}

static void *call_directly(void *arg)
{
    struct epoch *epoch = arg;
    weir_limiter *limiter = weir_pool_limiter(epoch->pool);
    uint64_t random = weir_now_ns();
    while (!atomic_load(&epoch->over)) {
        weir_permit permit = {0};
        int error = weir_limiter_timedacquire(limiter, &permit, weir_after_ns(soak_random(&random, 10 * MS)));
        if (error == 0) {
            rest(MS / 2);
            error = weir_limiter_release(limiter, &permit, WEIR_SUCCESS);
            atomic_fetch_add(&epoch->permits, 1);
        }
        if (error != 0 && error != ETIMEDOUT)
            soak_fail("a direct caller got %d", error);
        rest(5 * MS);
    }
    return NULL;
}

static void *disturb(void *arg)
{
    struct epoch *epoch = arg;
    weir_limiter *limiter = weir_pool_limiter(epoch->pool);
    uint64_t random = weir_now_ns();
    while (!atomic_load(&epoch->over)) {
        weir_stats stats = {.size = sizeof stats};
        (void)weir_pool_pause(epoch->pool);
        rest(soak_random(&random, 3 * MS));
        (void)weir_pool_resume(epoch->pool);
        if (soak_random(&random, 4) == 0) {
            (void)weir_limiter_freeze(limiter);
            rest(soak_random(&random, 20 * MS));
            (void)weir_limiter_thaw(limiter);
        }
        (void)weir_pool_drain(epoch->pool, weir_after_ns(MS));
        if (weir_pool_stats(epoch->pool, &stats) != 0)
            soak_fail("no figures");
        uint64_t accounted = stats.queued + (uint64_t)stats.running + stats.succeeded + stats.ignored + stats.dropped +
                             stats.expired + stats.cancelled;
        if (accounted != stats.submitted)
            soak_fail("a snapshot has %llu jobs of %llu", (unsigned long long)accounted,
                      (unsigned long long)stats.submitted);
        rest(20 * MS + soak_random(&random, 50 * MS));
    }
    return NULL;
}

static weir_outcome count_up(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
    return WEIR_SUCCESS;
}

/* Pools that come and go, each with a few jobs. */
static void *churn(void *arg)
{
    struct epoch *epoch = arg;
    uint64_t random = weir_now_ns();
    while (!atomic_load(&epoch->over)) {
        weir_config config;
        weir_pool *pool = NULL;
        weir_stats stats = {.size = sizeof stats};
        atomic_uint ran = 0;
        unsigned accepted = 0;
        (void)weir_config_init(&config);
        config.initial_limit = 1 + (uint32_t)soak_random(&random, 4);
        int error = weir_pool_create(&pool, "churn", &config);
        if (error != 0)
            soak_fail("a small pool: %d", error);
        for (uint64_t i = soak_random(&random, 40); i > 0; i--)
            accepted += weir_pool_trysubmit(pool, count_up, &ran) == 0;
        weir_shutdown how = soak_random(&random, 2) == 0 ? WEIR_CANCEL : WEIR_FINISH;
        if (weir_pool_shutdown(pool, how, WEIR_FOREVER) != 0 || weir_pool_stats(pool, &stats) != 0)
            soak_fail("a small pool does not end");
        if (stats.submitted != accepted || stats.succeeded != atomic_load(&ran) ||
            stats.succeeded + stats.cancelled != accepted || (how == WEIR_FINISH && stats.cancelled != 0))
            soak_fail("a small pool lost a job: %u accepted, %u ran, %llu cancelled", accepted, atomic_load(&ran),
                      (unsigned long long)stats.cancelled);
        if (weir_pool_destroy(pool) != 0)
            soak_fail("a small pool cannot be destroyed");
        atomic_fetch_add(&epoch->pools, 1);
        rest(10 * MS);
    }
    return NULL;
}

/* ---- the end ---- */

static void same(const char *what, uint64_t counted, uint64_t told)
{
    if (counted != told)
        soak_fail("%s: %llu were counted, the pool says %llu", what, (unsigned long long)counted,
                  (unsigned long long)told);
}

static void reconcile(struct epoch *epoch, struct totals *totals)
{
    weir_stats stats = {.size = sizeof stats};
    if (weir_pool_stats(epoch->pool, &stats) != 0)
        soak_fail("no figures at the end");
    same("submitted", atomic_load(&epoch->accepted), stats.submitted);
    same("begun", atomic_load(&epoch->begun), stats.started);
    same("succeeded", atomic_load(&epoch->ended[WEIR_SUCCESS]), stats.succeeded);
    same("ignored", atomic_load(&epoch->ended[WEIR_IGNORE]), stats.ignored);
    same("dropped", atomic_load(&epoch->ended[WEIR_DROPPED]), stats.dropped);
    same("expired", atomic_load(&epoch->expired), stats.expired);
    same("shed", atomic_load(&epoch->shed), stats.shed);
    same("timed out", atomic_load(&epoch->timed_out), stats.timed_out);
    same("handles", atomic_load(&epoch->handles), atomic_load(&epoch->told));
    same("all", stats.submitted, stats.succeeded + stats.ignored + stats.dropped + stats.expired + stats.cancelled);
    if (atomic_load(&epoch->cancelled) > stats.cancelled || stats.running + stats.queued + stats.in_flight != 0)
        soak_fail("at the end jobs or permits are left");
    totals->jobs += stats.submitted;
    totals->succeeded += stats.succeeded;
    totals->ignored += stats.ignored;
    totals->dropped += stats.dropped;
    totals->cancelled += stats.cancelled;
    totals->expired += stats.expired;
    totals->shed += stats.shed;
    totals->timed_out += stats.timed_out;
    totals->refused += atomic_load(&epoch->refused);
    totals->permits += atomic_load(&epoch->permits);
    totals->pools += atomic_load(&epoch->pools);
}

/* Every third epoch ends in the middle of everything, the others when all is done. */
static void end_pool(struct epoch *epoch)
{
    weir_shutdown how = epoch->number % 3 == 2 ? WEIR_CANCEL : WEIR_FINISH;
    if (epoch->number % 3 == 0)
        atomic_store(&epoch->over, true);
    int error = weir_pool_shutdown(epoch->pool, how, weir_after_ns(60000 * MS));
    if (error != 0)
        soak_fail("the pool does not end: %d", error);
    atomic_store(&epoch->over, true);
}

static void watch(double seconds, struct totals *totals)
{
    uint64_t end_ns = weir_after_ns((uint64_t)(seconds * 1e9));
    while (weir_now_ns() < end_ns) {
        unsigned threads = process_threads();
        if (threads > totals->most_threads)
            totals->most_threads = threads;
        rest(100 * MS);
    }
}

static void create(struct epoch *epoch)
{
    weir_config config;
    (void)weir_config_init(&config);
    config.max_limit = MOST_LIMIT;
    config.initial_limit = 4;
    config.idle_timeout = 200 * MS;
    if (epoch->number % 2 == 0)
        config.partitions = "live=0.5,batch=0.25";
    if (epoch->number % 4 == 3)
        config.stats_dir = getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp";
    int error = weir_pool_create(&epoch->pool, "soak", &config);
    if (error == 0)
        error = weir_completions_create(&epoch->completions);
    if (error != 0)
        soak_fail("no pool: %d", error);
}

void epoch_run(uint16_t port, struct request_counts *counts, unsigned number, double seconds, struct totals *totals)
{
    struct epoch epoch = {.port = port, .requests = counts, .number = number};
    pthread_t threads[SUBMITTERS + CALLERS + 3];
    unsigned count = 0;
    void *(*const runs[])(void *) = {take_completions, disturb, churn, call_directly, call_directly};
    create(&epoch);
    for (; count < sizeof threads / sizeof threads[0]; count++) {
        void *(*run)(void *) = count < sizeof runs / sizeof runs[0] ? runs[count] : submit;
        if (pthread_create(&threads[count], NULL, run, &epoch) != 0)
            soak_fail("no thread");
    }
    watch(seconds, totals);
    end_pool(&epoch);
    for (unsigned i = 1; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    atomic_store(&epoch.told_all, true);
    (void)pthread_join(threads[0], NULL);
    if (weir_pool_shutdown(epoch.pool, WEIR_FINISH, weir_after_ns(60000 * MS)) != 0)
        soak_fail("the pool has not ended");
    reconcile(&epoch, totals);
    if (weir_pool_destroy(epoch.pool) != 0)
        soak_fail("the pool cannot be destroyed");
    weir_completions_destroy(epoch.completions);
}
