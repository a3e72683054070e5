/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "peers.h"

/* ---- figures of several rounds ---- */

void series_add(struct series *series, double value)
{
    if (series->count < MOST_ROUNDS)
        series->values[series->count++] = value;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double quantile(const struct series *series, double q)
{
    double sorted[MOST_ROUNDS];
    if (series->count == 0)
        return NAN;
    memcpy(sorted, series->values, series->count * sizeof sorted[0]);
    qsort(sorted, series->count, sizeof sorted[0], compare);
    double at = q * (series->count - 1);
    unsigned below = (unsigned)at;
    unsigned above = below + 1 < series->count ? below + 1 : below;
    return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

double median(const struct series *series)
{
    return quantile(series, 0.5);
}

double spread(const struct series *series)
{
    return (quantile(series, 0.75) - quantile(series, 0.25)) / 2 / fabs(median(series));
}

/* ---- the table ---- */

static void print_number(enum unit unit, double value)
{
    if (unit == UNIT_RATE && value >= 1e6)
        (void)printf("%6.2fM", value / 1e6);
    else if (unit == UNIT_RATE)
        (void)printf("%6.0fk", value / 1e3);
    else if (unit == UNIT_NS)
        (void)printf(value < 99.95 ? "%5.1fns" : "%5.0fns", value);
    else if (unit == UNIT_US)
        (void)printf(value < 99.95 ? "%5.2fus" : "%5.0fus", value);
    else
        (void)printf(value < 9.9995 ? "%7.4f" : "%7.1f", value);
}

void report_cell(enum unit unit, const struct series *series)
{
    if (series->count == 0) {
        (void)printf("           -");
        return;
    }
    print_number(unit, median(series));
    if (series->count > 1 && fabs(median(series)) > 0)
        (void)printf(" %3.0f%%", 100 * spread(series));
    else
        (void)printf("     ");
}

void report_heading(const char *title)
{
    (void)printf("\n%s\n%-30s", title, "");
    for (unsigned i = 0; peers[i] != NULL; i++)
        (void)printf("%11s ", peers[i]->name);
    (void)printf("  weir: best  fixed: best  raw\n");
}

static const struct series *best_peer(const struct row *row)
{
    const struct series *best = NULL;
    for (unsigned i = 0; peers[i] != NULL; i++) {
        const struct series *series = &row->by_peer[i];
        if (!peers[i]->ranked || series->count == 0)
            continue;
        if (best == NULL || (row->more_is_better ? median(series) > median(best) : median(series) < median(best)))
            best = series;
    }
    return best;
}

static const struct series *series_of(const struct row *row, const struct peer *peer)
{
    for (unsigned i = 0; peers[i] != NULL; i++) {
        if (peers[i] == peer)
            return &row->by_peer[i];
    }
    return NULL;
}

static void print_ratio(const struct series *ours, const struct series *theirs)
{
    if (ours == NULL || theirs == NULL || ours->count == 0 || theirs->count == 0 || !(fabs(median(theirs)) > 0))
        (void)printf("        -");
    else
        (void)printf("  %6.2fx", median(ours) / median(theirs));
}

void report_row(const struct row *row)
{
    (void)printf("%-30s", row->label);
    for (unsigned i = 0; peers[i] != NULL; i++)
        report_cell(row->unit, &row->by_peer[i]);
    print_ratio(series_of(row, &peer_weir), best_peer(row));
    print_ratio(series_of(row, &peer_weir_fixed), best_peer(row));
    print_ratio(series_of(row, &peer_weir), series_of(row, &peer_raw));
    (void)printf("\n");
    (void)fflush(stdout);
}

/* ---- charts ---- */

static const char *directory;

void plot_open(const char *name)
{
    directory = name;
    if (directory != NULL)
        (void)mkdir(directory, 0777);
    for (const char *const *file = (const char *const[]){"width", "latency", "scale", NULL}; *file != NULL; file++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/peers-%s.dat", directory != NULL ? directory : ".", *file);
        if (directory != NULL)
            (void)remove(path);
    }
}

void plot_line(const char *file, const char *format, ...)
{
    char path[512];
    if (directory == NULL)
        return;
    (void)snprintf(path, sizeof path, "%s/peers-%s.dat", directory, file);
    FILE *out = fopen(path, "a");
    if (out == NULL)
        return;
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(out, format, arguments);
    va_end(arguments);
    (void)fputc('\n', out);
    (void)fclose(out);
}

void plot_draw(void)
{
    char command[1024];
    char names[256] = "";
    if (directory == NULL)
        return;
    for (unsigned i = 0; peers[i] != NULL; i++) {
        if (peers[i] != &peer_raw) {
            (void)strcat(names, peers[i]->name);
            (void)strcat(names, " ");
        }
    }
    (void)snprintf(command, sizeof command, "gnuplot -e \"directory='%s'; peers='%s'\" '%s'", directory, names,
                   PEERS_PLOT_SCRIPT);
    if (system(command) == 0)
        (void)printf("\nCharts: %s/peers-*.png and .svg\n", directory);
    else
        (void)printf("\nNo charts (is gnuplot installed?); their figures are in %s/peers-*.dat\n", directory);
}
