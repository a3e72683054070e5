/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config_support.h"

#define PERMITS     "1 to 1073741824 permits"
#define JOBS        "0 to 16777216 jobs"
#define TIMES(low_) low_ " to 525600m (units: ns us ms s m)"
#define SHARES \
    "none, or name=share,name=share with names of letters digits _ . - and shares from 0 to 1, in sum at most 1"
#define BYTES "1G bytes (K M G are powers of 1024)"

/* What each option takes and refuses, written down a second time. */
/* clang-format off */
static const struct {
    const char *option;
    const char *accepts;
    const char *good[8];
    const char *bad[8];
} inputs[] = {
    {"ALGORITHM", "vegas2, gradient2, vegas, aimd or fixed",
     {"vegas2", "gradient2", "vegas", "aimd", "fixed"}, {"custom", "Vegas", "1", "vegas2 "}},
    {"INITIAL_LIMIT", "0 to 1073741824 permits", {"0", "1", "1073741824", "007"}, {"1073741825", "4294967296"}},
    {"MIN_LIMIT", PERMITS, {"1", "1073741824"}, {"0", "1073741825", "4294967297"}},
    {"MAX_LIMIT", PERMITS, {"1", "1073741824"}, {"0", "1073741825", "4294967297"}},
    {"QUEUE_DEPTH", "auto, or " JOBS, {"auto", "0", "16777216"}, {"16777217", "4294967295", "AUTO"}},
    {"QUEUE_MIN", JOBS, {"0", "16777216"}, {"16777217", "auto"}},
    {"QUEUE_MAX", JOBS, {"0", "16777216"}, {"16777217", "auto"}},
    {"WINDOW", "on or off", {"on", "off"}, {"1", "0", "yes", "ON"}},
    {"WINDOW_MIN", TIMES("1ns"), {"1ns", "525600m", "1.5s", "0.1us", "0.0000000001m"},
     {"0", "0s", "525600.0000000001m", "1", "0.1ns"}},
    {"WINDOW_MAX", TIMES("1ns"), {"1ns", "525600m"}, {"0", "31536000001ms", "5h", "1.s", ".5s", "1.5.5s"}},
    {"WINDOW_SAMPLES", "1 to 1048576 samples", {"1", "1048576"}, {"0", "1048577"}},
    {"WINDOW_PERCENTILE", "mean, or above 0, below 1", {"mean", "0", "0.0", "0.99", "0.000000001"},
     {"1", "1.0", "0.9.", ".5", "99%", "0,5", "1e-1"}},
    {"WINDOW_CAPACITY", "1 to 1048576 samples", {"1", "1048576"}, {"0", "1048577"}},
    {"MIN_RTT", TIMES("0"), {"0", "0ns", "1ns", "525600m"}, {"525601m", "100", "100 us", "100US", "s"}},
    {"SMOOTHING", "above 0, at most 1", {"0.000000001", "1", "1.0"}, {"0", "1.000000001", "0x1", "infinity"}},
    {"RTT_TOLERANCE", "1 to 1000", {"1", "1000", "1.5"}, {"0.999999999", "1000.000001", "1e3", "nan(1)"}},
    {"LONG_WINDOW", "1 to 1073741824 samples", {"1", "1073741824"}, {"0", "1073741825", "4294967295"}},
    {"QUEUE_ALLOWANCE", "0 to 1073741824 permits", {"0", "1073741824"}, {"1073741825", "4294967295"}},
    {"ALPHA", "0 to 1073741824 permits", {"0", "1073741824"}, {"1073741825", "4294967295"}},
    {"BETA", "0 to 1073741824 permits", {"0", "1073741824"}, {"1073741825", "4294967295"}},
    {"PROBE_MULTIPLIER", "0 to 1073741824", {"0", "1073741824"}, {"1073741825", "4294967295"}},
    {"BACKOFF_RATIO", "at least 0.5, below 1", {"0.5", "0.999999999"}, {"0.499999999", "1"}},
    {"TIMEOUT", TIMES("1ns"), {"1ns", "525600m"}, {"0", "31536000000000001us", "5"}},
    {"DRAIN_INTERVAL", "auto, off, or " TIMES("1us"), {"auto", "off", "0", "1us", "525600m"}, {"999ns", "525601m"}},
    {"RTT_CEILING", "none, or " TIMES("1ns"), {"none", "0", "1ns", "525600m"}, {"525601m", "off"}},
    {"MODE", "enforce or monitor", {"enforce", "monitor"}, {"2", "Monitor"}},
    {"PARTITIONS", SHARES, {"none", "live=0.9,batch=0.1", "a=0", "A-b_c.9=1", "a=0.1,ab=0.2,b=0.7"},
     {"live", "live=", "=1", "a=0.5,a=0.2", "a=0.9,b=0.100001", "a=0.5,", "a b=0.5", "a=-1"}},
    {"IDLE_TIMEOUT", TIMES("0"), {"0", "525600m"}, {"525601m", "30"}},
    {"STACK_SIZE", BYTES, {"0", "1M", "1024M", "1048576K", "1073741824"}, {"1025M", "1", "1k", "1KB", "0.5M", "1K"}},
    {"STATS_DIR", "off, or a directory", {"off", "/run/weir", "a b", "-1"}, {""}},
    {"LOG", "off, error, warn or info", {"error", "warn", "info", "off"}, {"2", "debug", "WARN"}},
};
/* clang-format on */

