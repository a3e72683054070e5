/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Options that change while a pool runs. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "estimator/estimator.h"
#include "pool/pool.h"
#include "pool_support.h"

/* ---- an algorithm that answers what the test says ---- */

static atomic_uint wanted;
static atomic_uint updates;

static int start(void *state, const struct weir_config *config)
{
    (void)state;
    atomic_store(&wanted, config->initial_limit);
    atomic_store(&updates, 0);
    return 0;
}

static uint32_t answer(void *state, const weir_sample *sample)
{
    (void)state;
    (void)sample;
    atomic_fetch_add(&updates, 1);
    return atomic_load(&wanted);
}

static const weir_estimator_class obedient = {.name = "obedient", .state_size = 1, .init = start, .update = answer};

static weir_config obedient_config(uint32_t limit, uint32_t depth)
{
    weir_config config = weir_test_fixed(limit, depth);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &obedient;
    config.max_limit = 1000;
    return config;
}

static void set(weir_pool *pool, const char *option, const char *value)
{
    int error = weir_pool_configure(pool, option, value);
    if (error != 0)
        ck_abort_msg("%s=%s: error %d: %s", option, value, error, weir_test_log_text());
}

/* ---- the table ---- */

/* A value other than the default. */
static const char *another(const struct weir__option *option)
{
    static const struct {
        const char *name;
        const char *value;
    } values[] = {{"INITIAL_LIMIT", "5"},
                  {"MIN_LIMIT", "2"},
                  {"MAX_LIMIT", "77"},
                  {"QUEUE_DEPTH", "12"},
                  {"QUEUE_MIN", "2"},
                  {"QUEUE_MAX", "99"},
                  {"WINDOW_MIN", "500ms"},
                  {"WINDOW_MAX", "3s"},
                  {"WINDOW_SAMPLES", "7"},
                  {"MIN_RTT", "5us"},
                  {"SMOOTHING", "0.3"},
                  {"RTT_TOLERANCE", "2"},
                  {"LONG_WINDOW", "50"},
                  {"QUEUE_ALLOWANCE", "3"},
                  {"ALPHA", "2"},
                  {"BETA", "4"},
                  {"PROBE_MULTIPLIER", "9"},
                  {"BACKOFF_RATIO", "0.75"},
                  {"TIMEOUT", "2s"},
                  {"DRAIN_INTERVAL", "4s"},
                  {"RTT_CEILING", "1s"},
                  {"MODE", "monitor"},
                  {"IDLE_TIMEOUT", "10s"},
                  {"LOG", "info"},
                  {"PARTITIONS", "b=0.5,a=0"},
                  {"ALGORITHM", "vegas"},
                  {"WINDOW", "off"},
                  {"STACK_SIZE", "1M"},
                  {"STATS_DIR", "/tmp"},
                  {"WINDOW_CAPACITY", "200"},
                  {"WINDOW_PERCENTILE", "0.9"}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        if (strcmp(values[i].name, option->name) == 0)
            return values[i].value;
    }
    ck_abort_msg("the test knows no value for %s", option->name);
    return NULL;
}

/* What the configuration of the pool holds now, in the option's syntax. */
static const char *held(weir_pool *pool, const struct weir__option *option, char buffer[WEIR__VALUE_SIZE])
{
    weir__lock(pool->limiter);
    const char *value = weir__option_format(option, weir__option_load(option, &pool->limiter->config), buffer);
    weir__unlock(pool->limiter);
    return value;
}

static weir_pool *pool_with(uint32_t algorithm)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.flags = WEIR_NO_ENV;
    config.algorithm = algorithm;
    config.partitions = "a=0.25,b=0.25";
    return weir_test_pool_of(&config);
}

/* With each algorithm every option either takes another value, and is its default again afterwards, or says ENOTSUP and
 * stays as it was. Which of the two it is the table says. */
