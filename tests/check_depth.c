/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The bound of the queue. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "admission/admission.h"
#include "job_support.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

static weir_config automatic(uint32_t queue_min, uint32_t queue_max)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.queue_depth = WEIR_QUEUE_AUTO;
    config.queue_min = queue_min;
    config.queue_max = queue_max;
    return config;
}

/* ---- the formula ---- */

/* While nobody knows how fast jobs come: X = L/R; D = ceil(X * T_r), at least QUEUE_MIN and sqrt(L), at most QUEUE_MAX
 * and X * max(10 R, 100 ms). */
static const struct {
    double limit;
    uint64_t rtt_ns;
    uint64_t reaction_ns;
    uint32_t queue_min;
    uint32_t queue_max;
    uint32_t depth;
    const char *term;
} worked[] = {
    {64, 20 * MS, 140 * MS, 1, 65536, 448, "reaction"},      /* 3200/s for 0.14 s */
    {64, 20 * MS, 360 * MS, 1, 65536, 640, "wait"},          /* 1152, of which 200 ms are affordable */
    {64, 20 * MS, 8100 * MS, 1, 65536, 640, "wait"},         /* 25920, likewise */
    {64, 20 * MS, 0, 1, 65536, 640, "wait"},                 /* a limit that never moves: what is affordable */
    {64, 5 * MS, 50 * MS, 1, 65536, 640, "reaction"},        /* 12800/s for 50 ms */
    {64, 5 * MS, 500 * MS, 1, 65536, 1280, "wait"},          /* 6400, of which 100 ms are affordable */
    {64, 1 * MS, 0, 1, 65536, 6400, "wait"},                 /* 64000/s for 100 ms */
    {4, 20 * MS, 140 * MS, 1, 65536, 28, "reaction"},        /* 200/s for 0.14 s */
    {4, 20 * MS, 141 * MS, 1, 65536, 29, "reaction"},        /* 28.2: rounded up */
    {1, 1 * S, 3 * S, 1, 65536, 3, "reaction"},              /* 1/s for 3 s */
    {1, 1 * S, 60 * S, 1, 65536, 10, "wait"},                /* ten RTTs */
    {100, 20 * MS, 1 * MS, 1, 65536, 10, "fluctuation"},     /* 5, but sqrt(100) */
    {10, 20 * MS, 1 * MS, 1, 65536, 4, "fluctuation"},       /* 1, but sqrt(10) */
    {10, 20 * MS, 1 * MS, 50, 65536, 50, "queue_min"},       /* QUEUE_MIN */
    {64, 20 * MS, 140 * MS, 1, 100, 100, "queue_max"},       /* QUEUE_MAX */
    {64, 20 * MS, 140 * MS, 7, 7, 7, "queue_max"},           /* both */
    {64, 20 * MS, 140 * MS, 1, 5, 5, "queue_max"},           /* QUEUE_MAX is below sqrt(L) */
    {64, 20 * MS, 140 * MS, 2000, 65536, 2000, "queue_min"}, /* QUEUE_MIN is above what is affordable */
    {64, 20 * MS, 140 * MS, 0, 0, 0, "queue_max"},           /* no queue */
    {1, 1, 1000, 1, 16777216, 200000, "waking"},             /* 1 in 1 us, but 10^9/s for 200 us */
    {10, 50000, 150000, 1, 65536, 40, "waking"},             /* 30, but 200000/s for 200 us */
    {10, 50000, 250000, 1, 65536, 50, "reaction"},           /* 50 */
    {10, 50000, 1000, 1, 30, 30, "queue_max"},               /* QUEUE_MAX is below what comes while one wakes */
    {1, 1, 0, 1, 16777216, 16777216, "queue_max"},           /* 10^8 would be affordable */
};

