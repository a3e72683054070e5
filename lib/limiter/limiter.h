/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_LIMITER_PRIVATE_H
#define WEIR_LIMITER_PRIVATE_H

/* Permits: counting them, feeding the estimator, waking who waits.
 *
 * Lock order, for the whole library: the registry of fork.c (a fork takes it and then every limiter's lock, a
 * collection of figures one of them at a time), a pool's start_lock, a limiter's lock, a completions object's or a
 * pool's inbox's lock. Nothing else is locked under the last two, and no callback of the program, allocation or log
 * line happens under any, but for the start of a pool's very first thread under start_lock. A pool has no lock of its
 * own: it shares its limiter's, so that one critical section moves a job and its permit, and one snapshot shows both.
 */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/limiter.h>

#include "admission/admission.h"
#include "base/base.h"
#include "base/histogram.h"

/* Samples wait for the estimator, which runs outside the lock. Where threads outnumber processors the estimating thread
 * may be preempted for milliseconds, in which each of those in flight ends several calls; who then finds no room has to
 * sleep, and with 256 threads and room for one sample of each that took more time than the calls. So there is room for
 * very many. It is memory only as far as it is used.
 *
 * Each turn of the estimator closes the pool's inbox, which then changes hands between processors twice. With very
 * short calls that took more time than all else when every 32 samples made a turn. */
enum { WEIR__SAMPLES_ROOM = 16384, WEIR__SAMPLES_BATCH = 256 };

/* A burst of very short calls is taken in batches, for each turn of the estimator costs two turns of the lock. Nobody
 * notices: only calls shorter than this wait, never while a caller waits, nor when the last turn is this long ago.
 * Where very many are in flight a part of them is taken together: they come within that part of an RTT. */
#define WEIR__SAMPLES_SHORT_NS UINT64_C(20000)
#define WEIR__SAMPLES_BATCH_NS UINT64_C(100000)
enum { WEIR__SAMPLES_PART = 16 };

/* The pool behind a limiter: its jobs and blocked submitters stand in the limiter's lines among direct callers. The
 * functions are called under lock. */
struct weir__backlog {
    void *owner;             /* immutable; NULL: the limiter stands alone */
    uint32_t greatest_limit; /* immutable: MAX_LIMIT may be no more */
    /* A job or submitter at the head of its line may have permits now. Takes it out of the line; false: it cannot go on
     * yet (memory was short), and nothing was changed. */
    bool (*grant)(void *owner, struct weir__unit *unit, struct weir__wakes *wakes);
    /* Jobs got permits, or the depth changed: the pool puts its house in order. */
    void (*settle)(void *owner, struct weir__wakes *wakes);
    /* After the lock was taken, and before it is given back: jobs that were left outside come in. */
    void (*enter)(void *owner);
    void (*exit)(void *owner);
    /* Without the lock: what the wakes ask for besides waking. */
    void (*after)(void *owner, const struct weir__wakes *wakes);
    /* How much it has been asked for, under lock. */
    void (*demand)(void *owner, struct weir__asked *asked);
    uint32_t reserved; /* guarded by lock: permits set aside for jobs that have not begun */
    uint32_t nested;   /* guarded by lock: permits of jobs that wait for other jobs */
    uint32_t awaited;  /* guarded by lock: the heaviest of those other jobs */
    bool held;         /* guarded by lock: paused, no job gets a permit */
};

/* Weights above 1 that are out. The limit never counts as less than the heaviest: what runs may have been granted
 * before it fell, or alone although it exceeds it. Counted by powers of two, so the answer may be that of a lighter
 * neighbour's heavier predecessor within the same power, until none of that power is out. */
struct weir__heavy {
    uint32_t count[32];    /* guarded by lock: by the weight's highest bit */
    uint32_t greatest[32]; /* guarded by lock: of those counted since there was none */
    uint32_t heaviest;     /* guarded by lock: of all, 0: none is out */
};

struct weir__counters {
    uint64_t granted;
    uint64_t ended[3]; /* by weir_outcome */
    uint64_t shed;
    uint64_t timed_out;
    uint64_t limit_changes;
};

struct weir_limiter {
    char *name;               /* immutable after create */
    weir_config config;       /* what configure.c may change is guarded by lock; the rest immutable after create */
    char *partitions_text;    /* guarded by lock: what config.partitions is; NULL: none */
    char *stats_dir_text;     /* immutable after create: what config.stats_dir is; NULL: off */
    atomic_uint log;          /* atomic: config.log for those without the lock */
    atomic_uint most_weight;  /* atomic: of a permit */
    uint64_t configured;      /* guarded by lock: counts the changes */
    bool retune;              /* guarded by lock: the estimator is to be told of one */
    unsigned fork_generation; /* immutable after create */
    atomic_bool sparse;       /* atomic: calls are short, see note:stamps; here, where a submit reads anyway */
    struct weir__fork_lock fork_lock;
    struct weir__backlog backlog;
    struct weir__partitions partitions;

