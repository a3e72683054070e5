/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A million jobs whose start, cancel and expiry race: each of them ends in exactly one way, once, and the figures say
 * the same as the jobs. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle_support.h"

enum { SUBMITTERS = 4, CANCELLERS = 2, BATCH = 12500, BATCHES = 20 };

struct entry {
    weir_job job; /* first */
    atomic_uint ran;
    atomic_uint done;
    atomic_int status;   /* in on_done */
    atomic_uint cancels; /* that returned 0 */
    atomic_bool accepted;
};

/* What one thread submits; others cancel behind it. */
struct lane {
    weir_pool *pool;
    struct entry *entries;
    unsigned count;
    atomic_uint submitted; /* how many submits have returned */
    atomic_bool over;
    uint64_t random;
    unsigned accepted;
    unsigned refused;
    unsigned wrong;
    pthread_t thread;
};

struct canceller {
    struct lane *lanes;
    uint64_t random;
    unsigned wrong;
    pthread_t thread;
};

static weir_outcome run(void *arg)
{
    struct entry *entry = arg;
    unsigned before = atomic_fetch_add(&entry->ran, 1);
    for (unsigned i = 0; i < 200; i++) /* long enough to be seen running now and then */
        before += atomic_load_explicit(&entry->ran, memory_order_relaxed) & 0;
    return (weir_outcome)(before % 3);
}

static void note_done(weir_job *job)
{
    struct entry *entry = (struct entry *)job;
    atomic_store(&entry->status, weir_job_outcome(job, NULL));
    (void)atomic_fetch_add(&entry->done, 1);
}

static bool cancel(struct entry *entry)
{
    int answer = weir_job_cancel(&entry->job);
    if (answer == 0)
        (void)atomic_fetch_add(&entry->cancels, 1);
    bool refused = answer == EINVAL && !atomic_load(&entry->accepted);
    return answer == 0 || answer == EBUSY || answer == EALREADY || refused;
}

static int submit_one(struct lane *lane, struct entry *entry)
{
    uint64_t random = weir_test_random(&lane->random);
    memset(entry, 0, sizeof *entry);
    entry->job = (weir_job)WEIR_JOB_INIT(run, entry);
    if (random % 4 != 0)
        entry->job.on_done = note_done;
    if (random / 4 % 3 != 0) /* up to 3 ms: about the time in the queue */
        entry->job.deadline_ns = weir_after_ns(random / 16 % 3000000);
    if (random / 64 % 4 == 0)
        return weir_job_trysubmit(lane->pool, &entry->job);
    if (random / 64 % 4 == 1)
        return weir_job_timedsubmit(lane->pool, &entry->job, weir_after_ns(random / 256 % 100000));
    return weir_job_submit(lane->pool, &entry->job);
}

static void *submit_lane(void *arg)
{
    struct lane *lane = arg;
    for (unsigned i = 0; i < lane->count; i++) {
        int error = submit_one(lane, &lane->entries[i]);
        atomic_store(&lane->entries[i].accepted, error == 0);
        if (error == 0)
            lane->accepted++;
        else if (error == EAGAIN || error == ETIMEDOUT)
            lane->refused++;
        else
            lane->wrong++;
        atomic_store(&lane->submitted, i + 1);
        unsigned back = (unsigned)(weir_test_random(&lane->random) % 16);
        if (back < 8 && back <= i && !cancel(&lane->entries[i - back]))
            lane->wrong++;
    }
    atomic_store(&lane->over, true);
    return NULL;
}

/* Cancels what others have submitted a moment ago. */
static void *cancel_lanes(void *arg)
{
    struct canceller *canceller = arg;
    for (;;) {
        unsigned over = 0;
        for (unsigned i = 0; i < SUBMITTERS; i++) {
            struct lane *lane = &canceller->lanes[i];
            over += atomic_load(&lane->over) ? 1 : 0;
            unsigned submitted = atomic_load(&lane->submitted);
            unsigned back = 1 + (unsigned)(weir_test_random(&canceller->random) % 32);
            if (back <= submitted && !cancel(&lane->entries[submitted - back]))
                canceller->wrong++;
        }
        if (over == SUBMITTERS)
            return NULL;
    }
}

struct sums {
    uint64_t accepted;
    uint64_t refused;
    uint64_t ran;
    uint64_t cancelled;
    uint64_t expired;
};

/* What is wrong with an entry after all has ended, or NULL. */
static const char *judge(struct entry *entry, struct sums *sums)
{
    unsigned ran = atomic_load(&entry->ran);
    unsigned cancels = atomic_load(&entry->cancels);
    unsigned done = atomic_load(&entry->done);
    int status = weir_job_outcome(&entry->job, NULL);
    if (!atomic_load(&entry->accepted))
        return ran + cancels + done == 0 && status == EINVAL ? NULL : "it was refused and lived";
    if (status != 0 && status != ECANCELED && status != ETIMEDOUT)
        return "it has not ended";
    if (done != (entry->job.on_done != NULL ? 1u : 0u))
        return "on_done was not called once";
    if (done == 1 && atomic_load(&entry->status) != status)
        return "it was said to have ended in another way";
    if (ran != (status == 0 ? 1u : 0u))
        return "it ran, or it did not, against its status";
    if (cancels != (status == ECANCELED ? 1u : 0u))
        return "cancels that succeeded: not one, or against its status";
    sums->ran += status == 0 ? 1 : 0;
    sums->cancelled += status == ECANCELED ? 1 : 0;
    sums->expired += status == ETIMEDOUT ? 1 : 0;
    return NULL;
}

