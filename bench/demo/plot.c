/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The data files and the picture. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"

#ifndef DEMO_PLOT_SCRIPT
#define DEMO_PLOT_SCRIPT "bench/demo/demo.gp"
#endif

static int complain(const char *what, int error)
{
    fprintf(stderr, "demo: %s: %s\n", what, strerror(error));
    return error;
}

static char *path_in(const char *directory, const char *label, const char *suffix)
{
    char *path = NULL;
    const char *dash = *label == '\0' ? "" : "-";
    return asprintf(&path, "%s/weir-demo%s%s%s", directory, dash, label, suffix) < 0 ? NULL : path;
}

static int write_readings(const char *path, const struct options *options, const struct result *result)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return complain(path, errno);
    fputs("# seconds limit in_flight queued completed_per_s shed_per_s p50_ms p99_ms phase\n", file);
    for (size_t i = 0; i < result->reading_count; i++) {
        const struct reading *r = &result->readings[i];
        fprintf(file, "%.3f %u %u %u %.1f %.1f %.3f %.3f \"%s\"\n", r->at_s, r->limit, r->in_flight, r->queued,
                r->completed_per_s, r->shed_per_s, r->p50_ms, r->p99_ms, options->plan.phases[r->phase].name);
    }
    bool failed = ferror(file) != 0;
    if (fclose(file) != 0 || failed)
        return complain(path, errno != 0 ? errno : EIO);
    return 0;
}

/* The phases as two gnuplot assignments: where each starts and what it is called, as lists of quoted words. */
static char *phase_lists(const struct options *options)
{
    const struct plan *plan = &options->plan;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    fputs("starts='", out);
    for (size_t i = 0; i < plan->phase_count; i++)
        fprintf(out, "%.3f ", plan_start_s(plan, i, options->duration_s));
    fputs("'; names='", out);
    for (size_t i = 0; i < plan->phase_count; i++)
        fprintf(out, "\"%s\" ", plan->phases[i].name);
    fprintf(out, "'; duration=%.3f; load=%.1f; fixed=%u", options->duration_s, options->rate, options->fixed);
    return fclose(out) == 0 ? text : NULL;
}

static int draw(const struct options *options, char *png, char *adaptive, char *fixed)
{
    char *phases = phase_lists(options);
    if (phases == NULL)
        return complain("the picture", ENOMEM);
    char script[] = DEMO_PLOT_SCRIPT;
    char *arguments[] = {"gnuplot", "-e", phases, "-c", script, png, adaptive, fixed, NULL};
    int error = gnuplot(arguments);
    free(phases);
    if (error == 0)
        printf("Picture: %s (data: %s, %s)\n", png, adaptive, fixed);
    else if (error == ENOENT)
        printf("No picture: gnuplot is not installed; the data are in %s and %s\n", adaptive, fixed);
    else
        printf("No picture: gnuplot failed; the data are in %s and %s\n", adaptive, fixed);
    return error == ENOENT ? 0 : error;
}

int plot(const struct options *options, const struct result *adaptive, const struct result *fixed)
{
    char *png = path_in(options->output, "", ".png");
    char *adaptive_data = path_in(options->output, "adaptive", ".dat");
    char *fixed_data = path_in(options->output, "fixed", ".dat");
    int error = 0;
    if (png == NULL || adaptive_data == NULL || fixed_data == NULL)
        error = complain("the picture", ENOMEM);
    if (error == 0)
        error = write_readings(adaptive_data, options, adaptive);
    if (error == 0)
        error = write_readings(fixed_data, options, fixed);
    if (error == 0)
        error = draw(options, png, adaptive_data, fixed_data);
    free(png);
    free(adaptive_data);
    free(fixed_data);
    return error;
}
