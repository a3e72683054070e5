/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "estimator/estimator.h"
#include "support.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static const uint32_t algorithms[] = {WEIR_VEGAS2, WEIR_GRADIENT2, WEIR_VEGAS, WEIR_AIMD, WEIR_FIXED};
#define ALGORITHMS ((int)(sizeof algorithms / sizeof algorithms[0]))

static weir_config config_of(uint32_t algorithm)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.algorithm = algorithm;
    return config;
}

/* Without the window: every sample reaches the algorithm. */
static weir_config raw_config_of(uint32_t algorithm)
{
    weir_config config = config_of(algorithm);
    config.window = 0;
    return config;
}

static weir_estimator *create(const weir_config *config)
{
    weir_estimator *estimator = NULL;
    int error = weir_estimator_create(&estimator, config);
    if (error != 0)
        ck_abort_msg("create: %s", weir_strerror(error));
    return estimator;
}

static void refused(const weir_config *config, int error)
{
    weir_estimator *estimator = NULL;
    ck_assert_int_eq(weir_estimator_create(&estimator, config), error);
    ck_assert_ptr_null(estimator);
}

static unsigned feed(weir_estimator *estimator, uint64_t start_ns, uint64_t rtt_ns, uint32_t in_flight,
                     uint32_t outcome)
{
    weir_sample sample = {start_ns, rtt_ns, in_flight, outcome};
    return weir_estimator_update(estimator, &sample);
}

static weir_figures figures_of(const weir_estimator *estimator)
{
    weir_figures figures;
    ck_assert_int_eq(weir_estimator_figures(estimator, &figures), 0);
    return figures;
}

/* ---- creation ---- */

/* Pointers that may not be NULL are refused, those that may are not. */
START_TEST(null_pointers)
{
    weir_figures figures;
    weir_config config = config_of(WEIR_FIXED);
    ck_assert_int_eq(weir_estimator_create(NULL, &config), EINVAL);
    ck_assert_int_eq(weir_estimator_figures(NULL, &figures), EINVAL);
    ck_assert_int_eq(weir_estimator_set_wall_offset(NULL, 0), EINVAL);
    weir_estimator *estimator = create(NULL);
    ck_assert_int_eq(weir_estimator_figures(estimator, NULL), EINVAL);
    ck_assert_int_eq(weir_estimator_set_wall_offset(estimator, INT64_MIN), 0);
    weir_estimator_destroy(estimator);
    weir_estimator_destroy(NULL);
}
END_TEST

/* An initial limit of 0 is the algorithm's own, moved within the bounds. */
START_TEST(initial_limit_of_the_algorithm)
{
    weir_config config = config_of(algorithms[_i]);
    const unsigned own = algorithms[_i] == WEIR_VEGAS2 ? 4 : 20;
    weir_estimator *estimator = create(&config);
    ck_assert_uint_eq(weir_estimator_limit(estimator), own);
    weir_estimator_destroy(estimator);
    config.max_limit = 3;
    estimator = create(&config);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 3);
    weir_estimator_destroy(estimator);
    config.min_limit = 30;
    config.max_limit = 40;
    estimator = create(&config);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 30);
    weir_estimator_destroy(estimator);
}
END_TEST

/* An initial limit outside the bounds is refused, and the log says what was given and what is accepted. */
START_TEST(initial_limit_outside)
{
    weir_config config = config_of(algorithms[_i]);
    config.min_limit = 10;
    config.max_limit = 12;
    weir_test_log_capture();
    config.initial_limit = 9;
    refused(&config, EINVAL);
    config.initial_limit = 13;
    refused(&config, EINVAL);
    const char *log = weir_test_log_text();
    ck_assert_ptr_nonnull(strstr(log, "INITIAL_LIMIT"));
    ck_assert_ptr_nonnull(strstr(log, "13"));
    ck_assert_ptr_nonnull(strstr(log, "10 to 12"));
    weir_test_log_release();
    config.initial_limit = 12;
    weir_estimator_destroy(create(&config));
}
END_TEST

