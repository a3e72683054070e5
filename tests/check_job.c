/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs with a handle: how they are submitted, how they end, and who is told. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "handle_support.h"

/* ---- the end of a job ---- */

/* A waiter gets 0 and the outcome that the job returned. */
START_TEST(test_outcome_of_a_run)
{
    weir_pool *pool = weir_test_plain_pool(2, 10);
    for (int outcome = WEIR_SUCCESS; outcome <= WEIR_DROPPED; outcome++) {
        struct weir_test_counted counted;
        weir_outcome seen = (weir_outcome)9;
        weir_test_counted_init(&counted, NULL);
        counted.outcome = (weir_outcome)outcome;
        ck_assert_int_eq(weir_job_submit(pool, &counted.job), 0);
        ck_assert_int_eq(weir_job_wait(&counted.job, WEIR_FOREVER), 0);
        ck_assert_int_eq(weir_job_outcome(&counted.job, &seen), 0);
        ck_assert_int_eq((int)seen, outcome);
        ck_assert_int_eq(weir_job_outcome(&counted.job, NULL), 0);
        ck_assert_int_eq(weir_job_wait(&counted.job, 0), 0);
    }
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* The outcome function tells each state: new, queued, running, succeeded, cancelled. */
START_TEST(test_outcome_in_each_state)
{
    struct weir_test_full full;
    struct weir_test_counted queued;
    weir_outcome outcome;
    ck_assert_int_eq(weir_job_outcome(NULL, &outcome), EINVAL);
    weir_test_counted_init(&queued, NULL);
    ck_assert_int_eq(weir_job_outcome(&queued.job, &outcome), EINVAL);
    weir_test_full_init(&full, 1, 10);
    weir_job running = WEIR_JOB_INIT(weir_test_pass, &full.gate);
    ck_assert_int_eq(weir_job_submit(full.pool, &running), 0);
    ck_assert_int_eq(weir_job_submit(full.pool, &queued.job), 0);
    ck_assert_int_eq(weir_job_outcome(&queued.job, &outcome), EINPROGRESS);
    ck_assert_int_eq(weir_job_cancel(&queued.job), 0);
    ck_assert_int_eq(weir_job_outcome(&queued.job, &outcome), ECANCELED);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_job_wait(&running, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_job_outcome(&running, &outcome), 0);
    ck_assert_int_eq(outcome, WEIR_SUCCESS);
    weir_test_full_end(&full);
}
END_TEST

/* A wait whose deadline passes says EINPROGRESS, of a queued and of a running job, and the job goes on. */
START_TEST(test_timed_wait)
{
    struct weir_test_full full;
    struct weir_test_counted queued;
    weir_test_full_init(&full, 1, 10);
    weir_test_counted_init(&queued, NULL);
    ck_assert_int_eq(weir_job_submit(full.pool, &queued.job), 0);
    ck_assert_int_eq(weir_job_wait(&queued.job, 0), EINPROGRESS);
    ck_assert_int_eq(weir_job_wait(&queued.job, weir_after_ns(WEIR_TEST_SHORT_NS)), EINPROGRESS);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_job running = WEIR_JOB_INIT(weir_test_pass, &gate);
    ck_assert_int_eq(weir_job_submit(full.pool, &running), 0);
    weir_test_gate_open(&full.gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    ck_assert_int_eq(weir_job_wait(&running, weir_after_ns(WEIR_TEST_SHORT_NS)), EINPROGRESS);
    ck_assert_int_eq(weir_job_wait(&queued.job, WEIR_FOREVER), 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_job_wait(&running, WEIR_FOREVER), 0);
    weir_test_full_end(&full);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* All who wait for a job get its status, whether it ran or was cancelled. */
START_TEST(test_several_waiters)
{
    enum { WAITERS = 8 };
    for (int cancels = 0; cancels < 2; cancels++) {
        struct weir_test_full full;
        struct weir_test_counted counted;
        struct weir_test_asked asked[WAITERS];
        weir_test_full_init(&full, 1, 10);
        weir_test_counted_init(&counted, NULL);
        ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
        for (int i = 0; i < WAITERS; i++)
            weir_test_ask(&asked[i], weir_test_waits, full.pool, &counted.job);
        ck_assert_int_eq(weir_job_wait(&counted.job, weir_after_ns(WEIR_TEST_SHORT_NS)), EINPROGRESS);
        if (cancels)
            ck_assert_int_eq(weir_job_cancel(&counted.job), 0);
        else
            weir_test_gate_open(&full.gate);
        for (int i = 0; i < WAITERS; i++)
            ck_assert_int_eq(weir_test_answer(&asked[i]), cancels ? ECANCELED : 0);
        ck_assert_uint_eq(atomic_load(&counted.ran), cancels ? 0 : 1);
        weir_test_full_end(&full);
    }
}
END_TEST

static weir_outcome leave_thread(void *arg)
{
    (void)atomic_fetch_add((atomic_uint *)arg, 1);
    pthread_exit(NULL);
}

/* A job that ends its thread has ended: WEIR_IGNORE, its waiter goes on, on_done comes once, the pool works on. */
START_TEST(test_job_that_ends_its_thread)
{
    weir_pool *pool = weir_test_plain_pool(2, 10);
    for (unsigned i = 0; i < 20; i++) {
        struct weir_test_counted counted;
        weir_outcome outcome = WEIR_SUCCESS;
        bool waits = i % 2 == 0;
        weir_test_counted_init(&counted, waits ? NULL : weir_test_count_done);
        counted.job.fn = leave_thread;
        counted.job.arg = &counted.ran;
        ck_assert_int_eq(weir_job_submit(pool, &counted.job), 0);
        if (waits)
            ck_assert_int_eq(weir_job_wait(&counted.job, WEIR_FOREVER), 0);
        else
            ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
        ck_assert_int_eq(weir_job_outcome(&counted.job, &outcome), 0);
        ck_assert_int_eq(outcome, WEIR_IGNORE);
        ck_assert_uint_eq(atomic_load(&counted.ran), 1);
        ck_assert_uint_eq(atomic_load(&counted.done), waits ? 0 : 1);
    }
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

static void *wait_on_the_stack(void *arg)
{
    weir_pool *pool = arg;
    uintptr_t wrong = 0;
    for (unsigned i = weir_test_divided(4000, 1); i > 0; i--) {
        struct weir_test_counted counted;
        weir_test_counted_init(&counted, NULL);
        if (weir_job_submit(pool, &counted.job) != 0 || weir_job_wait(&counted.job, WEIR_FOREVER) != 0 ||
            atomic_load(&counted.ran) != 1)
            wrong++;
        memset(&counted, 0xa5, sizeof counted); /* what comes next on this stack */
    }
    return (void *)wrong; // NOLINT(performance-no-int-to-ptr)
}

/* A handle may live on the stack of a caller that waits: after the wait nothing touches it. */
START_TEST(test_handle_on_the_stack)
{
    enum { THREADS = 4 };
    weir_pool *pool = weir_test_plain_pool(3, 2);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = weir_test_start(wait_on_the_stack, pool);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        (void)pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* ---- on_done ---- */

/* on_done comes exactly once, and finds the status: of a job that ran and of one that was cancelled. */
START_TEST(test_on_done_once)
{
    struct weir_test_full full;
    struct weir_test_counted runs;
    struct weir_test_counted cancelled;
    weir_test_full_init(&full, 1, 10);
    weir_test_counted_init(&runs, weir_test_count_done);
    weir_test_counted_init(&cancelled, weir_test_count_done);
    ck_assert_int_eq(weir_job_submit(full.pool, &runs.job), 0);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &cancelled.job), 0);
    ck_assert_int_eq(weir_job_cancel(&cancelled.job), 0);
    ck_assert_uint_eq(atomic_load(&cancelled.done), 1); /* before cancel returned */
    ck_assert_int_eq(weir_job_cancel(&cancelled.job), EALREADY);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_pool_drain(full.pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&runs.done), 1);
    ck_assert_int_eq(atomic_load(&runs.status), 0);
    ck_assert_uint_eq(atomic_load(&cancelled.done), 1);
    ck_assert_int_eq(atomic_load(&cancelled.status), ECANCELED);
    ck_assert_uint_eq(atomic_load(&cancelled.ran), 0);
    weir_test_full_end(&full);
}
END_TEST

static atomic_uint freed;

static void free_job(weir_job *job)
{
    (void)atomic_fetch_add(&freed, 1);
    free(job);
}

/* The memory of a job may be freed in on_done, whether it ran or was cancelled: by its handle or by a shutdown. */
START_TEST(test_memory_freed_in_on_done)
{
    unsigned rounds = weir_test_divided(3000, 1);
    atomic_store(&freed, 0);
    struct weir_test_full full;
    weir_test_full_init(&full, 2, 3 * rounds);
    for (unsigned i = 0; i < 3 * rounds; i++) {
        struct weir_test_counted *counted = malloc(sizeof *counted);
        if (counted == NULL)
            ck_abort_msg("no memory");
        weir_test_counted_init(counted, free_job);
        if (weir_job_submit(full.pool, &counted->job) != 0)
            ck_abort_msg("refused");
        if (i < rounds && weir_job_cancel(&counted->job) != 0)
            ck_abort_msg("a queued job was not cancelled");
        if (i == 2 * rounds) {
            weir_test_gate_open(&full.gate);
            if (weir_pool_drain(full.pool, WEIR_FOREVER) != 0 || weir_pool_pause(full.pool) != 0)
                ck_abort_msg("no drain");
        }
    }
    ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&freed), 3 * rounds);
    weir_test_full_end(&full);
}
END_TEST

