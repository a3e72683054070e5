/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A short run of the simulator: vegas2 reaches the goals of the quick scenarios, and controllers that are plainly wrong
 * do not get past them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "sim.h"
#include "suite.h"
#include "support.h"

/* One run of a controller, compared with the oracle's; the oracle is the bandwidth-delay product, not a sweep. */
static struct sim_result play(const char *scenario_id, const char *controller, uint64_t seed)
{
    const struct sim_scenario *scenario = sim_find_scenario(scenario_id);
    const struct sim_controller *tested = sim_find_controller(controller);
    if (scenario == NULL || tested == NULL)
        ck_abort_msg("no %s or no %s", scenario_id, controller);
    struct sim_result best, result;
    sim_run(scenario, sim_find_controller("oracle"), seed, NULL, NULL, &best);
    sim_run(scenario, tested, seed, NULL, NULL, &result);
    sim_compare(&result, &best);
    return result;
}

/* The same seed gives the same run, another seed another one. */
START_TEST(runs_repeat)
{
    struct sim_result a = play("3", "vegas2", 1);
    struct sim_result b = play("3", "vegas2", 1);
    struct sim_result c = play("3", "vegas2", 2);
    ck_assert_int_eq(memcmp(&a, &b, sizeof a), 0);
    ck_assert(memcmp(&a, &c, sizeof a) != 0);
}
END_TEST

enum { SEEDS = 3 };

static const char *const regression[] = {
    "2",     "2ps",  "3",  "4d",   "4s2", "6",  "8exp", "10",   "11h",    "12",      "13x8", "13x8s",  "16long", "18",
    "steps", "icap", "i1", "r2ms", "5q",  "15", "15q",  "over", "hard10", "13x8exp", "7",    "13x32s", "13x100"};

/* vegas2 reaches the goals of each scenario of the regression, in the mean over three seeds. The figures are the same
 * however slow the build is; a slow one plays one seed, for what it finds itself, and leaves the judgement to others.
 */
START_TEST(vegas2_reaches_its_goals)
{
    const struct sim_scenario *scenario = sim_find_scenario(regression[_i]);
    struct sim_result mean = {0};
    const unsigned seeds = weir_test_scaled(SEEDS);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct sim_result result = play(regression[_i], "vegas2", seed);
        for (size_t offset = 0; offset < sizeof mean; offset += sizeof(double)) {
            double sum, value;
            memcpy(&sum, (const char *)&mean + offset, sizeof sum);
            memcpy(&value, (const char *)&result + offset, sizeof value);
            sum += value / seeds;
            memcpy((char *)&mean + offset, &sum, sizeof sum);
        }
    }
    const struct sim_goal *missed = sim_missed(scenario, &mean);
    if (missed != NULL && seeds == SEEDS)
        ck_abort_msg("%s: %s (%s) missed", scenario->id, scenario->title, missed->name);
}
END_TEST

/* The figures of the headline scenario do not slip. */
START_TEST(headline_figures_hold)
{
    struct sim_result result = play("2", "vegas2", 3);
    ck_assert(result.utilisation >= 0.985);
    ck_assert(result.p99_ratio <= 1.05);
    ck_assert(result.episodes <= 0);
    struct sim_result gradient2 = play("2", "gradient2", 3);
    ck_assert(gradient2.p99_ratio > 1.5);
}
END_TEST

/* A start under noise is not taken for a queue by chance: with this seed the first round trips are a third too short,
 * and the limit would stay at a third of the best for a minute. */
START_TEST(noise_does_not_end_the_start)
{
    struct sim_result result = play("8exp", "vegas2", 8);
    ck_assert(result.relative >= 0.97);
}
END_TEST