/* Every option of the table has its rows in this test. */
START_TEST(inputs_cover_every_option)
{
    ck_assert_uint_eq(COUNT(inputs), weir__options_count);
    for (size_t i = 0; i < COUNT(inputs); i++) {
        const struct weir__option *option = weir__option_find(inputs[i].option, strlen(inputs[i].option));
        ck_assert_ptr_nonnull(option);
        char accepts[WEIR__ACCEPTS_SIZE];
        weir__option_accepts(option, false, accepts);
        if (strstr(accepts, inputs[i].accepts) == NULL)
            ck_abort_msg("%s takes \"%s\", not \"%s\"", inputs[i].option, accepts, inputs[i].accepts);
    }
}
END_TEST

/* Good text is taken, recorded as set, and what print shows of it gives the same configuration again. */
START_TEST(good_inputs_round_trip)
{
    for (size_t i = 0; i < COUNT(inputs); i++) {
        for (size_t j = 0; j < COUNT(inputs[i].good) && inputs[i].good[j] != NULL; j++) {
            const char *option = inputs[i].option;
            weir_config config = weir_test_defaults();
            if (weir_config_set(&config, option, inputs[i].good[j]) != 0)
                ck_abort_msg("%s=%s was refused", option, inputs[i].good[j]);
            const struct weir__option *row = weir__option_find(option, strlen(option));
            char buffer[WEIR__VALUE_SIZE];
            const char *text = weir__option_format(row, weir__option_load(row, &config), buffer);
            if (strchr(text, ' ') == NULL)
                weir_test_assert_printed(&config, option, text, "set");
            weir_config again = weir_test_defaults();
            ck_assert_int_eq(weir_config_set(&again, option, text), 0);
            bool same = weir__option_equal(row, weir__option_load(row, &config), weir__option_load(row, &again));
            if (!same)
                ck_abort_msg("%s=%s came back from %s", option, inputs[i].good[j], text);
            ck_assert_int_eq(weir_config_set(&config, option, "default"), 0);
            weir_config untouched = weir_test_defaults();
            ck_assert_int_eq(memcmp(&config, &untouched, sizeof config), 0);
        }
    }
    ck_assert_str_eq(weir_test_log_text(), "");
}
END_TEST

static void assert_refused(size_t i, const char *text)
{
    weir_config config = weir_test_defaults();
    weir_config before = config;
    weir_test_log_capture();
    errno = 0;
    if (weir_config_set(&config, inputs[i].option, text) != EINVAL)
        ck_abort_msg("%s=\"%s\" was taken", inputs[i].option, text);
    ck_assert_int_eq(errno, 0);
    ck_assert_int_eq(memcmp(&config, &before, sizeof config), 0);
    char expected[256];
    (void)snprintf(expected, sizeof expected, "%s=\"%s\" is not accepted", inputs[i].option, text);
    weir_test_assert_logged(expected);
    weir_test_assert_logged(inputs[i].accepts);
}

