/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "job_support.h"

#include <errno.h>
#include <string.h>

void weir_test_add_group(Suite *suite, const char *name, const TTest *const *tests)
{
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, TEST_LIMIT_S);
    for (; *tests != NULL; tests++)
        tcase_add_test(group, *tests);
    suite_add_tcase(suite, group);
}

unsigned weir_test_scaled(unsigned rounds)
{
    unsigned scaled = rounds / weir_test_slow();
    return scaled > 1 ? scaled : 1;
}

/* ---- pools and limiters ---- */

struct weir_test_script weir_test_script;

static int init_script(void *state, const weir_config *config)
{
    (void)state;
    atomic_store(&weir_test_script.limit, config->initial_limit);
    atomic_store(&weir_test_script.in_flight, 0);
    atomic_store(&weir_test_script.updates, 0);
    return 0;
}

static uint32_t update_script(void *state, const weir_sample *sample)
{
    (void)state;
    atomic_store(&weir_test_script.in_flight, sample->in_flight);
    atomic_fetch_add(&weir_test_script.updates, 1);
    return atomic_load(&weir_test_script.limit);
}

/* So long that no queue is ever taken for a standing one: the order stays first come, first served. */
static uint64_t script_reaction_ns(const void *state)
{
    (void)state;
    return UINT64_C(3600000000000);
}

static const weir_estimator_class script_class = {
    .name = "script", .state_size = 1, .init = init_script, .update = update_script, .reaction_ns = script_reaction_ns};

static weir_config config_of(uint32_t algorithm, uint32_t limit, uint32_t depth, const char *partitions)
{
    weir_config config;
    if (weir_config_init(&config) != 0)
        ck_abort_msg("no configuration");
    config.algorithm = algorithm;
    config.initial_limit = limit;
    config.queue_depth = depth;
    config.partitions = partitions;
    config.flags = WEIR_NO_ENV;
    return config;
}

weir_config weir_test_fixed(uint32_t limit, uint32_t depth, const char *partitions)
{
    return config_of(WEIR_FIXED, limit, depth, partitions);
}

weir_config weir_test_scripted(uint32_t limit, uint32_t depth, const char *partitions)
{
    weir_config config = config_of(WEIR_CUSTOM, limit, depth, partitions);
    config.estimator_class = &script_class;
    config.max_limit = 100;
    return config;
}

weir_pool *weir_test_pool(const weir_config *config)
{
    weir_pool *pool = NULL;
    ck_assert_int_eq(weir_pool_create(&pool, "test", config), 0);
    return pool;
}

weir_limiter *weir_test_limiter(const weir_config *config)
{
    weir_limiter *limiter = NULL;
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", config), 0);
    return limiter;
}

weir_stats weir_test_pool_stats(weir_pool *pool)
{
    weir_stats stats = {.size = sizeof stats};
    (void)weir_pool_stats(pool, &stats);
    return stats;
}

weir_stats weir_test_limiter_stats(weir_limiter *limiter)
{
    weir_stats stats = {.size = sizeof stats};
    (void)weir_limiter_stats(limiter, &stats);
    return stats;
}

uint64_t weir_test_accounted(const weir_stats *stats)
{
    return (uint64_t)stats->queued + stats->running + stats->succeeded + stats->ignored + stats->dropped +
           stats->expired + stats->cancelled;
}

/* ---- tasks ---- */

static atomic_uint turns;

void weir_test_turns_reset(void)
{
    atomic_store(&turns, 0);
}

unsigned weir_test_turns(void)
{
    return atomic_load(&turns);
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0 && errno == EINTR)
        ;
}

void weir_test_task_init(struct weir_test_task *task, const char *partition, uint32_t weight)
{
    memset(task, 0, sizeof *task);
    task->job.fn = weir_test_task_run;
    task->job.arg = task;
    task->job.partition = partition;
    task->job.weight = weight;
    task->outcome = WEIR_SUCCESS;
    (void)sem_init(&task->go, 0, 0);
    atomic_init(&task->turn, 0);
}

void weir_test_task_destroy(struct weir_test_task *task)
{
    (void)sem_destroy(&task->go);
}

weir_outcome weir_test_task_run(void *arg)
{
    struct weir_test_task *task = arg;
    atomic_store(&task->turn, atomic_fetch_add(&turns, 1) + 1);
    wait_for(&task->go);
    return task->outcome;
}

bool weir_test_task_has_begun(struct weir_test_task *task)
{
    return atomic_load(&task->turn) != 0;
}

void weir_test_task_go(struct weir_test_task *task)
{
    (void)sem_post(&task->go);
}

void weir_test_task_finish(struct weir_test_task *task)
{
    weir_test_task_go(task);
    ck_assert_int_eq(weir_job_wait(&task->job, WEIR_FOREVER), 0);
}

unsigned weir_test_tasks_begun(struct weir_test_task *tasks, unsigned count)
{
    unsigned begun = 0;
    for (unsigned i = 0; i < count; i++)
        begun += weir_test_task_has_begun(&tasks[i]) ? 1 : 0;
    return begun;
}

/* ---- clients ---- */

static void *submit(void *arg)
{
    struct weir_test_client *client = arg;
    int result = weir_job_timedsubmit(client->pool, &client->task.job, client->deadline_ns);
    atomic_store(&client->result, result);
    return NULL;
}

static void *acquire(void *arg)
{
    struct weir_test_client *client = arg;
    weir_permit permit = {0};
    int result = weir_limiter_acquire_many(client->limiter, &permit, client->task.job.weight,
                                           client->task.job.partition, client->deadline_ns);
    if (result == 0)
        atomic_store(&client->turn, atomic_fetch_add(&turns, 1) + 1);
    atomic_store(&client->result, result);
    if (result == 0) {
        wait_for(&client->task.go);
        (void)weir_limiter_release(client->limiter, &permit, WEIR_SUCCESS);
    }
    return NULL;
}

static void start(struct weir_test_client *client, const char *partition, uint32_t weight, uint64_t deadline_ns,
                  void *(*run)(void *))
{
    weir_test_task_init(&client->task, partition, weight);
    client->deadline_ns = deadline_ns;
    atomic_init(&client->result, WEIR_TEST_ASKING);
    atomic_init(&client->turn, 0);
    if (pthread_create(&client->thread, NULL, run, client) != 0)
        ck_abort_msg("no thread for the test");
}

void weir_test_client_submit(struct weir_test_client *client, weir_pool *pool, const char *partition, uint32_t weight,
                             uint64_t deadline_ns)
{
    client->pool = pool;
    client->limiter = NULL;
    start(client, partition, weight, deadline_ns, submit);
}

void weir_test_client_acquire(struct weir_test_client *client, weir_limiter *limiter, const char *partition,
                              uint32_t weight, uint64_t deadline_ns)
{
    client->pool = NULL;
    client->limiter = limiter;
    start(client, partition, weight, deadline_ns, acquire);
}

bool weir_test_client_answered(struct weir_test_client *client)
{
    return atomic_load(&client->result) != WEIR_TEST_ASKING;
}

void weir_test_client_go(struct weir_test_client *client)
{
    weir_test_task_go(&client->task);
}

int weir_test_client_join(struct weir_test_client *client)
{
    if (pthread_join(client->thread, NULL) != 0)
        ck_abort_msg("no join");
    int result = atomic_load(&client->result);
    if (client->pool != NULL && result == 0)
        (void)weir_job_wait(&client->task.job, WEIR_FOREVER);
    weir_test_task_destroy(&client->task);
    return result;
}
