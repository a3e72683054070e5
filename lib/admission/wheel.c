/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "admission/admission.h"

/* After G. Varghese and T. Lauck, "Hashed and Hierarchical Timing Wheels" (SOSP 1987). A timer lies in the lowest level
 * whose slots still tell its tick from the present one: level l holds ticks that differ from now first in their l-th
 * group of six bits. When the wheel arrives at a slot of a higher level, its timers move down. Seven levels span 2^42
 * ticks, that is 146 years. */

enum { GROUP_BITS = 6 };
#define LAST_TICK ((UINT64_C(1) << (GROUP_BITS * WEIR__WHEEL_LEVELS)) - 1)

static uint64_t tick_of(const struct weir__wheel *wheel, const struct weir__timer *timer)
{
    uint64_t due_ns = wheel->due_ns(timer);
    uint64_t tick = due_ns >> WEIR__TICK_SHIFT;
    tick += (due_ns & ((UINT64_C(1) << WEIR__TICK_SHIFT) - 1)) != 0 ? 1 : 0; /* never early */
    return tick < LAST_TICK ? tick : LAST_TICK;
}

static unsigned group(uint64_t tick, unsigned level)
{
    return (unsigned)(tick >> (GROUP_BITS * level)) % WEIR__WHEEL_SLOTS;
}

void weir__wheel_init(struct weir__wheel *wheel, uint64_t now_ns, uint64_t (*due_ns)(const struct weir__timer *timer))
{
    *wheel = (struct weir__wheel){.now_tick = now_ns >> WEIR__TICK_SHIFT, .due_ns = due_ns};
    for (unsigned level = 0; level < WEIR__WHEEL_LEVELS; level++) {
        for (unsigned slot = 0; slot < WEIR__WHEEL_SLOTS; slot++) {
            struct weir__timer *head = &wheel->slots[level][slot];
            head->next = head;
            head->previous = head;
        }
    }
}

static void place(struct weir__wheel *wheel, struct weir__timer *timer, uint64_t tick)
{
    unsigned level = 0;
    for (unsigned l = WEIR__WHEEL_LEVELS; l-- > 1;) {
        if (group(tick, l) != group(wheel->now_tick, l)) {
            level = l;
            break;
        }
    }
    unsigned slot = group(tick, level);
    struct weir__timer *head = &wheel->slots[level][slot];
    timer->next = head;
    timer->previous = head->previous;
    head->previous->next = timer;
    head->previous = timer;
    wheel->occupied[level] |= UINT64_C(1) << slot;
}

void weir__wheel_add(struct weir__wheel *wheel, struct weir__timer *timer)
{
    uint64_t tick = tick_of(wheel, timer);
    place(wheel, timer, tick > wheel->now_tick ? tick : wheel->now_tick);
    wheel->count++;
}

static void unlink_timer(struct weir__wheel *wheel, struct weir__timer *timer)
{
    struct weir__timer *next = timer->next;
    next->previous = timer->previous;
    timer->previous->next = next;
    timer->previous = NULL;
    struct weir__timer *heads = &wheel->slots[0][0];
    if (next->next == next && next >= heads && next < heads + WEIR__WHEEL_LEVELS * WEIR__WHEEL_SLOTS) {
        size_t index = (size_t)(next - heads);
        wheel->occupied[index / WEIR__WHEEL_SLOTS] &= ~(UINT64_C(1) << (index % WEIR__WHEEL_SLOTS));
    }
}

void weir__wheel_remove(struct weir__wheel *wheel, struct weir__timer *timer)
{
    if (timer->previous == NULL)
        return;
    unlink_timer(wheel, timer);
    wheel->count--;
}

/* Moves the timers of a slot that the wheel has arrived at to where they belong now. */
static void move_down(struct weir__wheel *wheel, unsigned level)
{
    struct weir__timer *head = &wheel->slots[level][group(wheel->now_tick, level)];
    while (head->next != head) {
        struct weir__timer *timer = head->next;
        unlink_timer(wheel, timer);
        uint64_t tick = tick_of(wheel, timer);
        place(wheel, timer, tick > wheel->now_tick ? tick : wheel->now_tick);
    }
}

/* The first tick from now on at which a slot of the level is due, by the level's bits alone; UINT64_MAX: none. */
static uint64_t next_of_level(const struct weir__wheel *wheel, unsigned level)
{
    unsigned now_slot = group(wheel->now_tick, level);
    uint64_t ahead = wheel->occupied[level] >> now_slot; /* a slot behind the present one is never used */
    if (ahead == 0)
        return UINT64_MAX;
    unsigned distance = 0;
    while ((ahead & 1) == 0) {
        ahead >>= 1;
        distance++;
    }
    uint64_t span = UINT64_C(1) << (GROUP_BITS * level);
    uint64_t start = wheel->now_tick & ~(span - 1);
    return distance == 0 ? wheel->now_tick : start + distance * span;
}

static uint64_t next_tick(const struct weir__wheel *wheel)
{
    for (unsigned level = 0; level < WEIR__WHEEL_LEVELS; level++) {
        uint64_t tick = next_of_level(wheel, level);
        if (tick != UINT64_MAX)
            return tick; /* whatever lies in a higher level is later */
    }
    return UINT64_MAX;
}

struct weir__timer *weir__wheel_expire(struct weir__wheel *wheel, uint64_t now_ns)
{
    uint64_t now_tick = now_ns >> WEIR__TICK_SHIFT;
    while (wheel->count > 0) {
        struct weir__timer *head = &wheel->slots[0][group(wheel->now_tick, 0)];
        if (head->next != head) {
            struct weir__timer *timer = head->next;
            weir__wheel_remove(wheel, timer);
            return timer;
        }
        uint64_t tick = next_tick(wheel);
        if (tick > now_tick)
            break;
        wheel->now_tick = tick;
        for (unsigned level = WEIR__WHEEL_LEVELS; level-- > 1;)
            move_down(wheel, level);
    }
    if (wheel->count == 0 && now_tick > wheel->now_tick)
        wheel->now_tick = now_tick;
    return NULL;
}

uint64_t weir__wheel_next_ns(const struct weir__wheel *wheel)
{
    uint64_t tick = wheel->count > 0 ? next_tick(wheel) : UINT64_MAX;
    return tick <= LAST_TICK ? tick << WEIR__TICK_SHIFT : WEIR_FOREVER;
}
