/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The timing wheel against a sorted model: a binary heap of the same timers. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admission.h"
#include "handle_support.h"

#define TICK_NS (UINT64_C(1) << WEIR__TICK_SHIFT)
#define YEAR_NS (UINT64_C(365) * 24 * 3600 * 1000000000)

struct item {
    struct weir__timer timer; /* first */
    uint64_t due_ns;
    uint32_t place; /* in the model */
    bool there;
};

static uint64_t due_of(const struct weir__timer *timer)
{
    return ((const struct item *)timer)->due_ns;
}

/* ---- the model ---- */

struct model {
    struct item **heap; /* the earliest first */
    uint32_t count;
};

static void put(struct model *model, uint32_t place, struct item *item)
{
    model->heap[place] = item;
    item->place = place;
}

static void rise(struct model *model, struct item *item)
{
    uint32_t place = item->place;
    while (place > 0 && model->heap[(place - 1) / 2]->due_ns > item->due_ns) {
        put(model, place, model->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(model, place, item);
}

static void sink(struct model *model, struct item *item)
{
    uint32_t place = item->place;
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child + 1 < model->count && model->heap[child + 1]->due_ns < model->heap[child]->due_ns)
            child++;
        if (child >= model->count || model->heap[child]->due_ns >= item->due_ns)
            break;
        put(model, place, model->heap[child]);
        place = child;
    }
    put(model, place, item);
}

static void model_add(struct model *model, struct item *item)
{
    put(model, model->count++, item);
    item->there = true;
    rise(model, item);
}

static void model_remove(struct model *model, struct item *item)
{
    struct item *last = model->heap[--model->count];
    item->there = false;
    if (last == item)
        return;
    put(model, item->place, last);
    rise(model, last);
    sink(model, last);
}

/* ---- random operations ---- */

struct world {
    struct weir__wheel wheel;
    struct model model;
    struct item *items;
    uint32_t item_count;
    uint64_t now_ns;
    uint64_t random;
    uint64_t added;
    uint64_t fired;
};

/* From nanoseconds to years, all orders of magnitude alike; now and then on a tick, or in the past. */
static uint64_t random_span(struct world *world)
{
    unsigned bits = (unsigned)(weir_test_random(&world->random) % 60); /* 2^59 ns are 18 years */
    uint64_t span = weir_test_random(&world->random) & ((UINT64_C(2) << bits) - 1);
    return weir_test_random(&world->random) % 16 == 0 ? span & ~(TICK_NS - 1) : span;
}

static void begin(struct world *world, uint32_t items, uint64_t now_ns, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->items = calloc(items, sizeof *world->items);
    world->model.heap = calloc(items, sizeof(struct item *));
    if (world->items == NULL || world->model.heap == NULL)
        ck_abort_msg("no memory");
    world->item_count = items;
    world->now_ns = now_ns;
    world->random = seed;
    weir__wheel_init(&world->wheel, now_ns, due_of);
}

static void add_one(struct world *world)
{
    struct item *item = &world->items[weir_test_random(&world->random) % world->item_count];
    if (item->there) {
        weir__wheel_remove(&world->wheel, &item->timer);
        model_remove(&world->model, item);
    }
    uint64_t span = random_span(world);
    bool past = weir_test_random(&world->random) % 32 == 0;
    item->due_ns = past ? world->now_ns - (span < world->now_ns ? span : world->now_ns) : world->now_ns + span;
    weir__wheel_add(&world->wheel, &item->timer);
    model_add(&world->model, item);
    world->added++;
}

static void remove_one(struct world *world)
{
    struct item *item = &world->items[weir_test_random(&world->random) % world->item_count];
    weir__wheel_remove(&world->wheel, &item->timer); /* nothing happens where it is not there */
    if (item->there)
        model_remove(&world->model, item);
}

/* Everything due is taken out; afterwards nothing that has been due for a tick may be left. */
static void expire_all(struct world *world)
{
    struct weir__timer *timer;
    while ((timer = weir__wheel_expire(&world->wheel, world->now_ns)) != NULL) {
        struct item *item = (struct item *)timer;
        if (!item->there)
            ck_abort_msg("a timer fired that was not there");
        if (item->due_ns > world->now_ns)
            ck_abort_msg("early by %llu ns", (unsigned long long)(item->due_ns - world->now_ns));
        model_remove(&world->model, item);
        world->fired++;
    }
    if (world->wheel.count != world->model.count)
        ck_abort_msg("%u timers in the wheel, %u in the model", world->wheel.count, world->model.count);
    uint64_t next_ns = weir__wheel_next_ns(&world->wheel);
    if (world->model.count == 0) {
        if (next_ns != WEIR_FOREVER)
            ck_abort_msg("an empty wheel wants to be looked at");
        return;
    }
    uint64_t first_ns = world->model.heap[0]->due_ns;
    if (first_ns + TICK_NS <= world->now_ns)
        ck_abort_msg("late by %llu ns", (unsigned long long)(world->now_ns - first_ns));
    if (next_ns > first_ns + TICK_NS)
        ck_abort_msg("looks again %llu ns after the first is due", (unsigned long long)(next_ns - first_ns));
    if (next_ns <= world->now_ns)
        ck_abort_msg("looks again at once, and nothing is due");
}

