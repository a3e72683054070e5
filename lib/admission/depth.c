/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>

#include "admission/admission.h"

/* While arrivals exceed completions a queue grows. It is worth holding the work that only the limiter's own lag lets
 * in: what comes in excess until the limit has settled. Its parts, with lambda the arrival rate, L permits, R the RTT,
 * X the rate that the permits complete, L/R (Little's law), and T_r the reaction time:
 *
 *     max((lambda - X) T_r, climb)                    more is asked for, or the downstream has slowed down
 *     (1 - f) X t_drain                               a drain takes the limit down to the share f
 *     2 sqrt(c_a^2 lambda T_r)                        arrivals vary: two standard deviations of their number
 *
 * A limit that climbs to lambda from X_0 = L/R, in the time T_up and in equal proportions, leaves behind
 *
 *     climb = (lambda - (lambda - X_0)/ln(lambda/X_0)) T_up
 *
 * jobs, which is half the excess times T_up where lambda is not far from X_0.
 *
 * While callers block lambda cannot be measured, and while there is no overload it does not tell what comes next: the
 * downstream halves, then, and the excess is X T_r. The last job of such a queue waits one reaction time. In an
 * overload that is beyond chance the measured excess counts: a queue of which nothing comes but delay is kept short.
 *
 * A queue is never longer than the wait its jobs can afford, and never shorter than the chance fluctuation of L
 * independent calls, sqrt(L), nor than what is done while a blocked caller wakes up: with very short calls the queue
 * would be empty before it is back. A limit that never moves has no reaction time: there the affordable wait alone
 * decides.
 */
enum { AFFORDABLE_RTTS = 10 };
#define AFFORDABLE_NS 1e8
#define WAKING_NS     2e5 /* 99 of 100 wake-ups of a thread take less, on a machine that has other work */
#define DEVIATIONS    2.0
#define ROUNDING      1e-12 /* relative error that is no job */

/* ---- the terms ---- */

static double rate_of(const struct weir__depth_terms *terms)
{
    return terms->rate > 0 ? terms->rate : terms->limit / terms->rtt_ns;
}

static double affordable_ns(const struct weir__depth_terms *terms)
{
    return terms->affordable_ns > 0 ? terms->affordable_ns : fmax(terms->rtt_ns * AFFORDABLE_RTTS, AFFORDABLE_NS);
}

/* Jobs that arrive while the limit climbs, and are not done. */
static double climb(const struct weir__depth_terms *terms)
{
    double first = terms->limit / terms->rtt_ns;
    double more = terms->arrivals / first - 1;
    return terms->climb_ns > 0 && more > 0 ? (terms->arrivals - first * more / log1p(more)) * terms->climb_ns : 0;
}

/* Jobs that are done within the affordable wait, more of them where the limit climbs meanwhile. */
static double affordable(const struct weir__depth_terms *terms)
{
    double wait_ns = affordable_ns(terms);
    double done = rate_of(terms) * wait_ns;
    double first = terms->limit / terms->rtt_ns;
    double more = terms->arrivals / first - 1;
    if (!(terms->climb_ns > 0 && more > 0))
        return done;
    double climbing_ns = fmin(wait_ns, terms->climb_ns);
    double growth = log1p(more) / terms->climb_ns;
    double climbed = first * (expm1(growth * climbing_ns) / growth - climbing_ns);
    return done + climbed + first * more * (wait_ns - climbing_ns);
}

/* The greatest of the parts gives the sum its name. */
struct sum {
    double jobs;
    double greatest;
    const char *term;
};

static void add(struct sum *sum, double jobs, const char *term)
{
    sum->jobs += jobs;
    if (jobs > sum->greatest) {
        sum->greatest = jobs;
        sum->term = term;
    }
}

static struct sum sum_up(const struct weir__depth_terms *terms)
{
    double rate = rate_of(terms);
    double reaction_ns = (double)terms->reaction_ns;
    double halved = rate * reaction_ns;
    struct sum sum = {.term = "reaction"};
    if (terms->reaction_ns == 0) {
        add(&sum, INFINITY, "wait");
        return sum;
    }
    if (!(terms->arrivals > 0)) {
        add(&sum, halved, "reaction");
        return sum;
    }
    double bursts = DEVIATIONS * sqrt(terms->dispersion * terms->arrivals * reaction_ns);
    double excess = fmax(terms->arrivals - rate, 0) * reaction_ns;
    double climbing = climb(terms);
    if (excess <= bursts && halved > fmax(excess, climbing))
        add(&sum, halved, "reaction");
    else if (climbing > excess)
        add(&sum, climbing, "climb");
    else
        add(&sum, excess, "excess");
    add(&sum, terms->dip * rate * terms->dip_ns, "drain");
    add(&sum, bursts, "bursts");
    return sum;
}

