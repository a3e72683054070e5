/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_COMPLETIONS_H
#define WEIR_COMPLETIONS_H

#include <weir/api.h>
#include <weir/job.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ended jobs for an event loop: any number of pools deliver into it, and its descriptor is readable exactly while
 * something is in it. All functions are MT-Safe, except that destroy must be the last call, after the last job was
 * delivered. In a fork child next returns NULL, fd -1. */
typedef struct weir_completions weir_completions;

/* ENOMEM, EINVAL (NULL), or what the system says when there is no descriptor: EMFILE, ENFILE. */
WEIR_API int weir_completions_create(weir_completions **completions);

/* For poll, epoll, libuv, libev: wait for readability, do not read from it. -1: completions is NULL. */
WEIR_API int weir_completions_fd(weir_completions *completions);

/* The job that ended first, now the caller's again, or NULL. Never blocks. */
WEIR_API weir_job *weir_completions_next(weir_completions *completions);

/* Closes the descriptor. Jobs still in it are the caller's again. NULL is allowed. */
WEIR_API void weir_completions_destroy(weir_completions *completions);

#ifdef __cplusplus
}
#endif
#endif