/* The depth is what the formula says, on paper, and so is its reason. */
START_TEST(depth_follows_the_formula)
{
    for (size_t i = 0; i < sizeof worked / sizeof worked[0]; i++) {
        weir_config config = automatic(worked[i].queue_min, worked[i].queue_max);
        struct weir__depth_terms terms = {
            .limit = worked[i].limit, .rtt_ns = (double)worked[i].rtt_ns, .reaction_ns = worked[i].reaction_ns};
        const char *term = NULL;
        uint32_t depth = weir__depth(&config, &terms, &term);
        ck_assert_msg(depth == worked[i].depth, "row %zu: %u instead of %u", i, depth, worked[i].depth);
        ck_assert_str_eq(term, worked[i].term);
    }
}
END_TEST

/* With 64 permits, 20 ms and T_r = 140 ms, so X = 3200/s and X T_r = 448, 640 affordable; rates per second, times in
 * ms. */
static const struct {
    double arrivals;
    double dispersion;
    double climb;
    double dip;
    double dip_time;
    double affordable;
    double rate; /* held; 0: L/R */
    uint32_t depth;
    const char *term;
} demanded[] = {
    {1000, 0, 0, 0, 0, 0, 0, 448, "reaction"},     /* no overload: the downstream may halve */
    {1000, 1, 0, 0, 0, 0, 0, 472, "reaction"},     /* and 2 sqrt(140) = 23.7 for chance */
    {1000, 0, 0, 0.3, 50, 0, 0, 496, "reaction"},  /* 0.3 * 3200 * 0.05 = 48 for a drain */
    {1000, 25, 0, 0.3, 50, 0, 0, 615, "reaction"}, /* 5 times the chance: 118.3 */
    {1000, 640, 0, 0, 0, 0, 0, 640, "wait"},       /* 2 sqrt(640 * 140) = 598.7 and 448 */
    {4800, 0, 0, 0, 0, 0, 0, 224, "excess"},       /* half more than X: half as much */
    {6400, 0, 0, 0, 0, 0, 0, 448, "excess"},       /* twice */
    {7680, 0, 0, 0, 0, 0, 0, 628, "excess"},       /* 4480 * 0.14 = 627.2 */
    {9600, 0, 0, 0, 0, 0, 0, 640, "wait"},         /* three times: 896 */
    {4800, 1, 0, 0, 0, 0, 0, 276, "excess"},       /* 224 and 2 sqrt(672) = 51.8 */
    {4800, 9, 0, 0, 0, 0, 0, 380, "excess"},       /* 224 and 155.5, not beyond chance if it were more */
    {4800, 100, 0, 0, 0, 0, 0, 640, "wait"},       /* 518.5 by chance: no overload beyond it, so 448 and that */
    {4800, 0, 0, 0.3, 50, 0, 0, 272, "excess"},    /* 224 and 48 */
    {3100, 0, 100, 0, 0, 0, 0, 448, "reaction"},   /* the limit climbs, but lets all through already */
    {6400, 0, 400, 0, 0, 0, 0, 714, "climb"},      /* (6400 - 3200/ln 2) for 0.4 s, and half of 3200 were 640 */
    {6400, 0, 560, 0, 0, 0, 0, 726, "wait"},       /* 999; growing by ln 2/0.56 s, 726 are done in 0.2 s */
    {4000, 0, 300, 0, 0, 0, 0, 125, "climb"},      /* (4000 - 800/ln 1.25) for 0.3 s, and half of 800 were 120 */
    {6400, 0, 0, 0, 0, 100, 0, 320, "wait"},       /* 100 ms until the deadline */
    {6400, 0, 0, 0, 0, 1000, 0, 448, "excess"},    /* and a second */
    {6400, 0, 0, 0, 0, 1e-6, 0, 8, "fluctuation"}, /* none: sqrt(L) all the same */
    {6400, 0, 0, 0, 0, 0, 4800, 224, "excess"},    /* more is completed than L/R says */
};