enum { RANDOM = 60 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Nor is it the suite alone that vegas2 does well in: quantiles over random scenarios that nobody has chosen. The
 * bounds are what it reaches, with some room; what is worst among them is in the table of sim --random. A slow build
 * plays a few, for what it finds itself. */
START_TEST(random_scenarios)
{
    double relative[RANDOM], p99[RANDOM];
    const unsigned count = weir_test_scaled(RANDOM);
    for (unsigned i = 0; i < count; i++) {
        struct sim_drawn drawn;
        struct sim_result best, result;
        sim_draw(&drawn, i + 1);
        sim_run(&drawn.scenario, sim_find_controller("oracle"), i + 1, NULL, NULL, &best);
        sim_run(&drawn.scenario, sim_find_controller("vegas2"), i + 1, NULL, NULL, &result);
        sim_compare(&result, &best);
        relative[i] = result.relative;
        p99[i] = result.p99_ratio;
    }
    if (count < RANDOM)
        return;
    qsort(relative, RANDOM, sizeof relative[0], ascending);
    qsort(p99, RANDOM, sizeof p99[0], ascending);
    if (relative[RANDOM / 10] < 0.76 || relative[RANDOM / 2] < 0.97 || p99[RANDOM / 2] > 1.15)
        ck_abort_msg("utilisation %.3f, %.3f; p99 %.3f, %.2f", relative[RANDOM / 10], relative[RANDOM / 2],
                     p99[RANDOM / 2], p99[RANDOM * 3 / 4]);
}
END_TEST

/* A seed gives one scenario, and its own. */
START_TEST(draws_repeat)
{
    struct sim_drawn a, b, c;
    sim_draw(&a, 7);
    sim_draw(&b, 7);
    sim_draw(&c, 8);
    ck_assert_str_eq(a.title, b.title);
    ck_assert_str_ne(a.title, c.title);
    for (uint64_t seed = 1; seed < 2000; seed++) {
        sim_draw(&a, seed);
        for (size_t p = 0; p < sim_phase_count(&a.scenario); p++) {
            struct sim_truth truth = sim_truth(&a.scenario, p, 0);
            if (!(truth.optimum > 0.99 && truth.optimum < 1000 && truth.rate > 0 && truth.mean_s > 0))
                ck_abort_msg("seed %ju, phase %zu: %s", (uintmax_t)seed, p, a.title);
        }
    }
}
END_TEST

static const struct {
    const char *mutant;
    const char *scenario; /* one that it must fail */
} mutants[] = {
    {"frozen-start", "2"}, {"frozen-floor", "2"}, {"frozen-cap", "2"},   {"flipped", "2"},
    {"no-drain", "13x8"},  {"idle-growth", "7"},  {"wait-counted", "7"},
};

/* Each mutant misses a goal. */
START_TEST(mutants_fail)
{
    const struct sim_scenario *scenario = sim_find_scenario(mutants[_i].scenario);
    struct sim_result result = play(mutants[_i].scenario, mutants[_i].mutant, 1);
    if (sim_missed(scenario, &result) == NULL)
        ck_abort_msg("%s passes %s", mutants[_i].mutant, scenario->id);
}
END_TEST

/* Deadlines are met because the queue knows of them: with the same jobs one that does not is always late. */
START_TEST(blind_queue_is_late)
{
    struct sim_result blind = play("over-fifo", "vegas2", 1);
    ck_assert(blind.utilisation > 0.97);
    ck_assert(blind.in_time < 0.1);
    ck_assert_ptr_nonnull(sim_missed(sim_find_scenario("over"), &blind));
}
END_TEST

/* A fixed limit in a line of c servers behaves as queueing theory says: R = N/mu above the knee, S + d below it. */
START_TEST(physics_is_right)
{
    struct sim_result high = play("2", "static-high", 1);
    ck_assert(high.utilisation > 0.999);
    ck_assert(fabs(high.phases[1].p99 / (1000.0 / 4000) - 1) < 0.1);
    struct sim_result low = play("2", "static-low", 1);
    ck_assert(fabs(low.utilisation - 3 * 16.0 / (40 + 80 + 24)) < 0.01);
    ck_assert(low.phases[0].p99 < 0.04);
}
END_TEST

static Suite *sim_suite(void)
{
    Suite *suite = suite_create("sim");
    TCase *tcase = tcase_create("sim");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, runs_repeat);
    tcase_add_test(tcase, physics_is_right);
    tcase_add_loop_test(tcase, vegas2_reaches_its_goals, 0, sizeof regression / sizeof regression[0]);
    tcase_add_test(tcase, headline_figures_hold);
    tcase_add_test(tcase, noise_does_not_end_the_start);
    tcase_add_test(tcase, blind_queue_is_late);
    tcase_add_test(tcase, draws_repeat);
    tcase_add_test(tcase, random_scenarios);
    tcase_add_loop_test(tcase, mutants_fail, 0, sizeof mutants / sizeof mutants[0]);
    suite_add_tcase(suite, tcase);
    return suite;
}

int main(void)
{
    return weir_test_main(sim_suite());
}
