/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <stdio.h>
#include <weir.h>

static weir_outcome work(void *arg)
{
    *(int *)arg += 1;
    return WEIR_SUCCESS;
}

int main(void)
{
    enum { JOBS = 10 };
    weir_job jobs[JOBS];
    int counts[JOBS] = {0};
    int ended = 0;
    weir_pool *pool = NULL;
    weir_completions *done = NULL;
    if (weir_pool_create(&pool, "loop", NULL) != 0 ||
        weir_completions_create(&done) != 0)
        return 1;
    for (int i = 0; i < JOBS; i++) {
        weir_job job = WEIR_JOB_INIT(work, &counts[i]);
        jobs[i] = job;
        jobs[i].completions = done;
        if (weir_job_submit(pool, &jobs[i]) != 0)
            return 1;
    }
    struct pollfd poller = {weir_completions_fd(done), POLLIN, 0};
    while (ended < JOBS && poll(&poller, 1, -1) >= 0) {
        while (weir_completions_next(done) != NULL)
            ended++;
    }
    printf("%d jobs ended\n", ended);
    int error = weir_pool_destroy(pool);
    weir_completions_destroy(done);
    return error;
}