static struct weir_test_gate done_gate;
static atomic_uint done_passed;

static void pass_done_gate(weir_job *job)
{
    (void)job;
    weir_test_gate_pass(&done_gate);
    (void)atomic_fetch_add(&done_passed, 1);
}

static void *open_done_gate(void *unused)
{
    (void)unused;
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&done_gate) == 1);
    weir_test_gate_open(&done_gate);
    return NULL;
}

static int destroy_it(weir_pool *pool)
{
    return weir_pool_destroy(pool);
}

static int shut_it_down(weir_pool *pool)
{
    int error = weir_pool_shutdown(pool, WEIR_FINISH, weir_after_ns(WEIR_TEST_SHORT_NS));
    if (error == ETIMEDOUT)
        error = weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER);
    return error;
}

static int drain_it(weir_pool *pool)
{
    int error = weir_pool_drain(pool, weir_after_ns(WEIR_TEST_SHORT_NS));
    return error == ETIMEDOUT ? weir_pool_drain(pool, WEIR_FOREVER) : error;
}

/* Drain, shutdown and destroy return after the last on_done has. */
START_TEST(test_the_end_waits_for_on_done)
{
    int (*const ends[])(weir_pool *) = {drain_it, shut_it_down, destroy_it};
    for (unsigned i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        weir_test_gate_init(&done_gate);
        atomic_store(&done_passed, 0);
        weir_pool *pool = weir_test_plain_pool(2, 10);
        struct weir_test_counted counted;
        weir_test_counted_init(&counted, pass_done_gate);
        ck_assert_int_eq(weir_job_submit(pool, &counted.job), 0);
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&done_gate) == 1);
        ck_assert_int_eq(weir_pool_drain(pool, weir_after_ns(WEIR_TEST_SHORT_NS)), ETIMEDOUT);
        pthread_t opener = weir_test_start(open_done_gate, NULL);
        ck_assert_int_eq(ends[i](pool), 0);
        ck_assert_uint_eq(atomic_load(&done_passed), 1);
        (void)pthread_join(opener, NULL);
        if (ends[i] != destroy_it)
            ck_assert_int_eq(weir_pool_destroy(pool), 0);
        weir_test_gate_destroy(&done_gate);
    }
}
END_TEST

