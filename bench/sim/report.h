/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BENCH_SIM_REPORT_H
#define WEIR_BENCH_SIM_REPORT_H

/* Tables for people, CSV for programs, plots for both. */

#include "sim.h"

#define SIM_MOST_SEEDS 16

/* One controller in one scenario. */
struct sim_row {
    struct sim_result results[SIM_MOST_SEEDS];
    unsigned seeds;
};

void sim_print_head(FILE *out);
/* missed: the first goal that the mean over the seeds misses; only for controllers that are held to the goals. */
void sim_print_row(FILE *out, const struct sim_scenario *scenario, const struct sim_controller *controller,
                   const struct sim_row *row, bool judged);
struct sim_result sim_mean(const struct sim_row *row);

void sim_csv_head(FILE *out);
void sim_csv_row(FILE *out, const struct sim_scenario *scenario, const struct sim_controller *controller,
                 const struct sim_row *row, uint64_t first_seed);

/* The same by phases. */
void sim_phases_head(FILE *out);
void sim_phases_row(FILE *out, const struct sim_scenario *scenario, const struct sim_controller *controller,
                    const struct sim_row *row, uint64_t first_seed);

/* Random scenarios and who played them. */
struct sim_population {
    const struct sim_scenario *const *scenarios;
    size_t scenarios_count;
    const struct sim_controller *const *controllers;
    size_t controllers_count;
    const struct sim_row *rows; /* of the first scenario by all controllers, of the second … */
};
/* The worst scenarios of the controller in question, and quantiles of all. */
void sim_print_population(FILE *out, const struct sim_population *all);

/* Sorts the values. */
double sim_quantile(double *values, size_t count, double share);

/* Writes the trace of one run as CSV and as gnuplot's PNG and SVG into the directory; false: a file or gnuplot failed.
 */
bool sim_plot(const char *directory, const struct sim_scenario *scenario, const struct sim_controller *controller,
              const struct sim_trace *trace);
bool sim_plot_index(const char *directory, const struct sim_scenario *const *scenarios, size_t scenarios_count,
                    const struct sim_controller *const *controllers, size_t controllers_count);

#endif
