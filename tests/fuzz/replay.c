/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Plays a target's corpus, and inputs close to it, without libFuzzer. Arguments are directories; the environment says
 * how often each input is changed a little (FUZZ_ROUNDS) and the seed of that (WEIR_TEST_SEED). */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { MOST_BYTES = 65536, MOST_CHANGES = 4 };

static uint64_t seed;

static uint64_t next_random(void)
{
    uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15)); /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In a block of exactly its size, so that what lies behind is out of bounds. */
static void play(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, bytes, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void play_variant(const uint8_t *bytes, size_t size)
{
    static uint8_t variant[MOST_BYTES];
    memcpy(variant, bytes, size);
    if (size == 0)
        return;
    uint64_t changes = 1 + next_random() % MOST_CHANGES;
    for (uint64_t i = 0; i < changes; i++)
        variant[next_random() % size] = (uint8_t)next_random();
    play(variant, next_random() % 4 == 0 ? next_random() % size : size);
}

static void play_file(const char *directory, const char *name, unsigned long rounds)
{
    static uint8_t bytes[MOST_BYTES];
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    size_t size = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file);
    play(bytes, size);
    for (unsigned long i = 0; i < rounds; i++)
        play_variant(bytes, size);
}

static unsigned play_directory(const char *directory, unsigned long rounds)
{
    struct dirent **entries;
    unsigned played = 0;
    int count = scandir(directory, &entries, NULL, alphasort);
    if (count < 0) {
        perror(directory);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            play_file(directory, entries[i]->d_name, rounds);
            played++;
        }
        free(entries[i]);
    }
    free(entries);
    return played;
}

static unsigned long number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    unsigned long rounds = number_of("FUZZ_ROUNDS");
    unsigned played = 0;
    seed = number_of("WEIR_TEST_SEED");
    for (int i = 1; i < argc; i++)
        played += play_directory(argv[i], rounds);
    (void)printf("%s: %u inputs and %lu variants of each\n", argv[0], played, rounds);
    return played > 0 ? 0 : 1;
}
