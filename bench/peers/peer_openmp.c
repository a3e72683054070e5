/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "peers.h"

/* Tasks run inside the submitting call when the runtime thinks that enough are queued: another kind of thing, listed
 * but not ranked. */
static void run(void *pool, unsigned threads, uint64_t count)
{
    (void)pool;
#pragma omp parallel num_threads(threads + 1)
#pragma omp single
    for (uint64_t i = 0; i < count; i++) {
#pragma omp task
        job_run(NULL);
    }
}

const struct peer peer_openmp = {.name = "openmp", .producers = 1, .run = run};
