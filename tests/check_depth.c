/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The bound of the queue. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <math.h>

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

/* X = L/R; D = ceil(X * T_r), at least QUEUE_MIN and sqrt(L), at most QUEUE_MAX and X * max(10 R, 100 ms). */
static const struct {
    double limit;
    uint64_t rtt_ns;
    uint64_t reaction_ns;
    uint32_t queue_min;
    uint32_t queue_max;
    uint32_t depth;
} worked[] = {
    {64, 20 * MS, 140 * MS, 1, 65536, 448},     /* 3200/s for 0.14 s */
    {64, 20 * MS, 360 * MS, 1, 65536, 640},     /* 1152, of which 200 ms are affordable */
    {64, 20 * MS, 8100 * MS, 1, 65536, 640},    /* 25920, likewise */
    {64, 20 * MS, 0, 1, 65536, 640},            /* a limit that never moves: what is affordable */
    {64, 5 * MS, 50 * MS, 1, 65536, 640},       /* 12800/s for 50 ms */
    {64, 5 * MS, 500 * MS, 1, 65536, 1280},     /* 6400, of which 100 ms are affordable */
    {64, 1 * MS, 0, 1, 65536, 6400},            /* 64000/s for 100 ms */
    {4, 20 * MS, 140 * MS, 1, 65536, 28},       /* 200/s for 0.14 s */
    {4, 20 * MS, 141 * MS, 1, 65536, 29},       /* 28.2: rounded up */
    {1, 1 * S, 3 * S, 1, 65536, 3},             /* 1/s for 3 s */
    {1, 1 * S, 60 * S, 1, 65536, 10},           /* ten RTTs */
    {100, 20 * MS, 1 * MS, 1, 65536, 10},       /* 5, but sqrt(100) */
    {10, 20 * MS, 1 * MS, 1, 65536, 4},         /* 1, but sqrt(10) */
    {10, 20 * MS, 1 * MS, 50, 65536, 50},       /* QUEUE_MIN */
    {64, 20 * MS, 140 * MS, 1, 100, 100},       /* QUEUE_MAX */
    {64, 20 * MS, 140 * MS, 7, 7, 7},           /* both */
    {64, 20 * MS, 140 * MS, 1, 5, 5},           /* QUEUE_MAX is below sqrt(L) */
    {64, 20 * MS, 140 * MS, 2000, 65536, 2000}, /* QUEUE_MIN is above what is affordable */
    {64, 20 * MS, 140 * MS, 0, 0, 0},           /* no queue */
    {1, 1, 1000, 1, 65536, 1000},               /* 10^9/s for 1 us */
    {1, 1, 0, 1, 16777216, 16777216},           /* 10^8 would be affordable */
};

/* The depth is what the formula says, on paper. */
START_TEST(depth_follows_the_formula)
{
    for (size_t i = 0; i < sizeof worked / sizeof worked[0]; i++) {
        weir_config config = automatic(worked[i].queue_min, worked[i].queue_max);
        struct weir__depth_terms terms = {worked[i].limit, (double)worked[i].rtt_ns, worked[i].reaction_ns};
        uint32_t depth = weir__depth(&config, &terms);
        ck_assert_msg(depth == worked[i].depth, "row %zu: %u instead of %u", i, depth, worked[i].depth);
    }
}
END_TEST

/* A depth that the configuration names is used as it is. */
START_TEST(fixed_depth_is_kept)
{
    const uint32_t depths[] = {0, 1, 17, 70000, 16777216};
    const struct weir__depth_terms terms[] = {{64, 20e6, 140000000}, {1, 1, 0}, {1e9, 1e19, UINT64_MAX}};
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        weir_config config = automatic(10, 100);
        config.queue_depth = depths[i];
        for (size_t j = 0; j < sizeof terms / sizeof terms[0]; j++)
            ck_assert_uint_eq(weir__depth(&config, &terms[j]), depths[i]);
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
    struct weir__depth_terms terms = {floor(log_uniform(state, 1073741824.0)), log_uniform(state, 1.8e19),
                                      some_reaction(state)};
    if (weir_test_random(state) % 16 == 0)
        terms.limit = weir_test_random(state) % 2 == 0 ? 1.0 : 4294967295.0;
    if (weir_test_random(state) % 16 == 0)
        terms.rtt_ns = weir_test_random(state) % 2 == 0 ? 1.0 : 1.8446744073709552e19;
    return terms;
}

/* Whatever the terms, the depth stays within the configured bounds and close to the formula, and a longer reaction
 * never shortens the queue. */
START_TEST(depth_stays_within_bounds)
{
    uint64_t state = weir_test_seed();
    for (unsigned i = weir_test_scaled(200000); i > 0; i--) {
        uint32_t high = (uint32_t)(log_uniform(&state, 16777217.0) - 1.0);
        uint32_t low = (uint32_t)(weir_test_uniform(&state) * ((double)high + 1.0));
        weir_config config = automatic(low, high);
        struct weir__depth_terms terms = some_terms(&state);
        uint32_t depth = weir__depth(&config, &terms);
        double rate = terms.limit / terms.rtt_ns;
        double affordable = fmax(10.0 * terms.rtt_ns, 1e8);
        double wish = rate * (terms.reaction_ns != 0 ? (double)terms.reaction_ns : affordable);
        wish = fmax(fmin(wish, rate * affordable), fmax(low, sqrt(terms.limit)));
        wish = fmin(wish, high);
        bool close = fabs((double)depth - wish) <= 1.0 + 1e-9 * wish;
        if (depth < low || depth > high || !close)
            ck_abort_msg("L %g R %g T %llu in %u...%u: %u", terms.limit, terms.rtt_ns,
                         (unsigned long long)terms.reaction_ns, low, high, depth);
        if (terms.reaction_ns == 0)
            continue;
        terms.reaction_ns = terms.reaction_ns < UINT64_MAX / 2 ? 2 * terms.reaction_ns : UINT64_MAX;
        if (weir__depth(&config, &terms) < depth)
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

int main(void)
{
    Suite *suite = suite_create("depth");
    const TTest *const depth[] = {depth_follows_the_formula, fixed_depth_is_kept, depth_stays_within_bounds,
                                  depth_has_hysteresis, NULL};
    weir_test_add_group(suite, "depth", depth);
    return weir_test_main(suite);
}
