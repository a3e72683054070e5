/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

static weir_outcome work(void *arg)
{
    (void)arg;
    return WEIR_SUCCESS;
}

/* The 99th percentile of what happened since the copy in *past. */
static double recent_p99_ms(weir_pool *pool, weir_histogram *past)
{
    weir_histogram now;
    if (weir_pool_histogram(pool, WEIR_HISTOGRAM_END_TO_END, &now) != 0)
        return 0;
    weir_histogram recent = now;
    recent.count -= past->count;
    for (int i = 0; i < WEIR_HISTOGRAM_BUCKETS; i++)
        recent.buckets[i] -= past->buckets[i];
    *past = now;
    return (double)weir_histogram_quantile_ns(&recent, 0.99) / 1e6;
}

int main(void)
{
    weir_pool *pool = NULL;
    weir_histogram *past = (weir_histogram *)calloc(1, sizeof *past);
    int error = weir_pool_create(&pool, "metrics", NULL);
    for (int i = 0; i < 1000 && error == 0; i++)
        error = weir_pool_submit(pool, work, NULL);
    if (error == 0 && past != NULL)
        printf("# p99 end to end: %.3f ms\n", recent_p99_ms(pool, past));
    if (error == 0)
        error = weir_stats_write(stdout, WEIR_PROMETHEUS);
    free(past);
    if (error != 0)
        fprintf(stderr, "metrics: %s\n", weir_strerror(error));
    return pool != NULL ? weir_pool_destroy(pool) | error : 1;
}