/* Parameters with which the reference would go on to misbehave are refused. */
START_TEST(contradictions_are_refused)
{
    weir_config config = config_of(WEIR_GRADIENT2);
    config.log = WEIR_LOG_OFF;
    weir_config bad = config;
    bad.min_limit = 5, bad.max_limit = 4;
    refused(&bad, EINVAL);
    bad = config, bad.min_limit = 0;
    refused(&bad, EINVAL);
    bad = config, bad.smoothing = 0;
    refused(&bad, EINVAL);
    bad = config, bad.long_window = 0;
    refused(&bad, EINVAL);
    bad = config, bad.window_percentile = 0.5, bad.window_capacity = 9;
    refused(&bad, EINVAL);
    bad = config, bad.algorithm = 0;
    refused(&bad, EINVAL);
    bad = config, bad.algorithm = 99;
    refused(&bad, EINVAL);
}
END_TEST

/* What the configuration leaves to the algorithm is filled in, what it sets stays. */
START_TEST(parameters_of_the_algorithm)
{
    weir_config config = config_of(WEIR_GRADIENT2);
    config.queue_allowance = 0;
    ck_assert_int_eq(weir__estimator_settle(&config), 0);
    ck_assert_double_eq_tol(config.smoothing, 0.2, 1e-12);
    ck_assert_double_eq_tol(config.rtt_tolerance, 1.5, 1e-12);
    ck_assert_uint_eq(config.long_window, 600);
    ck_assert_uint_eq(config.queue_allowance, 0);
    config = config_of(WEIR_VEGAS);
    ck_assert_int_eq(weir__estimator_settle(&config), 0);
    ck_assert_double_eq_tol(config.smoothing, 1.0, 1e-12);
    ck_assert_uint_eq(config.probe_multiplier, 30);
    ck_assert_uint_eq(config.alpha, WEIR_BY_ALGORITHM);
    ck_assert_uint_eq(config.initial_limit, 20);
}
END_TEST

/* ---- a caller's own algorithm ---- */

struct echo {
    max_align_t first;
    uint64_t samples;
    uint64_t last_rtt_ns;
};

static int echo_init(void *state, const weir_config *config)
{
    static const struct echo zero;
    if (memcmp(state, &zero, sizeof zero) != 0 || (uintptr_t)state % alignof(max_align_t) != 0)
        return EDOM;
    return config->initial_limit == 7 ? ERANGE : 0;
}

/* The limit it asks for is the in-flight count. */
static uint32_t echo_update(void *state, const weir_sample *sample)
{
    struct echo *echo = state;
    echo->samples++;
    echo->last_rtt_ns = sample->rtt_ns;
    return sample->in_flight;
}

static uint64_t echo_reaction(const void *state)
{
    const struct echo *echo = state;
    return echo->samples * 1000 + echo->last_rtt_ns;
}

static const weir_estimator_class echo_class = {"echo", sizeof(struct echo), echo_init, echo_update, echo_reaction};

static weir_config custom_config(const weir_estimator_class *class)
{
    weir_config config = config_of(WEIR_CUSTOM);
    config.estimator_class = class;
    config.log = WEIR_LOG_OFF;
    return config;
}

/* A custom class gets zeroed, aligned state and raw samples; its answers are cut to the bounds. */
START_TEST(custom_class)
{
    weir_config config = custom_config(&echo_class);
    config.min_limit = 5;
    config.max_limit = 50;
    weir_estimator *estimator = create(&config);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 20);
    ck_assert_str_eq(figures_of(estimator).reason, "");
    ck_assert_uint_eq(feed(estimator, 1, 10, 30, WEIR_SUCCESS), 30);
    ck_assert_uint_eq(feed(estimator, 1, 10, 0, WEIR_SUCCESS), 5);
    ck_assert_uint_eq(feed(estimator, 1, 0, UINT32_MAX, WEIR_DROPPED), 50);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 50);
    ck_assert_uint_eq(weir_estimator_reaction_ns(estimator), 3001);
    ck_assert_str_eq(figures_of(estimator).reason, "echo");
    ck_assert_str_eq(figures_of(estimator).phase, "steady");
    weir_estimator_destroy(estimator);
}
END_TEST

