/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Histograms, and the figures that tell for how long. Nothing here sleeps: what a figure must at least be is measured
 * around it. */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"
#include "pool_support.h"

/* ---- histograms ---- */

static weir_histogram *new_histogram(void)
{
    weir_histogram *histogram = calloc(1, sizeof *histogram);
    ck_assert_ptr_nonnull(histogram);
    return histogram;
}

/* The bounds rise, and each time falls into the bucket between two of them. */
START_TEST(buckets)
{
    for (unsigned i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++) {
        uint64_t low = weir_histogram_bound_ns(i);
        uint64_t high = weir_histogram_bound_ns(i + 1) - 1;
        ck_assert_uint_le(low, high);
        ck_assert_uint_eq(weir__histogram_bucket(low), i);
        ck_assert_uint_eq(weir__histogram_bucket(high), i);
        if (i + 1 < WEIR_HISTOGRAM_BUCKETS)
            ck_assert_uint_eq(weir__histogram_bucket(high + 1), i + 1);
    }
    ck_assert_uint_eq(weir_histogram_bound_ns(0), 0);
    ck_assert_uint_eq(weir_histogram_bound_ns(UINT32_MAX), UINT64_MAX);
    ck_assert_uint_eq(weir__histogram_bucket(UINT64_MAX), WEIR_HISTOGRAM_BUCKETS - 1);
}
END_TEST

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Quantiles of random times over nine decades are within 1 % of those of the sorted list, also when the times
 * were counted by two histograms that are merged. */
START_TEST(quantiles)
{
    enum { TIMES = 200000 };
    uint64_t state = weir_test_seed();
    uint64_t *times = calloc(TIMES, sizeof *times);
    weir_histogram *halves[2] = {new_histogram(), new_histogram()};
    weir_histogram *whole = new_histogram();
    uint64_t sum = 0;
    ck_assert_ptr_nonnull(times);
    for (int i = 0; i < TIMES; i++) {
        times[i] = (uint64_t)pow(10.0, 3.0 + 9.0 * weir_test_uniform(&state));
        sum += times[i];
        weir__histogram_add(halves[i % 2], times[i], 1);
        weir__histogram_add(whole, times[i], 1);
    }
    qsort(times, TIMES, sizeof *times, compare);
    ck_assert_int_eq(weir_histogram_merge(halves[0], halves[1]), 0);
    ck_assert_mem_eq(halves[0], whole, sizeof *whole);
    ck_assert_uint_eq(whole->count, TIMES);
    ck_assert_uint_eq(whole->sum_ns, sum);
    for (int i = 1; i <= 1000; i++) {
        double exact = (double)times[(int)ceil(i / 1000.0 * TIMES) - 1];
        double told = (double)weir_histogram_quantile_ns(whole, i / 1000.0);
        ck_assert_msg(fabs(told - exact) <= 0.01 * exact, "quantile %d: %.0f instead of %.0f", i, told, exact);
    }
    ck_assert_uint_eq(weir_histogram_quantile_ns(whole, 1), times[TIMES - 1]);
    ck_assert_uint_eq(weir_histogram_quantile_ns(whole, 7), times[TIMES - 1]);
    ck_assert_uint_eq(weir_histogram_quantile_ns(whole, -1), weir_histogram_quantile_ns(whole, 0));
    free(times);
    free(halves[0]);
    free(halves[1]);
    free(whole);
}
END_TEST

START_TEST(edges)
{
    weir_histogram *histogram = new_histogram();
    ck_assert_uint_eq(weir_histogram_quantile_ns(histogram, 0.5), 0);
    ck_assert_uint_eq(weir_histogram_quantile_ns(NULL, 0.5), 0);
    weir__histogram_add(histogram, UINT64_C(1) << 50, 3);
    ck_assert_uint_eq(weir_histogram_quantile_ns(histogram, 0.5), UINT64_C(1) << 50);
    ck_assert_uint_eq(histogram->count, 3);
    weir__histogram_add(histogram, 0, 1);
    ck_assert_uint_eq(weir_histogram_quantile_ns(histogram, 0.01), 0);
    ck_assert_int_eq(weir_histogram_merge(NULL, histogram), EINVAL);
    ck_assert_int_eq(weir_histogram_merge(histogram, NULL), EINVAL);
    free(histogram);
}
END_TEST

