/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What happens when memory or threads run out at the k-th attempt, for every k that a scenario reaches.
 *
 * The program is linked with -Wl,--wrap= for malloc, calloc, realloc, free, mmap, munmap and pthread_create, so that
 * the calls of the library (and of this file) come through the functions below. A sanitizer's own interceptors lie
 * behind them: it sees every block that a call really gets, and nothing of those that fail here. */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool_support.h"
#include "stats/live_file.h"

/* ---- the faults ---- */

struct fault {
    atomic_uint calls; /* since the fault was set */
    atomic_uint first; /* the first call that fails, from 1; 0: none */
    atomic_uint many;  /* how many fail from there on */
};

static struct fault memory_fault;
static struct fault thread_fault;
static atomic_long blocks; /* allocated and not yet freed */

static bool fails(struct fault *fault)
{
    unsigned call = atomic_fetch_add(&fault->calls, 1) + 1;
    unsigned first = atomic_load(&fault->first);
    return first != 0 && call >= first && call - first < atomic_load(&fault->many);
}

static void set_fault(struct fault *fault, unsigned first, unsigned many)
{
    atomic_store(&fault->first, 0);
    atomic_store(&fault->many, many);
    atomic_store(&fault->calls, 0);
    atomic_store(&fault->first, first);
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__real_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
int __real_munmap(void *memory, size_t length);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg);

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    void *memory = fails(&memory_fault) ? NULL : __real_malloc(size);
    if (memory == NULL)
        errno = ENOMEM;
    else
        atomic_fetch_add(&blocks, 1);
    return memory;
}

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    void *memory = fails(&memory_fault) ? NULL : __real_calloc(count, size);
    if (memory == NULL)
        errno = ENOMEM;
    else
        atomic_fetch_add(&blocks, 1);
    return memory;
}

void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
    void *moved = fails(&memory_fault) ? NULL : __real_realloc(memory, size);
    if (moved == NULL)
        errno = ENOMEM;
    else if (memory == NULL)
        atomic_fetch_add(&blocks, 1);
    return moved;
}

void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&blocks, 1);
    __real_free(memory);
}

void *__wrap_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
    void *memory = MAP_FAILED;
    if (fails(&memory_fault))
        errno = ENOMEM;
    else
        memory = __real_mmap(address, length, protection, flags, descriptor, offset);
    if (memory != MAP_FAILED)
        atomic_fetch_add(&blocks, 1);
    return memory;
}

int __wrap_munmap(void *memory, size_t length);
int __wrap_munmap(void *memory, size_t length)
{
    atomic_fetch_sub(&blocks, 1);
    return __real_munmap(memory, length);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    return fails(&thread_fault) ? EAGAIN : __real_pthread_create(thread, attributes, run, arg);
}

static void no_faults(void)
{
    set_fault(&memory_fault, 0, 0);
    set_fault(&thread_fault, 0, 0);
}

static void start_quiet(void)
{
    no_faults();
    weir_test_log_capture();
}

static void end_quiet(void)
{
    no_faults();
    weir_test_log_release();
}

/* ---- a scenario that uses everything ---- */

struct outcome {
    int created;
    unsigned accepted;
    atomic_uint ran;
    int odd;       /* the first undocumented error */
    int destroyed; /* or 0 */
    long leaked;
};

static void submitted(struct outcome *outcome, int error)
{
    if (error == 0)
        outcome->accepted++;
    else if (error != ENOMEM && error != EAGAIN && outcome->odd == 0)
        outcome->odd = error;
}

/* A call that is made, or finds no memory. */
static void refused(struct outcome *outcome, int error)
{
    if (error != 0 && error != ENOMEM && outcome->odd == 0)
        outcome->odd = error;
}

static weir_outcome count_copied(void *arg)
{
    atomic_uint *ran;
    memcpy(&ran, arg, sizeof ran);
    return weir_test_count(ran);
}

/* Jobs that stay in their workers until the gate opens. */
static void occupy(weir_pool *pool, struct weir_test_gate *gate, struct outcome *outcome)
{
    unsigned gated = weir_pool_trysubmit(pool, weir_test_pass, gate) == 0;
    gated += weir_pool_trysubmit(pool, weir_test_pass, gate) == 0;
    outcome->accepted += gated;
    atomic_fetch_add(&outcome->ran, gated);
}

