/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The list of partitions, and what is made of it. The first line of an input is the list, the rest are calls: each byte
 * acquires for one of the partitions, or releases. What is admitted stays within the limit, and adds up. */

#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "limiter/limiter.h"

enum { LIMIT = 20, PERMITS = 24 };

struct scene {
    weir_limiter *limiter;
    weir_permit permits[PERMITS];
    unsigned partition[PERMITS]; /* of a permit that is held */
    uint32_t weight[PERMITS];    /* 0: not held */
};

static void check_parts(const struct weir__partitions *partitions, const char *list)
{
    double sum = 0;
    unsigned commas = 0;
    for (const char *at = list; *at != '\0'; at++)
        commas += *at == ',';
    FUZZ_CHECK(partitions->count == commas + 2);
    for (uint16_t i = 0; i < partitions->count; i++) {
        const struct weir__partition *partition = &partitions->all[i];
        FUZZ_CHECK(partition->share >= 0 && partition->share <= 1);
        FUZZ_CHECK((partition->name == NULL) == (i == 0));
        FUZZ_CHECK(weir__partition_find(partitions, partition->name) == i);
        sum += partition->share;
    }
    FUZZ_CHECK(sum <= 1 + 1e-6 && sum >= 1 - 1e-6);
    FUZZ_CHECK(weir__partition_find(partitions, "") == -1);
}

static void check_figures(struct scene *scene)
{
    uint32_t held = 0;
    uint32_t told = 0;
    const struct weir__partitions *partitions = &scene->limiter->partitions;
    for (unsigned i = 0; i < PERMITS; i++)
        held += scene->weight[i];
    for (uint16_t i = 0; i < partitions->count; i++) {
        weir_partition_stats stats = {.size = sizeof stats};
        FUZZ_CHECK(weir_limiter_partition_stats(scene->limiter, partitions->all[i].name, &stats) == 0);
        told += stats.in_flight;
    }
    FUZZ_CHECK(held == told && held <= LIMIT);
}

static void acquire(struct scene *scene, unsigned slot, unsigned choice)
{
    const struct weir__partitions *partitions = &scene->limiter->partitions;
    unsigned partition = choice % partitions->count;
    uint32_t weight = 1 + choice / partitions->count % 3;
    int error =
        weir_limiter_acquire_many(scene->limiter, &scene->permits[slot], weight, partitions->all[partition].name, 0);
    FUZZ_CHECK(error == 0 || error == ETIMEDOUT);
    if (error != 0)
        return;
    scene->weight[slot] = weight;
    scene->partition[slot] = partition;
}

static void play(struct scene *scene, struct fuzz_input *input)
{
    while (input->size > 0) {
        unsigned slot = (unsigned)fuzz_number(input, 1) % PERMITS;
        unsigned choice = (unsigned)fuzz_number(input, 1);
        if (scene->weight[slot] == 0) {
            acquire(scene, slot, choice);
        } else {
            weir_outcome outcome = (weir_outcome)(choice % 3);
            FUZZ_CHECK(weir_limiter_release(scene->limiter, &scene->permits[slot], outcome) == 0);
            scene->weight[slot] = 0;
        }
        check_figures(scene);
    }
    for (unsigned i = 0; i < PERMITS; i++) {
        if (scene->weight[i] != 0)
            FUZZ_CHECK(weir_limiter_release(scene->limiter, &scene->permits[i], WEIR_SUCCESS) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct scene scene = {.limiter = NULL};
    weir_config config;
    char *list = fuzz_line(&input);
    if (list == NULL)
        return 0;
    fuzz_watch_log();
    FUZZ_CHECK(weir_config_init(&config) == 0);
    config.flags = WEIR_NO_ENV;
    config.algorithm = WEIR_FIXED;
    config.initial_limit = LIMIT;
    if (weir_config_set(&config, "PARTITIONS", list) == 0) {
        int error = weir_limiter_create(&scene.limiter, "fuzz", &config);
        FUZZ_CHECK(error == 0 || error == EINVAL);
        if (error == 0) {
            if (config.partitions != NULL)
                check_parts(&scene.limiter->partitions, list);
            play(&scene, &input);
            FUZZ_CHECK(weir_limiter_destroy(scene.limiter) == 0);
        }
    }
    free(list);
    return 0;
}