/* Drain waits for the on_done that a cancelling thread calls, too. */
START_TEST(test_drain_waits_for_on_done_of_a_cancel)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_test_gate_init(&done_gate);
    atomic_store(&done_passed, 0);
    weir_test_full_init(&full, 1, 10);
    weir_test_counted_init(&counted, pass_done_gate);
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
    struct weir_test_asked asked;
    weir_test_ask(&asked, weir_test_cancels, full.pool, &counted.job);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&done_gate) == 1);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_pool_drain(full.pool, weir_after_ns(WEIR_TEST_SHORT_NS)), ETIMEDOUT);
    weir_test_gate_open(&done_gate);
    ck_assert_int_eq(weir_pool_drain(full.pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&done_passed), 1);
    ck_assert_int_eq(weir_test_answer(&asked), 0);
    weir_test_full_end(&full);
    weir_test_gate_destroy(&done_gate);
}
END_TEST

/* ---- submit ---- */

/* The three submits differ at the ceiling, and none of those that refuse calls on_done. */
START_TEST(test_three_submits)
{
    struct weir_test_full full;
    struct weir_test_counted jobs[4];
    weir_test_full_init(&full, 1, 1);
    for (int i = 0; i < 4; i++)
        weir_test_counted_init(&jobs[i], weir_test_count_done);
    ck_assert_int_eq(weir_job_timedsubmit(full.pool, &jobs[0].job, 0), 0); /* a free place, whatever the deadline */
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &jobs[1].job), EAGAIN);
    ck_assert_int_eq(weir_job_timedsubmit(full.pool, &jobs[2].job, weir_after_ns(WEIR_TEST_SHORT_NS)), ETIMEDOUT);
    struct weir_test_asked asked;
    weir_test_ask(&asked, weir_test_submits, full.pool, &jobs[3].job);
    WEIR_TEST_UNTIL(weir_test_snapshot(full.pool).waiting == 1);
    ck_assert_int_eq(atomic_load(&asked.answer), -1);
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_test_answer(&asked), 0);
    ck_assert_int_eq(weir_pool_drain(full.pool, WEIR_FOREVER), 0);
    for (int i = 0; i < 4; i++) {
        unsigned once = i == 0 || i == 3 ? 1 : 0;
        ck_assert_uint_eq(atomic_load(&jobs[i].ran), once);
        ck_assert_uint_eq(atomic_load(&jobs[i].done), once);
    }
    ck_assert_int_eq(weir_job_outcome(&jobs[1].job, NULL), EINVAL); /* as if never submitted */
    ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_FINISH, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_job_submit(full.pool, &jobs[1].job), ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&jobs[1].done), 0);
    weir_test_full_end(&full);
}
END_TEST

