/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Shares of the limit and of the queue. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admission.h"
#include "job_support.h"

#define LIVE_AND_BATCH "live=0.9,batch=0.1"

static weir_pool *fixed_pool(uint32_t limit, uint32_t depth, const char *partitions)
{
    weir_config config = weir_test_fixed(limit, depth, partitions);
    return weir_test_pool(&config);
}

static int submit(weir_pool *pool, struct weir_test_task *task, const char *partition)
{
    weir_test_task_init(task, partition, 1);
    return weir_job_trysubmit(pool, &task->job);
}

/* Submits until it is refused or all are in; how many are. */
static unsigned flood(weir_pool *pool, struct weir_test_task *tasks, unsigned count, const char *partition)
{
    for (unsigned i = 0; i < count; i++) {
        int error = submit(pool, &tasks[i], partition);
        if (error == 0)
            continue;
        ck_assert_int_eq(error, EAGAIN);
        return i;
    }
    return count;
}

static void let_go(struct weir_test_task *tasks, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        weir_test_task_go(&tasks[i]);
}

static void finish(struct weir_test_task *tasks, unsigned count)
{
    let_go(tasks, count);
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(weir_job_wait(&tasks[i].job, WEIR_FOREVER), 0);
        weir_test_task_destroy(&tasks[i]);
    }
}

/* ---- names ---- */

static int submit_in(weir_pool *pool, const char *partition)
{
    struct weir_test_task task;
    int error = submit(pool, &task, partition);
    if (error == 0)
        weir_test_task_finish(&task);
    weir_test_task_destroy(&task);
    return error;
}

static int acquire_in(weir_limiter *limiter, const char *partition)
{
    weir_permit permit = {0};
    int error = weir_limiter_acquire_many(limiter, &permit, 1, partition, 0);
    if (error == 0)
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    return error;
}

/* A job or a caller names a partition that exists, or none; another name is refused and counts nowhere. */
START_TEST(unknown_names_are_refused)
{
    static const char *const unknown[] = {"", "Live", "liv", "lives", "live=0.9", "default", " live"};
    weir_pool *pool = fixed_pool(4, 4, LIVE_AND_BATCH);
    weir_pool *plain = fixed_pool(4, 4, NULL);
    for (unsigned i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        ck_assert_int_eq(submit_in(pool, unknown[i]), EINVAL);
        ck_assert_int_eq(acquire_in(weir_pool_limiter(pool), unknown[i]), EINVAL);
    }
    ck_assert_int_eq(submit_in(plain, "live"), EINVAL);
    ck_assert_uint_eq(weir_test_pool_stats(pool).submitted, 0);
    ck_assert_int_eq(submit_in(pool, "live"), 0);
    ck_assert_int_eq(submit_in(pool, "batch"), 0);
    ck_assert_int_eq(submit_in(pool, NULL), 0);
    ck_assert_int_eq(acquire_in(weir_pool_limiter(pool), "live"), 0);
    ck_assert_int_eq(acquire_in(weir_pool_limiter(pool), NULL), 0);
    ck_assert_uint_eq(weir_test_pool_stats(pool).submitted, 3);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_int_eq(weir_pool_destroy(plain), 0);
}
END_TEST

static weir_pool *pool_by_environment(const char *name)
{
    weir_config config = weir_test_fixed(4, 4, NULL);
    weir_pool *pool = NULL;
    config.flags = 0;
    ck_assert_int_eq(weir_pool_create(&pool, name, &config), 0);
    return pool;
}

