/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "routine.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>

static weir_outcome run(void *arg)
{
    weir_routine *routine = (weir_routine *)arg;
    routine->result = routine->function(routine->arg);
    return routine->outcome_of != NULL ? routine->outcome_of(routine->result) : WEIR_SUCCESS;
}

int weir_routine_start(weir_pool *pool, weir_routine *routine, void *(*function)(void *), void *arg)
{
    if (routine == NULL || function == NULL)
        return EINVAL;
    routine->job.fn = run;
    routine->job.arg = routine;
    routine->function = function;
    routine->arg = arg;
    routine->result = PTHREAD_CANCELED;
    return weir_job_submit(pool, &routine->job);
}

int weir_routine_join(weir_routine *routine, void **result)
{
    int error = routine != NULL ? weir_job_wait(&routine->job, WEIR_FOREVER) : EINVAL;
    if (error == 0 && result != NULL)
        *result = routine->result;
    return error;
}
