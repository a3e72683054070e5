/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs that wait for jobs of their own pool: EDEADLK exactly where nothing else would run, no hang otherwise. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <string.h>

#include "handle_support.h"
#include "pool/pool.h"

/* ---- an estimator that answers what the test says ---- */

static atomic_uint scripted_limit;

static int script_init(void *state, const weir_config *config)
{
    (void)state;
    atomic_store(&scripted_limit, config->initial_limit);
    return 0;
}

static uint32_t script_update(void *state, const weir_sample *sample)
{
    (void)state;
    (void)sample;
    return atomic_load(&scripted_limit);
}

static const weir_estimator_class script = {
    .name = "script", .state_size = 1, .init = script_init, .update = script_update};

static weir_pool *scripted_pool(uint32_t limit)
{
    weir_config config = weir_test_plain_config(limit, 100);
    weir_pool *pool = NULL;
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &script;
    ck_assert_int_eq(weir_pool_create(&pool, "test", &config), 0);
    return pool;
}

/* ---- a job that has a child and waits for it ---- */

struct parent {
    struct weir_test_counted child;
    weir_job job;
    weir_pool *pool;               /* of the child */
    weir_job *awaited;             /* NULL: the child, which it submits */
    uint64_t patience_ns;          /* 0: for ever */
    struct weir_test_gate *before; /* NULL: it submits at once */
    struct weir_test_gate *gate;   /* NULL: it waits at once */
    int submitted;
    int answer;
};

static weir_outcome run_parent(void *arg)
{
    struct parent *parent = arg;
    weir_job *awaited = parent->awaited;
    if (parent->before != NULL)
        weir_test_gate_pass(parent->before);
    if (awaited == NULL) {
        awaited = &parent->child.job;
        parent->submitted = weir_job_submit(parent->pool, awaited);
    }
    if (parent->gate != NULL)
        weir_test_gate_pass(parent->gate);
    if (parent->submitted == 0)
        parent->answer =
            weir_job_wait(awaited, parent->patience_ns != 0 ? weir_after_ns(parent->patience_ns) : WEIR_FOREVER);
    return WEIR_SUCCESS;
}

static void init_parent(struct parent *parent, weir_pool *pool)
{
    memset(parent, 0, sizeof *parent);
    weir_test_counted_init(&parent->child, NULL);
    parent->job = (weir_job)WEIR_JOB_INIT(run_parent, parent);
    parent->pool = pool;
    parent->answer = -1;
}

static uint32_t waiting_jobs(weir_pool *pool)
{
    weir__lock(pool->limiter);
    uint32_t nested = pool->nested_jobs;
    weir__unlock(pool->limiter);
    return nested;
}

static void end(weir_pool *pool)
{
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_snapshot(pool);
    ck_assert(weir_test_adds_up(&stats));
    ck_assert_uint_eq(waiting_jobs(pool), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}

/* The only running job cannot wait for a queued one; the latter runs afterwards. */
START_TEST(test_alone)
{
    weir_pool *pool = weir_test_plain_pool(1, 10);
    struct parent parent;
    init_parent(&parent, pool);
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.submitted, 0);
    ck_assert_int_eq(parent.answer, EDEADLK);
    ck_assert_int_eq(weir_job_wait(&parent.child.job, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&parent.child.ran), 1);
    end(pool);
}
END_TEST

enum { PARENTS_MOST = 6 };

/* Of n jobs that run, and all wait for queued ones, exactly the last gets EDEADLK, and so the others come through. */
START_TEST(test_the_last_that_runs)
{
    for (unsigned round = weir_test_divided(300, 10); round > 0; round--) {
        unsigned count = 2 + round % (PARENTS_MOST - 1);
        weir_pool *pool = weir_test_plain_pool(count, PARENTS_MOST);
        struct parent parents[PARENTS_MOST];
        struct weir_test_gate before; /* no child may find a permit: all parents run before the first submits */
        struct weir_test_gate gate;
        weir_test_gate_init(&before);
        weir_test_gate_init(&gate);
        for (unsigned i = 0; i < count; i++) {
            init_parent(&parents[i], pool);
            parents[i].before = &before;
            parents[i].gate = &gate;
            ck_assert_int_eq(weir_job_submit(pool, &parents[i].job), 0);
        }
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&before) == count);
        weir_test_gate_open(&before);
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == count);
        weir_test_gate_open(&gate);
        unsigned refused = 0;
        for (unsigned i = 0; i < count; i++) {
            ck_assert_int_eq(weir_job_wait(&parents[i].job, WEIR_FOREVER), 0);
            ck_assert_int_eq(parents[i].submitted, 0);
            ck_assert(parents[i].answer == 0 || parents[i].answer == EDEADLK);
            refused += parents[i].answer == EDEADLK ? 1 : 0;
        }
        ck_assert_uint_eq(refused, 1);
        for (unsigned i = 0; i < count; i++)
            ck_assert_int_eq(weir_job_wait(&parents[i].child.job, WEIR_FOREVER), 0);
        end(pool);
        weir_test_gate_destroy(&before);
        weir_test_gate_destroy(&gate);
    }
}
END_TEST

