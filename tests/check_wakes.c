/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What it costs to be told no, and who is woken: nobody but those who are served. Every wake-up of the library is
 * counted, for the linker puts __wrap_weir__unpark in the place of weir__unpark. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <stdio.h>

#include "base/base.h"
#include "handle_support.h"

static atomic_uint wakes;

void __real_weir__unpark(struct weir__parker *parker);
void __wrap_weir__unpark(struct weir__parker *parker);

void __wrap_weir__unpark(struct weir__parker *parker)
{
    atomic_fetch_add(&wakes, 1);
    __real_weir__unpark(parker);
}

/* ---- jobs that are told when to end ---- */

static sem_t ends;
static atomic_uint begun;
static atomic_uint over;

static weir_outcome wait_for_end(void *arg)
{
    (void)arg;
    atomic_fetch_add(&begun, 1);
    while (sem_wait(&ends) != 0 && errno == EINTR)
        ;
    atomic_fetch_add(&over, 1);
    return WEIR_SUCCESS;
}

static void reset(void)
{
    (void)sem_init(&ends, 0, 0);
    atomic_store(&begun, 0);
    atomic_store(&over, 0);
    atomic_store(&wakes, 0);
}

/* A pool that cannot take another job. */
static weir_pool *full_pool(uint32_t limit, uint32_t depth)
{
    weir_pool *pool = weir_test_plain_pool(limit, depth);
    for (uint32_t i = 0; i < limit + depth; i++)
        ck_assert_int_eq(weir_pool_submit(pool, wait_for_end, NULL), 0);
    WEIR_TEST_UNTIL(atomic_load(&begun) == limit);
    return pool;
}

/* Everything that is under way has arrived. */
static void wait_for(weir_pool *pool, uint64_t started, uint32_t waiting)
{
    for (;;) {
        weir_stats stats = weir_test_snapshot(pool);
        if (stats.started == started && stats.waiting == waiting && atomic_load(&begun) == started)
            return;
        weir_test_yield();
    }
}

/* ---- who is woken ---- */

enum { CLIENTS = 6 };

static struct client {
    weir_pool *pool;
    weir_job job;
    bool handle;
    uint64_t deadline_ns;
    atomic_int answer; /* -1: none yet */
    pthread_t thread;
} clients[CLIENTS];

static void *ask(void *arg)
{
    struct client *client = arg;
    int error = client->handle ? weir_job_timedsubmit(client->pool, &client->job, client->deadline_ns)
                               : weir_pool_timedsubmit(client->pool, wait_for_end, NULL, client->deadline_ns);
    atomic_store(&client->answer, error);
    return NULL;
}

static void start_client(struct client *client, weir_pool *pool, bool handle, uint64_t deadline_ns)
{
    client->pool = pool;
    client->handle = handle;
    client->deadline_ns = deadline_ns;
    client->job = (weir_job)WEIR_JOB_INIT(wait_for_end, NULL);
    atomic_store(&client->answer, -1);
    client->thread = weir_test_start(ask, client);
}

static unsigned answered(void)
{
    unsigned count = 0;
    for (int i = 0; i < CLIENTS; i++)
        count += atomic_load(&clients[i].answer) != -1 ? 1 : 0;
    return count;
}

static void let_end(weir_pool *pool, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        (void)sem_post(&ends);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    (void)sem_destroy(&ends);
}

/* Submitters that block wake nobody. Each end of a job wakes the one whose job takes the place, and no other; the
 * worker goes on without sleeping. One that gives up wakes nobody, and nor does one that is shed. */
