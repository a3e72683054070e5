/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "pool/pool.h"
#include "stats/record.h"
#include "stats/stats.h"

#define GAUGE   .type = "gauge"
#define COUNTER .type = "counter"
#define TIME    .in = WEIR__NANOSECONDS
#define AGE     .in = WEIR__NANOSECONDS, .is_age = true

const struct weir__figure_row weir__figure_rows[WEIR__FIGURES] = {
    [WEIR__FIGURE_LIMIT] = {"limit", "weir_limit", GAUGE, .help = "Permits enforced now."},
    [WEIR__FIGURE_MIN_LIMIT] = {"min_limit", "weir_min_limit", GAUGE, .help = "Configured floor of the limit."},
    [WEIR__FIGURE_MAX_LIMIT] = {"max_limit", "weir_max_limit", GAUGE, .help = "Configured ceiling of the limit."},
    [WEIR__FIGURE_ESTIMATE] = {"estimate", "weir_estimate", GAUGE, .help = "Limit that the algorithm says."},
    [WEIR__FIGURE_IN_FLIGHT] = {"in_flight", "weir_in_flight", GAUGE, .help = "Permits out."},
    [WEIR__FIGURE_RUNNING] = {"running", "weir_running", GAUGE, .help = "Jobs or calls that hold a permit."},
    [WEIR__FIGURE_QUEUED] = {"queued", "weir_queued", GAUGE, .help = "Jobs that wait for a permit.", .of_pools = true},
    [WEIR__FIGURE_QUEUE_DEPTH] = {"queue_depth", "weir_queue_depth", GAUGE, .help = "Jobs that may wait for a permit.",
                                  .of_pools = true},
    [WEIR__FIGURE_WAITING] = {"waiting", "weir_waiting", GAUGE, .help = "Callers blocked in submit or acquire."},
    [WEIR__FIGURE_WORKERS] = {"workers", "weir_workers", GAUGE, .help = "Threads alive.", .of_pools = true},
    [WEIR__FIGURE_IDLE] = {"idle", "weir_idle_workers", GAUGE, .help = "Threads asleep for want of work.",
                           .of_pools = true},
    [WEIR__FIGURE_FROZEN] = {"frozen", "weir_frozen", GAUGE, .help = "Freezes not thawed yet."},
    [WEIR__FIGURE_RTT_NOLOAD] = {"rtt_noload_ns", "weir_rtt_noload_seconds", GAUGE, TIME,
                                 .help = "Round trip of an idle downstream, as the algorithm has learned it."},
    [WEIR__FIGURE_RTT] = {"rtt_ns", "weir_rtt_window_seconds", GAUGE, TIME,
                          .help = "Mean round trip of the last window."},
    [WEIR__FIGURE_REACTION] = {"reaction_ns", "weir_reaction_seconds", GAUGE, TIME,
                               .help = "Time in which the limit would halve under full congestion; 0 if never."},
    [WEIR__FIGURE_THROUGHPUT] = {"throughput", "weir_throughput", GAUGE, .in = WEIR__MILLIONTHS,
                                 .help = "Successful completions per second of the last measuring period."},
    [WEIR__FIGURE_ARRIVAL_RATE] = {"arrival_rate", "weir_arrival_rate", GAUGE, .in = WEIR__MILLIONTHS,
                                   .help = "Jobs submitted per second of the last measuring period, refused ones "
                                           "included; 0 if unknown, or while callers block.",
                                   .of_pools = true},
    [WEIR__FIGURE_BURSTINESS] = {"burstiness", "weir_burstiness", GAUGE, .in = WEIR__MILLIONTHS,
                                 .help = "Variance of the number of arrivals in a period by its mean; 1 for a Poisson "
                                         "process.",
                                 .of_pools = true},
    [WEIR__FIGURE_OLDEST_WAIT] = {"oldest_wait_ns", "weir_oldest_wait_seconds", GAUGE, AGE,
                                  .help = "How long the job or caller that came first has waited."},
    [WEIR__FIGURE_LONGEST_RUN] = {"longest_run_ns", "weir_longest_run_seconds", GAUGE, AGE,
                                  .help = "How long the job that started first has run.", .of_pools = true},
    [WEIR__FIGURE_LIMIT_CHANGED] = {"limit_changed_ns", "weir_limit_age_seconds", GAUGE, AGE,
                                    .help = "Time since the estimate changed last."},
    [WEIR__FIGURE_PINNED_FLOOR] = {"pinned_at_floor_ns", "weir_pinned_seconds", "bound=\"floor\"", GAUGE, AGE,
                                   .help = "How long a configured bound has held the limit; 0 if it does not."},
    [WEIR__FIGURE_PINNED_CEILING] = {"pinned_at_ceiling_ns", "weir_pinned_seconds", "bound=\"ceiling\"", GAUGE, AGE,
                                     .help = ""},
    [WEIR__FIGURE_SUBMITTED] = {"submitted", "weir_submitted_total", COUNTER,
                                .help = "Jobs accepted, or permits granted."},
    [WEIR__FIGURE_STARTED] = {"started", "weir_started_total", COUNTER, .help = "Jobs started, or permits granted."},
    [WEIR__FIGURE_SUCCEEDED] = {"succeeded", "weir_jobs_total", "outcome=\"success\"", COUNTER,
                                .help = "Jobs or calls that ended, by outcome."},
    [WEIR__FIGURE_IGNORED] = {"ignored", "weir_jobs_total", "outcome=\"ignore\"", COUNTER, .help = ""},
    [WEIR__FIGURE_DROPPED] = {"dropped", "weir_jobs_total", "outcome=\"dropped\"", COUNTER, .help = ""},
    [WEIR__FIGURE_EXPIRED] = {"expired", "weir_jobs_total", "outcome=\"expired\"", COUNTER, .help = "",
                              .of_pools = true},
    [WEIR__FIGURE_CANCELLED] = {"cancelled", "weir_jobs_total", "outcome=\"cancelled\"", COUNTER, .help = "",
                                .of_pools = true},
    [WEIR__FIGURE_SHED] = {"shed", "weir_shed_total", COUNTER, .help = "Jobs or calls refused at the ceiling."},
    [WEIR__FIGURE_TIMED_OUT] = {"timed_out", "weir_timed_out_total", COUNTER,
                                .help = "Jobs or calls refused because a deadline would pass or had passed."},
    [WEIR__FIGURE_START_FAILURES] = {"worker_start_failures", "weir_worker_start_failures_total", COUNTER,
                                     .help = "Threads that the system could not start.", .of_pools = true},
    [WEIR__FIGURE_LIMIT_CHANGES] = {"limit_changes", "weir_limit_changes_total", COUNTER,
                                    .help = "Changes of the estimate."},
};

