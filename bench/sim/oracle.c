/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The best fixed limit of each phase, found by trying: most utilisation among those whose p99 is at most 1.05 times
 * that of the bandwidth-delay product. */

#include "sim.h"

#include <math.h>

#define STEP      1.1
#define DOWN      4 /* steps below the bandwidth-delay product */
#define UP        7 /* and above */
#define LONGEST_S 40.0
#define SAME      0.0005 /* a difference in utilisation that is none */

/* The scenario in short: a fixed limit needs no time to settle, and how it is shared does not matter. */
static struct sim_scenario shortened(const struct sim_scenario *scenario)
{
    struct sim_scenario brief = *scenario;
    double longest = fmax(LONGEST_S, 300 * sim_truth(scenario, 0, 0).mean_s);
    if (scenario->sine > 0)
        longest = scenario->sine_s;
    for (size_t i = 0; i < SIM_PHASES; i++)
        brief.phases[i].seconds = fmin(brief.phases[i].seconds, longest);
    brief.warm_s = fmin(brief.warm_s, 1);
    brief.clients = 1;
    brief.join_s = 0;
    return brief;
}

static bool chosen_by_demand(const struct sim_scenario *scenario, size_t phase)
{
    if (scenario->phases[phase].unmeasured)
        return false;
    return scenario->demand == SIM_BUSY || scenario->phases[phase].rate > sim_truth(scenario, phase, 0).rate;
}

void sim_find_oracle(const struct sim_scenario *scenario, uint64_t seed, bool coarse, struct sim_oracle *oracle)
{
    struct sim_scenario brief = shortened(scenario);
    struct sim_result results[DOWN + UP + 1];
    const struct sim_controller *controller = sim_find_controller("oracle");
    int down = coarse ? 2 : DOWN, up = coarse ? 3 : UP;
    for (int k = -down; k <= up; k++) {
        struct sim_oracle fixed;
        for (size_t p = 0; p < SIM_PHASES; p++)
            fixed.factor[p] = pow(STEP, k);
        sim_run(&brief, controller, seed, &fixed, NULL, &results[k + down]);
    }
    for (size_t p = 0; p < SIM_PHASES; p++) {
        oracle->factor[p] = 1;
        if (!chosen_by_demand(scenario, p))
            continue;
        double tail = 1.05 * results[down].phases[p].p99, best = 0;
        for (int k = -down; k <= up; k++) {
            const struct sim_phase_result *result = &results[k + down].phases[p];
            if (result->p99 > tail || result->utilisation <= best + SAME)
                continue;
            best = result->utilisation;
            oracle->factor[p] = pow(STEP, k);
        }
    }
}
