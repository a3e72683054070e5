/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weir.h>

static weir_outcome answer(void *arg)
{
    *(int *)arg = 42;
    return WEIR_SUCCESS;
}

int main(void)
{
    weir_pool *pool = NULL;
    int result = 0;
    int error = weir_pool_create(&pool, "job", NULL);
    weir_job job = WEIR_JOB_INIT(answer, &result);
    job.deadline_ns = weir_after_ns(2000000000);
    if (error == 0)
        error = weir_job_submit(pool, &job);
    if (error == 0)
        error = weir_job_wait(&job, WEIR_FOREVER);
    printf("%d: %s\n", result, weir_strerror(error));
    return pool != NULL ? weir_pool_destroy(pool) : 1;
}
