/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weir.h>

static weir_outcome work(void *arg)
{
    (void)arg;
    return WEIR_SUCCESS;
}

static void print_line(weir_pool *pool)
{
    weir_stats stats;
    stats.size = sizeof stats;
    if (weir_pool_stats(pool, &stats) != 0)
        return;
    uint64_t ended = stats.succeeded + stats.ignored + stats.dropped +
                     stats.expired + stats.cancelled;
    printf("%s: limit %u, running %u, queued %u of %u, submitted %.0f\n",
           stats.phase, (unsigned)stats.limit, (unsigned)stats.running,
           (unsigned)stats.queued, (unsigned)stats.queue_depth,
           (double)stats.submitted);
    if (stats.submitted != ended + stats.queued + stats.running)
        puts("never printed: a snapshot shows one instant");
}

int main(void)
{
    weir_pool *pool = NULL;
    int error = weir_pool_create(&pool, "figures", NULL);
    for (int i = 0; i < 10000 && error == 0; i++) {
        error = weir_pool_submit(pool, work, NULL);
        if (i % 2000 == 0)
            print_line(pool);
    }
    if (error != 0)
        fprintf(stderr, "figures: %s\n", weir_strerror(error));
    return pool != NULL ? weir_pool_destroy(pool) : 1;
}