/* Bad text gives EINVAL, leaves every byte as it was, and the log names option, value and what is accepted. */
START_TEST(bad_inputs_are_refused)
{
    static const char *const always[] = {"4x",  "-1", "+4",   " 4",  "4 ", "",     "99999999999999999999",
                                         "1e3", "1E", "0x10", "NaN", "-0", "1..2", "18446744073709551616s"};
    for (size_t i = 0; i < COUNT(inputs); i++) {
        for (size_t j = 0; j < COUNT(inputs[i].bad) && inputs[i].bad[j] != NULL; j++)
            assert_refused(i, inputs[i].bad[j]);
        for (size_t j = 0; j < COUNT(always) && strcmp(inputs[i].option, "STATS_DIR") != 0; j++)
            assert_refused(i, always[j]);
    }
}
END_TEST

/* The line of a refusal has this form, cuts long values, and does not pass control characters on. */
START_TEST(refusals_read_well)
{
    weir_config config = weir_test_defaults();
    ck_assert_int_eq(weir_config_set(&config, "timeout", "5"), EINVAL);
    weir_test_assert_logged("TIMEOUT=\"5\" is not accepted (a duration needs a unit): "
                            "1ns to 525600m (units: ns us ms s m)\n");
    ck_assert_int_eq(weir_config_set(&config, "Max_Limit", "a\nb\033"), EINVAL);
    weir_test_assert_logged("MAX_LIMIT=\"a?b?\" is not accepted: 1 to 1073741824 permits\n");
    ck_assert_int_eq(weir_config_set(&config, "ALGORITHM", "custom"), EINVAL);
    weir_test_assert_logged("only the program can choose it");
    char text[2000];
    memset(text, '7', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(weir_config_set(&config, "MAX_LIMIT", text), EINVAL);
    weir_test_assert_logged("777...\" is not accepted");
    ck_assert_int_eq(weir_config_set(&config, "BACKOFF_RATIO", text), EINVAL);
    ck_assert_int_eq(weir_config_set(&config, "MAX_LIMITS", "4"), EINVAL);
    weir_test_assert_logged("no option \"MAX_LIMITS\"");
    ck_assert_int_eq(weir_config_set(&config, "MAX_LIMI", "4"), EINVAL);
    ck_assert_int_eq(weir_config_set(&config, "", "4"), EINVAL);
    ck_assert_int_eq(weir_config_set(&config, "LOG", "off"), 0);
    weir_test_log_capture();
    ck_assert_int_eq(weir_config_set(&config, "MAX_LIMIT", "0"), EINVAL);
    ck_assert_str_eq(weir_test_log_text(), "");
}
END_TEST

/* NULL pointers are EINVAL. */
START_TEST(null_pointers)
{
    weir_config config = weir_test_defaults();
    ck_assert_int_eq(weir_config_init(NULL), EINVAL);
    ck_assert_int_eq(weir_config_set(NULL, "LOG", "off"), EINVAL);
    ck_assert_int_eq(weir_config_set(&config, NULL, "off"), EINVAL);
    ck_assert_int_eq(weir_config_set(&config, "LOG", NULL), EINVAL);
    ck_assert_int_eq(weir_config_load_env(NULL, "db"), EINVAL);
    ck_assert_int_eq(weir_config_print(NULL, stderr), EINVAL);
    ck_assert_int_eq(weir_config_print(&config, NULL), EINVAL);
}
END_TEST

/* Each option has a field of its own, and each public field before estimator_class is an option, size or flags. */
START_TEST(table_and_struct_agree)
{
    unsigned char covered[sizeof(weir_config)] = {0};
    memset(covered + offsetof(weir_config, size), 1, sizeof(size_t));
    memset(covered + offsetof(weir_config, flags), 1, sizeof(uint32_t));
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        struct weir__value value;
        ck_assert_uint_le(option->offset + weir__option_width(option), offsetof(weir_config, estimator_class));
        for (size_t byte = 0; byte < weir__option_width(option); byte++)
            if (covered[option->offset + byte]++ != 0)
                ck_abort_msg("%s shares a field", option->name);
        if (weir__option_parse(option, option->default_value, &value) != NULL)
            ck_abort_msg("the default of %s is refused", option->name);
        ck_assert_ptr_eq(weir__option_find(option->name, strlen(option->name)), option);
        ck_assert_int_eq(option->help[strlen(option->help) - 1], '.');
    }
    /* The first 64-bit field may need padding in front. */
    size_t flags_end = offsetof(weir_config, flags) + sizeof(uint32_t);
    for (size_t byte = 0; byte < offsetof(weir_config, estimator_class); byte++)
        if (covered[byte] != 1 && (byte < flags_end || byte >= offsetof(weir_config, window_min)))
            ck_abort_msg("byte %zu of weir_config belongs to no option", byte);
}
END_TEST