START_TEST(every_option)
{
    weir_pool *pool = pool_with((uint32_t)_i);
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        char before[WEIR__VALUE_SIZE];
        char after[WEIR__VALUE_SIZE];
        (void)snprintf(before, sizeof before, "%s", held(pool, option, after));
        bool is_live = weir__option_is_live(option, &pool->limiter->config);
        weir_test_log_capture();
        int error = weir_pool_configure(pool, option->name, another(option));
        if (!is_live) {
            ck_assert_int_eq(error, ENOTSUP);
            ck_assert_ptr_nonnull(strstr(weir_test_log_text(), option->name));
            ck_assert_str_eq(held(pool, option, after), before);
            continue;
        }
        ck_assert_int_eq(error, 0);
        ck_assert_str_eq(weir_test_log_text(), "");
        ck_assert_str_eq(held(pool, option, after), another(option));
        ck_assert_int_eq(weir__origin_get(&pool->limiter->config, option), WEIR__ORIGIN_CONFIGURED);
        if (option->type != WEIR__OPTION_SHARES) {
            set(pool, option->name, "default");
            ck_assert_str_eq(held(pool, option, after), before);
        }
        ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    }
    weir_test_log_release();
    weir_test_pool_end(pool);
}
END_TEST

/* What is refused leaves no trace but a line that names the pool, the option and what is accepted. */
START_TEST(refused)
{
    static const struct {
        const char *option;
        const char *value;
        int error;
        const char *said;
    } cases[] = {{"MAX_LIMIT", "many", EINVAL, "pool \"test\": MAX_LIMIT=\"many\" is not accepted: 1 to"},
                 {"max_limit", "0", EINVAL, "MAX_LIMIT=\"0\""},
                 {"MAX_LIMIT", "65537", EINVAL, "1 to 65536"},
                 {"MIN_LIMIT", "1001", EINVAL, "MIN_LIMIT=1001 (configure) is above MAX_LIMIT=1000"},
                 {"QUEUE_MIN", "70000", EINVAL, "is above QUEUE_MAX"},
                 {"WINDOW_MIN", "2s", EINVAL, "is above WINDOW_MAX"},
                 {"RTT_CEILING", "5", EINVAL, "RTT_CEILING=\"5\""},
                 {"MODE", "perhaps", EINVAL, "enforce or monitor"},
                 {"PARTITIONS", "a=0.5,b=0.6", EINVAL, "above 1 in sum"},
                 {"PARTITIONS", "a=0.5,c=0.1", ENOTSUP, "pool \"test\": PARTITIONS cannot change by name"},
                 {"PARTITIONS", "a=0.5", ENOTSUP, "by name"},
                 {"PARTITIONS", "none", ENOTSUP, "by name"},
                 {"INITIAL_LIMIT", "5", ENOTSUP, "unless the algorithm is fixed"},
                 {"STACK_SIZE", "1M", ENOTSUP, "STACK_SIZE cannot change while it runs"},
                 {"NO_SUCH", "1", EINVAL, "there is no option \"NO_SUCH\""},
                 {"", "1", EINVAL, "there is no option"}};
    weir_pool *pool = pool_with(WEIR_VEGAS2);
    weir_config before = pool->limiter->config;
    weir_stats stats = weir_test_stats(pool);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_test_log_capture();
        ck_assert_int_eq(weir_pool_configure(pool, cases[i].option, cases[i].value), cases[i].error);
        if (strstr(weir_test_log_text(), cases[i].said) == NULL)
            ck_abort_msg("no \"%s\" in: %s", cases[i].said, weir_test_log_text());
        ck_assert_mem_eq(&pool->limiter->config, &before, sizeof before);
    }
    weir_test_log_release();
    ck_assert_uint_eq(weir_test_stats(pool).limit, stats.limit);
    ck_assert_uint_eq(weir_test_stats(pool).queue_depth, stats.queue_depth);
    ck_assert_int_eq(weir_pool_configure(NULL, "LOG", "warn"), EINVAL);
    ck_assert_int_eq(weir_limiter_configure(NULL, "LOG", "warn"), EINVAL);
    ck_assert_int_eq(weir_pool_configure(pool, NULL, "warn"), EINVAL);
    ck_assert_int_eq(weir_pool_configure(pool, "LOG", NULL), EINVAL);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- limits ---- */

