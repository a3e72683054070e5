/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "stats/record.h"

/* Text of Prometheus (exposition format 0.0.4) and JSON (RFC 8259) from records. Numbers are written as integers, with
 * a point of our own where there is one: no locale gets in between. */

struct writer {
    FILE *out;
    bool failed;
};

static void put(struct writer *writer, const char *format, ...) WEIR__PRINTF(2, 3);

static void put(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (vfprintf(writer->out, format, arguments) < 0)
        writer->failed = true;
    va_end(arguments);
}

/* number / 10^decimals, without trailing zeros. */
static void put_scaled(struct writer *writer, uint64_t number, int decimals)
{
    uint64_t scale = 1;
    for (int i = 0; i < decimals; i++)
        scale *= 10;
    uint64_t rest = number % scale;
    put(writer, "%" PRIu64, number / scale);
    if (rest == 0)
        return;
    while (rest % 10 == 0) {
        rest /= 10;
        decimals--;
    }
    put(writer, ".%0*" PRIu64, decimals, rest);
}

/* Bytes of the UTF-8 character at text; 0: there is none. */
static unsigned utf8_length(const unsigned char *text)
{
    unsigned length = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
    if (text[0] > 0xf4)
        return 0;
    for (unsigned i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    }
    /* overlong, a surrogate, or beyond the last character */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* A name is anybody's bytes: what is not UTF-8, or would steer a terminal, becomes a question mark. */
static void put_text(struct writer *writer, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    put(writer, "\"");
    while (*at != '\0') {
        unsigned length = utf8_length(at);
        if (length == 0 || *at < 0x20 || *at == 0x7f) {
            put(writer, "?");
            length = 1;
        } else if (*at == '"' || *at == '\\') {
            put(writer, "\\%c", *at);
        } else {
            put(writer, "%.*s", (int)length, (const char *)at);
        }
        at += length;
    }
    put(writer, "\"");
}

/* ---- Prometheus ---- */

static const char *const histogram_metrics[] = {"weir_queue_wait_seconds", "weir_rtt_seconds",
                                                "weir_end_to_end_seconds"};
static const char *const histogram_helps[] = {"From the submit to the start of a job, or from acquire to the permit.",
                                              "From the start to the end of a job or call.",
                                              "From the submit to the end of a job."};

static bool is_namesake(const struct weir__record *a, const struct weir__record *b)
{
    return a->kind == b->kind && a->pid == b->pid && strcmp(a->name, b->name) == 0;
}

/* The labels that tell a record from all others, without braces: of those with the same name all but the first have
 * their id. */
static void put_identity(struct writer *writer, const struct weir__record *records, const struct weir__record *record)
{
    put(writer, record->kind == WEIR__RECORD_POOL ? "pool=" : "limiter=");
    put_text(writer, record->name);
    if (record->pid != 0)
        put(writer, ",pid=\"%" PRIu32 "\"", record->pid);
    const struct weir__record *first = records;
    while (!is_namesake(first, record))
        first++;
    if (first != record)
        put(writer, ",id=\"%" PRIu64 "\"", record->id);
}

static void put_head(struct writer *writer, const char *metric, const char *type, const char *help)
{
    put(writer, "# HELP %s %s\n# TYPE %s %s\n", metric, help, metric, type);
}

static int decimals_of(const struct weir__figure_row *figure)
{
    return figure->in == WEIR__NANOSECONDS ? 9 : figure->in == WEIR__MILLIONTHS ? 6 : 0;
}

static void put_figures(struct writer *writer, const struct weir__record *records, size_t count)
{
    const char *metric = "";
    for (unsigned row = 0; row < WEIR__FIGURES; row++) {
        const struct weir__figure_row *figure = &weir__figure_rows[row];
        if (strcmp(figure->metric, metric) != 0)
            put_head(writer, figure->metric, figure->type, figure->help);
        metric = figure->metric;
        for (size_t i = 0; i < count; i++) {
            if (figure->of_pools && records[i].kind != WEIR__RECORD_POOL)
                continue;
            put(writer, "%s{", metric);
            put_identity(writer, records, &records[i]);
            put(writer, "%s%s} ", figure->label != NULL ? "," : "", figure->label != NULL ? figure->label : "");
            put_scaled(writer, records[i].figures[row], decimals_of(figure));
            put(writer, "\n");
        }
    }
}

/* Whose a sample is: of a record, or of one of its partitions. */
struct subject {
    const struct weir__record *records;
    const struct weir__record *record;
    const struct weir__record_partition *partition; /* NULL: of the whole */
};

static void put_subject(struct writer *writer, const struct subject *subject)
{
    put_identity(writer, subject->records, subject->record);
    if (subject->partition == NULL)
        return;
    put(writer, ",partition=");
    put_text(writer, subject->partition->name);
}

static void put_histogram(struct writer *writer, const struct subject *subject, const char *metric,
                          const struct weir__record_histogram *histogram)
{
    for (unsigned i = 0; i < WEIR__RECORD_BUCKETS; i++) {
        put(writer, "%s_bucket{", metric);
        put_subject(writer, subject);
        put(writer, ",le=\"");
        put_scaled(writer, UINT64_C(1) << (WEIR__RECORD_FIRST_BOUND + i), 9);
        put(writer, "\"} %" PRIu64 "\n", histogram->buckets[i]);
    }
    put(writer, "%s_bucket{", metric);
    put_subject(writer, subject);
    put(writer, ",le=\"+Inf\"} %" PRIu64 "\n%s_sum{", histogram->count, metric);
    put_subject(writer, subject);
    put(writer, "} ");
    put_scaled(writer, histogram->sum_ns, 9);
    put(writer, "\n%s_count{", metric);
    put_subject(writer, subject);
    put(writer, "} %" PRIu64 "\n", histogram->count);
}

static void put_histograms(struct writer *writer, const struct weir__record *records, size_t count)
{
    for (unsigned kind = WEIR_HISTOGRAM_WAIT; kind <= WEIR_HISTOGRAM_END_TO_END; kind++) {
        put_head(writer, histogram_metrics[kind], "histogram", histogram_helps[kind]);
        for (size_t i = 0; i < count; i++) {
            struct subject whole = {.records = records, .record = &records[i]};
            if (kind != WEIR_HISTOGRAM_END_TO_END || records[i].kind == WEIR__RECORD_POOL)
                put_histogram(writer, &whole, histogram_metrics[kind], &records[i].histograms[kind]);
        }
    }
}

static void put_info(struct writer *writer, const struct weir__record *records, size_t count)
{
    put_head(
        writer, "weir_info", "gauge",
        "Algorithm and mode, phase of the algorithm, reason of the last change of the limit, what decides on the depth "
        "of the queue; always 1.");
    for (size_t i = 0; i < count; i++) {
        put(writer, "weir_info{");
        put_identity(writer, records, &records[i]);
        put(writer, ",algorithm=");
        put_text(writer, records[i].algorithm);
        put(writer, ",mode=");
        put_text(writer, records[i].mode);
        put(writer, ",phase=");
        put_text(writer, records[i].phase);
        put(writer, ",reason=");
        put_text(writer, records[i].reason);
        put(writer, ",depth_term=");
        put_text(writer, records[i].depth_term);
        put(writer, "} 1\n");
    }
}

/* ---- of partitions ---- */

static void put_partition_rows(struct writer *writer, const struct weir__record *records, size_t count)
{
    const char *metric = "";
    for (unsigned row = 0; row < WEIR__PARTITION_FIGURES; row++) {
        const struct weir__figure_row *figure = &weir__partition_rows[row];
        if (strcmp(figure->metric, metric) != 0)
            put_head(writer, figure->metric, figure->type, figure->help);
        metric = figure->metric;
        for (size_t i = 0; i < count; i++) {
            for (uint32_t p = 0; p < records[i].partition_count; p++) {
                struct subject part = {records, &records[i], &records[i].partitions[p]};
                put(writer, "%s{", metric);
                put_subject(writer, &part);
                put(writer, "%s%s} ", figure->label != NULL ? "," : "", figure->label != NULL ? figure->label : "");
                put_scaled(writer, part.partition->figures[row], decimals_of(figure));
                put(writer, "\n");
            }
        }
    }
}

static void put_partition_histograms(struct writer *writer, const struct weir__record *records, size_t count)
{
    static const char *const metrics[] = {"weir_partition_queue_wait_seconds", "weir_partition_rtt_seconds"};
    for (unsigned kind = WEIR_HISTOGRAM_WAIT; kind <= WEIR_HISTOGRAM_RTT; kind++) {
        put_head(writer, metrics[kind], "histogram", histogram_helps[kind]);
        for (size_t i = 0; i < count; i++) {
            for (uint32_t p = 0; p < records[i].partition_count; p++) {
                struct subject part = {records, &records[i], &records[i].partitions[p]};
                put_histogram(writer, &part, metrics[kind], &part.partition->histograms[kind]);
            }
        }
    }
}

static void put_partitions(struct writer *writer, const struct weir__record *records, size_t count)
{
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any = any || records[i].partition_count != 0;
    if (!any)
        return;
    put_partition_rows(writer, records, count);
    put_partition_histograms(writer, records, count);
}

static void put_prometheus(struct writer *writer, const struct weir__record *records, size_t count)
{
    if (count == 0)
        return; /* a metric without samples is none */
    put_figures(writer, records, count);
    put_histograms(writer, records, count);
    put_info(writer, records, count);
    put_partitions(writer, records, count);
}

/* ---- JSON ---- */

static void put_member(struct writer *writer, const char *name, const char *text)
{
    put(writer, ",\"%s\":", name);
    put_text(writer, text);
}

int weir__json_text(FILE *out, const char *text)
{
    struct writer writer = {.out = out};
    put_text(&writer, text);
    return writer.failed ? EIO : 0;
}

static void put_json_histogram(struct writer *writer, const char *name, const struct weir__record_histogram *histogram)
{
    put(writer,
        ",\n   \"%s\":{\"count\":%" PRIu64 ",\"sum_ns\":%" PRIu64 ",\"p50_ns\":%" PRIu64 ",\"p90_ns\":%" PRIu64
        ",\"p99_ns\":%" PRIu64 ",\"p999_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64 "}",
        name, histogram->count, histogram->sum_ns, histogram->quantile_ns[0], histogram->quantile_ns[1],
        histogram->quantile_ns[2], histogram->quantile_ns[3], histogram->max_ns);
}

