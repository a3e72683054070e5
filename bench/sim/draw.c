/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Scenarios at random: parameters that nobody has chosen, for a controller may know the suite by heart. A seed gives a
 * scenario, and plays it. */

#include "sim.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/base.h"

#define MOST_CALLS   400000.0 /* of a phase: what a run costs */
#define MOST_PERMITS 800.0    /* at the knee: well below the greatest limit */

static double uniform(struct sim_random *random, double least, double most)
{
    return least + (most - least) * sim_uniform(random);
}

static double log_uniform(struct sim_random *random, double least, double most)
{
    return least * pow(most / least, sim_uniform(random));
}

static bool chance(struct sim_random *random, double probability)
{
    return sim_uniform(random) < probability;
}

/* By the factor, or by its inverse. */
static double times(struct sim_random *random, double least, double most)
{
    double factor = log_uniform(random, least, most);
    return chance(random, 0.5) ? factor : 1 / factor;
}

static void draw_model(struct sim_random *random, struct sim_scenario *s)
{
    double u = sim_uniform(random);
    s->model = u < 0.5 ? SIM_FIFO : u < 0.88 ? SIM_SHARING : u < 0.94 ? SIM_CONTENTION : SIM_HARD_LIMIT;
    u = sim_uniform(random);
    s->law = u < 0.6 ? SIM_LOGNORMAL : u < 0.8 ? SIM_EXPONENTIAL : SIM_BIMODAL;
    s->cv = s->law == SIM_BIMODAL ? uniform(random, 0.1, 0.5) : log_uniform(random, 0.05, 3);
}

static void draw_clients(struct sim_random *random, struct sim_scenario *s)
{
    bool fleet = chance(random, 0.25);
    double clients = log_uniform(random, 2, 32.5), join_s = uniform(random, 0, 3), skew_ms = uniform(random, 0, 100);
    if (!fleet || s->model == SIM_CONTENTION)
        return;
    s->clients = (unsigned)clients;
    s->join_s = join_s;
    s->skew_ms = chance(random, 0.5) ? skew_ms : 0;
}

static void draw_first_phase(struct sim_random *random, struct sim_scenario *s)
{
    struct sim_phase *p = &s->phases[0];
    double rtt_ms = log_uniform(random, 0.2, 2000), permits = log_uniform(random, fmax(1, 4 * s->clients), 500);
    double away = chance(random, 0.5) && s->model != SIM_CONTENTION ? uniform(random, 0, 0.8) : 0;
    p->service_ms = rtt_ms * (1 - away);
    p->network_ms = rtt_ms * away;
    p->servers = fmax(1, round(permits * (1 - away)));
    if (s->law == SIM_BIMODAL) {
        double slower = log_uniform(random, 3, 15);
        p->slow_share = log_uniform(random, 0.02, 0.3);
        p->service_ms /= 1 + p->slow_share * (slower - 1);
        s->slow_ms = slower * p->service_ms;
    }
    if (s->model == SIM_CONTENTION) {
        s->knee = fmax(5, permits);
        p->servers = 1;
    }
}

enum change { CAPACITY, SERVICE, NETWORK };

static void change_phase(struct sim_random *random, const struct sim_scenario *s, struct sim_phase *p)
{
    enum change change = (enum change)uniform(random, 0, 3);
    if (s->model == SIM_CONTENTION || (change == SERVICE && s->law != SIM_BIMODAL))
        p->service_ms *= times(random, 2, 4);
    else if (change == SERVICE)
        p->slow_share = log_uniform(random, 0.02, 0.4);
    else if (change == CAPACITY)
        p->servers = fmax(1, round(p->servers * times(random, 1.25, 4)));
    else
        p->network_ms = uniform(random, 0, 2) * sim_truth(s, 0, 0).mean_s * 1e3;
}

static void draw_phases(struct sim_random *random, struct sim_scenario *s)
{
    size_t count = (size_t)uniform(random, 2, 5);
    for (size_t i = 0; i < count; i++) {
        struct sim_phase *p = &s->phases[i];
        if (i > 0) {
            bool back = i > 1 && chance(random, 0.3);
            *p = s->phases[back ? 0 : i - 1];
            if (!back)
                change_phase(random, s, p);
        }
        p->seconds = 1;
        struct sim_truth truth = sim_truth(s, i, 0);
        if (truth.optimum > MOST_PERMITS && s->model != SIM_CONTENTION)
            p->servers = fmax(1, floor(p->servers * MOST_PERMITS / truth.optimum));
    }
    if (s->model != SIM_HARD_LIMIT)
        return;
    s->hard_limit = INFINITY;
    s->hard_limit = fmax(1, round(uniform(random, 0.3, 1) * sim_truth(s, 0, 0).optimum));
}

static void draw_demand(struct sim_random *random, struct sim_scenario *s)
{
    s->demand = chance(random, 0.5) ? SIM_BUSY : SIM_POISSON;
    s->blocking = chance(random, 0.5);
    for (size_t i = 0; i < sim_phase_count(s); i++)
        s->phases[i].rate = uniform(random, 0.5, 2) * sim_truth(s, i, 0).rate;
}

static double most_permits(const struct sim_scenario *s)
{
    double most = 0;
    for (size_t i = 0; i < sim_phase_count(s); i++)
        most = fmax(most, sim_truth(s, i, 0).optimum);
    return most;
}

