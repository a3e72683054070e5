/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "limiter_support.h"

/* ---- limiters ---- */

weir_config weir_test_config(void)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.flags = WEIR_NO_ENV;
    return config;
}

weir_limiter *weir_test_fixed_limiter(uint32_t limit)
{
    weir_config config = weir_test_config();
    config.algorithm = WEIR_FIXED;
    config.initial_limit = limit;
    return weir_test_limiter(&config);
}

weir_limiter *weir_test_limiter(const weir_config *config)
{
    weir_limiter *limiter = NULL;
    ck_assert_int_eq(weir_limiter_create(&limiter, "test", config), 0);
    ck_assert_ptr_nonnull(limiter);
    return limiter;
}

weir_stats weir_test_stats(weir_limiter *limiter)
{
    weir_stats stats = {0};
    int error = weir_limiter_stats(limiter, &stats);
    if (error != 0) /* no assertion that passes: this is called in loops */
        ck_abort_msg("weir_limiter_stats: %d", error);
    return stats;
}

void weir_test_take(weir_limiter *limiter, weir_permit *permit)
{
    ck_assert_int_eq(weir_limiter_acquire(limiter, permit), 0);
}

void weir_test_take_many(weir_limiter *limiter, weir_permit *permit, unsigned weight)
{
    ck_assert_int_eq(weir_limiter_acquire_many(limiter, permit, weight, NULL, WEIR_FOREVER), 0);
}

void weir_test_give(weir_limiter *limiter, weir_permit *permit)
{
    ck_assert_int_eq(weir_limiter_release(limiter, permit, WEIR_SUCCESS), 0);
}

void weir_test_destroy(weir_limiter *limiter)
{
    ck_assert_int_eq(weir_limiter_destroy(limiter), 0);
}

/* ---- the algorithm ---- */

struct weir_test_script weir_test_script;

static int script_init(void *state, const weir_config *config)
{
    (void)state;
    (void)config;
    return 0;
}

static uint32_t script_update(void *state, const weir_sample *sample)
{
    (void)state;
    struct weir_test_script *script = &weir_test_script;
    if (atomic_fetch_add_explicit(&script->inside, 1, memory_order_relaxed) != 0) /* pairs with nothing, as below: */
        atomic_store_explicit(&script->overlapped, true, memory_order_relaxed);   /* it must not hide a race */
    unsigned long long number = atomic_load_explicit(&script->updates, memory_order_relaxed);
    if (number < WEIR_TEST_KEPT)
        script->kept[number] = *sample;
    if (script->during != NULL)
        script->during();
    atomic_store_explicit(&script->updates, number + 1, memory_order_release); /* pairs with the loads of the tests */
    atomic_fetch_sub_explicit(&script->inside, 1, memory_order_relaxed);
    return atomic_load_explicit(&script->limit, memory_order_relaxed);
}

static uint64_t script_reaction(const void *state)
{
    (void)state;
    return atomic_load_explicit(&weir_test_script.reaction_ns, memory_order_relaxed); /* a plain figure */
}

static const weir_estimator_class script_class = {
    .name = "script", .state_size = 1, .init = script_init, .update = script_update, .reaction_ns = script_reaction};

weir_config weir_test_scripted(uint32_t limit)
{
    struct weir_test_script *script = &weir_test_script;
    atomic_store(&script->limit, limit);
    atomic_store(&script->updates, 0);
    atomic_store(&script->inside, 0);
    atomic_store(&script->overlapped, false);
    atomic_store(&script->reaction_ns, 0);
    script->during = NULL;
    weir_config config = weir_test_config();
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &script_class;
    config.initial_limit = limit;
    return config;
}

/* ---- clients ---- */

static atomic_uint turns;

void weir_test_clients_reset(void)
{
    atomic_store(&turns, 0);
}

static void *be_client(void *arg)
{
    struct weir_test_client *client = arg;
    weir_permit permit = {{0}};
    int result = weir_limiter_acquire_many(client->limiter, &permit, client->weight, NULL, client->deadline_ns);
    if (result == 0)
        atomic_store(&client->turn, atomic_fetch_add(&turns, 1));
    atomic_store(&client->result, result);
    if (result != 0)
        return NULL;
    weir_test_gate_pass(&client->gate);
    client->release_result = weir_limiter_release(client->limiter, &permit, WEIR_SUCCESS);
    return NULL;
}

void weir_test_client_start(struct weir_test_client *client, weir_limiter *limiter, unsigned weight,
                            uint64_t deadline_ns)
{
    client->limiter = limiter;
    client->weight = weight;
    client->deadline_ns = deadline_ns;
    client->release_result = 0;
    weir_test_gate_init(&client->gate);
    atomic_init(&client->result, WEIR_TEST_ASKING);
    atomic_init(&client->turn, UINT32_MAX);
    ck_assert_int_eq(pthread_create(&client->thread, NULL, be_client, client), 0);
}

void weir_test_client_queue(struct weir_test_client *client, weir_limiter *limiter, unsigned weight,
                            uint64_t deadline_ns)
{
    uint32_t before = weir_test_stats(limiter).waiting;
    weir_test_client_start(client, limiter, weight, deadline_ns);
    WEIR_TEST_UNTIL(weir_test_stats(limiter).waiting == before + 1);
}

bool weir_test_client_answered(struct weir_test_client *client)
{
    return atomic_load(&client->result) != WEIR_TEST_ASKING;
}

int weir_test_client_finish(struct weir_test_client *client)
{
    weir_test_gate_open(&client->gate);
    ck_assert_int_eq(pthread_join(client->thread, NULL), 0);
    weir_test_gate_destroy(&client->gate);
    ck_assert_int_eq(client->release_result, 0);
    return atomic_load(&client->result);
}