/* ---- a pool's ---- */

static weir_histogram *pool_histogram(weir_pool *pool, weir_histogram_kind kind)
{
    weir_histogram *histogram = new_histogram();
    ck_assert_int_eq(weir_pool_histogram(pool, kind, histogram), 0);
    return histogram;
}

static void assert_count(weir_pool *pool, weir_histogram_kind kind, uint64_t count)
{
    weir_histogram *histogram = pool_histogram(pool, kind);
    uint64_t total = 0;
    for (unsigned i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
        total += histogram->buckets[i];
    ck_assert_uint_eq(histogram->count, count);
    ck_assert_uint_eq(total, count);
    free(histogram);
}

static void set_sparse(weir_pool *pool, bool sparse)
{
    atomic_store(&pool->limiter->sparse, sparse);
}

/* One job runs, another of each kind waits, and one more submitter is blocked: the times at least are what they were
 * seen to be. */
static void *submit_blocked(void *pool)
{
    return (void *)(intptr_t)weir_pool_submit(pool, weir_test_nothing, NULL);
}

START_TEST(waits_and_runs)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 3);
    weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
    ck_assert_uint_eq(weir_test_stats(pool).oldest_wait_ns, 0);
    ck_assert_uint_eq(weir_test_stats(pool).longest_run_ns, 0);
    weir_test_occupy(pool, &gate, 1);
    uint64_t started_ns = weir_now_ns();
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    uint64_t queued_ns = weir_now_ns();
    ck_assert_int_eq(weir_pool_submit_copy(pool, weir_test_nothing, "x", 1), 0);
    ck_assert_int_eq(weir_job_submit(pool, &job), 0);
    pthread_t thread = weir_test_thread(submit_blocked, pool);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 1);
    uint64_t looked_ns = weir_now_ns();
    weir_stats stats = weir_test_stats(pool);
    uint64_t after_ns = weir_now_ns();
    ck_assert_uint_ge(stats.oldest_wait_ns, looked_ns - queued_ns);
    ck_assert_uint_le(stats.oldest_wait_ns, after_ns - started_ns + 32);
    ck_assert_uint_ge(stats.longest_run_ns, looked_ns - started_ns);
    weir_test_gate_open(&gate);
    ck_assert_ptr_null(weir_test_join(thread));
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.oldest_wait_ns, 0);
    ck_assert_uint_eq(stats.longest_run_ns, 0);
    for (int kind = WEIR_HISTOGRAM_WAIT; kind <= WEIR_HISTOGRAM_END_TO_END; kind++)
        assert_count(pool, (weir_histogram_kind)kind, 5);
    weir_histogram *wait = pool_histogram(pool, WEIR_HISTOGRAM_WAIT);
    weir_histogram *rtt = pool_histogram(pool, WEIR_HISTOGRAM_RTT);
    weir_histogram *all = pool_histogram(pool, WEIR_HISTOGRAM_END_TO_END);
    ck_assert_uint_ge(wait->max_ns, looked_ns - queued_ns);
    ck_assert_uint_ge(rtt->max_ns, looked_ns - started_ns);
    uint64_t parts_ns = wait->sum_ns + rtt->sum_ns;
    ck_assert_uint_le(all->sum_ns, parts_ns);
    ck_assert_uint_ge(all->sum_ns + UINT64_C(5) * 32, parts_ns);
    free(wait);
    free(rtt);
    free(all);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* While jobs are short one in 16 is looked at, and the counts are still those of all. */
