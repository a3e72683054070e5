/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The rules of weirstat --explain, each with what makes it speak and what keeps it silent, and the texts of its
 * figures. */

#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "weirstat/weirstat.h"

enum { LOOKS = 20 };

static struct weir__record looks[LOOKS]; /* of the test that runs */

static void set_all(enum weir__figure figure, uint64_t value)
{
    for (int i = 0; i < LOOKS; i++)
        looks[i].figures[figure] = value;
}

/* A pool that is well and busy: 10 of 10 permits, no queue, 100 calls a look at 10 ms. */
static void make_healthy(void)
{
    memset(looks, 0, sizeof looks);
    for (int i = 0; i < LOOKS; i++) {
        struct weir__record *look = &looks[i];
        look->pid = 42;
        look->id = 1;
        look->time_ns = (uint64_t)(i + 1) * 100000000;
        (void)strcpy(look->name, "crafted");
        (void)strcpy(look->mode, "enforce");
        (void)strcpy(look->reason, "probe");
        look->figures[WEIR__FIGURE_LIMIT] = 10;
        look->figures[WEIR__FIGURE_MIN_LIMIT] = 1;
        look->figures[WEIR__FIGURE_MAX_LIMIT] = 1000;
        look->figures[WEIR__FIGURE_IN_FLIGHT] = 10;
        look->figures[WEIR__FIGURE_QUEUE_DEPTH] = 20;
        look->figures[WEIR__FIGURE_RTT] = 10000000;
        look->figures[WEIR__FIGURE_RTT_NOLOAD] = 9000000;
        look->figures[WEIR__FIGURE_SUCCEEDED] = 1000 + (uint64_t)i * 100;
        struct weir__record_histogram *rtt = &look->histograms[WEIR_HISTOGRAM_RTT];
        rtt->count = 1000 + (uint64_t)i * 100;
        rtt->sum_ns = rtt->count * 10000000;
        rtt->quantile_ns[0] = 10000000;
        rtt->quantile_ns[2] = 20000000;
    }
}

/* What it says, as a string of " rule rule ". */
static const char *rules(void)
{
    static char names[256];
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(stream);
    struct observation observation = {.looks = looks, .count = LOOKS};
    unsigned said = explain(stream, &observation);
    ck_assert_int_eq(fclose(stream), 0);
    unsigned found = 0;
    (void)strcpy(names, "");
    for (const char *at = strstr(text, "  ["); at != NULL; at = strstr(at + 1, "\n  [")) {
        const char *name = strchr(at, '[') + 1;
        (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s%.*s", found > 0 ? ", " : "",
                       (int)strcspn(name, "]"), name);
        found++;
    }
    ck_assert_uint_eq(found, said);
    free(text);
    return names;
}

START_TEST(well)
{
    make_healthy();
    ck_assert_str_eq(rules(), "healthy");
    memset(looks, 0, sizeof looks);
    ck_assert_str_eq(rules(), "idle");
}
END_TEST

START_TEST(constraint)
{
    make_healthy();
    set_all(WEIR__FIGURE_IN_FLIGHT, 7);
    ck_assert_str_eq(rules(), "program");
    looks[LOOKS - 1].figures[WEIR__FIGURE_QUEUED] = 1;
    ck_assert_str_eq(rules(), "saturated");
    make_healthy();
    set_all(WEIR__FIGURE_IN_FLIGHT, 8);
    ck_assert_str_eq(rules(), "healthy");
}
END_TEST

START_TEST(bounds)
{
    make_healthy();
    set_all(WEIR__FIGURE_PINNED_CEILING, 5000000000);
    ck_assert_str_eq(rules(), "healthy"); /* nobody asks for more */
    set_all(WEIR__FIGURE_WAITING, 2);
    ck_assert_str_eq(rules(), "saturated, ceiling, blocked");
    set_all(WEIR__FIGURE_PINNED_CEILING, 0);
    set_all(WEIR__FIGURE_PINNED_FLOOR, 1);
    ck_assert_str_eq(rules(), "saturated, floor, blocked");
}
END_TEST

START_TEST(downstream)
{
    make_healthy();
    set_all(WEIR__FIGURE_RTT, 17999999);
    ck_assert_str_eq(rules(), "healthy");
    set_all(WEIR__FIGURE_RTT, 18000000);
    ck_assert_str_eq(rules(), "congested");
    make_healthy();
    for (int i = 1; i < LOOKS; i++)
        looks[i].histograms[WEIR_HISTOGRAM_RTT].sum_ns =
            looks[0].histograms[WEIR_HISTOGRAM_RTT].sum_ns + (uint64_t)i * 100 * 15000000;
    ck_assert_str_eq(rules(), "degraded");
    make_healthy();
    looks[LOOKS - 1].figures[WEIR__FIGURE_DROPPED] = 18;
    ck_assert_str_eq(rules(), "healthy");
    looks[LOOKS - 1].figures[WEIR__FIGURE_DROPPED] = 20;
    ck_assert_str_eq(rules(), "failing");
    make_healthy();
    set_all(WEIR__FIGURE_LONGEST_RUN, 999999999);
    ck_assert_str_eq(rules(), "healthy");
    set_all(WEIR__FIGURE_LONGEST_RUN, 1000000000);
    ck_assert_str_eq(rules(), "hanging");
    for (int i = 0; i < LOOKS; i++)
        looks[i].histograms[WEIR_HISTOGRAM_RTT].quantile_ns[2] = 500000000;
    ck_assert_str_eq(rules(), "healthy");
}
END_TEST

