/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Ended jobs for an event loop. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handle_support.h"

enum { GENEROUS_MS = 60000 };

static bool readable_within(weir_completions *completions, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = weir_completions_fd(completions), .events = POLLIN};
    int ready;
    do {
        ready = poll(&poll_fd, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    return ready == 1 && (poll_fd.revents & POLLIN) != 0;
}

static weir_completions *make_completions(void)
{
    weir_completions *completions = NULL;
    ck_assert_int_eq(weir_completions_create(&completions), 0);
    ck_assert_ptr_nonnull(completions);
    return completions;
}

/* The next one, however long it takes. */
static weir_job *await(weir_completions *completions)
{
    if (!readable_within(completions, GENEROUS_MS))
        ck_abort_msg("nothing was delivered");
    return weir_completions_next(completions);
}

static void prepare(struct weir_test_counted *counted, weir_completions *completions)
{
    weir_test_counted_init(counted, NULL);
    counted->job.completions = completions;
}

/* NULL is EINVAL, -1 or nothing. */
START_TEST(test_null)
{
    ck_assert_int_eq(weir_completions_create(NULL), EINVAL);
    ck_assert_int_eq(weir_completions_fd(NULL), -1);
    ck_assert_ptr_null(weir_completions_next(NULL));
    weir_completions_destroy(NULL);
}
END_TEST

/* The descriptor is closed on exec and never blocks; without one, creation says why and errno is left alone. */
START_TEST(test_descriptor)
{
    weir_completions *completions = make_completions();
    int fd = weir_completions_fd(completions);
    ck_assert_int_ge(fd, 0);
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    weir_completions_destroy(completions);
    ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
    enum { MOST = 100000 };
    int *taken = malloc(MOST * sizeof *taken);
    if (taken == NULL)
        ck_abort_msg("no memory");
    int count = 0;
    while (count < MOST && (taken[count] = dup(0)) >= 0)
        count++;
    int error = EMFILE;
    errno = 7;
    weir_completions *none = NULL;
    if (count < MOST)
        error = weir_completions_create(&none);
    ck_assert_int_eq(errno, 7);
    while (count-- > 0)
        (void)close(taken[count]);
    free(taken);
    ck_assert(error == EMFILE || error == ENFILE);
}
END_TEST

/* Readable exactly while something is in it: after each delivery, and until the last has been taken. */
START_TEST(test_readable_exactly_while_not_empty)
{
    enum { JOBS = 3 };
    weir_pool *pool = weir_test_plain_pool(1, 10);
    weir_completions *completions = make_completions();
    for (unsigned round = 0; round < 100; round++) {
        struct weir_test_counted jobs[JOBS];
        if (readable_within(completions, 0) || weir_completions_next(completions) != NULL)
            ck_abort_msg("readable, and empty");
        for (int i = 0; i < JOBS; i++) {
            prepare(&jobs[i], completions);
            if (weir_job_submit(pool, &jobs[i].job) != 0)
                ck_abort_msg("refused");
        }
        if (weir_pool_drain(pool, WEIR_FOREVER) != 0)
            ck_abort_msg("no drain");
        for (int i = 0; i < JOBS; i++) {
            if (!readable_within(completions, 0) || weir_completions_next(completions) == NULL)
                ck_abort_msg("not readable with %d in it", JOBS - i);
        }
    }
    ck_assert(!readable_within(completions, 0));
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    weir_completions_destroy(completions);
}
END_TEST

/* The job that ended first comes first: of jobs that run one after the other, and of jobs that are cancelled. */
START_TEST(test_order)
{
    enum { JOBS = 50 };
    for (unsigned round = weir_test_divided(100, 5); round > 0; round--) {
        struct weir_test_full full;
        struct weir_test_counted jobs[JOBS];
        weir_completions *completions = make_completions();
        weir_test_full_init(&full, 1, JOBS);
        for (int i = 0; i < JOBS; i++) {
            prepare(&jobs[i], completions);
            if (weir_job_submit(full.pool, &jobs[i].job) != 0)
                ck_abort_msg("refused");
        }
        for (int i = JOBS / 2; i < JOBS; i++) {
            if (weir_job_cancel(&jobs[i].job) != 0)
                ck_abort_msg("not cancelled");
        }
        weir_test_full_end(&full);
        for (int i = 0; i < JOBS; i++) {
            int expected = i < JOBS / 2 ? i + JOBS / 2 : i - JOBS / 2;
            weir_job *job = weir_completions_next(completions);
            if (job != &jobs[expected].job)
                ck_abort_msg("place %d: not the job that ended then", i);
        }
        weir_completions_destroy(completions);
    }
}
END_TEST

/* A job that is cancelled, and nothing else, is delivered: a loop that sleeps on the descriptor wakes up. */
START_TEST(test_cancelled)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_completions *completions = make_completions();
    weir_test_full_init(&full, 1, 10);
    prepare(&counted, completions);
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
    ck_assert(!readable_within(completions, 0));
    ck_assert_int_eq(weir_job_cancel(&counted.job), 0);
    ck_assert(readable_within(completions, 0)); /* before cancel returned, as on_done */
    ck_assert_ptr_eq(weir_completions_next(completions), &counted.job);
    ck_assert_int_eq(weir_job_outcome(&counted.job, NULL), ECANCELED);
    ck_assert(!readable_within(completions, 0));
    weir_test_full_end(&full);
    weir_completions_destroy(completions);
}
END_TEST

