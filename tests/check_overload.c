/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Twice as much work as the downstream can do, each job with a deadline: what is done is done in time, and the
 * downstream does as much as it can. The same through a long queue that knows of no deadlines, for comparison. */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handle_support.h"

enum { SERVERS = 16, SERVICE_US = 20000, ARRIVALS_PER_S = 2 * SERVERS * 1000000 / SERVICE_US };
#define DEADLINE_NS UINT64_C(200000000)
#define SECOND_NS   UINT64_C(1000000000)

/* ---- the downstream: a station of so many servers, in front of them its own line ---- */

static struct station {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    unsigned free; /* guarded by mutex */
} station = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, SERVERS};

static void serve(void)
{
    (void)pthread_mutex_lock(&station.mutex);
    while (station.free == 0)
        (void)pthread_cond_wait(&station.condition, &station.mutex);
    station.free--;
    (void)pthread_mutex_unlock(&station.mutex);
    (void)nanosleep(&(struct timespec){.tv_nsec = SERVICE_US * 1000L}, NULL); /* this is the work */
    (void)pthread_mutex_lock(&station.mutex);
    station.free++;
    (void)pthread_cond_signal(&station.condition);
    (void)pthread_mutex_unlock(&station.mutex);
}

/* ---- the load ---- */

struct request {
    weir_job job;
    uint64_t due_ns; /* arrival plus DEADLINE_NS, whether the pool knows of it or not */
    uint64_t end_ns; /* 0: it never ran */
    atomic_uint done;
};

static weir_outcome handle(void *arg)
{
    struct request *request = arg;
    serve();
    request->end_ns = weir_now_ns();
    return WEIR_SUCCESS;
}

static void note_done(weir_job *job)
{
    (void)atomic_fetch_add(&((struct request *)job)->done, 1);
}

struct result {
    unsigned offered;
    unsigned accepted;
    unsigned ran;
    unsigned in_time;
    double in_time_of_ran;
    double goodput; /* of capacity */
    bool adds_up;
};

/* Poisson arrivals in an open loop: whoever is late does not slow down those who follow. */
static uint64_t next_gap_ns(uint64_t *random)
{
    double gap = -log1p(-weir_test_uniform(random));
    return (uint64_t)(gap * (double)SECOND_NS / ARRIVALS_PER_S);
}

static void wait_until(uint64_t time_ns)
{
    uint64_t now_ns = weir_now_ns();
    if (time_ns > now_ns) {
        uint64_t span_ns = time_ns - now_ns;
        (void)nanosleep(&(struct timespec){(time_t)(span_ns / SECOND_NS), (long)(span_ns % SECOND_NS)}, NULL);
    }
}

static unsigned submit_all(weir_pool *pool, struct request *requests, unsigned count, bool with_deadlines)
{
    uint64_t random = 1;
    uint64_t arrival_ns = weir_now_ns();
    unsigned accepted = 0;
    for (unsigned i = 0; i < count; i++) {
        arrival_ns += next_gap_ns(&random);
        wait_until(arrival_ns);
        struct request *request = &requests[i];
        request->job = (weir_job)WEIR_JOB_INIT(handle, request);
        request->job.on_done = note_done;
        request->due_ns = weir_after_ns(DEADLINE_NS);
        request->job.deadline_ns = with_deadlines ? request->due_ns : 0;
        int error = weir_job_trysubmit(pool, &request->job);
        if (error != 0 && error != EAGAIN && error != ETIMEDOUT)
            ck_abort_msg("submit: %d", error);
        accepted += error == 0 ? 1 : 0;
    }
    return accepted;
}

/* ---- what the downstream can do: as many threads as it has servers, and no pool ---- */

struct callers {
    atomic_bool over;
    atomic_uint served;
};

static void *call_on(void *arg)
{
    struct callers *callers = arg;
    while (!atomic_load(&callers->over)) {
        serve();
        (void)atomic_fetch_add(&callers->served, 1);
    }
    return NULL;
}

static double capacity_per_s(void)
{
    struct callers callers;
    pthread_t threads[SERVERS];
    atomic_init(&callers.over, false);
    atomic_init(&callers.served, 0);
    for (int i = 0; i < SERVERS; i++)
        threads[i] = weir_test_start(call_on, &callers);
    uint64_t begin_ns = weir_now_ns();
    wait_until(begin_ns + SECOND_NS);
    double served = atomic_load(&callers.served);
    double span_ns = (double)(weir_now_ns() - begin_ns);
    atomic_store(&callers.over, true);
    for (int i = 0; i < SERVERS; i++)
        (void)pthread_join(threads[i], NULL);
    return (served + SERVERS / 2.0) / span_ns * (double)SECOND_NS; /* each is half done, on average */
}

