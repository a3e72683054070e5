/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The inside of the estimator layer: arithmetic, the rules that differ from the reference's, the reaction time. */

#include <math.h>
#include <stdio.h>

#include <weir.h>

#include "estimator/estimator.h"
#include "support.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static const uint32_t reference[] = {WEIR_GRADIENT2, WEIR_VEGAS, WEIR_AIMD};

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

/* ---- arithmetic ---- */

/* Doubles become integers toward zero; what does not fit saturates, NaN is 0. */
START_TEST(truncation_has_no_undefined_case)
{
    ck_assert_int_eq(weir__trunc32(-1.9), -1);
    ck_assert_int_eq(weir__trunc32(2147483646.9), 2147483646);
    ck_assert_int_eq(weir__trunc32(INFINITY), INT32_MAX);
    ck_assert_int_eq(weir__trunc32(-1e300), INT32_MIN);
    ck_assert_int_eq(weir__trunc32(NAN), 0);
    ck_assert(weir__trunc_u64(0x1p64) == UINT64_MAX);
    ck_assert(weir__trunc_u64(-1) == 0);
    ck_assert(weir__trunc_u64(NAN) == 0);
    ck_assert(weir__add_u64(UINT64_MAX, 1) == UINT64_MAX);
}
END_TEST

/* Minimum and maximum hand NaN on and tell the zeros apart. */
START_TEST(extremes_follow_java)
{
    ck_assert(isnan(weir__dmin(NAN, 1)) && isnan(weir__dmin(1, NAN)));
    ck_assert(isnan(weir__dmax(NAN, 1)) && isnan(weir__dmax(1, NAN)));
    ck_assert(signbit(weir__dmin(0.0, -0.0)) && signbit(weir__dmin(-0.0, 0.0)));
    ck_assert(!signbit(weir__dmax(0.0, -0.0)) && !signbit(weir__dmax(-0.0, 0.0)));
    ck_assert(weir__dmin(1, 2) < 1.5 && weir__dmax(1, 2) > 1.5);
}
END_TEST

/* Logarithm and root are exact at every power and square, and at least 1. */
START_TEST(roots_are_exact)
{
    int32_t power = 10;
    for (int32_t exponent = 1; exponent <= 9; exponent++) {
        ck_assert_int_eq(weir__root10(power), exponent);
        ck_assert_int_eq(weir__root10(power - 1), exponent > 1 ? exponent - 1 : 1);
        power = exponent < 9 ? power * 10 : power;
    }
    ck_assert_int_eq(weir__root10(0), 1);
    ck_assert_int_eq(weir__root10(-5), 1);
    ck_assert_int_eq(weir__root10(INT32_MAX), 9);
    ck_assert_int_eq(weir__root2(-5), 1);
    ck_assert_int_eq(weir__root2(INT32_MAX), 46340);
    for (int32_t root = 2; root <= 46340; root += 131)
        if (weir__root2(root * root) != root || weir__root2(root * root - 1) != root - 1)
            ck_abort_msg("root of %d", root * root);
    ck_assert_int_eq(weir__root2_or_more(15, 4), 4);
    ck_assert_int_eq(weir__root2_or_more(25, 4), 5);
}
END_TEST

/* ---- where the reference misbehaves ---- */

/* An RTT of 0 counts as 1 ns: gradient2 does not end up at NaN, nor vegas in an exception. */
START_TEST(rtt_of_zero_is_a_nanosecond)
{
    weir_config config = raw_config_of(reference[_i]);
    weir_estimator *zero = create(&config);
    weir_estimator *one = create(&config);
    for (uint64_t i = 0; i < 300; i++) {
        unsigned limit = feed(zero, i * MS, i % 7 ? 10 * MS : 0, 20, WEIR_SUCCESS);
        ck_assert_uint_eq(limit, feed(one, i * MS, i % 7 ? 10 * MS : 1, 20, WEIR_SUCCESS));
    }
    ck_assert_uint_ge(weir_estimator_limit(zero), 1);
    ck_assert(isfinite(figures_of(zero).estimate));
    weir_estimator_destroy(zero);
    weir_estimator_destroy(one);
}
END_TEST