/* A job whose deadline passes in the queue is delivered, though nothing else happens in the pool. */
START_TEST(test_expired)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_completions *completions = make_completions();
    weir_test_full_init(&full, 1, 10);
    prepare(&counted, completions);
    counted.job.deadline_ns = weir_after_ns(20 * WEIR_TEST_SHORT_NS);
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), 0);
    ck_assert_ptr_eq(await(completions), &counted.job);
    ck_assert_uint_ge(weir_now_ns(), counted.job.deadline_ns);
    ck_assert_int_eq(weir_job_outcome(&counted.job, NULL), ETIMEDOUT);
    weir_test_full_end(&full);
    ck_assert_uint_eq(atomic_load(&counted.ran), 0);
    weir_completions_destroy(completions);
}
END_TEST

/* Refused jobs are not delivered. */
START_TEST(test_refused)
{
    struct weir_test_full full;
    struct weir_test_counted counted;
    weir_completions *completions = make_completions();
    weir_test_full_init(&full, 1, 0);
    prepare(&counted, completions);
    ck_assert_int_eq(weir_job_trysubmit(full.pool, &counted.job), EAGAIN);
    counted.job.deadline_ns = 1;
    ck_assert_int_eq(weir_job_submit(full.pool, &counted.job), ETIMEDOUT);
    weir_test_full_end(&full);
    ck_assert(!readable_within(completions, 0));
    ck_assert_ptr_null(weir_completions_next(completions));
    weir_completions_destroy(completions);
}
END_TEST

