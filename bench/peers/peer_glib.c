/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <glib.h>

#include "peers.h"

static void run(gpointer data, gpointer user)
{
    (void)user;
    job_run(((uintptr_t)data & 1) != 0 ? NULL : data); /* it takes no NULL for a job */
}

static void *create(unsigned threads)
{
    return g_thread_pool_new(run, NULL, (gint)threads, TRUE, NULL);
}

static void submit(void *pool, void *arg)
{
    (void)g_thread_pool_push(pool, arg != NULL ? arg : (gpointer)1, NULL);
}

static void destroy(void *pool)
{
    g_thread_pool_free(pool, FALSE, TRUE);
}

const struct peer peer_glib = {.name = "glib", .ranked = true, .create = create, .submit = submit, .destroy = destroy};
