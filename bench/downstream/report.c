/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The table and the verdict. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "downstream.h"

/* What is expected of vegas2, against the number of threads that is best in the quiet phase. */
#define QUIET_LEAST    0.97
#define DEGRADED_LEAST 0.99 /* as much; one per cent is noise */
#define DEGRADED_TAIL  0.5

struct cell {
    double completed_per_s;
    double spread; /* of it: half the range of the rounds, by the mean */
    double p50_ms, p99_ms;
    double end_p50_ms, end_p99_ms;
    double errors_percent; /* of the calls made */
    double shed_percent;   /* of the arrivals */
    double limit;
    double settled_per_s; /* without the onset of the phase */
    double settled_p99_ms;
};

static struct cell cell_of(const struct phase_record *phase)
{
    const struct tally *tally = &phase->figures.tally;
    double calls = (double)(tally->completed + tally->refused + tally->busy);
    return (struct cell){
        .completed_per_s = phase->seconds > 0 ? (double)tally->completed / phase->seconds : 0,
        .p50_ms = histogram_quantile_ms(&phase->figures.rtt, 0.50),
        .p99_ms = histogram_quantile_ms(&phase->figures.rtt, 0.99),
        .end_p50_ms = histogram_quantile_ms(&phase->figures.end_to_end, 0.50),
        .end_p99_ms = histogram_quantile_ms(&phase->figures.end_to_end, 0.99),
        .errors_percent = calls > 0 ? 100 * (double)(tally->refused + tally->busy) / calls : 0,
        .shed_percent = tally->arrived > 0 ? 100 * (double)tally->shed / (double)tally->arrived : 0,
        .limit = phase->readings > 0 ? phase->limit_sum / (double)phase->readings : 0,
        .settled_per_s =
            phase->settled_seconds > 0 ? (double)phase->settled.tally.completed / phase->settled_seconds : 0,
        .settled_p99_ms = histogram_quantile_ms(&phase->settled.rtt, 0.99),
    };
}

static void add(struct cell *sum, const struct cell *cell, double share)
{
    sum->completed_per_s += cell->completed_per_s * share;
    sum->p50_ms += cell->p50_ms * share;
    sum->p99_ms += cell->p99_ms * share;
    sum->end_p50_ms += cell->end_p50_ms * share;
    sum->end_p99_ms += cell->end_p99_ms * share;
    sum->errors_percent += cell->errors_percent * share;
    sum->shed_percent += cell->shed_percent * share;
    sum->limit += cell->limit * share;
    sum->settled_per_s += cell->settled_per_s * share;
    sum->settled_p99_ms += cell->settled_p99_ms * share;
}

/* The mean of the rounds of one pool. */
static struct cell mean(const struct outcome *outcome, size_t pool, size_t phase)
{
    struct cell sum = {0};
    double least = INFINITY, most = 0;
    for (size_t i = pool; i < outcome->count; i += outcome->options->pool_count) {
        struct cell cell = cell_of(&outcome->results[i].phases[phase]);
        add(&sum, &cell, 1.0 / outcome->options->rounds);
        least = fmin(least, cell.completed_per_s);
        most = fmax(most, cell.completed_per_s);
    }
    sum.spread = sum.completed_per_s > 0 ? (most - least) / 2 / sum.completed_per_s : 0;
    return sum;
}

static void print_row(FILE *out, const char *label, const struct cell *cell)
{
    fprintf(out, "  %-17s %8.1f %4.1f  %8.2f %8.2f %8.2f  %8.2f %8.2f  %6.1f %6.1f %6.1f\n", label,
            cell->completed_per_s, 100 * cell->spread, cell->p50_ms, cell->p99_ms, cell->settled_p99_ms,
            cell->end_p50_ms, cell->end_p99_ms, cell->errors_percent, cell->shed_percent, cell->limit);
}

static const char *label_of(const struct outcome *outcome, size_t pool, char *buffer, size_t size)
{
    const struct pool_kind *kind = &outcome->options->pools[pool];
    if (kind->algorithm != WEIR_FIXED)
        return kind->label;
    if (kind->fixed == 0)
        snprintf(buffer, size, "%u threads, best", outcome->sweep.best);
    else
        snprintf(buffer, size, "%u threads", kind->fixed);
    return buffer;
}

