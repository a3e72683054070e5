/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "admission/admission.h"

/* How fast work comes and how unevenly, from counts alone: no job is timed. A measuring period is about as long as the
 * limiter's reaction, so the variation of its count is the one that the queue has to absorb. */

#define GAIN      0.125 /* of a new period in the dispersion */
#define LONGEST   8.0   /* periods whose lengths differ by more than this factor are not compared */
#define LEAST_SUM 1.0   /* arrivals in two periods that say anything about their variation */

void weir__demand_init(struct weir__demand *demand)
{
    *demand = (struct weir__demand){.dispersion = 1.0};
}

/* Half the square of the difference between neighbours estimates the variance without taking a trend for one (J. von
 * Neumann and others, "The mean square successive difference", 1941). With lengths a and b and one rate, the difference
 * n_a - n_b a/b has the variance c_a^2 lambda a (1 + a/b). */
static void compare_periods(struct weir__demand *demand, double count, double length)
{
    double ratio = length / demand->length;
    double sum = count + demand->count;
    if (!(ratio < LONGEST && ratio > 1 / LONGEST) || sum < LEAST_SUM)
        return;
    double difference = count - demand->count * ratio;
    double mean = sum / (length + demand->length) * length;
    demand->dispersion += GAIN * (difference * difference / (mean * (1 + ratio)) - demand->dispersion);
}

void weir__demand_measure(struct weir__demand *demand, uint64_t now_ns, const struct weir__asked *asked)
{
    if (demand->begin_ns != 0 && now_ns > demand->begin_ns) {
        /* A shutdown sends submitters away that were counted as they came. */
        uint64_t arrivals = asked->arrivals > demand->begun.arrivals ? asked->arrivals - demand->begun.arrivals : 0;
        double count = (double)arrivals;
        double length = (double)(now_ns - demand->begin_ns);
        /* Callers that block come as fast as work is completed: that tells neither rate nor variation. */
        bool blocked = asked->blocking || demand->begun.blocking || asked->blocked != demand->begun.blocked;
        if (!blocked && demand->length > 0)
            compare_periods(demand, count, length);
        demand->rate = blocked ? 0 : count / length;
        demand->count = count;
        demand->length = blocked ? 0 : length;
    }
    demand->patience = asked->patience;
    demand->begun = *asked;
    demand->begin_ns = now_ns;
}