static void put_json_partitions(struct writer *writer, const struct weir__record *record)
{
    put(writer, ",\n   \"partitions\":[");
    for (uint32_t i = 0; i < record->partition_count; i++) {
        const struct weir__record_partition *partition = &record->partitions[i];
        put(writer, "%s\n    {\"name\":", i == 0 ? "" : ",");
        put_text(writer, partition->name);
        for (unsigned row = 0; row < WEIR__PARTITION_FIGURES; row++) {
            put(writer, ",\"%s\":", weir__partition_rows[row].field);
            put_scaled(writer, partition->figures[row], decimals_of(&weir__partition_rows[row]));
        }
        put_json_histogram(writer, "queue_wait", &partition->histograms[WEIR_HISTOGRAM_WAIT]);
        put_json_histogram(writer, "rtt", &partition->histograms[WEIR_HISTOGRAM_RTT]);
        put(writer, "}");
    }
    put(writer, "]");
}

static void put_json_record(struct writer *writer, const struct weir__record *record)
{
    bool is_pool = record->kind == WEIR__RECORD_POOL;
    put(writer, "\n  {\"kind\":\"%s\"", is_pool ? "pool" : "limiter");
    put_member(writer, "name", record->name);
    if (record->pid != 0)
        put(writer, ",\"pid\":%" PRIu32, record->pid);
    put(writer, ",\"id\":%" PRIu64 ",\"time_ns\":%" PRIu64, record->id, record->time_ns);
    put_member(writer, "algorithm", record->algorithm);
    put_member(writer, "mode", record->mode);
    put_member(writer, "phase", record->phase);
    put_member(writer, "reason", record->reason);
    if (is_pool)
        put_member(writer, "depth_term", record->depth_term);
    for (unsigned row = 0; row < WEIR__FIGURES; row++) {
        if (weir__figure_rows[row].of_pools && !is_pool)
            continue;
        put(writer, ",\n   \"%s\":", weir__figure_rows[row].field);
        put_scaled(writer, record->figures[row], weir__figure_rows[row].in == WEIR__MILLIONTHS ? 6 : 0);
    }
    put_json_histogram(writer, "queue_wait", &record->histograms[WEIR_HISTOGRAM_WAIT]);
    put_json_histogram(writer, "rtt", &record->histograms[WEIR_HISTOGRAM_RTT]);
    if (is_pool)
        put_json_histogram(writer, "end_to_end", &record->histograms[WEIR_HISTOGRAM_END_TO_END]);
    put_json_partitions(writer, record);
    put(writer, "}");
}

