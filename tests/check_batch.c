/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Short jobs that a worker has taken together: whatever becomes of the first, the others are as good as queued. In most
 * tests the first waits at a gate while the pool takes it for short. */

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "limiter/limiter.h"
#include "pool/pool.h"
#include "stats/live_file.h"
#include "pool_support.h"
#include "sanitized.h"

enum { FOLLOWERS = 40, BEFORE = 5, SHORT_NS = 100 };

/* How many jobs are in batches and have not begun. Not by weir__lock, which would recall them. */
static uint32_t in_batches(weir_pool *pool)
{
    uint32_t jobs = 0;
    weir__mutex_lock(&pool->limiter->lock);
    for (struct weir__worker *worker = pool->batches; worker != NULL; worker = worker->batch.next) {
        uint32_t claims = atomic_load(&worker->batch.claims);
        jobs += claims >> 16 > (claims & 0xffff) ? (claims >> 16) - (claims & 0xffff) : 0;
    }
    (void)pthread_mutex_unlock(&pool->limiter->lock);
    return jobs;
}

struct stuck {
    weir_pool *pool;
    struct weir_test_gate gate;
    atomic_uint ran; /* of the followers */
};

/* fn(arg) comes behind so many of the followers, the others behind it, many of them in its batch. */
static void queue_as(struct stuck *stuck, unsigned place, weir_fn *fn, void *arg, uint64_t job_ns)
{
    atomic_init(&stuck->ran, 0);
    ck_assert_int_eq(weir_pool_pause(stuck->pool), 0);
    for (unsigned i = 0; i <= FOLLOWERS; i++)
        ck_assert_int_eq(i == place ? weir_pool_submit(stuck->pool, fn, arg)
                                    : weir_pool_submit(stuck->pool, weir_test_count, &stuck->ran),
                         0);
    weir_test_take_jobs_for(stuck->pool, job_ns);
    ck_assert_int_eq(weir_pool_resume(stuck->pool), 0);
}

static void queue_at(struct stuck *stuck, unsigned place, weir_fn *fn, void *arg)
{
    queue_as(stuck, place, fn, arg, SHORT_NS);
}

static void queue(struct stuck *stuck, weir_fn *fn, void *arg)
{
    queue_at(stuck, 0, fn, arg);
}

static void begin(struct stuck *stuck, uint32_t limit, weir_fn *fn, void *arg)
{
    weir_config config = weir_test_fixed(2, 4096);
    config.min_limit = 1;
    config.initial_limit = limit;
    stuck->pool = weir_test_pool_of(&config);
    weir_test_gate_init(&stuck->gate);
    queue(stuck, fn, arg);
}

static void begin_at_gate(struct stuck *stuck, uint32_t limit)
{
    begin(stuck, limit, weir_test_pass, &stuck->gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&stuck->gate) == 1);
}

/* Drains a pool and ends it: every permit and every node has come back. */
static void end_pool(weir_pool *pool)
{
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    weir__lock(pool->limiter);
    ck_assert_uint_eq(pool->limiter->in_flight, 0);
    ck_assert_uint_eq(pool->limiter->backlog.reserved, 0);
    ck_assert_uint_eq(pool->limiter->partitions.all[0].in_use, 0);
    ck_assert_uint_eq(pool->limiter->partitions.all[0].queued, 0);
    ck_assert_uint_eq(pool->limiter->partitions.queued, 0);
    for (unsigned kind = 0; kind < 2; kind++)
        ck_assert_uint_eq(pool->nodes.count[kind] + pool->inbox.nodes.count[kind], pool->node_count[kind]);
    weir__unlock(pool->limiter);
    weir_test_pool_end(pool);
}

static void end(struct stuck *stuck)
{
    weir_test_gate_open(&stuck->gate);
    end_pool(stuck->pool);
    weir_test_gate_destroy(&stuck->gate);
}

/* ---- tests ---- */