/* The environment names the partitions of every pool, and of one pool by its name. */
START_TEST(named_by_the_environment)
{
    ck_assert_int_eq(setenv("WEIR_PARTITIONS", "red=0.5,green=0.25", 1), 0);
    ck_assert_int_eq(setenv("WEIR_PARTITIONS__ORDER_BOOK", "blue=1", 1), 0);
    weir_pool *any = pool_by_environment("any");
    weir_pool *book = pool_by_environment("order-book");
    ck_assert_int_eq(submit_in(any, "red"), 0);
    ck_assert_int_eq(submit_in(any, "green"), 0);
    ck_assert_int_eq(submit_in(any, "blue"), EINVAL);
    ck_assert_int_eq(submit_in(book, "blue"), 0);
    ck_assert_int_eq(submit_in(book, "red"), EINVAL);
    ck_assert_int_eq(weir_pool_destroy(any), 0);
    ck_assert_int_eq(weir_pool_destroy(book), 0);
    ck_assert_int_eq(setenv("WEIR_PARTITIONS", "red=0.9,green=0.2", 1), 0);
    weir_config config = weir_test_fixed(4, 4, NULL);
    weir_pool *pool = NULL;
    config.flags = 0;
    weir_test_log_capture();
    ck_assert_int_eq(weir_pool_create(&pool, "any", &config), EINVAL);
    weir_test_log_release();
    ck_assert_int_eq(unsetenv("WEIR_PARTITIONS"), 0);
    ck_assert_int_eq(unsetenv("WEIR_PARTITIONS__ORDER_BOOK"), 0);
}
END_TEST

/* ---- shares of the limit ---- */

/* Batch fills what is idle. When live asks again every permit that comes back is live's until it has its share, so
 * within the time in which each running job ends once. */