/* Twice the in-flight count does not wrap: more than 2^30 calls are no idle downstream. */
START_TEST(in_flight_does_not_wrap)
{
    static const uint32_t counts[] = {1u << 30, 1u << 31, UINT32_MAX};
    weir_config config = raw_config_of(reference[_i]);
    weir_estimator *estimator = create(&config);
    feed(estimator, 0, 10 * MS, 0, WEIR_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        double before = figures_of(estimator).estimate;
        feed(estimator, MS, 10 * MS, counts[i], WEIR_SUCCESS);
        ck_assert_double_gt(figures_of(estimator).estimate, before);
    }
    weir_estimator_destroy(estimator);
}
END_TEST

/* A connection refused in microseconds is a drop and not the RTT of an idle downstream. */
START_TEST(vegas_fast_failure_is_no_baseline)
{
    weir_config config = raw_config_of(WEIR_VEGAS);
    weir_estimator *estimator = create(&config);
    ck_assert_uint_eq(feed(estimator, 0, 50000, 20, WEIR_DROPPED), 19);
    feed(estimator, 0, 10 * MS, 19, WEIR_SUCCESS);
    ck_assert_uint_eq(feed(estimator, MS, 50000, 19, WEIR_DROPPED), 18);
    ck_assert_uint_eq(figures_of(estimator).rtt_noload_ns, 10 * MS);
    ck_assert_uint_eq(feed(estimator, 2 * MS, 10 * MS, 19, WEIR_SUCCESS), 24);
    for (uint64_t i = 0; i < 1000; i++)
        feed(estimator, 3 * MS, 50000, 1, WEIR_DROPPED);
    ck_assert_uint_eq(figures_of(estimator).rtt_noload_ns, 10 * MS);
    weir_estimator_destroy(estimator);
}
END_TEST

static void init_window(struct weir__window *window, uint64_t *rtts, double percentile)
{
    struct weir__window_parameters parameters = {
        .min_ns = SECOND,
        .max_ns = SECOND,
        .samples = 10,
        .percentile = percentile,
        .rtts = rtts,
        .capacity = 100,
    };
    weir__window_init(window, &parameters);
}

/* The sum of a window's RTTs is exact however long they are. */
START_TEST(window_mean_does_not_overflow)
{
    struct weir__window window;
    weir_sample summary;
    init_window(&window, NULL, 0);
    ck_assert(!weir__window_add(&window, &(weir_sample){1, 1, 1, WEIR_SUCCESS}, &summary));
    for (uint64_t i = 0; i < 9; i++) {
        uint64_t rtt = UINT64_MAX - i;
        window.close_ns = UINT64_MAX;
        ck_assert(!weir__window_add(&window, &(weir_sample){0, rtt, 1, WEIR_SUCCESS}, &summary));
    }
    window.close_ns = 0;
    ck_assert(weir__window_add(&window, &(weir_sample){0, UINT64_MAX - 9, 1, WEIR_SUCCESS}, &summary));
    ck_assert(summary.rtt_ns == UINT64_MAX - 5);
}
END_TEST

/* One sample with an absurd end does not keep the windows from closing. */
START_TEST(window_outlives_a_clock_that_was_ahead)
{
    weir_config config = config_of(WEIR_AIMD);
    weir_estimator *estimator = create(&config);
    uint64_t now = SECOND;
    for (unsigned i = 0; i < 300; i++, now += 50 * MS)
        feed(estimator, now, 10 * MS, 20, WEIR_SUCCESS);
    unsigned limit = weir_estimator_limit(estimator);
    ck_assert_uint_gt(limit, 25);
    feed(estimator, now, INT64_MAX, 20, WEIR_SUCCESS);
    feed(estimator, now, UINT64_MAX, 20, WEIR_SUCCESS);
    for (unsigned i = 0; i < 300; i++, now += 50 * MS)
        feed(estimator, now, 10 * MS, 20, WEIR_DROPPED);
    ck_assert_uint_lt(weir_estimator_limit(estimator), limit / 2);
    weir_estimator_destroy(estimator);
}
END_TEST

