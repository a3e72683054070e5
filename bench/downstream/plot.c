/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The data files and the pictures, of the first round. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "downstream.h"

#ifndef DOWNSTREAM_PLOT_SCRIPT
#define DOWNSTREAM_PLOT_SCRIPT "bench/downstream/downstream.gp"
#endif

static int write_readings(const struct outcome *outcome, const struct result *result)
{
    char path[512];
    snprintf(path, sizeof path, "%s/downstream-%s-%s.dat", outcome->options->output, outcome->part->name,
             result->kind.label);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return bench_complain(path, strerror(errno));
    fputs("# seconds limit in_flight queued completed_per_s failed_per_s shed_per_s p50_ms p99_ms R0_ms R_ms state "
          "phase\n",
          file);
    for (size_t i = 0; i < result->reading_count; i++) {
        const struct reading *r = &result->readings[i];
        fprintf(file, "%.3f %u %u %u %.1f %.1f %.1f %.3f %.3f %.3f %.3f %s \"%s\"\n", r->at_s, r->limit, r->in_flight,
                r->queued, r->completed_per_s, r->failed_per_s, r->shed_per_s, r->p50_ms, r->p99_ms, r->noload_ms,
                r->rtt_ms, r->state != NULL && *r->state != '\0' ? r->state : "-",
                outcome->part->phases[r->phase].name);
    }
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed)
        return bench_complain(path, strerror(errno != 0 ? errno : EIO));
    return 0;
}

/* What the script has to know, as gnuplot assignments. */
static char *assignments(const struct outcome *outcome)
{
    const struct part *part = outcome->part;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    fprintf(out, "directory='%s'; part='%s'; duration=%.3f; best=%u; starts='", outcome->options->output, part->name,
            outcome->results[0].seconds - outcome->results[0].warm_s, outcome->sweep.best);
    for (size_t i = 0; i < part->phase_count; i++)
        if (!part->phases[i].absent)
            fprintf(out, "%.3f ", outcome->results[0].phase_at[i]);
    fputs("'; names='", out);
    for (size_t i = 0; i < part->phase_count; i++)
        if (!part->phases[i].absent)
            fprintf(out, "\"%s\" ", part->phases[i].name);
    fputs("'; pools='", out);
    for (size_t i = 0; i < outcome->options->pool_count; i++)
        fprintf(out, "%s ", outcome->options->pools[i].label);
    fputs("'", out);
    return fclose(out) == 0 ? text : NULL;
}

int plot(const struct outcome *outcome)
{
    const char *directory = outcome->options->output;
    const char *name = outcome->part->name;
    for (size_t i = 0; i < outcome->options->pool_count; i++) {
        int error = write_readings(outcome, &outcome->results[i]);
        if (error != 0)
            return error;
    }
    char *values = assignments(outcome);
    if (values == NULL)
        return bench_complain("the picture", strerror(ENOMEM));
    char script[] = DOWNSTREAM_PLOT_SCRIPT;
    char *arguments[] = {"gnuplot", "-e", values, script, NULL};
    int error = gnuplot(arguments);
    free(values);
    if (error == 0)
        printf("Picture: %s/downstream-%s.png and .svg (data: -*.dat)\n", directory, name);
    else
        printf("No picture: %s; the data are in %s/downstream-%s-*.dat\n",
               error == ENOENT ? "gnuplot is not installed" : "gnuplot failed", directory, name);
    return error == ENOENT ? 0 : error;
}
