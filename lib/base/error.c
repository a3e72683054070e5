/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const struct {
    int error;
    const char *text;
} texts[] = {
    {0, "success"},
    {EAGAIN, "shed: the ceiling is reached, or no worker could be started"},
    {EALREADY, "the job has ended already"},
    {EBUSY, "still in use"},
    {ECANCELED, "cancelled before it started"},
    {ECHILD, "inherited across fork: its threads do not exist in this process"},
    {EDEADLK, "a job of this pool would wait for itself"},
    {EINPROGRESS, "not ended yet"},
    {EINVAL, "bad argument or configuration"},
    {EIO, "writing failed"},
    {ENOMEM, "out of memory"},
    {ENOTSUP, "cannot change while the pool or limiter runs"},
    {ESHUTDOWN, "the pool has been shut down"},
    {ETIMEDOUT, "the deadline passed first"},
};

const char *weir_strerror(int error)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].error == error)
            return texts[i].text;
    }
    return "unknown error";
}

void weir__must_fail(const char *call, const char *file, int line, int error)
{
    (void)fprintf(stderr, "weir: %s:%d: %s: error %d\n", file, line, call, error);
    abort();
}
