/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Options: by the setter, by the environment, and as fields that the program fills in. An input is lines:
 *     sNAME=value  weir_config_set
 *     eNAME=value  the variable WEIR_NAME
 *     nname        the name of the pool
 *     fXbytes      the field of the option with index X, as it comes
 * What was accepted can be printed, read back and resolved, and does not change any more by that. */

#include "fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "config/config.h"

enum { VARIABLES = 32 };

struct scene {
    weir_config config;
    char *lines[256]; /* the configuration points into them */
    unsigned line_count;
    char *variables[VARIABLES]; /* names of those that are set */
    unsigned variable_count;
    const char *name;
};

/* The text of a value that was accepted stands for the same value. */
static void check_round_trip(const struct weir__option *option, const weir_config *config)
{
    char buffer[WEIR__VALUE_SIZE];
    struct weir__value value = weir__option_load(option, config);
    const char *text = weir__option_format(option, value, buffer);
    struct weir__value again;
    FUZZ_CHECK(weir__option_parse(option, text, &again) == NULL);
    FUZZ_CHECK(weir__option_equal(option, value, again));
}

static void set(struct scene *scene, char *line)
{
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return;
    *equals = '\0';
    weir_config before = scene->config;
    int error = weir_config_set(&scene->config, line, equals + 1);
    FUZZ_CHECK(error == 0 || error == EINVAL);
    if (error != 0) {
        FUZZ_CHECK(memcmp(&before, &scene->config, sizeof before) == 0);
        return;
    }
    const struct weir__option *option = weir__option_find(line, strlen(line));
    FUZZ_CHECK(option != NULL);
    check_round_trip(option, &scene->config);
}

static void set_variable(struct scene *scene, const char *line)
{
    const char *equals = strchr(line, '=');
    if (equals == NULL || scene->variable_count == VARIABLES)
        return;
    size_t length = (size_t)(equals - line);
    char *name = malloc(length + sizeof "WEIR_");
    FUZZ_CHECK(name != NULL);
    (void)snprintf(name, length + sizeof "WEIR_", "WEIR_%s", line);
    FUZZ_CHECK(setenv(name, equals + 1, 1) == 0);
    scene->variables[scene->variable_count++] = name;
}

static void fill_field(struct scene *scene, const char *line)
{
    size_t length = strlen(line);
    if (length < 1)
        return;
    const struct weir__option *option = &weir__options[(unsigned char)line[0] % weir__options_count];
    size_t width = weir__option_width(option);
    if (option->type == WEIR__OPTION_DIRECTORY || option->type == WEIR__OPTION_SHARES) {
        struct weir__value value = {.text = line + 1};
        weir__option_store(option, &scene->config, value);
    } else if (length - 1 >= width) {
        memcpy((char *)&scene->config + option->offset, line + 1, width);
    }
}

static void play(struct scene *scene, struct fuzz_input *input)
{
    while (scene->line_count < sizeof scene->lines / sizeof scene->lines[0]) {
        char *line = fuzz_line(input);
        if (line == NULL)
            return;
        scene->lines[scene->line_count++] = line;
        if (line[0] == 's')
            set(scene, line + 1);
        else if (line[0] == 'e')
            set_variable(scene, line + 1);
        else if (line[0] == 'n')
            scene->name = line + 1;
        else if (line[0] == 'f')
            fill_field(scene, line + 1);
    }
}

static void print(const weir_config *config)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    FUZZ_CHECK(out != NULL);
    FUZZ_CHECK(weir_config_print(config, out) == 0);
    FUZZ_CHECK(fclose(out) == 0);
    FUZZ_CHECK(fuzz_is_harmless(text, true));
    free(text);
}

/* Whether a creation with it neither writes files nor asks for gigabytes. */
static bool is_cheap(const weir_config *config)
{
    return config->stats_dir == NULL && config->window_capacity <= 4096;
}

static void resolve(struct scene *scene)
{
    weir_config resolved;
    int error = weir__config_resolve(&resolved, &scene->config, scene->name, true);
    FUZZ_CHECK(error == 0 || error == EINVAL);
    if (error != 0)
        return;
    for (size_t i = 0; i < weir__options_count; i++)
        check_round_trip(&weir__options[i], &resolved);
    weir_config again;
    FUZZ_CHECK(weir__config_resolve(&again, &resolved, scene->name, false) == 0);
    FUZZ_CHECK(memcmp(&again, &resolved, sizeof again) == 0);
    print(&resolved);
    weir_limiter *limiter = NULL;
    if (!is_cheap(&resolved))
        return;
    error = weir_limiter_create(&limiter, scene->name, &scene->config);
    FUZZ_CHECK(error == 0 || error == EINVAL);
    if (error == 0)
        FUZZ_CHECK(weir_limiter_destroy(limiter) == 0);
}

static void clear(struct scene *scene)
{
    for (unsigned i = 0; i < scene->variable_count; i++) {
        (void)unsetenv(scene->variables[i]);
        free(scene->variables[i]);
    }
    for (unsigned i = 0; i < scene->line_count; i++)
        free(scene->lines[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct scene scene = {.line_count = 0};
    fuzz_watch_log();
    FUZZ_CHECK(weir_config_init(&scene.config) == 0);
    play(&scene, &input);
    print(&scene.config);
    weir_config loaded = scene.config;
    int error = weir_config_load_env(&loaded, scene.name);
    FUZZ_CHECK(error == 0 || error == EINVAL);
    if (error != 0)
        FUZZ_CHECK(memcmp(&loaded, &scene.config, sizeof loaded) == 0);
    print(&loaded);
    resolve(&scene);
    clear(&scene);
    return 0;
}
