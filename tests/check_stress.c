/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A million jobs while the limit moves, each snapshot of the figures checked against the promises of <weir/stats.h>.
 * WEIR_TEST_SLOW divides the numbers of jobs. */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "pool_support.h"

enum { SUBMITTERS = 8, MOST = 24 };

/* ---- an estimator that wanders: another limit after every sample ---- */

struct wander {
    uint64_t random;
    uint32_t limit;
};

static int start_wandering(void *state, const struct weir_config *config)
{
    struct wander *wander = state;
    wander->random = 42;
    wander->limit = config->initial_limit;
    return 0;
}

static uint32_t wander_on(void *state, const weir_sample *sample)
{
    struct wander *wander = state;
    (void)sample;
    uint32_t step = 1 + (uint32_t)(weir_test_random(&wander->random) % (MOST - 1));
    wander->limit = (wander->limit - 1 + step) % MOST + 1;
    return wander->limit;
}

/* Long enough that an automatic depth follows the limit. */
static uint64_t react(const void *state)
{
    (void)state;
    return 3000000;
}

static const weir_estimator_class wandering = {
    .name = "wandering",
    .state_size = sizeof(struct wander),
    .init = start_wandering,
    .update = wander_on,
    .reaction_ns = react,
};

/* ---- the storm: submitters, jobs, and the limits there have been ---- */

struct storm {
    weir_pool *pool;
    unsigned jobs;
    atomic_uchar *ran;      /* per job: how often it ran */
    uint8_t *limits;        /* per change: the limit from then on; written by the trace, read below `changes` */
    uint32_t *depths;       /* per change: the depth from then on */
    atomic_uint changes;    /* release: publishes limits and depths */
    atomic_uint next;       /* job to be submitted */
    atomic_uint submitting; /* submitters at work */
    atomic_uint faults;     /* unexpected errors, events out of order */
};

struct storm_job {
    struct storm *storm;
    unsigned number;
};

static void note_change(const weir_trace_event *event, void *arg)
{
    struct storm *storm = arg;
    unsigned change = atomic_load_explicit(&storm->changes, memory_order_relaxed) + 1;
    if (change > storm->jobs || event->old_limit != storm->limits[change - 1]) {
        atomic_fetch_add(&storm->faults, 1);
        return;
    }
    storm->limits[change] = (uint8_t)event->new_limit;
    storm->depths[change] = event->queue_depth;
    atomic_store_explicit(&storm->changes, change, memory_order_release);
}

static weir_outcome run_storm_job(void *arg)
{
    struct storm_job job = *(struct storm_job *)arg;
    atomic_fetch_add_explicit(&job.storm->ran[job.number], 1, memory_order_relaxed);
    if (job.number % 64 == 0)
        (void)sched_yield();
    return job.number % 16 == 0 ? WEIR_IGNORE : job.number % 16 == 1 ? WEIR_DROPPED : WEIR_SUCCESS;
}

/* A large copy now and then; two kinds that may be refused are tried first. */
static int submit_storm_job(const struct storm_job *job)
{
    char large[64] = {0};
    weir_pool *pool = job->storm->pool;
    memcpy(large, job, sizeof *job);
    if (job->number % 8 == 0)
        return weir_pool_submit_copy(pool, run_storm_job, large, sizeof large);
    if (job->number % 64 == 1)
        return weir_pool_call(pool, run_storm_job, large, NULL);
    return weir_pool_submit_copy(pool, run_storm_job, job, sizeof *job);
}

static void *submit_storm(void *arg)
{
    struct storm *storm = arg;
    struct storm_job job = {.storm = storm};
    while ((job.number = atomic_fetch_add(&storm->next, 1)) < storm->jobs) {
        if (submit_storm_job(&job) != 0)
            atomic_fetch_add(&storm->faults, 1);
    }
    atomic_fetch_sub(&storm->submitting, 1);
    return NULL;
}

/* ---- the observer ---- */