    pthread_mutex_t lock;
    uint32_t limit;     /* guarded by lock: the estimate, or max_limit in monitor mode */
    uint32_t estimate;  /* guarded by lock */
    uint32_t in_flight; /* guarded by lock: permits whose work has begun */
    struct weir__heavy heavy;
    uint32_t holders;               /* guarded by lock: permits of direct callers, not weighted */
    uint32_t frozen;                /* guarded by lock */
    uint32_t depth;                 /* guarded by lock: D */
    const char *depth_term;         /* guarded by lock: what decides on it, a constant string */
    struct weir__demand demand;     /* guarded by lock */
    uint64_t thaw_ns;               /* guarded by lock: calls that began before are not sampled */
    bool thawed;                    /* guarded by lock: the estimator's window is to begin afresh at thaw_ns */
    struct weir__counters counters; /* guarded by lock */
    weir_figures figures;           /* guarded by lock: as of the last sample processed */
    uint64_t reaction_ns;           /* guarded by lock */
    double throughput;              /* guarded by lock: measured */
    double rtt_mean_ns;             /* guarded by lock: measured; 0: not yet */

    struct weir__histograms *histograms; /* immutable after create; what they hold is guarded by lock */
    uint32_t pinned;                     /* guarded by lock: weir_pinned */
    uint64_t pinned_since_ns;            /* guarded by lock */
    struct weir__live *live;             /* guarded by lock: NULL without STATS_DIR */
    uint64_t changed_ns;                 /* guarded by lock: when the estimate did so last, or the creation */

    weir_sample *all_samples;       /* immutable after create: room for what the next two point to */
    weir_sample *samples;           /* guarded by lock: where the next one goes */
    weir_sample *other_samples;     /* owner: the estimating thread; in turns with the former */
    uint32_t sample_count;          /* guarded by lock */
    bool pressing;                  /* guarded by lock: they should not wait any longer */
    uint64_t processed_ns;          /* guarded by lock: end of the last one that was taken */
    bool estimating;                /* guarded by lock: its setter is the estimating thread ... */
    pthread_t estimating_thread;    /* guarded by lock: ... which this is then */
    struct weir__line full;         /* guarded by lock: threads whose sample found no room */
    weir_estimator *estimator;      /* owner: the estimating thread */
    struct weir__flow flow;         /* owner: the estimating thread */
    struct weir__depth_meter meter; /* owner: the estimating thread */
    uint64_t wall_refresh_ns;       /* owner: the estimating thread: when the wall offset is stale */
};

/* What everybody uses, but for a worker between two jobs and a submit, which know what enter and exit would do. */
static inline void weir__lock(weir_limiter *limiter)
{
    weir__mutex_lock(&limiter->lock);
    if (limiter->backlog.owner != NULL)
        limiter->backlog.enter(limiter->backlog.owner);
}

static inline void weir__unlock(weir_limiter *limiter)
{
    if (limiter->backlog.owner != NULL)
        limiter->backlog.exit(limiter->backlog.owner);
    WEIR__MUST(pthread_mutex_unlock(&limiter->lock));
}

/* For one that took the lock otherwise and goes on as everybody. */
static inline void weir__limiter_settle(const weir_limiter *limiter)
{
    if (limiter->backlog.owner != NULL)
        limiter->backlog.enter(limiter->backlog.owner);
}

/* weir__caller_wait for a caller of this limiter or its pool, with the lock held. */
static inline int weir__limiter_wait(weir_limiter *limiter, struct weir__caller *caller, uint64_t deadline_ns)
{
    if (limiter->backlog.owner != NULL)
        limiter->backlog.exit(limiter->backlog.owner);
    int verdict = weir__caller_wait(caller, &limiter->lock, deadline_ns);
    if (limiter->backlog.owner != NULL)
        limiter->backlog.enter(limiter->backlog.owner);
    return verdict;
}

/* ---- limiter.c ---- */

/* backlog NULL: a limiter of its own, shown as kind. */
int weir__limiter_create(weir_limiter **limiter, const char *name, const weir_config *config, const char *kind,
                         const struct weir__backlog *backlog);
void weir__limiter_free(weir_limiter *limiter);