static void start(struct lane *lanes, struct canceller *cancellers)
{
    for (unsigned i = 0; i < SUBMITTERS; i++)
        lanes[i].thread = weir_test_start(submit_lane, &lanes[i]);
    for (unsigned i = 0; i < CANCELLERS; i++)
        cancellers[i].thread = weir_test_start(cancel_lanes, &cancellers[i]);
}

static unsigned join(struct lane *lanes, struct canceller *cancellers)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        (void)pthread_join(lanes[i].thread, NULL);
        wrong += lanes[i].wrong;
    }
    for (unsigned i = 0; i < CANCELLERS; i++) {
        (void)pthread_join(cancellers[i].thread, NULL);
        wrong += cancellers[i].wrong;
    }
    return wrong;
}

/* While the batch is on its way, the pool is paused now and then: what is ready goes back into line. */
static unsigned disturb(weir_pool *pool, struct lane *lanes)
{
    unsigned wrong = 0;
    while (!atomic_load(&lanes[0].over)) {
        weir_test_yield();
        wrong += weir_pool_pause(pool) != 0 ? 1 : 0;
        weir_stats stats = weir_test_snapshot(pool);
        wrong += weir_test_adds_up(&stats) ? 0 : 1;
        wrong += weir_pool_resume(pool) != 0 ? 1 : 0;
    }
    return wrong;
}

static void run_batch(weir_pool *pool, struct entry *entries, unsigned count, uint64_t *random, struct sums *sums)
{
    struct lane lanes[SUBMITTERS];
    struct canceller cancellers[CANCELLERS];
    for (unsigned i = 0; i < SUBMITTERS; i++)
        lanes[i] = (struct lane){
            .pool = pool, .entries = entries + (size_t)i * count, .count = count, .random = weir_test_random(random)};
    for (unsigned i = 0; i < CANCELLERS; i++)
        cancellers[i] = (struct canceller){.lanes = lanes, .random = weir_test_random(random)};
    start(lanes, cancellers);
    unsigned wrong = disturb(pool, lanes);
    wrong += join(lanes, cancellers);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    for (unsigned i = 0; i < SUBMITTERS; i++) {
        sums->accepted += lanes[i].accepted;
        sums->refused += lanes[i].refused;
    }
    for (unsigned i = 0; i < SUBMITTERS * count; i++) {
        const char *fault = judge(&entries[i], sums);
        if (fault != NULL)
            ck_abort_msg("job %u: %s", i, fault);
    }
}

static void compare(weir_pool *pool, const struct sums *sums)
{
    weir_stats stats = weir_test_snapshot(pool);
    ck_assert(weir_test_adds_up(&stats));
    ck_assert_uint_eq(stats.submitted, sums->accepted);
    ck_assert_uint_eq(stats.started, sums->ran);
    ck_assert_uint_eq(stats.succeeded + stats.ignored + stats.dropped, sums->ran);
    ck_assert_uint_eq(stats.cancelled, sums->cancelled);
    ck_assert_uint_eq(stats.expired, sums->expired);
    ck_assert_uint_eq(stats.shed + stats.timed_out, sums->refused);
    ck_assert_uint_eq(stats.queued + stats.running + stats.in_flight + stats.waiting, 0);
}

static void race(const weir_config *config, const char *what, unsigned batches)
{
    uint64_t random = weir_test_seed();
    unsigned count = weir_test_divided(BATCH, 200);
    struct sums sums = {0};
    weir_pool *pool = NULL;
    struct entry *entries = calloc((size_t)SUBMITTERS * count, sizeof *entries);
    if (entries == NULL)
        ck_abort_msg("no memory");
    ck_assert_int_eq(weir_pool_create(&pool, "race", config), 0);
    for (unsigned i = 0; i < batches; i++)
        run_batch(pool, entries, count, &random, &sums);
    compare(pool, &sums);
    (void)fprintf(stderr, "# %s: %llu ran, %llu cancelled, %llu expired, %llu refused\n", what,
                  (unsigned long long)sums.ran, (unsigned long long)sums.cancelled, (unsigned long long)sums.expired,
                  (unsigned long long)sums.refused);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    free(entries);
}

/* With a queue that is often full. */
START_TEST(test_short_queue)
{
    weir_config config = weir_test_plain_config(3, 20);
    race(&config, "short queue", BATCHES / 2);
}
END_TEST

/* With a queue that takes all, so that much expires, and a thread for deadlines that comes and goes. */
START_TEST(test_long_queue)
{
    weir_config config = weir_test_plain_config(2, SUBMITTERS * BATCH);
    config.idle_timeout = 1000000;
    race(&config, "long queue", BATCHES / 2);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_short_queue, test_long_queue, NULL};
    Suite *suite = suite_create("race");
    weir_test_group(suite, "race", tests);
    return weir_test_main(suite);
}
