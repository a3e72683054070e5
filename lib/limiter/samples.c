/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "limiter/limiter.h"

/* The estimator runs outside the lock: a caller's own algorithm may be slow, and the critical section of a release
 * stays short. The flag `estimating` makes one thread at a time the estimating thread; the others leave their samples
 * in the buffer, which it empties before it steps down. */

#define WALL_REFRESH_NS UINT64_C(5000000000)
#define PERIOD_LEAST_NS UINT64_C(100000000)
enum { PERIOD_RTTS = 4 };

/* A burst of very short calls is taken in batches, for each turn of the estimator costs two turns of the lock. Nobody
 * notices: only calls shorter than this wait, never while a caller waits, nor when the last turn is this long ago.
 * Where very many are in flight a part of them is taken together: they come within that part of an RTT. */
#define SHORT_RTT_NS UINT64_C(20000)
#define BATCH_NS     UINT64_C(100000)
enum { IN_FLIGHT_PART = 16 };

static void wake_full(weir_limiter *limiter)
{
    struct weir__wakes wakes = {0};
    while (limiter->full.first != NULL)
        weir__line_decide(&limiter->full, (struct weir__caller *)limiter->full.first, 0, &wakes);
    weir__unlock(limiter);
    weir__wakes_callers(&wakes);
}

void weir__samples_put(weir_limiter *limiter, const weir_sample *sample)
{
    while (limiter->sample_count == limiter->sample_room) {
        if (weir__samples_process(limiter))
            continue;
        weir__limiter_settle(limiter);
        struct weir__caller caller;
        weir__caller_init(&caller, WEIR__CALLER, 0, 0);
        weir__line_append(&limiter->full, &caller.unit);
        (void)weir__limiter_wait(limiter, &caller, WEIR_FOREVER);
        weir__caller_destroy(&caller);
    }
    limiter->samples[limiter->sample_count++] = *sample;
    bool is_part = limiter->sample_count >= limiter->in_flight / IN_FLIGHT_PART;
    if (limiter->sample_count >= WEIR__SAMPLES_BATCH || limiter->partitions.callers != 0 ||
        (sample->rtt_ns >= SHORT_RTT_NS && is_part) ||
        sample->start_ns + sample->rtt_ns >= limiter->processed_ns + BATCH_NS)
        limiter->pressing = true;
}

/* ---- by the estimating thread, without the lock ---- */

/* True when the sample closed a measuring period. */
static bool measure_flow(struct weir__flow *flow, const weir_sample *sample)
{
    if (sample->outcome != WEIR_SUCCESS)
        return false; /* failures tell neither how fast nor how much the downstream works */
    uint64_t end = sample->start_ns + sample->rtt_ns;
    if (flow->period_start_ns == 0)
        flow->period_start_ns = sample->start_ns;
    flow->count++;
    flow->rtt_sum_ns += sample->rtt_ns;
    uint64_t period = PERIOD_RTTS * (flow->rtt_sum_ns / flow->count);
    if (period < PERIOD_LEAST_NS)
        period = PERIOD_LEAST_NS;
    if (end < flow->period_start_ns + period)
        return false;
    flow->rtt_ns = (double)flow->rtt_sum_ns / (double)flow->count;
    if (flow->rtt_ns < 1.0)
        flow->rtt_ns = 1.0;
    flow->throughput = (double)flow->count * 1e9 / (double)(end - flow->period_start_ns);
    flow->period_start_ns = end;
    flow->count = 0;
    flow->rtt_sum_ns = 0;
    return true;
}

static void refresh_wall_offset(weir_limiter *limiter, const weir_sample *sample)
{
    if (sample->start_ns < limiter->wall_refresh_ns)
        return;
    limiter->wall_refresh_ns = sample->start_ns + WALL_REFRESH_NS;
    (void)weir_estimator_set_wall_offset(limiter->estimator, weir__wall_offset_ns());
}

