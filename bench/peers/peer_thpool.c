/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Debian ships cthreadpool as source, to be compiled into a program. */
#include <thpool.c>

#include "peers.h"

static void *create(unsigned threads)
{
    return thpool_init((int)threads);
}

static void submit(void *pool, void *arg)
{
    (void)thpool_add_work(pool, job_run, arg);
}

static void destroy(void *pool)
{
    thpool_wait(pool);
    thpool_destroy(pool);
}

const struct peer peer_thpool = {
    .name = "thpool", .ranked = true, .create = create, .submit = submit, .destroy = destroy};