/* A queue that grows over several chunks behind a busy worker, all kinds of jobs. No call of it can block for ever when
 * memory is short: what may wait has a deadline, or is made when nothing is queued. */
static void use_queue(weir_pool *pool, struct weir_test_gate *gate, struct outcome *outcome)
{
    atomic_uint *ran = &outcome->ran;
    char large[100] = {0};
    memcpy(large, &ran, sizeof ran);
    submitted(outcome, weir_pool_call(pool, weir_test_count, ran, NULL));
    submitted(outcome, weir_pool_submit_copy(pool, count_copied, large, sizeof large));
    submitted(outcome, weir_pool_submit_copy(pool, count_copied, &ran, sizeof ran));
    (void)weir_pool_drain(pool, WEIR_FOREVER);
    occupy(pool, gate, outcome);
    for (int i = 0; i < 1100; i++)
        submitted(outcome, weir_pool_trysubmit(pool, weir_test_count, ran));
    weir_test_gate_open(gate);
    (void)weir_pool_drain(pool, WEIR_FOREVER);
    submitted(outcome, weir_pool_call(pool, weir_test_count, ran, NULL));
}

enum { HANDLES = 12 };

/* One with a deadline too far to pass, which starts the thread that minds deadlines, one whose deadline may pass, one
 * without; in each partition; every fourth is told to completions. */
static weir_job handle_of(unsigned i, weir_completions *completions, atomic_uint *ran)
{
    static const char *const partitions[] = {"live", NULL, "batch"};
    weir_job job = WEIR_JOB_INIT(weir_test_count, ran);
    job.partition = partitions[i % 3];
    job.completions = i % 4 == 3 ? completions : NULL;
    if (i % 3 == 0)
        job.deadline_ns = weir_after_ns(UINT64_C(3600000000000));
    else if (i % 3 == 1)
        job.deadline_ns = weir_after_ns(500000);
    return job;
}

/* Every end is told once, where it was asked for. */
static void take_completions(weir_completions *completions, unsigned told, struct outcome *outcome)
{
    for (; told > 0; told--) {
        if (weir_completions_next(completions) == NULL)
            outcome->odd = -1;
    }
    if (weir_completions_next(completions) != NULL)
        outcome->odd = -2;
    weir_completions_destroy(completions);
}

/* Partitions that change their shares, handles, deadlines and completions. */
static void use_handles(weir_pool *pool, struct weir_test_gate *gate, struct outcome *outcome)
{
    weir_job jobs[HANDLES];
    bool accepted[HANDLES];
    weir_completions *completions = NULL;
    unsigned told = 0;
    refused(outcome, weir_completions_create(&completions));
    refused(outcome, weir_pool_configure(pool, "PARTITIONS", "live=0.25,batch=0.25"));
    occupy(pool, gate, outcome);
    for (unsigned i = 0; i < HANDLES; i++) {
        jobs[i] = handle_of(i, completions, &outcome->ran);
        int error = weir_job_trysubmit(pool, &jobs[i]);
        accepted[i] = error == 0;
        told += error == 0 && jobs[i].completions != NULL;
        if (error != ETIMEDOUT) /* its deadline has passed by now */
            submitted(outcome, error);
    }
    weir_test_gate_open(gate);
    for (unsigned i = 0; i < HANDLES; i++) {
        int status = accepted[i] ? weir_job_wait(&jobs[i], WEIR_FOREVER) : 0;
        if (status == ETIMEDOUT && i % 3 == 1)
            atomic_fetch_add(&outcome->ran, 1);
        else if (status != 0)
            outcome->odd = status;
    }
    (void)weir_pool_drain(pool, WEIR_FOREVER);
    take_completions(completions, told, outcome);
}