/* Each term, by itself and with others. */
START_TEST(terms_add_up)
{
    weir_config config = automatic(1, 65536);
    for (size_t i = 0; i < sizeof demanded / sizeof demanded[0]; i++) {
        struct weir__depth_terms terms = {.limit = 64,
                                          .rtt_ns = 20e6,
                                          .reaction_ns = 140 * MS,
                                          .rate = demanded[i].rate * 1e-9,
                                          .arrivals = demanded[i].arrivals * 1e-9,
                                          .dispersion = demanded[i].dispersion,
                                          .climb_ns = demanded[i].climb * 1e6,
                                          .dip = demanded[i].dip,
                                          .dip_ns = demanded[i].dip_time * 1e6,
                                          .affordable_ns = demanded[i].affordable * 1e6};
        const char *term = NULL;
        uint32_t depth = weir__depth(&config, &terms, &term);
        ck_assert_msg(depth == demanded[i].depth, "row %zu: %u instead of %u", i, depth, demanded[i].depth);
        ck_assert_msg(strcmp(term, demanded[i].term) == 0, "row %zu: %s", i, term);
    }
}
END_TEST

/* A depth that the configuration names is used as it is. */
START_TEST(fixed_depth_is_kept)
{
    const uint32_t depths[] = {0, 1, 17, 70000, 16777216};
    const struct weir__depth_terms terms[] = {{.limit = 64, .rtt_ns = 20e6, .reaction_ns = 140000000},
                                              {.limit = 1, .rtt_ns = 1},
                                              {.limit = 1e9, .rtt_ns = 1e19, .reaction_ns = UINT64_MAX}};
    const char *term = NULL;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        weir_config config = automatic(10, 100);
        config.queue_depth = depths[i];
        for (size_t j = 0; j < sizeof terms / sizeof terms[0]; j++)
            ck_assert_uint_eq(weir__depth(&config, &terms[j], &term), depths[i]);
        ck_assert_str_eq(term, "fixed");
    }
}
END_TEST

/* From one to most, each magnitude equally often. */
static double log_uniform(uint64_t *state, double most)
{
    return exp(weir_test_uniform(state) * log(most));
}

static uint64_t some_reaction(uint64_t *state)
{
    switch (weir_test_random(state) % 8) {
    case 0:
        return 0;
    case 1:
        return 1;
    case 2:
        return UINT64_MAX;
    default:
        return weir_test_random(state) >> (weir_test_random(state) % 64);
    }
}

static struct weir__depth_terms some_terms(uint64_t *state)
{
    struct weir__depth_terms terms = {.limit = floor(log_uniform(state, 1073741824.0)),
                                      .rtt_ns = log_uniform(state, 1.8e19),
                                      .reaction_ns = some_reaction(state)};
    if (weir_test_random(state) % 16 == 0)
        terms.limit = weir_test_random(state) % 2 == 0 ? 1.0 : 4294967295.0;
    if (weir_test_random(state) % 16 == 0)
        terms.rtt_ns = weir_test_random(state) % 2 == 0 ? 1.0 : 1.8446744073709552e19;
    return terms;
}

/* What is known about demand, or a part of it. */
static void add_demand(struct weir__depth_terms *terms, uint64_t *state)
{
    uint64_t parts = weir_test_random(state);
    double rate = terms->limit / terms->rtt_ns;
    if (parts & 1)
        terms->arrivals = rate * log_uniform(state, 100.0) * weir_test_uniform(state);
    if (parts & 2)
        terms->dispersion = log_uniform(state, 1e6) - 1.0;
    if (parts & 4)
        terms->climb_ns = log_uniform(state, 1e12);
    if (parts & 8)
        terms->affordable_ns = log_uniform(state, 1e12);
    if (parts & 16)
        terms->rate = rate * log_uniform(state, 100.0);
    terms->dip = weir_test_uniform(state);
    terms->dip_ns = terms->rtt_ns * weir_test_uniform(state) * 4;
}

/* Whatever the terms, the depth stays within the configured bounds; with the least that is known it is close to the
 * formula; a longer reaction, a wilder demand and more patience never shorten the queue. */