START_TEST(live_takes_its_share_back)
{
    enum { LIMIT = 10, LIVE = 20, BATCH = 60 };
    weir_pool *pool = fixed_pool(LIMIT, 400, LIVE_AND_BATCH);
    static struct weir_test_task live[LIVE];
    static struct weir_test_task batch[BATCH];
    unsigned admitted = flood(pool, batch, BATCH, "batch");
    ck_assert_uint_eq(admitted, 50); /* ten run, and a tenth of the queue's places is batch's */
    WEIR_TEST_UNTIL(weir_test_tasks_begun(batch, admitted) == LIMIT);
    ck_assert_uint_eq(flood(pool, live, LIVE, "live"), LIVE);
    ck_assert_uint_eq(weir_test_tasks_begun(live, LIVE), 0);
    for (unsigned i = 0; i < LIMIT; i++) {
        weir_test_task_finish(&batch[i]);
        unsigned expected = i + 1 < 9 ? i + 1 : 9;
        WEIR_TEST_UNTIL(weir_test_tasks_begun(live, LIVE) >= expected &&
                        weir_test_tasks_begun(live, LIVE) + weir_test_tasks_begun(batch, admitted) == LIMIT + i + 1);
        ck_assert_uint_eq(weir_test_tasks_begun(live, LIVE), expected);
    }
    for (unsigned i = 0; i < LIVE; i++) /* and it keeps the share while it has work */
        weir_test_task_finish(&live[i]);
    WEIR_TEST_UNTIL(weir_test_tasks_begun(batch, admitted) == 2 * LIMIT); /* then batch has it all again */
    finish(batch + LIMIT, admitted - LIMIT);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* In steady state, with both partitions at work beyond their shares, each has its share of what runs, whoever ends. */
START_TEST(shares_hold_under_load)
{
    enum { LIMIT = 10, DEEP = 30 };
    uint64_t random = weir_test_seed();
    weir_pool *pool = fixed_pool(LIMIT, 1000, LIVE_AND_BATCH);
    static struct weir_test_task tasks[2][DEEP];
    static const char *const names[2] = {"live", "batch"};
    unsigned oldest[2] = {0, 0};
    unsigned most = 0; /* of live at once */
    for (unsigned i = 0; i < DEEP; i++) {
        ck_assert_int_eq(submit(pool, &tasks[0][i], "live"), 0);
        ck_assert_int_eq(submit(pool, &tasks[1][i], "batch"), 0);
    }
    for (unsigned step = 0; step < 200 + weir_test_scaled(1800);
         step++) { /* it takes dozens until live has its share */
        WEIR_TEST_UNTIL(weir_test_tasks_begun(tasks[0], DEEP) + weir_test_tasks_begun(tasks[1], DEEP) == LIMIT);
        unsigned running = weir_test_tasks_begun(tasks[0], DEEP);
        if (running < most)
            ck_abort_msg("after %u ends %u of live run, and once %u did", step, running, most);
        most = running;
        unsigned which = weir_test_random(&random) % LIMIT < running ? 0 : 1;
        struct weir_test_task *task = &tasks[which][oldest[which]++ % DEEP];
        weir_test_task_finish(task);
        weir_test_task_destroy(task);
        ck_assert_int_eq(submit(pool, task, names[which]), 0);
    }
    let_go(tasks[0], DEEP);
    let_go(tasks[1], DEEP);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_uint_eq(most, 9);
}
END_TEST

/* Work that names no partition has what the shares leave. */
START_TEST(the_rest_is_for_who_names_none)
{
    enum { LIMIT = 8, MANY = 20 };
    weir_pool *pool = fixed_pool(LIMIT, 1000, "live=0.75");
    static struct weir_test_task live[MANY];
    static struct weir_test_task other[MANY];
    ck_assert_uint_eq(flood(pool, live, MANY, "live"), MANY);
    ck_assert_uint_eq(flood(pool, other, MANY, NULL), MANY);
    for (unsigned i = 0; i < 2; i++) {
        WEIR_TEST_UNTIL(weir_test_tasks_begun(live, MANY) == LIMIT);
        ck_assert_uint_eq(weir_test_tasks_begun(other, MANY), i);
        weir_test_task_finish(&live[i]);
        WEIR_TEST_UNTIL(weir_test_tasks_begun(other, MANY) == i + 1);
    }
    weir_test_task_finish(&live[2]); /* a quarter of eight is two */
    WEIR_TEST_UNTIL(weir_test_tasks_begun(live, MANY) == LIMIT + 1);
    ck_assert_uint_eq(weir_test_tasks_begun(other, MANY), 2);
    let_go(other, MANY);
    finish(live + 3, MANY - 3);
    finish(other, MANY);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* A share of 0 has permits while nobody else asks for them, and none as long as others do. */
START_TEST(floor_of_zero)
{
    enum { MANY = 6 };
    weir_pool *pool = fixed_pool(2, 10, "live=1,spare=0");
    static struct weir_test_task live[MANY];
    struct weir_test_task idle;
    struct weir_test_client spare;
    ck_assert_int_eq(submit(pool, &idle, "spare"), 0);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&idle));
    ck_assert_uint_eq(flood(pool, live, MANY, "live"), MANY);
    weir_test_client_submit(&spare, pool, "spare", 1, WEIR_FOREVER); /* its partition has no places in the queue */
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).waiting == 1);
    weir_test_task_finish(&idle);
    for (unsigned i = 0; i < MANY - 1; i++) {
        WEIR_TEST_UNTIL(weir_test_task_has_begun(&live[i]) && weir_test_task_has_begun(&live[i + 1]));
        ck_assert(!weir_test_task_has_begun(&spare.task));
        weir_test_task_finish(&live[i]);
    }
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&spare.task)); /* live needs one permit only */
    weir_test_client_go(&spare);
    ck_assert_int_eq(weir_test_client_join(&spare), 0);
    weir_test_task_finish(&live[MANY - 1]);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* ---- shares of the queue ---- */