/* A job that is queued or runs is EBUSY; one that has ended, whichever way, may be submitted again. */
START_TEST(test_submitted_again)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_test_full_init(&full, 1, 10);
    weir_test_counted_init(&counted, NULL);
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), EBUSY);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &counted.job), EBUSY);
    ck_assert_int_eq(weir_job_timedsubmit(full.pool, &counted.job, 0), EBUSY);
    ck_assert_int_eq(weir_job_cancel(&counted.job), 0);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_job running = WEIR_JOB_INIT(weir_test_pass, &gate);
    ck_assert_int_eq(weir_job_submit(full.pool, &running), 0);
    weir_test_gate_open(&full.gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    ck_assert_int_eq(weir_job_submit(full.pool, &running), EBUSY);
    weir_test_gate_open(&gate);
    for (unsigned i = 1; i <= 300; i++) {
        if (weir_job_submit(full.pool, &counted.job) != 0 || weir_job_wait(&counted.job, WEIR_FOREVER) != 0 ||
            atomic_load(&counted.ran) != i)
            ck_abort_msg("round %u", i);
    }
    ck_assert_int_eq(weir_job_wait(&running, WEIR_FOREVER), 0);
    weir_test_full_end(&full);
    weir_test_gate_destroy(&gate);
}
END_TEST

static weir_pool *chain_pool;
static unsigned chain_length; /* on_done calls come one after the other */

static void submit_again(weir_job *job)
{
    if (--chain_length > 0 && weir_job_trysubmit(chain_pool, job) != 0)
        chain_length = 1000000;
}