/* A small percentile of few samples is the least of them, and ranks round half up. */
START_TEST(window_percentile_has_a_first_rank)
{
    static const struct {
        double percentile;
        uint64_t rtt;
    } expected[] = {{0.04, 1}, {0.05, 1}, {0.14, 1}, {0.15, 2}, {0.5, 5}, {0.95, 10}, {0.999, 10}};
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        uint64_t rtts[100];
        struct weir__window window;
        weir_sample summary;
        init_window(&window, rtts, expected[i].percentile);
        ck_assert(!weir__window_add(&window, &(weir_sample){1, 1, 1, WEIR_SUCCESS}, &summary));
        for (uint64_t rtt = 10; rtt > 1; rtt--)
            ck_assert(!weir__window_add(&window, &(weir_sample){2, rtt * MS, 1, WEIR_SUCCESS}, &summary));
        ck_assert(weir__window_add(&window, &(weir_sample){2 * SECOND, 1 * MS, 1, WEIR_SUCCESS}, &summary));
        ck_assert_uint_eq(summary.rtt_ns, expected[i].rtt * MS);
    }
}
END_TEST

/* The figures count the windows that closed and say how many samples one needs and what the last one held. */
START_TEST(window_figures)
{
    weir_config config = config_of(WEIR_AIMD);
    config.window_samples = 12;
    weir_estimator *estimator = create(&config);
    for (uint64_t i = 0; i < 400; i++)
        feed(estimator, SECOND + i * 10 * MS, (i < 200 ? 10 : 30) * MS, 20, WEIR_SUCCESS);
    weir_figures figures = figures_of(estimator);
    ck_assert_uint_eq(figures.windows, 4);
    ck_assert_uint_eq(figures.window_samples, 12);
    ck_assert_uint_eq(figures.rtt_ns, 30 * MS);
    weir_estimator_destroy(estimator);
}
END_TEST

/* ---- a fresh window ---- */

static const uint32_t windowed[] = {WEIR_GRADIENT2, WEIR_VEGAS, WEIR_AIMD, WEIR_VEGAS2};

/* Feeds until a window closes, at most so many; true: one did. */
static bool close_a_window(weir_estimator *estimator, uint64_t *now_ns, uint64_t rtt_ns, unsigned most)
{
    uint64_t closed = figures_of(estimator).windows;
    for (unsigned i = 0; i < most && figures_of(estimator).windows == closed; i++, *now_ns += MS)
        (void)feed(estimator, *now_ns, rtt_ns, weir_estimator_limit(estimator), WEIR_SUCCESS);
    return figures_of(estimator).windows != closed;
}

/* What a window has seen before a restart is not in what it says after. */
START_TEST(a_restart_begins_a_fresh_window)
{
    weir_config config = config_of(windowed[_i]);
    config.min_limit = config.max_limit = 40; /* so vegas2 has no other reason to begin a window */
    config.drain_interval = 0;
    uint64_t now = SECOND;
    weir_estimator *estimator = create(&config);
    for (int i = 0; i < 5; i++)
        ck_assert(close_a_window(estimator, &now, 20 * MS, 3000));
    ck_assert_uint_eq(figures_of(estimator).rtt_ns, 20 * MS);
    uint64_t closed = figures_of(estimator).windows;
    now += 20 * MS;
    for (int i = 0; i < 12; i++, now += MS)
        (void)feed(estimator, now, 300 * MS, 40, i % 2 == 0 ? WEIR_SUCCESS : WEIR_DROPPED);
    ck_assert_uint_eq(figures_of(estimator).windows, closed); /* the window is still open */
    now += SECOND / 2;
    weir__estimator_restart(estimator, now);
    ck_assert(close_a_window(estimator, &now, 20 * MS, 3000));
    ck_assert_uint_eq(figures_of(estimator).rtt_ns, 20 * MS);
    weir_estimator_destroy(estimator);
}
END_TEST

