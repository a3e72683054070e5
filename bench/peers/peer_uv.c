/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "peers.h"

/* The threads belong to the process and their number is read once; completions come back to the loop of the thread that
 * submitted, so each producer has a loop. The pool cannot be destroyed. */

static _Thread_local uv_loop_t *loop;

static void *create(unsigned threads)
{
    static int pool;
    char text[16];
    (void)snprintf(text, sizeof text, "%u", threads);
    (void)setenv("UV_THREADPOOL_SIZE", text, 1);
    return &pool;
}

static void work(uv_work_t *request)
{
    job_run(request->data);
}

static void after(uv_work_t *request, int status)
{
    (void)status;
    free(request);
}

static void submit(void *pool, void *arg)
{
    (void)pool;
    if (loop == NULL) {
        loop = malloc(sizeof *loop);
        (void)uv_loop_init(loop);
    }
    uv_work_t *request = malloc(sizeof *request);
    request->data = arg;
    (void)uv_queue_work(loop, request, work, after);
}

static void flush(void *pool)
{
    (void)pool;
    (void)uv_run(loop, UV_RUN_DEFAULT);
}

const struct peer peer_uv = {
    .name = "libuv", .ranked = true, .most = 1024, .create = create, .submit = submit, .flush = flush};
