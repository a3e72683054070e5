/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs with deadlines. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handle_support.h"
#include "pool/pool.h"

#define SECOND_NS UINT64_C(1000000000)

static void prepare(struct weir_test_counted *counted, uint64_t deadline_ns)
{
    weir_test_counted_init(counted, weir_test_count_done);
    counted->job.deadline_ns = deadline_ns;
}

static void pass_deadline(uint64_t deadline_ns)
{
    WEIR_TEST_UNTIL(weir_now_ns() >= deadline_ns);
}

/* ---- at submit ---- */

/* A job that can start at once is accepted whatever its deadline, and runs. */
START_TEST(test_passed_deadline_runs_at_once)
{
    weir_pool *pool = weir_test_plain_pool(1, 0);
    int (*const submits[])(weir_pool *, weir_job *) = {weir_job_submit, weir_job_trysubmit};
    for (int i = 0; i < 2; i++) {
        struct weir_test_counted counted;
        prepare(&counted, 1);
        ck_assert_int_eq(submits[i](pool, &counted.job), 0);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
        ck_assert_uint_eq(atomic_load(&counted.ran), 1);
        ck_assert_int_eq(atomic_load(&counted.status), 0);
    }
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* One that would have to wait beyond a passed deadline is refused, by each of the submits, and only counted. */
START_TEST(test_passed_deadline_is_shed)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_test_full_init(&full, 1, 10);
    prepare(&counted, weir_now_ns());
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), ETIMEDOUT);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &counted.job), ETIMEDOUT);
    ck_assert_int_eq(weir_job_timedsubmit(full.pool, &counted.job, WEIR_FOREVER), ETIMEDOUT);
    weir_stats stats = weir_test_snapshot(full.pool);
    ck_assert_uint_eq(stats.timed_out, 3);
    ck_assert_uint_eq(stats.submitted, 1);
    ck_assert_uint_eq(stats.expired + stats.shed, 0);
    weir_test_full_end(&full);
    ck_assert_uint_eq(atomic_load(&counted.ran) + atomic_load(&counted.done), 0);
}
END_TEST

/* At the ceiling a job waits for a place no longer than its deadline allows. */
START_TEST(test_deadline_at_the_ceiling)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_test_full_init(&full, 1, 0);
    prepare(&counted, weir_after_ns(4 * WEIR_TEST_SHORT_NS));
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), ETIMEDOUT);
    ck_assert_uint_ge(weir_now_ns(), counted.job.deadline_ns);
    ck_assert_uint_eq(weir_test_snapshot(full.pool).timed_out, 1);
    prepare(&counted, WEIR_FOREVER);
    ck_assert_int_eq(weir_job_timedsubmit(full.pool, &counted.job, weir_after_ns(WEIR_TEST_SHORT_NS)), ETIMEDOUT);
    weir_test_full_end(&full);
    ck_assert_uint_eq(atomic_load(&counted.ran) + atomic_load(&counted.done), 0);
}
END_TEST

/* The downstream's work. */
static weir_outcome work_10_ms(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return WEIR_SUCCESS;
}

/* Once the pool knows how long calls take, a job that would start too late behind the queue is refused at once, and one
 * that has time is not. */
