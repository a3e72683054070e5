/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_THPOOL_H
#define WEIR_THPOOL_H

/* The interface of C-Thread-Pool ("thpool") on pools of this library: a program written for thpool.h includes this
 * header instead and links libweir-thpool. Not a part of <weir.h>, for its names are thpool's. weir_thpool(3) lists
 * what is different. */

#include <weir/api.h>
#include <weir/config.h>
#include <weir/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thpool_ *threadpool;

/* A pool of num_threads threads that runs what is added to it first in, first out; the queue has no bound that counts.
 * With num_threads below 1 nothing is ever run. The environment is read as for a weir pool of the name "thpool", so
 * that WEIR_ALGORITHM__THPOOL=vegas2 makes num_threads the upper bound of an estimated limit. NULL: errno says why. */
WEIR_API threadpool thpool_init(int num_threads);

/* 0, or -1 with the reason in errno; the job never runs then. Blocks only where the environment or the program has
 * bounded the queue, at that bound. */
WEIR_API int thpool_add_work(threadpool pool, void (*function_p)(void *), void *arg_p);

/* Waits until all jobs have ended, jobs that were added meanwhile included. Any number of threads may wait. */
WEIR_API void thpool_wait(threadpool pool);

/* Paused, a pool starts no further job; running ones go on. Of this pool alone. */
WEIR_API void thpool_pause(threadpool pool);
WEIR_API void thpool_resume(threadpool pool);

/* Jobs that have not started never run; returns when the running ones have ended. NULL is allowed. */
WEIR_API void thpool_destroy(threadpool pool);

/* Jobs that run now. */
WEIR_API int thpool_num_threads_working(threadpool pool);

/* Beyond thpool: what thpool_init(num_threads) takes as its configuration, for a program that wants to change it, and a
 * pool of a name and configuration of one's own. Errors: those of weir_config_init and weir_pool_create. */
WEIR_API int weir_thpool_config(weir_config *config, int num_threads);
WEIR_API int weir_thpool_create(threadpool *pool, const char *name, const weir_config *config);

/* The pool beneath, for weir_pool_submit, weir_pool_stats and all others but weir_pool_destroy. NULL: pool is NULL. */
WEIR_API weir_pool *weir_thpool_pool(threadpool pool);

#ifdef __cplusplus
}
#endif
#endif