struct trail {
    atomic_uint events;
    atomic_uint last;         /* new_limit of the last event */
    atomic_uint broken;       /* events whose old limit is not the new one of the event before */
    atomic_bool configured;   /* the reason of the last event said so */
    weir_pool *pool;          /* the trace configures it, too; NULL: it does not */
    atomic_int inner;         /* what that returned */
    atomic_bool inner_called; /* once */
};

static void note(const weir_trace_event *event, void *arg)
{
    struct trail *trail = arg;
    if (atomic_load(&trail->events) > 0 && event->old_limit != atomic_load(&trail->last))
        atomic_fetch_add(&trail->broken, 1);
    atomic_store(&trail->last, event->new_limit);
    atomic_store(&trail->configured, strcmp(event->reason, "configured") == 0);
    atomic_fetch_add(&trail->events, 1);
    if (trail->pool != NULL && !atomic_exchange(&trail->inner_called, true))
        atomic_store(&trail->inner, weir_pool_configure(trail->pool, "MAX_LIMIT", "9"));
}

/* Bounds are in force when the call returns, work that runs goes on, and a lower limit starts nothing new. */
START_TEST(bounds)
{
    struct trail trail = {.events = 0};
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_config config = obedient_config(8, 100);
    config.trace = note;
    config.trace_arg = &trail;
    weir_pool *pool = weir_test_pool_of(&config);
    weir_test_occupy(pool, &gate, 8);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(weir_pool_submit(pool, weir_test_pass, &gate), 0);
    set(pool, "MAX_LIMIT", "3");
    weir_stats stats = weir_test_stats(pool);
    ck_assert_uint_eq(stats.limit, 3);
    ck_assert_uint_eq(stats.estimate, 3);
    ck_assert_uint_eq(stats.pinned, WEIR_PINNED_AT_CEILING);
    ck_assert_str_eq(stats.reason, "configured");
    ck_assert_uint_eq(stats.running, 8);
    ck_assert_uint_eq(atomic_load(&trail.events), 1);
    ck_assert_uint_eq(atomic_load(&trail.last), 3);
    ck_assert(atomic_load(&trail.configured));

    set(pool, "MAX_LIMIT", "1000"); /* the algorithm has the say again: it is asked at the next sample */
    ck_assert_uint_eq(weir_test_stats(pool).limit, 3);
    ck_assert_uint_eq(weir_test_stats(pool).pinned, WEIR_NOT_PINNED);
    set(pool, "MIN_LIMIT", "12"); /* four more start */
    WEIR_TEST_UNTIL(weir_test_gate_waiting(&gate) == 12);
    ck_assert_uint_eq(weir_test_stats(pool).limit, 12);
    ck_assert_uint_eq(weir_test_stats(pool).queued, 16);
    ck_assert_uint_eq(weir_test_stats(pool).pinned, WEIR_PINNED_AT_FLOOR);
    ck_assert_uint_eq(atomic_load(&trail.events), 2);
    atomic_store(&wanted, 5);
    weir_test_gate_open(&gate);
    ck_assert_int_eq(weir_pool_drain(pool, WEIR_FOREVER), 0);
    ck_assert_uint_eq(weir_test_stats(pool).limit, 12);
    set(pool, "MIN_LIMIT", "default");
    ck_assert_int_eq(weir_pool_call(pool, weir_test_nothing, NULL, NULL), 0);
    WEIR_TEST_UNTIL(weir_test_stats(pool).limit == 5);
    ck_assert_uint_eq(atomic_load(&trail.broken), 0);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* A frozen limit stands still, but within the bounds; and afterwards it does not jump back. */
START_TEST(frozen_bounds)
{
    weir_config config = obedient_config(8, 10);
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_int_eq(weir_limiter_freeze(weir_pool_limiter(pool)), 0);
    set(pool, "MAX_LIMIT", "5");
    ck_assert_uint_eq(weir_test_stats(pool).limit, 5);
    set(pool, "MAX_LIMIT", "20");
    ck_assert_uint_eq(weir_test_stats(pool).limit, 5);
    ck_assert_int_eq(weir_limiter_thaw(weir_pool_limiter(pool)), 0);
    ck_assert_uint_eq(weir_test_stats(pool).limit, 5);
    weir_test_pool_end(pool);
}
END_TEST

/* The library's own algorithms go on within new bounds, and leave them when they are gone. */
START_TEST(algorithms_follow)
{
    weir_config config;
    weir_estimator *estimator = NULL;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.algorithm = (uint32_t)_i;
    config.window = 0;
    ck_assert_int_eq(weir_estimator_create(&estimator, &config), 0);
    ck_assert_int_eq(weir__config_resolve(&config, &config, NULL, false), 0);
    ck_assert_int_eq(weir__estimator_settle(&config), 0);
    static const uint32_t ranges[][2] = {{1, 1000}, {50, 60}, {2, 3}, {1, 1}, {200, 1000}, {1, 1000}};
    uint64_t now_ns = 1000000000;
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        config.min_limit = ranges[i][0];
        config.max_limit = ranges[i][1];
        uint32_t before = weir_estimator_limit(estimator);
        weir__estimator_retune(estimator, &config);
        for (int n = 0; n < 3000; n++) {
            uint32_t limit = weir_estimator_limit(estimator);
            if (limit < ranges[i][0] || limit > ranges[i][1])
                ck_abort_msg("limit %u is outside %u to %u", limit, ranges[i][0], ranges[i][1]);
            weir_figures figures;
            (void)weir_estimator_figures(estimator, &figures);
            bool said = strcmp(figures.reason, "configured") == 0;
            if (n == 0 && limit != before && !said)
                ck_abort_msg("the reason of the change is \"%s\"", figures.reason);
            weir_sample sample = {now_ns, 10000000, limit, n % 500 == 499 ? WEIR_DROPPED : WEIR_SUCCESS};
            (void)weir_estimator_update(estimator, &sample);
            now_ns += 10000000 / limit;
        }
    }
    weir_estimator_destroy(estimator);
}
END_TEST