/* The places of the queue are shared out like the permits: a flood leaves those that others are guaranteed. */
START_TEST(places_are_kept)
{
    enum { LIMIT = 2, DEPTH = 20 };
    weir_pool *pool = fixed_pool(LIMIT, DEPTH, "live=0.5,batch=0.2"); /* and 0.3 for who names none */
    static struct weir_test_task live[DEPTH + LIMIT];
    static struct weir_test_task batch[DEPTH + LIMIT];
    static struct weir_test_task other[DEPTH + LIMIT];
    unsigned batch_count = flood(pool, batch, DEPTH + LIMIT, "batch");
    ck_assert_uint_eq(batch_count, LIMIT + 4);
    unsigned live_count = flood(pool, live, DEPTH + LIMIT, "live");
    ck_assert_uint_eq(live_count, 10);
    unsigned other_count = flood(pool, other, DEPTH + LIMIT, NULL);
    ck_assert_uint_eq(other_count, 6);
    weir_stats stats = weir_test_pool_stats(pool);
    ck_assert_uint_eq(stats.queued, DEPTH);
    ck_assert_uint_eq(stats.shed, 3);
    let_go(batch, batch_count);
    let_go(live, live_count);
    let_go(other, other_count);
    finish(batch, batch_count);
    finish(live, live_count);
    finish(other, other_count);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* A submitter that blocks for a place of one partition does not block those of another. */
START_TEST(ceilings_are_apart)
{
    weir_pool *pool = fixed_pool(1, 2, "live=0.5,batch=0.5");
    struct weir_test_task batch[2];
    struct weir_test_task live;
    struct weir_test_client blocked;
    ck_assert_uint_eq(flood(pool, batch, 2, "batch"), 2);
    weir_test_client_submit(&blocked, pool, "batch", 1, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).waiting == 1);
    ck_assert_int_eq(submit(pool, &live, "live"), 0);
    ck_assert(!weir_test_client_answered(&blocked));
    weir_test_task_finish(&batch[0]);
    weir_test_task_finish(&live);
    weir_test_task_finish(&batch[1]);
    weir_test_client_go(&blocked);
    ck_assert_int_eq(weir_test_client_join(&blocked), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* ---- a limiter's partitions ---- */

/* Direct callers: what is released goes to live until it has its share; batch has the rest. */
START_TEST(limiter_shares)
{
    enum { LIMIT = 10, LIVE = 12, BATCH = 4 };
    weir_config config = weir_test_fixed(LIMIT, 0, LIVE_AND_BATCH);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit held[LIMIT] = {{{0}}};
    struct weir_test_client live[LIVE];
    struct weir_test_client batch[BATCH];
    for (unsigned i = 0; i < LIMIT; i++)
        ck_assert_int_eq(weir_limiter_acquire_many(limiter, &held[i], 1, "batch", 0), 0);
    ck_assert_int_eq(acquire_in(limiter, "live"), ETIMEDOUT);
    for (unsigned i = 0; i < BATCH; i++)
        weir_test_client_acquire(&batch[i], limiter, "batch", 1, WEIR_FOREVER);
    for (unsigned i = 0; i < LIVE; i++)
        weir_test_client_acquire(&live[i], limiter, "live", 1, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_limiter_stats(limiter).waiting == LIVE + BATCH);
    for (unsigned i = 0; i < LIMIT; i++) {
        ck_assert_int_eq(weir_limiter_release(limiter, &held[i], WEIR_SUCCESS), 0);
        ck_assert_uint_eq(weir_test_limiter_stats(limiter).in_flight, LIMIT);
    }
    unsigned live_served = 0;
    unsigned batch_served = 0;
    WEIR_TEST_UNTIL(weir_test_limiter_stats(limiter).waiting == LIVE + BATCH - LIMIT);
    while (live_served + batch_served < LIMIT) {
        live_served = batch_served = 0;
        for (unsigned i = 0; i < LIVE; i++)
            live_served += weir_test_client_answered(&live[i]) ? 1 : 0;
        for (unsigned i = 0; i < BATCH; i++)
            batch_served += weir_test_client_answered(&batch[i]) ? 1 : 0;
        weir_test_yield();
    }
    ck_assert_uint_eq(live_served, 9);
    ck_assert_uint_eq(batch_served, 1);
    for (unsigned i = 0; i < LIVE; i++)
        weir_test_client_go(&live[i]);
    for (unsigned i = 0; i < BATCH; i++)
        weir_test_client_go(&batch[i]);
    for (unsigned i = 0; i < LIVE; i++)
        ck_assert_int_eq(weir_test_client_join(&live[i]), 0);
    for (unsigned i = 0; i < BATCH; i++)
        ck_assert_int_eq(weir_test_client_join(&batch[i]), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* Permits that are free and within live's share are live's at once, also while somebody heavy waits who would only
 * borrow them: an acquire and a submit that do not wait get them. */
START_TEST(free_permits_of_a_share)
{
    weir_pool *pool = fixed_pool(10, 0, LIVE_AND_BATCH);
    weir_limiter *limiter = weir_pool_limiter(pool);
    weir_permit six = {0};
    weir_permit one = {0};
    struct weir_test_client heavy;
    struct weir_test_task live;
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &six, 6, "batch", 0), 0);
    weir_test_client_acquire(&heavy, limiter, "batch", 5, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_limiter_stats(limiter).waiting == 1);
    int acquired = weir_limiter_acquire_many(limiter, &one, 1, "live", 0);
    int submitted = submit(pool, &live, "live");
    if (submitted == 0)
        weir_test_task_finish(&live);
    if (acquired == 0)
        ck_assert_int_eq(weir_limiter_release(limiter, &one, WEIR_SUCCESS), 0);
    ck_assert_int_eq(weir_limiter_release(limiter, &six, WEIR_SUCCESS), 0);
    weir_test_client_go(&heavy);
    ck_assert_int_eq(weir_test_client_join(&heavy), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_int_eq(acquired, 0);
    ck_assert_int_eq(submitted, 0);
}
END_TEST

/* ---- figures ---- */

static weir_partition_stats figures(weir_pool *pool, const char *partition)
{
    weir_partition_stats stats = {.size = sizeof stats};
    ck_assert_int_eq(weir_pool_partition_stats(pool, partition, &stats), 0);
    ck_assert_uint_eq(stats.submitted, stats.queued + stats.running + stats.succeeded + stats.ignored + stats.dropped +
                                           stats.expired + stats.cancelled);
    return stats;
}

/* Each partition's part of what happens, and nobody else's. */
START_TEST(figures_of_a_partition)
{
    enum { LIMIT = 2, DEPTH = 20 };
    weir_pool *pool = fixed_pool(LIMIT, DEPTH, "live=0.5,batch=0.2");
    weir_limiter *limiter = weir_pool_limiter(pool);
    static struct weir_test_task live[2];
    static struct weir_test_task batch[8];
    struct weir_test_task late;
    weir_permit permit = {0};
    ck_assert_uint_eq(flood(pool, live, 2, "live"), 2);
    WEIR_TEST_UNTIL(weir_test_tasks_begun(live, 2) == 2);
    ck_assert_uint_eq(flood(pool, batch, 8, "batch"), 4);
    weir_partition_stats stats = figures(pool, "live");
    ck_assert_double_eq_tol(stats.share, 0.5, 1e-12);
    ck_assert(stats.submitted == 2 && stats.running == 2 && stats.in_flight == 2 && stats.queued == 0);
    ck_assert(stats.queue_depth == 10 && stats.shed == 0 && stats.waiting == 0);
    stats = figures(pool, "batch");
    ck_assert_double_eq_tol(stats.share, 0.2, 1e-12);
    ck_assert(stats.submitted == 4 && stats.running == 0 && stats.in_flight == 0 && stats.queued == 4);
    ck_assert(stats.queue_depth == 4 && stats.shed == 1);
    stats = figures(pool, NULL);
    ck_assert_double_eq_tol(stats.share, 0.3, 1e-9);
    ck_assert(stats.submitted == 0 && stats.queue_depth == 6);

    ck_assert_int_eq(weir_job_cancel(&batch[0].job), 0);
    weir_test_task_init(&late, "batch", 1);
    late.job.deadline_ns = weir_after_ns(100000000);
    ck_assert_int_eq(weir_job_trysubmit(pool, &late.job), 0);
    ck_assert_int_eq(weir_job_wait(&late.job, WEIR_FOREVER), ETIMEDOUT);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 1, "batch", 0), ETIMEDOUT);
    late.job.deadline_ns = 1;
    ck_assert_int_eq(weir_job_trysubmit(pool, &late.job), ETIMEDOUT);
    stats = figures(pool, "batch");
    ck_assert(stats.submitted == 5 && stats.queued == 3 && stats.cancelled == 1 && stats.expired == 1);
    ck_assert(stats.timed_out == 2 && stats.shed == 1);

    live[0].outcome = WEIR_DROPPED;
    live[1].outcome = WEIR_IGNORE;
    finish(live, 2);
    finish(batch + 1, 3);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 2, "live", 0), 0);
    stats = figures(pool, "live");
    ck_assert(stats.submitted == 3 && stats.dropped == 1 && stats.ignored == 1 && stats.succeeded == 0);
    ck_assert(stats.in_flight == 2 && stats.running == 1);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    stats = figures(pool, "live");
    ck_assert(stats.succeeded == 1 && stats.in_flight == 0 && stats.running == 0);
    ck_assert(figures(pool, "batch").succeeded == 3);
    ck_assert(figures(pool, NULL).submitted == 0);
    weir_test_task_destroy(&late);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* What a shutdown cancels is that of its partition; bad arguments are refused; an old caller's structure is not
 * overrun. */
