/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Load that lasts: epochs of a pool with mixed submitters, deadlines, partitions, cancels, pauses, direct callers and
 * small pools besides, in front of a server that is slow, stalls, resets and goes away. Every job is accounted for at
 * the end of its epoch; memory, threads and descriptors must not grow from epoch to epoch.
 *
 *     soak MINUTES [SECONDS of an epoch] */

#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "soak.h"

#define EPOCH_S 15.0

enum { WARM_UP = 2, MOST_EPOCHS = 10000 };
/* Most growth from the first third after the warm-up to the last. With an arena of malloc's for every few threads, each
 * of which keeps the pages that it has ever needed, what is resident grows for an hour by a page now and then, and only
 * there; with a single one it stands still after a minute, and so it must. What is allocated does to the KiB without
 * the caches of threads (soak.sh turns them off), which hold blocks of every size that came by, more of them for hours.
 */
#define MOST_RSS_KIB  128
#define MOST_HEAP_KIB 8

void soak_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fflush(stdout);
    (void)fputs("soak: FAILED: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputs("\n", stderr);
    va_end(arguments);
    _Exit(1);
}

uint64_t soak_random(uint64_t *state, uint64_t bound)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % bound;
}

/* Between two epochs. */
struct look {
    uint64_t rss_kib;
    uint64_t heap_kib;
    unsigned threads;
    unsigned descriptors;
};

static struct look looks[MOST_EPOCHS];

static void take_look(struct look *look)
{
    (void)malloc_trim(0);
    *look = (struct look){process_rss_kib(), process_heap_kib(), process_threads(), process_descriptors()};
}

static double mean_of(unsigned from, unsigned to, bool heap)
{
    double sum = 0;
    for (unsigned i = from; i < to; i++)
        sum += (double)(heap ? looks[i].heap_kib : looks[i].rss_kib);
    return sum / (to - from);
}

static void judge_memory(unsigned epochs, bool heap)
{
    unsigned third = (epochs - WARM_UP) / 3;
    double first = mean_of(WARM_UP, WARM_UP + third, heap);
    double last = mean_of(epochs - third, epochs, heap);
    (void)printf("%s: %.0f KiB in the first third, %.0f in the last\n", heap ? "allocated" : "resident", first, last);
    if (last > first + (heap ? MOST_HEAP_KIB : MOST_RSS_KIB))
        soak_fail("memory has grown by %.0f KiB", last - first);
}

static void judge_growth(unsigned epochs)
{
    if (epochs < WARM_UP + 3) {
        (void)printf("memory: too few epochs to tell whether it grows\n");
        return;
    }
    judge_memory(epochs, false);
    judge_memory(epochs, true);
    for (unsigned i = WARM_UP; i < epochs; i++) {
        if (looks[i].threads > looks[WARM_UP].threads || looks[i].descriptors > looks[WARM_UP].descriptors)
            soak_fail("threads or descriptors are left over: %u, %u after epoch %u; %u, %u after epoch %u",
                      looks[i].threads, looks[i].descriptors, i, looks[WARM_UP].threads, looks[WARM_UP].descriptors,
                      (unsigned)WARM_UP);
    }
}

static void print_epoch(unsigned number, const struct totals *totals, const struct look *look)
{
    (void)printf("%5u %9llu %9llu %9llu %8llu %8llu %8llu %8llu %7u %6llu %6llu %3u %3u\n", number,
                 (unsigned long long)totals->jobs, (unsigned long long)totals->succeeded,
                 (unsigned long long)totals->dropped, (unsigned long long)totals->cancelled,
                 (unsigned long long)totals->expired, (unsigned long long)totals->shed,
                 (unsigned long long)totals->timed_out, totals->most_threads, (unsigned long long)look->rss_kib,
                 (unsigned long long)look->heap_kib, look->threads, look->descriptors);
    (void)fflush(stdout);
}

static void print_sum(const struct totals *totals, struct request_counts *counts, pid_t server)
{
    (void)printf("jobs accepted %llu = %llu succeeded + %llu ignored + %llu dropped + %llu cancelled + %llu expired; "
                 "none lost\n",
                 (unsigned long long)totals->jobs, (unsigned long long)totals->succeeded,
                 (unsigned long long)totals->ignored, (unsigned long long)totals->dropped,
                 (unsigned long long)totals->cancelled, (unsigned long long)totals->expired);
    (void)printf("refused: %llu shed, %llu timed out, %llu by a shutdown; direct permits %llu; pools besides %llu\n",
                 (unsigned long long)totals->shed, (unsigned long long)totals->timed_out,
                 (unsigned long long)totals->refused, (unsigned long long)totals->permits,
                 (unsigned long long)totals->pools);
    (void)printf("requests to server %ld: %llu answered, %llu timed out, %llu refused or reset; threads at most %u\n",
                 (long)server, atomic_load(&counts->answered), atomic_load(&counts->timed_out),
                 atomic_load(&counts->refused), totals->most_threads);
}

int main(int argc, char **argv)
{
    static struct request_counts counts;
    struct totals totals = {0};
    pid_t server;
    double minutes = argc > 1 ? strtod(argv[1], NULL) : 30;
    double epoch_s = argc > 2 ? strtod(argv[2], NULL) : EPOCH_S;
    uint64_t end_ns = weir_after_ns((uint64_t)(minutes * 60e9));
    unsigned epochs = 0;
    (void)mallopt(M_ARENA_MAX, 1); /* before the first thread */
    uint16_t port = server_start(&server);
    (void)printf("%5s %9s %9s %9s %8s %8s %8s %8s %7s %6s %6s %3s %3s\n", "EPOCH", "JOBS", "SUCCESS", "DROPPED",
                 "CANCEL", "EXPIRED", "SHED", "LATE", "THREADS", "RSS", "HEAP", "THR", "FDS");
    while (weir_now_ns() < end_ns && epochs < MOST_EPOCHS) {
        double left_s = (double)(end_ns - weir_now_ns()) * 1e-9;
        epoch_run(port, &counts, epochs, left_s < epoch_s ? left_s : epoch_s, &totals);
        take_look(&looks[epochs]);
        print_epoch(epochs, &totals, &looks[epochs]);
        epochs++;
    }
    (void)kill(server, SIGKILL);
    print_sum(&totals, &counts, server);
    judge_growth(epochs);
    (void)printf("soak: nothing lost, nothing grows\n");
    return 0;
}