static const struct scenario {
    const char *partitions;
    void (*use)(weir_pool *pool, struct weir_test_gate *gate, struct outcome *outcome);
} scenarios[] = {{NULL, use_queue}, {"live=0.5,batch=0.25", use_handles}};

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static void run_scenario(const struct scenario *scenario, struct outcome *outcome)
{
    struct weir_test_gate gate;
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(3, 1200);
    config.partitions = scenario->partitions;
    memset(outcome, 0, sizeof *outcome);
    weir_test_gate_init(&gate);
    long before = atomic_load(&blocks);
    outcome->created = weir_pool_create(&pool, "faulty", &config);
    if (outcome->created == 0) {
        scenario->use(pool, &gate, outcome);
        outcome->destroyed = weir_pool_destroy(pool);
    }
    outcome->leaked = atomic_load(&blocks) - before;
    weir_test_gate_destroy(&gate);
}

static void assert_outcome(struct outcome *outcome, unsigned k)
{
    no_faults();
    ck_assert_msg(outcome->created == 0 || outcome->created == ENOMEM, "fault %u: create %d", k, outcome->created);
    ck_assert_msg(outcome->odd == 0, "fault %u: a submit returned %d", k, outcome->odd);
    ck_assert_msg(outcome->destroyed == 0, "fault %u: destroy %d", k, outcome->destroyed);
    ck_assert_msg(atomic_load(&outcome->ran) == outcome->accepted, "fault %u: %u of %u ran", k,
                  atomic_load(&outcome->ran), outcome->accepted);
    ck_assert_msg(outcome->leaked == 0, "fault %u: %ld blocks leaked", k, outcome->leaked);
}

/* How many attempts the scenario makes without a fault. */
static unsigned reach(const struct scenario *scenario, struct fault *fault)
{
    struct outcome outcome;
    run_scenario(scenario, &outcome); /* what happens once per process is not the scenario's */
    set_fault(fault, 0, 0);
    run_scenario(scenario, &outcome);
    unsigned calls = atomic_load(&fault->calls);
    assert_outcome(&outcome, 0);
    ck_assert_int_eq(outcome.created, 0);
    return calls;
}

/* The next fault to inject. All of them count where tests are fast; elsewhere those of the long middle, which is one
 * loop that fills the queue, are thinned out: each costs a pool and a thousand jobs. */
static unsigned next_fault(unsigned k, unsigned reached)
{
    enum { EDGE = 150 };
    unsigned step = k > EDGE && k + EDGE < reached ? weir_test_slow() : 1;
    return k + step;
}

/* The k-th allocation fails, alone or with three after it: create says ENOMEM, submits say what they may, every
 * accepted job runs, nothing leaks, and the next pool is as good as ever. */
START_TEST(memory)
{
    const struct scenario *scenario = &scenarios[_i / 2];
    start_quiet();
    unsigned reached = reach(scenario, &memory_fault);
    ck_assert_uint_ge(reached, 8);
    for (unsigned k = 1; k <= reached; k = next_fault(k, reached)) {
        struct outcome outcome;
        set_fault(&memory_fault, k, _i % 2 == 0 ? 1 : 4);
        run_scenario(scenario, &outcome);
        assert_outcome(&outcome, k);
    }
    (void)reach(scenario, &memory_fault);
    end_quiet();
}
END_TEST

/* The same for the k-th thread, a worker or the one that minds deadlines. */
START_TEST(threads)
{
    const struct scenario *scenario = &scenarios[_i / 2];
    start_quiet();
    unsigned reached = reach(scenario, &thread_fault);
    ck_assert_uint_ge(reached, 2);
    for (unsigned k = 1; k <= reached + 2; k++) {
        struct outcome outcome;
        set_fault(&thread_fault, k, _i % 2 == 0 ? 1 : 4);
        run_scenario(scenario, &outcome);
        ck_assert_int_eq(outcome.created, 0);
        assert_outcome(&outcome, k);
    }
    end_quiet();
}
END_TEST

/* The limiter's creation under the same faults. */
START_TEST(limiter_memory)
{
    start_quiet();
    weir_limiter *limiter = NULL;
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.flags = WEIR_NO_ENV;
    config.algorithm = (uint32_t)_i;
    config.partitions = "live=0.5,batch=0.25";
    ck_assert_int_eq(weir_limiter_create(&limiter, "faulty", &config), 0);
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
    for (unsigned k = 1;; k++) {
        limiter = NULL;
        long before = atomic_load(&blocks);
        set_fault(&memory_fault, k, 1);
        int error = weir_limiter_create(&limiter, "faulty", &config);
        unsigned calls = atomic_load(&memory_fault.calls);
        no_faults();
        bool untouched = error == 0 || limiter == NULL;
        if (error == 0)
            error = weir_limiter_destroy(limiter);
        long leaked = atomic_load(&blocks) - before;
        ck_assert_int_eq(error, calls >= k ? ENOMEM : 0);
        ck_assert_int_eq(leaked, 0);
        ck_assert(untouched);
        if (calls < k)
            break;
    }
    end_quiet();
}
END_TEST