START_TEST(figures_at_the_end)
{
    weir_pool *pool = fixed_pool(1, 20, "live=0.25,batch=0.5");
    static struct weir_test_task first;
    static struct weir_test_task batch[5];
    weir_partition_stats stats[2];
    ck_assert_int_eq(submit(pool, &first, "live"), 0);
    ck_assert_uint_eq(flood(pool, batch, 5, "batch"), 5);
    for (int i = 0; i < 4; i++) /* with nodes of the pool, too */
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_task_run, &first), 0);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&first));
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, 0), ETIMEDOUT);
    ck_assert_uint_eq(figures(pool, "batch").cancelled, 5);
    ck_assert_uint_eq(figures(pool, NULL).cancelled, 4);
    ck_assert_uint_eq(figures(pool, "live").running, 1);
    weir_test_task_finish(&first);
    ck_assert_uint_eq(figures(pool, "live").succeeded, 1);

    ck_assert_int_eq(weir_pool_partition_stats(NULL, "live", stats), EINVAL);
    ck_assert_int_eq(weir_limiter_partition_stats(NULL, "live", stats), EINVAL);
    ck_assert_int_eq(weir_pool_partition_stats(pool, "lives", stats), EINVAL);
    ck_assert_int_eq(weir_pool_partition_stats(pool, "live", NULL), EINVAL);
    memset(stats, 0x55, sizeof stats);
    stats[0].size = 0;
    ck_assert_int_eq(weir_limiter_partition_stats(weir_pool_limiter(pool), "live", stats), 0);
    ck_assert(stats[0].size == sizeof stats[0] && stats[1].size != 0);
    ck_assert_uint_eq(stats[0].succeeded, 1);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* ---- shares in virtual time ---- */

