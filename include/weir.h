/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_H
#define WEIR_H

/* weir: a worker pool whose number of running jobs follows the downstream. weir(7) is the introduction. */

#include <weir/completions.h>
#include <weir/config.h>
#include <weir/error.h>
#include <weir/estimator.h>
#include <weir/job.h>
#include <weir/limiter.h>
#include <weir/log.h>
#include <weir/pool.h>
#include <weir/stats.h>
#include <weir/time.h>

#endif