/* An error of its init is what creation returns; incomplete classes are refused; reaction_ns is optional. */
START_TEST(custom_class_errors)
{
    weir_config config = custom_config(&echo_class);
    config.initial_limit = 7;
    refused(&config, ERANGE);
    config = custom_config(NULL);
    refused(&config, EINVAL);
    weir_estimator_class class = echo_class;
    config.estimator_class = &class;
    class.update = NULL;
    refused(&config, EINVAL);
    class = echo_class, class.init = NULL;
    refused(&config, EINVAL);
    class = echo_class, class.name = NULL;
    refused(&config, EINVAL);
    class = echo_class, class.state_size = SIZE_MAX - 8;
    refused(&config, ENOMEM);
    class = echo_class, class.reaction_ns = NULL;
    weir_estimator *estimator = create(&config);
    ck_assert_uint_eq(weir_estimator_reaction_ns(estimator), 0);
    weir_estimator_destroy(estimator);
}
END_TEST

/* ---- samples ---- */

static uint64_t pick(uint64_t *random, const uint64_t *values, size_t count)
{
    return values[weir_test_random(random) % count];
}

static weir_sample garbage(uint64_t *random, uint64_t now)
{
    const uint64_t times[] = {now, now, now, 0, UINT64_MAX, weir_test_random(random), now - 5 * SECOND};
    const uint64_t rtts[] = {0, 1, MS, 20 * MS, SECOND, INT64_MAX, UINT64_MAX, weir_test_random(random)};
    const uint64_t in_flight[] = {0, 1, 20, 1000, UINT32_MAX, 1u << 30, 1u << 31, weir_test_random(random) >> 32};
    const uint64_t outcomes[] = {WEIR_SUCCESS, WEIR_SUCCESS, WEIR_DROPPED, WEIR_IGNORE, 3, UINT32_MAX};
    return (weir_sample){
        .start_ns = pick(random, times, 7),
        .rtt_ns = pick(random, rtts, 8),
        .in_flight = (uint32_t)pick(random, in_flight, 8),
        .outcome = (uint32_t)pick(random, outcomes, 6),
    };
}

static weir_config random_config(uint64_t *random, uint32_t algorithm)
{
    weir_config config = config_of(algorithm);
    config.min_limit = 1 + (uint32_t)(weir_test_random(random) % 50);
    config.max_limit = config.min_limit + (uint32_t)(weir_test_random(random) % 2000);
    config.window = (uint32_t)(weir_test_random(random) % 2);
    config.window_min = weir_test_random(random) % 2 ? MS : SECOND;
    config.window_samples = 1 + (uint32_t)(weir_test_random(random) % 20);
    config.window_percentile = weir_test_random(random) % 2 ? weir_test_uniform(random) : 0;
    config.min_rtt = weir_test_random(random) % 2 ? 0 : 100000;
    return config;
}

/* Whatever is fed, the limit stays within its bounds and every figure is a number. */
START_TEST(bounds_hold_for_garbage)
{
    uint64_t random = weir_test_seed();
    for (unsigned run = 0; run < 40; run++) {
        weir_config config = random_config(&random, algorithms[_i]);
        weir_estimator *estimator = create(&config);
        for (uint64_t i = 0, now = 0; i < 5000; i++, now += MS) {
            weir_sample sample = garbage(&random, now);
            unsigned limit = weir_estimator_update(estimator, &sample);
            if (limit < config.min_limit || limit > config.max_limit || limit != weir_estimator_limit(estimator))
                ck_abort_msg("run %u, sample %" PRIu64 ": limit %u", run, i, limit);
            weir_figures figures;
            (void)weir_estimator_figures(estimator, &figures);
            (void)weir_estimator_reaction_ns(estimator);
            if (!isfinite(figures.estimate) || !isfinite(figures.throughput) || figures.reason == NULL)
                ck_abort_msg("run %u, sample %" PRIu64 ": estimate %g", run, i, figures.estimate);
        }
        weir_estimator_destroy(estimator);
    }
}
END_TEST

