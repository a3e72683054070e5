/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "base/probe.h"
#include "limiter/limiter.h"
#include "stats/live_file.h"

/* ---- what a caller's weir_permit holds ---- */

struct permit {
    weir_limiter *limiter; /* NULL: holds nothing */
    uint64_t start_ns;
    uint32_t in_flight;
    uint32_t weight;
    uint16_t partition;
};

#if UINTPTR_MAX > UINT32_MAX
#define GREATEST_WEIGHT UINT32_MAX

static void pack(weir_permit *permit, const struct permit *from)
{
    permit->opaque[0] = (uintptr_t)from->limiter;
    permit->opaque[1] = from->start_ns;
    permit->opaque[2] = (uintptr_t)from->in_flight << 32 | from->weight;
    permit->opaque[3] = from->partition;
}

static struct permit unpack(const weir_permit *permit)
{
    return (struct permit){(weir_limiter *)permit->opaque[0], permit->opaque[1], (uint32_t)(permit->opaque[2] >> 32),
                           (uint32_t)permit->opaque[2], (uint16_t)permit->opaque[3]};
}
#else
/* Four words of 32 bits: the last holds in flight (13 bits, saturating), weight (13 bits, refused above) and partition.
 */
#define GREATEST_WEIGHT 0x1fffu

static void pack(weir_permit *permit, const struct permit *from)
{
    uint32_t in_flight = from->in_flight < 0x1fff ? from->in_flight : 0x1fff;
    permit->opaque[0] = (uintptr_t)from->limiter;
    permit->opaque[1] = (uintptr_t)from->start_ns;
    permit->opaque[2] = (uintptr_t)(from->start_ns >> 32);
    permit->opaque[3] = in_flight << 19 | from->weight << 6 | from->partition;
}

static struct permit unpack(const weir_permit *permit)
{
    return (struct permit){(weir_limiter *)permit->opaque[0], (uint64_t)permit->opaque[2] << 32 | permit->opaque[1],
                           (uint32_t)permit->opaque[3] >> 19, (uint32_t)permit->opaque[3] >> 6 & GREATEST_WEIGHT,
                           (uint16_t)(permit->opaque[3] & 0x3f)};
}
#endif

/* ---- granting; lock held ---- */

void weir__limiter_weigh(struct weir__heavy *heavy, uint32_t weight, bool out)
{
    unsigned bit = weir__highest_bit(weight);
    heavy->count[bit] += out ? 1 : (uint32_t)-1;
    if (heavy->count[bit] == 0)
        heavy->greatest[bit] = 0;
    else if (out && weight > heavy->greatest[bit])
        heavy->greatest[bit] = weight;
    bit = 31;
    while (bit > 0 && heavy->count[bit] == 0)
        bit--;
    heavy->heaviest = heavy->greatest[bit];
}

/* The permits of one direct caller; returns how many are out then. */
static uint32_t grant(weir_limiter *limiter, uint16_t partition, uint32_t weight)
{
    weir__limiter_use(limiter, partition, weight);
    limiter->in_flight += weight;
    limiter->holders++;
    limiter->counters.granted++;
    limiter->partitions.all[partition].submitted++;
    return limiter->in_flight;
}

static void grant_caller(weir_limiter *limiter, struct weir__caller *caller, struct weir__wakes *wakes)
{
    caller->in_flight = grant(limiter, caller->unit.partition, caller->unit.weight);
    weir__partition_leave(&limiter->partitions, &caller->unit);
    weir__wakes_add(wakes, caller, 0);
}

bool weir__limiter_hand_out(weir_limiter *limiter, struct weir__wakes *wakes)
{
    struct weir__backlog *backlog = &limiter->backlog;
    bool served = false;
    for (;;) {
        struct weir__unit *unit =
            weir__partitions_next(&limiter->partitions, weir__limiter_ceiling(limiter), backlog->held);
        if (unit == NULL || !weir__limiter_fits(limiter, unit->weight))
            break;
        if (unit->kind == WEIR__CALLER) {
            grant_caller(limiter, (struct weir__caller *)unit, wakes);
            continue;
        }
        if (!backlog->grant(backlog->owner, unit, wakes))
            break;
        served = true;
    }
    return served;
}

void weir__limiter_wake_all(weir_limiter *limiter, struct weir__wakes *wakes)
{
    weir__wakes_callers(wakes);
    if (wakes->worker != NULL)
        weir__unpark(wakes->worker);
    if (wakes->keeper != NULL)
        weir__unpark(wakes->keeper);
    if (wakes->start_worker || wakes->start_keeper)
        limiter->backlog.after(limiter->backlog.owner, wakes);
}

/* ---- acquire ---- */

bool weir__limiter_is_free(const weir_limiter *limiter, uint16_t partition, uint32_t weight)
{
    const struct weir__partitions *partitions = &limiter->partitions;
    bool held = limiter->backlog.held;
    if (!weir__limiter_fits(limiter, weight))
        return false;
    if (partitions->callers == 0 && (held || partitions->queued + partitions->submitters == 0))
        return true;
    return weir__partition_goes_first(partitions, partition, weight, weir__limiter_ceiling(limiter), held);
}

