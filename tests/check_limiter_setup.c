/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Creating a limiter: its configuration, the environment; and what holds for all of its functions: errno, fork. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limiter_support.h"

#define MARK 12345 /* an errno value that no call sets */

/* ---- the environment ---- */

static void set_variable(const char *name, const char *value)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
}

static const char *const variables[] = {"WEIR_ALGORITHM",
                                        "WEIR_INITIAL_LIMIT",
                                        "WEIR_MAX_LIMIT",
                                        "WEIR_MIN_LIMIT",
                                        "WEIR_MODE",
                                        "WEIR_MAX_LIMIT__MY_DB",
                                        "WEIR_ALGORITHM__TEST",
                                        "WEIR_INITIAL_LIMIT__TEST",
                                        "WEIR_INITIAL_LIMIT__MY_DB",
                                        "WEIR_INITIAL_LIMIT__DEFAULT"};

static void clear_variables(void)
{
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        (void)unsetenv(variables[i]);
}

static void begin(void)
{
    clear_variables();
    weir_test_log_capture();
}

static void end(void)
{
    clear_variables();
    weir_test_log_release();
}

/* The limit that a limiter of this name and configuration starts with. */
static uint32_t limit_of(const char *name, const weir_config *config)
{
    weir_limiter *limiter = NULL;
    ck_assert_int_eq(weir_limiter_create(&limiter, name, config), 0);
    uint32_t limit = weir_test_stats(limiter).limit;
    weir_test_destroy(limiter);
    return limit;
}

/* Without a configuration a limiter has the defaults: vegas2, which starts at 4. */
START_TEST(defaults_without_a_configuration)
{
    ck_assert_uint_eq(limit_of(NULL, NULL), 4);
    ck_assert_uint_eq(limit_of("test", NULL), 4);
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    const uint32_t references[] = {WEIR_GRADIENT2, WEIR_VEGAS, WEIR_AIMD, WEIR_FIXED};
    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        config.algorithm = references[i];
        ck_assert_uint_eq(limit_of("test", &config), 20);
    }
}
END_TEST

/* A variable changes every limiter, one with a name after it only the limiter of that name, and wins. */
START_TEST(variables_take_effect)
{
    set_variable("WEIR_ALGORITHM", "fixed");
    set_variable("WEIR_INITIAL_LIMIT", "33");
    ck_assert_uint_eq(limit_of("test", NULL), 33);
    set_variable("WEIR_INITIAL_LIMIT__MY_DB", "7");
    ck_assert_uint_eq(limit_of("test", NULL), 33);
    ck_assert_uint_eq(limit_of("my db", NULL), 7);
    ck_assert_uint_eq(limit_of("my-db", NULL), 7);
    ck_assert_uint_eq(limit_of(NULL, NULL), 33);
    set_variable("WEIR_INITIAL_LIMIT__DEFAULT", "5");
    ck_assert_uint_eq(limit_of(NULL, NULL), 5);
    set_variable("WEIR_INITIAL_LIMIT", "");
    ck_assert_uint_eq(limit_of("test", NULL), 20);
}
END_TEST

/* The environment wins over the program, unless the program does not let it. */
START_TEST(program_may_refuse_the_environment)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 3;
    set_variable("WEIR_INITIAL_LIMIT", "33");
    ck_assert_uint_eq(limit_of("test", &config), 33);
    config.flags = WEIR_NO_ENV;
    ck_assert_uint_eq(limit_of("test", &config), 3);
    set_variable("WEIR_INITIAL_LIMIT", "rubbish");
    ck_assert_uint_eq(limit_of("test", &config), 3);
}
END_TEST

/* Monitor mode can be had by a variable alone: MAX_LIMIT is enforced. */
START_TEST(mode_by_variable)
{
    set_variable("WEIR_MODE", "monitor");
    set_variable("WEIR_MAX_LIMIT", "60");
    ck_assert_uint_eq(limit_of("test", NULL), 60);
}
END_TEST