/* ---- reaction ---- */

/* One call in 10 ms under a full limit, first healthy, then congested. */
struct step_response {
    weir_estimator *estimator;
    uint64_t now;
    uint64_t predicted_ns;
    uint64_t measured_ns;
};

static struct step_response respond(weir_config *config, uint64_t congested_rtt, uint32_t outcome)
{
    config->initial_limit = 64;
    config->max_limit = 64;
    struct step_response r = {.estimator = create(config), .now = SECOND};
    for (; r.now < 13 * SECOND; r.now += 10 * MS)
        feed(r.estimator, r.now, 20 * MS, 64, WEIR_SUCCESS);
    ck_assert_uint_eq(weir_estimator_limit(r.estimator), 64);
    r.predicted_ns = weir_estimator_reaction_ns(r.estimator);
    for (uint64_t begin = r.now; r.measured_ns == 0; r.now += 10 * MS) {
        if (feed(r.estimator, r.now, congested_rtt, 64, outcome) <= 32)
            r.measured_ns = r.now + congested_rtt - begin;
        ck_assert_uint_lt(r.now, 300 * SECOND);
    }
    weir_estimator_destroy(r.estimator);
    return r;
}

static void expect_ratio(struct step_response r, double least, double most)
{
    double ratio = (double)r.measured_ns / (double)r.predicted_ns;
    (void)fprintf(stderr, "# reaction: predicted %.2f s, measured %.2f s\n", (double)r.predicted_ns * 1e-9,
                  (double)r.measured_ns * 1e-9);
    ck_assert_double_ge(ratio, least);
    ck_assert_double_le(ratio, most);
}

/* Gradient2 takes the predicted time at the least gradient, a quarter more or less; for twice the RTT, where the
 * gradient is only 3/4 and fades as the long average follows, up to four times as long. */
START_TEST(gradient2_reacts_as_predicted)
{
    weir_config config = config_of(WEIR_GRADIENT2);
    expect_ratio(respond(&config, 200 * MS, WEIR_SUCCESS), 0.75, 1.25);
    expect_ratio(respond(&config, 40 * MS, WEIR_SUCCESS), 1, 4);
    config.window_min = config.window_max = 200 * MS;
    expect_ratio(respond(&config, 200 * MS, WEIR_SUCCESS), 0.75, 1.25);
}
END_TEST

/* Vegas takes the predicted time under drops and under latency, a quarter more or less. */
START_TEST(vegas_reacts_as_predicted)
{
    weir_config config = config_of(WEIR_VEGAS);
    expect_ratio(respond(&config, 20 * MS, WEIR_DROPPED), 0.75, 1.25);
    expect_ratio(respond(&config, 40 * MS, WEIR_SUCCESS), 0.75, 1.25);
}
END_TEST

/* AIMD takes the predicted time when calls begin to time out, a quarter more or less; where one window is enough, it is
 * the half window until that one that decides, one way or the other. */
START_TEST(aimd_reacts_as_predicted)
{
    weir_config config = config_of(WEIR_AIMD);
    expect_ratio(respond(&config, 5 * SECOND + MS, WEIR_SUCCESS), 0.75, 1.25);
    config.timeout = 100 * MS;
    config.backoff_ratio = 0.5;
    expect_ratio(respond(&config, 101 * MS, WEIR_SUCCESS), 0.4, 1.25);
}
END_TEST

/* Without a window an RTT stands for one; as it holds many samples, the prediction is an upper bound. A probe of vegas
 * in between would take the congestion for the baseline. */
