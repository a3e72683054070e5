/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs and permits that count for several. */

#include <errno.h>

#include "job_support.h"

static weir_pool *fixed_pool(uint32_t limit, uint32_t depth, const char *partitions)
{
    weir_config config = weir_test_fixed(limit, depth, partitions);
    return weir_test_pool(&config);
}

static weir_limiter *fixed_limiter(uint32_t limit, const char *partitions)
{
    weir_config config = weir_test_fixed(limit, 0, partitions);
    return weir_test_limiter(&config);
}

static void submit(weir_pool *pool, struct weir_test_task *task, const char *partition, uint32_t weight)
{
    weir_test_task_init(task, partition, weight);
    ck_assert_int_eq(weir_job_submit(pool, &task->job), 0);
}

/* ---- what a weight takes ---- */

/* A job of weight w takes w permits and is one job: in the queue, among the running, in the counters. */
START_TEST(job_takes_its_weight)
{
    weir_pool *pool = fixed_pool(10, 10, NULL);
    struct weir_test_task seven;
    struct weir_test_task three;
    struct weir_test_task none;
    submit(pool, &seven, NULL, 7);
    submit(pool, &three, NULL, 3);
    submit(pool, &none, NULL, 0); /* counts as 1 */
    weir_stats stats = weir_test_pool_stats(pool);
    ck_assert_uint_eq(stats.in_flight, 10);
    ck_assert_uint_eq(stats.running, 2);
    ck_assert_uint_eq(stats.queued, 1);
    ck_assert_uint_eq(stats.submitted, 3);
    weir_test_task_finish(&three);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&none));
    ck_assert_uint_eq(weir_test_pool_stats(pool).in_flight, 8);
    weir_test_task_finish(&seven);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).in_flight == 1);
    weir_test_task_finish(&none);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).in_flight == 0);
    ck_assert_uint_eq(weir_test_pool_stats(pool).succeeded, 3);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* A permit of weight w takes w of the limit and gives w back. */
START_TEST(permit_takes_its_weight)
{
    weir_limiter *limiter = fixed_limiter(10, NULL);
    weir_permit seven = {0};
    weir_permit three = {0};
    weir_permit extra = {0};
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &seven, 7, NULL, 0), 0);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &extra, 4, NULL, 0), ETIMEDOUT);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &three, 3, NULL, 0), 0);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).in_flight, 10);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).submitted, 2);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    ck_assert_int_eq(weir_limiter_release(limiter, &three, WEIR_SUCCESS), 0);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).in_flight, 7);
    ck_assert_int_eq(weir_limiter_release(limiter, &seven, WEIR_SUCCESS), 0);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).in_flight, 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* The estimator is told what a job's weight adds to the permits in flight. */
START_TEST(samples_count_weights)
{
    weir_config config = weir_test_scripted(10, 10, NULL);
    weir_pool *pool = weir_test_pool(&config);
    struct weir_test_task six;
    struct weir_test_task three;
    submit(pool, &six, NULL, 6);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&six));
    submit(pool, &three, NULL, 3);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&three));
    weir_test_task_finish(&three);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).in_flight == 6 && weir_test_script.updates == 1);
    ck_assert_uint_eq(weir_test_script.in_flight, 9);
    weir_test_task_finish(&six);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).in_flight == 0 && weir_test_script.updates == 2);
    ck_assert_uint_eq(weir_test_script.in_flight, 6);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* ---- weights that can never be granted ---- */

static int try_job(weir_pool *pool, uint32_t weight)
{
    struct weir_test_task task;
    weir_test_task_init(&task, NULL, weight);
    weir_test_task_go(&task);
    int error = weir_job_submit(pool, &task.job);
    if (error == 0)
        ck_assert_int_eq(weir_job_wait(&task.job, WEIR_FOREVER), 0);
    weir_test_task_destroy(&task);
    return error;
}

static int try_permit(weir_limiter *limiter, uint32_t weight)
{
    weir_permit permit = {0};
    int error = weir_limiter_acquire_many(limiter, &permit, weight, NULL, 0);
    if (error == 0)
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    return error;
}