static void fill_event(const weir_limiter *limiter, const weir_sample *sample, uint32_t old, weir_trace_event *event)
{
    event->time_ns = sample->start_ns + sample->rtt_ns;
    event->name = limiter->name;
    event->old_limit = old;
    event->new_limit = limiter->estimate;
    event->reason = limiter->figures.reason;
    event->phase = limiter->figures.phase;
    event->rtt_ns = limiter->figures.rtt_ns;
    event->rtt_noload_ns = limiter->figures.rtt_noload_ns;
    event->throughput = limiter->throughput;
    event->in_flight = limiter->in_flight + limiter->backlog.reserved;
    event->queue_depth = limiter->depth;
}

static void set_limit(weir_limiter *limiter, uint32_t estimate)
{
    limiter->estimate = estimate;
    limiter->counters.limit_changes++;
    if (limiter->config.mode != WEIR_MONITOR)
        limiter->limit = estimate;
}

static void set_depth(weir_limiter *limiter)
{
    if (limiter->flow.rtt_ns <= 0)
        return; /* before the first period the depth stays at the initial limit */
    struct weir__depth_terms terms = {limiter->limit, limiter->flow.rtt_ns, limiter->reaction_ns};
    limiter->depth = weir__depth_settle(limiter->depth, weir__depth(&limiter->config, &terms));
}

/* Makes what the estimator says known, wakes whom it admits, traces a change. */
static void publish(weir_limiter *limiter, const weir_sample *sample)
{
    uint32_t estimate = weir_estimator_limit(limiter->estimator);
    uint64_t reaction_ns = weir_estimator_reaction_ns(limiter->estimator);
    weir_figures figures;
    (void)weir_estimator_figures(limiter->estimator, &figures);
    struct weir__wakes wakes = {0};
    weir_trace_event event;

    weir__lock(limiter);
    uint32_t old = limiter->estimate;
    limiter->figures = figures;
    limiter->reaction_ns = reaction_ns;
    limiter->throughput = limiter->flow.throughput;
    limiter->rtt_mean_ns = limiter->flow.rtt_ns;
    bool changed = estimate != old && limiter->frozen == 0;
    if (changed)
        set_limit(limiter, estimate);
    uint32_t old_depth = limiter->depth;
    set_depth(limiter);
    weir__limiter_dispatch(limiter, &wakes);
    if (limiter->depth > old_depth && limiter->backlog.owner != NULL)
        limiter->backlog.settle(limiter->backlog.owner, &wakes);
    fill_event(limiter, sample, old, &event);
    weir__unlock(limiter);

    weir__limiter_wake(limiter, &wakes);
    if (changed && limiter->config.trace != NULL)
        limiter->config.trace(&event, limiter->config.trace_arg);
}

static void feed(weir_limiter *limiter, const weir_sample *samples, uint32_t count)
{
    bool published = false;
    for (uint32_t i = 0; i < count; i++) {
        refresh_wall_offset(limiter, &samples[i]);
        unsigned before = weir_estimator_limit(limiter->estimator);
        bool period_closed = measure_flow(&limiter->flow, &samples[i]);
        published = weir_estimator_update(limiter->estimator, &samples[i]) != before || period_closed;
        if (published)
            publish(limiter, &samples[i]);
    }
    if (!published)
        publish(limiter, &samples[count - 1]);
}

bool weir__samples_process(weir_limiter *limiter)
{
    if (limiter->estimating || limiter->sample_count == 0)
        return false;
    limiter->estimating = true;
    weir__limiter_settle(limiter);
    do {
        weir_sample *batch = limiter->samples;
        uint32_t count = limiter->sample_count;
        limiter->samples = limiter->other_samples;
        limiter->other_samples = batch;
        limiter->sample_count = 0;
        limiter->pressing = false;
        limiter->processed_ns = batch[count - 1].start_ns + batch[count - 1].rtt_ns;
        wake_full(limiter);
        feed(limiter, batch, count);
        weir__lock(limiter);
    } while (limiter->pressing);
    limiter->estimating = false;
    return true;
}
