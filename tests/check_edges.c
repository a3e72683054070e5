/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Edges that the coverage of the other programs showed to be nobody's: figures out of range, texts that are too long,
 * calls that come too late, a deadline thread that cannot be started.
 *
 * The program is linked with -Wl,--wrap=pthread_create. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "pool_support.h"

static atomic_bool no_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    return atomic_load(&no_threads) ? EAGAIN : __real_pthread_create(thread, attributes, run, arg);
}

/* A permit of a pool is a thread, so MAX_LIMIT ends where threads do; a limiter takes the same value. */
START_TEST(too_many_threads_are_refused)
{
    weir_config config = weir_test_fixed(4, 4);
    weir_pool *pool = NULL;
    weir_limiter *limiter = NULL;
    config.max_limit = 65537;
    weir_test_log_capture();
    ck_assert_int_eq(weir_pool_create(&pool, "wide", &config), EINVAL);
    ck_assert_ptr_null(pool);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "\"wide\": MAX_LIMIT=65537 is not accepted: 1 to 65536"));
    weir_test_log_release();
    ck_assert_int_eq(weir_limiter_create(&limiter, "wide", &config), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    config.max_limit = 65536;
    ck_assert_int_eq(weir_pool_create(&pool, "wide", &config), 0);
    weir_test_pool_end(pool);
}
END_TEST

/* Without the thread that minds deadlines a job that has expired is found when its turn comes, and never runs. Its next
 * like finds threads again. */
START_TEST(deadlines_without_their_thread)
{
    weir_config config = weir_test_fixed(1, 8);
    weir_pool *pool = weir_test_pool_of(&config);
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_job late = WEIR_JOB_INIT(weir_test_count, &ran);
    weir_job second = WEIR_JOB_INIT(weir_test_count, &ran);
    weir_test_gate_init(&gate);
    weir_test_occupy(pool, &gate, 1);
    weir_test_log_capture();
    atomic_store(&no_threads, true);
    late.deadline_ns = weir_after_ns(100000000);
    ck_assert_int_eq(weir_job_submit(pool, &late), 0);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "the thread that minds deadlines could not be started"));
    ck_assert_uint_eq(weir_test_stats(pool).worker_start_failures, 1);
    WEIR_TEST_UNTIL(weir_now_ns() > late.deadline_ns);
    ck_assert_int_eq(weir_job_outcome(&late, NULL), EINPROGRESS);
    atomic_store(&no_threads, false);
    second.deadline_ns = weir_after_ns(100000000);
    ck_assert_int_eq(weir_job_submit(pool, &second), 0);
    ck_assert_int_eq(weir_job_wait(&second, WEIR_FOREVER), ETIMEDOUT); /* though the gate is shut */
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_job_wait(&late, WEIR_FOREVER), ETIMEDOUT);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 0);
    ck_assert_uint_eq(weir_test_stats(pool).expired, 2);
    weir_test_pool_end(pool);
    weir_test_log_release();
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Once a shutdown has begun there is nothing to pause, and a resume brings nothing back. */
START_TEST(pause_comes_too_late)
{
    weir_pool *pool = weir_test_pool(1, 8);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_pause(pool), ESHUTDOWN);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), ESHUTDOWN);
    weir_test_pool_end(pool);
}
END_TEST

/* Structures of a program that was built with a newer library: what this one does not know stays as it is. */
START_TEST(newer_programs_ask_for_figures)
{
    struct {
        weir_partition_stats known;
        unsigned char beyond[32];
    } asked;
    weir_config config = weir_test_fixed(1, 1);
    weir_pool *pool = NULL;
    config.partitions = "live=0.5";
    pool = weir_test_pool_of(&config);
    memset(&asked, 0x5a, sizeof asked);
    asked.known.size = sizeof asked;
    ck_assert_int_eq(weir_pool_partition_stats(pool, "live", &asked.known), 0);
    ck_assert_uint_eq(asked.known.size, sizeof asked.known);
    ck_assert_uint_eq(asked.known.submitted, 0);
    for (unsigned i = 0; i < sizeof asked.beyond; i++)
        ck_assert_uint_eq(asked.beyond[i], 0x5a);
    weir_test_pool_end(pool);
}
END_TEST

/* A name of any length and any bytes: figures, log and what is displayed have it cut and harmless. */
START_TEST(long_names_are_cut)
{
    char name[400];
    char *text = NULL;
    size_t length = 0;
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(1, 1);
    memset(name, 'n', sizeof name);
    name[3] = '\033';
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(weir_pool_create(&pool, name, &config), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    FILE *out = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(weir_stats_write(out, WEIR_JSON), 0);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_ptr_nonnull(strstr(text, "nnn?nnn"));
    ck_assert_ptr_null(strchr(text, '\033'));
    free(text);
    weir_test_pool_end(pool);
}
END_TEST

/* More misspelt variables than fit into a line: the line says as many as fit, and creation goes on. */
START_TEST(many_misspelt_variables)
{
    weir_limiter *limiter = NULL;
    char variable[160];
    weir_test_log_capture();
    for (int i = 0; i < 20; i++) {
        (void)snprintf(variable, sizeof variable, "WEIR_MISSPELT_%02d_%090d", i, i);
        ck_assert_int_eq(setenv(variable, "1", 1), 0);
    }
    ck_assert_int_eq(weir_limiter_create(&limiter, NULL, NULL), 0);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "no option is set by WEIR_MISSPELT_"));
    ck_assert_uint_lt(strlen(weir_test_log_text()), 700);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    weir_test_log_release();
}
END_TEST

/* ---- no function is a cancellation point ---- */

