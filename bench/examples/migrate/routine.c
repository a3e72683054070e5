/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From functions of pthread_create's type, with a status to be joined.
 * The status says how the downstream did, so that the limit hears it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <weir.h>

#include "routine.h"

enum { ROUTINES = 100 };

/* Returns an HTTP status, as it did when it was a thread. */
static void *fetch(void *arg)
{
    intptr_t page = (intptr_t)arg;
    return (void *)(page % 10 == 9 ? (intptr_t)503 : (intptr_t)200);
}

static weir_outcome outcome_of(void *result)
{
    return (intptr_t)result == 503 ? WEIR_DROPPED : WEIR_SUCCESS;
}

int main(void)
{
    static weir_routine routines[ROUTINES];
    int good = 0;
    weir_pool *pool = NULL;
    if (weir_pool_create(&pool, "fetch", NULL) != 0)
        return 1;
    for (int i = 0; i < ROUTINES; i++) {
        routines[i].outcome_of = outcome_of;
        int error = weir_routine_start(pool, &routines[i], fetch,
                                       (void *)(intptr_t)i);
        if (error != 0)
            fprintf(stderr, "fetch: %s\n", weir_strerror(error));
    }
    for (int i = 0; i < ROUTINES; i++) {
        void *result = NULL;
        if (weir_routine_join(&routines[i], &result) == 0)
            good += (intptr_t)result == 200;
    }
    weir_stats stats;
    stats.size = sizeof stats;
    int dropped =
        weir_pool_stats(pool, &stats) == 0 ? (int)stats.dropped : -1;
    weir_pool_destroy(pool);
    printf("%d good, %d dropped\n", good, dropped);
    return good == 90 && dropped == 10 ? 0 : 1;
}