/* How a keeper goes on, how a test of the wheel's corners does, and how a busy pool does. */
static uint64_t step_of(struct world *world)
{
    uint64_t next_ns = weir__wheel_next_ns(&world->wheel);
    switch (weir_test_random(&world->random) % 4) {
    case 0:
        return next_ns != WEIR_FOREVER && next_ns > world->now_ns ? next_ns - world->now_ns : 1;
    case 1:
        return weir_test_random(&world->random) % (4 * TICK_NS);
    case 2:
        return 0;
    default:
        return random_span(world) >> 8;
    }
}

static void finish(struct world *world, const char *what)
{
    (void)fprintf(stderr, "# %s: %llu timers added, %llu fired\n", what, (unsigned long long)world->added,
                  (unsigned long long)world->fired);
    free(world->items);
    free(world->model.heap);
}

/* A million timers, added, removed and expired at random, over ranges from nanoseconds to years. */
START_TEST(test_random_operations)
{
    uint32_t timers = weir_test_divided(1000000, 2000);
    uint64_t seed = weir_test_seed();
    struct world world;
    begin(&world, timers / 16 + 1, seed % YEAR_NS, seed);
    while (world.added < timers) {
        unsigned burst = (unsigned)(weir_test_random(&world.random) % 64);
        for (unsigned i = 0; i < burst; i++)
            add_one(&world);
        for (unsigned i = 0; i < burst / 4; i++)
            remove_one(&world);
        if (world.now_ns < 40 * YEAR_NS)
            world.now_ns += step_of(&world);
        expire_all(&world);
    }
    while (world.model.count > 0 && world.now_ns < 100 * YEAR_NS) { /* as the keeper: from look to look */
        uint64_t next_ns = weir__wheel_next_ns(&world.wheel);
        if (next_ns <= world.now_ns || next_ns == WEIR_FOREVER)
            ck_abort_msg("no next look");
        world.now_ns = next_ns;
        expire_all(&world);
    }
    ck_assert_uint_eq(world.model.count, 0);
    finish(&world, "random");
}
END_TEST

/* The usual case: a busy queue whose deadlines are a fraction of a second ahead, most of them removed before. */
START_TEST(test_short_deadlines)
{
    uint32_t timers = weir_test_divided(300000, 2000);
    uint64_t seed = weir_test_seed();
    struct world world;
    begin(&world, 1000, seed % (1000 * TICK_NS * 64 * 64 * 64), seed);
    for (uint32_t i = 0; i < timers; i++) {
        struct item *item = &world.items[i % world.item_count];
        if (item->there) {
            weir__wheel_remove(&world.wheel, &item->timer);
            model_remove(&world.model, item);
        }
        item->due_ns = world.now_ns + weir_test_random(&world.random) % 500000000;
        weir__wheel_add(&world.wheel, &item->timer);
        model_add(&world.model, item);
        world.added++;
        world.now_ns += weir_test_random(&world.random) % 500000;
        if (i % 3 == 0)
            expire_all(&world);
    }
    ck_assert_uint_gt(world.fired, 0);
    finish(&world, "short");
}
END_TEST

/* Timers on both sides of each border between two levels fire in their tick. */
START_TEST(test_borders_of_levels)
{
    struct world world;
    begin(&world, 3 * 42, 0, 1);
    for (unsigned bit = 0; bit < 42; bit++) {
        for (unsigned i = 0; i < 3; i++) {
            struct item *item = &world.items[3 * bit + i];
            item->due_ns = ((UINT64_C(1) << bit) + i - 1) << WEIR__TICK_SHIFT;
            weir__wheel_add(&world.wheel, &item->timer);
            model_add(&world.model, item);
        }
    }
    while (world.model.count > 0) {
        uint64_t due_ns = world.model.heap[0]->due_ns;
        if (due_ns > 0) {
            world.now_ns = due_ns - 1;
            expire_all(&world);
        }
        world.now_ns = due_ns;
        uint32_t before = world.model.count;
        expire_all(&world);
        if (world.model.count >= before)
            ck_abort_msg("a timer on a tick did not fire in it");
    }
    finish(&world, "borders");
}
END_TEST

/* A deadline that never comes lies in the wheel without harm, and can be removed. */
START_TEST(test_for_ever)
{
    struct world world;
    begin(&world, 2, 5 * YEAR_NS, 1);
    for (int i = 0; i < 2; i++) {
        world.items[i].due_ns = WEIR_FOREVER - (uint64_t)i;
        weir__wheel_add(&world.wheel, &world.items[i].timer);
    }
    ck_assert_ptr_null(weir__wheel_expire(&world.wheel, 100 * YEAR_NS));
    ck_assert_uint_gt(weir__wheel_next_ns(&world.wheel), 100 * YEAR_NS);
    for (int i = 0; i < 2; i++)
        weir__wheel_remove(&world.wheel, &world.items[i].timer);
    ck_assert_uint_eq(world.wheel.count, 0);
    ck_assert(weir__wheel_next_ns(&world.wheel) == WEIR_FOREVER);
    finish(&world, "for ever");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {test_random_operations, test_short_deadlines, test_borders_of_levels, test_for_ever,
                                  NULL};
    Suite *suite = suite_create("wheel");
    weir_test_group(suite, "wheel", tests);
    return weir_test_main(suite);
}