/* Outcomes other than success and drop change nothing at all. */
START_TEST(other_outcomes_change_nothing)
{
    weir_config config = raw_config_of(algorithms[_i]);
    weir_estimator *estimator = create(&config);
    feed(estimator, 1, 10 * MS, 20, WEIR_SUCCESS);
    weir_figures before = figures_of(estimator);
    feed(estimator, 2, 500 * MS, 20, WEIR_IGNORE);
    feed(estimator, 3, 1, 20, 3);
    feed(estimator, 4, 1, 20, UINT32_MAX);
    weir_figures after = figures_of(estimator);
    ck_assert_mem_eq(&before, &after, sizeof before);
    weir_estimator_destroy(estimator);
}
END_TEST

/* Equal samples give equal limits: nothing depends on a clock, an address or a global. */
START_TEST(equal_samples_give_equal_limits)
{
    weir_config config = raw_config_of(algorithms[_i]);
    weir_estimator *one = create(&config);
    weir_estimator *other = create(&config);
    uint64_t random = 1;
    for (uint64_t i = 0; i < 5000; i++) {
        uint64_t rtt = 5 * MS + weir_test_random(&random) % (10 * MS);
        if (feed(one, i * MS, rtt, 30, WEIR_SUCCESS) != feed(other, i * MS, rtt, 30, WEIR_SUCCESS))
            ck_abort_msg("sample %" PRIu64, i);
    }
    weir_estimator_destroy(one);
    weir_estimator_destroy(other);
}
END_TEST

/* ---- the algorithms ---- */

/* The fixed limit stays what it was and never reacts. */
START_TEST(fixed_never_changes)
{
    weir_config config = config_of(WEIR_FIXED);
    config.initial_limit = 33;
    weir_estimator *estimator = create(&config);
    for (uint64_t i = 0; i < 500; i++)
        feed(estimator, i, i * MS, (uint32_t)i, i % 2 ? WEIR_DROPPED : WEIR_SUCCESS);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 33);
    ck_assert_uint_eq(weir_estimator_reaction_ns(estimator), 0);
    ck_assert_double_eq_tol(figures_of(estimator).estimate, 33, 1e-12);
    ck_assert_str_eq(figures_of(estimator).reason, "");
    weir_estimator_destroy(estimator);
}
END_TEST

/* AIMD stops at the greatest limit and, under drops, at the least, which is never below 1. */
START_TEST(aimd_stays_at_its_bounds)
{
    weir_config config = raw_config_of(WEIR_AIMD);
    config.max_limit = 25;
    weir_estimator *estimator = create(&config);
    for (uint64_t i = 0; i < 50; i++)
        feed(estimator, i * MS, MS, 25, WEIR_SUCCESS);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 25);
    ck_assert_str_eq(figures_of(estimator).reason, "growth");
    ck_assert_uint_eq(feed(estimator, SECOND, MS, 25, WEIR_SUCCESS), 25);
    ck_assert_uint_eq(feed(estimator, SECOND, 6 * SECOND, 25, WEIR_SUCCESS), 22);
    ck_assert_str_eq(figures_of(estimator).reason, "timeout");
    for (uint64_t i = 0; i < 50; i++)
        feed(estimator, SECOND, MS, 25, WEIR_DROPPED);
    ck_assert_uint_eq(weir_estimator_limit(estimator), 1);
    ck_assert_str_eq(figures_of(estimator).reason, "drop");
    weir_estimator_destroy(estimator);
}
END_TEST

/* Gradient2 publishes its long average as the baseline, its fraction, and why the limit moved. */
START_TEST(gradient2_figures)
{
    weir_config config = raw_config_of(WEIR_GRADIENT2);
    weir_estimator *estimator = create(&config);
    ck_assert_str_eq(figures_of(estimator).reason, "");
    feed(estimator, 0, 10 * MS, 20, WEIR_SUCCESS);
    feed(estimator, MS, 20 * MS, 20, WEIR_SUCCESS);
    weir_figures figures = figures_of(estimator);
    ck_assert_uint_eq(figures.rtt_noload_ns, 15 * MS);
    ck_assert_uint_eq(figures.rtt_ns, 20 * MS);
    ck_assert_double_eq_tol(figures.estimate, 21.6, 1.0);
    ck_assert_str_eq(figures.phase, "steady");
    ck_assert_str_eq(figures.reason, "growth");
    ck_assert_uint_eq(figures.windows, 0);
    for (uint64_t i = 0; i < 10; i++)
        feed(estimator, SECOND, 10 * SECOND, 40, WEIR_SUCCESS);
    ck_assert_str_eq(figures_of(estimator).reason, "growth");
    feed(estimator, SECOND, 100 * SECOND, 40, WEIR_SUCCESS);
    ck_assert_str_eq(figures_of(estimator).reason, "gradient");
    weir_estimator_destroy(estimator);
}
END_TEST

