/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* live_process: a process to look at. Its pool "busy" has 2 permits out and 3 of 4 places of its queue taken, its
 * limiter "gate" 1 of 5 permits out. It reads the environment for STATS_DIR, says "ready" and ends with its standard
 * input. */

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

static int hold[2]; /* jobs wait for the end of this pipe */

static weir_outcome wait_for_end(void *arg)
{
    char byte;
    (void)arg;
    return read(hold[0], &byte, 1) == 0 ? WEIR_SUCCESS : WEIR_IGNORE;
}

static int create(weir_pool **pool, weir_limiter **limiter)
{
    weir_config config;
    int error = weir_config_init(&config);
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 2;
    config.queue_depth = 4;
    if (error == 0)
        error = weir_pool_create(pool, "busy", &config);
    if (error == 0)
        error = weir_pool_configure(*pool, "MAX_LIMIT", "100");
    config.initial_limit = 5;
    return error != 0 ? error : weir_limiter_create(limiter, "gate", &config);
}

/* The last of them, a while after the others, tells the file what has become of all. */
static int fill(weir_pool *pool, weir_limiter *limiter, weir_permit *permit)
{
    int error = weir_limiter_acquire(limiter, permit);
    weir_permit second = {{0}};
    for (int i = 0; i < 5 && error == 0; i++) {
        if (i == 4)
            (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        error = weir_pool_submit(pool, wait_for_end, NULL);
    }
    if (error == 0)
        error = weir_limiter_acquire(limiter, &second);
    return error != 0 ? error : weir_limiter_release(limiter, &second, WEIR_SUCCESS);
}

int main(void)
{
    weir_pool *pool = NULL;
    weir_limiter *limiter = NULL;
    weir_permit permit = {{0}};
    char byte;
    if (pipe(hold) != 0 || create(&pool, &limiter) != 0 || fill(pool, limiter, &permit) != 0)
        return 1;
    (void)puts("ready");
    (void)fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    (void)close(hold[1]);
    int error = weir_limiter_release(limiter, &permit, WEIR_SUCCESS);
    error |= weir_pool_destroy(pool);
    return error | weir_limiter_destroy(limiter);
}