/* Shutdown delivers what it cancels before it returns; taken out later, the jobs are whole. */
START_TEST(test_shutdown)
{
    enum { JOBS = 20 };
    struct weir_test_full full;
    struct weir_test_counted jobs[JOBS];
    weir_completions *completions = make_completions();
    weir_test_full_init(&full, 1, JOBS);
    for (int i = 0; i < JOBS; i++) {
        prepare(&jobs[i], completions);
        ck_assert_int_eq(weir_job_submit(full.pool, &jobs[i].job), 0);
    }
    weir_test_gate_open(&full.gate);
    ck_assert_int_eq(weir_pool_shutdown(full.pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    weir_test_full_end(&full);
    for (int i = 0; i < JOBS; i++) {
        weir_job *job = weir_completions_next(completions);
        ck_assert_ptr_nonnull(job);
        struct weir_test_counted *counted = (struct weir_test_counted *)job;
        ck_assert_int_eq(weir_job_outcome(job, NULL), atomic_load(&counted->ran) == 1 ? 0 : ECANCELED);
    }
    ck_assert_ptr_null(weir_completions_next(completions));
    weir_completions_destroy(completions);
}
END_TEST

/* Keeps the loop's jobs in flight: submits those that came back again, until none is left to do. */
struct load {
    weir_pool *pools[2];
    weir_completions *completions;
    struct weir_test_counted *jobs;
    unsigned in_flight;
    unsigned most; /* ever in flight */
    unsigned left;
};

static bool feed(struct load *load, weir_job *job)
{
    if (load->left == 0)
        return false;
    if (weir_job_trysubmit(load->pools[load->left % 2], job) != 0)
        return false;
    load->left--;
    load->in_flight++;
    if (load->in_flight > load->most)
        load->most = load->in_flight;
    return true;
}

static void loop(struct load *load)
{
    while (load->in_flight > 0) {
        if (!readable_within(load->completions, GENEROUS_MS))
            ck_abort_msg("%u jobs in flight, and nothing comes", load->in_flight);
        weir_job *job;
        while ((job = weir_completions_next(load->completions)) != NULL) {
            load->in_flight--;
            if (weir_job_outcome(job, NULL) != 0)
                ck_abort_msg("a job failed");
            (void)feed(load, job);
        }
    }
}

/* One thread keeps thousands of jobs in flight in two pools that deliver to the same completions; each comes back once
 * per submit. */
START_TEST(test_thousands_from_one_thread)
{
    unsigned count = weir_test_divided(5000, 200);
    struct load load = {.left = 20 * count, .completions = make_completions()};
    load.pools[0] = weir_test_plain_pool(2, count);
    load.pools[1] = weir_test_plain_pool(3, count);
    load.jobs = calloc(count, sizeof *load.jobs);
    if (load.jobs == NULL)
        ck_abort_msg("no memory");
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    for (int i = 0; i < 5; i++) /* so that all are in flight before the first ends */
        ck_assert_int_eq(weir_pool_submit(load.pools[i < 2 ? 0 : 1], weir_test_pass, &gate), 0);
    for (unsigned i = 0; i < count; i++) {
        prepare(&load.jobs[i], load.completions);
        if (!feed(&load, &load.jobs[i].job))
            ck_abort_msg("refused");
    }
    weir_test_gate_open(&gate);
    loop(&load);
    ck_assert_uint_eq(load.left, 0);
    ck_assert_uint_eq(load.most, count);
    unsigned long ran = 0;
    for (unsigned i = 0; i < count; i++)
        ran += atomic_load(&load.jobs[i].ran);
    ck_assert_uint_eq(ran, 20UL * count);
    ck_assert(!readable_within(load.completions, 0));
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(weir_pool_destroy(load.pools[i]), 0);
    weir_completions_destroy(load.completions);
    weir_test_gate_destroy(&gate);
    free(load.jobs);
}
END_TEST

struct taker {
    weir_completions *completions;
    atomic_uint *left;
    unsigned taken;
    pthread_t thread;
};

static void *take(void *arg)
{
    struct taker *taker = arg;
    while (atomic_load(taker->left) > 0) {
        weir_job *job = weir_completions_next(taker->completions);
        if (job == NULL) {
            (void)readable_within(taker->completions, 10);
            continue;
        }
        struct weir_test_counted *counted = (struct weir_test_counted *)job;
        (void)atomic_fetch_add(&counted->done, 1);
        taker->taken++;
        (void)atomic_fetch_sub(taker->left, 1);
    }
    return NULL;
}

/* Several threads may take from one completions object: each job goes to one of them. */
START_TEST(test_several_takers)
{
    enum { TAKERS = 3 };
    unsigned count = weir_test_divided(20000, 200);
    struct weir_test_counted *jobs = calloc(count, sizeof *jobs);
    weir_completions *completions = make_completions();
    weir_pool *pool = weir_test_plain_pool(2, 100);
    atomic_uint left = count;
    struct taker takers[TAKERS];
    if (jobs == NULL)
        ck_abort_msg("no memory");
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.completions = completions, .left = &left};
        takers[i].thread = weir_test_start(take, &takers[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        prepare(&jobs[i], completions);
        if (weir_job_submit(pool, &jobs[i].job) != 0)
            ck_abort_msg("refused");
    }
    unsigned taken = 0;
    for (int i = 0; i < TAKERS; i++) {
        (void)pthread_join(takers[i].thread, NULL);
        taken += takers[i].taken;
    }
    ck_assert_uint_eq(taken, count);
    for (unsigned i = 0; i < count; i++) {
        if (atomic_load(&jobs[i].done) != 1 || atomic_load(&jobs[i].ran) != 1)
            ck_abort_msg("job %u was taken %u times", i, atomic_load(&jobs[i].done));
    }
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    weir_completions_destroy(completions);
    free(jobs);
}
END_TEST

/* What the child finds: 0 if it is as documented. */
static int child(weir_pool *pool, weir_completions *completions, struct weir_test_counted *queued)
{
    if (weir_completions_next(completions) != NULL)
        return 1;
    if (weir_completions_fd(completions) != -1)
        return 2;
    if (weir_job_wait(&queued->job, WEIR_FOREVER) != ECHILD || weir_job_cancel(&queued->job) != ECHILD)
        return 3;
    struct weir_test_counted own;
    weir_test_counted_init(&own, NULL);
    if (weir_job_submit(pool, &own.job) != ECHILD)
        return 4;
    if (weir_pool_destroy(pool) != 0)
        return 5;
    weir_completions_destroy(completions);
    weir_completions *new_ones = NULL;
    if (weir_completions_create(&new_ones) != 0 || weir_completions_fd(new_ones) < 0)
        return 6;
    weir_completions_destroy(new_ones);
    return 0;
}

/* In a fork child inherited completions are empty and have no descriptor, and those of the parent are not disturbed. */
START_TEST(test_fork)
{
    struct weir_test_full full;
    struct weir_test_counted ended;
    struct weir_test_counted queued;
    weir_completions *completions = make_completions();
    weir_test_full_init(&full, 1, 10);
    prepare(&ended, completions);
    prepare(&queued, completions);
    ck_assert_int_eq(weir_job_submit(full.pool, &ended.job), 0);
    ck_assert_int_eq(weir_job_cancel(&ended.job), 0);
    ck_assert_int_eq(weir_job_submit(full.pool, &queued.job), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(full.pool, completions, &queued));
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert(readable_within(completions, 0));
    ck_assert_ptr_eq(weir_completions_next(completions), &ended.job);
    ck_assert(!readable_within(completions, 0));
    weir_test_gate_open(&full.gate);
    ck_assert_ptr_eq(await(completions), &queued.job);
    weir_test_full_end(&full);
    weir_completions_destroy(completions);
}
END_TEST

int main(void)
{
    const TTest *const object[] = {test_null, test_descriptor, test_fork, NULL};
    const TTest *const delivery[] = {test_readable_exactly_while_not_empty,
                                     test_order,
                                     test_cancelled,
                                     test_expired,
                                     test_refused,
                                     test_shutdown,
                                     NULL};
    const TTest *const load[] = {test_thousands_from_one_thread, test_several_takers, NULL};
    Suite *suite = suite_create("completions");
    weir_test_group(suite, "object", object);
    weir_test_group(suite, "delivery", delivery);
    weir_test_group(suite, "load", load);
    return weir_test_main(suite);
}