struct caller {
    weir_job job;
    weir_pool *pool;
    struct weir_test_gate *gate;
    atomic_uint called;
    int answer;
    weir_outcome outcome;
};

static weir_outcome count_call(void *called)
{
    (void)atomic_fetch_add((atomic_uint *)called, 1);
    return WEIR_IGNORE;
}

static weir_outcome run_caller(void *arg)
{
    struct caller *caller = arg;
    weir_test_gate_pass(caller->gate);
    caller->answer = weir_pool_call(caller->pool, count_call, &caller->called, &caller->outcome);
    return WEIR_SUCCESS;
}

/* The same for call: the one that is refused never runs its function. */
START_TEST(test_calls)
{
    for (unsigned round = weir_test_divided(300, 10); round > 0; round--) {
        unsigned count = 1 + round % PARENTS_MOST;
        weir_pool *pool = weir_test_plain_pool(count, PARENTS_MOST);
        struct caller callers[PARENTS_MOST];
        struct weir_test_gate gate;
        weir_test_gate_init(&gate);
        for (unsigned i = 0; i < count; i++) {
            callers[i] = (struct caller){WEIR_JOB_INIT(run_caller, &callers[i]), pool, &gate, 0, -1, WEIR_SUCCESS};
            ck_assert_int_eq(weir_job_submit(pool, &callers[i].job), 0);
        }
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == count);
        weir_test_gate_open(&gate);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
        for (unsigned i = 0; i < count; i++) {
            ck_assert(callers[i].answer == EDEADLK || (callers[i].answer == 0 && callers[i].outcome == WEIR_IGNORE));
            ck_assert_uint_eq(atomic_load(&callers[i].called), callers[i].answer == 0 ? 1 : 0);
            ck_assert(count > 1 || callers[i].answer == EDEADLK);
        }
        end(pool);
        weir_test_gate_destroy(&gate);
    }
}
END_TEST

/* A job waits for one that runs, or that has ended, or that belongs to another pool, however full its pool is. */
START_TEST(test_waits_that_are_none)
{
    weir_pool *pool = weir_test_plain_pool(2, 10);
    weir_pool *other = weir_test_plain_pool(1, 10);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_job running = WEIR_JOB_INIT(weir_test_pass, &gate);
    struct parent parent;
    ck_assert_int_eq(weir_job_submit(pool, &running), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    init_parent(&parent, pool);
    parent.awaited = &running;
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    WEIR_TEST_UNTIL(waiting_jobs(pool) == 1);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, 0);

    ck_assert_int_eq(weir_job_submit(other, &parent.job), 0); /* running has ended by now */
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, 0);

    init_parent(&parent, pool);
    ck_assert_int_eq(weir_job_submit(other, &parent.job), 0);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, 0);
    end(pool);
    end(other);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Where waiting is allowed, its deadline counts, and the child goes on. */
START_TEST(test_timed_wait_of_a_job)
{
    struct weir_test_gate gate;
    struct parent parent;
    weir_pool *pool = weir_test_plain_pool(2, 10);
    weir_test_gate_init(&gate);
    weir_job blocker = WEIR_JOB_INIT(weir_test_pass, &gate);
    ck_assert_int_eq(weir_job_submit(pool, &blocker), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    init_parent(&parent, pool);
    parent.patience_ns = WEIR_TEST_SHORT_NS;
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, EINPROGRESS);
    ck_assert_int_eq(weir_job_wait(&parent.child.job, WEIR_FOREVER), 0);
    weir_test_gate_open(&gate);
    end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

enum { BIG_FALL = 8 };

/* The limit falls to 1 while all but one of the running jobs wait for queued ones: they get through all the same. */
START_TEST(test_the_limit_falls_meanwhile)
{
    for (unsigned round = weir_test_divided(40, 4); round > 0; round--) {
        weir_pool *pool = scripted_pool(BIG_FALL);
        struct parent parents[BIG_FALL - 1];
        struct weir_test_gate gate; /* before the children are submitted */
        struct weir_test_gate last_gate;
        weir_test_gate_init(&gate);
        weir_test_gate_init(&last_gate);
        weir_job last = WEIR_JOB_INIT(weir_test_pass, &last_gate);
        ck_assert_int_eq(weir_job_submit(pool, &last), 0);
        for (int i = 0; i < BIG_FALL - 1; i++) {
            init_parent(&parents[i], pool);
            parents[i].before = &gate;
            ck_assert_int_eq(weir_job_submit(pool, &parents[i].job), 0);
        }
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == BIG_FALL - 1);
        weir_test_gate_open(&gate);
        WEIR_TEST_UNTIL(waiting_jobs(pool) == BIG_FALL - 1);
        atomic_store(&scripted_limit, 1);
        weir_test_gate_open(&last_gate);
        for (int i = 0; i < BIG_FALL - 1; i++) {
            ck_assert_int_eq(weir_job_wait(&parents[i].job, WEIR_FOREVER), 0);
            ck_assert_int_eq(parents[i].answer, 0);
        }
        ck_assert_uint_eq(weir_test_snapshot(pool).limit, 1);
        end(pool);
        weir_test_gate_destroy(&gate);
        weir_test_gate_destroy(&last_gate);
    }
}
END_TEST