static void put_json(struct writer *writer, const struct weir__record *records, size_t count)
{
    put(writer, "{\"version\":1,\n \"records\":[");
    for (size_t i = 0; i < count; i++) {
        put(writer, i == 0 ? "" : ",");
        put_json_record(writer, &records[i]);
    }
    put(writer, "]}\n");
}

/* ---- both ---- */

int weir__records_write(FILE *out, weir_stats_format format, const struct weir__record *records, size_t count)
{
    struct writer writer = {.out = out};
    int saved_errno = errno;
    flockfile(out);
    if (format == WEIR_PROMETHEUS)
        put_prometheus(&writer, records, count);
    else
        put_json(&writer, records, count);
    if (fflush(out) != 0) /* a full disk shows when the buffer is written */
        writer.failed = true;
    funlockfile(out);
    errno = saved_errno;
    return writer.failed ? EIO : 0;
}

int weir_stats_write(FILE *out, weir_stats_format format)
{
    if (out == NULL || (format != WEIR_PROMETHEUS && format != WEIR_JSON))
        return EINVAL;
    struct weir__record *records = NULL;
    size_t count = 0;
    int error = weir__records_collect(&records, &count);
    if (error == 0)
        error = weir__records_write(out, format, records, count);
    free(records);
    return error;
}