enum { MOST_PERMITS = 200, ALL = 3, BATCH_INDEX = 2, LIVE_INDEX = 1 };

/* Calls of a downstream on a virtual clock; what asks has always another call. */
struct course {
    struct weir__partitions partitions;
    struct weir__unit units[ALL]; /* one of each partition waits at a time, and is used again */
    double ends[MOST_PERMITS];    /* of what runs */
    uint16_t whose[MOST_PERMITS];
    uint32_t running;
    uint32_t limit;
    double now;
    bool asking[ALL];
    uint64_t ended[ALL];
    uint64_t random;
};

static void ask(struct course *course, uint16_t index)
{
    struct weir__partition *partition = &course->partitions.all[index];
    struct weir__unit *unit = &course->units[index];
    if (!course->asking[index] || partition->line.first != NULL)
        return;
    *unit = (struct weir__unit){.weight = 1, .partition = index, .kind = WEIR__JOB};
    weir__partition_join(&course->partitions, unit);
}

/* RTTs from 0.5 to 1. */
static void serve(struct course *course)
{
    for (;;) {
        ask(course, LIVE_INDEX);
        ask(course, BATCH_INDEX);
        struct weir__unit *unit = weir__partitions_next(&course->partitions, course->limit, false);
        if (unit == NULL || course->running == course->limit)
            return;
        weir__partition_leave(&course->partitions, unit);
        weir__partition_use(&course->partitions, unit->partition, 1);
        course->ends[course->running] = course->now + 0.5 + 0.5 * weir_test_uniform(&course->random);
        course->whose[course->running++] = unit->partition;
    }
}