static void print_table(FILE *out, const struct outcome *outcome)
{
    const struct part *part = outcome->part;
    fprintf(out, "\n%s: %s\n", part->name, part->title);
    fprintf(out, "Best in the quiet phase: %u threads; %.0f/s with any number; load %.0f/s, %u round%s.\n",
            outcome->sweep.best, outcome->sweep.rate, outcome->rate, outcome->options->rounds,
            outcome->options->rounds == 1 ? "" : "s");
    fputs("                   completed   +-            RTT, ms          from arrival, ms   errors   shed  limit\n"
          "                          /s    %       p50      p99  settled       p50      p99        %      %   mean\n",
          out);
    for (size_t phase = 0; phase < part->phase_count; phase++) {
        if (part->phases[phase].absent)
            continue;
        fprintf(out, "%s\n", part->phases[phase].name);
        for (size_t pool = 0; pool < outcome->options->pool_count; pool++) {
            char buffer[32];
            struct cell cell = mean(outcome, pool, phase);
            print_row(out, label_of(outcome, pool, buffer, sizeof buffer), &cell);
        }
    }
    fputs(
        "RTT: of calls that succeeded, as the job saw them; settled: p99 without the first second of the phase. From\n"
        "arrival: from the intended one; the wait in the pool's queue is in it, which has as many places as threads "
        "in\n"
        "fixed pools and a depth of its own in the others.\n",
        out);
}

static bool find_pool(const struct outcome *outcome, const char *label, size_t *pool)
{
    for (size_t i = 0; i < outcome->options->pool_count; i++) {
        *pool = i;
        if (strcmp(outcome->options->pools[i].label, label) == 0)
            return true;
    }
    return false;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : NAN;
}

static bool expect(FILE *out, bool holds, const char *phase, double value, const char *what)
{
    fprintf(out, "  %s  %s: %.3f of its %s\n", holds ? "yes" : "NO ", phase, value, what);
    return holds;
}

/* The shortest tail that any pool has. That of a narrow one is the downstream's own time, which no pool can make less.
 */
static double floor_of(const struct outcome *outcome, size_t phase)
{
    double least = INFINITY;
    for (size_t pool = 0; pool < outcome->options->pool_count; pool++) {
        struct cell cell = mean(outcome, pool, phase);
        if (cell.settled_p99_ms > 0)
            least = fmin(least, cell.settled_p99_ms);
    }
    return least;
}

static bool judge_tail(FILE *out, const struct outcome *outcome, size_t phase, const struct cell *a,
                       const struct cell *b)
{
    const char *name = outcome->part->phases[phase].name;
    double tail = ratio(a->p99_ms, b->p99_ms);
    double settled = ratio(a->settled_p99_ms, b->settled_p99_ms);
    double least = ratio(floor_of(outcome, phase), b->settled_p99_ms);
    if (least > DEGRADED_TAIL && isfinite(least)) {
        fprintf(out, "  --   %s: %.3f of its p99 RTT (settled %.3f); no pool comes to 0.5, the least is %.3f\n", name,
                tail, settled, least);
        return true;
    }
    bool holds = expect(out, tail <= DEGRADED_TAIL, name, tail, "p99 RTT, at most 0.5");
    return expect(out, settled <= DEGRADED_TAIL, name, settled, "p99 RTT once settled, at most 0.5") && holds;
}

static bool judge(FILE *out, const struct outcome *outcome)
{
    size_t ours, best;
    if (!find_pool(outcome, "vegas2", &ours) || !find_pool(outcome, "best", &best))
        return true;
    bool all = true;
    fprintf(out, "vegas2 against %u threads:\n", outcome->sweep.best);
    for (size_t phase = 0; phase < outcome->part->phase_count; phase++) {
        const char *name = outcome->part->phases[phase].name;
        if (outcome->part->phases[phase].absent)
            continue;
        struct cell a = mean(outcome, ours, phase);
        struct cell b = mean(outcome, best, phase);
        double rate = ratio(a.completed_per_s, b.completed_per_s);
        double settled = ratio(a.settled_per_s, b.settled_per_s);
        if (phase == 0) {
            all &= expect(out, rate >= QUIET_LEAST, name, rate, "completions, at least 0.97");
            continue;
        }
        all &= expect(out, rate >= DEGRADED_LEAST, name, rate, "completions, at least 1 but for noise of 0.01");
        if (rate < DEGRADED_LEAST)
            expect(out, settled >= DEGRADED_LEAST, name, settled, "completions once settled");
        all &= judge_tail(out, outcome, phase, &a, &b);
    }
    return all;
}

static void print_generator(FILE *out, const struct outcome *outcome)
{
    double most = 0;
    for (size_t i = 0; i < outcome->count; i++)
        most = fmax(most, outcome->results[i].generator_cpu);
    fprintf(out, "Load generator, pool and clients together took at most %.2f processors on average of a run.\n", most);
}

static bool print_all(FILE *out, const struct outcome *outcome)
{
    print_table(out, outcome);
    print_generator(out, outcome);
    bool holds = judge(out, outcome);
    fflush(out);
    return holds;
}

bool report(const struct outcome *outcome)
{
    char path[512];
    snprintf(path, sizeof path, "%s/downstream-%s.txt", outcome->options->output, outcome->part->name);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        bench_complain(path, strerror(errno));
    } else {
        print_all(file, outcome);
        fclose(file);
    }
    return print_all(stdout, outcome);
}