/* What goes wrong besides. Batches lengthen the RTT, and so ask for more permits. */
static void draw_troubles(struct sim_random *random, struct sim_scenario *s)
{
    double rtt_s = sim_truth(s, 0, 0).mean_s;
    double pause = log_uniform(random, 3, 30), batch = uniform(random, 0.1, 1), initial = log_uniform(random, 1, 500);
    double fails = log_uniform(random, 0.01, 0.3), failing = uniform(random, 0, (double)sim_phase_count(s));
    if (chance(random, 0.08) && s->model == SIM_FIFO) {
        s->pause_s = pause * rtt_s;
        s->pause_every_s = fmax(5, 30 * s->pause_s);
    }
    if (chance(random, 0.08) && most_permits(s) < MOST_PERMITS / 2)
        s->batch_ms = batch * rtt_s * 1e3;
    if (chance(random, 0.15))
        s->initial = (unsigned)fmax(1, initial);
    if (chance(random, 0.08))
        s->phases[(size_t)failing].fail_share = fails;
}

/* As long as it takes to settle, and no more calls than can be afforded. Fleets begin one by one. */
static void draw_durations(struct sim_random *random, struct sim_scenario *s)
{
    double joined_s = s->clients > 1 ? (s->clients - 1) * s->join_s : 0;
    for (size_t i = 0; i < sim_phase_count(s); i++) {
        struct sim_truth truth = sim_truth(s, i, 0);
        double seconds = uniform(random, 5, 15) + uniform(random, 300, 1000) * truth.mean_s;
        s->phases[i].seconds = fmin(seconds, MOST_CALLS / truth.rate);
    }
    struct sim_truth first = sim_truth(s, 0, 0);
    s->warm_s = fmin(s->phases[0].seconds / 4, fmax(1, 30 * first.mean_s));
    if (s->clients > 1) {
        s->warm_s = joined_s + fmin(10 + 100 * first.mean_s, 2 * MOST_CALLS / first.rate);
        s->phases[0].seconds += s->warm_s;
    }
}

/* ---- a title ---- */

static void say(struct sim_drawn *drawn, const char *format, ...) WEIR__PRINTF(2, 3);

static void say(struct sim_drawn *drawn, const char *format, ...)
{
    size_t length = strlen(drawn->title);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(drawn->title + length, sizeof drawn->title - length, format, arguments);
    va_end(arguments);
}

static void say_phases(struct sim_drawn *drawn)
{
    const struct sim_scenario *s = &drawn->scenario;
    for (size_t i = 0; i < sim_phase_count(s); i++)
        say(drawn, "%s%.3g", i == 0 ? ", c " : "-", sim_truth(s, i, 0).optimum);
    for (size_t i = 0; i < sim_phase_count(s); i++)
        say(drawn, "%s%.3g", i == 0 ? ", R " : "-", sim_truth(s, i, 0).mean_s * 1e3);
    say(drawn, " ms");
    for (size_t i = 0; s->demand == SIM_POISSON && i < sim_phase_count(s); i++)
        say(drawn, "%s%.2g", i == 0 ? ", load " : "-", s->phases[i].rate / sim_truth(s, i, 0).rate);
    for (size_t i = 0; i < sim_phase_count(s); i++)
        if (s->phases[i].fail_share > 0)
            say(drawn, ", phase %zu fails %.0f %%", i, s->phases[i].fail_share * 100);
}

static void say_what_it_is(struct sim_drawn *drawn)
{
    static const char *const models[] = {"fifo", "sharing", "contention", "hard limit"};
    const struct sim_scenario *s = &drawn->scenario;
    double away = s->phases[0].network_ms / sim_truth(s, 0, 0).mean_s / 1e3;
    say(drawn, "%s", models[s->model]);
    if (s->model == SIM_HARD_LIMIT)
        say(drawn, " %.0f", s->hard_limit);
    if (s->law == SIM_LOGNORMAL)
        say(drawn, " cv %.2f", s->cv);
    else
        say(drawn, s->law == SIM_EXPONENTIAL ? " exponential" : " bimodal x%.0f", s->slow_ms / s->phases[0].service_ms);
    if (away > 0)
        say(drawn, ", network %.0f %%", 100 * away);
    say_phases(drawn);
    if (s->demand == SIM_POISSON)
        say(drawn, s->blocking ? " blocking" : " shedding");
    if (s->clients > 1)
        say(drawn, ", %u clients, skew %.0f ms", s->clients, s->skew_ms);
    if (s->pause_s > 0)
        say(drawn, ", pauses %.0f ms", s->pause_s * 1e3);
    if (s->batch_ms > 0)
        say(drawn, ", batches %.2g ms", s->batch_ms);
    if (s->initial > 0)
        say(drawn, ", from %u", s->initial);
}

void sim_draw(struct sim_drawn *drawn, uint64_t seed)
{
    struct sim_random random = {.state = seed * 11 + 0x9abcdef};
    struct sim_scenario *s = &drawn->scenario;
    *drawn = (struct sim_drawn){.scenario = {.drawn_from = seed}};
    (void)snprintf(drawn->id, sizeof drawn->id, "random%ju", (uintmax_t)seed);
    s->id = drawn->id;
    s->title = drawn->title;
    draw_model(&random, s);
    draw_clients(&random, s);
    draw_first_phase(&random, s);
    draw_phases(&random, s);
    draw_demand(&random, s);
    draw_troubles(&random, s);
    draw_durations(&random, s);
    say_what_it_is(drawn);
}