/* A weight above a fixed limit, or above MAX_LIMIT, is refused: no waiting would help. */
START_TEST(impossible_weights)
{
    weir_pool *fixed = fixed_pool(5, 5, NULL);
    ck_assert_int_eq(try_job(fixed, 5), 0);
    ck_assert_int_eq(try_job(fixed, 6), EINVAL);
    ck_assert_int_eq(try_job(fixed, UINT32_MAX), EINVAL);
    ck_assert_int_eq(weir_pool_destroy(fixed), 0);
    weir_limiter *fixed_permits = fixed_limiter(5, NULL);
    ck_assert_int_eq(try_permit(fixed_permits, 0), EINVAL);
    ck_assert_int_eq(try_permit(fixed_permits, 5), 0);
    ck_assert_int_eq(try_permit(fixed_permits, 6), EINVAL);
    ck_assert_int_eq(weir_limiter_destroy(fixed_permits), 0);
    weir_config config = weir_test_scripted(5, 5, NULL);
    weir_pool *moving = weir_test_pool(&config);
    ck_assert_int_eq(try_job(moving, 100), 0);
    ck_assert_int_eq(try_job(moving, 101), EINVAL);
    ck_assert_int_eq(weir_pool_destroy(moving), 0);
    weir_limiter *moving_permits = weir_test_limiter(&config);
    ck_assert_int_eq(try_permit(moving_permits, 100), 0);
    ck_assert_int_eq(try_permit(moving_permits, 101), EINVAL);
    ck_assert_int_eq(weir_limiter_destroy(moving_permits), 0);
}
END_TEST

/* ---- above the limit ---- */

/* A job heavier than the limit waits until nothing else is out, runs alone, and the published limit covers it until it
 * has ended. */
START_TEST(heavier_than_the_limit)
{
    weir_config config = weir_test_scripted(3, 10, NULL);
    weir_pool *pool = weir_test_pool(&config);
    struct weir_test_task first;
    struct weir_test_task second;
    struct weir_test_task heavy;
    struct weir_test_task after;
    submit(pool, &first, NULL, 1);
    submit(pool, &second, NULL, 1);
    submit(pool, &heavy, NULL, 8);
    submit(pool, &after, NULL, 1);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&first) && weir_test_task_has_begun(&second));
    weir_test_task_finish(&first);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).running == 1);
    ck_assert_uint_eq(weir_test_pool_stats(pool).queued, 2);
    weir_test_task_finish(&second);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&heavy));
    weir_stats stats = weir_test_pool_stats(pool);
    ck_assert_uint_eq(stats.in_flight, 8);
    ck_assert_uint_ge(stats.limit, 8);
    ck_assert_uint_eq(stats.running, 1);
    ck_assert_uint_eq(stats.queued, 1);
    weir_test_task_finish(&heavy);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&after));
    stats = weir_test_pool_stats(pool);
    ck_assert_uint_eq(stats.limit, 3);
    ck_assert_uint_eq(stats.in_flight, 1);
    weir_test_task_finish(&after);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* The same for permits, through a limit that falls below a weight that already waits. */
START_TEST(limit_falls_below_who_waits)
{
    weir_config config = weir_test_scripted(6, 0, NULL);
    weir_limiter *limiter = weir_test_limiter(&config);
    struct weir_test_client heavy;
    weir_permit out[2] = {{{0}}};
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &out[0], 2, NULL, 0), 0);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &out[1], 2, NULL, 0), 0);
    weir_test_client_acquire(&heavy, limiter, NULL, 5, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_limiter_stats(limiter).waiting == 1);
    weir_test_script.limit = 2;
    ck_assert_int_eq(weir_limiter_release(limiter, &out[0], WEIR_SUCCESS), 0);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).limit, 2);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).waiting, 1);
    ck_assert_int_eq(weir_limiter_release(limiter, &out[1], WEIR_SUCCESS), 0);
    WEIR_TEST_UNTIL(weir_test_client_answered(&heavy));
    weir_stats stats = weir_test_limiter_stats(limiter);
    ck_assert_uint_eq(stats.in_flight, 5);
    ck_assert_uint_ge(stats.limit, 5);
    ck_assert_uint_eq(stats.estimate, 2);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &out[0]), EAGAIN);
    weir_test_client_go(&heavy);
    ck_assert_int_eq(weir_test_client_join(&heavy), 0);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).limit, 2);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* Once the heavy one has ended the limit is the limit again, also for lighter ones of nearly its weight that stay. */
