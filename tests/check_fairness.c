/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Who is served next, among callers that block and between partitions. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "job_support.h"

static weir_pool *fixed_pool(uint32_t limit, uint32_t depth, const char *partitions)
{
    weir_config config = weir_test_fixed(limit, depth, partitions);
    return weir_test_pool(&config);
}

/* ---- strict order ---- */

enum { BLOCKED = 8 };

/* Submitters that block are admitted, and their jobs started, in the order in which they came. */
START_TEST(submitters_in_order)
{
    weir_pool *pool = fixed_pool(1, 0, NULL);
    struct weir_test_task first;
    struct weir_test_client clients[BLOCKED];
    weir_test_turns_reset();
    weir_test_task_init(&first, NULL, 1);
    ck_assert_int_eq(weir_job_submit(pool, &first.job), 0);
    for (unsigned i = 0; i < BLOCKED; i++) {
        weir_test_client_submit(&clients[i], pool, NULL, 1, WEIR_FOREVER);
        WEIR_TEST_UNTIL(weir_test_pool_stats(pool).waiting == i + 1);
    }
    weir_test_task_finish(&first);
    for (unsigned i = 0; i < BLOCKED; i++) {
        WEIR_TEST_UNTIL(weir_test_client_answered(&clients[i]) && weir_test_task_has_begun(&clients[i].task));
        ck_assert_uint_eq(clients[i].task.turn, i + 2);
        ck_assert_uint_eq(weir_test_pool_stats(pool).waiting, BLOCKED - 1 - i);
        weir_test_client_go(&clients[i]);
        ck_assert_int_eq(weir_test_client_join(&clients[i]), 0);
    }
    weir_test_task_destroy(&first);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* A newcomer never overtakes a submitter that blocks, not even for a place that has just become free. */
START_TEST(newcomers_stay_behind)
{
    weir_pool *pool = fixed_pool(1, 1, NULL);
    struct weir_test_task running;
    struct weir_test_task queued;
    struct weir_test_task newcomer;
    struct weir_test_client blocked;
    weir_test_task_init(&running, NULL, 1);
    weir_test_task_init(&queued, NULL, 1);
    weir_test_task_init(&newcomer, NULL, 1);
    ck_assert_int_eq(weir_job_submit(pool, &running.job), 0);
    ck_assert_int_eq(weir_job_submit(pool, &queued.job), 0);
    weir_test_client_submit(&blocked, pool, NULL, 1, WEIR_FOREVER);
    WEIR_TEST_UNTIL(weir_test_pool_stats(pool).waiting == 1);
    ck_assert_int_eq(weir_job_cancel(&queued.job), 0); /* its place is the blocked submitter's */
    ck_assert_int_eq(weir_job_trysubmit(pool, &newcomer.job), EAGAIN);
    WEIR_TEST_UNTIL(weir_test_client_answered(&blocked));
    weir_test_task_finish(&running);
    weir_test_client_go(&blocked);
    ck_assert_int_eq(weir_test_client_join(&blocked), 0);
    weir_test_task_destroy(&running);
    weir_test_task_destroy(&queued);
    weir_test_task_destroy(&newcomer);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

/* ---- equal slots ---- */

struct looper {
    weir_pool *pool;
    sem_t *go;           /* a job ends when it gets one */
    atomic_uint *served; /* jobs of this submitter that were admitted */
    unsigned rounds;
    long switches; /* voluntary ones of this thread, in all its submits */
    pthread_t thread;
};

static weir_outcome take_one(void *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
    return WEIR_SUCCESS;
}

static long voluntary_switches(void)
{
#ifdef RUSAGE_THREAD
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
#else
    return 0;
#endif
}

static void *submit_rounds(void *arg)
{
    struct looper *looper = arg;
    for (unsigned i = 0; i < looper->rounds; i++) {
        long before = voluntary_switches();
        if (weir_pool_submit(looper->pool, take_one, looper->go) != 0)
            return looper;
        looper->switches += voluntary_switches() - before;
        atomic_fetch_add(looper->served, 1);
    }
    return NULL;
}

static unsigned total(atomic_uint *served)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < BLOCKED; i++)
        sum += atomic_load(&served[i]);
    return sum;
}

