/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What many random scenarios say together: quantiles, and which are the worst. */

#include "report.h"

#include <math.h>
#include <stdlib.h>

struct place {
    size_t scenario;
    double regret;
};

/* A scenario's distance from the oracle in one number, to sort by: capacity left unused, a quarter of the excess of the
 * tail, the share of time in overload, and what is missing to a fair share. */
static double regret(const struct sim_scenario *s, const struct sim_result *r)
{
    double unfair = s->clients > 1 ? fmax(0, 0.95 - r->jain) : 0;
    return fmax(0, 1 - r->relative) + fmax(0, r->p99_ratio - 1) / 4 + fmax(0, r->more_overloaded_s) / sim_duration(s) +
           unfair;
}

static int by_regret(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->regret < y->regret) - (x->regret > y->regret);
}

static void print_worst(FILE *out, const struct sim_population *all, size_t controller)
{
    struct place *places = calloc(all->scenarios_count, sizeof *places);
    if (places == NULL)
        abort();
    for (size_t i = 0; i < all->scenarios_count; i++) {
        struct sim_result mean = sim_mean(&all->rows[i * all->controllers_count + controller]);
        places[i] = (struct place){i, regret(all->scenarios[i], &mean)};
    }
    qsort(places, all->scenarios_count, sizeof *places, by_regret);
    (void)fprintf(out, "%s, the worst first; alone: sim --random 1 --seed SEED\n", all->controllers[controller]->title);
    (void)fprintf(out, "%8s %7s %6s %8s %6s %5s  %s\n", "seed", "util %", "p99", "episodes", "over %", "jain", "");
    for (size_t i = 0; i < all->scenarios_count; i++) {
        const struct sim_scenario *s = all->scenarios[places[i].scenario];
        struct sim_result r = sim_mean(&all->rows[places[i].scenario * all->controllers_count + controller]);
        (void)fprintf(out, "%8ju %7.1f %6.2f %8.1f %6.1f %5.2f  %s\n", (uintmax_t)s->drawn_from, 100 * r.relative,
                      r.p99_ratio, r.more_episodes, 100 * r.more_overloaded_s / sim_duration(s), r.jain, s->title);
    }
    free(places);
}

/* ---- quantiles ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sim_quantile(double *values, size_t count, double share)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, ascending);
    double exact = share * (double)(count - 1);
    size_t below = (size_t)exact;
    size_t above = below + 1 < count ? below + 1 : below;
    return values[below] + (exact - (double)below) * (values[above] - values[below]);
}

static void print_quantiles(FILE *out, double *values, size_t count, const double *shares, int digits)
{
    for (size_t i = 0; i < 5; i++)
        (void)fprintf(out, "%6.*f", digits, sim_quantile(values, count, shares[i]));
    (void)fprintf(out, "  |");
}

static void print_controller(FILE *out, const struct sim_population *all, size_t controller)
{
    static const double low[] = {0.01, 0.05, 0.1, 0.25, 0.5}, high[] = {0.5, 0.75, 0.9, 0.95, 0.99};
    double *values = calloc(3 * all->scenarios_count, sizeof *values);
    if (values == NULL)
        abort();
    double *relative = values, *p99 = relative + all->scenarios_count, *jain = p99 + all->scenarios_count;
    size_t fleets = 0, overloaded = 0;
    double regrets = 0;
    for (size_t i = 0; i < all->scenarios_count; i++) {
        struct sim_result mean = sim_mean(&all->rows[i * all->controllers_count + controller]);
        relative[i] = 100 * mean.relative;
        p99[i] = mean.p99_ratio;
        overloaded += mean.more_episodes > 0;
        regrets += regret(all->scenarios[i], &mean) / (double)all->scenarios_count;
        if (all->scenarios[i]->clients > 1)
            jain[fleets++] = mean.jain;
    }
    (void)fprintf(out, "%-16s", all->controllers[controller]->title);
    print_quantiles(out, relative, all->scenarios_count, low, 1);
    print_quantiles(out, p99, all->scenarios_count, high, 2);
    (void)fprintf(out, "%6.2f%6.2f  |%7.1f  |%7.3f\n", sim_quantile(jain, fleets, 0.05),
                  sim_quantile(jain, fleets, 0.5), 100.0 * (double)overloaded / (double)all->scenarios_count, regrets);
    free(values);
}

void sim_print_population(FILE *out, const struct sim_population *all)
{
    for (size_t k = 0; k < all->controllers_count; k++)
        if (k == 0 || all->controllers[k]->algorithm == WEIR_VEGAS2)
            print_worst(out, all, k);
    (void)fprintf(out, "\n%-16s%30s  |%30s  |%12s  |%9s|\n", "quantiles of", "utilisation by the oracle's", "p99 by it",
                  "Jain", "overload");
    (void)fprintf(out, "%-16s%6s%6s%6s%6s%6s  |%6s%6s%6s%6s%6s  |%6s%6s  |%9s|%7s\n", "", "1 %", "5 %", "10 %", "25 %",
                  "50 %", "50 %", "75 %", "90 %", "95 %", "99 %", "5 %", "50 %", "% of all ", "regret");
    for (size_t k = 0; k < all->controllers_count; k++)
        print_controller(out, all, k);
}