START_TEST(limit_forgets_the_heavy)
{
    weir_config config = weir_test_scripted(5, 0, NULL);
    weir_limiter *limiter = weir_test_limiter(&config);
    weir_permit three = {0};
    weir_permit two = {0};
    weir_permit extra = {0};
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &three, 3, NULL, 0), 0);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &two, 2, NULL, 0), 0);
    weir_test_script.limit = 1;
    ck_assert_int_eq(weir_limiter_release(limiter, &three, WEIR_SUCCESS), 0);
    weir_stats stats = weir_test_limiter_stats(limiter);
    ck_assert_uint_eq(stats.estimate, 1);
    ck_assert_uint_eq(stats.in_flight, 2);
    ck_assert_uint_le(stats.limit, 2);
    ck_assert_int_eq(weir_limiter_tryacquire(limiter, &extra), EAGAIN);
    ck_assert_int_eq(weir_limiter_release(limiter, &two, WEIR_SUCCESS), 0);
    ck_assert_uint_eq(weir_test_limiter_stats(limiter).limit, 1);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* ---- no starvation ---- */

/* While a heavy job is first in line no lighter one goes by, however many permits are free. */
START_TEST(heavy_is_not_overtaken)
{
    enum { LIGHT = 4 };
    weir_pool *pool = fixed_pool(LIGHT, 100, NULL);
    struct weir_test_task running[LIGHT];
    struct weir_test_task behind[LIGHT];
    struct weir_test_task heavy;
    weir_test_turns_reset();
    for (unsigned i = 0; i < LIGHT; i++)
        submit(pool, &running[i], NULL, 1);
    submit(pool, &heavy, NULL, LIGHT);
    for (unsigned i = 0; i < LIGHT; i++)
        submit(pool, &behind[i], NULL, 1);
    WEIR_TEST_UNTIL(weir_test_turns() == LIGHT);
    for (unsigned i = 0; i < LIGHT; i++) {
        ck_assert_uint_eq(weir_test_turns(), LIGHT);
        weir_test_task_finish(&running[i]);
    }
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&heavy));
    ck_assert_uint_eq(heavy.turn, LIGHT + 1);
    ck_assert_uint_eq(weir_test_turns(), LIGHT + 1);
    weir_test_task_finish(&heavy);
    WEIR_TEST_UNTIL(weir_test_turns() == 2 * LIGHT + 1);
    for (unsigned i = 0; i < LIGHT; i++)
        weir_test_task_finish(&behind[i]);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* A heavy job that is cancelled lets those behind it go on at once. */
START_TEST(cancelled_heavy_frees_the_way)
{
    weir_pool *pool = fixed_pool(4, 100, NULL);
    struct weir_test_task running;
    struct weir_test_task heavy;
    struct weir_test_task behind;
    submit(pool, &running, NULL, 1);
    submit(pool, &heavy, NULL, 4);
    submit(pool, &behind, NULL, 1);
    ck_assert_uint_eq(weir_test_pool_stats(pool).queued, 2);
    ck_assert_int_eq(weir_job_cancel(&heavy.job), 0);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&behind));
    weir_test_task_finish(&running);
    weir_test_task_finish(&behind);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

struct stream {
    weir_limiter *limiter;
    atomic_bool over;
    atomic_uint served;
};

static void *flow(void *arg)
{
    struct stream *stream = arg;
    while (!atomic_load(&stream->over)) {
        weir_permit permit = {0};
        if (weir_limiter_acquire(stream->limiter, &permit) == 0 &&
            weir_limiter_release(stream->limiter, &permit, WEIR_SUCCESS) == 0)
            atomic_fetch_add(&stream->served, 1);
    }
    return NULL;
}