/* The figures of a process: where memory is short, ENOMEM and not a line. */
START_TEST(writing_memory)
{
    start_quiet();
    weir_pool *pool = weir_test_pool(1, 1);
    FILE *out = tmpfile();
    ck_assert_ptr_nonnull(out);
    for (unsigned k = 1;; k++) {
        long before = atomic_load(&blocks);
        set_fault(&memory_fault, k, 1);
        int error = weir_stats_write(out, WEIR_PROMETHEUS);
        unsigned calls = atomic_load(&memory_fault.calls);
        no_faults();
        long leaked = atomic_load(&blocks) - before;
        ck_assert_int_eq(error, calls >= k ? ENOMEM : 0);
        ck_assert_int_eq(leaked, 0);
        if (error == 0)
            break;
        ck_assert_int_eq(ftell(out), 0);
    }
    ck_assert_int_gt(ftell(out), 0);
    (void)fclose(out);
    weir_test_pool_end(pool);
    end_quiet();
}
END_TEST

/* ---- live files ---- */

static char directory[64];

/* A pool that is to publish its figures: where memory is short it does not come to be, or goes without its file and
 * says so. */
static void publish(unsigned k, unsigned *calls)
{
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(1, 1);
    config.stats_dir = directory;
    weir_test_log_capture();
    long before = atomic_load(&blocks);
    set_fault(&memory_fault, k, 1);
    int error = weir_pool_create(&pool, "live", &config);
    *calls = atomic_load(&memory_fault.calls);
    no_faults();
    bool told = strstr(weir_test_log_text(), "STATS_DIR") != NULL;
    int destroyed = error == 0 ? weir_pool_destroy(pool) : 0;
    long leaked = atomic_load(&blocks) - before;
    ck_assert_int_eq(destroyed, 0);
    ck_assert_msg(leaked == 0, "fault %u: create %d, %ld blocks leaked", k, error, leaked);
    bool has_failed = k != 0 && *calls >= k;
    ck_assert_msg(error == (has_failed && !told ? ENOMEM : 0), "fault %u: create %d, told %d", k, error, told);
    ck_assert_msg(has_failed || !told, "told without a fault");
}

/* The reader is another process, for nobody sees a lock of his own. */
static int read_under_faults(void *unused)
{
    struct weir__record *records;
    size_t count;
    unsigned odd;
    (void)unused;
    for (unsigned k = 1;; k++) {
        long before = atomic_load(&blocks);
        set_fault(&memory_fault, k, 1);
        int error = weir__live_read(directory, &records, &count, &odd);
        unsigned calls = atomic_load(&memory_fault.calls);
        no_faults();
        if (error != (calls >= k ? ENOMEM : 0) || count != (error == 0 ? 1 : 0) || odd != 0)
            return 1;
        free(records);
        if (atomic_load(&blocks) != before)
            return 2;
        if (calls < k)
            return k > 1 ? 0 : 3;
    }
}

