/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "config_support.h"

static void put(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

/* Later wins: defaults, the program, WEIR_<OPTION>, WEIR_<OPTION>__<POOL>; print tells which one it was. */
START_TEST(precedence)
{
    put("WEIR_MAX_LIMIT", "20");
    put("WEIR_MAX_LIMIT__DB_1", "30");
    put("WEIR_MIN_LIMIT", "5");
    put("WEIR_QUEUE_MAX__DEFAULT", "7");
    put("WEIR_TIMEOUT", "");
    weir_config config = weir_test_defaults();
    config.max_limit = 10;
    config.queue_min = 2;
    weir_test_assert_printed(&config, "MAX_LIMIT", "10", "program");
    ck_assert_int_eq(weir_config_set(&config, "min_rtt", "1ms"), 0);
    ck_assert_int_eq(weir_config_load_env(&config, "db-1"), 0);
    weir_test_assert_printed(&config, "MAX_LIMIT", "30", "from WEIR_MAX_LIMIT__DB_1");
    weir_test_assert_printed(&config, "MIN_LIMIT", "5", "from WEIR_MIN_LIMIT");
    weir_test_assert_printed(&config, "QUEUE_MIN", "2", "program");
    weir_test_assert_printed(&config, "QUEUE_MAX", "65536", "default");
    weir_test_assert_printed(&config, "MIN_RTT", "1ms", "set");
    weir_test_assert_printed(&config, "TIMEOUT", "5s", "default");
    ck_assert_int_eq(weir_config_load_env(&config, NULL), 0);
    weir_test_assert_printed(&config, "MAX_LIMIT", "20", "from WEIR_MAX_LIMIT");
    weir_test_assert_printed(&config, "QUEUE_MAX", "7", "from WEIR_QUEUE_MAX__DEFAULT");
    put("WEIR_MAX_LIMIT", "default");
    ck_assert_int_eq(weir_config_load_env(&config, "other"), 0);
    weir_test_assert_printed(&config, "MAX_LIMIT", "1000", "from WEIR_MAX_LIMIT");
    weir_test_assert_printed(&config, "QUEUE_MAX", "7", "set");
    ck_assert_str_eq(weir_test_log_text(), "");
}
END_TEST

/* Every bad variable is reported with its name, and none is applied. */
START_TEST(bad_variables)
{
    put("WEIR_MAX_LIMIT", "abc");
    put("WEIR_MAX_LIMIT__DB", "5");
    put("WEIR_SMOOTHING__DB", "2");
    put("WEIR_ALGORITHM", "custom");
    put("WEIR_MIN_LIMIT", "3");
    weir_config config = weir_test_defaults();
    weir_config before = config;
    ck_assert_int_eq(weir_config_load_env(&config, "db"), EINVAL);
    ck_assert_int_eq(memcmp(&config, &before, sizeof config), 0);
    weir_test_assert_logged("WEIR_MAX_LIMIT=\"abc\" is not accepted: 1 to 1073741824 permits\n");
    weir_test_assert_logged("WEIR_SMOOTHING__DB=\"2\" is not accepted: above 0, at most 1\n");
    weir_test_assert_logged("WEIR_ALGORITHM=\"custom\" is not accepted (only the program can choose it): vegas2, ");
    weir_config out = before;
    ck_assert_int_eq(weir__config_resolve(&out, NULL, "db", true), EINVAL);
    ck_assert_int_eq(memcmp(&out, &before, sizeof out), 0);
    config.flags = WEIR_NO_ENV;
    ck_assert_int_eq(weir__config_resolve(&out, &config, "db", true), 0);
    ck_assert_int_eq(weir__config_resolve(&out, NULL, "db", false), 0);
}
END_TEST

/* The log threshold that the environment sets counts for its own errors; a bad one counts as warn. */
START_TEST(log_threshold)
{
    weir_config out;
    put("WEIR_LOG", "off");
    put("WEIR_MAX_LIMIT", "abc");
    ck_assert_int_eq(weir__config_resolve(&out, NULL, NULL, true), EINVAL);
    ck_assert_str_eq(weir_test_log_text(), "");
    put("WEIR_LOG", "loud");
    weir_config in = weir_test_defaults();
    in.log = WEIR_LOG_OFF;
    ck_assert_int_eq(weir__config_resolve(&out, &in, NULL, true), EINVAL);
    weir_test_assert_logged("WEIR_LOG=\"loud\" is not accepted: off, error, warn or info\n");
    weir_test_assert_logged("WEIR_MAX_LIMIT=\"abc\"");
}
END_TEST

/* A misspelt variable is warned about once per creation; what other parts read is not. */
START_TEST(unknown_variables)
{
    weir_config out;
    put("WEIR_MAX_LIMIT__OTHER_POOL", "5");
    put("WEIR_TEST_ANYTHING", "1");
    put("WEIR_DISPLAY_ENV", "0");
    put("WEIR_NOTHING", "");
    ck_assert_int_eq(weir__config_resolve(&out, NULL, "db", true), 0);
    ck_assert_str_eq(weir_test_log_text(), "");
    static const char *const unknown[] = {"WEIR_MAX_LIMITS",    "WEIR_max_limit", "WEIR_MAX_LIMIT_DB",
                                          "WEIR_MAX_LIMIT__db", "WEIR_",          "WEIR_MAX_LIMIT__"};
    for (size_t i = 0; i < COUNT(unknown); i++) {
        put(unknown[i], "5");
        weir_test_log_capture();
        ck_assert_int_eq(weir__config_resolve(&out, NULL, "db", true), 0);
        char expected[128];
        (void)snprintf(expected, sizeof expected, "no option is set by %s: see weir_environ(7)\n", unknown[i]);
        ck_assert_str_eq(weir_test_log_text(), expected);
        ck_assert_int_eq(unsetenv(unknown[i]), 0);
    }
    put("WEIR_A", "1");
    put("WEIR_B", "1");
    ck_assert_int_eq(weir__config_resolve(&out, NULL, "db", true), 0);
    weir_test_assert_logged("WEIR_A, WEIR_B: see");
}
END_TEST

static void assert_creation_refuses(const weir_config *in, const char *part)
{
    weir_config out;
    weir_test_log_capture();
    if (weir__config_resolve(&out, in, "db", true) != EINVAL)
        ck_abort_msg("taken, although: %s", part);
    weir_test_assert_logged(part);
}

static int class_init(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    return 0;
}

static uint32_t class_update(void *state, const weir_sample *sample)
{
    (void)state;
    (void)sample;
    return 1;
}

/* A creation refuses values that contradict each other, and says where each came from. */
START_TEST(contradictions)
{
    static const struct {
        const char *set[4];
        const char *logged;
    } cases[] = {
        {{"MIN_LIMIT", "8", "MAX_LIMIT", "7"}, "MIN_LIMIT=8 (set) is above MAX_LIMIT=7 (set)"},
        {{"MIN_LIMIT", "1001"}, "MIN_LIMIT=1001 (set) is above MAX_LIMIT=1000 (default)"},
        {{"WINDOW_MIN", "1500ms"}, "WINDOW_MIN=1500ms (set) is above WINDOW_MAX=1s (default)"},
        {{"QUEUE_MAX", "0"}, "QUEUE_MIN=1 (default) is above QUEUE_MAX=0 (set)"},
        {{"WINDOW_SAMPLES", "101", "WINDOW_PERCENTILE", "0.5"},
         "WINDOW_SAMPLES=101 (set) is above WINDOW_CAPACITY=100"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        weir_config config = weir_test_defaults();
        for (size_t j = 0; j < 4 && cases[i].set[j] != NULL; j += 2)
            ck_assert_int_eq(weir_config_set(&config, cases[i].set[j], cases[i].set[j + 1]), 0);
        assert_creation_refuses(&config, cases[i].logged);
    }
    weir_config config = weir_test_defaults();
    weir_config out;
    config.window_samples = 101; /* no percentile: nothing is kept */
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    config = weir_test_defaults();
    config.min_limit = 50;
    put("WEIR_MAX_LIMIT__DB", "20");
    assert_creation_refuses(&config, "MIN_LIMIT=50 (program) is above MAX_LIMIT=20 (from WEIR_MAX_LIMIT__DB)");
    ck_assert_int_eq(weir__config_resolve(&out, &config, "other", true), 0);
}
END_TEST

/* An algorithm of the program's own needs a class with init and update. */
START_TEST(custom_algorithm)
{
    weir_estimator_class class = {.name = "mine", .init = class_init};
    weir_config config = weir_test_defaults();
    weir_config out;
    config.algorithm = WEIR_CUSTOM;
    assert_creation_refuses(&config, "ALGORITHM=custom needs an estimator_class");
    config.estimator_class = &class;
    assert_creation_refuses(&config, "ALGORITHM=custom needs an estimator_class");
    class.update = class_update;
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    ck_assert_ptr_eq(out.estimator_class, &class);
    weir_test_assert_printed(&out, "ALGORITHM", "custom", "program");
    put("WEIR_ALGORITHM", "aimd");
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    ck_assert_uint_eq(out.algorithm, WEIR_AIMD);
}
END_TEST

/* Fields that a program filled by hand are held to the same ranges. */
START_TEST(fields_out_of_range)
{
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        bool is_text = option->type == WEIR__OPTION_DIRECTORY || option->type == WEIR__OPTION_SHARES;
        struct weir__value bad[] = {{.number = option->most + 1, .real = nextafter(option->low, -1.0), .text = ""},
                                    {.number = option->most + 1, .real = nextafter(option->high, 2e3), .text = ""},
                                    {.number = option->least - 1, .real = -INFINITY, .text = ""}};
        if (option->type == WEIR__OPTION_CHOICE)
            bad[0].number = bad[1].number = bad[2].number = 17;
        bool has_lower = is_text || option->type == WEIR__OPTION_DOUBLE || option->type == WEIR__OPTION_CHOICE ||
                         option->least > 1 || (option->least == 1 && option->words == NULL);
        for (size_t j = 0; j < (has_lower ? 3u : 2u); j++) {
            weir_config config = weir_test_defaults();
            weir__option_store(option, &config, bad[j]);
            char expected[64];
            (void)snprintf(expected, sizeof expected, "%s=\"", option->name);
            assert_creation_refuses(&config, expected);
        }
    }
    weir_config config = weir_test_defaults();
    config.backoff_ratio = NAN;
    assert_creation_refuses(&config, "BACKOFF_RATIO=\"nan\" is not accepted: at least 0.5, below 1");
    config = weir_test_defaults();
    config.max_limit = 0;
    config.partitions = "a=0.7,b=0.7";
    assert_creation_refuses(&config, "MAX_LIMIT=\"0\" is not accepted: 1 to 1073741824 permits");
    weir_test_assert_logged("PARTITIONS=\"a=0.7,b=0.7\" is not accepted (the shares are above 1 in sum)");
    config = weir_test_defaults();
    config.stack_size = 4096;
    assert_creation_refuses(&config, "STACK_SIZE=\"4K\" is not accepted: 0, or ");
    config.stack_size = weir__thread_least_stack();
    config.stats_dir = "off";
    weir_config out;
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    ck_assert_ptr_null(out.stats_dir);
}
END_TEST

/* What the algorithm puts in the place of a default after the creation has resolved it is shown as its own. */
START_TEST(algorithm_origin)
{
    weir_config config = weir_test_defaults();
    weir_config out;
    config.smoothing = 0.3;
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    weir_test_assert_printed(&out, "LONG_WINDOW", "default", "default");
    out.long_window = 600;
    out.initial_limit = 4;
    weir_test_assert_printed(&out, "LONG_WINDOW", "600", "algorithm");
    weir_test_assert_printed(&out, "INITIAL_LIMIT", "4", "algorithm");
    weir_test_assert_printed(&out, "SMOOTHING", "0.3", "program");
}
END_TEST

/* Monitor mode can be asked for in flags; the environment still overrides it; unknown flags are refused. */
START_TEST(flags)
{
    weir_config config = weir_test_defaults();
    weir_config out;
    config.flags = (uint32_t)WEIR_MONITOR | WEIR_NO_ENV;
    weir_test_assert_printed(&config, "MODE", "monitor", "program");
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    ck_assert(out.mode == WEIR_MONITOR && out.flags == WEIR_NO_ENV);
    put("WEIR_MODE", "enforce");
    config.flags = WEIR_MONITOR;
    ck_assert_int_eq(weir__config_resolve(&out, &config, NULL, true), 0);
    ck_assert_int_eq(weir__config_resolve(&out, &out, NULL, false), 0);
    ck_assert_uint_eq(out.mode, WEIR_ENFORCE);
    config.flags = 4;
    assert_creation_refuses(&config, "flags=0x4");
}
END_TEST

/* A shorter struct has the defaults beyond its end and is not written there; a longer one must be zero beyond ours. */
START_TEST(other_sizes)
{
    union {
        weir_config config;
        unsigned char bytes[sizeof(weir_config) + 64];
    } given;
    weir_config out;
    memset(&given, 0xff, sizeof given);
    given.config.size = offsetof(weir_config, window_min);
    weir_config init = weir_test_defaults();
    memcpy(&given.config.algorithm, &init.algorithm, given.config.size - offsetof(weir_config, algorithm));
    ck_assert_int_eq(weir_config_set(&given.config, "MAX_LIMIT", "12"), 0);
    ck_assert_int_eq(weir_config_set(&given.config, "TIMEOUT", "12s"), EINVAL);
    ck_assert_int_eq(weir_config_load_env(&given.config, NULL), 0);
    for (size_t i = given.config.size; i < sizeof given; i++)
        ck_assert_uint_eq(given.bytes[i], 0xff);
    ck_assert_int_eq(weir__config_resolve(&out, &given.config, NULL, true), 0);
    ck_assert(out.size == sizeof out && out.max_limit == 12 && out.timeout == 5000000000 && out.hook_arg == NULL);

    memset(&given, 0, sizeof given);
    ck_assert_int_eq(weir_config_init(&given.config), 0);
    given.config.size = sizeof given;
    ck_assert_int_eq(weir_config_set(&given.config, "MAX_LIMIT", "13"), 0);
    ck_assert_uint_eq(given.config.size, sizeof given);
    ck_assert_int_eq(weir__config_resolve(&out, &given.config, NULL, true), 0);
    ck_assert(out.size == sizeof out && out.max_limit == 13);
    given.bytes[sizeof given - 1] = 1;
    assert_creation_refuses(&given.config, "does not know");

    static const size_t absurd[] = {0, 8, 1, sizeof(weir_config) - 1, 1u << 20, SIZE_MAX};
    for (size_t i = 0; i < COUNT(absurd); i++) {
        given.config.size = absurd[i];
        assert_creation_refuses(&given.config, "weir_config_init was not called");
        ck_assert_int_eq(weir_config_set(&given.config, "MAX_LIMIT", "13"), EINVAL);
        ck_assert_int_eq(weir_config_print(&given.config, stderr), EINVAL);
    }
}
END_TEST

/* What goes to stderr while the configuration of a pool named db is displayed; the caller frees it. */
static char *displayed(const weir_config *config)
{
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    (void)fflush(stderr);
    int saved = dup(STDERR_FILENO);
    ck_assert_int_eq(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    weir__config_display(config, "pool", "db");
    (void)fflush(stderr);
    ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    (void)close(saved);
    char *text = calloc(1, 8192);
    ck_assert_ptr_nonnull(text);
    rewind(file);
    (void)fread(text, 1, 8191, file);
    (void)fclose(file);
    return text;
}

/* WEIR_DISPLAY_ENV=1 and nothing else shows what print shows, under a heading; WEIR_NO_ENV keeps it off. */
START_TEST(display)
{
    static const char heading[] = "weir: pool \"db\" configuration\n";
    weir_config config = weir_test_defaults();
    char *text = displayed(&config);
    ck_assert_str_eq(text, "");
    free(text);
    put("WEIR_DISPLAY_ENV", "1");
    text = displayed(&config);
    char *expected = weir_test_printed(&config);
    ck_assert_int_eq(strncmp(text, heading, sizeof heading - 1), 0);
    ck_assert_str_eq(text + sizeof heading - 1, expected);
    free(expected);
    free(text);
    config.flags = WEIR_NO_ENV;
    text = displayed(&config);
    ck_assert_str_eq(text, "");
    free(text);
}
END_TEST

enum { IGNORED = 0, READ = 3, NOT_SET_USER_ID = 77 };

/* Runs in a copy of this program that belongs to another user and has the set-user-ID bit. */
static int probe_environment(void)
{
    weir_config config;
    if (getuid() == geteuid())
        return NOT_SET_USER_ID;
    bool is_default = weir_config_init(&config) == 0 && weir_config_load_env(&config, NULL) == 0 &&
                      config.max_limit == 1000 && weir__getenv("WEIR_MAX_LIMIT") == NULL;
    return is_default ? IGNORED : READ;
}

static void copy_program(const char *path)
{
    char buffer[65536];
    int from = open("/proc/self/exe", O_RDONLY);
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
    ssize_t count = 0;
    while (from >= 0 && to >= 0 && (count = read(from, buffer, sizeof buffer)) > 0)
        ck_assert_int_eq(write(to, buffer, (size_t)count), count);
    (void)close(from);
    (void)close(to);
}

/* A set-user-ID program reads no environment. Needs root and a file system that honours the bit; passes without. */
START_TEST(set_user_id)
{
    char directory[] = "/tmp/weir-check-XXXXXX";
    char path[64];
    if (geteuid() != 0 || access("/proc/self/exe", R_OK) != 0 || mkdtemp(directory) == NULL)
        return;
    (void)snprintf(path, sizeof path, "%s/probe", directory);
    copy_program(path);
    bool ready = chown(path, 65534, 65534) == 0 && chmod(path, 04755) == 0 && chmod(directory, 0755) == 0;
    put("WEIR_MAX_LIMIT", "5");
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)execl(path, path, "--probe-environment", (char *)NULL);
        _exit(NOT_SET_USER_ID);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    (void)unlink(path);
    (void)rmdir(directory);
    ck_assert(WIFEXITED(status));
    if (!ready || WEXITSTATUS(status) == NOT_SET_USER_ID)
        (void)fprintf(stderr, "# set_user_id: could not be tried here\n");
    else
        ck_assert_int_eq(WEXITSTATUS(status), IGNORED);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--probe-environment") == 0)
        _exit(probe_environment()); /* without the leak check, which cannot look into a set-user-ID process */
    Suite *suite = suite_create("environment");
    TCase *tests = tcase_create("environment");
    tcase_add_checked_fixture(tests, weir_test_clear_environment, weir_test_release_environment);
    tcase_add_test(tests, precedence);
    tcase_add_test(tests, bad_variables);
    tcase_add_test(tests, log_threshold);
    tcase_add_test(tests, unknown_variables);
    tcase_add_test(tests, contradictions);
    tcase_add_test(tests, custom_algorithm);
    tcase_add_test(tests, fields_out_of_range);
    tcase_add_test(tests, algorithm_origin);
    tcase_add_test(tests, flags);
    tcase_add_test(tests, other_sizes);
    tcase_add_test(tests, display);
    tcase_add_test(tests, set_user_id);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