const struct weir__figure_row weir__partition_rows[WEIR__PARTITION_FIGURES] = {
    [WEIR__PARTITION_SHARE] = {"share", "weir_partition_share", GAUGE, .in = WEIR__MILLIONTHS,
                               .help = "Share of the limit and of the queue that is guaranteed."},
    [WEIR__PARTITION_IN_USE] = {"in_use", "weir_partition_in_use", GAUGE,
                                .help = "Permits that a partition has, reserved or in flight."},
    [WEIR__PARTITION_QUEUED] = {"queued", "weir_partition_queued", GAUGE,
                                .help = "Jobs of a partition that wait for a permit."},
    [WEIR__PARTITION_QUEUE_DEPTH] = {"queue_depth", "weir_partition_queue_depth", GAUGE,
                                     .help = "Places in the queue that are guaranteed to a partition."},
    [WEIR__PARTITION_WAITING] = {"waiting", "weir_partition_waiting", GAUGE,
                                 .help = "Callers of a partition blocked in submit or acquire."},
    [WEIR__PARTITION_GRANTED] = {"granted", "weir_partition_granted_total", COUNTER,
                                 .help = "Jobs and calls of a partition that got permits."},
    [WEIR__PARTITION_SUCCEEDED] = {"succeeded", "weir_partition_jobs_total", "outcome=\"success\"", COUNTER,
                                   .help = "Jobs and calls of a partition that ended, by outcome."},
    [WEIR__PARTITION_IGNORED] = {"ignored", "weir_partition_jobs_total", "outcome=\"ignore\"", COUNTER, .help = ""},
    [WEIR__PARTITION_DROPPED] = {"dropped", "weir_partition_jobs_total", "outcome=\"dropped\"", COUNTER, .help = ""},
    [WEIR__PARTITION_EXPIRED] = {"expired", "weir_partition_jobs_total", "outcome=\"expired\"", COUNTER, .help = ""},
    [WEIR__PARTITION_CANCELLED] = {"cancelled", "weir_partition_jobs_total", "outcome=\"cancelled\"", COUNTER,
                                   .help = ""},
    [WEIR__PARTITION_SHED] = {"shed", "weir_partition_shed_total", COUNTER,
                              .help = "Jobs and calls of a partition refused at the ceiling."},
    [WEIR__PARTITION_TIMED_OUT] = {"timed_out", "weir_partition_timed_out_total", COUNTER,
                                   .help = "Jobs and calls of a partition refused because of a deadline."},
};

