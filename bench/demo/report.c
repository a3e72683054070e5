/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The closing table and the verdict. */
#include <inttypes.h>
#include <math.h>

#include "demo.h"

/* What the adaptive pool is expected to do, against the fixed one. */
#define HALVED_RATE_LEAST 0.95
#define HALVED_TAIL_MOST  (1.0 / 3)
#define RATE_TOLERANCE    0.05
#define SHORT_S           30.0 /* below, the first second of a phase weighs too much */

struct figures {
    double completed_per_s;
    double p50_ms;
    double p99_ms;
    double end_to_end_p99_ms;
    double shed_percent;
    double limit;
};

static struct figures figures_of(const struct phase_record *phase)
{
    struct figures figures = {
        .completed_per_s = phase->seconds > 0 ? (double)phase->tally.completed / phase->seconds : 0,
        .p50_ms = histogram_quantile_ms(&phase->rtt, 0.50),
        .p99_ms = histogram_quantile_ms(&phase->rtt, 0.99),
        .end_to_end_p99_ms = histogram_quantile_ms(&phase->end_to_end, 0.99),
    };
    if (phase->tally.arrived > 0)
        figures.shed_percent = 100.0 * (double)phase->tally.shed / (double)phase->tally.arrived;
    if (phase->limit_samples > 0)
        figures.limit = phase->limit_sum / (double)phase->limit_samples;
    return figures;
}

static double ratio(double adaptive, double fixed)
{
    return fixed > 0 ? adaptive / fixed : NAN;
}

static void print_row(const char *phase, const char *pool, const struct figures *figures)
{
    printf("%-21s %-9s %7.1f %8.1f %8.1f %8.1f %7.1f %7.1f\n", phase, pool, figures->completed_per_s, figures->p50_ms,
           figures->p99_ms, figures->end_to_end_p99_ms, figures->shed_percent, figures->limit);
}

static void print_ratios(const struct figures *adaptive, const struct figures *fixed)
{
    printf("%-21s %-9s %7.2f %8.2f %8.2f %8.2f\n", "", "ratio",
           ratio(adaptive->completed_per_s, fixed->completed_per_s), ratio(adaptive->p50_ms, fixed->p50_ms),
           ratio(adaptive->p99_ms, fixed->p99_ms), ratio(adaptive->end_to_end_p99_ms, fixed->end_to_end_p99_ms));
}

static void print_table(const struct options *options, const struct result *adaptive, const struct result *fixed)
{
    char fixed_name[16];
    snprintf(fixed_name, sizeof fixed_name, "fixed %u", options->fixed);
    puts("\n                                completed  RTT p50  RTT p99      end    shed    mean");
    puts("phase                 pool           /s       ms       ms  p99, ms       %   limit");
    for (size_t i = 0; i < options->plan.phase_count; i++) {
        struct figures a = figures_of(&adaptive->phases[i]);
        struct figures f = figures_of(&fixed->phases[i]);
        print_row(options->plan.phases[i].name, "adaptive", &a);
        print_row("", fixed_name, &f);
        print_ratios(&a, &f);
    }
    puts("RTT: as the job saw it. End: from the intended arrival to the answer, the wait in the pool included.");
}

/* Answers the table leaves out. */
static void print_others(const struct options *options, const struct result *result)
{
    struct tally sum = {0};
    for (size_t i = 0; i < options->plan.phase_count; i++) {
        sum.refused += result->phases[i].tally.refused;
        sum.ignored += result->phases[i].tally.ignored;
        sum.failed += result->phases[i].tally.failed;
    }
    if (sum.refused + sum.ignored + sum.failed > 0)
        printf("Not in the table, %s pool: %" PRIu64 " answers 429 or 5xx, %" PRIu64 " other 4xx, %" PRIu64
               " requests without an answer\n",
               result->label, sum.refused, sum.ignored, sum.failed);
}

static bool expect(bool holds, const char *phase, double value, const char *what)
{
    printf("  %s  %s: %.3f of the fixed pool's %s\n", holds ? "yes" : "NO ", phase, value, what);
    return holds;
}

static bool judge(const struct options *options, const struct result *adaptive, const struct result *fixed)
{
    bool all = true;
    puts("\nExpected of the adaptive pool:");
    for (size_t i = 0; i < options->plan.phase_count; i++) {
        const struct phase *phase = &options->plan.phases[i];
        struct figures a = figures_of(&adaptive->phases[i]);
        struct figures f = figures_of(&fixed->phases[i]);
        double rate = ratio(a.completed_per_s, f.completed_per_s);
        double tail = ratio(a.p99_ms, f.p99_ms);
        if (phase->halved) {
            all &= expect(rate >= HALVED_RATE_LEAST, phase->name, rate, "completions, at least 0.95");
            all &= expect(tail <= HALVED_TAIL_MOST, phase->name, tail, "p99 RTT, at most 0.33");
        } else {
            all &= expect(fabs(rate - 1) <= RATE_TOLERANCE, phase->name, rate, "completions, 0.95 to 1.05");
        }
    }
    return all;
}

bool report(const struct options *options, const struct result *adaptive, const struct result *fixed)
{
    print_table(options, adaptive, fixed);
    print_others(options, adaptive);
    print_others(options, fixed);
    if (!options->plan.own_server)
        return true;
    bool holds = judge(options, adaptive, fixed);
    if (options->duration_s < SHORT_S)
        printf("Runs of %g s are short: what a pool needs to settle is a large part of each phase.\n",
               options->duration_s);
    puts(holds ? "Verdict: all of it holds." : "Verdict: not all of it holds in this run.");
    return holds;
}