/* 0, EINVAL (NULL), or ECHILD in a fork child. */
static inline int weir__limiter_usable(const weir_limiter *limiter)
{
    if (limiter == NULL)
        return EINVAL;
    return limiter->fork_generation == weir__fork_generation() ? 0 : ECHILD;
}

/* Takes note of what the estimator says since now_ns: whether a bound holds it; lock held. */
void weir__limiter_note_bounds(weir_limiter *limiter, uint64_t now_ns);

/* Only that: the bounds may have changed; lock held. */
void weir__limiter_note_pinned(weir_limiter *limiter, uint64_t now_ns);

/* What is logged at least, with the lock or without. */
static inline uint32_t weir__limiter_log(const weir_limiter *limiter)
{
    return atomic_load_explicit(&limiter->log, memory_order_relaxed); /* relaxed: it leads to no other memory */
}

/* What the configuration says about weights and the log, for those who hold no lock. */
void weir__limiter_publish_config(weir_limiter *limiter);

/* The limit as the configuration has it enforced, lock held. */
static inline uint32_t weir__limiter_enforced(const weir_limiter *limiter)
{
    const weir_config *config = &limiter->config;
    uint32_t estimate = limiter->estimate < config->min_limit ? config->min_limit : limiter->estimate;
    return config->mode == WEIR_MONITOR || estimate > config->max_limit ? config->max_limit : estimate;
}

/* What running work may count for, lock held: the limit, or the heaviest permit above it. Work that waits for other
 * work never fills it up: the limit may have fallen since that was allowed to wait. */
static inline uint32_t weir__limiter_ceiling(const weir_limiter *limiter)
{
    uint32_t out = limiter->in_flight + limiter->backlog.reserved;
    uint32_t heaviest = limiter->heavy.heaviest < out ? limiter->heavy.heaviest : out; /* it may be out of date */
    uint32_t ceiling = heaviest > limiter->limit ? heaviest : limiter->limit;
    uint32_t least = limiter->backlog.nested != 0 ? limiter->backlog.nested + limiter->backlog.awaited : 0;
    return ceiling > least ? ceiling : least;
}

/* ---- configure.c ---- */

/* EINVAL, logged: MAX_LIMIT is more than a pool takes. backlog may be NULL. */
int weir__limiter_check_greatest(const weir_config *config, const struct weir__backlog *backlog, const char *name);

/* ---- permit.c; all with the lock held ---- */

/* Whether weight permits are free. A weight above the limit fits once nothing else is out. */
static inline bool weir__limiter_fits(const weir_limiter *limiter, uint32_t weight)
{
    uint64_t out = (uint64_t)limiter->in_flight + limiter->backlog.reserved;
    if (out + weight <= limiter->limit) /* no ceiling is lower */
        return true;
    return out + weight <= weir__limiter_ceiling(limiter) || out == 0;
}

/* Hands free permits to whom they belong; true: some went to jobs, and the pool has to settle. */
bool weir__limiter_hand_out(weir_limiter *limiter, struct weir__wakes *wakes);

/* The same, and settles. */
static inline void weir__limiter_dispatch(weir_limiter *limiter, struct weir__wakes *wakes)
{
    const struct weir__partitions *partitions = &limiter->partitions;
    if (partitions->queued + partitions->submitters + partitions->callers == 0)
        return;
    if (weir__limiter_hand_out(limiter, wakes))
        limiter->backlog.settle(limiter->backlog.owner, wakes);
}

/* A weight above 1 goes out, or comes back. */
void weir__limiter_weigh(struct weir__heavy *heavy, uint32_t weight, bool out);

/* Puts weight permits of a partition to use, be they reserved or in flight; and the reverse. */
static inline void weir__limiter_use(weir_limiter *limiter, uint16_t partition, uint32_t weight)
{
    if (weight > 1)
        weir__limiter_weigh(&limiter->heavy, weight, true);
    weir__partition_use(&limiter->partitions, partition, weight);
}

static inline void weir__limiter_unuse(weir_limiter *limiter, uint16_t partition, uint32_t weight)
{
    if (weight > 1)
        weir__limiter_weigh(&limiter->heavy, weight, false);
    limiter->partitions.all[partition].in_use -= weight;
}

/* Counts how long a direct caller of a partition waited for its permits, or kept them. */
static inline void weir__limiter_count_wait(weir_limiter *limiter, uint16_t partition, uint64_t ns)
{
    weir__histogram_add(&limiter->histograms->wait, ns, 1);
    if (limiter->partitions.all[partition].histograms != NULL)
        weir__histogram_add(&limiter->partitions.all[partition].histograms->wait, ns, 1);
}

