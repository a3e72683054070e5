/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* weir_stats_write: that the text holds what the snapshots hold, whose it is, and what happens when it cannot be
 * written. Whether it is well formed as a whole, formats.test asks those who know. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool_support.h"
#include "stats/record.h"

static char *written(weir_stats_format format)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(weir_stats_write(stream, format), 0);
    ck_assert_int_eq(fclose(stream), 0);
    return text;
}

static void assert_has(const char *text, const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "lacks \"%s\":\n%s", line, text);
}

static unsigned occurrences(const char *text, const char *part)
{
    unsigned count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

/* Two jobs run, three wait, one was shed. */
START_TEST(prometheus)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 3);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    weir_test_occupy(pool, &gate, 2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_nothing, NULL), EAGAIN);
    char *text = written(WEIR_PROMETHEUS);
    assert_has(text, "# TYPE weir_limit gauge\nweir_limit{pool=\"test\"} 2\n");
    assert_has(text, "\nweir_in_flight{pool=\"test\"} 2\n");
    assert_has(text, "\nweir_running{pool=\"test\"} 2\n");
    assert_has(text, "\nweir_queued{pool=\"test\"} 3\n");
    assert_has(text, "\nweir_queue_depth{pool=\"test\"} 3\n");
    assert_has(text, "\nweir_workers{pool=\"test\"} 2\n");
    assert_has(text, "\nweir_submitted_total{pool=\"test\"} 6\n");
    assert_has(text, "\nweir_shed_total{pool=\"test\"} 1\n");
    assert_has(text, "\nweir_jobs_total{pool=\"test\",outcome=\"success\"} 1\n");
    assert_has(text, "\nweir_jobs_total{pool=\"test\",outcome=\"cancelled\"} 0\n");
    assert_has(text, "\nweir_rtt_seconds_count{pool=\"test\"} 1\n");
    assert_has(text, "\nweir_rtt_seconds_bucket{pool=\"test\",le=\"+Inf\"} 1\n");
    assert_has(text, "\nweir_rtt_seconds_bucket{pool=\"test\",le=\"0.000001024\"} ");
    assert_has(text, "\nweir_info{pool=\"test\",algorithm=\"fixed\",mode=\"enforce\",phase=");
    ck_assert_ptr_null(strstr(text, "\nweir_oldest_wait_seconds{pool=\"test\"} 0\n"));
    assert_has(text, ",depth_term=\"fixed\"} 1\n");
    assert_has(text, "\nweir_arrival_rate{pool=\"test\"} ");
    assert_has(text, "\nweir_burstiness{pool=\"test\"} 1\n");
    ck_assert_ptr_null(strstr(text, "partition"));
    /* Every metric has its head once, before its samples. */
    for (const char *head = strstr(text, "# TYPE "); head != NULL; head = strstr(head + 1, "# TYPE ")) {
        char line[128];
        (void)snprintf(line, sizeof line, "%.*s ", (int)strcspn(head + 7, " "), head + 7);
        char whole[160];
        (void)snprintf(whole, sizeof whole, "# TYPE %s", line);
        ck_assert_uint_eq(occurrences(text, whole), 1);
    }
    free(text);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

START_TEST(json)
{
    weir_limiter *limiter = NULL;
    weir_permit permit = {{0}};
    weir_config config = weir_test_fixed(7, 0);
    config.partitions = "live=0.7,batch=0.2";
    ck_assert_int_eq(weir_limiter_create(&limiter, "shared", &config), 0);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 3, "batch", WEIR_FOREVER), 0);
    char *text = written(WEIR_JSON);
    assert_has(text, "{\"version\":1,");
    assert_has(text, "{\"kind\":\"limiter\",\"name\":\"shared\",");
    assert_has(text, "\"limit\":7,");
    assert_has(text, "\"in_flight\":3,");
    assert_has(text, "\"submitted\":1,");
    assert_has(text, "{\"name\":\"batch\",\"share\":0.2,\"in_use\":3,\"queued\":0,\"queue_depth\":0,\"waiting\":0,"
                     "\"granted\":1,\"succeeded\":0,");
    ck_assert_ptr_null(strstr(text, "\"queued\":0,\n"));
    ck_assert_ptr_null(strstr(text, "\"arrival_rate\""));
    ck_assert_ptr_null(strstr(text, "\"workers\""));
    free(text);
    text = written(WEIR_PROMETHEUS);
    assert_has(text, "\nweir_partition_in_use{limiter=\"shared\",partition=\"batch\"} 3\n");
    assert_has(text, "\nweir_partition_granted_total{limiter=\"shared\",partition=\"live\"} 0\n");
    assert_has(text, "\nweir_partition_share{limiter=\"shared\",partition=\"\"} 0.1\n");
    assert_has(text, "\nweir_partition_jobs_total{limiter=\"shared\",partition=\"batch\",outcome=\"success\"} 0\n");
    assert_has(text, "\nweir_partition_queue_wait_seconds_count{limiter=\"shared\",partition=\"batch\"} 1\n");
    assert_has(text,
               "\nweir_partition_queue_wait_seconds_bucket{limiter=\"shared\",partition=\"live\",le=\"+Inf\"} 0\n");
    assert_has(text, "\nweir_partition_rtt_seconds_count{limiter=\"shared\",partition=\"batch\"} 0\n");
    ck_assert_ptr_null(strstr(text, "weir_workers{"));
    ck_assert_ptr_null(strstr(text, "weir_end_to_end_seconds_count{"));
    free(text);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* Namesakes are told apart, and nothing else has an id. */