START_TEST(test_predicted_wait)
{
    enum { LIMIT = 2, QUEUE = 100 };
    weir_pool *pool = weir_test_plain_pool(LIMIT, QUEUE + 10);
    struct weir_test_gate gate;
    struct weir_test_counted late;
    struct weir_test_counted early;
    weir_test_gate_init(&gate);
    while (weir_test_snapshot(pool).throughput <= 0)
        ck_assert_int_eq(weir_pool_call(pool, work_10_ms, NULL, NULL), 0);
    for (int i = 0; i < LIMIT + QUEUE; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
    prepare(&late, weir_after_ns(SECOND_NS / 4)); /* the queue alone takes 100 * 10 ms / 2 */
    ck_assert_int_eq(weir_job_trysubmit(pool, &late.job), ETIMEDOUT);
    prepare(&early, weir_after_ns(600 * SECOND_NS));
    ck_assert_int_eq(weir_job_trysubmit(pool, &early.job), 0);
    ck_assert_uint_eq(weir_test_snapshot(pool).timed_out, 1);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_int_eq(atomic_load(&early.status), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- in the queue ---- */

/* A job whose deadline passes in the queue never runs: its waiter and the figures know, it takes no permit, and its
 * place is free. */
START_TEST(test_expiry)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    struct weir_test_counted next;
    weir_test_full_init(&full, 1, 1);
    weir_test_counted_init(&counted, NULL);
    counted.job.deadline_ns = weir_after_ns(10 * WEIR_TEST_SHORT_NS);
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
    ck_assert_int_eq(weir_job_wait(&counted.job, WEIR_FOREVER), ETIMEDOUT);
    ck_assert_uint_ge(weir_now_ns(), counted.job.deadline_ns);
    ck_assert_int_eq(weir_job_outcome(&counted.job, NULL), ETIMEDOUT);
    ck_assert_int_eq(weir_job_cancel(&counted.job), EALREADY);
    weir_stats stats = weir_test_snapshot(full.pool);
    ck_assert_uint_eq(stats.expired, 1);
    ck_assert_uint_eq(stats.started, 1);
    ck_assert_uint_eq(stats.queued, 0);
    ck_assert_uint_eq(stats.timed_out, 0);
    ck_assert(weir_test_adds_up(&stats));
    prepare(&next, 0);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &next.job), 0);
    weir_test_full_end(&full);
    ck_assert_uint_eq(atomic_load(&counted.ran), 0);
    ck_assert_uint_eq(atomic_load(&next.ran), 1);
}
END_TEST

/* An expiry lets a blocked submitter in. */
START_TEST(test_expiry_admits_a_blocked_submitter)
{
    struct weir_test_full full;
    struct weir_test_counted first;
    struct weir_test_counted second;
    struct weir_test_asked asked;
    weir_test_full_init(&full, 1, 1);
    prepare(&first, weir_after_ns(20 * WEIR_TEST_SHORT_NS));
    prepare(&second, 0);
    ck_assert_int_eq(weir_job_submit(full.pool, &first.job), 0);
    weir_test_ask(&asked, weir_test_submits, full.pool, &second.job);
    ck_assert_int_eq(weir_test_answer(&asked), 0);
    WEIR_TEST_UNTIL(atomic_load(&first.status) == ETIMEDOUT); /* on_done comes after the place has been given away */
    weir_test_full_end(&full);
    ck_assert_uint_eq(atomic_load(&second.ran), 1);
}
END_TEST

static atomic_uint early_ends;

static void note_early(weir_job *job)
{
    if (weir_job_outcome(job, NULL) == ETIMEDOUT && weir_now_ns() < job->deadline_ns)
        (void)atomic_fetch_add(&early_ends, 1);
    weir_test_count_done(job);
}

/* Each of many expires once and not before its time; those that have time stay, and run in order of arrival. */
START_TEST(test_many_expire)
{
    unsigned count = weir_test_divided(3000, 300);
    uint64_t random = weir_test_seed();
    struct weir_test_full full;
    struct weir_test_counted *jobs = calloc(count, sizeof *jobs);
    if (jobs == NULL)
        ck_abort_msg("no memory");
    atomic_store(&early_ends, 0);
    weir_test_full_init(&full, 1, count);
    unsigned accepted = 0;
    for (unsigned i = 0; i < count; i++) {
        prepare(&jobs[i], i % 3 == 0 ? 0 : weir_after_ns(1000000 + weir_test_random(&random) % 60000000));
        jobs[i].job.on_done = note_early;
        int error = weir_job_submit(full.pool, &jobs[i].job);
        if (error != 0 && error != ETIMEDOUT)
            ck_abort_msg("refused");
        accepted += error == 0 ? 1 : 0;
        if (error != 0)
            jobs[i].job.deadline_ns = WEIR_FOREVER; /* was late already: seen below */
    }
    unsigned lasting = (count + 2) / 3;
    WEIR_TEST_UNTIL(weir_test_snapshot(full.pool).expired == accepted - lasting);
    ck_assert_uint_eq(weir_test_snapshot(full.pool).queued, lasting);
    weir_test_full_end(&full);
    for (unsigned i = 0; i < count; i++) {
        unsigned ended = jobs[i].job.deadline_ns == WEIR_FOREVER ? 0 : 1;
        if (atomic_load(&jobs[i].done) != ended || atomic_load(&jobs[i].ran) != (i % 3 == 0 ? 1u : 0u))
            ck_abort_msg("job %u ran %u times, ended %u times", i, atomic_load(&jobs[i].ran),
                         atomic_load(&jobs[i].done));
    }
    ck_assert_uint_eq(atomic_load(&early_ends), 0);
    free(jobs);
}
END_TEST