static unsigned spread(atomic_uint *served)
{
    unsigned least = UINT32_MAX;
    unsigned most = 0;
    for (unsigned i = 0; i < BLOCKED; i++) {
        unsigned count = atomic_load(&served[i]);
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    return most - least;
}

/* Of eight submitters that always block each gets its k-th place when the others get theirs, give or take two; and a
 * place that becomes free wakes the one it goes to: none of those that wait on. */
START_TEST(places_are_dealt_evenly)
{
    unsigned rounds = weir_test_scaled(40);
    weir_pool *pool = fixed_pool(1, 1, NULL);
    sem_t go;
    atomic_uint served[BLOCKED] = {0};
    struct looper loopers[BLOCKED];
    ck_assert_int_eq(sem_init(&go, 0, 0), 0);
    ck_assert_int_eq(weir_pool_submit(pool, take_one, &go), 0);
    ck_assert_int_eq(weir_pool_submit(pool, take_one, &go), 0);
    for (unsigned i = 0; i < BLOCKED; i++) {
        loopers[i] = (struct looper){.pool = pool, .go = &go, .served = &served[i], .rounds = rounds};
        ck_assert_int_eq(pthread_create(&loopers[i].thread, NULL, submit_rounds, &loopers[i]), 0);
    }
    for (unsigned i = 0; i < BLOCKED * (rounds - 1); i++) {
        WEIR_TEST_UNTIL(total(served) == i && weir_test_pool_stats(pool).waiting == BLOCKED);
        if (spread(served) > 2)
            ck_abort_msg("after %u places the submitters differ by %u", i, spread(served));
        (void)sem_post(&go);
    }
    for (unsigned i = 0; i < BLOCKED + 2; i++)
        (void)sem_post(&go);
    long switches = 0;
    for (unsigned i = 0; i < BLOCKED; i++) {
        void *failed = NULL;
        ck_assert_int_eq(pthread_join(loopers[i].thread, &failed), 0);
        ck_assert_ptr_null(failed);
        switches += loopers[i].switches;
    }
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    (void)sem_destroy(&go);
    /* One sleep per blocked submit, and now and then one at the lock; waking all would be eight. */
    (void)fprintf(stderr, "# %ld voluntary switches in %u blocked submits\n", switches, BLOCKED * rounds);
    ck_assert_int_le(switches, (long)(3 * BLOCKED * rounds));
}
END_TEST

/* ---- a limiter's clients in a closed loop ---- */

enum { CLIENTS = 10, PERMITS = 2 };

struct closed_loop {
    weir_limiter *limiter;
    sem_t go[CLIENTS]; /* a holder gives its permit back when it gets one */
    atomic_bool holds[CLIENTS];
    atomic_bool over;
    atomic_uint failures;
};

struct loop_client {
    struct closed_loop *loop;
    unsigned index;
    pthread_t thread;
};

static void *run_client(void *arg)
{
    struct loop_client *client = arg;
    struct closed_loop *loop = client->loop;
    while (!atomic_load(&loop->over)) {
        weir_permit permit = {0};
        if (weir_limiter_acquire(loop->limiter, &permit) != 0)
            atomic_fetch_add(&loop->failures, 1);
        atomic_store(&loop->holds[client->index], true);
        (void)take_one(&loop->go[client->index]);
        atomic_store(&loop->holds[client->index], false);
        if (weir_limiter_release(loop->limiter, &permit, WEIR_SUCCESS) != 0)
            atomic_fetch_add(&loop->failures, 1);
    }
    return NULL;
}

static unsigned holders(struct closed_loop *loop)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CLIENTS; i++)
        count += atomic_load(&loop->holds[i]) ? 1 : 0;
    return count;
}

/* One of the holders, by chance. */
static unsigned pick_holder(struct closed_loop *loop, uint64_t *random)
{
    unsigned skip = (unsigned)(weir_test_random(random) % PERMITS);
    for (unsigned i = 0;; i = (i + 1) % CLIENTS) {
        if (atomic_load(&loop->holds[i]) && skip-- == 0)
            return i;
    }
}

/* Ten clients that come back at once share two permits: each is served again within three rounds, whoever of the two
 * holders is the first to go. */
