/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_JOB_H
#define WEIR_JOB_H

#include <stdint.h>

#include <weir/api.h>
#include <weir/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_completions;

/* A job with a handle. As an aiocb it belongs to the caller, who fills in the public part and leaves it alone from the
 * submit to the end of the job. It may live on the stack of a caller that waits.
 *
 * At its end first its status is published, so that waiters go on, then on_done is called or the completions entry
 * made, as the pool's last use of the memory. So with on_done the memory belongs to the callback, which may free it;
 * with completions to whoever takes it out; else to the waiter. Drain, shutdown and destroy wait for on_done. */
typedef struct weir_job {
    weir_fn *fn;
    void *arg;
    const char *partition; /* NULL: none */
    uint32_t weight;       /* permits it takes at once; 0 means 1 */
    uint64_t
        deadline_ns; /* 0: none. Shed at submit if it cannot start in time, dropped from the queue when it passes */
    void (*on_done)(struct weir_job *job); /* called exactly once, also when it was cancelled or has expired */
    struct weir_completions *completions;  /* or delivered here; both is EINVAL */
    uintptr_t opaque[UINTPTR_MAX > UINT32_MAX ? 8 : 12]; /* zero before the first submit, then the library's */
} weir_job;

/* clang-format off */
#define WEIR_JOB_INIT(fn_, arg_) { (fn_), (arg_), NULL, 0, 0, NULL, NULL, { 0, 0, 0, 0, 0, 0, 0, 0 } }
/* clang-format on */

/* As weir_pool_submit, trysubmit and timedsubmit, with these errors besides: EBUSY: the job is queued or running.
 * ETIMEDOUT: it would not start before its deadline (in the figures: timed_out). EINVAL: both on_done and completions,
 * an unknown partition, a weight that can never be granted. A submit that returns non-zero never calls on_done. A job
 * that can start at once is accepted even when its deadline has passed. */
WEIR_MUST_CHECK WEIR_API int weir_job_submit(weir_pool *pool, weir_job *job);
WEIR_MUST_CHECK WEIR_API int weir_job_trysubmit(weir_pool *pool, weir_job *job);
WEIR_MUST_CHECK WEIR_API int weir_job_timedsubmit(weir_pool *pool, weir_job *job, uint64_t deadline_ns);

/* Waits for the end of the job and returns its status: 0, ECANCELED, ETIMEDOUT (it expired in the queue); EINPROGRESS:
 * deadline_ns has passed and it goes on. EINVAL: never submitted. EDEADLK: called by a job of the same pool when every
 * running job would then be waiting for a queued one. Not for jobs with on_done or completions, whose memory may go
 * before the waiter sees it. */
WEIR_API int weir_job_wait(weir_job *job, uint64_t deadline_ns);

/* 0: it was queued and never runs; on_done is called before the return. EBUSY: it runs. EALREADY: it has ended. EINVAL:
 * never submitted. */
WEIR_API int weir_job_cancel(weir_job *job);

/* 0 and the outcome; a job that ended its thread counts as WEIR_IGNORE. EINPROGRESS before the end, ECANCELED,
 * ETIMEDOUT: expired. EINVAL: never submitted. outcome may be NULL. Async-signal-safe. */
WEIR_API int weir_job_outcome(const weir_job *job, weir_outcome *outcome);

#ifdef __cplusplus
}
#endif
#endif
