/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "config_support.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

void weir_test_clear_environment(void)
{
    char name[256];
    for (char **entry = environ; *entry != NULL;) {
        size_t length = strcspn(*entry, "=");
        bool is_for_tests = strncmp(*entry, "WEIR_TAP", 8) == 0 || strncmp(*entry, "WEIR_TEST_SEED", 14) == 0;
        if (strncmp(*entry, "WEIR_", 5) == 0 && length < sizeof name && !is_for_tests) {
            memcpy(name, *entry, length);
            name[length] = '\0';
            ck_assert_int_eq(unsetenv(name), 0);
            entry = environ;
        } else {
            entry++;
        }
    }
    weir_test_log_capture();
}

void weir_test_release_environment(void)
{
    weir_test_clear_environment();
    weir_test_log_release();
}

weir_config weir_test_defaults(void)
{
    weir_config config;
    ck_assert_int_eq(weir_config_init(&config), 0);
    return config;
}

void weir_test_assert_logged(const char *part)
{
    if (strstr(weir_test_log_text(), part) == NULL)
        ck_abort_msg("no \"%s\" in: %s", part, weir_test_log_text());
}

char *weir_test_printed(const weir_config *config)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(weir_config_print(config, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

void weir_test_assert_printed(const weir_config *config, const char *name, const char *value, const char *origin)
{
    char *text = weir_test_printed(config);
    char line_name[64];
    char line_value[200];
    char line_origin[200];
    bool found = false;
    for (char *line = text; *line != '\0' && !found; line = strchr(line, '\n') + 1) {
        ck_assert_int_eq(sscanf(line, "%63s %199s %199[^\n]", line_name, line_value, line_origin), 3);
        found = strcmp(line_name, name) == 0;
    }
    ck_assert(found);
    ck_assert_str_eq(line_value, value);
    /* ", live" stands behind the origin of what can change while the pool runs, and of nothing else */
    const struct weir__option *option = weir__option_find(name, strlen(name));
    char *mark = strstr(line_origin, ", live");
    ck_assert_ptr_nonnull(option);
    ck_assert_int_eq(mark != NULL, weir__option_is_live(option, config));
    if (mark != NULL) {
        ck_assert_str_eq(mark, ", live");
        *mark = '\0';
    }
    ck_assert_str_eq(line_origin, origin);
    free(text);
}