START_TEST(namesakes)
{
    weir_pool *pools[3] = {weir_test_pool(1, 1), weir_test_pool(2, 1), weir_test_pool(3, 1)};
    char *text = written(WEIR_PROMETHEUS);
    ck_assert_uint_eq(occurrences(text, "\nweir_limit{pool=\"test\"} "), 1);
    ck_assert_uint_eq(occurrences(text, "\nweir_limit{pool=\"test\",id=\""), 2);
    assert_has(text, "\"} 2\n");
    free(text);
    for (int i = 0; i < 3; i++)
        weir_test_pool_end(pools[i]);
}
END_TEST

/* Without pools there is nothing to say, and a document without records is still one. */
START_TEST(nothing)
{
    char *text = written(WEIR_PROMETHEUS);
    ck_assert_str_eq(text, "");
    free(text);
    text = written(WEIR_JSON);
    ck_assert_str_eq(text, "{\"version\":1,\n \"records\":[]}\n");
    free(text);
}
END_TEST

START_TEST(arguments)
{
    weir_pool *pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_stats_write(NULL, WEIR_JSON), EINVAL);
    ck_assert_int_eq(weir_stats_write(stderr, (weir_stats_format)0), EINVAL);
    ck_assert_int_eq(weir_stats_write(stderr, (weir_stats_format)3), EINVAL);
    FILE *full = fopen("/dev/full", "w");
    if (full != NULL) {
        errno = 4711;
        ck_assert_int_eq(weir_stats_write(full, WEIR_JSON), EIO);
        ck_assert_int_eq(errno, 4711);
        (void)fclose(full);
    }
    weir_test_pool_end(pool);
}
END_TEST

/* Sums of a histogram: each bound counts what lies below it. */
START_TEST(bounds_of_a_summary)
{
    weir_histogram *histogram = calloc(1, sizeof *histogram);
    struct weir__record_histogram summary;
    ck_assert_ptr_nonnull(histogram);
    const uint64_t times[] = {1, 1023, 1024, 1500, 2048, 1000000, UINT64_C(1) << 36, UINT64_C(1) << 45};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        histogram->count++;
        histogram->sum_ns += times[i];
        unsigned bucket = 0;
        while (weir_histogram_bound_ns(bucket + 1) <= times[i])
            bucket++;
        histogram->buckets[bucket]++;
    }
    weir__record_summarize(&summary, histogram);
    for (unsigned i = 0; i < WEIR__RECORD_BUCKETS; i++) {
        uint64_t below = 0;
        for (size_t t = 0; t < sizeof times / sizeof times[0]; t++)
            below += times[t] < UINT64_C(1) << (WEIR__RECORD_FIRST_BOUND + i);
        ck_assert_uint_eq(summary.buckets[i], below);
    }
    ck_assert_uint_eq(summary.count, 8);
    free(histogram);
}
END_TEST

/* A fork child writes its own pools, not those it inherited. */
static int write_in_child(void *unused)
{
    (void)unused;
    char *text = written(WEIR_PROMETHEUS);
    bool empty = text[0] == '\0';
    free(text);
    weir_pool *pool = weir_test_pool(5, 1);
    text = written(WEIR_PROMETHEUS);
    bool own = strstr(text, "\nweir_limit{pool=\"test\"} 5\n") != NULL && strstr(text, "id=") == NULL;
    free(text);
    weir_test_pool_end(pool);
    return empty && own ? 0 : 1;
}

START_TEST(fork_child)
{
    weir_pool *pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_test_in_child(write_in_child, NULL), 0);
    weir_test_pool_end(pool);
}
END_TEST

/* Pools come, work and go while others write. */
static atomic_bool over;
static atomic_uint missed; /* texts without the pool that stays */

static void *come_and_go(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < weir_test_scaled(400, 40); i++) {
        weir_pool *pool = weir_test_pool(2, 4);
        (void)weir_pool_call(pool, weir_test_nothing, NULL, NULL);
        weir_test_pool_end(pool);
    }
    return NULL;
}

static void *write_always(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        char *text = written(WEIR_JSON);
        atomic_fetch_add(&missed, strstr(text, "\"name\":\"test\"") == NULL);
        free(text);
    }
    return NULL;
}

START_TEST(coming_and_going)
{
    pthread_t makers[3];
    pthread_t writers[2];
    weir_pool *stays = weir_test_pool(1, 1);
    atomic_store(&over, false);
    for (int i = 0; i < 2; i++)
        writers[i] = weir_test_thread(write_always, NULL);
    for (int i = 0; i < 3; i++)
        makers[i] = weir_test_thread(come_and_go, NULL);
    for (int i = 0; i < 3; i++)
        (void)weir_test_join(makers[i]);
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++)
        (void)weir_test_join(writers[i]);
    ck_assert_uint_eq(atomic_load(&missed), 0);
    weir_test_pool_end(stays);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stats_write");
    TCase *tests = tcase_create("stats_write");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, prometheus);
    tcase_add_test(tests, json);
    tcase_add_test(tests, namesakes);
    tcase_add_test(tests, nothing);
    tcase_add_test(tests, arguments);
    tcase_add_test(tests, bounds_of_a_summary);
    tcase_add_test(tests, fork_child);
    tcase_add_test(tests, coming_and_going);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