/* The limit and the completions fall to that share within the observation, the round trip of an idle downstream by
 * another. */
static void lose(double limit, double completions, double noload)
{
    make_healthy();
    set_all(WEIR__FIGURE_WAITING, 1);
    for (int i = LOOKS / 2; i < LOOKS; i++) {
        uint64_t *figures = looks[i].figures;
        figures[WEIR__FIGURE_LIMIT] = (uint64_t)(limit * 10);
        figures[WEIR__FIGURE_SUCCEEDED] = looks[i - 1].figures[WEIR__FIGURE_SUCCEEDED] + (uint64_t)(completions * 100);
        figures[WEIR__FIGURE_RTT_NOLOAD] = (uint64_t)(noload * 9000000);
    }
}

START_TEST(lost_capacity)
{
    lose(0.5, 0.5, 1);
    ck_assert_str_eq(rules(), "saturated, capacity, blocked");
    lose(0.8, 0.5, 1);
    ck_assert_str_eq(rules(), "saturated, blocked");
    lose(0.5, 0.8, 1);
    ck_assert_str_eq(rules(), "saturated, blocked");
    lose(0.5, 0.5, 1.5); /* each call takes longer */
    ck_assert_str_eq(rules(), "saturated, blocked");
    lose(0.5, 0.5, 1);
    set_all(WEIR__FIGURE_WAITING, 0); /* the program asks for less */
    ck_assert_str_eq(rules(), "healthy");
}
END_TEST

START_TEST(queues)
{
    make_healthy();
    looks[LOOKS - 1].figures[WEIR__FIGURE_SHED] = 30;
    ck_assert_str_eq(rules(), "saturated, short queue");
    set_all(WEIR__FIGURE_QUEUED, 18);
    ck_assert_str_eq(rules(), "saturated, overload");
    for (int i = 0; i < LOOKS; i++)
        looks[i].kind = WEIR__RECORD_LIMITER;
    set_all(WEIR__FIGURE_QUEUED, 0);
    ck_assert_str_eq(rules(), "saturated, overload");
    make_healthy();
    looks[LOOKS - 1].figures[WEIR__FIGURE_EXPIRED] = 1;
    ck_assert_str_eq(rules(), "late");
}
END_TEST

START_TEST(limits)
{
    make_healthy();
    for (int i = 0; i < LOOKS; i++)
        looks[i].figures[WEIR__FIGURE_LIMIT] = i % 4 < 2 ? 10 : 12; /* a fifth is no oscillation */
    ck_assert_str_eq(rules(), "healthy");
    for (int i = 0; i < LOOKS; i++)
        looks[i].figures[WEIR__FIGURE_LIMIT] = i % 4 < 2 ? 8 : 12;
    ck_assert_str_eq(rules(), "oscillates");
    make_healthy();
    for (int i = 0; i < LOOKS; i++)
        looks[i].figures[WEIR__FIGURE_LIMIT] = 3 + (uint64_t)i / 2; /* it climbs, and that is all */
    ck_assert_str_eq(rules(), "healthy");
    make_healthy();
    set_all(WEIR__FIGURE_FROZEN, 1);
    looks[LOOKS - 1].figures[WEIR__FIGURE_START_FAILURES] = 1;
    (void)strcpy(looks[LOOKS - 1].mode, "monitor");
    ck_assert_str_eq(rules(), "frozen, monitor, threads");
}
END_TEST

START_TEST(texts)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } times[] = {{0, "-"},
                 {1, "0.00us"},
                 {850000, "850us"},
                 {999499, "999us"},
                 {999500, "1.00ms"},
                 {12500000, "12.5ms"},
                 {999500000, "1.00s"},
                 {99940000000, "99.9s"},
                 {UINT64_C(100000000000), "1m40s"},
                 {UINT64_C(3599000000000), "59m59s"},
                 {UINT64_C(11100000000000), "3h05m"},
                 {UINT64_C(360000000000000), "4d"}};
    static const struct {
        double count;
        const char *text;
    } counts[] = {{0, "0"}, {9999, "9999"}, {9999.6, "10.0k"}, {999400, "999k"}, {999500, "1.00M"}, {1.5e9, "1.50G"}};
    char buffer[NUMBER_SIZE];
    char name[8];
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        ck_assert_str_eq(format_ns(times[i].ns, buffer), times[i].text);
        ck_assert_uint_le(strlen(buffer), 6);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        ck_assert_str_eq(format_count(counts[i].count, buffer), counts[i].text);
    ck_assert_str_eq(format_name("a\x1b[2J\xc3\xa9 long", 7, name), "a?[2J??");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("explain");
    TCase *tests = tcase_create("explain");
    tcase_add_test(tests, well);
    tcase_add_test(tests, constraint);
    tcase_add_test(tests, bounds);
    tcase_add_test(tests, downstream);
    tcase_add_test(tests, lost_capacity);
    tcase_add_test(tests, queues);
    tcase_add_test(tests, limits);
    tcase_add_test(tests, texts);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