/* The defaults are the documented ones. */
START_TEST(documented_defaults)
{
    weir_config c = weir_test_defaults();
    ck_assert_uint_eq(c.size, sizeof c);
    ck_assert(c.algorithm == WEIR_VEGAS2 && c.initial_limit == 0 && c.min_limit == 1 && c.max_limit == 1000);
    ck_assert(c.queue_depth == WEIR_QUEUE_AUTO && c.queue_min == 1 && c.queue_max == 65536 && c.window == 1);
    ck_assert(c.window_min == 1000000000 && c.window_max == 1000000000 && c.window_samples == 10);
    ck_assert(c.window_percentile == 0 && c.window_capacity == 100 && c.min_rtt == 100000);
    ck_assert(isnan(c.smoothing) && isnan(c.rtt_tolerance) && fabs(c.backoff_ratio - 0.9) < 1e-15 &&
              c.timeout == 5000000000);
    ck_assert(c.long_window == WEIR_BY_ALGORITHM && c.queue_allowance == WEIR_BY_ALGORITHM);
    ck_assert(c.alpha == WEIR_BY_ALGORITHM && c.beta == WEIR_BY_ALGORITHM && c.probe_multiplier == WEIR_BY_ALGORITHM);
    ck_assert(c.drain_interval == WEIR_DRAIN_AUTO && c.rtt_ceiling == 0 && c.mode == WEIR_ENFORCE);
    ck_assert(c.partitions == NULL && c.stats_dir == NULL && c.idle_timeout == 30000000000 && c.stack_size == 0);
    ck_assert(c.log == WEIR_LOG_WARN && c.flags == 0 && c.estimator_class == NULL && c.trace == NULL);
}
END_TEST

/* Text means the documented values: exact durations, powers of 1024, words, correctly rounded fractions. */
START_TEST(values_of_text)
{
    weir_config c = weir_test_defaults();
    ck_assert(weir_config_set(&c, "window_max", "1.5s") == 0 && c.window_max == 1500000000);
    ck_assert(weir_config_set(&c, "window_max", "0.00000000005m") == 0 && c.window_max == 3);
    ck_assert(weir_config_set(&c, "window_max", "2.50m") == 0 && c.window_max == 150000000000);
    ck_assert(weir_config_set(&c, "min_rtt", "12us") == 0 && c.min_rtt == 12000);
    ck_assert(weir_config_set(&c, "stack_size", "3M") == 0 && c.stack_size == 3145728);
    ck_assert(weir_config_set(&c, "drain_interval", "off") == 0 && c.drain_interval == 0);
    ck_assert(weir_config_set(&c, "drain_interval", "auto") == 0 && c.drain_interval == WEIR_DRAIN_AUTO);
    ck_assert(weir_config_set(&c, "window_percentile", "0.1") == 0 && c.window_percentile == 0x1.999999999999ap-4);
    ck_assert(weir_config_set(&c, "window_percentile", "mean") == 0 && c.window_percentile == 0.0);
    ck_assert(weir_config_set(&c, "partitions", "a=1") == 0 && strcmp(c.partitions, "a=1") == 0);
    ck_assert(weir_config_set(&c, "partitions", "none") == 0 && c.partitions == NULL);
    ck_assert(weir_config_set(&c, "smoothing", "0.5") == 0 && c.smoothing == 0.5);
    ck_assert(weir_config_set(&c, "smoothing", "default") == 0 && isnan(c.smoothing));
    ck_assert(weir_config_set(&c, "mode", "monitor") == 0 && c.mode == WEIR_MONITOR);
}
END_TEST