static void pass_on_start(void *gate)
{
    weir_test_gate_pass(gate);
}

/* A job that got its permit at submit runs, however late its worker is; one that got it after a wait (here: a pause)
 * and whose deadline passes before a worker comes does not. */
START_TEST(test_deadline_while_the_worker_comes)
{
    for (int waits = 0; waits < 2; waits++) {
        struct weir_test_gate gate;
        struct weir_test_counted counted;
        weir_config config = weir_test_plain_config(1, 10);
        weir_pool *pool = NULL;
        weir_test_gate_init(&gate);
        config.on_worker_start = pass_on_start;
        config.hook_arg = &gate;
        ck_assert_int_eq(weir_pool_create(&pool, "test", &config), 0);
        prepare(&counted, waits ? weir_after_ns(SECOND_NS) : weir_after_ns(WEIR_TEST_SHORT_NS));
        ck_assert_int_eq(weir_job_submit(pool, &counted.job), 0);
        if (waits) {
            ck_assert_int_eq(weir_pool_pause(pool), 0);
            ck_assert_int_eq(weir_pool_resume(pool), 0);
        }
        pass_deadline(counted.job.deadline_ns);
        weir_test_gate_open(&gate);
        ck_assert_int_eq(weir_pool_destroy(pool), 0);
        ck_assert_uint_eq(atomic_load(&counted.ran), waits ? 0 : 1);
        ck_assert_uint_eq(atomic_load(&counted.done), 1);
        ck_assert_int_eq(atomic_load(&counted.status), waits ? ETIMEDOUT : 0);
        weir_test_gate_destroy(&gate);
    }
}
END_TEST

/* ---- the thread that minds the deadlines ---- */

static bool keeper_exists(weir_pool *pool)
{
    weir__lock(pool->limiter);
    bool exists = pool->keeper.exists;
    weir__unlock(pool->limiter);
    return exists;
}

static void await_threads(unsigned count)
{
    uint64_t generous_ns = weir_after_ns(20 * SECOND_NS);
    WEIR_TEST_UNTIL(weir_test_threads_of("test") == count || weir_now_ns() > generous_ns);
    ck_assert_uint_eq(weir_test_threads_of("test"), count);
}

/* It comes with the first job with a deadline that waits, no sooner, goes after IDLE_TIMEOUT, and comes again. */
START_TEST(test_keeper_comes_and_goes)
{
    struct weir_test_full full;
    struct weir_test_counted jobs[3];
    weir_config config = weir_test_plain_config(1, 10);
    config.idle_timeout = 20 * WEIR_TEST_SHORT_NS;
    weir_test_full_init_of(&full, &config);
    await_threads(1);
    prepare(&jobs[0], 0);
    prepare(&jobs[1], WEIR_FOREVER);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weir_job_submit(full.pool, &jobs[i].job), 0);
    prepare(&jobs[2], 1);
    ck_assert_int_eq(weir_job_submit(full.pool, &jobs[2].job), ETIMEDOUT);
    ck_assert_uint_eq(weir_test_threads_of("test"), 1);
    for (int round = 0; round < 2; round++) {
        prepare(&jobs[2], weir_after_ns(600 * SECOND_NS));
        ck_assert_int_eq(weir_job_submit(full.pool, &jobs[2].job), 0);
        WEIR_TEST_UNTIL(keeper_exists(full.pool)); /* and sleeps until that deadline */
        await_threads(2);
        ck_assert_int_eq(weir_job_cancel(&jobs[2].job), 0);
        await_threads(1);
    }
    prepare(&jobs[2], weir_after_ns(4 * WEIR_TEST_SHORT_NS)); /* it does its work after a return, too */
    ck_assert_int_eq(weir_job_submit(full.pool, &jobs[2].job), 0);
    WEIR_TEST_UNTIL(atomic_load(&jobs[2].done) == 1);
    ck_assert_int_eq(atomic_load(&jobs[2].status), ETIMEDOUT);
    weir_test_full_end(&full);
}
END_TEST

