/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <math.h>
#include <string.h>

/* ---- means over the seeds ---- */

struct column {
    const char *head;
    size_t figure;
    double scale;
    int digits;
    bool with_spread; /* half the range over the seeds behind it */
};

#define FIGURE(field) offsetof(struct sim_result, field)
static const struct column columns[] = {
    {"util %", FIGURE(utilisation), 100, 1, true}, {"of oracle", FIGURE(relative), 100, 1, true},
    {"p99 ms", FIGURE(p99), 1e3, 1, false},        {"of oracle", FIGURE(p99_ratio), 1, 2, true},
    {"episodes", FIGURE(episodes), 1, 1, false},   {"settled s", FIGURE(settled_s), 1, 2, true},
    {"spread", FIGURE(spread), 1, 2, false},       {">1.5", FIGURE(above), 100, 1, false},
    {"<0.7", FIGURE(below), 100, 1, false},        {"peak", FIGURE(peak), 1, 2, false},
    {"limit", FIGURE(mean_limit), 1, 2, false},    {"jain", FIGURE(jain), 1, 2, false},
    {"shed %", FIGURE(shed), 100, 1, false},       {"avoid. %", FIGURE(avoidable), 100, 2, false},
    {"queue", FIGURE(queue_peak), 1, 0, false},    {"/raw", FIGURE(queue_cover), 1, 2, false},
    {"/climb", FIGURE(queue_climb), 1, 2, false},  {"in time", FIGURE(in_time), 100, 2, false},
    {"goodput", FIGURE(goodput), 100, 1, true},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static double figure(const struct sim_result *result, size_t offset)
{
    double value;
    memcpy(&value, (const char *)result + offset, sizeof value);
    return value;
}

struct sim_result sim_mean(const struct sim_row *row)
{
    struct sim_result mean = {0};
    for (size_t offset = 0; offset + sizeof(double) <= sizeof mean; offset += sizeof(double)) {
        double sum = 0;
        for (unsigned i = 0; i < row->seeds; i++)
            sum += figure(&row->results[i], offset);
        sum /= row->seeds;
        memcpy((char *)&mean + offset, &sum, sizeof sum);
    }
    return mean;
}

static double half_range(const struct sim_row *row, size_t offset)
{
    double least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < row->seeds; i++) {
        least = fmin(least, figure(&row->results[i], offset));
        most = fmax(most, figure(&row->results[i], offset));
    }
    return most - least > 0 ? (most - least) / 2 : 0;
}

/* ---- the table ---- */

void sim_print_head(FILE *out)
{
    (void)fprintf(out, "%-18s", "");
    for (size_t i = 0; i < COLUMNS; i++)
        (void)fprintf(out, columns[i].with_spread ? "%13s" : "%9s", columns[i].head);
    (void)fprintf(out, "\n");
}

void sim_print_row(FILE *out, const struct sim_scenario *scenario, const struct sim_controller *controller,
                   const struct sim_row *row, bool judged)
{
    struct sim_result mean = sim_mean(row);
    (void)fprintf(out, "  %-16s", controller->title);
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct column *c = &columns[i];
        (void)fprintf(out, " %8.*f", c->digits, figure(&mean, c->figure) * c->scale);
        if (c->with_spread)
            (void)fprintf(out, "+%-3.*f", c->digits, half_range(row, c->figure) * c->scale);
    }
    if (judged) {
        const struct sim_goal *missed = sim_missed(scenario, &mean);
        if (missed != NULL)
            (void)fprintf(out, "  MISSED %s %.3f (%s %.3f)", missed->name, figure(&mean, missed->figure),
                          missed->at_least ? "at least" : "at most", missed->bound);
        else
            (void)fprintf(out, "  ok");
    }
    (void)fprintf(out, "\n");
}

/* ---- CSV ---- */

void sim_csv_head(FILE *out)
{
    (void)fprintf(out,
                  "scenario,controller,seed,utilisation,relative,p50,p99,p99_ratio,p99_total,episodes,overloaded_s,"
                  "settled_s,spread,above,below,peak,mean_limit,jain,shed,avoidable\n");
}

void sim_csv_row(FILE *out, const struct sim_scenario *scenario, const struct sim_controller *controller,
                 const struct sim_row *row, uint64_t first_seed)
{
    for (unsigned i = 0; i < row->seeds; i++) {
        const struct sim_result *r = &row->results[i];
        (void)fprintf(
            out, "%s,%s,%llu,%.6f,%.6f,%.6f,%.6f,%.4f,%.6f,%.0f,%.3f,%.3f,%.4f,%.4f,%.4f,%.4f,%.4f,%.4f,%.6f,%.6f\n",
            scenario->id, controller->name, (unsigned long long)(first_seed + i), r->utilisation, r->relative, r->p50,
            r->p99, r->p99_ratio, r->p99_total, r->episodes, r->overloaded_s, r->settled_s, r->spread, r->above,
            r->below, r->peak, r->mean_limit, r->jain, r->shed, r->avoidable);
    }
}

void sim_phases_head(FILE *out)
{
    (void)fprintf(out,
                  "scenario,controller,seed,phase,optimum,limit,least,most,utilisation,p99,settled_s,peak_queue\n");
}

void sim_phases_row(FILE *out, const struct sim_scenario *scenario, const struct sim_controller *controller,
                    const struct sim_row *row, uint64_t first_seed)
{
    for (unsigned i = 0; i < row->seeds; i++)
        for (size_t p = 0; p < sim_phase_count(scenario); p++) {
            const struct sim_phase_result *r = &row->results[i].phases[p];
            (void)fprintf(out, "%s,%s,%llu,%zu,%.1f,%.2f,%.0f,%.0f,%.4f,%.6f,%.3f,%.0f\n", scenario->id,
                          controller->name, (unsigned long long)(first_seed + i), p, r->optimum, r->limit, r->least,
                          r->most, r->utilisation, r->p99, r->settled_s, r->peak_queue);
        }
}