struct uncancelled {
    weir_pool *pool;
    int (*act)(struct uncancelled *uncancelled);
    char directory[32]; /* of live figures */
    int answer;         /* -1: it was cancelled before act returned */
};

/* Acts with a request to cancel it pending. */
static void *act_uncancelled(void *arg)
{
    struct uncancelled *uncancelled = arg;
    (void)pthread_cancel(pthread_self());
    uncancelled->answer = uncancelled->act(uncancelled);
    pthread_testcancel();
    return NULL;
}

static pthread_key_t slow_end;

static void end_slowly(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* Has the thread of its worker take time to end, so that who joins it waits. */
static weir_outcome slow_down(void *unused)
{
    (void)unused;
    return pthread_setspecific(slow_end, &slow_end) == 0 ? WEIR_SUCCESS : WEIR_IGNORE;
}

/* Creates, with a live file, logs, waits in every way, and destroys, joining a worker. */
static int live_a_life(struct uncancelled *uncancelled)
{
    weir_config config = weir_test_fixed(1, 4);
    weir_pool *pool = NULL;
    weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_permit permit;
    config.min_limit = 7; /* contradicts, and says so on stderr */
    config.max_limit = 3;
    int error = weir_pool_create(&pool, "bad", &config) == EINVAL ? 0 : 1;
    config = weir_test_fixed(1, 4);
    config.stats_dir = uncancelled->directory;
    error = error != 0 ? error : weir_pool_create(&pool, "test", &config);
    if (error != 0)
        return error;
    for (int i = 0; i < 20 && error == 0; i++)
        error = weir_pool_submit(pool, weir_test_nothing, NULL);
    error = error != 0 ? error : weir_pool_call(pool, slow_down, NULL, NULL);
    error = error != 0 ? error : weir_job_submit(pool, &job);
    error = error != 0 ? error : weir_job_wait(&job, WEIR_FOREVER);
    error = error != 0 ? error : weir_limiter_acquire(weir_pool_limiter(pool), &permit);
    error = error != 0 ? error : weir_limiter_release(weir_pool_limiter(pool), &permit, WEIR_SUCCESS);
    error = error != 0 ? error : weir_pool_drain(pool, WEIR_FOREVER);
    int destroyed = weir_pool_destroy(pool);
    return error != 0 ? error : destroyed;
}

static void *find_threads_later(void *unused)
{
    (void)unused;
    (void)nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    atomic_store(&no_threads, false);
    return NULL;
}

static weir_outcome call_another(void *arg)
{
    struct uncancelled *uncancelled = arg;
    (void)pthread_cancel(pthread_self());
    uncancelled->answer = weir_pool_call(uncancelled->pool, weir_test_nothing, NULL, NULL);
    return WEIR_SUCCESS; /* and ends its thread right behind */
}

/* A job waits for another one, for which no thread can be started at first: it tries again and again. */
static int call_without_threads(struct uncancelled *uncancelled)
{
    weir_job job = WEIR_JOB_INIT(call_another, uncancelled);
    uncancelled->pool = weir_test_pool(2, 4);
    int error = weir_pool_call(uncancelled->pool, weir_test_nothing, NULL, NULL);
    atomic_store(&no_threads, true);
    weir_test_log_capture();
    error = error != 0 ? error : weir_job_submit(uncancelled->pool, &job);
    pthread_t thread;
    if (__real_pthread_create(&thread, NULL, find_threads_later, NULL) != 0)
        return 1;
    error = error != 0 ? error : weir_job_wait(&job, WEIR_FOREVER);
    (void)weir_test_join(thread);
    error = error != 0 ? error : weir_pool_destroy(uncancelled->pool);
    weir_test_log_release();
    return error != 0 ? error : uncancelled->answer;
}

START_TEST(no_function_is_a_cancellation_point)
{
    struct uncancelled uncancelled = {.act = live_a_life, .directory = "/tmp/weir-test-XXXXXX", .answer = -1};
    if (_i == 0) {
        ck_assert_ptr_nonnull(mkdtemp(uncancelled.directory));
        ck_assert_int_eq(pthread_key_create(&slow_end, end_slowly), 0);
        ck_assert_ptr_eq(weir_test_join(weir_test_thread(act_uncancelled, &uncancelled)), PTHREAD_CANCELED);
        ck_assert_int_eq(rmdir(uncancelled.directory), 0);
        ck_assert_int_eq(uncancelled.answer, 0);
    } else {
        ck_assert_int_eq(call_without_threads(&uncancelled), 0);
    }
}
END_TEST

/* A pthread call that fails by a bug of this library ends the process, and says where. */
START_TEST(bugs_of_the_library_abort)
{
    WEIR__MUST(EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("edges");
    TCase *group = tcase_create("edges");
    tcase_set_timeout(group, TEST_LIMIT_S);
    tcase_add_test(group, too_many_threads_are_refused);
    tcase_add_test(group, deadlines_without_their_thread);
    tcase_add_test(group, pause_comes_too_late);
    tcase_add_test(group, newer_programs_ask_for_figures);
    tcase_add_test(group, long_names_are_cut);
    tcase_add_test(group, many_misspelt_variables);
    tcase_add_loop_test(group, no_function_is_a_cancellation_point, 0, 2);
    const char *fork_mode = getenv("CK_FORK");
    if (fork_mode == NULL || strcmp(fork_mode, "no") != 0) /* it needs a process to lose */
        tcase_add_test_raise_signal(group, bugs_of_the_library_abort, SIGABRT);
    suite_add_tcase(suite, group);
    return weir_test_main(suite);
}