/* A limit that stands still is INITIAL_LIMIT, and its weights go with it. */
START_TEST(fixed_limit)
{
    weir_limiter *limiter = NULL;
    weir_permit permit = {{0}};
    weir_config config = weir_test_fixed(2, 0);
    config.max_limit = 50;
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", &config), 0);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 7, NULL, WEIR_FOREVER), EINVAL);
    ck_assert_int_eq(weir_limiter_configure(limiter, "INITIAL_LIMIT", "7"), 0);
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, &permit, 7, NULL, WEIR_FOREVER), 0);
    ck_assert_int_eq(weir_limiter_release(limiter, &permit, WEIR_SUCCESS), 0);
    weir_test_log_capture();
    ck_assert_int_eq(weir_limiter_configure(limiter, "INITIAL_LIMIT", "51"), EINVAL);
    ck_assert_int_eq(weir_limiter_configure(limiter, "MAX_LIMIT", "6"), EINVAL);
    ck_assert_ptr_nonnull(strstr(weir_test_log_text(), "INITIAL_LIMIT is 7"));
    weir_test_log_release();
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}
END_TEST

/* In monitor mode the ceiling is enforced; leaving it, the estimate. */
START_TEST(mode)
{
    weir_config config = obedient_config(4, 10);
    weir_pool *pool = weir_test_pool_of(&config);
    set(pool, "MODE", "monitor");
    ck_assert_uint_eq(weir_test_stats(pool).limit, 1000);
    ck_assert_uint_eq(weir_test_stats(pool).estimate, 4);
    set(pool, "MAX_LIMIT", "30");
    ck_assert_uint_eq(weir_test_stats(pool).limit, 30);
    set(pool, "MODE", "enforce");
    ck_assert_uint_eq(weir_test_stats(pool).limit, 4);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- queue and partitions ---- */

static void *submit_one(void *pool)
{
    return weir_pool_submit(pool, weir_test_nothing, NULL) == 0 ? pool : NULL;
}

/* A deeper queue admits who is blocked; a shorter one keeps what it has. */
START_TEST(queue)
{
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    weir_pool *pool = weir_test_pool(1, 2);
    weir_test_occupy(pool, &gate, 1);
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        threads[i] = weir_test_thread(submit_one, pool);
    WEIR_TEST_UNTIL(weir_test_stats(pool).waiting == 4);
    set(pool, "QUEUE_DEPTH", "5");
    ck_assert_uint_eq(weir_test_stats(pool).waiting, 1);
    ck_assert_uint_eq(weir_test_stats(pool).queued, 5);
    set(pool, "QUEUE_DEPTH", "0");
    ck_assert_uint_eq(weir_test_stats(pool).queued, 5);
    ck_assert_int_eq(weir_pool_trysubmit(pool, weir_test_nothing, NULL), EAGAIN);
    set(pool, "QUEUE_DEPTH", "auto");
    ck_assert_uint_eq(weir_test_stats(pool).queue_depth, 1);
    ck_assert_str_eq(weir_test_stats(pool).depth_term, "initial");
    set(pool, "QUEUE_MIN", "40");
    ck_assert_uint_eq(weir_test_stats(pool).queue_depth, 40);
    ck_assert_str_eq(weir_test_stats(pool).depth_term, "queue_min");
    ck_assert_uint_eq(weir_test_stats(pool).waiting, 0);
    weir_test_gate_open(&gate);
    for (int i = 0; i < 6; i++)
        ck_assert_ptr_eq(weir_test_join(threads[i]), pool);
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

START_TEST(shares)
{
    weir_config config = weir_test_fixed(10, 100);
    config.partitions = "live=0.9,batch=0.1";
    weir_pool *pool = weir_test_pool_of(&config);
    weir_partition_stats stats = {0};
    set(pool, "PARTITIONS", "batch=0.5,live=0.25");
    ck_assert_int_eq(weir_pool_partition_stats(pool, "live", &stats), 0);
    ck_assert_double_eq_tol(stats.share, 0.25, 1e-9);
    ck_assert_uint_eq(stats.queue_depth, 25);
    ck_assert_int_eq(weir_pool_partition_stats(pool, "batch", &stats), 0);
    ck_assert_double_eq_tol(stats.share, 0.5, 1e-9);
    ck_assert_int_eq(weir_pool_partition_stats(pool, NULL, &stats), 0);
    ck_assert_double_eq_tol(stats.share, 0.25, 1e-9);
    weir_test_pool_end(pool);
}
END_TEST

/* ---- where it is called from, and what it finds ---- */

/* From a trace, which the estimating thread calls: what is set there holds, too. */
START_TEST(in_a_trace)
{
    struct trail trail = {.events = 0};
    weir_config config = obedient_config(8, 10);
    config.trace = note;
    config.trace_arg = &trail;
    weir_pool *pool = weir_test_pool_of(&config);
    trail.pool = pool;
    set(pool, "MIN_LIMIT", "5");
    ck_assert_uint_eq(atomic_load(&trail.events), 0);
    set(pool, "MAX_LIMIT", "20");
    set(pool, "MIN_LIMIT", "9");
    ck_assert(atomic_load(&trail.inner_called));
    ck_assert_int_eq(atomic_load(&trail.inner), 0);
    ck_assert_uint_eq(weir_test_stats(pool).limit, 9);
    ck_assert_uint_eq(weir_test_stats(pool).pinned, WEIR_NOT_PINNED); /* 9 to 9 */
    ck_assert_uint_eq(atomic_load(&trail.broken), 0);
    weir_test_pool_end(pool);
}
END_TEST

static weir_outcome configure_own(void *pool)
{
    return weir_pool_configure(pool, "MAX_LIMIT", "2") == 0 ? WEIR_SUCCESS : WEIR_DROPPED;
}

START_TEST(in_a_job)
{
    weir_outcome outcome = WEIR_IGNORE;
    weir_config config = obedient_config(4, 10);
    weir_pool *pool = weir_test_pool_of(&config);
    ck_assert_int_eq(weir_pool_call(pool, configure_own, pool, &outcome), 0);
    ck_assert_int_eq(outcome, WEIR_SUCCESS);
    ck_assert_uint_eq(weir_test_stats(pool).limit, 2);
    weir_test_pool_end(pool);
}
END_TEST

static int configure_inherited(void *pool)
{
    return weir_pool_configure(pool, "MAX_LIMIT", "2");
}

START_TEST(in_a_child)
{
    weir_pool *pool = weir_test_pool(1, 1);
    int status = weir_test_in_child(configure_inherited, pool);
    ck_assert_int_eq(status, ECHILD << 8);
    weir_test_pool_end(pool);
}
END_TEST

/* A worker that goes to sleep goes by what is set then. */
START_TEST(idle_timeout)
{
    weir_config config = weir_test_fixed(4, 10);
    weir_pool *pool = weir_test_pool_of(&config);
    struct weir_test_gate gate;
    weir_test_gate_init(&gate);
    set(pool, "IDLE_TIMEOUT", "1ms");
    weir_test_occupy(pool, &gate, 4);
    weir_test_gate_open(&gate);
    WEIR_TEST_UNTIL(weir_test_stats(pool).workers == 1); /* MIN_LIMIT */
    weir_test_pool_end(pool);
    weir_test_gate_destroy(&gate);
}
END_TEST

/* Strings of the program are not needed after the call, and the log level counts at once. */
START_TEST(strings)
{
    char option[] = "PARTITIONS";
    char value[] = "a=0.5,b=0.25";
    weir_pool *pool = pool_with(WEIR_VEGAS2);
    set(pool, option, value);
    memset(option, 'x', sizeof option - 1);
    memset(value, 'x', sizeof value - 1);
    char text[4096];
    weir__lock(pool->limiter);
    (void)weir__config_render(&pool->limiter->config, text, sizeof text);
    weir__unlock(pool->limiter);
    ck_assert_ptr_nonnull(strstr(text, "PARTITIONS\ta=0.5,b=0.25\tconfigure\tlive\n"));
    ck_assert_ptr_nonnull(strstr(text, "STATS_DIR\toff\tdefault\t\n"));
    set(pool, "LOG", "off");
    weir_test_log_capture();
    ck_assert_int_eq(weir_pool_configure(pool, "LOG", "loud"), EINVAL);
    ck_assert_str_eq(weir_test_log_text(), "");
    set(pool, "LOG", "error");
    ck_assert_int_eq(weir_pool_configure(pool, "LOG", "loud"), EINVAL);
    ck_assert_str_ne(weir_test_log_text(), "");
    weir_test_log_release();
    weir_test_pool_end(pool);
}
END_TEST

/* ---- all at once ---- */

struct storm {
    weir_pool *pool;
    unsigned jobs; /* of each submitter */
    atomic_uint ran;
    atomic_uint faults;
    atomic_bool over;
};

static weir_outcome storm_job(void *arg)
{
    struct storm *storm = arg;
    unsigned ran = atomic_fetch_add_explicit(&storm->ran, 1, memory_order_relaxed);
    atomic_store_explicit(&wanted, 1 + ran % 40, memory_order_relaxed);
    return ran % 100 == 0 ? WEIR_DROPPED : WEIR_SUCCESS;
}

static void *storm_submitter(void *arg)
{
    struct storm *storm = arg;
    for (unsigned i = 0; i < storm->jobs; i++) {
        if (weir_pool_submit(storm->pool, storm_job, storm) != 0)
            atomic_fetch_add(&storm->faults, 1);
    }
    return NULL;
}

/* Sets one option after the other; all values are good whatever the others are. */
static void *storm_configurer(void *arg)
{
    static const char *const changes[][2] = {
        {"MAX_LIMIT", "40"},      {"MIN_LIMIT", "3"},        {"QUEUE_DEPTH", "2"},   {"MAX_LIMIT", "9"},
        {"QUEUE_DEPTH", "auto"},  {"MODE", "monitor"},       {"MIN_LIMIT", "1"},     {"PARTITIONS", "a=0.9"},
        {"MAX_LIMIT", "4096"},    {"IDLE_TIMEOUT", "0"},     {"MODE", "enforce"},    {"LOG", "error"},
        {"QUEUE_MAX", "50"},      {"PARTITIONS", "a=0"},     {"QUEUE_DEPTH", "700"}, {"QUEUE_MAX", "65536"},
        {"IDLE_TIMEOUT", "10ms"}, {"DRAIN_INTERVAL", "off"}, {"LOG", "warn"},        {"MAX_LIMIT", "5"}};
    struct storm *storm = arg;
    for (unsigned i = 0; !atomic_load(&storm->over); i++) {
        const char *const *change = changes[i % (sizeof changes / sizeof changes[0])];
        if (weir_pool_configure(storm->pool, change[0], change[1]) != 0)
            atomic_fetch_add(&storm->faults, 1);
    }
    return NULL;
}

static void *storm_reader(void *arg)
{
    struct storm *storm = arg;
    while (!atomic_load(&storm->over)) {
        weir_stats stats = weir_test_stats(storm->pool);
        if (weir_test_accounted(&stats) != stats.submitted || stats.limit > 4096 || stats.limit < 1)
            atomic_fetch_add(&storm->faults, 1);
    }
    return NULL;
}

/* Submitters, two who configure and one who reads: every job runs once, the books are right at every moment, and the
 * changes that are traced follow each other. */
START_TEST(storm)
{
    struct trail trail = {.events = 0};
    weir_config config = obedient_config(4, 20);
    config.partitions = "a=0.5";
    config.trace = note;
    config.trace_arg = &trail;
    struct storm state = {.pool = weir_test_pool_of(&config), .jobs = weir_test_scaled(20000, 500)};
    pthread_t submitters[3];
    pthread_t others[3] = {weir_test_thread(storm_configurer, &state), weir_test_thread(storm_configurer, &state),
                           weir_test_thread(storm_reader, &state)};
    for (int i = 0; i < 3; i++)
        submitters[i] = weir_test_thread(storm_submitter, &state);
    for (int i = 0; i < 3; i++)
        (void)weir_test_join(submitters[i]);
    ck_assert_int_eq(weir_pool_drain(state.pool, WEIR_FOREVER), 0);
    atomic_store(&state.over, true);
    for (int i = 0; i < 3; i++)
        (void)weir_test_join(others[i]);
    ck_assert_uint_eq(atomic_load(&state.faults), 0);
    ck_assert_uint_eq(atomic_load(&trail.broken), 0);
    ck_assert_uint_eq(atomic_load(&state.ran), 3 * state.jobs);
    ck_assert_uint_eq(atomic_load(&updates), 3 * state.jobs);
    weir_test_pool_end(state.pool);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("configure");
    TCase *tests = tcase_create("configure");
    tcase_set_timeout(tests, TEST_LIMIT_S);
    tcase_add_loop_test(tests, every_option, WEIR_VEGAS2, WEIR_CUSTOM);
    tcase_add_test(tests, refused);
    tcase_add_test(tests, bounds);
    tcase_add_test(tests, frozen_bounds);
    tcase_add_loop_test(tests, algorithms_follow, WEIR_VEGAS2, WEIR_FIXED);
    tcase_add_test(tests, fixed_limit);
    tcase_add_test(tests, mode);
    tcase_add_test(tests, queue);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, in_a_trace);
    tcase_add_test(tests, in_a_job);
    tcase_add_test(tests, in_a_child);
    tcase_add_test(tests, idle_timeout);
    tcase_add_test(tests, strings);
    tcase_add_test(tests, storm);
    suite_add_tcase(suite, tests);
    return weir_test_main(suite);
}
