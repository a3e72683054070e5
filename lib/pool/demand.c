/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "pool/pool.h"

/* What the pool is asked for, read once per measuring period from counters that are kept anyway: the queue's depth
 * follows it. */

#define GAIN 0.0625 /* of one more job in the average patience */

void weir__pool_demand(void *owner, struct weir__asked *asked)
{
    weir_pool *pool = owner;
    const struct weir__job_counters *counters = &pool->counters;
    uint32_t submitters = pool->limiter->partitions.submitters;
    if (!pool->patience_is_fresh && pool->limiter->partitions.queued > 0)
        pool->patience = 0; /* jobs wait, and none had a deadline */
    pool->patience_is_fresh = false;
    *asked = (struct weir__asked){.arrivals = counters->submitted + counters->shed + counters->timed_out + submitters,
                                  .blocked = counters->blocked,
                                  .blocking = submitters != 0,
                                  .patience = pool->patience};
}

void weir__pool_note_patience(weir_pool *pool, uint64_t left_ns)
{
    pool->patience += (pool->patience > 0 ? GAIN : 1.0) * ((double)left_ns - pool->patience);
    pool->patience_is_fresh = true;
}