/* Memory that is short when a live file is made, and when it is read. */
START_TEST(live_memory)
{
    unsigned calls = 0;
    unsigned k = 0;
    (void)snprintf(directory, sizeof directory, "/tmp/weir-faults-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    start_quiet();
    publish(0, &calls);
    do {
        publish(++k, &calls);
    } while (calls >= k);
    weir_pool *pool = NULL;
    weir_config config = weir_test_fixed(1, 1);
    config.stats_dir = directory;
    ck_assert_int_eq(weir_pool_create(&pool, "live", &config), 0);
    int status = weir_test_in_child(read_under_faults, NULL);
    weir_test_pool_end(pool);
    ck_assert_int_eq(status, 0);
    end_quiet();
    ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

/* ---- threads, one by one ---- */

/* No worker at all: every kind of submit says EAGAIN, the job is not queued, and the next submit tries again. */
START_TEST(no_worker_at_all)
{
    atomic_uint ran = 0;
    start_quiet();
    weir_pool *pool = weir_test_pool(2, 4);
    set_fault(&thread_fault, 1, UINT32_MAX);
    int results[] = {
        weir_pool_submit(pool, weir_test_count, &ran),
        weir_pool_trysubmit(pool, weir_test_count, &ran),
        weir_pool_timedsubmit(pool, weir_test_count, &ran, WEIR_FOREVER),
        weir_pool_submit_copy(pool, weir_test_count, "", 1),
        weir_pool_submit_copy(pool, weir_test_count, (char[100]){0}, 100),
        weir_pool_call(pool, weir_test_count, &ran, NULL),
    };
    no_faults();
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        ck_assert_int_eq(results[i], EAGAIN);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.submitted, 0);
    ck_assert_uint_eq(stats.queued + stats.running + stats.workers, 0);
    ck_assert_uint_eq(stats.worker_start_failures, 6);
    ck_assert_int_eq(weir_pool_drain(pool, 0), 0);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_count, &ran, NULL), 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), 1);
    end_quiet();
}
END_TEST

/* A pool that never got a worker can be paused, drained, shut down and destroyed. */
START_TEST(end_without_a_worker)
{
    start_quiet();
    weir_pool *pool = weir_test_pool(2, 4);
    set_fault(&thread_fault, 1, UINT32_MAX);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), EAGAIN);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_pool_shutdown(pool, WEIR_CANCEL, WEIR_FOREVER), 0);
    weir_test_pool_end(pool);
    end_quiet();
}
END_TEST

/* Failed growth is not fatal: the workers that exist do all the work, the failures are counted and logged once, and the
 * pool reaches its limit when threads are to be had again. */
START_TEST(growth_fails_and_recovers)
{
    enum { LIMIT = 6 };
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    start_quiet();
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(LIMIT, 100);
    set_fault(&thread_fault, 2, UINT32_MAX);
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 1);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    ck_assert_uint_ge(weir_test_stats(pool).worker_start_failures, 1);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 20);
    ck_assert_uint_eq(weir_test_stats(pool).workers, 1);
    no_faults();
    weir_test_gate_close(&gate);
    weir_test_occupy(pool, &gate, LIMIT);
    ck_assert_uint_eq(weir_test_stats(pool).workers, LIMIT);
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    const char *line = strstr(weir_test_log_text(), "could not be started");
    ck_assert_ptr_nonnull(line);
    ck_assert_ptr_null(strstr(line + 1, "could not be started"));
    weir_test_gate_destroy(&gate);
    end_quiet();
}
END_TEST

/* Starts 2 to 5 fail, then they succeed: with every further job another attempt is made, until the limit is reached. */
START_TEST(passing_shortage)
{
    enum { LIMIT = 4 };
    struct weir_test_gate gate;
    start_quiet();
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(LIMIT, 100);
    set_fault(&thread_fault, 2, 4);
    unsigned jobs = 0;
    while (weir_test_gate_waiting(&gate) < LIMIT && jobs < 100) {
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
        jobs++;
        WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) >= 1);
        weir_test_yield();
    }
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == LIMIT);
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.worker_start_failures, 4);
    ck_assert_uint_eq(stats.workers, LIMIT);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(weir_test_stats(pool).succeeded, jobs);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
    end_quiet();
}
END_TEST

static weir_outcome exit_thread(void *arg)
{
    pthread_exit(arg);
    return WEIR_SUCCESS;
}

/* When the only worker is ended by its job and cannot be replaced at once, the jobs that were accepted still run. */
START_TEST(last_worker_ended)
{
    atomic_uint ran = 0;
    start_quiet();
    weir_pool *pool = weir_test_pool(1, 20);
    ck_assert_int_eq(weir_pool_pause(pool), 0);
    ck_assert_int_eq(weir_pool_submit(pool, exit_thread, NULL), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_count, &ran), 0);
    set_fault(&thread_fault, 1, 4);
    ck_assert_int_eq(weir_pool_resume(pool), 0);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(atomic_load(&ran), 10);
    ck_assert_uint_eq(weir_test_stats(pool).worker_start_failures, 4);
    weir_test_pool_end(pool);
    end_quiet();
}
END_TEST

