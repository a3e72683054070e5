/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "base/probe.h"
#include "estimator/estimator.h"
#include "limiter/limiter.h"
#include "stats/live_file.h"

/* The estimator runs outside the lock: a caller's own algorithm may be slow, and the critical section of a release
 * stays short. The flag `estimating` makes one thread at a time the estimating thread; the others leave their samples
 * in the buffer, which it empties before it steps down. */

#define WALL_REFRESH_NS UINT64_C(5000000000)

/* Batches that one thread feeds before it goes back to its own work. What has come meanwhile is fed by the next call
 * that ends: who waits for a permit waits for one of those anyway. */
enum { TURNS = 16 };

/* A clock is read and three entries are made in less than a hundredth of this. */
#define SPARSE_RTT_NS 10000.0

static void wake_full(weir_limiter *limiter)
{
    struct weir__wakes wakes = {0};
    while (limiter->full.first != NULL)
        weir__line_decide(&limiter->full, (struct weir__caller *)limiter->full.first, 0, &wakes);
    weir__unlock(limiter);
    weir__wakes_callers(&wakes);
}

/* Whether it is a trace, or a caller's own algorithm, that calls: it cannot wait for what it is part of. */
static bool is_own(const weir_limiter *limiter)
{
    return limiter->estimating && pthread_equal(limiter->estimating_thread, pthread_self()) != 0;
}

bool weir__samples_make_room(weir_limiter *limiter)
{
    if (is_own(limiter))
        return false;
    while (limiter->sample_count == WEIR__SAMPLES_ROOM) {
        if (weir__samples_process(limiter))
            continue;
        weir__limiter_settle(limiter);
        struct weir__caller caller;
        weir__caller_init(&caller, WEIR__CALLER, 0, 0);
        weir__line_append(&limiter->full, &caller.unit);
        (void)weir__limiter_wait(limiter, &caller, WEIR_FOREVER);
        weir__caller_destroy(&caller);
    }
    return true;
}

/* ---- by the estimating thread, without the lock ---- */

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
    event->depth_term = limiter->depth_term;
    event->reaction_ns = limiter->reaction_ns;
}

static void set_limit(weir_limiter *limiter, uint32_t estimate)
{
    limiter->estimate = estimate;
    limiter->counters.limit_changes++;
    limiter->limit = weir__limiter_enforced(limiter);
}

/* What the estimate becomes. While it is frozen the estimator has no say, and the bounds have the last word: they may
 * have changed, and the estimator be told only at the next turn. */
static uint32_t next_estimate(const weir_limiter *limiter, uint32_t said)
{
    uint32_t next = limiter->frozen == 0 ? said : limiter->estimate;
    next = next < limiter->config.min_limit ? limiter->config.min_limit : next;
    return next > limiter->config.max_limit ? limiter->config.max_limit : next;
}

/* At the end of a measuring period; before the first the depth stays at the initial limit. */
static void set_depth(weir_limiter *limiter, const weir_sample *sample)
{
    if (limiter->backlog.owner == NULL)
        return;
    struct weir__drain drain = weir__estimator_drain(limiter->estimator);
    struct weir__depth_look look = {.now_ns = sample->start_ns + sample->rtt_ns,
                                    .limit = limiter->limit,
                                    .reaction_ns = limiter->reaction_ns,
                                    .dip = drain.share,
                                    .dip_ns = drain.duration_ns};
    limiter->backlog.demand(limiter->backlog.owner, &look.asked);
    struct weir__depth_terms terms = weir__depth_look(&limiter->flow, &limiter->demand, &limiter->meter, &look);
    uint32_t wanted = weir__depth(&limiter->config, &terms, &limiter->depth_term);
    limiter->depth = weir__depth_settle(limiter->depth, wanted);
}

/* Written only where it changes: each submit reads the line that it lies in. */
static void note_sparse(weir_limiter *limiter)
{
    bool sparse = limiter->rtt_mean_ns > 0 && limiter->rtt_mean_ns < SPARSE_RTT_NS;
    /* relaxed: a hint, which a submitter may see late; jobs are short, see note:stamps */
    if (sparse != atomic_load_explicit(&limiter->sparse, memory_order_relaxed))
        atomic_store_explicit(&limiter->sparse, sparse, memory_order_relaxed);
}