/* A variable that cannot be used makes creation fail, and the log names it and what it held. */
START_TEST(bad_variable_is_refused)
{
    const char *const rows[][2] = {
        {"WEIR_ALGORITHM", "newton"},     {"WEIR_ALGORITHM", "custom"},        {"WEIR_INITIAL_LIMIT", "-1"},
        {"WEIR_MAX_LIMIT", "0"},          {"WEIR_MAX_LIMIT", "many"},          {"WEIR_MIN_LIMIT", "0"},
        {"WEIR_MODE", "watch"},           {"WEIR_INITIAL_LIMIT", "1e3"},       {"WEIR_INITIAL_LIMIT", "4294967296"},
        {"WEIR_ALGORITHM__TEST", "fixd"}, {"WEIR_INITIAL_LIMIT__TEST", "3 4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_limiter *limiter = NULL;
        clear_variables();
        weir_test_log_capture();
        set_variable(rows[i][0], rows[i][1]);
        int error = weir_limiter_create(&limiter, "test", NULL);
        ck_assert_msg(error == EINVAL, "%s=%s gives %d", rows[i][0], rows[i][1], error);
        ck_assert_ptr_null(limiter);
        ck_assert_msg(strstr(weir_test_log_text(), rows[i][0]) != NULL, "%s", weir_test_log_text());
        ck_assert_msg(strstr(weir_test_log_text(), rows[i][1]) != NULL, "%s", weir_test_log_text());
    }
}
END_TEST

/* A bad variable of another limiter is none of this one's business. */
START_TEST(other_limiters_variables_do_not_matter)
{
    set_variable("WEIR_INITIAL_LIMIT__MY_DB", "rubbish");
    ck_assert_uint_eq(limit_of("test", NULL), 4);
}
END_TEST

/* ---- the program's configuration ---- */

static void refuse(const weir_config *config, const char *what)
{
    weir_limiter *limiter = NULL;
    weir_test_log_capture();
    int error = weir_limiter_create(&limiter, "test", config);
    ck_assert_msg(error == EINVAL, "%s gives %d", what, error);
    ck_assert_ptr_null(limiter);
    ck_assert_msg(weir_test_log_text()[0] != '\0', "%s: nothing is logged", what);
}

/* A value or a contradiction that makes no sense is EINVAL, and the log says so. */
START_TEST(bad_configuration_is_refused)
{
    weir_config config = weir_test_config();
    config.algorithm = 99;
    refuse(&config, "an unknown algorithm");
    config = weir_test_config();
    config.algorithm = 0;
    refuse(&config, "no algorithm");
    config = weir_test_config();
    config.algorithm = WEIR_CUSTOM;
    refuse(&config, "custom without a class");
    config = weir_test_config();
    config.min_limit = 11;
    config.max_limit = 10;
    refuse(&config, "min above max");
    config = weir_test_config();
    config.initial_limit = 1001;
    refuse(&config, "initial above max");
    config = weir_test_config();
    config.min_limit = 10;
    config.initial_limit = 9;
    refuse(&config, "initial below min");
    config = weir_test_config();
    config.min_limit = 0;
    refuse(&config, "min 0");
    config = weir_test_config();
    config.queue_min = 10;
    config.queue_max = 9;
    refuse(&config, "queue_min above queue_max");
    config = weir_test_config();
    config.window_min = 2 * config.window_max;
    refuse(&config, "window_min above window_max");
    config = weir_test_config();
    config.mode = 1;
    refuse(&config, "an unknown mode");
    config = weir_test_config();
    config.flags = 1u << 30;
    refuse(&config, "an unknown flag");
    config = weir_test_config();
    config.backoff_ratio = NAN;
    refuse(&config, "a ratio that is none");
}
END_TEST

static int fail_to_start(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    return ENOSPC;
}

static uint32_t stay(void *state, const weir_sample *sample)
{
    (void)state;
    (void)sample;
    return 1;
}

/* An algorithm of the caller's that cannot start makes creation fail with its own error. */
START_TEST(error_of_init_is_passed_on)
{
    static const weir_estimator_class class = {.name = "failing", .init = fail_to_start, .update = stay};
    weir_config config = weir_test_config();
    weir_limiter *limiter = NULL;
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &class;
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", &config), ENOSPC);
    ck_assert_ptr_null(limiter);
}
END_TEST

/* Configuration and name are copied: what the program does with its own afterwards changes nothing. */
START_TEST(configuration_is_copied)
{
    weir_config config = weir_test_config();
    char name[] = "test";
    weir_limiter *limiter = NULL;
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 3;
    ck_assert_int_eq(weir_limiter_create(&limiter, name, &config), 0);
    memset(&config, 0xff, sizeof config);
    memset(name, 0xff, sizeof name);
    ck_assert_uint_eq(weir_test_stats(limiter).limit, 3);
    weir_test_destroy(limiter);
}
END_TEST

/* ---- errno ---- */

/* No function of a limiter changes errno, whether it succeeds, waits or refuses. */
START_TEST(errno_is_left_alone)
{
    weir_limiter *limiter = NULL;
    weir_permit permit = {0};
    weir_permit extra = {0};
    weir_stats stats = {0};
    weir_config config = weir_test_config();
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 1;
    errno = MARK;
    ck_assert(weir_limiter_create(&limiter, "test", &config) == 0 && errno == MARK);
    ck_assert(weir_limiter_acquire(limiter, &permit) == 0 && errno == MARK);
    ck_assert(weir_limiter_tryacquire(limiter, &extra) == EAGAIN && errno == MARK);
    ck_assert(weir_limiter_timedacquire(limiter, &extra, 0) == ETIMEDOUT && errno == MARK);
    ck_assert(weir_limiter_timedacquire(limiter, &extra, weir_after_ns(2000000)) == ETIMEDOUT && errno == MARK);
    ck_assert(weir_limiter_acquire_many(limiter, &extra, 0, NULL, 0) == EINVAL && errno == MARK);
    ck_assert(weir_limiter_freeze(limiter) == 0 && errno == MARK);
    ck_assert(weir_limiter_thaw(limiter) == 0 && errno == MARK);
    ck_assert(weir_limiter_thaw(limiter) == EINVAL && errno == MARK);
    ck_assert(weir_limiter_stats(limiter, &stats) == 0 && errno == MARK);
    ck_assert(weir_limiter_destroy(limiter) == EBUSY && errno == MARK);
    ck_assert(weir_limiter_release(limiter, &permit, WEIR_SUCCESS) == 0 && errno == MARK);
    ck_assert(weir_limiter_release(limiter, &permit, WEIR_SUCCESS) == EINVAL && errno == MARK);
    ck_assert(weir_limiter_destroy(limiter) == 0 && errno == MARK);
    config.algorithm = 99;
    ck_assert(weir_limiter_create(&limiter, "test", &config) == EINVAL && errno == MARK);
    set_variable("WEIR_MAX_LIMIT", "many");
    errno = MARK;
    ck_assert(weir_limiter_create(&limiter, "test", NULL) == EINVAL && errno == MARK);
}
END_TEST

struct waiter {
    weir_limiter *limiter;
    int error_numbers[2];
};

static void *wait_for_permit(void *arg)
{
    struct waiter *waiter = arg;
    weir_permit permit = {{0}};
    errno = MARK;
    (void)weir_limiter_acquire(waiter->limiter, &permit);
    waiter->error_numbers[0] = errno;
    (void)weir_limiter_release(waiter->limiter, &permit, WEIR_SUCCESS);
    waiter->error_numbers[1] = errno;
    return NULL;
}

/* Nor does a caller that slept and the release that woke it. */
START_TEST(errno_is_left_alone_by_a_wake_up)
{
    struct waiter waiter = {.limiter = weir_test_fixed_limiter(1)};
    pthread_t thread;
    weir_permit permit = {0};
    weir_test_take(waiter.limiter, &permit);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_permit, &waiter), 0);
    WEIR_TEST_UNTIL(weir_test_stats(waiter.limiter).waiting == 1);
    errno = MARK;
    ck_assert(weir_limiter_release(waiter.limiter, &permit, WEIR_SUCCESS) == 0 && errno == MARK);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(waiter.error_numbers[0], MARK);
    ck_assert_int_eq(waiter.error_numbers[1], MARK);
    weir_test_destroy(waiter.limiter);
}
END_TEST