/* ---- one record ---- */

static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = from != NULL ? strlen(from) : 0;
    if (length >= size)
        length = size - 1;
    memset(to, 0, size);
    if (length != 0)
        memcpy(to, from, length);
}

static uint64_t millionths(double value)
{
    return value > 0 && value < 1e12 ? (uint64_t)(value * 1e6 + 0.5) : 0;
}

static void take_gauges(uint64_t *figures, const weir_stats *stats)
{
    figures[WEIR__FIGURE_LIMIT] = stats->limit;
    figures[WEIR__FIGURE_ESTIMATE] = stats->estimate;
    figures[WEIR__FIGURE_IN_FLIGHT] = stats->in_flight;
    figures[WEIR__FIGURE_RUNNING] = stats->running;
    figures[WEIR__FIGURE_QUEUED] = stats->queued;
    figures[WEIR__FIGURE_QUEUE_DEPTH] = stats->queue_depth;
    figures[WEIR__FIGURE_WAITING] = stats->waiting;
    figures[WEIR__FIGURE_WORKERS] = stats->workers;
    figures[WEIR__FIGURE_IDLE] = stats->idle;
    figures[WEIR__FIGURE_FROZEN] = stats->frozen;
    figures[WEIR__FIGURE_RTT_NOLOAD] = stats->rtt_noload_ns;
    figures[WEIR__FIGURE_RTT] = stats->rtt_ns;
    figures[WEIR__FIGURE_REACTION] = stats->reaction_ns;
    figures[WEIR__FIGURE_THROUGHPUT] = millionths(stats->throughput);
    figures[WEIR__FIGURE_ARRIVAL_RATE] = millionths(stats->arrival_rate);
    figures[WEIR__FIGURE_BURSTINESS] = millionths(stats->burstiness);
    figures[WEIR__FIGURE_OLDEST_WAIT] = stats->oldest_wait_ns;
    figures[WEIR__FIGURE_LONGEST_RUN] = stats->longest_run_ns;
    figures[WEIR__FIGURE_LIMIT_CHANGED] = stats->limit_changed_ns;
    figures[WEIR__FIGURE_PINNED_FLOOR] = stats->pinned == WEIR_PINNED_AT_FLOOR ? stats->pinned_ns : 0;
    figures[WEIR__FIGURE_PINNED_CEILING] = stats->pinned == WEIR_PINNED_AT_CEILING ? stats->pinned_ns : 0;
}

static void take_counters(uint64_t *figures, const weir_stats *stats)
{
    figures[WEIR__FIGURE_SUBMITTED] = stats->submitted;
    figures[WEIR__FIGURE_STARTED] = stats->started;
    figures[WEIR__FIGURE_SUCCEEDED] = stats->succeeded;
    figures[WEIR__FIGURE_IGNORED] = stats->ignored;
    figures[WEIR__FIGURE_DROPPED] = stats->dropped;
    figures[WEIR__FIGURE_EXPIRED] = stats->expired;
    figures[WEIR__FIGURE_CANCELLED] = stats->cancelled;
    figures[WEIR__FIGURE_SHED] = stats->shed;
    figures[WEIR__FIGURE_TIMED_OUT] = stats->timed_out;
    figures[WEIR__FIGURE_START_FAILURES] = stats->worker_start_failures;
    figures[WEIR__FIGURE_LIMIT_CHANGES] = stats->limit_changes;
}

