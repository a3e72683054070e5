/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The reaction time that each algorithm announces, against what it does when the downstream really slows down: a small
 * model of servers with one line before them, and callers that always fill the limit. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdio.h>
#include <stdlib.h>

#include <weir.h>

#include "support.h"

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

enum { SERVERS = 128, CALLS = 1024, SEEDS = 9 };

struct call {
    uint64_t start_ns;
    uint64_t end_ns; /* once it is served */
    uint32_t in_flight;
};

struct model {
    weir_estimator *estimator;
    uint64_t random;
    uint64_t now_ns;
    double service_ns;
    double variation; /* half the width of a uniform service time, share of the mean */
    unsigned servers;
    unsigned busy;
    struct call served[SERVERS];
    struct call line[CALLS]; /* ring */
    unsigned first;
    unsigned waiting;
    unsigned limit;
};

static uint64_t service(struct model *model)
{
    double share = 1 + model->variation * (2 * weir_test_uniform(&model->random) - 1);
    return (uint64_t)(model->service_ns * share);
}

static void serve(struct model *model)
{
    while (model->busy < model->servers && model->waiting > 0) {
        struct call *call = &model->served[model->busy++];
        *call = model->line[model->first];
        model->first = (model->first + 1) % CALLS;
        model->waiting--;
        call->end_ns = model->now_ns + service(model);
    }
}

static void grant(struct model *model)
{
    while (model->waiting + model->busy < model->limit && model->waiting < CALLS) {
        unsigned in_flight = model->waiting + model->busy + 1;
        unsigned slot = (model->first + model->waiting++) % CALLS;
        model->line[slot] = (struct call){.start_ns = model->now_ns, .in_flight = in_flight};
        serve(model);
    }
}

/* The next call ends. */
static void step(struct model *model)
{
    unsigned next = 0;
    for (unsigned i = 1; i < model->busy; i++) {
        if (model->served[i].end_ns < model->served[next].end_ns)
            next = i;
    }
    struct call ended = model->served[next];
    model->served[next] = model->served[--model->busy];
    model->now_ns = ended.end_ns;
    weir_sample sample = {.start_ns = ended.start_ns,
                          .rtt_ns = model->now_ns - ended.start_ns,
                          .in_flight = ended.in_flight,
                          .outcome = WEIR_SUCCESS};
    model->limit = weir_estimator_update(model->estimator, &sample);
    serve(model);
    grant(model);
}

static void run_for(struct model *model, double seconds)
{
    uint64_t end_ns = model->now_ns + (uint64_t)(seconds * 1e9);
    while (model->now_ns < end_ns)
        step(model);
}

/* ---- a change and the response ---- */

struct change {
    const char *what;
    weir_algorithm algorithm;
    unsigned servers;
    uint64_t service_ns;
    double variation;
    unsigned initial; /* limit; 0: the algorithm's own, and it finds the rest */
    uint64_t window_ns;
    uint64_t timeout_ns;
    double warm_s;
    unsigned slower; /* the capacity afterwards is one in so many */
    double least;    /* measured by announced, the median of the seeds */
    double most;
};

static weir_config config_of(const struct change *change)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    config.algorithm = change->algorithm;
    config.initial_limit = change->initial;
    if (change->initial != 0)
        config.max_limit = change->initial; /* where it stands when the change comes is not the question here */
    if (change->window_ns != 0)
        config.window_min = config.window_max = change->window_ns;
    if (change->timeout_ns != 0)
        config.timeout = change->timeout_ns;
    return config;
}

static void open_model(struct model *model, const struct change *change, uint64_t seed)
{
    weir_config config = config_of(change);
    *model = (struct model){.random = seed,
                            .now_ns = 1000 * SECOND,
                            .service_ns = (double)change->service_ns,
                            .variation = change->variation,
                            .servers = change->servers};
    ck_assert_int_eq(weir_estimator_create(&model->estimator, &config), 0);
    model->limit = weir_estimator_limit(model->estimator);
    grant(model);
}

/* The limit that the algorithm works at; with one that drains now and then, not that of a drain. */
static unsigned working_limit(struct model *model)
{
    weir_figures figures;
    for (unsigned steps = 0; steps < 100000; steps++) {
        (void)weir_estimator_figures(model->estimator, &figures);
        if (figures.phase[0] == 's' || figures.phase[0] == 'h') /* "steady", "high" */
            break;
        step(model);
    }
    return model->limit;
}

