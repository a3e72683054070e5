/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What figures cost: jobs that do nothing, with nobody looking, with a snapshot each millisecond, with a live file, and
 * with the text for Prometheus ten times a second. The ways take turns, so that what else happens on the machine meets
 * all of them; a way is compared with the same round where nobody looked. The time of the processors, of all threads
 * together, is steadier on a machine that has other work than the time that has passed. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

enum { ROUNDS = 21, BATCH = 1000, CLIENTS = 2 };
#define ROUND_NS UINT64_C(250000000)

enum way { NOBODY, SNAPSHOTS, LIVE_FILE, PROMETHEUS, WAYS };
static const char *const names[WAYS] = {"nobody looks", "snapshot each ms", "live file", "Prometheus 10/s"};

struct look {
    weir_pool *pool;
    enum way way;
    atomic_bool over;
    uint64_t count;
    double used_ns;
    FILE *sink;
};

static weir_outcome nothing(void *unused)
{
    (void)unused;
    return WEIR_SUCCESS;
}

static double used_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Looks at the figures until the round is over. */
static void *watch(void *arg)
{
    struct look *look = arg;
    struct timespec pause = {.tv_nsec = look->way == SNAPSHOTS ? 1000000 : 100000000};
    while (!atomic_load(&look->over)) {
        weir_stats stats = {.size = sizeof stats};
        if (look->way == SNAPSHOTS)
            (void)weir_pool_stats(look->pool, &stats);
        else
            (void)weir_stats_write(look->sink, WEIR_PROMETHEUS);
        look->count++;
        (void)nanosleep(&pause, NULL);
    }
    look->used_ns = used_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

/* Submits until the round is over; how many. */
static void *submit(void *pool)
{
    uint64_t count = 0;
    uint64_t end_ns = weir_after_ns(ROUND_NS);
    while (weir_now_ns() < end_ns) {
        for (int i = 0; i < BATCH; i++)
            count += weir_pool_submit(pool, nothing, NULL) == 0;
    }
    return (void *)(uintptr_t)count; /* 32 bits hold a round of it */
}

struct cost {
    double passed_ns; /* per job */
    double used_ns;
};

static struct cost run_jobs(weir_pool *pool)
{
    pthread_t clients[CLIENTS];
    uint64_t count = 0;
    uint64_t begin_ns = weir_now_ns();
    double begin_used_ns = used_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < CLIENTS; i++) {
        if (pthread_create(&clients[i], NULL, submit, pool) != 0)
            exit(1);
    }
    for (int i = 0; i < CLIENTS; i++) {
        void *submitted = NULL;
        (void)pthread_join(clients[i], &submitted);
        count += (uintptr_t)submitted;
    }
    (void)weir_pool_drain(pool, WEIR_FOREVER);
    return (struct cost){.passed_ns = (double)(weir_now_ns() - begin_ns) / (double)count,
                         .used_ns = (used_ns(CLOCK_PROCESS_CPUTIME_ID) - begin_used_ns) / (double)count};
}

/* Of all rounds of a way. */
struct looks {
    uint64_t count;
    double used_ns;
};

static struct cost measure(enum way way, const char *directory, FILE *sink, struct looks *looks)
{
    weir_config config;
    struct look look = {.way = way, .sink = sink};
    pthread_t watcher;
    (void)weir_config_init(&config);
    config.flags = WEIR_NO_ENV;
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 4;
    config.queue_depth = 1024;
    config.stats_dir = way == LIVE_FILE ? directory : NULL;
    if (weir_pool_create(&look.pool, "bench", &config) != 0)
        exit(1);
    bool watched = way == SNAPSHOTS || way == PROMETHEUS;
    if (watched && pthread_create(&watcher, NULL, watch, &look) != 0)
        exit(1);
    struct cost cost = run_jobs(look.pool);
    atomic_store(&look.over, true);
    if (watched)
        (void)pthread_join(watcher, NULL);
    looks->count += look.count;
    looks->used_ns += look.used_ns;
    (void)weir_pool_destroy(look.pool);
    return cost;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(enum way way, double times[WAYS][ROUNDS])
{
    double ratios[ROUNDS];
    double sorted[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        ratios[i] = (times[way][i] / times[NOBODY][i] - 1) * 100;
        sorted[i] = times[way][i];
    }
    qsort(ratios, ROUNDS, sizeof *ratios, compare);
    qsort(sorted, ROUNDS, sizeof *sorted, compare);
    printf("%-17s %6.0f ns a job (%.0f to %.0f)", names[way], sorted[ROUNDS / 2], sorted[ROUNDS / 4],
           sorted[ROUNDS * 3 / 4]);
    if (way != NOBODY)
        printf("  %+5.1f %% (%+.1f to %+.1f)", ratios[ROUNDS / 2], ratios[ROUNDS / 4], ratios[ROUNDS * 3 / 4]);
    printf("\n");
}

int main(void)
{
    static double passed[WAYS][ROUNDS];
    static double used[WAYS][ROUNDS];
    char directory[] = "/tmp/weir-figures-XXXXXX";
    struct looks looks[WAYS] = {0};
    FILE *sink = fopen("/dev/null", "w");
    if (sink == NULL || mkdtemp(directory) == NULL)
        return 1;
    (void)measure(NOBODY, directory, sink, &looks[NOBODY]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < WAYS; i++) {
            int way = (round + i) % WAYS;
            struct cost cost = measure((enum way)way, directory, sink, &looks[way]);
            passed[way][round] = cost.passed_ns;
            used[way][round] = cost.used_ns;
        }
    }
    printf("%d rounds, median (and quartiles), against the same round; %.0f snapshots a second\n", ROUNDS,
           (double)looks[SNAPSHOTS].count / (ROUNDS * (double)ROUND_NS / 1e9));
    printf("a snapshot takes %.1f us of a processor, sleep and wake-up included: a thousand a second %.2f %% of it\n",
           looks[SNAPSHOTS].used_ns / 1e3 / (double)looks[SNAPSHOTS].count,
           looks[SNAPSHOTS].used_ns / 1e4 / (double)looks[SNAPSHOTS].count);
    printf("time that has passed\n");
    for (int way = 0; way < WAYS; way++)
        report((enum way)way, passed);
    printf("time of the processors\n");
    for (int way = 0; way < WAYS; way++)
        report((enum way)way, used);
    (void)rmdir(directory);
    return fclose(sink) == 0 ? 0 : 1;
}
