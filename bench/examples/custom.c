/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weir.h>

/* An algorithm of one's own: one permit more after each hundred
 * successes, a quarter less at a drop. */
struct steps {
    uint32_t limit;
    uint32_t successes;
};

static int steps_init(void *state, const weir_config *config)
{
    struct steps *steps = (struct steps *)state;
    steps->limit = config->initial_limit;
    return 0;
}

static uint32_t steps_update(void *state, const weir_sample *sample)
{
    struct steps *steps = (struct steps *)state;
    if (sample->outcome == WEIR_DROPPED)
        steps->limit -= steps->limit / 4;
    else if (++steps->successes % 100 == 0)
        steps->limit++;
    return steps->limit; /* will be cut to min_limit and max_limit */
}

static const weir_estimator_class steps_class = {
    "steps", sizeof(struct steps), steps_init, steps_update, NULL};

static weir_outcome work(void *arg)
{
    (void)arg;
    return WEIR_SUCCESS;
}

int main(void)
{
    weir_config config;
    weir_config_init(&config);
    config.algorithm = WEIR_CUSTOM;
    config.estimator_class = &steps_class;
    config.initial_limit = 8;
    weir_pool *pool = NULL;
    int error = weir_pool_create(&pool, "steps", &config);
    for (int i = 0; i < 1000 && error == 0; i++)
        error = weir_pool_submit(pool, work, NULL);
    if (error == 0)
        error = weir_pool_drain(pool, WEIR_FOREVER);
    weir_stats stats;
    stats.size = sizeof stats;
    if (error == 0 && weir_pool_stats(pool, &stats) == 0)
        printf("limit %u\n", (unsigned)stats.limit);
    if (error != 0)
        fprintf(stderr, "steps: %s\n", weir_strerror(error));
    return pool != NULL ? weir_pool_destroy(pool) : 1;
}