/* Measured time by announced time. */
static double respond(const struct change *change, uint64_t seed)
{
    struct model model;
    open_model(&model, change, seed);
    run_for(&model, change->warm_s + weir_test_uniform(&model.random)); /* at any point of its windows */
    unsigned before = working_limit(&model);
    double announced = (double)weir_estimator_reaction_ns(model.estimator);
    model.servers = change->servers / change->slower;
    uint64_t begin_ns = model.now_ns;
    double share = change->slower > 2 ? 0.5 : 0.6; /* where the knee itself halves, the limit stands a little above */
    while (model.limit > share * before && model.now_ns < begin_ns + 1000 * SECOND)
        step(&model);
    double measured = (double)(model.now_ns - begin_ns);
    weir_estimator_destroy(model.estimator);
    if (seed == 1)
        (void)fprintf(stderr, "# %-34s limit %3u, announced %8.1f ms, measured %8.1f ms\n", change->what, before,
                      announced / 1e6, measured / 1e6);
    return measured / announced;
}

/* Where the limit counts in windows, the announced time is for a congestion that every window shows: so the capacity
 * falls far enough that it is still short at half the limit. vegas2 follows what it measures: there it halves. */
static const struct change changes[] = {
    {"gradient2, windows of 1 s", WEIR_GRADIENT2, 64, 20 * MS, 0.4, 64, 0, 0, 20, 16, 0.75, 1.25},
    {"gradient2, windows of 100 ms", WEIR_GRADIENT2, 64, 20 * MS, 0.4, 64, 100 * MS, 0, 10, 16, 0.5, 1.5},
    {"vegas, windows of 1 s", WEIR_VEGAS, 64, 20 * MS, 0.4, 64, 0, 0, 20, 4, 0.75, 1.25},
    {"vegas, windows of 100 ms", WEIR_VEGAS, 64, 20 * MS, 0.4, 64, 100 * MS, 0, 10, 4, 0.75, 1.25},
    {"aimd, timeout of 100 ms", WEIR_AIMD, 64, 20 * MS, 0.4, 64, 100 * MS, 100 * MS, 10, 16, 0.5, 1.5},
    {"vegas2, 40 servers, 20 ms", WEIR_VEGAS2, 40, 20 * MS, 0.4, 0, 0, 0, 20, 2, 0.3, 1.5},
    {"vegas2, 40 servers, steady 20 ms", WEIR_VEGAS2, 40, 20 * MS, 0.05, 0, 0, 0, 20, 2, 0.3, 1.5},
    {"vegas2, 120 servers, 20 ms", WEIR_VEGAS2, 120, 20 * MS, 0.4, 0, 0, 0, 20, 2, 0.3, 1.5},
    {"vegas2, 40 servers, 2 ms", WEIR_VEGAS2, 40, 2 * MS, 0.4, 0, 0, 0, 10, 2, 0.3, 1.5},
    {"vegas2, 40 servers, 200 ms", WEIR_VEGAS2, 40, 200 * MS, 0.4, 0, 0, 0, 60, 2, 0.3, 1.5},
    {"vegas2, 12 servers, noisy 20 ms", WEIR_VEGAS2, 12, 20 * MS, 1.0, 0, 0, 0, 20, 2, 0.3, 2.5},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

START_TEST(reacts_in_the_announced_time)
{
    const struct change *change = &changes[_i];
    double ratios[SEEDS];
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        ratios[seed - 1] = respond(change, seed);
    qsort(ratios, SEEDS, sizeof ratios[0], ascending);
    double median = ratios[SEEDS / 2];
    (void)fprintf(stderr, "# %-34s measured by announced: %.2f, from %.2f to %.2f\n", change->what, median, ratios[0],
                  ratios[SEEDS - 1]);
    ck_assert_double_ge(median, change->least);
    ck_assert_double_le(median, change->most);
}
END_TEST

/* A limit that never moves has no reaction time. */
START_TEST(fixed_never_reacts)
{
    const struct change change = {"fixed", WEIR_FIXED, 40, 20 * MS, 0.4, 64, 0, 0, 1, 2, 0, 0};
    struct model model;
    open_model(&model, &change, 1);
    ck_assert_uint_eq(weir_estimator_reaction_ns(model.estimator), 0);
    run_for(&model, 2);
    ck_assert_uint_eq(weir_estimator_reaction_ns(model.estimator), 0);
    ck_assert_uint_eq(model.limit, 64);
    weir_estimator_destroy(model.estimator);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reaction");
    TCase *tcase = tcase_create("reaction");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, reacts_in_the_announced_time, 0, sizeof changes / sizeof changes[0]);
    tcase_add_test(tcase, fixed_never_reacts);
    suite_add_tcase(suite, tcase);
    return weir_test_main(suite);
}
