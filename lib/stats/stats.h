/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_STATS_PRIVATE_H
#define WEIR_STATS_PRIVATE_H

/* Figures out: from counters to the public snapshot. */

#include <weir/limiter.h>
#include <weir/stats.h>

/* The figures of a pool, or of a limiter without one; the limiter's lock is held. Samples that wait for the estimator
 * are left to wait. */
void weir__stats_snapshot(weir_limiter *limiter, uint64_t now_ns, weir_stats *stats);

/* Copies a snapshot to a caller whose structure may be older and shorter; its size field says how long it was taken to
 * be. */
void weir__stats_deliver(weir_stats *stats, const weir_stats *snapshot);

#endif