/* on_done may submit its own job again; drain sees the whole chain. */
START_TEST(test_submitted_again_in_on_done)
{
    struct weir_test_counted counted;
    unsigned length = weir_test_divided(2000, 1);
    chain_length = length;
    chain_pool = weir_test_plain_pool(1, 10);
    weir_test_counted_init(&counted, submit_again);
    ck_assert_int_eq(weir_job_submit(chain_pool, &counted.job), 0);
    ck_assert_int_eq(weir_pool_drain(chain_pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(chain_length, 0);
    ck_assert_uint_eq(atomic_load(&counted.ran), length);
    ck_assert_int_eq(weir_pool_destroy(chain_pool), 0);
}
END_TEST

/* What cannot be is EINVAL, and the job can be corrected. */
START_TEST(test_bad_jobs)
{
    weir_completions *completions = NULL;
    struct weir_test_counted counted;
    weir_pool *pool = weir_test_plain_pool(4, 10);
    ck_assert_int_eq(weir_completions_create(&completions), 0);
    weir_test_counted_init(&counted, weir_test_count_done);
    ck_assert_int_eq(weir_job_submit(NULL, &counted.job), EINVAL);
    ck_assert_int_eq(weir_job_submit(pool, NULL), EINVAL);
    counted.job.completions = completions;
    ck_assert_int_eq(weir_job_submit(pool, &counted.job), EINVAL);
    counted.job.completions = NULL;
    counted.job.partition = "nowhere";
    ck_assert_int_eq(weir_job_trysubmit(pool, &counted.job), EINVAL);
    counted.job.partition = NULL;
    counted.job.weight = 5;
    ck_assert_int_eq(weir_job_timedsubmit(pool, &counted.job, 0), EINVAL);
    counted.job.weight = 4;
    counted.job.fn = NULL;
    ck_assert_int_eq(weir_job_submit(pool, &counted.job), EINVAL);
    ck_assert_uint_eq(atomic_load(&counted.done), 0);
    counted.job.fn = weir_test_run_counted;
    ck_assert_int_eq(weir_job_submit(pool, &counted.job), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_uint_eq(atomic_load(&counted.done), 1);
    weir_completions_destroy(completions);
}
END_TEST

/* While its submitter is blocked, a job is neither: it is EBUSY for a cancel and another submit, and it can be waited
 * for. When the submit is refused in the end, whoever waits learns that it was never submitted. */
START_TEST(test_job_of_a_blocked_submitter)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    struct weir_test_asked submitter;
    struct weir_test_asked waiter;
    weir_test_full_init(&full, 1, 0);
    weir_test_counted_init(&counted, NULL);
    weir_test_ask(&submitter, weir_test_submits, full.pool, &counted.job);
    WEIR_TEST_UNTIL(weir_test_snapshot(full.pool).waiting == 1);
    ck_assert_int_eq(weir_job_cancel(&counted.job), EBUSY);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &counted.job), EBUSY);
    ck_assert_int_eq(weir_job_outcome(&counted.job, NULL), EINPROGRESS);
    ck_assert_int_eq(weir_job_wait(&counted.job, weir_after_ns(WEIR_TEST_SHORT_NS)), EINPROGRESS);
    weir_test_ask(&waiter, weir_test_waits, full.pool, &counted.job);
    ck_assert_int_eq(weir_job_wait(&counted.job, weir_after_ns(10 * WEIR_TEST_SHORT_NS)), EINPROGRESS);
    ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_FINISH, 0), ETIMEDOUT);
    ck_assert_int_eq(weir_test_answer(&submitter), ESHUTDOWN);
    uint64_t generous_ns = weir_after_ns(UINT64_C(10000000000));
    WEIR_TEST_UNTIL(atomic_load(&waiter.answer) != -1 || weir_now_ns() > generous_ns);
    if (atomic_load(&waiter.answer) == -1)
        ck_abort_msg("the waiter of a refused job waits for ever");
    ck_assert_int_eq(weir_test_answer(&waiter), EINVAL);
    weir_test_full_end(&full);
}
END_TEST

int main(void)
{
    const TTest *const end[] = {test_outcome_of_a_run,
                                test_outcome_in_each_state,
                                test_timed_wait,
                                test_several_waiters,
                                test_job_that_ends_its_thread,
                                test_handle_on_the_stack,
                                NULL};
    const TTest *const on_done[] = {test_on_done_once, test_memory_freed_in_on_done, test_the_end_waits_for_on_done,
                                    test_drain_waits_for_on_done_of_a_cancel, NULL};
    const TTest *const submit[] = {test_three_submits,
                                   test_submitted_again,
                                   test_submitted_again_in_on_done,
                                   test_bad_jobs,
                                   test_job_of_a_blocked_submitter,
                                   NULL};
    Suite *suite = suite_create("job");
    weir_test_group(suite, "end", end);
    weir_test_group(suite, "on_done", on_done);
    weir_test_group(suite, "submit", submit);
    return weir_test_main(suite);
}