/* ---- fork ---- */

/* In a child: the line of the first call that did not answer as it should, or 0. */
static int use_inherited(weir_limiter *limiter, weir_permit *held)
{
    weir_permit permit = {{0}};
    weir_stats stats = {0};
    weir_limiter *own = NULL;
    weir_config config;
    errno = MARK;
#define EXPECT(call_, expected_)       \
    do {                               \
        if ((call_) != (expected_))    \
            return __LINE__ % 255 + 1; \
    } while (0)
    EXPECT(weir_limiter_acquire(limiter, &permit), ECHILD);
    EXPECT(weir_limiter_tryacquire(limiter, &permit), ECHILD);
    EXPECT(weir_limiter_timedacquire(limiter, &permit, WEIR_FOREVER), ECHILD);
    EXPECT(weir_limiter_acquire_many(limiter, &permit, 1, NULL, WEIR_FOREVER), ECHILD);
    EXPECT(weir_limiter_acquire_many(limiter, &permit, 1, "live", WEIR_FOREVER), ECHILD);
    EXPECT(weir_limiter_release(limiter, held, WEIR_SUCCESS), ECHILD);
    EXPECT(weir_limiter_freeze(limiter), ECHILD);
    EXPECT(weir_limiter_thaw(limiter), ECHILD);
    EXPECT(weir_limiter_stats(limiter, &stats), ECHILD);
    EXPECT(weir_limiter_destroy(limiter), 0); /* although a permit is out */
    EXPECT(errno, MARK);
    EXPECT(weir_config_init(&config), 0);
    config.flags = WEIR_NO_ENV;
    EXPECT(weir_limiter_create(&own, "child", &config), 0);
    EXPECT(weir_limiter_acquire(own, &permit), 0);
    EXPECT(weir_limiter_release(own, &permit, WEIR_SUCCESS), 0);
    EXPECT(weir_limiter_destroy(own), 0);
#undef EXPECT
    return 0;
}

