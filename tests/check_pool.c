/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Getting work into a pool: submit, try, timed, copy, call, the ceiling, the order, the figures. */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pool_support.h"

/* ---- a thread that is blocked in submit ---- */

struct submitter {
    weir_pool *pool;
    weir_fn *fn;
    void *arg;
    uint64_t deadline_ns;
    int result;
    atomic_bool returned;
    pthread_t thread;
};

static void *submit_thread(void *arg)
{
    struct submitter *submitter = arg;
    submitter->result = weir_pool_timedsubmit(submitter->pool, submitter->fn, submitter->arg, submitter->deadline_ns);
    atomic_store(&submitter->returned, true);
    return NULL;
}

/* Starts it and returns once waiting callers are `waiting`. */
static void start_blocked(struct submitter *submitter, unsigned waiting)
{
    submitter->thread = weir_test_thread(submit_thread, submitter);
    WEIR_TEST_UNTIL(weir_test_stats(submitter->pool).waiting == waiting);
    ck_assert(!atomic_load(&submitter->returned));
}

/* ---- the ceiling ---- */

/* trysubmit admits L running and D queued jobs, and sheds the next with EAGAIN, which is counted. */
START_TEST(ceiling)
{
    enum { LIMIT = 3, DEPTH = 5 };
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(LIMIT, DEPTH);
    weir_test_occupy(pool, &gate, LIMIT);
    for (int i = 0; i < DEPTH; i++)
        ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_count, &ran), EAGAIN);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.limit, LIMIT);
    ck_assert_uint_eq(stats.running, LIMIT);
    ck_assert_uint_eq(stats.in_flight, LIMIT);
    ck_assert_uint_eq(stats.queued, DEPTH);
    ck_assert_uint_eq(stats.queue_depth, DEPTH);
    ck_assert_uint_eq(stats.submitted, LIMIT + DEPTH);
    ck_assert_uint_eq(stats.started, LIMIT);
    ck_assert_uint_eq(stats.shed, 4);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), DEPTH);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* QUEUE_DEPTH=0: no queue, L jobs and no more. */
START_TEST(no_queue)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_pass, &gate), 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_pass, &gate), 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_nothing, NULL), EAGAIN);
    ck_assert_uint_eq(weir_test_stats(pool).queued, 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_nothing, NULL), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* submit blocks at the ceiling, counts as waiting, and goes on when a job ends. */
START_TEST(submit_blocks)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 1);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    struct submitter blocked = {.pool = pool, .fn = weir_test_count, .arg = &ran, .deadline_ns = WEIR_FOREVER};
    start_blocked(&blocked, 1);
    ck_assert_uint_eq(weir_test_stats(pool).submitted, 2);
    weir_test_gate_open(&gate);
    (void)weir_test_join(blocked.thread);
    ck_assert_int_eq(blocked.result, 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 2);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* timedsubmit gives up at its deadline and not before; the job never runs; a deadline in the past tries once. */
START_TEST(timed_submit)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 0);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_pass, &gate, 0), 0);
    uint64_t deadline = weir_after_ns(20000000);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_count, &ran, deadline), ETIMEDOUT);
    ck_assert_uint_ge(weir_now_ns(), deadline);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_count, &ran, 1), ETIMEDOUT);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.timed_out, 2);
    ck_assert_uint_eq(stats.submitted, 1);
    ck_assert_uint_eq(stats.waiting, 0);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, weir_test_count, &ran, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 1);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* One of three submitters gives up, the first, the second or the last: the next place is that of the first who is left,
 * and the others are served, too. */
START_TEST(one_of_three_gives_up)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 1);
    weir_test_occupy(pool, &gate, 1);
    weir_job queued = WEIR_JOB_INIT(weir_test_count, &ran);
    ck_assert_int_eq(weir_job_submit(pool, &queued), 0);
    struct submitter waits[3] = {0};
    for (int i = 0; i < 3; i++) {
        uint64_t deadline_ns = i == _i ? weir_after_ns(100000000) : WEIR_FOREVER;
        waits[i] = (struct submitter){.pool = pool, .fn = weir_test_count, .arg = &ran, .deadline_ns = deadline_ns};
        waits[i].thread = weir_test_thread(submit_thread, &waits[i]);
        WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == (unsigned)i + 1 || atomic_load(&waits[_i].returned));
    }
    (void)weir_test_join(waits[_i].thread);
    ck_assert_int_eq(waits[_i].result, ETIMEDOUT);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 2);
    ck_assert_int_eq(weir_job_cancel(&queued), 0);
    WEIR_TEST_UNTIL(atomic_load(&waits[_i == 0].returned));
    weir_test_gate_open(&gate);
    for (int i = 0; i < 3; i++) {
        if (i == _i)
            continue;
        (void)weir_test_join(waits[i].thread);
        ck_assert_int_eq(waits[i].result, 0);
    }
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 2);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- order ---- */

