/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that are made or ended while pools are at work: fork while the limit moves, programs started by jobs, exit
 * in the middle of everything. */

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_support.h"
#include "sanitized.h"

/* ---- fork while the limit moves ---- */

static int start_counting(void *state, const struct weir_config *config)
{
    (void)config;
    *(uint32_t *)state = 0;
    return 0;
}

/* 1 to 8 and again: workers come and go all the time. */
static uint32_t move(void *state, const weir_sample *sample)
{
    uint32_t *turn = state;
    (void)sample;
    *turn += 1;
    return 1 + *turn / 5 % 8;
}

static const weir_estimator_class moving = {.name = "moving", .state_size = 8, .init = start_counting, .update = move};

struct load {
    weir_pool *pool;
    atomic_bool stop;
    atomic_uint accepted;
    atomic_uint ran;
};

static void *submit_load(void *arg)
{
    struct load *load = arg;
    while (!atomic_load(&load->stop)) {
        if (weir_pool_submit(load->pool, weir_test_count, &load->ran) == 0)
            atomic_fetch_add(&load->accepted, 1);
    }
    return NULL;
}

static int look_at_inherited(void *arg)
{
    struct load *load = arg;
    int wrong = weir_pool_submit(load->pool, weir_test_count, &load->ran) != ECHILD;
    wrong += weir_pool_drain(load->pool, WEIR_FOREVER) != ECHILD;
    if (IS_SANITIZED)
        _exit(wrong);
    wrong += weir_pool_destroy(load->pool) != 0;
    weir_test_end_unseen(wrong);
    return wrong;
}

/* Forks while workers are started and leave and the limit moves: none waits for a number that has changed meanwhile. */
START_TEST(fork_while_the_limit_moves)
{
    unsigned forks = weir_test_rounds(50, 10);
    weir_config config = weir_test_fixed(4, 16);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &moving;
    config.max_limit = 8;
    config.idle_timeout = 100000;
    struct load load = {.pool = weir_test_pool_of(&config)};
    pthread_t thread = weir_test_thread(submit_load, &load);
    for (unsigned i = 0; i < forks; i++) {
        int status = weir_test_in_child(look_at_inherited, &load);
        ck_assert_msg(status == 0, "fork %u: status %#x", i, (unsigned)status);
    }
    atomic_store(&load.stop, true);
    (void)weir_test_join(thread);
    weir_test_pool_end(load.pool);
    ck_assert_uint_eq(atomic_load(&load.ran), atomic_load(&load.accepted));
}
END_TEST

/* ---- programs that a job starts ---- */

extern char **environ;
static char *const program[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"kill -TERM $$; exit 3"}, NULL};

static bool was_terminated(pid_t child)
{
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
}

static weir_outcome spawn_program(void *unused)
{
    pid_t child = -1;
    sigset_t none;
    posix_spawnattr_t attributes;
    (void)unused;
    (void)sigemptyset(&none);
    if (posix_spawnattr_init(&attributes) != 0)
        return WEIR_DROPPED;
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawnp(&child, program[0], NULL, &attributes, program, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return error == 0 && was_terminated(child) ? WEIR_SUCCESS : WEIR_DROPPED;
}

static weir_outcome fork_program(void *unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0) {
        sigset_t none;
        (void)sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
        (void)execvp(program[0], program);
        _exit(127);
    }
    return was_terminated(child) ? WEIR_SUCCESS : WEIR_DROPPED;
}

static weir_outcome vfork_program(void *unused)
{
    (void)unused;
    /* NOLINTNEXTLINE: what a job may do is what is tested */
    pid_t child = vfork();
    if (child == 0) {
        (void)execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && status == 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

/* Jobs start programs in each of the ways there are, side by side and under load; those that reset the blocked signals
 * take them. The pool never notices. */
START_TEST(programs_of_jobs)
{
    enum { JOBS = 24 };
    static weir_fn *const ways[] = {spawn_program, fork_program, vfork_program};
    struct load load = {.pool = weir_test_pool(4, JOBS)};
    weir_job jobs[JOBS];
    pthread_t thread = weir_test_thread(submit_load, &load);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (weir_job)WEIR_JOB_INIT(ways[_i], NULL);
        ck_assert_int_eq(weir_job_submit(load.pool, &jobs[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        weir_outcome outcome = WEIR_IGNORE;
        ck_assert_int_eq(weir_job_wait(&jobs[i], WEIR_FOREVER), 0);
        ck_assert_int_eq(weir_job_outcome(&jobs[i], &outcome), 0);
        ck_assert_int_eq(outcome, WEIR_SUCCESS);
    }
    atomic_store(&load.stop, true);
    (void)weir_test_join(thread);
    weir_test_pool_end(load.pool);
    ck_assert_uint_eq(atomic_load(&load.ran), atomic_load(&load.accepted));
}
END_TEST

/* ---- processes that are replaced or end in the middle ---- */

static struct load left_behind;

/* Threads of the program and of the pool are in the middle of everything. */
static bool make_a_stir(void)
{
    weir_config config = weir_test_fixed(4, 16);
    config.idle_timeout = 100000;
    if (weir_pool_create(&left_behind.pool, "stir", &config) != 0)
        return false;
    for (int i = 0; i < 3; i++)
        (void)weir_test_thread(submit_load, &left_behind);
    WEIR_TEST_UNTIL(atomic_load(&left_behind.ran) > 20);
    return true;
}

static int exec_in_the_middle(void *unused)
{
    (void)unused;
    if (make_a_stir())
        (void)execlp("sh", "sh", "-c", "exit 7", (char *)NULL);
    return 1;
}

static int exit_in_the_middle(void *unused)
{
    (void)unused;
    return make_a_stir() ? 7 : 1;
}

static int quick_exit_in_the_middle(void *unused)
{
    (void)unused;
    if (make_a_stir())
        quick_exit(7);
    return 1;
}

/* exec, exit and quick_exit while submitters submit and workers work: the process ends, or is replaced, at once. */
START_TEST(ends_in_the_middle)
{
    static int (*const bodies[])(void *) = {exec_in_the_middle, exit_in_the_middle, quick_exit_in_the_middle};
    for (unsigned round = weir_test_rounds(6, 2); round > 0; round--) {
        int status = weir_test_in_child(bodies[_i], NULL);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 7, "status %#x", (unsigned)status);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process faults");
    TCase *tests = tcase_create("processes");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, fork_while_the_limit_moves);
    tcase_add_loop_test(tests, programs_of_jobs, 0, IS_SANITIZED ? 2 : 3);
    if (!IS_SANITIZED)
        tcase_add_loop_test(tests, ends_in_the_middle, 0, 3);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
