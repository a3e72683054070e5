/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_RECORD_H
#define WEIR_RECORD_H

/* The figures of one pool or limiter as plain data of fixed size: without pointers, so that they can be kept when the
 * pool is gone, and read by another process. What is written of them, and by which names, is one table. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/stats.h>

enum {
    WEIR__RECORD_PARTITIONS = 64, /* the unnamed one included */
    WEIR__RECORD_BUCKETS = 27,    /* bounds 2^10 ns (1 us) to 2^36 ns (69 s) */
    WEIR__RECORD_FIRST_BOUND = 10
};

/* ---- the table ---- */

enum weir__figure {
    WEIR__FIGURE_LIMIT,
    WEIR__FIGURE_MIN_LIMIT,
    WEIR__FIGURE_MAX_LIMIT,
    WEIR__FIGURE_ESTIMATE,
    WEIR__FIGURE_IN_FLIGHT,
    WEIR__FIGURE_RUNNING,
    WEIR__FIGURE_QUEUED,
    WEIR__FIGURE_QUEUE_DEPTH,
    WEIR__FIGURE_WAITING,
    WEIR__FIGURE_WORKERS,
    WEIR__FIGURE_IDLE,
    WEIR__FIGURE_FROZEN,
    WEIR__FIGURE_RTT_NOLOAD,
    WEIR__FIGURE_RTT,
    WEIR__FIGURE_REACTION,
    WEIR__FIGURE_THROUGHPUT,
    WEIR__FIGURE_ARRIVAL_RATE,
    WEIR__FIGURE_BURSTINESS,
    WEIR__FIGURE_OLDEST_WAIT,
    WEIR__FIGURE_LONGEST_RUN,
    WEIR__FIGURE_LIMIT_CHANGED,
    WEIR__FIGURE_PINNED_FLOOR,
    WEIR__FIGURE_PINNED_CEILING,
    WEIR__FIGURE_SUBMITTED,
    WEIR__FIGURE_STARTED,
    WEIR__FIGURE_SUCCEEDED,
    WEIR__FIGURE_IGNORED,
    WEIR__FIGURE_DROPPED,
    WEIR__FIGURE_EXPIRED,
    WEIR__FIGURE_CANCELLED,
    WEIR__FIGURE_SHED,
    WEIR__FIGURE_TIMED_OUT,
    WEIR__FIGURE_START_FAILURES,
    WEIR__FIGURE_LIMIT_CHANGES,
    WEIR__FIGURES
};

enum weir__partition_figure {
    WEIR__PARTITION_SHARE,
    WEIR__PARTITION_IN_USE,
    WEIR__PARTITION_QUEUED,
    WEIR__PARTITION_QUEUE_DEPTH,
    WEIR__PARTITION_WAITING,
    WEIR__PARTITION_GRANTED,
    WEIR__PARTITION_SUCCEEDED,
    WEIR__PARTITION_IGNORED,
    WEIR__PARTITION_DROPPED,
    WEIR__PARTITION_EXPIRED,
    WEIR__PARTITION_CANCELLED,
    WEIR__PARTITION_SHED,
    WEIR__PARTITION_TIMED_OUT,
    WEIR__PARTITION_FIGURES
};

enum weir__unit_of { WEIR__PLAIN_NUMBER, WEIR__NANOSECONDS, WEIR__MILLIONTHS };

struct weir__figure_row {
    const char *field;     /* in JSON; a unit of time is in the name */
    const char *metric;    /* of Prometheus */
    const char *label;     /* that tells it from the others of its metric, or NULL; those follow each other */
    const char *type;      /* "gauge" or "counter" */
    const char *help;      /* of the metric */
    enum weir__unit_of in; /* what the number counts */
    bool of_pools;         /* a limiter has none */
    bool is_age;           /* a time that goes on while nothing happens, unless it is 0 */
};
extern const struct weir__figure_row weir__figure_rows[WEIR__FIGURES];
extern const struct weir__figure_row weir__partition_rows[WEIR__PARTITION_FIGURES];

/* ---- a record ---- */

struct weir__record_histogram {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t quantile_ns[4];                /* 0.5, 0.9, 0.99, 0.999 */
    uint64_t buckets[WEIR__RECORD_BUCKETS]; /* below each bound */
};

struct weir__record_partition {
    char name[48]; /* "": of what names none */
    uint64_t figures[WEIR__PARTITION_FIGURES];
    struct weir__record_histogram histograms[2]; /* wait, RTT */
};

enum weir__record_kind { WEIR__RECORD_POOL, WEIR__RECORD_LIMITER };

struct weir__record {
    uint64_t id; /* within the process, from 1 on, never used again */
    uint32_t kind;
    uint32_t pid;     /* 0: the caller's own process */
    uint64_t time_ns; /* monotonic */
    char name[96];    /* a longer one is cut */
    char phase[32];
    char reason[32];
    char algorithm[16];
    char mode[16];
    char depth_term[16];
    uint64_t figures[WEIR__FIGURES];
    struct weir__record_histogram histograms[3]; /* by weir_histogram_kind */
    uint32_t partition_count;                    /* 0: none are configured */
    uint32_t reserved;
    struct weir__record_partition partitions[WEIR__RECORD_PARTITIONS];
};

/* ---- record.c ---- */

struct weir__histograms;
struct weir_limiter;

/* What the histogram says in short. */
void weir__record_summarize(struct weir__record_histogram *summary, const weir_histogram *histogram);

/* Those that a record has of a partition. */
void weir__record_summarize_partition(struct weir__record_partition *partition,
                                      const struct weir__histograms *histograms);

/* Fills in a record, zero or of the same limiter, but for its histograms; the limiter's lock is held. */
void weir__record_take(struct weir__record *record, struct weir_limiter *limiter, uint64_t now_ns);

/* The records of all that lives in this process, to be freed. 0 or ENOMEM. */
int weir__records_collect(struct weir__record **records, size_t *count);

/* ---- write.c ---- */

/* EIO: the stream failed. */
int weir__records_write(FILE *out, weir_stats_format format, const struct weir__record *records, size_t count);

/* Anybody's bytes as a string of JSON. EIO: the stream failed. */
int weir__json_text(FILE *out, const char *text);

#endif