static struct weir_test_record record = WEIR_TEST_RECORD_INIT;

static weir_outcome record_number(void *arg)
{
    weir_test_record_add(&record, (unsigned)(uintptr_t)arg);
    return WEIR_SUCCESS;
}

static weir_outcome record_copied_number(void *arg)
{
    weir_test_record_add(&record, *(unsigned *)arg);
    return WEIR_SUCCESS;
}

static void assert_recorded_in_order(unsigned count)
{
    ck_assert_uint_eq(record.count, count);
    for (unsigned i = 0; i < count; i++) {
        if (record.values[i] != i)
            ck_abort_msg("job %u ran as number %u", record.values[i], i);
    }
}

/* Jobs start in the order in which they were submitted, over many chunks of the queue, copied ones among them. */
START_TEST(first_in_first_out)
{
    enum { JOBS = 2000 };
    struct weir_test_gate gate;
    record.count = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, JOBS);
    weir_test_occupy(pool, &gate, 1);
    for (unsigned i = 0; i < JOBS; i++) {
        char large[64] = {0};
        memcpy(large, &i, sizeof i);
        int error = i % 3 == 0   ? weir_pool_submit(pool, record_number, (void *)(uintptr_t)i)
                    : i % 3 == 1 ? weir_pool_submit_copy(pool, record_copied_number, &i, sizeof i)
                                 : weir_pool_submit_copy(pool, record_copied_number, large, sizeof large);
        if (error != 0)
            ck_abort_msg("submit %u: %d", i, error);
    }
    ck_assert_int_eq(weir_pool_trysubmit(pool, record_number, NULL), EAGAIN);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    assert_recorded_in_order(JOBS);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Blocked submitters are served first come, first served. */
START_TEST(blocked_in_order)
{
    enum { BLOCKED = 8 };
    struct weir_test_gate gate;
    struct submitter blocked[BLOCKED];
    record.count = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 1);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_pool_submit(pool, record_number, NULL), 0);
    for (unsigned i = 0; i < BLOCKED; i++) {
        blocked[i] = (struct submitter){
            .pool = pool, .fn = record_number, .arg = (void *)(uintptr_t)(i + 1), .deadline_ns = WEIR_FOREVER};
        start_blocked(&blocked[i], i + 1);
    }
    weir_test_gate_open(&gate);
    for (unsigned i = 0; i < BLOCKED; i++) {
        (void)weir_test_join(blocked[i].thread);
        ck_assert_int_eq(blocked[i].result, 0);
    }
    weir_test_pool_end(pool);
    assert_recorded_in_order(BLOCKED + 1);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- copies ---- */

enum { COPIES = 100 };
static atomic_uint copies_seen[COPIES];
static atomic_uint copies_bad;

static weir_outcome check_copy(void *arg)
{
    const unsigned char *bytes = arg;
    if ((uintptr_t)arg % _Alignof(max_align_t) != 0)
        atomic_fetch_add(&copies_bad, 1);
    for (unsigned i = 1; i < bytes[1]; i++) {
        if (i != 1 && bytes[i] != (unsigned char)(bytes[0] + i))
            atomic_fetch_add(&copies_bad, 1);
    }
    atomic_fetch_add(&copies_seen[bytes[0]], 1);
    memset(arg, 0xff, bytes[1]); /* the job may write to what is its own */
    return WEIR_SUCCESS;
}