START_TEST(only_the_served_are_woken)
{
    enum { LIMIT = 2, DEPTH = 3 };
    reset();
    weir_pool *pool = full_pool(LIMIT, DEPTH);
    unsigned before = atomic_load(&wakes);
    ck_assert_uint_le(before, LIMIT); /* a worker that slept already */
    for (unsigned i = 0; i < CLIENTS; i++) {
        start_client(&clients[i], pool, i % 2 == 0, WEIR_FOREVER);
        wait_for(pool, LIMIT, i + 1);
    }
    for (int i = 0; i < 100; i++) {
        weir_job job = WEIR_JOB_INIT(wait_for_end, NULL);
        ck_assert_int_eq(weir_pool_trysubmit(pool, wait_for_end, NULL), EAGAIN);
        ck_assert_int_eq(weir_job_trysubmit(pool, &job), EAGAIN);
        ck_assert_int_eq(weir_pool_timedsubmit(pool, wait_for_end, NULL, 1), ETIMEDOUT);
    }
    ck_assert_uint_eq(atomic_load(&wakes), before);
    for (unsigned i = 0; i < CLIENTS; i++) {
        (void)sem_post(&ends);
        wait_for(pool, LIMIT + i + 1, CLIENTS - i - 1);
        WEIR_TEST_UNTIL(answered() == i + 1);
        ck_assert_uint_eq(atomic_load(&wakes), before + i + 1);
    }
    for (int i = 0; i < CLIENTS; i++) {
        (void)pthread_join(clients[i].thread, NULL);
        ck_assert_int_eq(atomic_load(&clients[i].answer), 0);
    }
    let_end(pool, LIMIT + DEPTH);
}
END_TEST

/* Direct callers: a release wakes the one that gets the permit. */
START_TEST(only_who_gets_the_permit_is_woken)
{
    weir_config config = weir_test_plain_config(1, 0);
    weir_limiter *limiter = NULL;
    weir_permit permit = {0};
    reset();
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", &config), 0);
    for (int i = 0; i < 1000; i++) {
        weir_permit other = {0};
        ck_assert_int_eq(weir_limiter_acquire(limiter, &permit), 0);
        ck_assert_int_eq(weir_limiter_tryacquire(limiter, &other), EAGAIN);
        ck_assert_int_eq(weir_limiter_timedacquire(limiter, &other, 1), ETIMEDOUT);
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    }
    ck_assert_uint_eq(atomic_load(&wakes), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* ---- what no costs ---- */

enum { CALLS = 2000, BATCHES = 25 };

enum no { NO_PLAIN, NO_HANDLE, NO_PERMIT, NO_KINDS };
static const char *const no_names[NO_KINDS] = {"weir_pool_trysubmit", "weir_job_trysubmit", "weir_limiter_tryacquire"};

/* Calls that were refused otherwise than with EAGAIN. */
static unsigned refuse(weir_pool *pool, enum no kind, unsigned count)
{
    weir_job job = WEIR_JOB_INIT(wait_for_end, NULL);
    weir_permit permit = {0};
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; i++) {
        int error = kind == NO_PLAIN    ? weir_pool_trysubmit(pool, wait_for_end, NULL)
                    : kind == NO_HANDLE ? weir_job_trysubmit(pool, &job)
                                        : weir_limiter_tryacquire(weir_pool_limiter(pool), &permit);
        wrong += error != EAGAIN ? 1 : 0;
    }
    return wrong;
}

/* The least of some batches: what is above is the machine's. It is reported, for a loaded machine proves nothing; on a
 * quiet one it is far below a microsecond. */
START_TEST(shedding_is_quick)
{
    unsigned calls = weir_test_divided(CALLS, 100);
    reset();
    weir_pool *pool = full_pool(2, 2);
    unsigned before = atomic_load(&wakes);
    for (int kind = 0; kind < NO_KINDS; kind++) {
        double least = INFINITY;
        for (int i = 0; i < BATCHES; i++) {
            uint64_t begin_ns = weir_now_ns();
            ck_assert_uint_eq(refuse(pool, (enum no)kind, calls), 0);
            least = fmin(least, (double)(weir_now_ns() - begin_ns) / calls);
        }
        (void)fprintf(stderr, "# %s at the ceiling: %.0f ns\n", no_names[kind], least);
        ck_assert_double_lt(least, 100000); /* it does not sleep */
    }
    ck_assert_uint_eq(weir_test_snapshot(pool).shed, 2 * BATCHES * calls);
    ck_assert_uint_eq(atomic_load(&wakes), before);
    let_end(pool, 4);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {only_the_served_are_woken, only_who_gets_the_permit_is_woken, shedding_is_quick,
                                  NULL};
    Suite *suite = suite_create("wakes");
    weir_test_group(suite, "wakes", tests);
    return weir_test_main(suite);
}