/* The same with weights: a job of weight 2 waits for one of weight 3. */
START_TEST(test_the_limit_falls_below_a_weight)
{
    weir_pool *pool = scripted_pool(5);
    struct parent parent;
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_job last = WEIR_JOB_INIT(weir_test_pass, &gate);
    last.weight = 3;
    ck_assert_int_eq(weir_job_submit(pool, &last), 0);
    init_parent(&parent, pool);
    parent.job.weight = 2;
    parent.child.job.weight = 3;
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    WEIR_TEST_UNTIL(waiting_jobs(pool) == 1);
    atomic_store(&scripted_limit, 1);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, 0);
    end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* What a job waits for may be cancelled by a shutdown. */
START_TEST(test_shutdown_meanwhile)
{
    weir_pool *pool = weir_test_plain_pool(2, 10);
    struct weir_test_gate gate;
    struct parent parent;
    weir_test_gate_init(&gate);
    weir_job blocker = WEIR_JOB_INIT(weir_test_pass, &gate);
    ck_assert_int_eq(weir_job_submit(pool, &blocker), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    init_parent(&parent, pool);
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    WEIR_TEST_UNTIL(waiting_jobs(pool) == 1);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, 0), ETIMEDOUT);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, ECANCELED);
    weir_test_gate_open(&gate);
    end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* In a paused pool a job may wait where there is a permit for what it waits for, and gets it after the resume. */
START_TEST(test_pause_meanwhile)
{
    weir_pool *pool = weir_test_plain_pool(2, 10);
    struct weir_test_gate gate;
    struct parent parent;
    weir_test_gate_init(&gate);
    init_parent(&parent, pool);
    parent.before = &gate;
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(waiting_jobs(pool) == 1);
    ck_assert_int_eq(weir_job_outcome(&parent.child.job, NULL), EINPROGRESS);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.answer, 0);
    end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

static int ends[4];

static void try_to_end(weir_job *job)
{
    weir_pool *pool = job->arg;
    ends[0] = weir_pool_drain(pool, WEIR_FOREVER);
    ends[1] = weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER);
    ends[2] = weir_pool_destroy(pool);
}

static weir_outcome end_own_pool(void *pool)
{
    ends[3] = weir_pool_drain(pool, WEIR_FOREVER) == EDEADLK && weir_pool_destroy(pool) == EDEADLK ? EDEADLK : 0;
    return WEIR_SUCCESS;
}

/* Neither a job nor its on_done can wait for the end of the pool. */
START_TEST(test_end_of_the_own_pool)
{
    weir_pool *pool = weir_test_plain_pool(2, 10);
    weir_job job = WEIR_JOB_INIT(end_own_pool, pool);
    job.on_done = try_to_end;
    ck_assert_int_eq(weir_job_submit(pool, &job), 0);
    end(pool);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ends[i], EDEADLK);
}
END_TEST

static weir_outcome submit_at_ceiling(void *arg)
{
    struct parent *parent = arg;
    parent->submitted = weir_job_submit(parent->pool, &parent->child.job);
    parent->answer = weir_job_timedsubmit(parent->pool, &parent->child.job, WEIR_FOREVER);
    return WEIR_SUCCESS;
}

/* A job that would block on its own ceiling is refused, and the handle is as before. */
START_TEST(test_submit_at_the_own_ceiling)
{
    weir_pool *pool = weir_test_plain_pool(1, 0);
    struct parent parent;
    init_parent(&parent, pool);
    parent.job.fn = submit_at_ceiling;
    ck_assert_int_eq(weir_job_submit(pool, &parent.job), 0);
    ck_assert_int_eq(weir_job_wait(&parent.job, WEIR_FOREVER), 0);
    ck_assert_int_eq(parent.submitted, EDEADLK);
    ck_assert_int_eq(parent.answer, EDEADLK);
    ck_assert_int_eq(weir_job_submit(pool, &parent.child.job), 0);
    end(pool);
    ck_assert_uint_eq(atomic_load(&parent.child.ran), 1);
}
END_TEST

int main(void)
{
    const TTest *const deadlock[] = {test_alone, test_the_last_that_runs, test_calls, test_waits_that_are_none, NULL};
    const TTest *const meanwhile[] = {
        test_timed_wait_of_a_job, test_the_limit_falls_meanwhile, test_the_limit_falls_below_a_weight,
        test_shutdown_meanwhile,  test_pause_meanwhile,           NULL};
    const TTest *const own[] = {test_end_of_the_own_pool, test_submit_at_the_own_ceiling, NULL};
    Suite *suite = suite_create("nested");
    weir_test_group(suite, "deadlock", deadlock);
    weir_test_group(suite, "meanwhile", meanwhile);
    weir_test_group(suite, "own pool", own);
    return weir_test_main(suite);
}
