/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Live files, seen by other processes: every look is taken by a child. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "pool/pool.h"
#include "pool_support.h"
#include "stats/live_file.h"

static char directory[64]; /* of the test that runs */

enum { FILLED = 8 }; /* partitions of a record that a test fills in: about a thousand words */

static void make_directory(void)
{
    (void)snprintf(directory, sizeof directory, "/tmp/weir-live-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    weir_test_log_capture();
}

static void remove_directory(void)
{
    weir_test_log_release();
    ck_assert_msg(rmdir(directory) == 0, "%s is not empty", directory);
}

static const char *path_of(pid_t pid, uint64_t id)
{
    static char path[128];
    (void)snprintf(path, sizeof path, "%s/weir-%ld-%" PRIu64 ".live", directory, (long)pid, id);
    return path;
}

static weir_pool *live_pool(uint32_t limit, uint32_t depth)
{
    weir_config config = weir_test_fixed(limit, depth);
    config.stats_dir = directory;
    return weir_test_pool_of(&config);
}

/* What a child is to see; it says which of it does not hold. */
struct expected {
    size_t count;
    unsigned odd;
    unsigned running; /* of the first */
    unsigned queued;
    unsigned succeeded;
};

static int look(void *arg)
{
    const struct expected *expected = arg;
    struct weir__record *records = NULL;
    size_t count = 0;
    unsigned odd = 0;
    int wrong = weir__live_read(directory, &records, &count, &odd) != 0;
    if (count != expected->count || odd != expected->odd)
        wrong = 2;
    else if (count > 0 && records[0].figures[WEIR__FIGURE_RUNNING] != expected->running)
        wrong = 3;
    else if (count > 0 && records[0].figures[WEIR__FIGURE_QUEUED] != expected->queued)
        wrong = 4;
    else if (count > 0 && records[0].figures[WEIR__FIGURE_SUCCEEDED] != expected->succeeded)
        wrong = 5;
    else if (count > 0 && (strcmp(records[0].name, "test") != 0 || records[0].pid != (uint32_t)getppid() ||
                           strcmp(records[0].algorithm, "fixed") != 0))
        wrong = 6;
    free(records);
    return wrong;
}

static void assert_seen(struct expected expected)
{
    int status = weir_test_in_child(look, &expected);
    ck_assert(WIFEXITED(status));
    ck_assert_msg(WEXITSTATUS(status) == 0, "a look at the live files found fault %d", WEXITSTATUS(status));
}

/* ---- a pool's file ---- */

START_TEST(comes_and_goes)
{
    struct stat status;
    weir_pool *pool = live_pool(2, 4);
    assert_seen((struct expected){.count = 1});
    ck_assert_int_eq(stat(path_of(getpid(), pool->limiter->fork_lock.id), &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    ck_assert_uint_eq(status.st_nlink, 1);
    weir_pool *second = live_pool(2, 4);
    assert_seen((struct expected){.count = 2});
    weir_test_pool_end(pool);
    assert_seen((struct expected){.count = 1});
    weir_test_pool_end(second);
    assert_seen((struct expected){.count = 0});
}
END_TEST

/* When all workers sleep the file says so: there is nobody left who would correct it. */
START_TEST(idle_is_told)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = live_pool(1, 8);
    unsigned done = 0;
    for (int round = 0; round < 20; round++) {
        weir_test_gate_close(&gate);
        weir_test_occupy(pool, &gate, 1);
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
        weir_test_gate_open(&gate);
        ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
        WEIR_TEST_UNTIL(weir_test_stats(pool).idle == 1);
        done += 2;
        assert_seen((struct expected){.count = 1, .succeeded = done});
    }
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* While nothing ends, a submit tells what waits, also where calls had been so short that few are looked at. */
START_TEST(stuck_is_told)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = live_pool(1, 100);
    weir_test_occupy(pool, &gate, 1);
    atomic_store(&pool->limiter->sparse, _i == 1);
    unsigned queued = 0;
    uint64_t past_ns = weir_after_ns(200000000);
    while (queued < 50) {
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
        queued++;
    }
    WEIR_TEST_UNTIL(weir_now_ns() > past_ns); /* long enough for the next submit to be told */
    ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
    assert_seen((struct expected){.count = 1, .running = 1, .queued = 51});
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Between two stores, submits leave their jobs in the inbox, as without a file. Not each of them must: the machine may
 * stand still until the next store is due. */
START_TEST(submits_stay_short)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = live_pool(1, 1000000);
    weir_test_occupy(pool, &gate, 1);
    uint64_t give_up_ns = weir_after_ns(UINT64_C(60000000000));
    unsigned left = 0;
    while (left < 100 && weir_now_ns() < give_up_ns) {
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_nothing, NULL), 0);
        left += atomic_load(&pool->inbox.pending) != 0;
    }
    weir_test_gate_open(&gate);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
    ck_assert_uint_ge(left, 100);
}
END_TEST