static void run_until(struct course *course, double end)
{
    for (;;) {
        uint32_t next = 0;
        for (uint32_t i = 1; i < course->running; i++)
            next = course->ends[i] < course->ends[next] ? i : next;
        if (course->running == 0 || course->ends[next] > end)
            break;
        course->now = course->ends[next];
        course->partitions.all[course->whose[next]].in_use--;
        course->ended[course->whose[next]]++;
        course->ends[next] = course->ends[--course->running];
        course->whose[next] = course->whose[course->running];
        serve(course);
    }
    course->now = end;
}

static const uint32_t course_limits[] = {10, 20, 47, 64, 100, 200};

/* live=0.9,batch=0.1 and a flood of batch. Live asks for all it can get, off and on: each time it has its share one RTT
 * later, keeps it as long as it asks, and has 0.89 of what ends; when it asks no more, batch has everything one RTT
 * later. */
START_TEST(live_has_its_share_within_an_rtt)
{
    static struct course course;
    memset(&course, 0, sizeof course);
    course.limit = course_limits[_i];
    course.random = weir_test_seed();
    course.asking[BATCH_INDEX] = true;
    uint32_t share = (uint32_t)(0.9 * course.limit + 1e-9);
    uint64_t lives = 0;
    uint64_t batches = 0;
    ck_assert_int_eq(weir__partitions_init(&course.partitions, LIVE_AND_BATCH), 0);
    serve(&course);
    for (int turn = 0; turn < 50; turn++) {
        run_until(&course, course.now + 3 + weir_test_uniform(&course.random));
        ck_assert_uint_eq(course.partitions.all[BATCH_INDEX].in_use, course.limit);
        course.asking[LIVE_INDEX] = true;
        serve(&course);
        run_until(&course, course.now + 1); /* the longest RTT */
        ck_assert_uint_ge(course.partitions.all[LIVE_INDEX].in_use, share);
        uint64_t live = course.ended[LIVE_INDEX];
        uint64_t batch = course.ended[BATCH_INDEX];
        for (int i = 0; i < 40; i++) {
            run_until(&course, course.now + 0.5);
            ck_assert_uint_ge(course.partitions.all[LIVE_INDEX].in_use, share);
        }
        lives += course.ended[LIVE_INDEX] - live;
        batches += course.ended[BATCH_INDEX] - batch;
        course.asking[LIVE_INDEX] = false;
        if (course.partitions.all[LIVE_INDEX].line.first != NULL)
            weir__partition_leave(&course.partitions, &course.units[LIVE_INDEX]);
        run_until(&course, course.now + 1);
        ck_assert_uint_eq(course.partitions.all[BATCH_INDEX].in_use, course.limit);
    }
    ck_assert_double_ge((double)lives / (double)(lives + batches), 0.89);
    weir__partitions_free(&course.partitions);
}
END_TEST

/* ---- floods ---- */

enum { FLOOD_LIMIT = 10, RING = 512 };

struct party {
    weir_pool *pool;
    const char *partition;
    atomic_bool over;
    atomic_ullong ended;
    atomic_uint failures;
    weir_job jobs[RING]; /* more than its places in the queue: it asks at any time, however late its thread is */
    pthread_t thread;
};

static atomic_uint at_work;
static atomic_uint most_at_work;

/* A downstream that takes a millisecond, so that what runs decides how much ends. */
static weir_outcome work(void *party)
{
    unsigned now = atomic_fetch_add(&at_work, 1) + 1;
    unsigned most = atomic_load(&most_at_work);
    while (now > most && !atomic_compare_exchange_weak(&most_at_work, &most, now))
        ;
    struct timespec pause = {.tv_nsec = 1000000};
    (void)nanosleep(&pause, NULL);
    atomic_fetch_sub(&at_work, 1);
    atomic_fetch_add(&((struct party *)party)->ended, 1);
    return WEIR_SUCCESS;
}

