/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_LIMITER_H
#define WEIR_LIMITER_H

#include <stdint.h>

#include <weir/api.h>
#include <weir/config.h>
#include <weir/estimator.h>
#include <weir/stats.h>
#include <weir/time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A limiter hands out permits to threads the program already has. Callers are served first come, first served: a
 * newcomer never overtakes a waiter. All functions are MT-Safe, except that destroy must be the last call. In a fork
 * child every call on an inherited limiter returns ECHILD at once, but destroy frees its memory and returns 0. */
typedef struct weir_limiter weir_limiter;

/* Belongs to the caller, who keeps it, uncopied, from acquire to release. All zero: holds nothing. */
typedef struct weir_permit {
    uintptr_t opaque[4];
} weir_permit;

/* name NULL means "default"; it selects WEIR_<OPTION>__<NAME> and labels the figures. config NULL: the defaults and the
 * environment. EINVAL: the configuration is bad (the log says where), ENOMEM. */
WEIR_API int weir_limiter_create(weir_limiter **limiter, const char *name, const weir_config *config);

/* Waits for a permit. */
WEIR_API int weir_limiter_acquire(weir_limiter *limiter, weir_permit *permit);

/* EAGAIN: none is free or somebody waits; counted as shed. */
WEIR_API int weir_limiter_tryacquire(weir_limiter *limiter, weir_permit *permit);

/* ETIMEDOUT: the deadline passed first. A free permit is granted even when it has passed. */
WEIR_API int weir_limiter_timedacquire(weir_limiter *limiter, weir_permit *permit, uint64_t deadline_ns);

/* A permit that counts for weight (a call that fans out). It is served in its turn, whatever its weight: while the
 * limit is below weight it waits until nothing else is in flight, and the limit counts as weight until it is released.
 * partition NULL: none. EINVAL: weight 0, above max_limit (or above a fixed limit), an unknown partition. */
WEIR_API int weir_limiter_acquire_many(weir_limiter *limiter, weir_permit *permit, unsigned weight,
                                       const char *partition, uint64_t deadline_ns);

/* Gives the permit back and reports how the call ended. EINVAL: permit holds nothing (a second release), belongs to
 * another limiter, or outcome is none. Any thread may release. */
WEIR_API int weir_limiter_release(weir_limiter *limiter, weir_permit *permit, weir_outcome outcome);

/* Freezes are counted. While frozen the limit stands still and samples are discarded; permits flow on: for the time a
 * circuit breaker is open. Thaw without freeze: EINVAL. */
WEIR_API int weir_limiter_freeze(weir_limiter *limiter);
WEIR_API int weir_limiter_thaw(weir_limiter *limiter);

/* Sets one option of a limiter that runs, by its name in either case, from text in the syntax of the environment;
 * "default" resets it. weir_environ(7) says which options can change. What is wrong is logged, and nothing has changed
 * then: EINVAL: NULL, no such option, syntax, range, or a contradiction to the other options. ENOTSUP: the option
 * cannot change while it runs. ENOMEM. */
WEIR_API int weir_limiter_configure(weir_limiter *limiter, const char *option, const char *value);

WEIR_API int weir_limiter_stats(weir_limiter *limiter, weir_stats *stats);

/* Of one of the limiter's partitions, or with NULL of what names none. EINVAL: there is no such partition. */
WEIR_API int weir_limiter_partition_stats(weir_limiter *limiter, const char *partition, weir_partition_stats *stats);

/* A copy of one of its histograms. EINVAL: NULL, or no such kind. */
WEIR_API int weir_limiter_histogram(weir_limiter *limiter, weir_histogram_kind kind, weir_histogram *histogram);

/* Those of one of its partitions, or with NULL of what names none. EINVAL: also where there is no such partition. */
WEIR_API int weir_limiter_partition_histogram(weir_limiter *limiter, const char *partition, weir_histogram_kind kind,
                                              weir_histogram *histogram);

/* EBUSY while permits are out or callers wait. EINVAL for the limiter of a pool: it goes with its pool. */
WEIR_API int weir_limiter_destroy(weir_limiter *limiter);

#ifdef __cplusplus
}
#endif
#endif