/* Through a stream of light callers that never pauses heavy ones get their turn. */
START_TEST(stream_of_light_callers)
{
    enum { STREAMERS = 6 };
    struct stream stream = {.limiter = fixed_limiter(4, NULL)};
    pthread_t threads[STREAMERS];
    for (unsigned i = 0; i < STREAMERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, flow, &stream), 0);
    for (unsigned i = 0; i < weir_test_scaled(1000); i++) {
        weir_permit permit = {0};
        if (weir_limiter_acquire_many(stream.limiter, &permit, 4, NULL, WEIR_FOREVER) != 0 ||
            weir_limiter_release(stream.limiter, &permit, WEIR_SUCCESS) != 0)
            ck_abort_msg("no permits for the heavy one");
    }
    stream.over = true;
    for (unsigned i = 0; i < STREAMERS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(weir_limiter_destroy(stream.limiter), 0);
}
END_TEST

/* ---- with partitions ---- */

/* A weight counts in its partition's share: a job of 4 uses up half of 8, and a busy partition gets the next permits
 * only within what is left. */
START_TEST(weights_count_in_the_share)
{
    weir_pool *pool = fixed_pool(8, 100, "a=0.5,b=0.5");
    struct weir_test_task heavy;
    struct weir_test_task flood[8];
    struct weir_test_task late[4];
    submit(pool, &heavy, "a", 4);
    for (unsigned i = 0; i < 8; i++)
        submit(pool, &flood[i], "b", 1);
    WEIR_TEST_UNTIL(weir_test_task_has_begun(&heavy) && weir_test_tasks_begun(flood, 8) == 4);
    for (unsigned i = 0; i < 4; i++)
        submit(pool, &late[i], "a", 1);
    weir_test_task_finish(&heavy); /* a's four permits are for a's four */
    WEIR_TEST_UNTIL(weir_test_tasks_begun(late, 4) == 4);
    ck_assert_uint_eq(weir_test_tasks_begun(flood, 8), 4);
    for (unsigned i = 0; i < 8; i++)
        weir_test_task_finish(&flood[i]);
    for (unsigned i = 0; i < 4; i++)
        weir_test_task_finish(&late[i]);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* A job heavier than its partition's share gets its turn through a stream of light jobs of another partition that
 * never pauses: their ends are at most some rounds away. */
static void check_heavy_among_partitions(const char *heavy_name, const char *light_name)
{
    enum { RING = 8, ROUNDS = 100 };
    weir_pool *pool = fixed_pool(6, 100, "a=0.5,b=0.5");
    static struct weir_test_task ring[RING];
    struct weir_test_task heavy;
    for (unsigned i = 0; i < RING; i++)
        submit(pool, &ring[i], light_name, 1);
    submit(pool, &heavy, heavy_name, 4);
    unsigned round = 0;
    for (; round < ROUNDS && !weir_test_task_has_begun(&heavy); round++) {
        struct weir_test_task *task = &ring[round % RING]; /* the oldest; the others always have two that wait */
        WEIR_TEST_UNTIL(weir_test_task_has_begun(task) || weir_test_task_has_begun(&heavy));
        if (!weir_test_task_has_begun(task))
            break;
        weir_test_task_finish(task);
        weir_test_task_destroy(task);
        submit(pool, task, light_name, 1);
    }
    bool begun = round < ROUNDS;
    for (unsigned i = 0; i < RING; i++)
        weir_test_task_go(&ring[i]);
    weir_test_task_finish(&heavy);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    if (!begun)
        ck_abort_msg("%u light jobs of \"%s\" went by", round, light_name);
}

START_TEST(heavy_among_partitions)
{
    check_heavy_among_partitions("a", "b");
    check_heavy_among_partitions("b", "a");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("weights");
    const TTest *const taking[] = {job_takes_its_weight, permit_takes_its_weight, samples_count_weights,
                                   impossible_weights, NULL};
    const TTest *const above[] = {heavier_than_the_limit, limit_falls_below_who_waits, limit_forgets_the_heavy, NULL};
    const TTest *const turns[] = {heavy_is_not_overtaken, cancelled_heavy_frees_the_way, stream_of_light_callers, NULL};
    const TTest *const partitions[] = {weights_count_in_the_share, heavy_among_partitions, NULL};
    weir_test_add_group(suite, "what a weight takes", taking);
    weir_test_add_group(suite, "above the limit", above);
    weir_test_add_group(suite, "turns", turns);
    weir_test_add_group(suite, "partitions", partitions);
    return weir_test_main(suite);
}
