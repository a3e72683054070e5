/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ROUTINE_H
#define WEIR_ROUTINE_H

/* Functions of pthread_create's type as jobs, to be started and joined as threads are. Source to be compiled into a
 * program, see weir_migrate(7); no part of libweir. */

#include <weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The caller's, from start to join, as a weir_job is; zero before the first start. */
typedef struct weir_routine {
    weir_job job; /* partition, weight and deadline_ns may be set before start */
    weir_outcome (*outcome_of)(
        void *result); /* set before start: what a result says of the downstream; NULL: success */
    void *(*function)(void *arg);
    void *arg;
    void *result;
} weir_routine;

/* As pthread_create, but waits for room in the pool. Errors: weir_job_submit's. */
int weir_routine_start(weir_pool *pool, weir_routine *routine, void *(*function)(void *), void *arg);

/* As pthread_join. *result, which may be NULL, is what the function returned; PTHREAD_CANCELED if it ended its thread.
 * Errors: weir_job_wait's; ECANCELED and ETIMEDOUT say that it never ran. */
int weir_routine_join(weir_routine *routine, void **result);

#ifdef __cplusplus
}
#endif
#endif