/* The highest limit and depth in force at any time from one snapshot to the next. */
static void highest(struct storm *storm, const weir_stats *from, const weir_stats *to, uint32_t *limit, uint32_t *depth)
{
    /* The trace of a change comes a moment after the change itself. */
    while (atomic_load_explicit(&storm->changes, memory_order_acquire) < to->limit_changes)
        weir_test_yield();
    *limit = 0;
    *depth = from->queue_depth > to->queue_depth ? from->queue_depth : to->queue_depth;
    for (uint64_t change = from->limit_changes; change <= to->limit_changes; change++) {
        if (storm->limits[change] > *limit)
            *limit = storm->limits[change];
        if (storm->depths[change] > *depth)
            *depth = storm->depths[change];
    }
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* What may not be: more running than a limit allowed, unless they ran before; likewise queued; a job not accounted. */
static void check_snapshot(struct storm *storm, const weir_stats *before, const weir_stats *now)
{
    uint32_t limit;
    uint32_t depth;
    highest(storm, before, now, &limit, &depth);
    if (storm->limits[now->limit_changes] != now->limit)
        ck_abort_msg("limit %u after change %llu", now->limit, (unsigned long long)now->limit_changes);
    if (now->running > greater(before->running, limit))
        ck_abort_msg("%u run, %u before, limit at most %u", now->running, before->running, limit);
    if (now->in_flight > greater(before->in_flight, limit))
        ck_abort_msg("%u in flight, %u before, limit at most %u", now->in_flight, before->in_flight, limit);
    if (now->queued > greater(before->queued, depth))
        ck_abort_msg("%u queued, %u before, depth at most %u", now->queued, before->queued, depth);
    if (weir_test_accounted(now) != now->submitted)
        ck_abort_msg("%llu submitted, %llu accounted for", (unsigned long long)now->submitted,
                     (unsigned long long)weir_test_accounted(now));
    if (now->workers > MOST || now->idle > now->workers)
        ck_abort_msg("%u workers, %u idle", now->workers, now->idle);
}

static void observe(struct storm *storm)
{
    unsigned snapshots = 0;
    weir_stats before = weir_test_stats(storm->pool);
    do { /* at least once, be the storm over before this thread has its turn */
        weir_stats now = weir_test_stats(storm->pool);
        check_snapshot(storm, &before, &now);
        before = now;
        if (++snapshots % 4 == 0)
            weir_test_yield();
    } while (atomic_load(&storm->submitting) > 0 || before.succeeded + before.ignored + before.dropped < storm->jobs);
}

static void begin_storm(struct storm *storm, unsigned jobs, uint32_t depth)
{
    weir_config config = weir_test_fixed(4, depth);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &wandering;
    config.max_limit = MOST;
    config.trace = note_change;
    config.trace_arg = storm;
    *storm = (struct storm){.jobs = jobs};
    storm->ran = calloc(jobs, sizeof *storm->ran);
    storm->limits = calloc(jobs + 1, sizeof *storm->limits);
    storm->depths = calloc(jobs + 1, sizeof *storm->depths);
    if (storm->ran == NULL || storm->limits == NULL || storm->depths == NULL)
        ck_abort_msg("no memory for the test");
    storm->pool = weir_test_pool_of(&config);
    weir_stats stats = weir_test_stats(storm->pool);
    storm->limits[0] = (uint8_t)stats.limit;
    storm->depths[0] = stats.queue_depth;
    atomic_store(&storm->submitting, SUBMITTERS);
}

static void end_storm(struct storm *storm)
{
    ck_assert_int_eq(weir_pool_drain(storm->pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(storm->pool);
    ck_assert_uint_eq(stats.submitted, storm->jobs);
    ck_assert_uint_eq(stats.started, storm->jobs);
    ck_assert_uint_eq(stats.running + stats.queued + stats.in_flight + stats.waiting, 0);
    ck_assert_uint_eq(stats.shed + stats.timed_out + stats.cancelled + stats.worker_start_failures, 0);
    ck_assert_int_eq(weir_limiter_stats(weir_pool_limiter(storm->pool), &stats), 0);
    ck_assert_uint_eq(stats.submitted, stats.succeeded + stats.ignored + stats.dropped);
    weir_test_pool_end(storm->pool);
    ck_assert_uint_eq(atomic_load(&storm->faults), 0);
    for (unsigned i = 0; i < storm->jobs; i++) {
        if (atomic_load(&storm->ran[i]) != 1)
            ck_abort_msg("job %u ran %u times", i, (unsigned)atomic_load(&storm->ran[i]));
    }
    free(storm->ran);
    free(storm->limits);
    free(storm->depths);
}

static void run_storm(unsigned jobs, uint32_t depth)
{
    struct storm storm;
    pthread_t threads[SUBMITTERS];
    begin_storm(&storm, weir_test_scaled(jobs, 1000), depth);
    for (int i = 0; i < SUBMITTERS; i++)
        threads[i] = weir_test_thread(submit_storm, &storm);
    observe(&storm);
    for (int i = 0; i < SUBMITTERS; i++)
        (void)weir_test_join(threads[i]);
    end_storm(&storm);
}

/* 10^6 jobs of 8 submitters while every sample moves the limit: each ran once, nothing leaked, every snapshot is true.
 */
START_TEST(million_jobs)
{
    run_storm(1000000, 64);
}
END_TEST

/* The same with a depth that follows the limit, and without a queue. */
START_TEST(moving_depth)
{
    run_storm(200000, WEIR_QUEUE_AUTO);
}
END_TEST

START_TEST(no_depth)
{
    run_storm(200000, 0);
}
END_TEST

/* ---- calls inside of jobs while the limit falls ---- */

struct nesting {
    weir_pool *pool;
    atomic_uint accepted;
    atomic_uint ran;
    atomic_uint faults;
};

struct nested {
    struct nesting *nesting;
    unsigned levels;
};

static weir_outcome run_nested(void *arg)
{
    struct nested inner = *(struct nested *)arg;
    struct nesting *nesting = inner.nesting;
    atomic_fetch_add(&nesting->ran, 1);
    if (inner.levels-- == 0)
        return WEIR_SUCCESS;
    weir_outcome outcome = WEIR_DROPPED;
    int error = weir_pool_call(nesting->pool, run_nested, &inner, &outcome);
    atomic_fetch_add(&nesting->accepted, error == 0);
    if ((error != 0 && error != EDEADLK) || (error == 0 && outcome != WEIR_SUCCESS))
        atomic_fetch_add(&nesting->faults, 1);
    return WEIR_SUCCESS;
}

/* However the limit moves, jobs that wait for jobs never bring the pool to a halt. */
START_TEST(nested_calls)
{
    unsigned jobs = weir_test_scaled(40000, 400);
    struct nesting nesting = {.accepted = 0};
    weir_config config = weir_test_fixed(4, 32);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &wandering;
    config.max_limit = MOST;
    nesting.pool = weir_test_pool_of(&config);
    for (unsigned i = 0; i < jobs; i++) {
        struct nested nested = {.nesting = &nesting, .levels = i % 5};
        if (weir_pool_submit_copy(nesting.pool, run_nested, &nested, sizeof nested) != 0)
            ck_abort_msg("submit %u", i);
    }
    ck_assert_int_eq(weir_pool_drain(nesting.pool, WEIR_FOREVER), 0);
    weir_test_pool_end(nesting.pool);
    ck_assert_uint_eq(atomic_load(&nesting.faults), 0);
    ck_assert_uint_eq(atomic_load(&nesting.ran), atomic_load(&nesting.accepted) + jobs);
}
END_TEST

/* ---- two callers in turn ---- */

static void *call_often(void *arg)
{
    unsigned calls = weir_test_rounds(30000, 300);
    unsigned failed = 0;
    for (unsigned i = 0; i < calls; i++)
        failed += weir_pool_call(arg, weir_test_nothing, NULL, NULL) != 0;
    return failed == 0 ? arg : NULL;
}

/* Hand-over from an almost idle pool and back, again and again: no wake-up is lost. */
START_TEST(hand_over)
{
    weir_pool *pool = weir_test_pool((uint32_t)_i, 4);
    pthread_t threads[2] = {weir_test_thread(call_often, pool), weir_test_thread(call_often, pool)};
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_eq(weir_test_join(threads[i]), pool);
    weir_test_pool_end(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stress");
    TCase *tests = tcase_create("stress");
    tcase_set_timeout(tests, 4 * TEST_LIMIT_S);
    tcase_add_test(tests, million_jobs);
    tcase_add_test(tests, moving_depth);
    tcase_add_test(tests, no_depth);
    tcase_add_test(tests, nested_calls);
    tcase_add_loop_test(tests, hand_over, 1, 4);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