/* Vegas publishes the least RTT, and whether a queue, a drop or growth moved the limit. */
START_TEST(vegas_figures)
{
    weir_config config = raw_config_of(WEIR_VEGAS);
    weir_estimator *estimator = create(&config);
    feed(estimator, 0, 10 * MS, 20, WEIR_SUCCESS);
    ck_assert_uint_eq(feed(estimator, MS, 10 * MS, 20, WEIR_SUCCESS), 26);
    weir_figures figures = figures_of(estimator);
    ck_assert_uint_eq(figures.rtt_noload_ns, 10 * MS);
    ck_assert_str_eq(figures.reason, "growth");
    ck_assert_uint_eq(feed(estimator, 2 * MS, 40 * MS, 26, WEIR_SUCCESS), 25);
    ck_assert_str_eq(figures_of(estimator).reason, "queue");
    ck_assert_uint_eq(feed(estimator, 3 * MS, 40 * MS, 1, WEIR_DROPPED), 24);
    ck_assert_str_eq(figures_of(estimator).reason, "drop");
    ck_assert_uint_eq(feed(estimator, 3 * MS, 40 * MS, 1, WEIR_SUCCESS), 24);
    ck_assert_str_eq(figures_of(estimator).phase, "steady");
    weir_estimator_destroy(estimator);
}
END_TEST

/* Vegas probes after 15 to 30 times the limit in samples, and not all limiters at once. */
START_TEST(vegas_probes_apart)
{
    weir_config config = raw_config_of(WEIR_VEGAS);
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint64_t host = 0; host < 20; host++) {
        weir_estimator *estimator = create(&config);
        uint64_t samples = 1;
        feed(estimator, host * MS, 10 * MS, 1, WEIR_SUCCESS);
        while (figures_of(estimator).rtt_noload_ns == 10 * MS && samples++ < 1000)
            (void)weir_estimator_update(estimator, &(weir_sample){host * MS, 11 * MS, 1, WEIR_SUCCESS});
        least = samples < least ? samples : least;
        most = samples > most ? samples : most;
        weir_estimator_destroy(estimator);
    }
    ck_assert_uint_ge(least, 300);
    ck_assert_uint_le(most, 600);
    ck_assert_uint_ge(most - least, 100);
}
END_TEST

static void add_loop(TCase *tcase, const TTest *test)
{
    tcase_add_loop_test(tcase, test, 0, ALGORITHMS);
}

static TCase *interface_case(void)
{
    TCase *tcase = tcase_create("interface");
    tcase_add_test(tcase, null_pointers);
    add_loop(tcase, initial_limit_of_the_algorithm);
    add_loop(tcase, initial_limit_outside);
    tcase_add_test(tcase, contradictions_are_refused);
    tcase_add_test(tcase, parameters_of_the_algorithm);
    tcase_add_test(tcase, custom_class);
    tcase_add_test(tcase, custom_class_errors);
    add_loop(tcase, bounds_hold_for_garbage);
    add_loop(tcase, other_outcomes_change_nothing);
    add_loop(tcase, equal_samples_give_equal_limits);
    tcase_set_timeout(tcase, 60);
    return tcase;
}

static TCase *algorithms_case(void)
{
    TCase *tcase = tcase_create("algorithms");
    tcase_add_test(tcase, fixed_never_changes);
    tcase_add_test(tcase, aimd_stays_at_its_bounds);
    tcase_add_test(tcase, gradient2_figures);
    tcase_add_test(tcase, vegas_figures);
    tcase_add_test(tcase, vegas_probes_apart);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("estimator");
    suite_add_tcase(suite, interface_case());
    suite_add_tcase(suite, algorithms_case());
    return weir_test_main(suite);
}
