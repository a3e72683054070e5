/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "limiter/limiter.h"

/* ---- what a caller's weir_permit holds ---- */

struct permit {
    weir_limiter *limiter; /* NULL: holds nothing */
    uint64_t start_ns;
    uint32_t in_flight;
    uint32_t weight;
};

#if UINTPTR_MAX > UINT32_MAX
#define GREATEST_WEIGHT UINT32_MAX

static void pack(weir_permit *permit, const struct permit *from)
{
    permit->opaque[0] = (uintptr_t)from->limiter;
    permit->opaque[1] = from->start_ns;
    permit->opaque[2] = (uintptr_t)from->in_flight << 32 | from->weight;
    permit->opaque[3] = 0;
}

static struct permit unpack(const weir_permit *permit)
{
    return (struct permit){(weir_limiter *)permit->opaque[0], permit->opaque[1], (uint32_t)(permit->opaque[2] >> 32),
                           (uint32_t)permit->opaque[2]};
}
#else
/* Four words of 32 bits: in flight and weight share one, the first saturating, the second refused above it. */
#define GREATEST_WEIGHT UINT16_MAX

static void pack(weir_permit *permit, const struct permit *from)
{
    uint32_t in_flight = from->in_flight < UINT16_MAX ? from->in_flight : UINT16_MAX;
    permit->opaque[0] = (uintptr_t)from->limiter;
    permit->opaque[1] = (uintptr_t)from->start_ns;
    permit->opaque[2] = (uintptr_t)(from->start_ns >> 32);
    permit->opaque[3] = in_flight << 16 | from->weight;
}

static struct permit unpack(const weir_permit *permit)
{
    return (struct permit){(weir_limiter *)permit->opaque[0], (uint64_t)permit->opaque[2] << 32 | permit->opaque[1],
                           (uint32_t)permit->opaque[3] >> 16, (uint32_t)permit->opaque[3] & UINT16_MAX};
}
#endif

/* ---- granting; lock held ---- */

/* The permits of one direct caller; returns how many are out then. */
static uint32_t grant(weir_limiter *limiter, uint32_t weight)
{
    if (weight > limiter->limit)
        limiter->heavy = weight;
    limiter->in_flight += weight;
    limiter->holders++;
    limiter->counters.granted++;
    return limiter->in_flight;
}

static bool backlog_is_next(const weir_limiter *limiter)
{
    const struct weir__backlog *backlog = &limiter->backlog;
    if (backlog->waiting == 0 || backlog->held)
        return false;
    return limiter->line.first == NULL || limiter->line.first->position > backlog->departed;
}

void weir__limiter_dispatch(weir_limiter *limiter, struct weir__wakes *wakes)
{
    bool served = false;
    for (;;) {
        struct weir__caller *caller = limiter->line.first;
        if (backlog_is_next(limiter)) {
            if (!weir__limiter_fits(limiter, 1))
                break;
            limiter->backlog.waiting--;
            limiter->backlog.reserved++;
            limiter->backlog.departed++;
            served = true;
        } else if (caller != NULL && weir__limiter_fits(limiter, caller->weight)) {
            caller->in_flight = grant(limiter, caller->weight);
            weir__line_decide(&limiter->line, caller, 0, wakes);
        } else {
            break;
        }
    }
    if (served)
        limiter->backlog.settle(limiter->backlog.owner, wakes);
}

void weir__limiter_end(weir_limiter *limiter, const weir_sample *sample, uint32_t weight)
{
    limiter->in_flight -= weight;
    if (limiter->heavy == weight)
        limiter->heavy = 0;
    limiter->counters.ended[sample->outcome]++;
    if (sample->outcome != WEIR_IGNORE && limiter->frozen == 0 && sample->start_ns >= limiter->thaw_ns)
        weir__samples_put(limiter, sample);
}

void weir__limiter_wake(weir_limiter *limiter, struct weir__wakes *wakes)
{
    weir__wakes_callers(wakes);
    if (wakes->worker != NULL)
        weir__unpark(wakes->worker);
    if (wakes->start_worker)
        limiter->backlog.start_worker(limiter->backlog.owner);
}

/* ---- acquire ---- */

