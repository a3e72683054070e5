/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that are cancelled, one by one or by a shutdown, and waits and cancels that race. */

#include <errno.h>
#include <string.h>

#include "handle_support.h"

/* ---- cancel ---- */

/* A cancelled job never runs, its waiter is told, and its place in the queue is free at once. */
START_TEST(test_cancel_of_a_queued_job)
{
    struct weir_test_full full;
    struct weir_test_counted first;
    struct weir_test_counted second;
    weir_test_full_init(&full, 1, 1);
    weir_test_counted_init(&first, NULL);
    weir_test_counted_init(&second, NULL);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &first.job), 0);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &second.job), EAGAIN);
    ck_assert_int_eq(weir_job_cancel(&first.job), 0);
    ck_assert_int_eq(weir_job_wait(&first.job, WEIR_FOREVER), ECANCELED);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &second.job), 0);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_job_wait(&second.job, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&first.ran), 0);
    weir_stats stats;
    ck_assert_int_eq(weir_pool_stats(full.pool, &stats), 0);
    ck_assert_uint_eq(stats.cancelled, 1);
    ck_assert_uint_eq(stats.shed, 1);
    weir_test_full_end(&full);
}
END_TEST

/* The cancel of a queued job lets a blocked submitter in. */
START_TEST(test_cancel_admits_a_blocked_submitter)
{
    struct weir_test_full full;
    struct weir_test_counted first;
    struct weir_test_counted second;
    weir_test_full_init(&full, 1, 1);
    weir_test_counted_init(&first, NULL);
    weir_test_counted_init(&second, NULL);
    ck_assert_int_eq(weir_job_submit(full.pool, &first.job), 0);
    struct weir_test_asked asked;
    weir_test_ask(&asked, weir_test_submits, full.pool, &second.job);
    WEIR_TEST_UNTIL(weir_test_snapshot(full.pool).waiting == 1);
    ck_assert_int_eq(weir_job_cancel(&first.job), 0);
    ck_assert_int_eq(weir_test_answer(&asked), 0);
    ck_assert_int_eq(weir_job_outcome(&second.job, NULL), EINPROGRESS);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_job_wait(&second.job, WEIR_FOREVER), 0);
    weir_test_full_end(&full);
}
END_TEST