START_TEST(closed_loop_is_served)
{
    static struct closed_loop loop;
    struct loop_client clients[CLIENTS];
    unsigned last[CLIENTS] = {0};
    uint64_t random = weir_test_seed();
    weir_config config = weir_test_fixed(PERMITS, 0, NULL);
    loop.limiter = weir_test_limiter(&config);
    for (unsigned i = 0; i < CLIENTS; i++) {
        (void)sem_init(&loop.go[i], 0, 0);
        clients[i] = (struct loop_client){.loop = &loop, .index = i};
        ck_assert_int_eq(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (unsigned grant = 1; grant <= weir_test_scaled(1000); grant++) {
        WEIR_TEST_UNTIL(weir_test_limiter_stats(loop.limiter).waiting == CLIENTS - PERMITS &&
                        holders(&loop) == PERMITS);
        for (unsigned i = 0; i < CLIENTS; i++) {
            if (atomic_load(&loop.holds[i]))
                last[i] = grant;
            else if (grant - last[i] > 3 * CLIENTS)
                ck_abort_msg("client %u has waited for %u grants", i, grant - last[i]);
        }
        unsigned leaver = pick_holder(&loop, &random);
        atomic_store(&loop.holds[leaver], false);
        (void)sem_post(&loop.go[leaver]);
    }
    atomic_store(&loop.over, true);
    for (unsigned i = 0; i < CLIENTS; i++)
        (void)sem_post(&loop.go[i]);
    for (unsigned i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(pthread_join(clients[i].thread, NULL), 0);
    ck_assert_uint_eq(loop.failures, 0);
    ck_assert_int_eq(weir_limiter_destroy(loop.limiter), 0);
}
END_TEST

/* ---- between partitions ---- */

/* Whether a job of the one partition begins while the other always has work; returns how many of the other's have gone
 * by, or UINT32_MAX. All are queued beforehand and end one after another. */
static unsigned overtaken(uint32_t limit, const char *partitions, const char *patient, const char *busy)
{
    enum { FLOOD = 60 };
    static struct weir_test_task flood[FLOOD];
    struct weir_test_task waiting;
    unsigned passed = UINT32_MAX;
    weir_pool *pool = fixed_pool(limit, 1000, partitions);
    weir_test_task_init(&waiting, patient, 1);
    for (unsigned i = 0; i < FLOOD; i++) {
        weir_test_task_init(&flood[i], busy, 1);
        ck_assert_int_eq(weir_job_submit(pool, &flood[i].job), 0);
    }
    ck_assert_int_eq(weir_job_submit(pool, &waiting.job), 0);
    for (unsigned i = 0; i < FLOOD; i++) {
        unsigned expected = limit + i < FLOOD ? limit + i : FLOOD;
        WEIR_TEST_UNTIL(weir_test_task_has_begun(&waiting) || weir_test_tasks_begun(flood, FLOOD) == expected);
        if (passed == UINT32_MAX && weir_test_task_has_begun(&waiting))
            passed = i;
        if (passed != UINT32_MAX) /* the rest is of no interest */
            weir_test_task_go(&waiting);
        weir_test_task_finish(&flood[i]);
    }
    weir_test_task_finish(&waiting);
    for (unsigned i = 0; i < FLOOD; i++)
        weir_test_task_destroy(&flood[i]);
    weir_test_task_destroy(&waiting);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    return passed < FLOOD - limit ? passed : UINT32_MAX;
}

/* Of two equal partitions neither keeps the other from the only permit. */
START_TEST(equal_partitions_take_turns)
{
    ck_assert_uint_le(overtaken(1, "a=0.5,b=0.5", "b", "a"), 4);
    ck_assert_uint_le(overtaken(1, "a=0.5,b=0.5", "a", "b"), 4);
    ck_assert_uint_le(overtaken(3, "a=0.5,b=0.5", "b", "a"), 4);
    ck_assert_uint_le(overtaken(3, "a=0.5,b=0.5", "a", "b"), 4);
}
END_TEST

/* A share that comes to less than one permit is a share all the same: of ten places that a partition of 0.1 has to wait
 * for one is its own, give or take some. */
START_TEST(small_shares_are_served)
{
    for (uint32_t limit = 1; limit <= 9; limit++) {
        unsigned passed = overtaken(limit, "live=0.9,batch=0.1", "batch", "live");
        if (passed > 20)
            ck_abort_msg("limit %u: batch is passed over %u times", limit, passed);
        passed = overtaken(limit, "live=0.9,batch=0.1", "live", "batch");
        if (passed > 2)
            ck_abort_msg("limit %u: live is passed over %u times", limit, passed);
    }
}
END_TEST

/* ---- what shedding costs ---- */

/* A trysubmit at the ceiling fails at once; its cost is printed, not judged here. */
START_TEST(shedding_is_cheap)
{
    enum { TRIES = 100000 };
    unsigned tries = weir_test_scaled(TRIES);
    weir_pool *pool = fixed_pool(1, 1, NULL);
    sem_t go;
    ck_assert_int_eq(sem_init(&go, 0, 0), 0);
    ck_assert_int_eq(weir_pool_submit(pool, take_one, &go), 0);
    ck_assert_int_eq(weir_pool_submit(pool, take_one, &go), 0);
    unsigned shed = 0;
    uint64_t begin = weir_now_ns();
    for (unsigned i = 0; i < tries; i++)
        shed += weir_pool_trysubmit(pool, take_one, &go) == EAGAIN ? 1 : 0;
    uint64_t end = weir_now_ns();
    ck_assert_uint_eq(shed, tries);
    ck_assert_uint_eq(weir_test_pool_stats(pool).shed, tries);
    (void)fprintf(stderr, "# trysubmit at the ceiling: %.0f ns\n", (double)(end - begin) / tries);
    (void)sem_post(&go);
    (void)sem_post(&go);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    (void)sem_destroy(&go);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fairness");
    const TTest *const order[] = {submitters_in_order, newcomers_stay_behind, places_are_dealt_evenly,
                                  closed_loop_is_served, NULL};
    const TTest *const partitions[] = {equal_partitions_take_turns, small_shares_are_served, NULL};
    const TTest *const cost[] = {shedding_is_cheap, NULL};
    weir_test_add_group(suite, "order", order);
    weir_test_add_group(suite, "partitions", partitions);
    weir_test_add_group(suite, "cost", cost);
    return weir_test_main(suite);
}