static inline void weir__limiter_count_rtt(weir_limiter *limiter, uint16_t partition, uint64_t ns)
{
    weir__histogram_add(&limiter->histograms->rtt, ns, 1);
    if (limiter->partitions.all[partition].histograms != NULL)
        weir__histogram_add(&limiter->partitions.all[partition].histograms->rtt, ns, 1);
}

/* The same for a job, see histogram.h. */
static inline void weir__limiter_count_job(weir_limiter *limiter, uint16_t partition, uint64_t stamp, uint64_t start_ns,
                                           uint64_t end_ns)
{
    weir__histograms_add_job(limiter->histograms, stamp, start_ns, end_ns);
    if (limiter->partitions.all[partition].histograms != NULL)
        weir__histograms_add_job(limiter->partitions.all[partition].histograms, stamp, start_ns, end_ns);
}

/* Whether a unit that comes now would be granted at once. */
bool weir__limiter_is_free(const weir_limiter *limiter, uint16_t partition, uint32_t weight);

/* Whether the weight can ever be granted. */
bool weir__limiter_weight_is_good(const weir_limiter *limiter, uint32_t weight);

/* ---- samples.c; all with the lock held on entry and exit ---- */

/* For a sample that finds none; drops the lock meanwhile. False: there will be none. */
bool weir__samples_make_room(weir_limiter *limiter);

/* Here, as all that each call goes through, for a sample that is built in memory word by word and copied at once costs
 * as much as ten words: the copy waits for the stores. */
static inline void weir__samples_put(weir_limiter *limiter, const weir_sample *sample)
{
    if (limiter->sample_count == WEIR__SAMPLES_ROOM && !weir__samples_make_room(limiter))
        return; /* one of many less */
    limiter->samples[limiter->sample_count++] = *sample;
    bool is_part = limiter->sample_count >= limiter->in_flight / WEIR__SAMPLES_PART;
    if (limiter->sample_count >= WEIR__SAMPLES_BATCH || limiter->partitions.callers != 0 ||
        (sample->rtt_ns >= WEIR__SAMPLES_SHORT_NS && is_part) ||
        sample->start_ns + sample->rtt_ns >= limiter->processed_ns + WEIR__SAMPLES_BATCH_NS)
        limiter->pressing = true;
}

/* Whether the waiting samples should go to the estimator now. */
static inline bool weir__samples_due(const weir_limiter *limiter)
{
    return limiter->pressing && !limiter->estimating;
}

/* Tells the estimator of a change of the configuration, if it has to be told; then
 * feeds the waiting samples to the estimator, unless a thread is at it already, and applies the limits it answers with.
 * Drops the lock meanwhile, wakes and traces in between. True if it dropped the lock. */
bool weir__samples_process(weir_limiter *limiter);

/* ---- the end of a call; lock held ---- */

/* True: it is one for the estimator. */
static inline bool weir__limiter_book_end(weir_limiter *limiter, const weir_sample *sample, uint16_t partition)
{
    limiter->counters.ended[sample->outcome]++;
    limiter->partitions.all[partition].ended[sample->outcome]++;
    return sample->outcome != WEIR_IGNORE && limiter->frozen == 0 && sample->start_ns >= limiter->thaw_ns;
}

/* Takes note of an ended call: its permits are free, its sample waits for the estimator. May drop the lock while the
 * sample buffer is full. */
static inline void weir__limiter_end(weir_limiter *limiter, const weir_sample *sample, uint16_t partition,
                                     uint32_t weight)
{
    limiter->in_flight -= weight;
    weir__limiter_unuse(limiter, partition, weight);
    if (weir__limiter_book_end(limiter, sample, partition))
        weir__samples_put(limiter, sample);
}

/* The same for one of several calls that share the permits, which are not free then. Keeps the lock: where there is no
 * room the sample is dropped, one of very many. */
static inline void weir__limiter_count_end(weir_limiter *limiter, const weir_sample *sample, uint16_t partition)
{
    if (weir__limiter_book_end(limiter, sample, partition) && limiter->sample_count < WEIR__SAMPLES_ROOM)
        weir__samples_put(limiter, sample);
}

/* ---- wakes ---- */

/* Wakes who was decided, if anybody was; without the lock. */
void weir__limiter_wake_all(weir_limiter *limiter, struct weir__wakes *wakes);
static inline void weir__limiter_wake(weir_limiter *limiter, struct weir__wakes *wakes)
{
    if (wakes->callers != NULL || wakes->worker != NULL || wakes->keeper != NULL || wakes->start_worker ||
        wakes->start_keeper)
        weir__limiter_wake_all(limiter, wakes);
}

#endif