bool weir__limiter_weight_is_good(const weir_limiter *limiter, uint32_t weight)
{
    /* relaxed: whatever was accepted is granted, if the limit has fallen meanwhile then by itself */
    uint32_t most = atomic_load_explicit(&limiter->most_weight, memory_order_relaxed);
    return weight >= 1 && weight <= most && weight <= GREATEST_WEIGHT;
}

/* Whether it is free, after samples that still wait have had their say. */
static bool becomes_free(weir_limiter *limiter, uint16_t partition, uint32_t weight)
{
    bool is_free = weir__limiter_is_free(limiter, partition, weight);
    while (!is_free && weir__samples_process(limiter))
        is_free = weir__limiter_is_free(limiter, partition, weight);
    return is_free;
}

static int wait_in_line(weir_limiter *limiter, struct permit *wanted, uint64_t deadline_ns, struct weir__wakes *wakes)
{
    struct weir__caller caller;
    weir__caller_init(&caller, WEIR__CALLER, wanted->weight, wanted->partition);
    caller.unit.stamp = weir__stamp_make(weir_now_ns(), 1);
    weir__partition_join(&limiter->partitions, &caller.unit);
    if (limiter->live != NULL)
        weir__live_note(limiter, weir_now_ns(), false);
    limiter->pressing = limiter->sample_count != 0; /* the estimating thread goes on with what has come meanwhile */
    int verdict = weir__limiter_wait(limiter, &caller, deadline_ns);
    wanted->in_flight = caller.in_flight;
    if (verdict == 0)
        weir__limiter_count_wait(limiter, wanted->partition, weir__stamp_age_ns(caller.unit.stamp, weir_now_ns()));
    if (verdict == ETIMEDOUT) {
        weir__partition_leave(&limiter->partitions, &caller.unit);
        limiter->counters.timed_out++;
        limiter->partitions.all[wanted->partition].timed_out++;
        weir__limiter_dispatch(limiter, wakes); /* a heavy caller that leaves may have held up lighter ones */
    }
    weir__caller_destroy(&caller);
    return verdict;
}

static int acquire(weir_limiter *limiter, weir_permit *permit, unsigned weight, const char *partition_name,
                   uint64_t deadline_ns, bool wait)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    int partition = weir__partition_find(&limiter->partitions, partition_name);
    if (permit == NULL || partition < 0 || !weir__limiter_weight_is_good(limiter, weight))
        return EINVAL;
    struct permit wanted = {limiter, 0, 0, weight, (uint16_t)partition};
    struct weir__wakes wakes = {0};
    weir__lock(limiter);
    if (becomes_free(limiter, wanted.partition, weight)) {
        weir__partition_arrive(&limiter->partitions, wanted.partition);
        wanted.in_flight = grant(limiter, wanted.partition, weight);
        weir__limiter_count_wait(limiter, wanted.partition, 0);
    } else if (!wait) {
        error = EAGAIN;
        limiter->counters.shed++;
        limiter->partitions.all[partition].shed++;
        weir__probe_shed(limiter->name, wanted.partition, 0);
    } else {
        error = wait_in_line(limiter, &wanted, deadline_ns, &wakes);
    }
    weir__unlock(limiter);
    weir__limiter_wake(limiter, &wakes);
    if (error != 0)
        return error;
    wanted.start_ns = weir_now_ns(); /* here, not at the grant: the wake-up is no work of the downstream */
    weir__probe_start(limiter->name, 0, wanted.in_flight);
    pack(permit, &wanted);
    return 0;
}

int weir_limiter_acquire(weir_limiter *limiter, weir_permit *permit)
{
    return acquire(limiter, permit, 1, NULL, WEIR_FOREVER, true);
}

int weir_limiter_tryacquire(weir_limiter *limiter, weir_permit *permit)
{
    return acquire(limiter, permit, 1, NULL, 0, false);
}

int weir_limiter_timedacquire(weir_limiter *limiter, weir_permit *permit, uint64_t deadline_ns)
{
    return acquire(limiter, permit, 1, NULL, deadline_ns, true);
}

int weir_limiter_acquire_many(weir_limiter *limiter, weir_permit *permit, unsigned weight, const char *partition,
                              uint64_t deadline_ns)
{
    return acquire(limiter, permit, weight, partition, deadline_ns, true);
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
    weir__probe_end(limiter->name, 0, sample.rtt_ns, sample.outcome);
    weir__limiter_count_rtt(limiter, held.partition, sample.rtt_ns);
    weir__limiter_end(limiter, &sample, held.partition, held.weight);
    if (weir__samples_due(limiter))
        (void)weir__samples_process(limiter);
    weir__limiter_dispatch(limiter, &wakes);
    if (limiter->live != NULL)
        weir__live_note(limiter, now, limiter->in_flight == 0);
    weir__unlock(limiter);
    weir__limiter_wake(limiter, &wakes);
    return 0;
}
