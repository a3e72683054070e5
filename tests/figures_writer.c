/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* figures_writer prometheus|json: writes the figures of pools and limiters of every kind, for tools that know these
 * formats: busy and idle, of the same name, with partitions, with names that have to be quoted. */

#include <stdio.h>
#include <string.h>

#include <weir.h>

static weir_outcome work(void *outcome)
{
    return outcome != NULL ? WEIR_DROPPED : WEIR_SUCCESS;
}

static weir_pool *create(const char *name, const char *partitions, const char *algorithm)
{
    weir_pool *pool = NULL;
    weir_config config;
    if (weir_config_init(&config) != 0 || weir_config_set(&config, "ALGORITHM", algorithm) != 0)
        return NULL;
    config.partitions = partitions;
    config.flags = WEIR_NO_ENV;
    return weir_pool_create(&pool, name, &config) == 0 ? pool : NULL;
}

int main(int argc, char **argv)
{
    static const char *const algorithms[] = {"vegas2", "gradient2", "vegas", "aimd", "fixed"};
    weir_pool *pools[7] = {create("same", NULL, "vegas2"),
                           create("\"quoted\\\" \xc3\xa9 \xff\n\x1b", "a=0.5,b=0.1", "vegas2")};
    weir_limiter *limiter = NULL;
    weir_permit permit = {{0}};
    for (int i = 0; i < 5; i++)
        pools[2 + i] = create("same", NULL, algorithms[i]);
    int error = weir_limiter_create(&limiter, "same", NULL);
    for (int i = 0; i < 7; i++)
        error |= pools[i] == NULL;
    for (int i = 0; i < 7000 && error == 0; i++)
        error = weir_pool_submit(pools[1 + i % 6], work, i % 10 == 9 ? &error : NULL);
    if (error != 0 || weir_limiter_acquire(limiter, &permit) != 0)
        return 2;
    error = weir_stats_write(stdout, argc == 2 && strcmp(argv[1], "json") == 0 ? WEIR_JSON : WEIR_PROMETHEUS);
    (void)weir_limiter_release(limiter, &permit, WEIR_SUCCESS);
    for (int i = 0; i < 7; i++)
        error |= weir_pool_destroy(pools[i]);
    return error | weir_limiter_destroy(limiter);
}