/* Any fraction is printed so that it comes back exactly, however small. */
START_TEST(fractions_round_trip)
{
    uint64_t seed = weir_test_seed();
    double special[] = {0x1p-1074, 0x1p-1022, 0.1, 1.0 / 3.0, 1.0 - 0x1p-53, 1e-300};
    const struct weir__option *option = weir__option_find("smoothing", 9);
    for (unsigned i = 0; i < 500; i++) {
        struct weir__value value = {.real = i < COUNT(special) ? special[i] : weir_test_uniform(&seed)};
        struct weir__value back;
        char buffer[WEIR__VALUE_SIZE];
        const char *text = weir__option_format(option, value, buffer);
        if (weir__option_parse(option, text, &back) != NULL || back.real != value.real)
            ck_abort_msg("%a came back from %s", value.real, text);
    }
}
END_TEST

/* Any text, short or long, with or without a point, is read as the number that lies nearest. */
START_TEST(reals_are_the_nearest)
{
    uint64_t seed = weir_test_seed();
    for (unsigned i = 0; i < 20000; i++) {
        char text[24];
        size_t length = 1 + weir_test_random(&seed) % (sizeof text - 1);
        size_t point = 1 + weir_test_random(&seed) % length;
        for (size_t at = 0; at < length; at++)
            text[at] = (char)(at == point && at + 1 < length ? '.' : '0' + (int)(weir_test_random(&seed) % 10));
        double value = -1;
        char copy[sizeof text + 1] = {0};
        memcpy(copy, text, length);
        if (!weir__parse_real(text, length, &value) || value != strtod(copy, NULL))
            ck_abort_msg("%s was read as %a", copy, value);
    }
}
END_TEST

/* A locale with a decimal comma changes neither what is read nor what is printed. Skipped where there is none. */
START_TEST(locale_does_not_matter)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                        "fr_FR.utf8",  "de_DE",      "ps_AF.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < COUNT(names) && !found; i++)
        found = setlocale(LC_ALL, names[i]) != NULL;
    weir_config config = weir_test_defaults();
    ck_assert(weir_config_set(&config, "BACKOFF_RATIO", "0.75") == 0 && config.backoff_ratio == 0.75);
    ck_assert(weir_config_set(&config, "SMOOTHING", "0.12345678901234567") == 0 &&
              config.smoothing == 0.12345678901234567);
    ck_assert_int_eq(weir_config_set(&config, "BACKOFF_RATIO", "0,75"), EINVAL);
    weir_test_assert_printed(&config, "BACKOFF_RATIO", "0.75", "set");
    (void)setlocale(LC_ALL, "C");
}
END_TEST

/* A stream that cannot take the lines gives EIO. */
START_TEST(print_to_a_full_device)
{
    FILE *out = fopen("/dev/full", "w");
    if (out == NULL)
        return;
    weir_config config = weir_test_defaults();
    ck_assert_int_eq(weir_config_print(&config, out), EIO);
    (void)fclose(out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tests = tcase_create("config");
    tcase_add_checked_fixture(tests, weir_test_clear_environment, weir_test_release_environment);
    tcase_add_test(tests, inputs_cover_every_option);
    tcase_add_test(tests, good_inputs_round_trip);
    tcase_add_test(tests, bad_inputs_are_refused);
    tcase_add_test(tests, refusals_read_well);
    tcase_add_test(tests, null_pointers);
    tcase_add_test(tests, table_and_struct_agree);
    tcase_add_test(tests, documented_defaults);
    tcase_add_test(tests, values_of_text);
    tcase_add_test(tests, fractions_round_trip);
    tcase_add_test(tests, reals_are_the_nearest);
    tcase_add_test(tests, locale_does_not_matter);
    tcase_add_test(tests, print_to_a_full_device);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