struct nested {
    weir_pool *pool;
    atomic_uint *ran;
    int result;
};

static weir_outcome call_inside(void *arg)
{
    struct nested *nested = arg;
    nested->result = weir_pool_call(nested->pool, weir_test_count, nested->ran, NULL);
    return WEIR_SUCCESS;
}

/* When the only running job waits for another one whose worker cannot be started at once, that is tried again. */
START_TEST(nested_call)
{
    atomic_uint ran = 0;
    start_quiet();
    weir_pool *pool = weir_test_pool(2, 2);
    struct nested nested = {.pool = pool, .ran = &ran, .result = -1};
    set_fault(&thread_fault, 2, 3);
    ck_assert_int_eq(weir_pool_call(pool, call_inside, &nested, NULL), 0);
    ck_assert_int_eq(nested.result, 0);
    ck_assert_uint_eq(atomic_load(&ran), 1);
    ck_assert_uint_eq(weir_test_stats(pool).worker_start_failures, 3);
    weir_test_pool_end(pool);
    end_quiet();
}
END_TEST

/* While memory for the queue is short, a submitter waits for room instead of failing, and goes on when a job ends. */
struct submitter {
    weir_pool *pool;
    atomic_uint *ran;
    int result;
};

static void *submit_thread(void *arg)
{
    struct submitter *submitter = arg;
    submitter->result = weir_pool_submit(submitter->pool, weir_test_count, submitter->ran);
    return NULL;
}

START_TEST(queue_memory)
{
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    unsigned accepted = 0;
    start_quiet();
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 5000);
    weir_test_occupy(pool, &gate, 1);
    set_fault(&memory_fault, 1, UINT32_MAX);
    while (accepted < 5000 && weir_pool_trysubmit(pool, weir_test_count, &ran) == 0)
        accepted++;
    struct submitter submitter = {.pool = pool, .ran = &ran, .result = -1};
    pthread_t thread;
    int started = __real_pthread_create(&thread, NULL, submit_thread, &submitter);
    if (started == 0)
        WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 1);
    weir_test_gate_open(&gate);
    if (started == 0)
        (void)pthread_join(thread, NULL);
    int drained = weir_pool_drain(pool, WEIR_FOREVER);
    no_faults();
    ck_assert_int_eq(started, 0);
    ck_assert_int_eq(drained, 0);
    ck_assert_uint_ge(accepted, 100);
    ck_assert_uint_lt(accepted, 5000);
    ck_assert_int_eq(submitter.result, 0);
    ck_assert_uint_eq(atomic_load(&ran), accepted + 1);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
    end_quiet();
}
END_TEST

/* ---- refusals ---- */

/* However many jobs are shed, they take no memory: of a hundred thousand the queue's depth is accepted, and the rest
 * allocate nothing. */
START_TEST(refusals_allocate_nothing)
{
    enum { DEPTH = 64, JOBS = 100000 };
    struct weir_test_gate gate;
    atomic_uint ran = 0;
    unsigned accepted = 0;
    char copied[20] = "";
    start_quiet();
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, DEPTH);
    weir_test_occupy(pool, &gate, 1);
    for (int i = 0; i < DEPTH; i++)
        accepted += weir_pool_trysubmit(pool, weir_test_count, &ran) == 0;
    set_fault(&memory_fault, 0, 0);
    for (int i = 0; i < JOBS; i++) {
        weir_job job = WEIR_JOB_INIT(weir_test_count, &ran);
        accepted += weir_pool_trysubmit(pool, weir_test_count, &ran) == 0;
        accepted += weir_job_trysubmit(pool, &job) == 0;
        accepted += weir_pool_timedsubmit(pool, weir_test_count, &ran, 1) == 0;
    }
    unsigned calls = atomic_load(&memory_fault.calls);
    ck_assert_uint_eq(calls, 0);
    ck_assert_uint_eq(accepted, DEPTH);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_submit_copy(pool, weir_test_nothing, copied, sizeof copied), 0);
    weir_test_pool_end(pool);
    ck_assert_uint_eq(atomic_load(&ran), DEPTH);
    weir_test_gate_destroy(&gate);
    end_quiet();
}
END_TEST