/* Makes what the estimator says known, wakes whom it admits, traces a change. */
static void publish(weir_limiter *limiter, const weir_sample *sample, bool period_closed)
{
    uint32_t estimate = weir_estimator_limit(limiter->estimator);
    uint64_t reaction_ns = weir_estimator_reaction_ns(limiter->estimator);
    weir_figures figures;
    (void)weir_estimator_figures(limiter->estimator, &figures);
    struct weir__wakes wakes = {0};
    weir_trace_event event;

    weir__lock(limiter);
    uint32_t old = limiter->estimate;
    const char *old_phase = limiter->figures.phase;
    limiter->figures = figures;
    limiter->reaction_ns = reaction_ns;
    limiter->throughput = limiter->flow.throughput;
    limiter->rtt_mean_ns = limiter->flow.rtt_ns;
    estimate = next_estimate(limiter, estimate);
    bool changed = estimate != old;
    note_sparse(limiter);
    if (changed) {
        set_limit(limiter, estimate);
        weir__limiter_note_bounds(limiter, sample->start_ns + sample->rtt_ns);
    }
    uint32_t old_depth = limiter->depth;
    if (period_closed)
        set_depth(limiter, sample);
    weir__limiter_dispatch(limiter, &wakes);
    if (limiter->depth > old_depth && limiter->backlog.owner != NULL)
        limiter->backlog.settle(limiter->backlog.owner, &wakes);
    fill_event(limiter, sample, old, &event);
    if (limiter->live != NULL)
        weir__live_note(limiter, event.time_ns, false);
    weir__unlock(limiter);

    weir__limiter_wake(limiter, &wakes);
    if (figures.phase != old_phase)
        weir__probe_phase(limiter->name, old_phase, figures.phase);
    if (changed)
        weir__probe_limit(limiter->name, event.old_limit, event.new_limit, event.reason);
    if (changed && limiter->config.trace != NULL)
        limiter->config.trace(&event, limiter->config.trace_arg);
}

/* After a freeze: what came before it and what comes now are not of one window. */
static void restart(weir_limiter *limiter, uint64_t now_ns)
{
    struct weir__flow *flow = &limiter->flow;
    weir__estimator_restart(limiter->estimator, now_ns);
    flow->period_start_ns = 0;
    flow->count = 0;
    flow->rtt_sum_ns = 0;
    flow->rtt_squares = 0;
}

static void feed(weir_limiter *limiter, const weir_sample *samples, uint32_t count)
{
    bool published = false;
    for (uint32_t i = 0; i < count; i++) {
        refresh_wall_offset(limiter, &samples[i]);
        unsigned before = weir_estimator_limit(limiter->estimator);
        bool period_closed = weir__flow_measure(&limiter->flow, &samples[i]);
        published = weir_estimator_update(limiter->estimator, &samples[i]) != before || period_closed;
        if (published)
            publish(limiter, &samples[i], period_closed);
    }
    if (!published)
        publish(limiter, &samples[count - 1], false);
}

/* The configuration has changed. Lock held on entry and exit, dropped meanwhile. */
static void retune(weir_limiter *limiter)
{
    weir_sample now = {.start_ns = weir_now_ns()};
    limiter->retune = false;
    weir__estimator_retune(limiter->estimator, &limiter->config);
    weir__unlock(limiter);
    publish(limiter, &now, false);
    weir__lock(limiter);
}

bool weir__samples_process(weir_limiter *limiter)
{
    if (limiter->estimating || (limiter->sample_count == 0 && !limiter->retune))
        return false;
    limiter->estimating = true;
    limiter->estimating_thread = pthread_self();
    unsigned turns = 0;
    weir__limiter_settle(limiter);
    do {
        if (limiter->retune)
            retune(limiter);
        if (limiter->sample_count == 0)
            continue;
        weir_sample *batch = limiter->samples;
        uint32_t count = limiter->sample_count;
        limiter->samples = limiter->other_samples;
        limiter->other_samples = batch;
        limiter->sample_count = 0;
        limiter->pressing = false;
        limiter->processed_ns = batch[count - 1].start_ns + batch[count - 1].rtt_ns;
        uint64_t restart_ns = limiter->thawed ? limiter->thaw_ns : 0;
        limiter->thawed = false;
        wake_full(limiter);
        if (restart_ns != 0)
            restart(limiter, restart_ns);
        feed(limiter, batch, count);
        weir__lock(limiter);
    } while ((limiter->pressing || limiter->retune) && ++turns < TURNS);
    limiter->estimating = false;
    if (limiter->full.first != NULL) { /* one of them goes on */
        wake_full(limiter);
        weir__lock(limiter);
    }
    return true;
}