/* A job that runs is not cancelled, nor is one that has ended or was never submitted. */
START_TEST(test_cancel_that_comes_too_late_or_too_early)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_plain_pool(1, 10);
    weir_job job = WEIR_JOB_INIT(weir_test_pass, &gate);
    ck_assert_int_eq(weir_job_cancel(NULL), EINVAL);
    ck_assert_int_eq(weir_job_cancel(&job), EINVAL);
    ck_assert_int_eq(weir_job_wait(NULL, 0), EINVAL);
    ck_assert_int_eq(weir_job_wait(&job, WEIR_FOREVER), EINVAL);
    ck_assert_int_eq(weir_job_submit(pool, &job), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    ck_assert_int_eq(weir_job_cancel(&job), EBUSY);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_job_wait(&job, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_job_cancel(&job), EALREADY);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_int_eq(weir_job_cancel(&job), EALREADY); /* the pool is gone, the handle is the caller's */
    ck_assert_int_eq(weir_job_wait(&job, 0), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

static void pass_on_start(void *gate)
{
    weir_test_gate_pass(gate);
}

/* A job that has its permit, but no worker yet, can be cancelled; the permit goes to the next one. */
START_TEST(test_cancel_of_a_ready_job)
{
    struct weir_test_gate gate;
    weir_config config = weir_test_plain_config(1, 10);
    weir_pool *pool = NULL;
    weir_test_gate_init(&gate);
    config.on_worker_start = pass_on_start;
    config.hook_arg = &gate;
    ck_assert_int_eq(weir_pool_create(&pool, "job", &config), 0);
    struct weir_test_counted first;
    struct weir_test_counted second;
    weir_test_counted_init(&first, weir_test_count_done);
    weir_test_counted_init(&second, NULL);
    ck_assert_int_eq(weir_job_submit(pool, &first.job), 0);
    ck_assert_int_eq(weir_job_submit(pool, &second.job), 0);
    weir_stats stats;
    ck_assert_int_eq(weir_pool_stats(pool, &stats), 0);
    ck_assert_uint_eq(stats.running, 1); /* it holds a permit, its worker is on its way */
    ck_assert_int_eq(weir_job_cancel(&first.job), 0);
    ck_assert_uint_eq(atomic_load(&first.done), 1);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_job_wait(&second.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_uint_eq(atomic_load(&first.ran), 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* shutdown(WEIR_CANCEL) ends each queued job exactly once, tells who waits, and lets what runs end. */
START_TEST(test_shutdown_cancels_exactly_once)
{
    enum { JOBS = 500 };
    static struct weir_test_counted jobs[JOBS];
    struct weir_test_full full;
    weir_test_full_init(&full, 2, JOBS);
    for (int i = 0; i < JOBS; i++) {
        weir_test_counted_init(&jobs[i], i % 2 == 0 ? weir_test_count_done : NULL);
        if (weir_job_submit(full.pool, &jobs[i].job) != 0)
            ck_abort_msg("refused");
    }
    struct weir_test_asked asked;
    weir_test_ask(&asked, weir_test_waits, full.pool, &jobs[1].job);
    ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_CANCEL, weir_after_ns(WEIR_TEST_SHORT_NS)), ETIMEDOUT);
    ck_assert_int_eq(weir_test_answer(&asked), ECANCELED);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    for (int i = 0; i < JOBS; i++) {
        if (weir_job_outcome(&jobs[i].job, NULL) != ECANCELED || atomic_load(&jobs[i].ran) != 0 ||
            atomic_load(&jobs[i].done) != (i % 2 == 0 ? 1u : 0u))
            ck_abort_msg("job %d was not cancelled exactly once", i);
    }
    weir_stats stats;
    ck_assert_int_eq(weir_pool_stats(full.pool, &stats), 0);
    ck_assert_uint_eq(stats.cancelled, JOBS);
    ck_assert_uint_eq(stats.succeeded, 2);
    weir_test_full_end(&full);
}
END_TEST

/* ---- races ---- */

enum { RIVALS = 3 };

struct race {
    struct weir_test_counted counted;
    pthread_barrier_t start;
    pthread_barrier_t end;
    unsigned rounds;
};

struct rival {
    struct race *race;
    int answer;
    pthread_t thread;
};

static void *cancel_each_round(void *arg)
{
    struct rival *rival = arg;
    for (unsigned i = 0; i < rival->race->rounds; i++) {
        (void)pthread_barrier_wait(&rival->race->start);
        rival->answer = weir_job_cancel(&rival->race->counted.job);
        (void)pthread_barrier_wait(&rival->race->end);
    }
    return NULL;
}

/* One round: what is wrong with it, or NULL. */
static const char *race_once(struct race *race, struct rival *rivals, weir_pool *pool)
{
    weir_test_counted_init(&race->counted, NULL);
    if (weir_job_submit(pool, &race->counted.job) != 0)
        return "refused";
    (void)pthread_barrier_wait(&race->start);
    int status = weir_job_wait(&race->counted.job, WEIR_FOREVER);
    (void)pthread_barrier_wait(&race->end);
    unsigned winners = 0;
    for (int i = 0; i < RIVALS; i++) {
        if (rivals[i].answer != 0 && rivals[i].answer != EBUSY && rivals[i].answer != EALREADY)
            return "a cancel failed otherwise";
        winners += rivals[i].answer == 0 ? 1 : 0;
    }
    unsigned ran = atomic_load(&race->counted.ran);
    if (ran + winners != 1)
        return "neither or both: it ran, one cancel took it";
    return status == (ran == 1 ? 0 : ECANCELED) ? NULL : "the waiter was told something else";
}

/* Of several cancels, a start and a wait that race, one cancel wins or the job runs, and the waiter knows which. */
START_TEST(test_cancels_wait_and_start_race)
{
    struct race race = {.rounds = weir_test_rounds(10000, 100)};
    struct rival rivals[RIVALS];
    weir_pool *pool = weir_test_plain_pool(1, 10);
    (void)pthread_barrier_init(&race.start, NULL, RIVALS + 1);
    (void)pthread_barrier_init(&race.end, NULL, RIVALS + 1);
    for (int i = 0; i < RIVALS; i++) {
        rivals[i].race = &race;
        rivals[i].thread = weir_test_start(cancel_each_round, &rivals[i]);
    }
    for (unsigned i = 0; i < race.rounds; i++) {
        const char *wrong = race_once(&race, rivals, pool);
        if (wrong != NULL)
            ck_abort_msg("round %u: %s", i, wrong);
    }
    for (int i = 0; i < RIVALS; i++)
        (void)pthread_join(rivals[i].thread, NULL);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    (void)pthread_barrier_destroy(&race.start);
    (void)pthread_barrier_destroy(&race.end);
}
END_TEST

/* A shutdown that cancels, cancels by handle and what runs race: each job ends once, and the figures agree. */
START_TEST(test_shutdown_and_cancels_race)
{
    enum { JOBS = 200 };
    static struct weir_test_counted jobs[JOBS];
    for (unsigned round = weir_test_rounds(200, 5); round > 0; round--) {
        weir_pool *pool = weir_test_plain_pool(2, JOBS);
        struct weir_test_asked asked[2];
        for (int i = 0; i < JOBS; i++) {
            weir_test_counted_init(&jobs[i], weir_test_count_done);
            if (weir_job_submit(pool, &jobs[i].job) != 0)
                ck_abort_msg("refused");
        }
        for (int i = 0; i < 2; i++)
            weir_test_ask(&asked[i], weir_test_cancels, pool, &jobs[JOBS - 1 - i].job);
        ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
        for (int i = 0; i < 2; i++)
            (void)weir_test_answer(&asked[i]);
        unsigned ran = 0;
        for (int i = 0; i < JOBS; i++) {
            unsigned its = atomic_load(&jobs[i].ran);
            ran += its;
            if (its > 1 || atomic_load(&jobs[i].done) != 1 ||
                atomic_load(&jobs[i].status) != (its == 1 ? 0 : ECANCELED))
                ck_abort_msg("job %d ended otherwise than once", i);
        }
        weir_stats stats = weir_test_snapshot(pool);
        ck_assert_uint_eq(stats.succeeded, ran);
        ck_assert_uint_eq(stats.cancelled, JOBS - ran);
        ck_assert_int_eq(weir_pool_destroy(pool), 0);
    }
}
END_TEST

struct scribbler {
    struct weir_test_counted *jobs;
    unsigned count;
    pthread_t thread;
};

static void *scribble(void *arg)
{
    struct scribbler *scribbler = arg;
    for (unsigned i = 0; i < scribbler->count; i++) {
        struct weir_test_counted *counted = &scribbler->jobs[i];
        while (weir_job_outcome(&counted->job, NULL) == EINPROGRESS)
            ;
        memset(counted, 0xa5, sizeof *counted);
    }
    return NULL;
}

/* Who sees that a job was cancelled owns its memory, even while the shutdown that cancelled it goes on. */
START_TEST(test_memory_during_a_shutdown)
{
    enum { JOBS = 300 };
    static struct weir_test_counted jobs[JOBS];
    for (unsigned round = weir_test_rounds(300, 10); round > 0; round--) {
        struct weir_test_full full;
        struct scribbler scribbler = {.jobs = jobs, .count = JOBS};
        weir_test_full_init(&full, 1, JOBS);
        for (int i = 0; i < JOBS; i++) {
            weir_test_counted_init(&jobs[i], NULL);
            if (weir_job_submit(full.pool, &jobs[i].job) != 0)
                ck_abort_msg("refused");
        }
        scribbler.thread = weir_test_start(scribble, &scribbler);
        ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_CANCEL, 0), ETIMEDOUT);
        (void)pthread_join(scribbler.thread, NULL);
        weir_test_full_end(&full);
    }
}
END_TEST

int main(void)
{
    const TTest *const cancel[] = {test_cancel_of_a_queued_job,
                                   test_cancel_admits_a_blocked_submitter,
                                   test_cancel_that_comes_too_late_or_too_early,
                                   test_cancel_of_a_ready_job,
                                   test_shutdown_cancels_exactly_once,
                                   NULL};
    const TTest *const races[] = {test_cancels_wait_and_start_race, test_shutdown_and_cancels_race,
                                  test_memory_during_a_shutdown, NULL};
    Suite *suite = suite_create("cancel");
    weir_test_group(suite, "cancel", cancel);
    weir_test_group(suite, "races", races);
    return weir_test_main(suite);
}