/* A deadline that was served in time, and hours ahead, does not hold up destroy. */
START_TEST(test_keeper_at_the_end)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_config config = weir_test_plain_config(1, 10);
    config.idle_timeout = 3600 * SECOND_NS;
    weir_test_full_init_of(&full, &config);
    prepare(&counted, weir_after_ns(36000 * SECOND_NS));
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
    uint64_t begin_ns = weir_now_ns();
    weir_test_full_end(&full);
    ck_assert_uint_lt(weir_now_ns() - begin_ns, weir_test_patience_ns(20 * SECOND_NS));
    ck_assert_int_eq(atomic_load(&counted.status), 0);
}
END_TEST

/* ---- a queue that stands ---- */

static uint32_t stay(void *state, const weir_sample *sample)
{
    (void)state;
    (void)sample;
    return 1;
}

static int init_nothing(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    return 0;
}

static uint64_t reaction_10_ms(const void *state)
{
    (void)state;
    return 10000000;
}

static const weir_estimator_class quick = {
    .name = "quick", .state_size = 1, .init = init_nothing, .update = stay, .reaction_ns = reaction_10_ms};

static atomic_uint turns;

struct served {
    weir_job job;
    unsigned turn;
};

static weir_outcome take_turn(void *arg)
{
    ((struct served *)arg)->turn = atomic_fetch_add(&turns, 1);
    return work_10_ms(NULL);
}

/* Runs count jobs one after the other, and returns the first that was overtaken; count: none was. */
static unsigned serve(weir_pool *pool, struct served *served, unsigned count, uint64_t deadline_ns)
{
    atomic_store(&turns, 0);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    for (unsigned i = 0; i < count; i++) {
        served[i] = (struct served){.job = WEIR_JOB_INIT(take_turn, &served[i])};
        served[i].job.deadline_ns = deadline_ns;
        ck_assert_int_eq(weir_job_submit(pool, &served[i].job), 0);
    }
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    unsigned first = 0;
    while (first < count && served[first].turn == first)
        first++;
    return first;
}

/* While a queue stands, jobs with deadlines are served newest first; those without stay in order. Once it has emptied,
 * the order is that of arrival again. */
START_TEST(test_newest_first)
{
    enum { JOBS = 30 };
    struct served served[JOBS];
    weir_config config = weir_test_plain_config(1, 100);
    weir_pool *pool = NULL;
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &quick;
    ck_assert_int_eq(weir_pool_create(&pool, "test", &config), 0);
    ck_assert_uint_eq(serve(pool, served, JOBS, 0), JOBS);
    unsigned turned = serve(pool, served, JOBS, weir_after_ns(600 * SECOND_NS));
    ck_assert_uint_ge(turned, 1); /* the first is served before anybody knows */
    ck_assert_uint_lt(turned, JOBS - 1);
    for (unsigned i = turned; i < JOBS; i++)
        ck_assert_uint_eq(served[i].turn, turned + (JOBS - 1 - i));
    weir__lock(pool->limiter);
    bool newest_first = pool->standing.newest_first;
    weir__unlock(pool->limiter);
    ck_assert(!newest_first);
    ck_assert_uint_eq(serve(pool, served, JOBS, 0), JOBS);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

int main(void)
{
    const TTest *const submit[] = {test_passed_deadline_runs_at_once, test_passed_deadline_is_shed,
                                   test_deadline_at_the_ceiling, test_predicted_wait, NULL};
    const TTest *const queue[] = {test_expiry, test_expiry_admits_a_blocked_submitter, test_many_expire,
                                  test_deadline_while_the_worker_comes, NULL};
    const TTest *const keeper[] = {test_keeper_comes_and_goes, test_keeper_at_the_end, NULL};
    const TTest *const standing[] = {test_newest_first, NULL};
    Suite *suite = suite_create("deadline");
    weir_test_group(suite, "submit", submit);
    weir_test_group(suite, "queue", queue);
    weir_test_group(suite, "keeper", keeper);
    weir_test_group(suite, "standing queue", standing);
    return weir_test_main(suite);
}
