/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "peers.h"

uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void sleep_ns(uint64_t ns)
{
    struct timespec span = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)nanosleep(&span, NULL);
}

static double turns_per_ns = 1.0;

/* In a register: how fast a variable on the stack is read back after it was written depends on where the stack lies, by
 * a factor of two. */
static void spin(uint64_t turns)
{
    for (uint64_t turn = 0; turn < turns; turn++)
        __asm__ volatile("" : "+r"(turn));
}

void calibrate_spin(void)
{
    enum { TURNS = 1000000, TRIES = 20 };
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t begin = now_ns();
        spin(TURNS);
        uint64_t took = now_ns() - begin;
        least = took < least ? took : least;
    }
    turns_per_ns = (double)TURNS / (double)least;
}

void spin_ns(uint64_t ns)
{
    spin((uint64_t)((double)ns * turns_per_ns));
}