/* What came of the requests from first on, in the time that their arrival took. */
static void evaluate(const struct request *requests, unsigned first, unsigned count, double capacity,
                     struct result *result)
{
    uint64_t begin_ns = requests[first].due_ns - DEADLINE_NS;
    uint64_t end_ns = requests[count - 1].due_ns - DEADLINE_NS;
    unsigned good = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct request *request = &requests[i];
        if (request->end_ns == 0)
            continue;
        bool in_time = request->end_ns <= request->due_ns;
        if (i >= first) {
            result->ran++;
            result->in_time += in_time ? 1 : 0;
        }
        good += in_time && request->end_ns >= begin_ns && request->end_ns < end_ns ? 1 : 0;
    }
    result->offered = count - first;
    result->in_time_of_ran = result->ran > 0 ? (double)result->in_time / result->ran : 0;
    result->goodput = (double)good * (double)SECOND_NS / (double)(end_ns - begin_ns) / capacity;
}

static struct result overload(const weir_config *config, unsigned warm_up, unsigned count, bool with_deadlines,
                              const char *what)
{
    struct result result = {0};
    weir_pool *pool = NULL;
    double capacity = capacity_per_s();
    struct request *requests = calloc(count, sizeof *requests);
    if (requests == NULL)
        ck_abort_msg("no memory");
    ck_assert_int_eq(weir_pool_create(&pool, "overload", config), 0);
    result.accepted = submit_all(pool, requests, count, with_deadlines);
    weir_stats stats = weir_test_snapshot(pool);
    /* A long queue is not worth waiting for: what it holds would be late. */
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    weir_stats last = weir_test_snapshot(pool);
    unsigned done = 0;
    for (unsigned i = 0; i < count; i++)
        done += atomic_load(&requests[i].done);
    result.adds_up = weir_test_adds_up(&stats) && weir_test_adds_up(&last) && done == result.accepted &&
                     last.submitted == result.accepted && last.shed + last.timed_out + result.accepted == count;
    evaluate(requests, warm_up, count, capacity, &result);
    (void)fprintf(stderr,
                  "# %-32s offered %u, ran %u, of these in time %.2f %%, goodput %.1f %% of %.0f/s"
                  " (limit %u, queue %u/%u, expired %llu, timed out %llu, shed %llu)\n",
                  what, result.offered, result.ran, 100 * result.in_time_of_ran, 100 * result.goodput, capacity,
                  stats.limit, stats.queued, stats.queue_depth, (unsigned long long)stats.expired,
                  (unsigned long long)stats.timed_out, (unsigned long long)stats.shed);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    free(requests);
    return result;
}

static unsigned seconds(unsigned number)
{
    return weir_test_divided(number * ARRIVALS_PER_S, number * ARRIVALS_PER_S / 4);
}

static bool is_slow(void)
{
    return weir_test_divided(1000, 1) != 1000;
}

/* Of the jobs that run, nearly all end before their deadline, and the downstream stays busy: all of them, and 97 to
 * 99 %, on a quiet machine. With WEIR_TEST_FULL half a minute, for the learning of the first seconds weighs in five. */
START_TEST(test_with_deadlines)
{
    struct {
        const char *what;
        weir_algorithm algorithm;
        uint32_t limit;
        unsigned seconds;
    } const cases[] = {{"vegas2, deadlines:", WEIR_VEGAS2, 0, 5}, {"fixed, deadlines:", WEIR_FIXED, SERVERS, 3}};
    for (int i = 0; i < 2; i++) {
        weir_config config = weir_test_plain_config(cases[i].limit, WEIR_QUEUE_AUTO);
        config.algorithm = cases[i].algorithm;
        unsigned length = getenv("WEIR_TEST_FULL") != NULL ? 30 : cases[i].seconds;
        /* Other work on the machine only ever takes away from these figures: the best of three tells. */
        for (int attempt = 1; attempt <= 3; attempt++) {
            struct result result = overload(&config, seconds(1), seconds(length), true, cases[i].what);
            ck_assert(result.adds_up);
            ck_assert_uint_gt(result.ran, 0);
            bool is_good = result.in_time_of_ran >= 0.95 && result.goodput >= 0.85;
            if (is_good || is_slow())
                break;
            ck_assert_msg(attempt < 3, "in time %.3f, goodput %.3f", result.in_time_of_ran, result.goodput);
        }
    }
}
END_TEST

/* For comparison: a long queue, first in first out, that knows of no deadline. Only the books are asserted. */
START_TEST(test_without_deadlines)
{
    weir_config config = weir_test_plain_config(SERVERS, 1000000);
    struct result result = overload(&config, seconds(1), seconds(3), false, "fixed, long queue, no deadlines:");
    ck_assert(result.adds_up);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_with_deadlines, test_without_deadlines, NULL};
    Suite *suite = suite_create("overload");
    weir_test_group(suite, "overload", tests);
    return weir_test_main(suite);
}