static bool is_free(const weir_limiter *limiter, uint32_t weight)
{
    return limiter->line.first == NULL && (limiter->backlog.waiting == 0 || limiter->backlog.held) &&
           weir__limiter_fits(limiter, weight);
}

/* Whether it is free, after samples that still wait have had their say. */
static bool becomes_free(weir_limiter *limiter, uint32_t weight)
{
    return is_free(limiter, weight) || (weir__samples_process(limiter) && is_free(limiter, weight));
}

static int wait_in_line(weir_limiter *limiter, uint32_t weight, uint64_t deadline_ns, uint32_t *in_flight)
{
    struct weir__caller caller;
    weir__caller_init(&caller, weight);
    caller.position = limiter->backlog.arrived;
    weir__line_append(&limiter->line, &caller);
    int verdict = weir__line_wait(&limiter->line, &caller, &limiter->lock, deadline_ns);
    *in_flight = caller.in_flight;
    weir__caller_destroy(&caller);
    return verdict;
}

static bool weight_is_good(const weir_limiter *limiter, unsigned weight)
{
    uint32_t most = limiter->config.algorithm == WEIR_FIXED && limiter->config.mode != WEIR_MONITOR
                        ? limiter->config.initial_limit
                        : limiter->config.max_limit;
    return weight >= 1 && weight <= most && weight <= GREATEST_WEIGHT;
}

static int acquire(weir_limiter *limiter, weir_permit *permit, unsigned weight, uint64_t deadline_ns, bool wait)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    if (permit == NULL || !weight_is_good(limiter, weight))
        return EINVAL;
    struct permit granted = {limiter, 0, 0, weight};
    struct weir__wakes wakes = {0};
    weir__lock(limiter);
    if (becomes_free(limiter, weight)) {
        granted.in_flight = grant(limiter, weight);
    } else if (!wait) {
        error = EAGAIN;
        limiter->counters.shed++;
    } else {
        error = wait_in_line(limiter, weight, deadline_ns, &granted.in_flight);
    }
    if (error == ETIMEDOUT) {
        limiter->counters.timed_out++;
        weir__limiter_dispatch(limiter, &wakes); /* a heavy caller that leaves may have held up lighter ones */
    }
    weir__unlock(limiter);
    weir__limiter_wake(limiter, &wakes);
    if (error != 0)
        return error;
    granted.start_ns = weir_now_ns(); /* here, not at the grant: the wake-up is no work of the downstream */
    pack(permit, &granted);
    return 0;
}

int weir_limiter_acquire(weir_limiter *limiter, weir_permit *permit)
{
    return acquire(limiter, permit, 1, WEIR_FOREVER, true);
}

int weir_limiter_tryacquire(weir_limiter *limiter, weir_permit *permit)
{
    return acquire(limiter, permit, 1, 0, false);
}

int weir_limiter_timedacquire(weir_limiter *limiter, weir_permit *permit, uint64_t deadline_ns)
{
    return acquire(limiter, permit, 1, deadline_ns, true);
}

int weir_limiter_acquire_many(weir_limiter *limiter, weir_permit *permit, unsigned weight, const char *partition,
                              uint64_t deadline_ns)
{
    if (partition != NULL)
        return EINVAL; /* no limiter has partitions yet, so every name is unknown */
    return acquire(limiter, permit, weight, deadline_ns, true);
}

/* ---- release ---- */

int weir_limiter_release(weir_limiter *limiter, weir_permit *permit, weir_outcome outcome)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    if (permit == NULL || (unsigned)outcome > WEIR_DROPPED)
        return EINVAL;
    uint64_t now = weir_now_ns();
    struct weir__wakes wakes = {0};
    weir__lock(limiter);
    struct permit held = unpack(permit);
    if (held.limiter != limiter) {
        weir__unlock(limiter);
        return EINVAL;
    }
    permit->opaque[0] = 0;
    limiter->holders--;
    weir_sample sample = {held.start_ns, now - held.start_ns, held.in_flight, (uint32_t)outcome};
    weir__limiter_end(limiter, &sample, held.weight);
    if (weir__samples_due(limiter))
        (void)weir__samples_process(limiter);
    weir__limiter_dispatch(limiter, &wakes);
    weir__unlock(limiter);
    weir__limiter_wake(limiter, &wakes);
    return 0;
}