START_TEST(limiters_file)
{
    weir_limiter *limiter = NULL;
    weir_permit permit = {{0}};
    weir_config config = weir_test_fixed(3, 0);
    config.stats_dir = directory;
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", &config), 0);
    for (unsigned i = 1; i <= 5; i++) {
        ck_assert_int_eq(weir_limiter_acquire(limiter, &permit), 0);
        ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
        assert_seen((struct expected){.count = 1, .succeeded = i});
    }
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* A fork child that destroys what it inherited leaves the file and its lock to the parent. */
static int destroy_inherited(void *pool)
{
    return weir_pool_destroy(pool);
}

START_TEST(fork_child)
{
    weir_pool *pool = live_pool(1, 1);
    ck_assert_int_eq(weir_test_in_child(destroy_inherited, pool), 0);
    assert_seen((struct expected){.count = 1});
    weir_test_pool_end(pool);
}
END_TEST

/* ---- what may stand in the way ---- */

START_TEST(no_directory)
{
    weir_config config = weir_test_fixed(1, 1);
    config.stats_dir = "/nonexistent/weir";
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "STATS_DIR=\"/nonexistent/weir\""));
    weir_test_pool_end(pool);
    struct weir__record *records = NULL;
    size_t count = 0;
    unsigned odd = 0;
    ck_assert_int_eq(weir__live_read("/nonexistent/weir", &records, &count, &odd), ENOENT);
}
END_TEST

/* A symbolic link under the file's name, or that of its making, is not followed. */
START_TEST(symbolic_links)
{
    char victim[128];
    char hidden[128];
    struct stat status;
    weir_pool *before = weir_test_pool(1, 1);
    uint64_t id = before->limiter->fork_lock.id + 1;
    weir_test_pool_end(before);
    (void)snprintf(victim, sizeof victim, "%s/victim", directory);
    (void)snprintf(hidden, sizeof hidden, "%s/.weir-%ld-%" PRIu64 ".live.new", directory, (long)getpid(), id);
    int file = open(victim, O_CREAT | O_WRONLY, 0644);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(close(file), 0);
    ck_assert_int_eq(symlink(victim, path_of(getpid(), id)), 0);
    ck_assert_int_eq(symlink(victim, hidden), 0);
    weir_pool *pool = live_pool(1, 1);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "its figures are not published"));
    weir_test_pool_end(pool);
    ck_assert_int_eq(stat(victim, &status), 0);
    ck_assert_int_eq(status.st_size, 0);
    ck_assert_int_eq(unlink(path_of(getpid(), id)), 0);
    ck_assert_int_eq(unlink(victim), 0);
    ck_assert_int_eq(lstat(hidden, &status), -1);
}
END_TEST

