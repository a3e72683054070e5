/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "weirstat.h"

enum { NAME_WIDTH = 12, PHASE_WIDTH = 6 };

uint64_t ended(const struct weir__record *record)
{
    return record->figures[WEIR__FIGURE_SUCCEEDED] + record->figures[WEIR__FIGURE_IGNORED] +
           record->figures[WEIR__FIGURE_DROPPED];
}

double completions_per_s(const struct weir__record *record, const struct weir__record *before)
{
    if (before == NULL)
        return (double)record->figures[WEIR__FIGURE_THROUGHPUT] / 1e6;
    if (record->time_ns <= before->time_ns)
        return 0;
    return (double)(ended(record) - ended(before)) * 1e9 / (double)(record->time_ns - before->time_ns);
}

const struct weir__record *find_record(const struct look *look, const struct weir__record *record)
{
    for (size_t i = 0; i < look->count; i++) {
        if (look->records[i].pid == record->pid && look->records[i].id == record->id)
            return &look->records[i];
    }
    return NULL;
}

void print_table_head(FILE *out)
{
    (void)fprintf(out, "%7s %-*s %5s %4s %9s %4s %6s %6s %6s %5s %s\n", "PID", NAME_WIDTH, "NAME", "LIMIT", "INFL",
                  "QUEUE", "BLKD", "RTT0", "RTT", "DONE/S", "SHED", "PHASE");
}

/* "12/40"; a limiter has no queue. */
static const char *format_queue(const struct weir__record *record, char buffer[2 * NUMBER_SIZE])
{
    char queued[NUMBER_SIZE];
    char depth[NUMBER_SIZE];
    if (record->kind == WEIR__RECORD_LIMITER)
        return "-";
    (void)snprintf(buffer, 2 * NUMBER_SIZE, "%s/%s", format_count((double)record->figures[WEIR__FIGURE_QUEUED], queued),
                   format_count((double)record->figures[WEIR__FIGURE_QUEUE_DEPTH], depth));
    return buffer;
}

void print_table_row(FILE *out, const struct weir__record *record, const struct weir__record *before)
{
    const uint64_t *figures = record->figures;
    char text[8][2 * NUMBER_SIZE];
    char name[NAME_WIDTH + 1];
    char phase[PHASE_WIDTH + 1];
    (void)fprintf(
        out, "%7u %-*s %5s %4s %9s %4s %6s %6s %6s %5s %s\n", (unsigned)record->pid, NAME_WIDTH,
        format_name(record->name, NAME_WIDTH, name), format_count((double)figures[WEIR__FIGURE_LIMIT], text[0]),
        format_count((double)figures[WEIR__FIGURE_IN_FLIGHT], text[1]), format_queue(record, text[2]),
        format_count((double)figures[WEIR__FIGURE_WAITING], text[3]),
        format_ns(figures[WEIR__FIGURE_RTT_NOLOAD], text[4]), format_ns(figures[WEIR__FIGURE_RTT], text[5]),
        format_count(completions_per_s(record, before), text[6]),
        format_count((double)figures[WEIR__FIGURE_SHED], text[7]), format_name(record->phase, PHASE_WIDTH, phase));
}

void print_title(FILE *out, const struct weir__record *record)
{
    char name[41];
    char algorithm[sizeof record->algorithm];
    char reason[sizeof record->reason];
    (void)fprintf(out, "\n%u %s: %s, last change of the limit: %s\n", (unsigned)record->pid,
                  format_name(record->name, sizeof name - 1, name),
                  format_name(record->algorithm, sizeof algorithm - 1, algorithm),
                  record->reason[0] != '\0' ? format_name(record->reason, sizeof reason - 1, reason) : "none");
}
