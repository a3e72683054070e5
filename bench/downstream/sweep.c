/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of a fixed number of threads that always have work, to find the number that is best in the quiet phase: the
 * least one that completes nearly as much as any. More threads than that only wait for each other. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "downstream.h"

#define NEARLY    0.985
#define WARM_NS   (300 * NS_PER_MS)
#define RATIO_END 1.13 /* numbers that lie closer are not told apart */
#define TRIED_MAX 40

struct tried {
    unsigned threads;
    double rate;
};

static int measure(struct part *part, unsigned threads, double seconds, double *rate)
{
    struct pool_kind kind = {.algorithm = WEIR_FIXED, .fixed = threads};
    struct load load = {.part = part, .seed = threads};
    weir_config config;
    load_configure(part, &kind, &config);
    int error = weir_pool_create(&load.pool, "sweep", &config);
    if (error != 0)
        return bench_complain("the pool cannot be created", weir_strerror(error));
    struct figures *figures = malloc(sizeof *figures);
    error = figures == NULL ? ENOMEM : load_start(&load);
    if (error == 0) {
        error = pause_ns(WARM_NS);
        load_collect(figures);
        uint64_t start = weir_now_ns();
        if (error == 0)
            error = pause_ns((uint64_t)(seconds * (double)NS_PER_S));
        load_collect(figures);
        *rate = (double)figures->tally.completed * (double)NS_PER_S / (double)(weir_now_ns() - start);
        load_stop(&load);
    }
    free(figures);
    weir_pool_destroy(load.pool);
    return error;
}

static double greatest(const struct tried *tried, size_t count)
{
    double rate = 0;
    for (size_t i = 0; i < count; i++)
        rate = fmax(rate, tried[i].rate);
    return rate;
}

/* The least number that is good enough, and the greatest below it that was tried. */
static void bracket(const struct tried *tried, size_t count, unsigned *low, unsigned *high)
{
    double enough = NEARLY * greatest(tried, count);
    *high = UINT32_MAX;
    *low = 0;
    for (size_t i = 0; i < count; i++)
        if (tried[i].rate >= enough && tried[i].threads < *high)
            *high = tried[i].threads;
    for (size_t i = 0; i < count; i++)
        if (tried[i].threads < *high && tried[i].threads > *low)
            *low = tried[i].threads;
}

static int try_one(struct part *part, double seconds, unsigned threads, struct tried *tried, size_t *count)
{
    tried[*count].threads = threads;
    int error = measure(part, threads, seconds, &tried[*count].rate);
    if (error == 0)
        printf(" %u: %.0f", threads, tried[*count].rate);
    fflush(stdout);
    ++*count;
    return error;
}

int sweep(struct part *part, const struct options *options, struct sweep *result)
{
    double seconds = options->seconds > 0 ? fmin(1.5, options->seconds) : 1.5;
    struct tried tried[TRIED_MAX] = {{0}};
    size_t count = 0;
    int error = part->enter(0);
    printf("%s: calls per second by threads, always busy:", part->name);
    for (unsigned threads = 1; threads <= part->widest && error == 0; threads *= 2)
        error = try_one(part, seconds, threads, tried, &count);
    unsigned low = 0, high = 1;
    while (error == 0 && count < TRIED_MAX) {
        bracket(tried, count, &low, &high);
        if (high <= low + 1 || high < RATIO_END * low)
            break;
        error = try_one(part, seconds, (unsigned)lround(sqrt((double)low * high)), tried, &count);
    }
    putchar('\n');
    *result = (struct sweep){.best = high, .rate = greatest(tried, count)};
    if (error == 0 && !(result->rate > 0))
        return bench_complain(part->name, "no call succeeded");
    return error;
}