START_TEST(depth_stays_within_bounds)
{
    uint64_t state = weir_test_seed();
    const char *term = NULL;
    for (unsigned i = weir_test_scaled(200000); i > 0; i--) {
        uint32_t high = (uint32_t)(log_uniform(&state, 16777217.0) - 1.0);
        uint32_t low = (uint32_t)(weir_test_uniform(&state) * ((double)high + 1.0));
        weir_config config = automatic(low, high);
        struct weir__depth_terms terms = some_terms(&state);
        uint32_t depth = weir__depth(&config, &terms, &term);
        double rate = terms.limit / terms.rtt_ns;
        double affordable = fmax(10.0 * terms.rtt_ns, 1e8);
        double wish = rate * (terms.reaction_ns != 0 ? (double)terms.reaction_ns : affordable);
        wish = fmax(fmin(fmax(wish, rate * 2e5), rate * affordable), fmax(low, sqrt(terms.limit)));
        wish = fmin(wish, high);
        bool close = fabs((double)depth - wish) <= 1.0 + 1e-9 * wish;
        if (depth < low || depth > high || !close)
            ck_abort_msg("L %g R %g T %llu in %u...%u: %u", terms.limit, terms.rtt_ns,
                         (unsigned long long)terms.reaction_ns, low, high, depth);
        add_demand(&terms, &state);
        depth = weir__depth(&config, &terms, &term);
        if (depth < low || depth > high)
            ck_abort_msg("%s: %u is not within %u...%u", term, depth, low, high);
        struct weir__depth_terms more = terms;
        more.affordable_ns = 2 * (terms.affordable_ns > 0 ? terms.affordable_ns : affordable);
        if (weir__depth(&config, &more, &term) < depth)
            ck_abort_msg("twice the patience gives less than %u", depth);
        more = terms;
        more.dispersion *= 2;
        if (weir__depth(&config, &more, &term) < depth)
            ck_abort_msg("twice the dispersion gives less than %u", depth);
        if (terms.reaction_ns == 0 || terms.arrivals > 0)
            continue; /* an overload can be told from chance after a long reaction where it cannot after a short one */
        terms.reaction_ns = terms.reaction_ns < UINT64_MAX / 2 ? 2 * terms.reaction_ns : UINT64_MAX;
        if (weir__depth(&config, &terms, &term) < depth)
            ck_abort_msg("twice the reaction gives less than %u", depth);
    }
}
END_TEST

