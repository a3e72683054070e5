/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* No-op jobs for count.sh, which runs this under callgrind: the main thread submits, workers run them. Under callgrind
 * everything takes so much longer that no job would be taken for short; so here time passes as much more slowly. It is
 * linked statically, with a clock of its own. */

#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

enum { SLOWER = 256 };

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static long long first_ns;
    long result = syscall(SYS_clock_gettime, clock, time);
    if (clock != CLOCK_MONOTONIC || result != 0)
        return (int)result;
    long long now_ns = (long long)time->tv_sec * 1000000000 + time->tv_nsec;
    if (first_ns == 0)
        first_ns = now_ns;
    now_ns = first_ns + (now_ns - first_ns) / SLOWER;
    *time = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000), .tv_nsec = (long)(now_ns % 1000000000)};
    return 0;
}

static sem_t submitted;

/* All jobs are submitted before the first is run: the worker finds as many as it takes at once. */
static weir_outcome wait_for_all(void *unused)
{
    (void)unused;
    (void)sem_wait(&submitted);
    return WEIR_SUCCESS;
}

static weir_outcome nothing(void *unused)
{
    (void)unused;
    return WEIR_SUCCESS;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        (void)fprintf(stderr, "count fixed|vegas2 JOBS\n");
        return 2;
    }
    weir_pool *pool;
    weir_config config;
    (void)weir_config_init(&config);
    config.flags |= WEIR_NO_ENV;
    config.algorithm = strcmp(argv[1], "fixed") == 0 ? WEIR_FIXED : WEIR_VEGAS2;
    config.initial_limit = config.min_limit = config.max_limit = 1; /* no watch, whose clock would be too fast */
    config.queue_depth = config.queue_max = 1u << 20;
    if (weir_pool_create(&pool, "count", &config) != 0)
        return 1;
    (void)sem_init(&submitted, 0, 0);
    if (weir_pool_submit(pool, wait_for_all, NULL) != 0)
        return 1;
    for (long jobs = strtol(argv[2], NULL, 10); jobs > 0; jobs--) {
        if (weir_pool_submit(pool, nothing, NULL) != 0)
            return 1;
    }
    (void)sem_post(&submitted);
    if (weir_pool_drain(pool, WEIR_FOREVER) != 0) /* in a shutdown no submit would use the inbox */
        return 1;
    return weir_pool_destroy(pool) != 0;
}
