/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weir.h>

/* The number of lines that were refused; the log says why. */
static int reload(weir_pool *pool, FILE *file)
{
    char option[64];
    char value[256];
    int refused = 0;
    while (fscanf(file, "%63s %255s", option, value) == 2) {
        if (weir_pool_configure(pool, option, value) != 0)
            refused++;
    }
    return refused;
}

static weir_outcome job(void *arg)
{
    (void)arg;
    return WEIR_SUCCESS;
}

int main(int argc, char **argv)
{
    weir_pool *pool;
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (weir_pool_create(&pool, "db", NULL) != 0)
        return 1;
    int refused = weir_pool_configure(pool, "MAX_LIMIT", "64") != 0;
    if (file != NULL) {
        refused += reload(pool, file);
        fclose(file);
    }
    weir_pool_call(pool, job, NULL, NULL);
    weir_pool_destroy(pool);
    return refused != 0;
}