START_TEST(figures_know_of_them)
{
    struct stuck stuck;
    begin_at_gate(&stuck, 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    weir_stats stats = weir_test_stats(stuck.pool);
    ck_assert_uint_eq(stats.running, 1);
    ck_assert_uint_eq(stats.in_flight, 1);
    ck_assert_uint_eq(stats.queued, FOLLOWERS);
    ck_assert_uint_eq(weir_test_accounted(&stats), FOLLOWERS + 1);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

/* As many as a worker runs in 10 us, at most half of those that wait, at most 32, the one that runs included; none
 * where jobs take 2 us, and none behind one with a handle. */
START_TEST(how_many)
{
    static const struct {
        unsigned job_ns, waiting, handle_at, together;
    } cases[] = {{100, 40, 99, 20}, {100, 90, 99, 32}, {100, 3, 99, 1}, {999, 90, 99, 10},
                 {1999, 90, 99, 5}, {2000, 90, 99, 1}, {100, 90, 7, 7}, {100, 90, 1, 1}};
    weir_pool *pool = weir_test_pool(1, 4096);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_job job = WEIR_JOB_INIT(weir_test_nothing, NULL);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
    for (unsigned i = 1; i <= cases[_i].waiting; i++)
        ck_assert_int_eq(i == cases[_i].handle_at ? weir_job_submit(pool, &job)
                                                  : weir_pool_submit(pool, weir_test_nothing, NULL),
                         0);
    weir_test_take_jobs_for(pool, cases[_i].job_ns);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    ck_assert_uint_eq(in_batches(pool) + 1, cases[_i].together);
    weir_test_gate_open(&gate);
    end_pool(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST
enum { SIZES = 8 };

/* One in the middle of a batch stops at the gate. One worker. */
static void begin_in_the_middle(struct stuck *stuck, const weir_config *config)
{
    stuck->pool = weir_test_pool_of(config);
    weir_test_gate_init(&stuck->gate);
    queue_at(stuck, BEFORE, weir_test_pass, &stuck->gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&stuck->gate) == 1);
    ck_assert_uint_ge(in_batches(stuck->pool), 2);
}

/* Those that ended before the one that hangs are told as ended, their permits and samples come back. */
START_TEST(ended_ones_are_booked)
{
    struct stuck stuck;
    weir_config config = weir_test_fixed(1, 4096);
    begin_in_the_middle(&stuck, &config);
    weir_stats stats = weir_test_stats(stuck.pool);
    ck_assert_uint_eq(stats.succeeded, BEFORE);
    ck_assert_uint_eq(stats.running, 1);
    ck_assert_uint_eq(stats.queued, FOLLOWERS - BEFORE);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

/* Submits as the number says; what it returns. None of them waits. */
static int submit_by(unsigned way, struct stuck *stuck, weir_job *job)
{
    switch (way) {
    case 0:
        return weir_pool_trysubmit(stuck->pool, weir_test_count, &stuck->ran);
    case 1:
        return weir_pool_timedsubmit(stuck->pool, weir_test_count, &stuck->ran, 0);
    case 2:
        return weir_pool_submit(stuck->pool, weir_test_count, &stuck->ran);
    case 3:
        return weir_job_trysubmit(stuck->pool, job);
    default:
        return weir_pool_trysubmit_copy(stuck->pool, weir_test_nothing, &way, sizeof way);
    }
}
enum { WAYS = 5 };

/* At the ceiling by what the pool has booked, with places by what has begun: whoever looks for one finds all of them,
 * and none beyond. */
START_TEST(begun_ones_hold_no_place)
{
    struct stuck stuck;
    weir_job jobs[BEFORE + 1];
    weir_config config = weir_test_fixed(1, FOLLOWERS + 1);
    begin_in_the_middle(&stuck, &config);
    stuck.pool->pace.job_ns = 1000000; /* nobody is let in by the clock */
    for (int i = 0; i <= BEFORE; i++) {
        jobs[i] = (weir_job)WEIR_JOB_INIT(weir_test_count, &stuck.ran);
        ck_assert_int_eq(submit_by((unsigned)_i, &stuck, &jobs[i]), 0);
    }
    ck_assert_int_eq(weir_pool_trysubmit(stuck.pool, weir_test_count, &stuck.ran), EAGAIN);
    ck_assert_uint_eq(stuck.pool->counters.blocked, 0);
    end(&stuck);
}
END_TEST

/* What another process reads of the pool: 0 if it is as it should be. */
static int read_live(void *arg)
{
    const char *directory = arg;
    struct weir__record *records = NULL;
    size_t count = 0;
    unsigned odd = 0;
    int code = 1;
    if (weir__live_read(directory, &records, &count, &odd) == 0 && count == 1)
        code = records[0].figures[WEIR__FIGURE_SUCCEEDED] == BEFORE &&
                       records[0].figures[WEIR__FIGURE_QUEUED] == FOLLOWERS - BEFORE + 1
                   ? 0
                   : 2;
    free(records);
    weir_test_end_unseen(code);
    return code;
}

/* The same in the live file, which a submit brings up to date. */
START_TEST(live_file_knows_of_them)
{
    char directory[] = "/tmp/weir-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(directory));
    struct stuck stuck;
    weir_config config = weir_test_fixed(1, 4096);
    config.stats_dir = directory;
    begin_in_the_middle(&stuck, &config);
    struct timespec pause = {.tv_nsec = 30000000}; /* a submit stores what was stored 20 ms ago */
    (void)nanosleep(&pause, NULL);
    ck_assert_int_eq(weir_pool_submit(stuck.pool, weir_test_count, &stuck.ran), 0);
    ck_assert_int_eq(weir_test_in_child(read_live, directory), 0);
    end(&stuck);
    (void)rmdir(directory);
}
END_TEST

/* As the estimator would; for good. */
static void set_limit(weir_pool *pool, uint32_t limit)
{
    struct weir__wakes wakes = {0};
    ck_assert_int_eq(weir_limiter_freeze(weir_pool_limiter(pool)), 0);
    weir__lock(pool->limiter);
    pool->limiter->limit = pool->limiter->estimate = limit;
    weir__limiter_dispatch(pool->limiter, &wakes);
    weir__unlock(pool->limiter);
    weir__limiter_wake(pool->limiter, &wakes);
}

/* So many workers sleep, one permit is left. */
static void begin_with_idle_workers(struct stuck *stuck, unsigned workers)
{
    weir_config config = weir_test_fixed(2, 4096);
    config.min_limit = 1;
    stuck->pool = weir_test_pool_of(&config);
    weir_test_gate_init(&stuck->gate);
    weir_test_occupy(stuck->pool, &stuck->gate, workers);
    weir_test_gate_open(&stuck->gate);
    ck_assert_int_eq(weir_pool_drain(stuck->pool, WEIR_FOREVER), 0);
    WEIR_TEST_UNTIL(weir_test_stats(stuck->pool).idle == workers);
    weir_test_gate_close(&stuck->gate);
    set_limit(stuck->pool, 1);
}

static void *submit_one(void *arg)
{
    struct stuck *stuck = arg;
    return weir_pool_submit(stuck->pool, weir_test_count, &stuck->ran) == 0 ? stuck : NULL;
}

/* A submitter brings in what was in a batch, finds that a further worker can run of it, and has to wait itself: for
 * that worker, so it first wakes it, or starts it. */
START_TEST(blocked_submitter_wakes_first)
{
    struct stuck stuck;
    begin_with_idle_workers(&stuck, (unsigned)_i);
    queue(&stuck, weir_test_pass, &stuck.gate);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&stuck.gate) == 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    weir__mutex_lock(&stuck.pool->limiter->lock); /* not weir__lock: nobody but the submitter is to bring them in */
    stuck.pool->limiter->limit = stuck.pool->limiter->estimate = 2;
    stuck.pool->limiter->depth = 8;
    stuck.pool->inbox.room = 0;
    stuck.pool->pace.job_ns = 1000000; /* nobody is let in by the clock */
    (void)pthread_mutex_unlock(&stuck.pool->limiter->lock);
    ck_assert_ptr_nonnull(weir_test_join(weir_test_thread(submit_one, &stuck)));
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS + 1);
}
END_TEST

/* The only worker holds them, no other is awake; a second permit has one started. */
START_TEST(more_permits_free_them)
{
    struct stuck stuck;
    begin_at_gate(&stuck, 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    set_limit(stuck.pool, 2);
    WEIR_TEST_UNTIL(atomic_load(&stuck.ran) == FOLLOWERS);
    end(&stuck);
}
END_TEST

/* Two workers, all permits out: the one that ends its own jobs takes those of the other. */
START_TEST(another_worker_takes_them)
{
    struct stuck stuck;
    begin_at_gate(&stuck, 2);
    WEIR_TEST_UNTIL(atomic_load(&stuck.ran) == FOLLOWERS);
    end(&stuck);
}
END_TEST

/* Comes again and again, as the head of a queue that is never empty. */
static weir_outcome again(void *arg)
{
    struct stuck *stuck = arg;
    if (atomic_load(&stuck->ran) == FOLLOWERS)
        return WEIR_SUCCESS;
    return weir_pool_trysubmit(stuck->pool, again, stuck) == 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

/* The other worker never runs out of jobs, and nobody else takes the lock, nor the estimator, for it is frozen. */
START_TEST(a_busy_worker_looks_after_them)
{
    struct stuck stuck = {.pool = weir_test_pool(2, 4096)};
    struct weir_test_gate other;
    weir_test_gate_init(&other);
    weir_test_gate_init(&stuck.gate);
    ck_assert_int_eq(weir_limiter_freeze(weir_pool_limiter(stuck.pool)), 0);
    weir_test_occupy(stuck.pool, &other, 1);
    queue_as(&stuck, 0, weir_test_pass, &stuck.gate, 1500); /* so that two workers are of use */
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&stuck.gate) == 1);
    for (int i = 0; i < BEFORE; i++)
        ck_assert_int_eq(weir_pool_submit(stuck.pool, again, &stuck), 0);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    weir__mutex_lock(&stuck.pool->limiter->lock);
    weir__pace_block(stuck.pool, stuck.pool->batches); /* as if it were known to be long: the other one is of use */
    (void)pthread_mutex_unlock(&stuck.pool->limiter->lock);
    weir_test_gate_open(&other);
    WEIR_TEST_UNTIL(atomic_load(&stuck.ran) == FOLLOWERS);
    end(&stuck);
    weir_test_gate_destroy(&other);
}
END_TEST

START_TEST(pause_stops_them)
{
    struct stuck stuck;
    begin_at_gate(&stuck, 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    ck_assert_int_eq(weir_pool_pause(stuck.pool), 0);
    weir_test_gate_open(&stuck.gate);
    WEIR_TEST_UNTIL(weir_test_stats(stuck.pool).running == 0);
    ck_assert_uint_eq(atomic_load(&stuck.ran), 0);
    ck_assert_uint_eq(weir_test_stats(stuck.pool).queued, FOLLOWERS);
    ck_assert_int_eq(weir_pool_resume(stuck.pool), 0);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

static void *open_later(void *arg)
{
    struct stuck *stuck = arg;
    WEIR_TEST_UNTIL(weir_test_stats(stuck->pool).cancelled == FOLLOWERS);
    weir_test_gate_open(&stuck->gate);
    return NULL;
}

START_TEST(shutdown_cancels_them)
{
    struct stuck stuck;
    begin_at_gate(&stuck, 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    pthread_t thread = weir_test_thread(open_later, &stuck);
    ck_assert_int_eq(weir_pool_shutdown(stuck.pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    (void)weir_test_join(thread);
    weir_stats stats = weir_test_stats(stuck.pool);
    ck_assert_uint_eq(stats.cancelled, FOLLOWERS);
    ck_assert_uint_eq(stats.succeeded, 1);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), 0);
}
END_TEST

static weir_outcome exit_thread(void *unused)
{
    (void)unused;
    pthread_exit(NULL);
}

static weir_outcome cancel_thread(void *unused)
{
    (void)unused;
    (void)pthread_cancel(pthread_self());
    pthread_testcancel();
    return WEIR_SUCCESS;
}

/* The request is pending when the job returns: its outcome counts. */
static weir_outcome cancel_at_the_end(void *unused)
{
    (void)unused;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    (void)pthread_cancel(pthread_self());
    return WEIR_SUCCESS;
}

/* A job that ends its thread, at the head of a batch and in the middle of one. */
START_TEST(end_of_the_thread)
{
    static weir_fn *const ends[] = {exit_thread, cancel_thread, cancel_at_the_end};
    weir_fn *fn = ends[_i % 3];
    weir_config config = weir_test_fixed(1, 4096);
    struct stuck stuck = {.pool = weir_test_pool_of(&config)};
    weir_test_gate_init(&stuck.gate);
    queue_at(&stuck, _i < 3 ? 0 : BEFORE, fn, NULL);
    ck_assert_int_eq(weir_pool_drain(stuck.pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(stuck.pool);
    unsigned ignored = fn == cancel_at_the_end ? 0 : 1;
    ck_assert_uint_eq(stats.succeeded, FOLLOWERS + 1 - ignored);
    ck_assert_uint_eq(stats.ignored, ignored);
    ck_assert_uint_eq(stats.in_flight, 0);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

/* Runs a job in the middle of a batch, which returns WEIR_IGNORE if all was well; the others run as well. */
static void run_amid(weir_fn *fn)
{
    weir_config config = weir_test_fixed(1, 4096);
    struct stuck stuck = {.pool = weir_test_pool_of(&config)};
    weir_test_gate_init(&stuck.gate);
    queue_at(&stuck, BEFORE, fn, &stuck);
    ck_assert_int_eq(weir_pool_drain(stuck.pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(weir_test_stats(stuck.pool).ignored, 1);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}

/* What nobody may wait for in a job. */
static weir_outcome end_the_pool(void *arg)
{
    weir_pool *pool = ((const struct stuck *)arg)->pool;
    bool refused = weir_pool_drain(pool, WEIR_FOREVER) == EDEADLK &&
                   weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER) == EDEADLK && weir_pool_destroy(pool) == EDEADLK;
    return refused ? WEIR_IGNORE : WEIR_SUCCESS;
}

START_TEST(end_of_the_own_pool)
{
    run_amid(end_the_pool);
}
END_TEST

/* Behind a batch that hangs, jobs with handles expire and are cancelled as anywhere. */
START_TEST(handles_behind_them)
{
    struct stuck stuck;
    begin_at_gate(&stuck, 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    weir_job late = WEIR_JOB_INIT(weir_test_nothing, NULL);
    weir_job unwanted = WEIR_JOB_INIT(weir_test_nothing, NULL);
    late.deadline_ns = weir_after_ns(20000000);
    ck_assert_int_eq(weir_job_submit(stuck.pool, &unwanted), 0);
    ck_assert_int_eq(weir_job_submit(stuck.pool, &late), 0);
    ck_assert_int_eq(weir_job_wait(&late, WEIR_FOREVER), ETIMEDOUT);
    ck_assert_int_eq(weir_job_cancel(&unwanted), 0);
    ck_assert_int_eq(weir_job_wait(&unwanted, WEIR_FOREVER), ECANCELED);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

static weir_outcome ask_in_vain(void *arg)
{
    const struct stuck *stuck = arg;
    return weir_pool_call(stuck->pool, weir_test_nothing, NULL, NULL) == 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

/* It waits for a job that stands behind them, for which there is no second permit. */
START_TEST(nested_call)
{
    struct stuck stuck;
    begin(&stuck, 1, ask_in_vain, &stuck);
    ck_assert_int_eq(weir_pool_drain(stuck.pool, WEIR_FOREVER), 0);
    weir_stats stats = weir_test_stats(stuck.pool);
    ck_assert_uint_eq(weir_test_accounted(&stats), stats.submitted);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

/* Says how many jobs of its batch came before it. */
static weir_outcome note_place(void *arg)
{
    const struct weir__batch *batch = &weir__current.worker->batch;
    atomic_store((atomic_uint *)arg, batch->is_open ? batch->current : 0);
    return WEIR_SUCCESS;
}

static weir_outcome drop(void *unused)
{
    (void)unused;
    return WEIR_DROPPED;
}

/* A worker whose job is dropped takes no other one before it has looked whether somebody else can. */
START_TEST(dropped_job_ends_it)
{
    for (int drops = 0; drops < 2; drops++) {
        weir_pool *pool = weir_test_pool(1, 4096);
        atomic_uint place = 99;
        ck_assert_int_eq(weir_pool_pause(pool), 0);
        ck_assert_int_eq(weir_pool_submit(pool, drops != 0 ? drop : weir_test_nothing, NULL), 0);
        ck_assert_int_eq(weir_pool_submit(pool, note_place, &place), 0);
        for (int i = 0; i < FOLLOWERS; i++)
            ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
        weir_test_take_jobs_for(pool, SHORT_NS);
        ck_assert_int_eq(weir_pool_resume(pool), 0);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
        ck_assert_uint_eq(atomic_load(&place), drops != 0 ? 0 : 1);
        ck_assert_uint_eq(weir_test_stats(pool).succeeded, (unsigned)(FOLLOWERS + 2 - drops));
        end_pool(pool);
    }
}
END_TEST

/* ---- copies, order ---- */

struct letter {
    struct weir_test_record *record;
    unsigned number;
    unsigned char ballast[200]; /* a large one is an allocation of its own */
};

static weir_outcome note(void *arg)
{
    struct letter letter;
    memcpy(&letter, arg, offsetof(struct letter, ballast));
    weir_test_record_add(letter.record, letter.number);
    return WEIR_SUCCESS;
}

static void *look(void *arg)
{
    struct stuck *stuck = arg;
    while (atomic_load(&stuck->ran) == 0)
        (void)weir_test_stats(stuck->pool);
    return NULL;
}

/* Copied arguments reach their jobs, in their order, while snapshots recall batches all the time. */
START_TEST(order_of_copies)
{
    static struct weir_test_record record = WEIR_TEST_RECORD_INIT;
    struct stuck stuck = {.pool = weir_test_pool(1, 4096)};
    atomic_init(&stuck.ran, 0);
    pthread_t thread = weir_test_thread(look, &stuck);
    for (unsigned i = 0; i < WEIR_TEST_RECORD_SIZE; i++) {
        struct letter letter = {.record = &record, .number = i};
        size_t size = i % 7 == 0 ? sizeof letter : offsetof(struct letter, ballast);
        ck_assert_int_eq(weir_pool_submit_copy(stuck.pool, note, &letter, size), 0);
    }
    ck_assert_int_eq(weir_pool_drain(stuck.pool, WEIR_FOREVER), 0);
    atomic_store(&stuck.ran, 1);
    (void)weir_test_join(thread);
    end_pool(stuck.pool);
    ck_assert_uint_eq(record.count, WEIR_TEST_RECORD_SIZE);
    for (unsigned i = 0; i < WEIR_TEST_RECORD_SIZE; i++)
        ck_assert_uint_eq(record.values[i], i);
}
END_TEST

/* While a batch is on its way nothing is counted twice: many snapshots, each of which adds up. */
START_TEST(every_snapshot_adds_up)
{
    unsigned jobs = weir_test_scaled(200000, 2000);
    weir_pool *pool = weir_test_pool((uint32_t)_i, 1000);
    for (unsigned i = 0; i < jobs; i++) {
        if (weir_pool_submit(pool, weir_test_nothing, NULL) != 0)
            ck_abort();
        if (i % 64 != 0)
            continue;
        weir_stats stats = weir_test_stats(pool);
        ck_assert_uint_eq(stats.submitted, i + 1);
        ck_assert_uint_eq(weir_test_accounted(&stats), i + 1);
        ck_assert_uint_le(stats.in_flight, (unsigned)_i);
        ck_assert_uint_le(stats.running, (unsigned)_i);
    }
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(weir_test_stats(pool).succeeded, jobs);
    end_pool(pool);
}
END_TEST

/* ---- limits that fall ---- */

/* Two workers, each at the head of a batch. One of them has to stop there when the limit falls. */
START_TEST(fallen_limit_stops_one)
{
    struct stuck stuck;
    struct weir_test_gate other;
    weir_test_gate_init(&other);
    begin_at_gate(&stuck, 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    weir__mutex_lock(&stuck.pool->limiter->lock);
    struct weir__unit *first = stuck.pool->batches->batch.units[1]; /* it will be the other worker's first */
    ((struct weir__plain *)(void *)first)->fn = weir_test_pass;
    ((struct weir__plain *)(void *)first)->arg = &other;
    (void)pthread_mutex_unlock(&stuck.pool->limiter->lock);
    set_limit(stuck.pool, 2);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&other) == 1);
    weir_test_take_jobs_for(stuck.pool, SHORT_NS);
    set_limit(stuck.pool, 1);
    weir_test_gate_open(&other);
    WEIR_TEST_UNTIL(weir_test_stats(stuck.pool).running == 1);
    ck_assert_uint_eq(atomic_load(&stuck.ran), 0);
    ck_assert_uint_eq(weir_test_stats(stuck.pool).queued, FOLLOWERS - 1);
    end(&stuck);
    weir_test_gate_destroy(&other);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS - 1);
}
END_TEST

/* ---- a fork ---- */

enum { BALLAST = 16000 }; /* FOLLOWERS of them are far more than a pool takes */

struct heavy {
    atomic_uint *ran;
    unsigned char ballast[BALLAST];
};

static weir_outcome count_heavy(void *arg)
{
    atomic_fetch_add(((const struct heavy *)arg)->ran, 1);
    return WEIR_SUCCESS;
}

/* How much memory is allocated; 0: nobody knows. */
static size_t allocated(void)
{
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

static int in_child(void *arg)
{
    struct stuck *stuck = arg;
    size_t before = allocated();
    int error = weir_pool_destroy(stuck->pool);
    size_t freed = before - allocated();
    if (error == 0 && before > 0 && !IS_SANITIZED && freed < (size_t)FOLLOWERS * BALLAST)
        error = 1;
    weir_test_end_unseen(error);
    return error;
}

/* The child gives back what the batch of a thread that it does not have owned. */
START_TEST(child_of_a_fork)
{
    static struct heavy heavy;
    struct stuck stuck = {.pool = weir_test_pool(1, 4096)};
    heavy.ran = &stuck.ran;
    atomic_init(&stuck.ran, 0);
    weir_test_gate_init(&stuck.gate);
    ck_assert_int_eq(weir_pool_pause(stuck.pool), 0);
    ck_assert_int_eq(weir_pool_submit(stuck.pool, weir_test_pass, &stuck.gate), 0);
    for (int i = 0; i < FOLLOWERS; i++)
        ck_assert_int_eq(weir_pool_submit_copy(stuck.pool, count_heavy, &heavy, sizeof heavy), 0);
    weir_test_take_jobs_for(stuck.pool, SHORT_NS);
    ck_assert_int_eq(weir_pool_resume(stuck.pool), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&stuck.gate) == 1);
    ck_assert_uint_ge(in_batches(stuck.pool), 2);
    ck_assert_int_eq(weir_test_in_child(in_child, &stuck), 0);
    end(&stuck);
    ck_assert_uint_eq(atomic_load(&stuck.ran), FOLLOWERS);
}
END_TEST

/* Forks in a job; the child has the batch that it is in, but no pool. */
static weir_outcome fork_in_batch(void *arg)
{
    struct stuck *stuck = arg;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        bool fine = weir_pool_trysubmit(stuck->pool, weir_test_count, &stuck->ran) == ECHILD &&
                    weir_pool_drain(stuck->pool, WEIR_FOREVER) == ECHILD && weir_pool_destroy(stuck->pool) == 0;
        _exit(fine ? 0 : 1);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? WEIR_IGNORE : WEIR_SUCCESS;
}

START_TEST(fork_in_one_of_them)
{
    run_amid(fork_in_batch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tests = tcase_create("batch");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_test(tests, figures_know_of_them);
    tcase_add_loop_test(tests, how_many, 0, SIZES);
    tcase_add_test(tests, ended_ones_are_booked);
    tcase_add_loop_test(tests, begun_ones_hold_no_place, 0, WAYS);
    tcase_add_test(tests, live_file_knows_of_them);
    tcase_add_loop_test(tests, blocked_submitter_wakes_first, 1, 3);
    tcase_add_test(tests, more_permits_free_them);
    tcase_add_test(tests, another_worker_takes_them);
    tcase_add_test(tests, a_busy_worker_looks_after_them);
    tcase_add_test(tests, pause_stops_them);
    tcase_add_test(tests, shutdown_cancels_them);
    tcase_add_loop_test(tests, end_of_the_thread, 0, 6);
    tcase_add_test(tests, end_of_the_own_pool);
    tcase_add_test(tests, handles_behind_them);
    tcase_add_test(tests, nested_call);
    tcase_add_test(tests, dropped_job_ends_it);
    tcase_add_test(tests, order_of_copies);
    tcase_add_loop_test(tests, every_snapshot_adds_up, 1, 5);
    tcase_add_test(tests, fallen_limit_stops_one);
    tcase_add_test(tests, child_of_a_fork);
    tcase_add_test(tests, fork_in_one_of_them);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