/* In a pool that has been busy before, neither plain jobs, nor small copies, nor handles, nor waits take memory. */
START_TEST(jobs_allocate_nothing)
{
    enum { JOBS = 2000 };
    atomic_uint ran = 0;
    char copied[48] = "";
    unsigned errors = 0;
    unsigned calls = 0;
    start_quiet();
    weir_config config = weir_test_fixed(2, 64);
    config.idle_timeout = UINT64_C(3600000000000);
    config.min_limit = 2;
    weir_pool *pool = weir_test_pool_of(&config);
    for (int round = 0; round < 2; round++) {
        set_fault(&memory_fault, 0, 0);
        for (int i = 0; i < JOBS; i++) {
            weir_job job = WEIR_JOB_INIT(weir_test_count, &ran);
            errors += weir_pool_submit(pool, weir_test_count, &ran) != 0; /* an assertion would allocate */
            errors += weir_pool_submit_copy(pool, weir_test_nothing, copied, sizeof copied) != 0;
            errors += weir_job_submit(pool, &job) != 0;
            errors += weir_job_wait(&job, WEIR_FOREVER) != 0;
        }
        errors += weir_pool_drain(pool, WEIR_FOREVER) != 0;
        calls = atomic_load(&memory_fault.calls);
        struct weir_test_gate gate; /* both workers exist from here on */
        weir_test_gate_init(&gate);
        weir_test_occupy(pool, &gate, 2);
        weir_test_gate_open(&gate);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
        weir_test_gate_destroy(&gate);
    }
    ck_assert_uint_eq(errors, 0);
    ck_assert_uint_eq(calls, 0);
    ck_assert_uint_eq(atomic_load(&ran), 2 * 2 * JOBS);
    weir_test_pool_end(pool);
    end_quiet();
}
END_TEST

/* An estimator allocates nothing after its creation. */
START_TEST(estimators_allocate_nothing)
{
    weir_config config;
    weir_estimator *estimator = NULL;
    weir_figures figures = {0};
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.algorithm = (uint32_t)_i;
    no_faults();
    ck_assert_int_eq(weir_estimator_create(&estimator, &config), 0);
    set_fault(&memory_fault, 0, 0);
    for (uint64_t k = 1; k <= 20000; k++) {
        weir_sample sample = {
            .start_ns = k * 1000000, .rtt_ns = 1000000 + k % 7 * 300000, .outcome = k % 50 == 0 ? 2 : 0};
        sample.in_flight = weir_estimator_limit(estimator);
        (void)weir_estimator_update(estimator, &sample);
        (void)weir_estimator_reaction_ns(estimator);
    }
    int error = weir_estimator_figures(estimator, &figures);
    unsigned calls = atomic_load(&memory_fault.calls);
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(calls, 0);
    weir_estimator_destroy(estimator);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *each = tcase_create("each attempt");
    tcase_set_timeout(each, TEST_LIMIT_S);
    tcase_add_loop_test(each, memory, 0, 2 * SCENARIOS);
    tcase_add_loop_test(each, threads, 0, 2 * SCENARIOS);
    tcase_add_loop_test(each, limiter_memory, WEIR_VEGAS2, WEIR_CUSTOM);
    tcase_add_test(each, writing_memory);
    tcase_add_test(each, live_memory);
    suite_add_tcase(suite, each);
    TCase *cases = tcase_create("cases");
    tcase_set_timeout(cases, TEST_LIMIT_S);
    tcase_add_test(cases, no_worker_at_all);
    tcase_add_test(cases, end_without_a_worker);
    tcase_add_test(cases, growth_fails_and_recovers);
    tcase_add_test(cases, passing_shortage);
    tcase_add_test(cases, last_worker_ended);
    tcase_add_test(cases, nested_call);
    tcase_add_test(cases, queue_memory);
    tcase_add_test(cases, refusals_allocate_nothing);
    tcase_add_test(cases, jobs_allocate_nothing);
    tcase_add_loop_test(cases, estimators_allocate_nothing, WEIR_VEGAS2, WEIR_CUSTOM);
    suite_add_tcase(suite, cases);
    return weir_test_main(suite);
}