static void submit_copies(size_t size)
{
    struct weir_test_gate gate;
    unsigned char data[200];
    for (unsigned k = 0; k < COPIES; k++)
        atomic_store(&copies_seen[k], 0);
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 2 * COPIES);
    weir_test_occupy(pool, &gate, 2);
    for (unsigned k = 0; k < COPIES; k++) {
        for (size_t i = 0; i < size; i++)
            data[i] = (unsigned char)(k + i);
        data[0] = (unsigned char)k;
        data[1] = (unsigned char)size;
        ck_assert_int_eq(k % 2 == 0 ? weir_pool_submit_copy(pool, check_copy, data, size)
                                    : weir_pool_trysubmit_copy(pool, check_copy, data, size),
                         0);
    }
    memset(data, 0, sizeof data);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    for (unsigned k = 0; k < COPIES; k++)
        ck_assert_uint_eq(atomic_load(&copies_seen[k]), 1);
    ck_assert_uint_eq(atomic_load(&copies_bad), 0);
    weir_test_gate_destroy(&gate);
}

/* Each job of submit_copy sees its own copy, aligned for any type, whatever the size: in the queue's slots, just above
 * what fits there, and larger. */
START_TEST(copies)
{
    static const size_t sizes[] = {2, 8, 15, 16, 17, 47, 48, 49, 64, 200};
    submit_copies(sizes[_i]);
}
END_TEST

static weir_outcome note_pointer(void *arg)
{
    atomic_fetch_add(&copies_bad, arg == NULL);
    return WEIR_SUCCESS;
}

/* A copy of nothing is allowed, and NULL is then as good as any pointer; NULL with a size is not. */
START_TEST(copy_of_nothing)
{
    weir_pool *pool = weir_test_pool(1, 4);
    ck_assert_int_eq(weir_pool_submit_copy(pool, note_pointer, NULL, 0), 0);
    ck_assert_int_eq(weir_pool_submit_copy(pool, note_pointer, "", 0), 0);
    ck_assert_int_eq(weir_pool_submit_copy(pool, note_pointer, NULL, 1), EINVAL);
    ck_assert_int_eq(weir_pool_submit_copy(pool, note_pointer, "", SIZE_MAX), ENOMEM);
    weir_test_pool_end(pool);
}
END_TEST

/* At the ceiling trysubmit_copy sheds, whatever the size, also from a job of the pool, and leaks nothing. */
static weir_outcome copy_to_own_pool(void *arg)
{
    weir_pool *pool = *(weir_pool **)arg;
    bool shed = weir_pool_trysubmit_copy(pool, weir_test_nothing, "", 1) == EAGAIN &&
                weir_pool_trysubmit_copy(pool, weir_test_nothing, (char[100]){0}, 100) == EAGAIN;
    return shed ? WEIR_SUCCESS : WEIR_DROPPED;
}

START_TEST(copies_are_shed)
{
    struct weir_test_gate gate;
    weir_outcome outcome = WEIR_IGNORE;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(2, 0);
    weir_test_occupy(pool, &gate, 1);
    ck_assert_int_eq(weir_pool_call(pool, copy_to_own_pool, &pool, &outcome), 0);
    ck_assert_int_eq(outcome, WEIR_SUCCESS);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
    ck_assert_int_eq(weir_pool_trysubmit_copy(pool, weir_test_nothing, "", 1), EAGAIN);
    ck_assert_int_eq(weir_pool_trysubmit_copy(pool, weir_test_nothing, (char[100]){0}, 100), EAGAIN);
    ck_assert_uint_eq(weir_test_stats(pool).shed, 4);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- call ---- */

static weir_outcome return_it(void *arg)
{
    return *(weir_outcome *)arg;
}

/* call hands back the job's outcome; outcome NULL is allowed. */
START_TEST(call_returns_the_outcome)
{
    static const weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_IGNORE, WEIR_DROPPED};
    weir_pool *pool = weir_test_pool(2, 2);
    for (int i = 0; i < 3; i++) {
        weir_outcome given = outcomes[i];
        weir_outcome got = outcomes[(i + 1) % 3];
        ck_assert_int_eq(weir_pool_call(pool, return_it, &given, &got), 0);
        ck_assert_int_eq(got, given);
        ck_assert_int_eq(weir_pool_call(pool, return_it, &given, NULL), 0);
    }
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.succeeded, 2);
    ck_assert_uint_eq(stats.ignored, 2);
    ck_assert_uint_eq(stats.dropped, 2);
    weir_test_pool_end(pool);
}
END_TEST

struct nested {
    weir_pool *pool;
    struct weir_test_gate *gate; /* NULL: none to pass before the call */
    weir_outcome outcome;
    int result;
    atomic_uint *ran;
};

static weir_outcome call_inside(void *arg)
{
    struct nested *nested = arg;
    if (nested->gate != NULL)
        weir_test_gate_pass(nested->gate);
    nested->result = weir_pool_call(nested->pool, weir_test_count, nested->ran, &nested->outcome);
    return WEIR_SUCCESS;
}