/* A change of up to a quarter is not followed, a greater one at once. */
START_TEST(depth_has_hysteresis)
{
    static const struct {
        uint32_t current;
        uint32_t wanted;
        uint32_t settled;
    } rows[] = {
        {100, 100, 100},
        {100, 125, 100},
        {100, 126, 126},
        {100, 75, 100},
        {100, 74, 74},
        {10, 12, 10},
        {10, 13, 13},
        {10, 8, 10},
        {10, 7, 7},
        {4, 5, 4},
        {4, 6, 6},
        {3, 4, 4},
        {1, 2, 2},
        {0, 1, 1},
        {1, 0, 0},
        {0, 0, 0},
        {0, 4294967295, 4294967295},
        {4294967295, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_uint_eq(weir__depth_settle(rows[i].current, rows[i].wanted), rows[i].settled);
}
END_TEST

/* ---- how fast jobs come ---- */

static struct weir__asked asked(uint64_t arrivals, uint64_t blocked)
{
    return (struct weir__asked){.arrivals = arrivals, .blocked = blocked};
}

/* The rate is that of the last period; nothing is known before one has ended, nor where callers blocked. */
START_TEST(demand_is_counted)
{
    struct weir__demand demand;
    struct weir__asked now = asked(5000, 7); /* from earlier */
    weir__demand_init(&demand);
    weir__demand_measure(&demand, 1 * S, &now);
    ck_assert(demand.rate <= 0);
    now = asked(5300, 7);
    weir__demand_measure(&demand, 1 * S + 100 * MS, &now);
    ck_assert_double_eq_tol(demand.rate, 3000e-9, 1e-12);
    now = asked(5301, 7);
    weir__demand_measure(&demand, 1 * S + 200 * MS, &now);
    ck_assert_double_eq_tol(demand.rate, 10e-9, 1e-12);
    now = asked(5500, 8); /* somebody was blocked, */
    weir__demand_measure(&demand, 1 * S + 300 * MS, &now);
    ck_assert(demand.rate <= 0);
    now = asked(5600, 8); /* is blocked, */
    now.blocking = true;
    weir__demand_measure(&demand, 1 * S + 400 * MS, &now);
    ck_assert(demand.rate <= 0);
    now = asked(5700, 8); /* was blocked when the period began */
    weir__demand_measure(&demand, 1 * S + 500 * MS, &now);
    ck_assert(demand.rate <= 0);
    now = asked(5800, 8);
    weir__demand_measure(&demand, 1 * S + 600 * MS, &now);
    ck_assert_double_eq_tol(demand.rate, 1000e-9, 1e-12);
    weir__demand_measure(&demand, 1 * S + 600 * MS, &now); /* no time has passed */
    ck_assert_double_eq_tol(demand.rate, 1000e-9, 1e-12);
    now = asked(5790, 8); /* submitters were sent away */
    weir__demand_measure(&demand, 1 * S + 700 * MS, &now);
    ck_assert(demand.rate <= 0);
}
END_TEST

/* Counts jobs that come with gaps of mean 1/rate whose shape is given, over periods of a tenth of a second and more. */
static double dispersion_of(double rate, double (*gap)(uint64_t *state), uint64_t *state, unsigned periods)
{
    struct weir__demand demand;
    double time = 0; /* of the next arrival, s */
    double end = 0;
    double sum = 0;
    uint64_t count = 0;
    weir__demand_init(&demand);
    for (unsigned i = 0; i < periods; i++) {
        end += 0.1 + 0.05 * weir_test_uniform(state);
        for (; time < end; time += gap(state) / rate)
            count++;
        struct weir__asked now = asked(count, 0);
        weir__demand_measure(&demand, 1 * S + (uint64_t)(end * 1e9), &now);
        sum += i >= periods / 2 ? demand.dispersion : 0;
    }
    return sum / (periods - periods / 2);
}

static double exponential_gap(uint64_t *state)
{
    return -log1p(-weir_test_uniform(state));
}

static double even_gap(uint64_t *state)
{
    (void)state;
    return 1;
}

/* Nine of ten come together with the one before: c_a^2 = 19. */
static double clustered_gap(uint64_t *state)
{
    return weir_test_random(state) % 10 != 0 ? 0 : 10 * exponential_gap(state);
}

/* The dispersion is the squared coefficient of variation of the gaps (for a renewal process, in the long run). */
START_TEST(dispersion_tells_bursts)
{
    uint64_t state = weir_test_seed();
    unsigned periods = 4000;
    ck_assert_double_eq_tol(dispersion_of(3000, exponential_gap, &state, periods), 1, 0.2);
    ck_assert_double_eq_tol(dispersion_of(200, exponential_gap, &state, periods), 1, 0.2);
    ck_assert_double_lt(dispersion_of(3000, even_gap, &state, periods), 0.05);
    ck_assert_double_eq_tol(dispersion_of(3000, clustered_gap, &state, periods), 19, 4);
}
END_TEST

/* A step of the rate is no burst for long, and a period after hours without work is not compared with the hours. */
START_TEST(a_step_is_no_burst)
{
    struct weir__demand demand;
    uint64_t time = 1 * S;
    uint64_t count = 0;
    weir__demand_init(&demand);
    for (unsigned i = 0; i < 200; i++) {
        struct weir__asked now = asked(count += i < 100 ? 6 : 140, 0);
        weir__demand_measure(&demand, time += 100 * MS, &now);
    }
    ck_assert_double_lt(demand.dispersion, 0.1);
    double before = demand.dispersion;
    struct weir__asked now = asked(count += 1, 0);
    weir__demand_measure(&demand, time += 3600 * S, &now);
    now = asked(count += 140, 0);
    weir__demand_measure(&demand, time + 100 * MS, &now);
    ck_assert_double_eq_tol(demand.dispersion, before, 1e-9);
    ck_assert_double_eq_tol(demand.rate, 1400e-9, 1e-12);
}
END_TEST

/* ---- from period to period ---- */

/* The rate falls only after it has been low for a reaction time, so neither a stall nor a drain shortens the queue;
 * it rises at once. */
START_TEST(rate_is_held)
{
    struct weir__depth_meter meter = {0};
    weir__depth_measure(&meter, 1000 * MS, 64, 3e-6, 140 * MS);
    ck_assert_double_eq_tol(meter.rate, 3e-6, 1e-12);
    weir__depth_measure(&meter, 1100 * MS, 64, 1e-6, 140 * MS);
    weir__depth_measure(&meter, 1200 * MS, 64, 1e-6, 140 * MS);
    ck_assert_double_eq_tol(meter.rate, 3e-6, 1e-12);
    weir__depth_measure(&meter, 1300 * MS, 64, 3e-6, 140 * MS); /* back in time: it starts afresh */
    weir__depth_measure(&meter, 2000 * MS, 64, 2e-6, 140 * MS); /* the first after a stall of 0.6 s */
    ck_assert_double_eq_tol(meter.rate, 3e-6, 1e-12);
    weir__depth_measure(&meter, 2139 * MS, 64, 2e-6, 140 * MS);
    ck_assert_double_eq_tol(meter.rate, 3e-6, 1e-12);
    weir__depth_measure(&meter, 2140 * MS, 64, 2e-6, 140 * MS);
    ck_assert_double_eq_tol(meter.rate, 2e-6, 1e-12);
    weir__depth_measure(&meter, 2240 * MS, 64, 5e-6, 140 * MS);
    ck_assert_double_eq_tol(meter.rate, 5e-6, 1e-12);
}
END_TEST

/* A limit that grows has a time until it is where it is needed; one that stands, falls, or comes back from a drain does
 * not climb. */
START_TEST(climb_is_seen)
{
    struct weir__depth_meter meter = {0};
    weir__depth_measure(&meter, 100 * MS, 4, 1e-6, 140 * MS);
    ck_assert(weir__depth_climb_ns(&meter, 4, 64) <= 0);
    weir__depth_measure(&meter, 200 * MS, 8, 1e-6, 140 * MS);
    ck_assert_double_eq_tol(weir__depth_climb_ns(&meter, 8, 64), 300e6, 1); /* three doublings */
    ck_assert(weir__depth_climb_ns(&meter, 8, 7) <= 0);
    weir__depth_measure(&meter, 300 * MS, 8, 1e-6, 140 * MS);
    ck_assert(weir__depth_climb_ns(&meter, 8, 64) <= 0);
    weir__depth_measure(&meter, 400 * MS, 5.6, 1e-6, 140 * MS);
    ck_assert(weir__depth_climb_ns(&meter, 5.6, 64) <= 0);
    weir__depth_measure(&meter, 500 * MS, 8, 1e-6, 140 * MS);
    ck_assert(weir__depth_climb_ns(&meter, 8, 64) <= 0);
}
END_TEST

/* ---- of a pool ---- */

static weir_outcome nap(void *arg)
{
    const struct timespec *span = arg;
    (void)nanosleep(span, NULL);
    return WEIR_SUCCESS;
}

static atomic_uint traced;
static atomic_uint traced_bare; /* events that lack a term */

static void trace(const weir_trace_event *event, void *arg)
{
    (void)arg;
    atomic_fetch_add(&traced, 1);
    atomic_fetch_add(&traced_bare, event->depth_term == NULL || event->depth_term[0] == '\0');
}

/* The figures tell the depth's reason, before anything is known and after; the demand shows where nobody blocks. */
START_TEST(pool_tells_its_term)
{
    static struct timespec span = {.tv_nsec = 2000000};
    weir_config config = automatic(1, 65536);
    weir_pool *pool = NULL;
    config.flags = WEIR_NO_ENV;
    config.trace = trace;
    ck_assert_int_eq(weir_pool_create(&pool, "depth", &config), 0);
    weir_stats stats = weir_test_pool_stats(pool);
    ck_assert_str_eq(stats.depth_term, "initial");
    ck_assert_uint_eq(stats.queue_depth, 4);
    ck_assert(stats.arrival_rate <= 0);
    do {
        (void)weir_pool_trysubmit(pool, nap, &span);
        weir_test_yield();
        stats = weir_test_pool_stats(pool);
    } while (stats.arrival_rate <= 0);
    ck_assert_str_ne(stats.depth_term, "initial");
    ck_assert_double_gt(stats.burstiness, 0);
    do { /* now callers block */
        ck_assert_int_eq(weir_pool_submit(pool, nap, &span), 0);
        stats = weir_test_pool_stats(pool);
    } while (stats.arrival_rate > 0 || atomic_load(&traced) == 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    ck_assert_uint_eq(traced_bare, 0);
    config.queue_depth = 12;
    ck_assert_int_eq(weir_pool_create(&pool, "depth", &config), 0);
    ck_assert_str_eq(weir_test_pool_stats(pool).depth_term, "fixed");
    ck_assert_str_eq(weir_test_limiter_stats(weir_pool_limiter(pool)).depth_term, "fixed");
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
}
END_TEST

static weir_outcome pass(void *arg)
{
    (void)arg;
    return WEIR_SUCCESS;
}

/* Jobs that must end within 40 ms cannot wait for 100: the queue is not kept that deep. */
START_TEST(deadlines_bound_the_depth)
{
    enum { JOBS = 64 };
    static struct timespec span = {.tv_nsec = 2000000};
    static weir_job jobs[JOBS];
    weir_config config = automatic(1, 65536);
    weir_pool *pool = NULL;
    config.flags = WEIR_NO_ENV;
    config.algorithm = WEIR_FIXED; /* so the affordable wait alone decides */
    config.initial_limit = 4;
    ck_assert_int_eq(weir_pool_create(&pool, "depth", &config), 0);
    weir_stats stats;
    unsigned turn = 0;
    do {
        ck_assert_int_eq(weir_pool_submit(pool, nap, &span), 0);
        stats = weir_test_pool_stats(pool);
    } while (strcmp(stats.depth_term, "initial") == 0);
    uint32_t patient = stats.queue_depth;
    for (uint64_t stop_ns = weir_after_ns(10 * S); stats.queue_depth > patient / 2 && weir_now_ns() < stop_ns;) {
        weir_job *job = &jobs[turn++ % JOBS];
        (void)weir_job_wait(job, WEIR_FOREVER);
        *job = (weir_job)WEIR_JOB_INIT(nap, &span);
        job->deadline_ns = weir_after_ns(40 * MS);
        (void)weir_job_submit(pool, job);
        stats = weir_test_pool_stats(pool);
    }
    ck_assert_int_eq(weir_pool_submit(pool, pass, NULL), 0);
    ck_assert_int_eq(weir_pool_destroy(pool), 0);
    (void)fprintf(stderr, "# depth %u without deadlines, %u with\n", patient, stats.queue_depth);
    ck_assert_uint_le(stats.queue_depth, patient / 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("depth");
    const TTest *const depth[] = {depth_follows_the_formula, terms_add_up,         fixed_depth_is_kept,
                                  depth_stays_within_bounds, depth_has_hysteresis, NULL};
    const TTest *const demand[] = {demand_is_counted, dispersion_tells_bursts, a_step_is_no_burst, NULL};
    const TTest *const meter[] = {rate_is_held, climb_is_seen, NULL};
    const TTest *const pool[] = {pool_tells_its_term, deadlines_bound_the_depth, NULL};
    weir_test_add_group(suite, "depth", depth);
    weir_test_add_group(suite, "demand", demand);
    weir_test_add_group(suite, "meter", meter);
    weir_test_add_group(suite, "pool", pool);
    return weir_test_main(suite);
}