static void take_partitions(struct weir__record *record, const weir_limiter *limiter)
{
    const struct weir__partitions *partitions = &limiter->partitions;
    record->partition_count = partitions->count > 1 ? partitions->count : 0;
    for (uint32_t i = 0; i < record->partition_count; i++) {
        const struct weir__partition *partition = &partitions->all[i];
        struct weir__record_partition *to = &record->partitions[i];
        copy_text(to->name, sizeof to->name, partition->name);
        uint64_t *figures = to->figures;
        bool has_queue = limiter->backlog.owner != NULL;
        figures[WEIR__PARTITION_SHARE] = millionths(partition->share);
        figures[WEIR__PARTITION_IN_USE] = partition->in_use;
        figures[WEIR__PARTITION_QUEUED] = partition->queued;
        figures[WEIR__PARTITION_QUEUE_DEPTH] = has_queue ? weir__partition_places(partition, limiter->depth) : 0;
        figures[WEIR__PARTITION_WAITING] = partition->callers + partition->submitters;
        figures[WEIR__PARTITION_GRANTED] =
            partition->submitted - partition->queued - partition->expired - partition->cancelled;
        figures[WEIR__PARTITION_SUCCEEDED] = partition->ended[WEIR_SUCCESS];
        figures[WEIR__PARTITION_IGNORED] = partition->ended[WEIR_IGNORE];
        figures[WEIR__PARTITION_DROPPED] = partition->ended[WEIR_DROPPED];
        figures[WEIR__PARTITION_EXPIRED] = partition->expired;
        figures[WEIR__PARTITION_CANCELLED] = partition->cancelled;
        figures[WEIR__PARTITION_SHED] = partition->shed;
        figures[WEIR__PARTITION_TIMED_OUT] = partition->timed_out;
    }
}

static void take_algorithm(struct weir__record *record, const weir_config *config)
{
    static const char name[] = "ALGORITHM";
    char buffer[WEIR__VALUE_SIZE];
    const struct weir__option *option = weir__option_find(name, sizeof name - 1);
    copy_text(record->algorithm, sizeof record->algorithm,
              weir__option_format(option, weir__option_load(option, config), buffer));
}

void weir__record_take(struct weir__record *record, weir_limiter *limiter, uint64_t now_ns)
{
    weir_stats stats;
    weir__stats_snapshot(limiter, now_ns, &stats);
    record->id = limiter->fork_lock.id;
    record->kind = limiter->backlog.owner != NULL ? WEIR__RECORD_POOL : WEIR__RECORD_LIMITER;
    record->pid = 0;
    record->time_ns = now_ns;
    copy_text(record->name, sizeof record->name, limiter->name);
    copy_text(record->phase, sizeof record->phase, stats.phase);
    copy_text(record->reason, sizeof record->reason, stats.reason);
    copy_text(record->depth_term, sizeof record->depth_term, stats.depth_term);
    if (record->algorithm[0] == '\0') /* it never changes */
        take_algorithm(record, &limiter->config);
    copy_text(record->mode, sizeof record->mode, limiter->config.mode == WEIR_MONITOR ? "monitor" : "enforce");
    take_gauges(record->figures, &stats);
    take_counters(record->figures, &stats);
    record->figures[WEIR__FIGURE_MIN_LIMIT] = limiter->config.min_limit;
    record->figures[WEIR__FIGURE_MAX_LIMIT] = limiter->config.max_limit;
    take_partitions(record, limiter);
}

