/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <stddef.h>
#include <stdint.h>

#include <weir/api.h>
#include <weir/limiter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A pool runs blocking jobs on threads of its own. The number of running jobs follows the estimator's limit L; up to D
 * further jobs wait in its queue; at L + D submit blocks, trysubmit sheds, timedsubmit waits until its deadline.
 *
 * Which calls may run at the same time:
 *                 submit…  drain  shutdown  pause  stats  destroy
 *     submit…        -       -       -        -      -       X        -: any time, any thread
 *     destroy        X       X       X        X      X       X        X: never; destroy is the last call
 *
 * submit happens before the start of the job; the end of a job happens before drain, shutdown, destroy and call return.
 */
typedef struct weir_pool weir_pool;

/* A job. It runs exactly once, on a worker, under no lock. */
typedef weir_outcome weir_fn(void *arg);

typedef enum weir_shutdown {
    WEIR_FINISH = 0, /* run what is queued */
    WEIR_CANCEL = 1  /* cancel what is queued, wait for what runs */
} weir_shutdown;

/* name NULL means "default". It selects WEIR_<OPTION>__<NAME>, names the threads and labels the figures. config NULL:
 * the defaults and the environment. No thread is started. EINVAL: the configuration is bad (the log says where),
 * ENOMEM. */
WEIR_API int weir_pool_create(weir_pool **pool, const char *name, const weir_config *config);

/* Queues a job; blocks at the ceiling, in order.
 * Errors of all submits: EINVAL: pool or fn is NULL. ESHUTDOWN: shutdown has begun. ECHILD: a fork child with an
 * inherited pool. EDEADLK: a job of this pool would block on its own ceiling. EAGAIN, ENOMEM: there is no worker and
 * none can be started (trysubmit's EAGAIN also: shed). */
WEIR_MUST_CHECK WEIR_API int weir_pool_submit(weir_pool *pool, weir_fn *fn, void *arg);
WEIR_MUST_CHECK WEIR_API int weir_pool_trysubmit(weir_pool *pool, weir_fn *fn, void *arg);
WEIR_MUST_CHECK WEIR_API int weir_pool_timedsubmit(weir_pool *pool, weir_fn *fn, void *arg, uint64_t deadline_ns);

/* fn gets a copy of data's size bytes, aligned for any type, valid until fn returns. Up to 48 bytes take no allocation.
 * submit_copy blocks at the ceiling, trysubmit_copy sheds. ENOMEM: the copy cannot be allocated. EINVAL: data is NULL
 * and size is not 0. */
WEIR_MUST_CHECK WEIR_API int weir_pool_submit_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size);
WEIR_MUST_CHECK WEIR_API int weir_pool_trysubmit_copy(weir_pool *pool, weir_fn *fn, const void *data, size_t size);

/* Submits and waits. *outcome, which may be NULL, is the job's; a job that ended its thread counts as WEIR_IGNORE.
 * ECANCELED: a shutdown cancelled it. EDEADLK: called by a job of this pool when every running job would then be
 * waiting for a queued one. */
WEIR_API int weir_pool_call(weir_pool *pool, weir_fn *fn, void *arg, weir_outcome *outcome);

/* Waits until all admitted work has ended, work spawned meanwhile included. ETIMEDOUT, EDEADLK (from a job of the
 * pool). */
WEIR_API int weir_pool_drain(weir_pool *pool, uint64_t deadline_ns);

/* No more work is admitted; blocked submitters return ESHUTDOWN; a paused pool is resumed by WEIR_FINISH. Waits until
 * everything has ended. ETIMEDOUT leaves the pool shutting down: call again to wait on. A repeated shutdown returns 0
 * once all has ended; WEIR_CANCEL after WEIR_FINISH cancels what is still queued. EDEADLK (from a job of the pool). */
WEIR_API int weir_pool_shutdown(weir_pool *pool, weir_shutdown how, uint64_t deadline_ns);

/* shutdown(WEIR_FINISH, WEIR_FOREVER), joins the workers, frees. EDEADLK from a job of the pool, without effect.
 * EBUSY: direct callers hold permits of its limiter or wait for some; the pool stays shut down. In a fork
 * child it frees the memory only. NULL: EINVAL. */
WEIR_API int weir_pool_destroy(weir_pool *pool);

/* Paused, a pool starts no further job; running ones go on, and jobs are still queued up to D. Idempotent, not counted.
 */
WEIR_API int weir_pool_pause(weir_pool *pool);
WEIR_API int weir_pool_resume(weir_pool *pool);

/* The pool's limiter, for callers that share its limit, for freeze and thaw. It lives as long as the pool. NULL: pool
 * is NULL. */
WEIR_API weir_limiter *weir_pool_limiter(weir_pool *pool);

/* Sets one option of a pool that runs; the same as weir_limiter_configure of its limiter. */
WEIR_API int weir_pool_configure(weir_pool *pool, const char *option, const char *value);

WEIR_API int weir_pool_stats(weir_pool *pool, weir_stats *stats);

/* Of one of the pool's partitions, or with NULL of what names none. EINVAL: there is no such partition. */
WEIR_API int weir_pool_partition_stats(weir_pool *pool, const char *partition, weir_partition_stats *stats);

/* A copy of one of its histograms, direct callers of its limiter included. EINVAL: NULL, or no such kind. */
WEIR_API int weir_pool_histogram(weir_pool *pool, weir_histogram_kind kind, weir_histogram *histogram);

/* Those of one of its partitions, or with NULL of what names none. EINVAL: also where there is no such partition. */
WEIR_API int weir_pool_partition_histogram(weir_pool *pool, const char *partition, weir_histogram_kind kind,
                                           weir_histogram *histogram);

#ifdef __cplusplus
}
#endif
#endif