START_TEST(short_jobs)
{
    weir_pool *pool = weir_test_pool(2, 2000);
    set_sparse(pool, true);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    for (int i = 0; i < 160; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    for (int kind = WEIR_HISTOGRAM_WAIT; kind <= WEIR_HISTOGRAM_END_TO_END; kind++)
        assert_count(pool, (weir_histogram_kind)kind, 160);
    weir_test_pool_end(pool);
}
END_TEST

/* A job that nobody looked at when it came is seen from the first snapshot on, and does not count. */
START_TEST(stuck_without_a_stamp)
{
    weir_pool *pool = weir_test_pool(1, 20);
    set_sparse(pool, true);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    pool->stamp_turn = 1; /* the one in 16 has just been */
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    (void)weir_test_stats(pool);
    uint64_t first_ns = weir_now_ns();
    for (int i = 0; i < 18; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    uint64_t looked_ns = weir_now_ns();
    ck_assert_uint_ge(weir_test_stats(pool).oldest_wait_ns, looked_ns - first_ns);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    assert_count(pool, WEIR_HISTOGRAM_WAIT, 16);
    weir_test_pool_end(pool);
}
END_TEST

/* What never ran is in no histogram. */
START_TEST(cancelled_jobs)
{
    weir_pool *pool = weir_test_pool(1, 20);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    assert_count(pool, WEIR_HISTOGRAM_WAIT, 0);
    assert_count(pool, WEIR_HISTOGRAM_END_TO_END, 0);
    weir_test_pool_end(pool);
}
END_TEST

static weir_outcome exit_thread(void *arg)
{
    pthread_exit(arg);
    return WEIR_SUCCESS;
}

/* A job that ends its thread has run for some time, too, and then no longer. */
START_TEST(ended_thread)
{
    weir_pool *pool = weir_test_pool(1, 2);
    ck_assert_int_eq(weir_pool_call(pool, exit_thread, NULL, NULL), 0);
    ck_assert_uint_eq(weir_test_stats(pool).longest_run_ns, 0);
    assert_count(pool, WEIR_HISTOGRAM_RTT, 1);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- direct callers ---- */

static void *acquire(void *arg)
{
    weir_permit permit = {{0}};
    int error = weir_limiter_acquire(arg, &permit);
    return (void *)(intptr_t)(error != 0 ? error : weir_limiter_release(arg, &permit, WEIR_SUCCESS));
}

START_TEST(direct_callers)
{
    weir_limiter *limiter = NULL;
    weir_config config = weir_test_fixed(1, 0);
    weir_permit permit = {{0}};
    weir_stats stats = {0};
    weir_histogram *histogram = new_histogram();
    ck_assert_int_eq(weir_limiter_create(&limiter, "figures", &config), 0);
    ck_assert_int_eq(weir_limiter_acquire(limiter, &permit), 0);
    pthread_t thread = weir_test_thread(acquire, limiter);
    do {
        ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    } while (stats.waiting == 0);
    uint64_t waiting_ns = weir_now_ns();
    weir_test_yield();
    uint64_t looked_ns = weir_now_ns();
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_ge(stats.oldest_wait_ns, looked_ns - waiting_ns);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    ck_assert_ptr_null(weir_test_join(thread));
    ck_assert_int_eq(weir_limiter_histogram(limiter, WEIR_HISTOGRAM_WAIT, histogram), 0);
    ck_assert_uint_eq(histogram->count, 2);
    ck_assert_uint_eq(histogram->buckets[0], 1);
    ck_assert_uint_ge(histogram->max_ns, looked_ns - waiting_ns);
    ck_assert_int_eq(weir_limiter_histogram(limiter, WEIR_HISTOGRAM_RTT, histogram), 0);
    ck_assert_uint_eq(histogram->count, 2);
    ck_assert_uint_ge(histogram->max_ns, looked_ns - waiting_ns);
    ck_assert_int_eq(weir_limiter_histogram(limiter, WEIR_HISTOGRAM_END_TO_END, histogram), 0);
    ck_assert_uint_eq(histogram->count, 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    free(histogram);
}
END_TEST

static uint64_t count_of(weir_pool *pool, const char *partition, weir_histogram_kind kind)
{
    weir_histogram *histogram = new_histogram();
    ck_assert_int_eq(weir_pool_partition_histogram(pool, partition, kind, histogram), 0);
    uint64_t count = histogram->count;
    free(histogram);
    return count;
}

/* Each partition has histograms of its own, which together make those of the pool; without partitions there is one. */
START_TEST(partition_histograms)
{
    weir_config config = weir_test_fixed(2, 10);
    config.partitions = "live=0.7,batch=0.2";
    weir_pool *pool = weir_test_pool_of(&config);
    weir_permit permit = {{0}};
    for (int i = 0; i < 6; i++) {
        weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
        job.partition = i < 2 ? "live" : i < 5 ? "batch" : NULL;
        ck_assert_int_eq(weir_job_submit(pool, &job), 0);
        ck_assert_int_eq(weir_job_wait(&job, WEIR_FOREVER), 0);
    }
    weir_limiter *limiter = weir_pool_limiter(pool);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 1, "batch", WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    for (weir_histogram_kind kind = WEIR_HISTOGRAM_WAIT; kind <= WEIR_HISTOGRAM_END_TO_END; kind++) {
        uint64_t direct = kind == WEIR_HISTOGRAM_END_TO_END ? 0 : 1;
        ck_assert_uint_eq(count_of(pool, "live", kind), 2);
        ck_assert_uint_eq(count_of(pool, "batch", kind), 3 + direct);
        ck_assert_uint_eq(count_of(pool, NULL, kind), 1);
        assert_count(pool, kind, 6 + direct);
    }
    weir_histogram *histogram = new_histogram();
    ck_assert_int_eq(weir_pool_partition_histogram(pool, "none", WEIR_HISTOGRAM_RTT, histogram), EINVAL);
    ck_assert_int_eq(weir_pool_partition_histogram(pool, "live", (weir_histogram_kind)3, histogram), EINVAL);
    ck_assert_int_eq(weir_pool_partition_histogram(pool, "live", WEIR_HISTOGRAM_RTT, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_partition_histogram(NULL, "live", WEIR_HISTOGRAM_RTT, histogram), EINVAL);
    ck_assert_int_eq(weir_limiter_partition_histogram(NULL, "live", WEIR_HISTOGRAM_RTT, histogram), EINVAL);
    free(histogram);
    weir_test_pool_end(pool);
    pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    ck_assert_uint_eq(count_of(pool, NULL, WEIR_HISTOGRAM_RTT), 1);
    weir_test_pool_end(pool);
}
END_TEST

START_TEST(arguments)
{
    weir_pool *pool = weir_test_pool(1, 1);
    weir_limiter *limiter = weir_pool_limiter(pool);
    weir_histogram *histogram = new_histogram();
    ck_assert_int_eq(weir_pool_histogram(NULL, WEIR_HISTOGRAM_RTT, histogram), EINVAL);
    ck_assert_int_eq(weir_pool_histogram(pool, WEIR_HISTOGRAM_RTT, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_histogram(pool, (weir_histogram_kind)3, histogram), EINVAL);
    ck_assert_int_eq(weir_limiter_histogram(NULL, WEIR_HISTOGRAM_RTT, histogram), EINVAL);
    ck_assert_int_eq(weir_limiter_histogram(limiter, WEIR_HISTOGRAM_RTT, NULL), EINVAL);
    ck_assert_int_eq(weir_limiter_histogram(limiter, (weir_histogram_kind)-1, histogram), EINVAL);
    weir_test_pool_end(pool);
    free(histogram);
}
END_TEST

/* ---- bounds ---- */

static uint32_t told; /* what the estimator below says next */

static int told_init(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    return 0;
}

static uint32_t told_update(void *state, const weir_sample *sample)
{
    (void)state;
    (void)sample;
    return told;
}

static const weir_estimator_class told_class = {
    .name = "told", .state_size = 8, .init = told_init, .update = told_update, .reaction_ns = NULL};

static weir_stats after_telling(weir_limiter *limiter, uint32_t limit)
{
    weir_permit permit = {{0}};
    weir_stats stats = {0};
    told = limit;
    ck_assert_int_eq(weir_limiter_acquire(limiter, &permit), 0);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_eq(stats.limit, limit);
    return stats;
}

static weir_config told_config(void)
{
    weir_config config = weir_test_fixed(5, 0);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &told_class;
    config.min_limit = 2;
    config.max_limit = 9;
    return config;
}

/* A limit at a bound is called pinned, with the time since it got there: not that of the last sample. */
START_TEST(pinned)
{
    weir_limiter *limiter = NULL;
    weir_config config = told_config();
    weir_stats stats = {0};
    uint64_t before_ns = weir_now_ns();
    ck_assert_int_eq(weir_limiter_create(&limiter, "pinned", &config), 0);
    uint64_t created_ns = weir_now_ns();
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_eq(stats.pinned, WEIR_NOT_PINNED);
    ck_assert_uint_eq(stats.pinned_ns, 0);
    ck_assert_str_eq(stats.reason, "");
    weir_test_yield();
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_gt(stats.limit_changed_ns, 0);
    ck_assert_uint_le(stats.limit_changed_ns, weir_now_ns() - before_ns);
    stats = after_telling(limiter, 9);
    ck_assert_uint_eq(stats.pinned, WEIR_PINNED_AT_CEILING);
    ck_assert_str_eq(stats.reason, "told");
    uint64_t pinned_ns = weir_now_ns();
    ck_assert_uint_le(stats.pinned_ns, pinned_ns - created_ns);
    weir_test_yield();
    uint64_t looked_ns = weir_now_ns();
    stats = after_telling(limiter, 9);
    ck_assert_uint_eq(stats.pinned, WEIR_PINNED_AT_CEILING);
    ck_assert_uint_ge(stats.pinned_ns, looked_ns - pinned_ns);
    ck_assert_uint_ge(stats.limit_changed_ns, looked_ns - pinned_ns);
    stats = after_telling(limiter, 8);
    ck_assert_uint_eq(stats.pinned, WEIR_NOT_PINNED);
    ck_assert_uint_eq(stats.pinned_ns, 0);
    stats = after_telling(limiter, 2);
    ck_assert_uint_eq(stats.pinned, WEIR_PINNED_AT_FLOOR);
    ck_assert_uint_lt(stats.pinned_ns, weir_now_ns() - looked_ns + 1);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* One that starts there is pinned from its creation on; a limit that cannot move is not pinned, but fixed. */
START_TEST(pinned_at_creation)
{
    weir_limiter *limiter = NULL;
    weir_stats stats = {0};
    weir_config config = told_config();
    config.initial_limit = config.min_limit;
    ck_assert_int_eq(weir_limiter_create(&limiter, "pinned", &config), 0);
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_eq(stats.pinned, WEIR_PINNED_AT_FLOOR);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    config.max_limit = config.min_limit;
    ck_assert_int_eq(weir_limiter_create(&limiter, "pinned", &config), 0);
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_eq(stats.pinned, WEIR_NOT_PINNED);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    config = weir_test_fixed(1, 0);
    ck_assert_int_eq(weir_limiter_create(&limiter, "pinned", &config), 0);
    ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    ck_assert_uint_eq(stats.pinned, WEIR_NOT_PINNED);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("figures");
    TCase *histograms = tcase_create("histograms");
    tcase_set_timeout(histograms, TEST_LIMIT_S);
    tcase_add_test(histograms, buckets);
    tcase_add_test(histograms, quantiles);
    tcase_add_test(histograms, edges);
    suite_add_tcase(suite, histograms);
    TCase *jobs = tcase_create("jobs and callers");
    tcase_set_timeout(jobs, TEST_LIMIT_S);
    tcase_add_test(jobs, waits_and_runs);
    tcase_add_test(jobs, short_jobs);
    tcase_add_test(jobs, stuck_without_a_stamp);
    tcase_add_test(jobs, cancelled_jobs);
    tcase_add_test(jobs, ended_thread);
    tcase_add_test(jobs, direct_callers);
    tcase_add_test(jobs, partition_histograms);
    tcase_add_test(jobs, arguments);
    suite_add_tcase(suite, jobs);
    TCase *bounds = tcase_create("bounds");
    tcase_set_timeout(bounds, TEST_LIMIT_S);
    tcase_add_test(bounds, pinned);
    tcase_add_test(bounds, pinned_at_creation);
    suite_add_tcase(suite, bounds);
    return weir_test_main(suite);
}