/* A file of another version is told apart and left alone; one that is too short, likewise. */
START_TEST(other_versions)
{
    int error = 0;
    struct weir__live *live = weir__live_create(directory, 1, FILLED, &error);
    ck_assert_ptr_nonnull(live);
    uint32_t version = WEIR__LIVE_VERSION + 1;
    pid_t child = fork(); /* to open and close the file here would give up the lock */
    if (child == 0) {
        int file = open(path_of(getppid(), 1), O_RDWR);
        ssize_t put = pwrite(file, &version, sizeof version, offsetof(struct weir__live_file, version));
        _exit(put == (ssize_t)sizeof version ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    assert_seen((struct expected){.count = 0, .odd = 1});
    weir__live_close(live, true);
}
END_TEST

/* ---- consistency ---- */

static void fill(struct weir__record *record, uint64_t value)
{
    for (unsigned i = 0; i < WEIR__FIGURES; i++)
        record->figures[i] = value;
    for (unsigned i = 0; i < WEIR__RECORD_BUCKETS; i++)
        record->histograms[2].buckets[i] = value;
    record->partition_count = FILLED;
    record->partitions[FILLED - 1].figures[WEIR__PARTITION_SHED] = value;
}

static bool is_whole(const struct weir__record *record)
{
    uint64_t value = record->figures[0];
    for (unsigned i = 0; i < WEIR__FIGURES; i++) {
        if (!weir__figure_rows[i].is_age && record->figures[i] != value)
            return false;
    }
    for (unsigned i = 0; i < WEIR__RECORD_BUCKETS; i++) {
        if (record->histograms[2].buckets[i] != value)
            return false;
    }
    return value == 0 || record->partitions[FILLED - 1].figures[WEIR__PARTITION_SHED] == value;
}

/* Reads until the last store is seen; the values never go back. */
static int read_until_over(uint64_t last)
{
    uint64_t before = 0;
    while (before < last) {
        struct weir__record *records = NULL;
        size_t count = 0;
        unsigned odd = 0;
        if (weir__live_read(directory, &records, &count, &odd) != 0 || count + odd != 1)
            return 1;
        if (count == 1 && !is_whole(&records[0]))
            return 2;
        if (count == 1 && records[0].figures[0] < before)
            return 3;
        if (count == 1)
            before = records[0].figures[0];
        free(records);
    }
    return 0;
}

/* A reader that does nothing else never sees half a record, in a million stores. */
START_TEST(never_torn)
{
    int error = 0;
    uint64_t last = weir_test_scaled(1000000, 100000);
    static struct weir__record record;
    static struct weir__live *live; /* static: the child's leak check must find it */
    live = weir__live_create(directory, 1, FILLED, &error);
    ck_assert_ptr_nonnull(live);
    pid_t child = fork();
    if (child == 0)
        _exit(read_until_over(last));
    for (uint64_t value = 1; value <= last; value++) {
        fill(&record, value);
        weir__live_store(live, &record);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    weir__live_close(live, true);
}
END_TEST

static void store_for_ever(int ready)
{
    int error = 0;
    static struct weir__record record;
    struct weir__live *live = weir__live_create(directory, 1, FILLED, &error);
    if (live == NULL)
        _exit(1);
    for (uint64_t value = 1;; value++) {
        fill(&record, value);
        weir__live_store(live, &record);
        if (value == 1 && write(ready, "x", 1) != 1)
            _exit(1);
    }
}

/* The current record of a file whose writer is dead. */
static void assert_whole(const char *path)
{
    static struct weir__record record;
    int file = open(path, O_RDONLY);
    ck_assert_int_ge(file, 0);
    struct stat status;
    ck_assert_int_eq(fstat(file, &status), 0);
    struct weir__live_file *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    ck_assert_ptr_ne(mapped, MAP_FAILED);
    ck_assert_uint_eq((size_t)status.st_size, weir__live_size(mapped->record_words));
    uint64_t done = atomic_load(&mapped->record_turns.done);
    ck_assert_uint_le(atomic_load(&mapped->record_turns.begun) - done, 1);
    size_t words = mapped->record_words;
    memcpy(&record, (const void *)(mapped->records + (done & 1) * words), words * sizeof(uint64_t));
    ck_assert(is_whole(&record));
    ck_assert_uint_ge(record.figures[0], 1);
    (void)munmap(mapped, (size_t)status.st_size);
    (void)close(file);
}

/* Starts a process that says by a byte when it is at work, and kills it soon after. */
static pid_t kill_at_a_random_moment(void (*work)(int ready), uint64_t *state)
{
    int ready[2];
    char byte;
    int status;
    ck_assert_int_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0)
        work(ready[1]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    atomic_uint_fast64_t spins = weir_test_random(state) % 200000;
    while (atomic_load(&spins) > 0)
        atomic_fetch_sub(&spins, 1);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    (void)close(ready[0]);
    (void)close(ready[1]);
    return child;
}

/* The writer is killed at any moment: its file still holds a whole record, is known as stale, and goes; also when it
 * is the next writer that comes across it. */
START_TEST(killed_writers)
{
    uint64_t state = weir_test_seed();
    for (unsigned round = 0; round < weir_test_scaled(60, 20); round++) {
        pid_t child = kill_at_a_random_moment(store_for_ever, &state);
        assert_whole(path_of(child, 1));
        if (round % 2 == 0) {
            assert_seen((struct expected){.count = 0});
        } else {
            weir_pool *pool = live_pool(1, 1);
            assert_seen((struct expected){.count = 1});
            ck_assert_int_ne(access(path_of(child, 1), F_OK), 0);
            weir_test_pool_end(pool);
        }
        ck_assert_int_ne(access(path_of(child, 1), F_OK), 0);
    }
}
END_TEST

/* ---- a limiter's figures while its limit moves ---- */

enum { MOST = 40 };

static int start_moving(void *state, const struct weir_config *config)
{
    *(uint32_t *)state = config->initial_limit;
    return 0;
}

/* Another limit after every sample. */
static uint32_t move(void *state, const weir_sample *sample)
{
    uint32_t *limit = state;
    (void)sample;
    *limit = *limit % MOST + 1;
    return *limit;
}

static const weir_estimator_class moving = {
    .name = "moving", .state_size = sizeof(uint32_t), .init = start_moving, .update = move};

static weir_limiter *moving_limiter(void)
{
    weir_limiter *limiter = NULL;
    weir_config config = weir_test_fixed(1, 0);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &moving;
    config.max_limit = MOST;
    config.stats_dir = directory;
    config.partitions = "a=0.5";
    if (weir_limiter_create(&limiter, "test", &config) != 0)
        ck_abort_msg("no limiter");
    return limiter;
}

/* One call; every so often a change of the configuration, which is stored at once. */
static bool move_once(weir_limiter *limiter, unsigned turn)
{
    weir_permit permit = {{0}};
    int error = weir_limiter_acquire_many(limiter, &permit, 1, turn % 2 == 0 ? "a" : NULL, WEIR_FOREVER);
    if (error == 0 && turn % 100 == 0)
        error = weir_limiter_configure(limiter, "MAX_LIMIT", turn % 200 == 0 ? "39" : "40");
    if (error == 0)
        error = weir_limiter_release(limiter, &permit, WEIR_SUCCESS);
    return error == 0;
}

/* Whether the figures can be those of one moment. */
static bool is_possible(const struct weir__record *record)
{
    const uint64_t *figures = record->figures;
    uint64_t granted = 0;
    uint64_t limit = figures[WEIR__FIGURE_LIMIT];
    uint64_t over = figures[WEIR__FIGURE_SUCCEEDED] + figures[WEIR__FIGURE_IGNORED] + figures[WEIR__FIGURE_DROPPED];
    for (uint32_t i = 0; i < record->partition_count; i++)
        granted += record->partitions[i].figures[WEIR__PARTITION_GRANTED];
    return limit >= 1 && limit <= figures[WEIR__FIGURE_MAX_LIMIT] && figures[WEIR__FIGURE_MAX_LIMIT] <= MOST &&
           figures[WEIR__FIGURE_MAX_LIMIT] >= MOST - 1 && figures[WEIR__FIGURE_RUNNING] <= 1 &&
           figures[WEIR__FIGURE_IN_FLIGHT] == figures[WEIR__FIGURE_RUNNING] &&
           figures[WEIR__FIGURE_SUBMITTED] == over + figures[WEIR__FIGURE_RUNNING] &&
           granted == figures[WEIR__FIGURE_SUBMITTED] && record->partition_count == 2 &&
           strcmp(record->name, "test") == 0;
}

/* All options, each in a whole line, with a MAX_LIMIT that there was. */
static bool are_options(const char *text)
{
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    return lines == weir__options_count && text[strlen(text) - 1] == '\n' &&
           (strstr(text, "\nMAX_LIMIT\t39\tconfigure\tlive\n") != NULL ||
            strstr(text, "\nMAX_LIMIT\t40\tconfigure\tlive\n") != NULL ||
            strstr(text, "\nMAX_LIMIT\t40\tprogram\tlive\n") != NULL);
}

/* Looks until so many changes of the limit are seen; none of the counters goes back. */
static int watch_moves(uint64_t last)
{
    static struct weir__record before;
    while (before.figures[WEIR__FIGURE_LIMIT_CHANGES] < last) {
        struct weir__record *records = NULL;
        char text[WEIR__LIVE_OPTIONS];
        size_t count = 0;
        unsigned odd = 0;
        if (weir__live_read(directory, &records, &count, &odd) != 0 || count + odd != 1)
            return 1;
        if (count == 0)
            continue;
        if (!is_possible(&records[0]))
            return 2;
        if (!weir__live_read_options(directory, &records[0], text) || !are_options(text))
            return 3;
        for (unsigned i = WEIR__FIGURE_SUBMITTED; i < WEIR__FIGURES; i++) {
            if (records[0].figures[i] < before.figures[i])
                return 4;
        }
        before = records[0];
        free(records);
    }
    return 0;
}

/* A million changes of the limit, a reader that does nothing else, and no figure that is torn or impossible. */
START_TEST(moving_limit)
{
    uint64_t last = weir_test_scaled(1000000, 50000);
    weir_limiter *limiter = moving_limiter();
    weir_stats stats = {0};
    pid_t child = fork();
    if (child == 0)
        _exit(watch_moves(last));
    for (unsigned turn = 0; stats.limit_changes < last + 100; turn++) {
        if (!move_once(limiter, turn))
            ck_abort_msg("turn %u fails", turn);
        if (turn % 1000 == 0)
            ck_assert_int_eq(weir_limiter_stats(limiter, &stats), 0);
    }
    ck_assert_int_eq(weir_limiter_configure(limiter, "MAX_LIMIT", "39"), 0); /* stored */
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "the reader ends with %d", WEXITSTATUS(status));
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

static void move_for_ever(int ready)
{
    weir_limiter *limiter = moving_limiter();
    for (unsigned turn = 0; move_once(limiter, turn); turn++) {
        if (turn == 0 && write(ready, "x", 1) != 1)
            break;
    }
    _exit(1);
}

/* What is left of a process whose limit moved when it was killed. */
static void assert_possible(const char *path)
{
    static struct weir__record record;
    char text[WEIR__LIVE_OPTIONS];
    int file = open(path, O_RDONLY);
    ck_assert_int_ge(file, 0);
    struct stat status;
    ck_assert_int_eq(fstat(file, &status), 0);
    struct weir__live_file *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    ck_assert_ptr_ne(mapped, MAP_FAILED);
    ck_assert_uint_eq((size_t)status.st_size, weir__live_size(mapped->record_words));
    size_t words = mapped->record_words;
    uint64_t row = atomic_load(&mapped->record_turns.done) & 1;
    memcpy(&record, (const void *)(mapped->records + row * words), words * sizeof(uint64_t));
    memcpy(text, (const void *)mapped->options[atomic_load(&mapped->option_turns.done) & 1], sizeof text);
    ck_assert(is_possible(&record));
    ck_assert(are_options(text));
    (void)munmap(mapped, (size_t)status.st_size);
    (void)close(file);
}

START_TEST(killed_processes)
{
    uint64_t state = weir_test_seed();
    weir_pool *pool = weir_test_pool(1, 1);
    uint64_t next_id = pool->limiter->fork_lock.id + 1; /* of the first that a child creates */
    weir_test_pool_end(pool);
    for (unsigned round = 0; round < weir_test_scaled(60, 20); round++) {
        pid_t child = kill_at_a_random_moment(move_for_ever, &state);
        assert_possible(path_of(child, next_id));
        assert_seen((struct expected){.count = 0});
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("live");
    TCase *tests = tcase_create("live files");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, comes_and_goes);
    tcase_add_test(tests, idle_is_told);
    tcase_add_loop_test(tests, stuck_is_told, 0, 2);
    tcase_add_test(tests, submits_stay_short);
    tcase_add_test(tests, limiters_file);
    tcase_add_test(tests, fork_child);
    tcase_add_test(tests, no_directory);
    tcase_add_test(tests, symbolic_links);
    tcase_add_test(tests, other_versions);
    tcase_add_test(tests, never_torn);
    tcase_add_test(tests, killed_writers);
    tcase_add_test(tests, moving_limit);
    tcase_add_test(tests, killed_processes);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