START_TEST(raw_samples_react_sooner_than_predicted)
{
    weir_config config = raw_config_of(WEIR_GRADIENT2);
    expect_ratio(respond(&config, 100 * MS, WEIR_SUCCESS), 0, 1.25);
    config = raw_config_of(WEIR_VEGAS);
    config.probe_multiplier = 1000000;
    expect_ratio(respond(&config, 100 * MS, WEIR_SUCCESS), 0, 1.25);
}
END_TEST

static double windows_to_halve(const struct weir__algorithm *algorithm, uint32_t limit)
{
    weir_config config = config_of(WEIR_VEGAS);
    config.algorithm = algorithm == &weir__gradient2 ? WEIR_GRADIENT2 : WEIR_VEGAS;
    config.initial_limit = limit;
    config.max_limit = 1u << 20;
    ck_assert_int_eq(weir__estimator_settle(&config), 0);
    union {
        struct weir__gradient2_state gradient2;
        struct weir__vegas_state vegas;
    } state;
    ck_assert_int_eq(algorithm->class.init(&state, &config), 0);
    return algorithm->halving(&state).windows;
}

/* The windows it takes from a limit: steps of the logarithm for vegas, a recurrence with the allowance for gradient2.
 */
START_TEST(windows_until_half)
{
    ck_assert_double_eq_tol(windows_to_halve(&weir__vegas, 64), 32, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__vegas, 100), 50, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__vegas, 200), 50, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__vegas, 150), 50, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__vegas, 2000), 1000.0 / 3, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__vegas, 1), 0, 1e-12);
    ck_assert_double_eq_tol(windows_to_halve(&weir__gradient2, 64), 8.04, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__gradient2, 100000), 6.58, 0.01);
    ck_assert_double_eq_tol(windows_to_halve(&weir__gradient2, 8), 0, 1e-12);
    ck_assert_double_lt(windows_to_halve(&weir__gradient2, 16), 25);
}
END_TEST

static TCase *arithmetic_case(void)
{
    TCase *tcase = tcase_create("arithmetic");
    tcase_add_test(tcase, truncation_has_no_undefined_case);
    tcase_add_test(tcase, extremes_follow_java);
    tcase_add_test(tcase, roots_are_exact);
    return tcase;
}

static TCase *own_rules_case(void)
{
    TCase *tcase = tcase_create("own rules");
    tcase_add_loop_test(tcase, rtt_of_zero_is_a_nanosecond, 0, 3);
    tcase_add_loop_test(tcase, in_flight_does_not_wrap, 0, 3);
    tcase_add_test(tcase, vegas_fast_failure_is_no_baseline);
    tcase_add_test(tcase, window_mean_does_not_overflow);
    tcase_add_test(tcase, window_outlives_a_clock_that_was_ahead);
    tcase_add_test(tcase, window_percentile_has_a_first_rank);
    tcase_add_test(tcase, window_figures);
    return tcase;
}

static TCase *restart_case(void)
{
    TCase *tcase = tcase_create("restart");
    tcase_add_loop_test(tcase, a_restart_begins_a_fresh_window, 0, sizeof windowed / sizeof windowed[0]);
    return tcase;
}

static TCase *reaction_case(void)
{
    TCase *tcase = tcase_create("reaction");
    tcase_add_test(tcase, gradient2_reacts_as_predicted);
    tcase_add_test(tcase, vegas_reacts_as_predicted);
    tcase_add_test(tcase, aimd_reacts_as_predicted);
    tcase_add_test(tcase, raw_samples_react_sooner_than_predicted);
    tcase_add_test(tcase, windows_until_half);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("algorithms");
    suite_add_tcase(suite, arithmetic_case());
    suite_add_tcase(suite, own_rules_case());
    suite_add_tcase(suite, restart_case());
    suite_add_tcase(suite, reaction_case());
    return weir_test_main(suite);
}