/* In a fork child an inherited limiter answers ECHILD and can be destroyed; a new one works. The parent's goes on. */
START_TEST(fork_child_is_told)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    weir_permit permit = {0};
    weir_test_take(limiter, &permit);
    pid_t child = fork();
    if (child == 0)
        _exit(use_inherited(limiter, &permit));
    ck_assert_int_gt(child, 0);
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "status 0x%x", (unsigned)status);
    ck_assert_uint_eq(weir_test_stats(limiter).in_flight, 1);
    weir_test_give(limiter, &permit);
    weir_test_destroy(limiter);
}
END_TEST

static atomic_bool calling_over;

static void *call_on(void *arg)
{
    while (!atomic_load(&calling_over)) {
        weir_permit permit = {{0}};
        if (weir_limiter_acquire(arg, &permit) == 0)
            (void)weir_limiter_release(arg, &permit, WEIR_SUCCESS);
    }
    return NULL;
}

/* That holds too where other threads were inside the limiter in the moment of the fork. */
START_TEST(fork_in_the_midst_of_calls)
{
    weir_limiter *limiter = weir_test_fixed_limiter(1);
    weir_permit none = {0};
    pthread_t threads[2];
    int failures = 0;
    atomic_store(&calling_over, false);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_on, limiter), 0);
    for (unsigned i = weir_test_scaled(100); i > 0; i--) {
        pid_t child = fork();
        if (child == 0)
            _exit(use_inherited(limiter, &none));
        int status = 1;
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            failures++;
    }
    atomic_store(&calling_over, true);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(failures, 0);
    weir_test_destroy(limiter);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limiter setup");
    const TTest *const tests[] = {defaults_without_a_configuration,
                                  variables_take_effect,
                                  program_may_refuse_the_environment,
                                  mode_by_variable,
                                  bad_variable_is_refused,
                                  other_limiters_variables_do_not_matter,
                                  bad_configuration_is_refused,
                                  error_of_init_is_passed_on,
                                  configuration_is_copied,
                                  errno_is_left_alone};
    TCase *group = tcase_create("configuration");
    tcase_set_timeout(group, 60);
    tcase_add_checked_fixture(group, begin, end);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(group, tests[i]);
    suite_add_tcase(suite, group);
    weir_test_add_group(
        suite, "errno and fork",
        (const TTest *const[]){errno_is_left_alone_by_a_wake_up, fork_child_is_told, fork_in_the_midst_of_calls, NULL});
    return weir_test_main(suite);
}