static void *press(void *arg)
{
    struct party *party = arg;
    for (unsigned i = 0; i < RING; i++) {
        party->jobs[i] = (weir_job)WEIR_JOB_INIT(work, party);
        party->jobs[i].partition = party->partition;
    }
    unsigned made = 0;
    for (; !atomic_load(&party->over); made++) {
        weir_job *job = &party->jobs[made % RING];
        if ((made >= RING && weir_job_wait(job, WEIR_FOREVER) != 0) || weir_job_submit(party->pool, job) != 0)
            atomic_fetch_add(&party->failures, 1);
    }
    for (unsigned i = 0; i < RING && i < made; i++) {
        if (weir_job_wait(&party->jobs[i], WEIR_FOREVER) != 0)
            atomic_fetch_add(&party->failures, 1);
    }
    return NULL;
}

static void join_in(struct party *party, weir_pool *pool, const char *partition)
{
    party->pool = pool;
    party->partition = partition;
    ck_assert_int_eq(pthread_create(&party->thread, NULL, press, party), 0);
}

static void leave(struct party *party)
{
    atomic_store(&party->over, true);
    ck_assert_int_eq(pthread_join(party->thread, NULL), 0);
    ck_assert_uint_eq(party->failures, 0);
}

/* A flood of batch work leaves live at least 0.89 of the completions, for live asks for all of its share; without live
 * batch has every permit; and never more run than the limit allows. */
START_TEST(batch_flood)
{
    static struct party live;
    static struct party batch;
    unsigned rounds = weir_test_scaled(4000);
    weir_pool *pool = fixed_pool(FLOOD_LIMIT, 400, LIVE_AND_BATCH);
    atomic_store(&most_at_work, 0);
    join_in(&batch, pool, "batch");
    WEIR_TEST_UNTIL(atomic_load(&most_at_work) == FLOOD_LIMIT); /* it fills what is idle */
    join_in(&live, pool, "live");
    WEIR_TEST_UNTIL(live.ended >= FLOOD_LIMIT);
    uint64_t live_before = live.ended;
    uint64_t batch_before = batch.ended;
    WEIR_TEST_UNTIL(live.ended - live_before + batch.ended - batch_before >= rounds);
    double live_share = (double)(live.ended - live_before);
    live_share /= live_share + (double)(batch.ended - batch_before);
    leave(&live);
    uint64_t alone = batch.ended;
    WEIR_TEST_UNTIL(batch.ended >= alone + rounds / 10);
    leave(&batch);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_uint_eq(most_at_work, FLOOD_LIMIT);
    (void)fprintf(stderr, "# live has %.3f of the completions\n", live_share);
    if (rounds >= 1000) /* a few jobs say nothing about a share */
        ck_assert_double_ge(live_share, 0.89);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("partitions");
    const TTest *const names[] = {unknown_names_are_refused, named_by_the_environment, NULL};
    const TTest *const limit[] = {live_takes_its_share_back, shares_hold_under_load, the_rest_is_for_who_names_none,
                                  floor_of_zero, NULL};
    const TTest *const queue[] = {places_are_kept, ceilings_are_apart, NULL};
    const TTest *const limiter[] = {limiter_shares, free_permits_of_a_share, NULL};
    const TTest *const figures_tests[] = {figures_of_a_partition, figures_at_the_end, NULL};
    const TTest *const floods[] = {batch_flood, NULL};
    weir_test_add_group(suite, "names", names);
    weir_test_add_group(suite, "limit", limit);
    weir_test_add_group(suite, "queue", queue);
    weir_test_add_group(suite, "limiter", limiter);
    weir_test_add_group(suite, "figures", figures_tests);
    weir_test_add_group(suite, "floods", floods);
    TCase *courses = tcase_create("courses");
    tcase_add_loop_test(courses, live_has_its_share_within_an_rtt, 0, sizeof course_limits / sizeof course_limits[0]);
    suite_add_tcase(suite, courses);
    return weir_test_main(suite);
}