/* A job that is alone on a single permit cannot wait for another one: EDEADLK, and the other is not queued. */
START_TEST(call_inside_alone)
{
    atomic_uint ran = 0;
    weir_pool *pool = weir_test_pool(1, 4);
    struct nested nested = {.pool = pool, .ran = &ran};
    ck_assert_int_eq(weir_pool_call(pool, call_inside, &nested, NULL), 0);
    ck_assert_int_eq(nested.result, EDEADLK);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 0);
}
END_TEST

/* With a permit to spare the inner job runs on another worker. */
START_TEST(call_inside_with_room)
{
    atomic_uint ran = 0;
    weir_pool *pool = weir_test_pool(2, 0);
    struct nested nested = {.pool = pool, .ran = &ran, .outcome = WEIR_DROPPED};
    ck_assert_int_eq(weir_pool_call(pool, call_inside, &nested, NULL), 0);
    ck_assert_int_eq(nested.result, 0);
    ck_assert_int_eq(nested.outcome, WEIR_SUCCESS);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 1);
}
END_TEST

/* When all permits are taken by jobs that call at once, the last of them gets EDEADLK and so frees its permit for the
 * others' calls: n - 1 of n succeed at least. */
START_TEST(call_inside_all_at_once)
{
    enum { JOBS = 4 };
    struct weir_test_gate gate;
    struct nested nested[JOBS];
    atomic_uint ran = 0;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(JOBS, JOBS);
    for (int i = 0; i < JOBS; i++) {
        nested[i] = (struct nested){.pool = pool, .gate = &gate, .ran = &ran, .result = -1};
        ck_assert_int_eq(weir_pool_submit(pool, call_inside, &nested[i]), 0);
    }
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == JOBS);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    unsigned succeeded = 0;
    for (int i = 0; i < JOBS; i++) {
        ck_assert(nested[i].result == 0 || nested[i].result == EDEADLK);
        succeeded += nested[i].result == 0;
    }
    ck_assert_uint_ge(succeeded, JOBS - 1);
    ck_assert_uint_eq(atomic_load(&ran), succeeded);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* ---- jobs that submit ---- */

struct inner_submits {
    weir_pool *pool;
    int results[4];
};

static weir_outcome submit_inside(void *arg)
{
    struct inner_submits *inner = arg;
    int dummy = 0;
    inner->results[0] = weir_pool_submit(inner->pool, weir_test_nothing, NULL);
    inner->results[1] = weir_pool_submit(inner->pool, weir_test_nothing, NULL);
    inner->results[2] = weir_pool_submit_copy(inner->pool, weir_test_nothing, &dummy, sizeof dummy);
    inner->results[3] = weir_pool_timedsubmit(inner->pool, weir_test_nothing, NULL, WEIR_FOREVER);
    return WEIR_SUCCESS;
}

/* A job may submit to its own pool as long as that does not block; where it would, every blocking submit says EDEADLK
 * and the job is not queued. */
START_TEST(submit_inside_at_the_ceiling)
{
    weir_pool *pool = weir_test_pool(1, 1);
    struct inner_submits inner = {.pool = pool, .results = {-1, -1, -1, -1}};
    ck_assert_int_eq(weir_pool_submit(pool, submit_inside, &inner), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(inner.results[0], 0);
    for (int i = 1; i < 4; i++)
        ck_assert_int_eq(inner.results[i], EDEADLK);
    ck_assert_uint_eq(weir_test_stats(pool).succeeded, 2);
    weir_test_pool_end(pool);
}
END_TEST

struct fan {
    weir_pool *pool;
    unsigned depth;
    atomic_uint *accepted;
    atomic_uint *refused;
    atomic_uint *ran;
};

static weir_outcome fan_out(void *arg)
{
    struct fan fan = *(struct fan *)arg;
    atomic_fetch_add(fan.ran, 1);
    if (fan.depth == 0)
        return WEIR_SUCCESS;
    fan.depth--;
    for (int i = 0; i < 3; i++) {
        int error = weir_pool_submit_copy(fan.pool, fan_out, &fan, sizeof fan);
        atomic_fetch_add(error == 0 ? fan.accepted : fan.refused, 1);
    }
    return WEIR_SUCCESS;
}

/* Jobs that submit three more each, six deep, through a queue of two: all ends, and every job that was accepted ran. */
START_TEST(fan_out_ends)
{
    atomic_uint accepted = 1;
    atomic_uint refused = 0;
    atomic_uint ran = 0;
    weir_pool *pool = weir_test_pool(2, 2);
    struct fan fan = {.pool = pool, .depth = 6, .accepted = &accepted, .refused = &refused, .ran = &ran};
    ck_assert_int_eq(weir_pool_submit_copy(pool, fan_out, &fan, sizeof fan), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), atomic_load(&accepted));
    weir_test_pool_end(pool);
}
END_TEST