void weir__record_summarize(struct weir__record_histogram *summary, const weir_histogram *histogram)
{
    static const double fractions[] = {0.5, 0.9, 0.99, 0.999};
    summary->count = histogram->count;
    summary->sum_ns = histogram->sum_ns;
    summary->max_ns = histogram->max_ns;
    for (unsigned i = 0; i < 4; i++)
        summary->quantile_ns[i] = weir_histogram_quantile_ns(histogram, fractions[i]);
    uint64_t seen = 0;
    unsigned bucket = 0;
    for (unsigned i = 0; i < WEIR__RECORD_BUCKETS; i++) {
        uint64_t bound_ns = UINT64_C(1) << (WEIR__RECORD_FIRST_BOUND + i); /* is one of the buckets, too */
        for (; weir_histogram_bound_ns(bucket) < bound_ns; bucket++)
            seen += histogram->buckets[bucket];
        summary->buckets[i] = seen;
    }
}

void weir__record_summarize_partition(struct weir__record_partition *partition,
                                      const struct weir__histograms *histograms)
{
    weir__record_summarize(&partition->histograms[WEIR_HISTOGRAM_WAIT], &histograms->wait);
    weir__record_summarize(&partition->histograms[WEIR_HISTOGRAM_RTT], &histograms->rtt);
}

/* ---- all records ---- */

/* What a visit fills in. The histograms are copied as they are: to sum them up takes longer than the limiter's lock
 * should be held. */
struct visit {
    struct weir__record *record;
    struct weir__histograms *histograms;
    struct weir__histograms *one; /* of a partition */
    bool taken;
};

/* Those of the partitions follow one by one, each a moment later: together they may be megabytes. */
static void take_partition_histograms(struct visit *visit, weir_limiter *limiter)
{
    for (uint32_t i = 0; i < visit->record->partition_count; i++) {
        weir__lock(limiter);
        *visit->one = *limiter->partitions.all[i].histograms;
        weir__unlock(limiter);
        weir__record_summarize_partition(&visit->record->partitions[i], visit->one);
    }
}

/* With the registry held, so the limiter stays: as a fork does, the only nesting of these locks. */
static void take(struct weir__fork_lock *entry, void *arg)
{
    struct visit *visit = arg;
    weir_limiter *limiter = (weir_limiter *)(void *)((char *)entry - offsetof(weir_limiter, fork_lock));
    if (limiter->fork_generation != weir__fork_generation())
        return; /* inherited: another process' */
    weir__lock(limiter);
    weir__record_take(visit->record, limiter, weir_now_ns());
    *visit->histograms = *limiter->histograms;
    weir__unlock(limiter);
    take_partition_histograms(visit, limiter);
    visit->taken = true;
}

/* Makes room for one more. */
static bool grow(struct weir__record **records, size_t count, size_t *room)
{
    if (count < *room)
        return true;
    size_t wanted = *room * 2 + 4;
    struct weir__record *grown = realloc(*records, wanted * sizeof *grown);
    if (grown == NULL)
        return false;
    memset(grown + *room, 0, (wanted - *room) * sizeof *grown);
    *records = grown;
    *room = wanted;
    return true;
}

int weir__records_collect(struct weir__record **records, size_t *count)
{
    int saved_errno = errno;
    struct visit visit = {.histograms = weir__allocate(sizeof *visit.histograms),
                          .one = weir__allocate(sizeof *visit.one)};
    size_t room = 0;
    uint64_t id = 0;
    *records = NULL;
    *count = 0;
    bool has_memory = visit.histograms != NULL && visit.one != NULL;
    while (has_memory && (has_memory = grow(records, *count, &room))) {
        visit.record = &(*records)[*count];
        visit.taken = false;
        id = weir__fork_visit(id, take, &visit);
        if (id == 0)
            break;
        if (!visit.taken)
            continue;
        weir__record_summarize(&visit.record->histograms[WEIR_HISTOGRAM_WAIT], &visit.histograms->wait);
        weir__record_summarize(&visit.record->histograms[WEIR_HISTOGRAM_RTT], &visit.histograms->rtt);
        weir__record_summarize(&visit.record->histograms[WEIR_HISTOGRAM_END_TO_END], &visit.histograms->end_to_end);
        (*count)++;
    }
    free(visit.histograms);
    free(visit.one);
    if (!has_memory) {
        free(*records);
        *records = NULL;
        *count = 0;
    }
    errno = saved_errno;
    return has_memory ? 0 : ENOMEM;
}
