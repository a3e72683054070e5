/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "weirstat.h"

enum { LEVELS = 8 };

static double mean_rtt_ns(const struct weir__record *record, const struct weir__record *before)
{
    const struct weir__record_histogram *now = &record->histograms[WEIR_HISTOGRAM_RTT];
    if (before == NULL)
        return (double)record->figures[WEIR__FIGURE_RTT];
    const struct weir__record_histogram *then = &before->histograms[WEIR_HISTOGRAM_RTT];
    return now->count > then->count ? (double)(now->sum_ns - then->sum_ns) / (double)(now->count - then->count) : 0;
}

void history_add(struct history *history, const struct weir__record *record, const struct weir__record *before)
{
    if (history->length == HISTORY_LENGTH) {
        size_t kept = (HISTORY_LENGTH - 1) * sizeof(double);
        memmove(history->limit, history->limit + 1, kept);
        memmove(history->in_flight, history->in_flight + 1, kept);
        memmove(history->rtt_ns, history->rtt_ns + 1, kept);
        history->length--;
    }
    unsigned last = history->length++;
    history->limit[last] = (double)record->figures[WEIR__FIGURE_LIMIT];
    history->in_flight[last] = (double)record->figures[WEIR__FIGURE_IN_FLIGHT];
    history->rtt_ns[last] = mean_rtt_ns(record, before);
}

/* One value as a character between 0 and the greatest. */
static const char *level(double value, double greatest, bool unicode)
{
    static const char *const blocks[] = {" ",
                                         "\xe2\x96\x81",
                                         "\xe2\x96\x82",
                                         "\xe2\x96\x83",
                                         "\xe2\x96\x84",
                                         "\xe2\x96\x85",
                                         "\xe2\x96\x86",
                                         "\xe2\x96\x87",
                                         "\xe2\x96\x88"};
    static const char *const marks[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
    int index = greatest > 0 ? (int)(value / greatest * LEVELS + 0.5) : 0;
    if (index == 0 && value > 0)
        index = 1;
    return unicode ? blocks[index] : marks[index];
}

static double greatest_of(const double *values, unsigned count)
{
    double greatest = 0;
    for (unsigned i = 0; i < count; i++)
        greatest = values[i] > greatest ? values[i] : greatest;
    return greatest;
}

static void print_line(FILE *out, const char *title, const double *values, unsigned count, double top, bool is_time,
                       bool unicode)
{
    char now[NUMBER_SIZE];
    char most[NUMBER_SIZE];
    double last = count > 0 ? values[count - 1] : 0;
    (void)fprintf(out, "  %-9s %6s |", title, is_time ? format_ns(whole_ns(last), now) : format_count(last, now));
    for (unsigned i = 0; i < HISTORY_LENGTH; i++)
        (void)fputs(i < count ? level(values[i], top, unicode) : " ", out);
    (void)fprintf(out, "| %s\n", is_time ? format_ns(whole_ns(top), most) : format_count(top, most));
}

void history_print(FILE *out, const struct history *history, bool unicode)
{
    /* Limit and permits in flight have one scale, so that they can be compared. */
    double permits = greatest_of(history->limit, history->length);
    double in_flight = greatest_of(history->in_flight, history->length);
    permits = in_flight > permits ? in_flight : permits;
    print_line(out, "limit", history->limit, history->length, permits, false, unicode);
    print_line(out, "in flight", history->in_flight, history->length, permits, false, unicode);
    print_line(out, "rtt", history->rtt_ns, history->length, greatest_of(history->rtt_ns, history->length), true,
               unicode);
}