/* ---- figures and arguments ---- */

/* A job that returns no outcome counts as WEIR_IGNORE, and a log line says so. */
START_TEST(bad_outcome)
{
    weir_outcome given = (weir_outcome)17;
    weir_outcome got = WEIR_SUCCESS;
    weir_test_log_capture();
    weir_pool *pool = weir_test_pool(1, 1);
    ck_assert_int_eq(weir_pool_call(pool, return_it, &given, &got), 0);
    ck_assert_int_eq(got, WEIR_IGNORE);
    ck_assert_uint_eq(weir_test_stats(pool).ignored, 1);
    weir_test_pool_end(pool);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "17"));
    weir_test_log_release();
}
END_TEST

/* At rest all admitted jobs are in one of the counters and nobody holds a permit. */
START_TEST(figures_at_rest)
{
    weir_outcome outcomes[] = {WEIR_SUCCESS, WEIR_IGNORE, WEIR_DROPPED};
    weir_pool *pool = weir_test_pool(4, 300);
    for (int i = 0; i < 300; i++)
        ck_assert_int_eq(weir_pool_submit(pool, return_it, &outcomes[i % 3]), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir_stats stats = {0};
    ck_assert_int_eq(weir_pool_stats(pool, &stats), 0);
    ck_assert_uint_eq(stats.size, sizeof stats);
    ck_assert_uint_eq(stats.submitted, 300);
    ck_assert_uint_eq(stats.started, 300);
    ck_assert_uint_eq(stats.succeeded, 100);
    ck_assert_uint_eq(stats.ignored, 100);
    ck_assert_uint_eq(stats.dropped, 100);
    ck_assert_uint_eq(stats.running + stats.queued + stats.in_flight + stats.waiting, 0);
    ck_assert_uint_ge(stats.workers, 1);
    ck_assert_int_eq(weir_limiter_stats(weir_pool_limiter(pool), &stats), 0);
    ck_assert_uint_eq(stats.submitted, 300);
    ck_assert_uint_eq(stats.succeeded, 100);
    ck_assert_uint_eq(stats.in_flight, 0);
    weir_test_pool_end(pool);
}
END_TEST

/* NULL where it may not be is EINVAL, and nothing happens. */
START_TEST(null_arguments)
{
    weir_stats stats = {0};
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(1, 1);
    ck_assert_int_eq(weir_pool_create(NULL, "x", &config), EINVAL);
    ck_assert_int_eq(weir_pool_create(&pool, NULL, &config), 0);
    ck_assert_int_eq(weir_pool_submit(NULL, weir_test_nothing, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_submit(pool, NULL, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_trysubmit(NULL, weir_test_nothing, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_trysubmit(pool, NULL, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_timedsubmit(NULL, weir_test_nothing, NULL, 0), EINVAL);
    ck_assert_int_eq(weir_pool_timedsubmit(pool, NULL, NULL, 0), EINVAL);
    ck_assert_int_eq(weir_pool_submit_copy(NULL, weir_test_nothing, "", 1), EINVAL);
    ck_assert_int_eq(weir_pool_submit_copy(pool, NULL, "", 1), EINVAL);
    ck_assert_int_eq(weir_pool_trysubmit_copy(NULL, weir_test_nothing, "", 1), EINVAL);
    ck_assert_int_eq(weir_pool_trysubmit_copy(pool, weir_test_nothing, NULL, 1), EINVAL);
    ck_assert_int_eq(weir_pool_call(NULL, weir_test_nothing, NULL, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_call(pool, NULL, NULL, NULL), EINVAL);
    ck_assert_int_eq(weir_pool_drain(NULL, 0), EINVAL);
    ck_assert_int_eq(weir_pool_shutdown(NULL, WEIR_FINISH, 0), EINVAL);
    ck_assert_int_eq(weir_pool_shutdown(pool, (weir_shutdown)9, 0), EINVAL);
    ck_assert_int_eq(weir_pool_pause(NULL), EINVAL);
    ck_assert_int_eq(weir_pool_resume(NULL), EINVAL);
    ck_assert_int_eq(weir_pool_stats(NULL, &stats), EINVAL);
    ck_assert_int_eq(weir_pool_stats(pool, NULL), EINVAL);
    ck_assert_ptr_null(weir_pool_limiter(NULL));
    ck_assert_int_eq(weir_limiter_destroy(weir_pool_limiter(pool)), EINVAL);
    ck_assert_int_eq(weir_pool_destroy(NULL), EINVAL);
    ck_assert_uint_eq(weir_test_stats(pool).submitted, 0);
    weir_test_pool_end(pool);
}
END_TEST

/* Errors come back as values; errno stays as it was. */
START_TEST(errno_is_left_alone)
{
    struct weir_test_gate gate;
    weir_stats stats = {0};
    weir_test_gate_init(&gate);
    errno = 1234;
    weir_pool *pool = weir_test_pool(1, 0);
    int results[6] = {
        weir_pool_submit(pool, weir_test_pass, &gate),
        weir_pool_trysubmit(pool, weir_test_nothing, NULL),
        weir_pool_timedsubmit(pool, weir_test_nothing, NULL, weir_after_ns(1000000)),
        weir_pool_drain(pool, weir_after_ns(1000000)),
        weir_pool_shutdown(pool, WEIR_FINISH, weir_after_ns(1000000)),
        weir_pool_stats(pool, &stats),
    };
    ck_assert_int_eq(errno, 1234);
    weir_test_gate_open(&gate);
    int destroyed = weir_pool_destroy(pool);
    ck_assert_int_eq(errno, 1234);
    const int expected[6] = {0, EAGAIN, ETIMEDOUT, ETIMEDOUT, ETIMEDOUT, 0};
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(results[i], expected[i]);
    ck_assert_int_eq(destroyed, 0);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* submit happens before the job, the job's end before call and drain return: plain variables are enough. */
static weir_outcome increment_plain(void *arg)
{
    *(int *)arg += 1;
    return WEIR_SUCCESS;
}

START_TEST(ordered_memory)
{
    weir_pool *pool = weir_test_pool(1, 100);
    int plain = 5;
    for (int i = 0; i < 100; i++) {
        plain++;
        ck_assert_int_eq(weir_pool_call(pool, increment_plain, &plain, NULL), 0);
    }
    ck_assert_int_eq(plain, 205);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(weir_pool_submit(pool, increment_plain, &plain), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(plain, 305);
    weir_test_pool_end(pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *submits = tcase_create("submit");
    tcase_set_timeout(submits, TEST_LIMIT_S);
    tcase_add_test(submits, ceiling);
    tcase_add_test(submits, no_queue);
    tcase_add_test(submits, submit_blocks);
    tcase_add_test(submits, timed_submit);
    tcase_add_loop_test(submits, one_of_three_gives_up, 0, 3);
    tcase_add_test(submits, first_in_first_out);
    tcase_add_test(submits, blocked_in_order);
    tcase_add_loop_test(submits, copies, 0, 10);
    tcase_add_test(submits, copy_of_nothing);
    tcase_add_test(submits, copies_are_shed);
    suite_add_tcase(suite, submits);
    TCase *nesting = tcase_create("call and nesting");
    tcase_set_timeout(nesting, TEST_LIMIT_S);
    tcase_add_test(nesting, call_returns_the_outcome);
    tcase_add_test(nesting, call_inside_alone);
    tcase_add_test(nesting, call_inside_with_room);
    tcase_add_test(nesting, call_inside_all_at_once);
    tcase_add_test(nesting, submit_inside_at_the_ceiling);
    tcase_add_test(nesting, fan_out_ends);
    suite_add_tcase(suite, nesting);
    TCase *figures = tcase_create("figures and arguments");
    tcase_set_timeout(figures, TEST_LIMIT_S);
    tcase_add_test(figures, bad_outcome);
    tcase_add_test(figures, figures_at_rest);
    tcase_add_test(figures, null_arguments);
    tcase_add_test(figures, errno_is_left_alone);
    tcase_add_test(figures, ordered_memory);
    suite_add_tcase(suite, figures);
    return weir_test_main(suite);
}