/* ---- bounds ---- */

static void at_most(struct sum *sum, double most, const char *term)
{
    if (sum->jobs > most)
        *sum = (struct sum){.jobs = most, .term = term};
}

static void at_least(struct sum *sum, double least, const char *term)
{
    if (sum->jobs < least)
        *sum = (struct sum){.jobs = least, .term = term};
}

uint32_t weir__depth(const weir_config *config, const struct weir__depth_terms *terms, const char **term)
{
    *term = "fixed";
    if (config->queue_depth != WEIR_QUEUE_AUTO)
        return config->queue_depth;
    struct sum sum = sum_up(terms);
    sum.jobs = ceil(sum.jobs * (1 - ROUNDING));
    at_least(&sum, floor(rate_of(terms) * WAKING_NS), "waking");
    at_most(&sum, floor(affordable(terms)), "wait");
    at_least(&sum, ceil(sqrt(terms->limit)), "fluctuation"); /* a short wait never takes the queue away altogether */
    at_least(&sum, config->queue_min, "queue_min");
    at_most(&sum, config->queue_max, "queue_max");
    *term = sum.term;
    return (uint32_t)sum.jobs;
}

uint32_t weir__depth_settle(uint32_t current, uint32_t wanted)
{
    uint32_t apart = wanted > current ? wanted - current : current - wanted;
    return apart > current / 4 ? wanted : current;
}

/* ---- from period to period ---- */

/* A stall of the downstream, or a drain, shows as a rate that falls and is back within a reaction time. */
static void hold_rate(struct weir__depth_meter *meter, uint64_t now_ns, double rate, uint64_t reaction_ns)
{
    if (rate >= meter->rate) {
        meter->rate = rate;
        meter->low_ns = 0;
    } else if (meter->low_ns == 0) {
        meter->low_ns = now_ns;
    } else if (now_ns - meter->low_ns >= reaction_ns) {
        meter->rate = rate;
    }
}

void weir__depth_measure(struct weir__depth_meter *meter, uint64_t now_ns, double limit, double rate,
                         uint64_t reaction_ns)
{
    hold_rate(meter, now_ns, rate, reaction_ns);
    double before = fmax(meter->limits[0], meter->limits[1]); /* the end of a drain is no climb */
    double span_ns = meter->look_ns != 0 && now_ns > meter->look_ns ? (double)(now_ns - meter->look_ns) : 0;
    meter->growth = span_ns > 0 && before > 0 && limit > before ? log(limit / before) / span_ns : 0;
    meter->limits[1] = meter->limits[0];
    meter->limits[0] = limit;
    meter->look_ns = now_ns;
}

double weir__depth_climb_ns(const struct weir__depth_meter *meter, double limit, double level)
{
    return meter->growth > 0 && level > limit ? log(level / limit) / meter->growth : 0;
}

struct weir__depth_terms weir__depth_look(const struct weir__flow *flow, struct weir__demand *demand,
                                          struct weir__depth_meter *meter, const struct weir__depth_look *look)
{
    weir__demand_measure(demand, look->now_ns, &look->asked);
    double rate = fmax(flow->throughput * 1e-9, look->limit / flow->rtt_ns);
    weir__depth_measure(meter, look->now_ns, look->limit, rate, look->reaction_ns);
    struct weir__depth_terms terms = {.limit = look->limit,
                                      .rtt_ns = flow->rtt_ns,
                                      .reaction_ns = look->reaction_ns,
                                      .rate = meter->rate,
                                      .arrivals = demand->rate,
                                      .dispersion = demand->dispersion,
                                      .dip = look->dip,
                                      .dip_ns = look->dip_ns};
    terms.climb_ns = weir__depth_climb_ns(meter, look->limit, demand->rate * flow->rtt_ns);
    if (demand->patience > 0)
        terms.affordable_ns = fmax(demand->patience - weir__flow_slow_rtt_ns(flow), 1.0);
    return terms;
}
