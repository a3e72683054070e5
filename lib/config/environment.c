/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

extern char **environ;

enum {
    POOL_SIZE = 128,    /* of a pool's name in variables: the characters beyond do not count */
    VARIABLE_SIZE = 192 /* of "WEIR_", an option, "__" and a pool */
};

const char *weir__getenv(const char *name)
{
#ifdef HAVE_SECURE_GETENV
    return secure_getenv(name);
#else
    return getuid() == geteuid() && getgid() == getegid() ? getenv(name) : NULL;
#endif
}

static const char *get_non_empty(const char *name)
{
    const char *value = weir__getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool is_variable_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The pool's name as it appears in variables: "db-1" is DB_1. */
static void spell_pool(const char *name, char pool[POOL_SIZE])
{
    size_t length = strnlen(name, POOL_SIZE - 1);
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        pool[i] = (char)(is_variable_character(c) ? c : '_');
    }
    pool[length] = '\0';
}

/* One variable into config. Its errors are logged later, when the threshold that the environment sets is known, so
 * this is called twice: report NULL applies, and *report is the threshold to log with. */
static int apply_variable(weir_config *config, const struct weir__option *option, const char *pool,
                          const uint32_t *report)
{
    char variable[VARIABLE_SIZE];
    bool is_pool = pool[0] != '\0';
    (void)snprintf(variable, sizeof variable, "WEIR_%s%s%s", option->name, is_pool ? "__" : "", pool);
    const char *text = get_non_empty(variable);
    if (text == NULL)
        return 0;
    struct weir__value value;
    const char *reason = weir__option_parse(option, text, &value);
    if (reason != NULL) {
        if (report != NULL)
            weir__option_refuse(*report, variable, text, option, reason);
        return EINVAL;
    }
    weir__option_store(option, config, value);
    weir__origin_put(config, option, is_pool ? WEIR__ORIGIN_POOL_ENV : WEIR__ORIGIN_ENV);
    return 0;
}

static int apply_all(weir_config *config, const char *pool, const uint32_t *report, bool *log_is_bad)
{
    int error = 0;
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        int option_error = apply_variable(config, option, "", report);
        if (pool[0] != '\0' && apply_variable(config, option, pool, report) != 0)
            option_error = EINVAL;
        if (option_error != 0) {
            error = option_error;
            if (option->offset == offsetof(weir_config, log))
                *log_is_bad = true;
        }
    }
    return error;
}

int weir__environment_apply(weir_config *config, const char *pool_name)
{
    char pool[POOL_SIZE];
    spell_pool(pool_name != NULL ? pool_name : "default", pool);
    weir_config changed = *config;
    weir__origin_set_pool(&changed, pool);
    bool log_is_bad = false;
    int error = apply_all(&changed, pool, NULL, &log_is_bad);
    if (error != 0) {
        uint32_t threshold = log_is_bad ? (uint32_t)WEIR_LOG_WARN : weir__config_threshold(&changed);
        (void)apply_all(&changed, pool, &threshold, &log_is_bad);
        return error;
    }
    memcpy(config, &changed, sizeof changed);
    return 0;
}

int weir_config_load_env(weir_config *config, const char *pool_name)
{
    if (config == NULL)
        return EINVAL;
    weir_config full;
    int error = weir__config_import(&full, config);
    if (error == 0)
        error = weir__environment_apply(&full, pool_name);
    if (error == 0)
        weir__config_give_back(config, &full);
    return error;
}

/* Whether something reads the variable WEIR_<name>. */
static bool is_known(const char *name, size_t length)
{
    static const char *const others[] = {"DISPLAY_ENV", "TAP"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strlen(others[i]) == length && memcmp(others[i], name, length) == 0)
            return true;
    if (length > 5 && memcmp(name, "TEST_", 5) == 0)
        return true;

    for (size_t i = 0; i < length; i++)
        if (!is_variable_character(name[i]))
            return false;
    const char *pool = strstr(name, "__");
    size_t option_length = pool != NULL && pool < name + length ? (size_t)(pool - name) : length;
    bool pool_is_empty = option_length != length && option_length + 2 >= length;
    return !pool_is_empty && weir__option_find(name, option_length) != NULL;
}

void weir__environment_warn_unknown(uint32_t threshold)
{
    char names[512];
    size_t used = 0;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');
        if (strncmp(*entry, "WEIR_", 5) != 0 || equals == NULL || equals[1] == '\0')
            continue;
        size_t length = (size_t)(equals - *entry);
        char name[VARIABLE_SIZE];
        if (length < 5 || length >= sizeof name || is_known(*entry + 5, length - 5))
            continue;
        memcpy(name, *entry, length);
        name[length] = '\0';
        if (weir__getenv(name) == NULL)
            return; /* set-user-ID: nothing of it is read */
        int printed = snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", name);
        if (printed < 0 || (size_t)printed >= sizeof names - used) {
            names[used] = '\0';
            break;
        }
        used += (size_t)printed;
    }
    if (used > 0)
        weir__log(threshold, WEIR_LOG_WARN, "no option is set by %s: see weir_environ(7)", names);
}

/* Reads what a program left in the fields as strictly as text; strings such as "off" become what they stand for. */
static int check_fields(weir_config *config)
{
    uint32_t threshold = weir__config_threshold(config);
    int error = 0;
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        struct weir__value value = weir__option_load(option, config);
        bool is_text = option->type == WEIR__OPTION_DIRECTORY || option->type == WEIR__OPTION_SHARES;
        const char *reason = NULL;
        if (is_text && value.text != NULL)
            reason = weir__option_parse(option, value.text, &value);
        else if (!is_text)
            reason = weir__option_check(option, value);
        if (reason == NULL) {
            weir__option_store(option, config, value);
            continue;
        }
        char text[WEIR__VALUE_SIZE];
        weir__option_refuse(threshold, option->name, weir__option_format(option, value, text), option, reason);
        error = EINVAL;
    }
    return error;
}

static int check_order(const weir_config *config, const char *low_name, const char *high_name)
{
    const struct weir__option *low = weir__option_find(low_name, strlen(low_name));
    const struct weir__option *high = weir__option_find(high_name, strlen(high_name));
    struct weir__value low_value = weir__option_load(low, config);
    struct weir__value high_value = weir__option_load(high, config);
    if (low_value.number <= high_value.number)
        return 0;
    char low_text[WEIR__VALUE_SIZE];
    char high_text[WEIR__VALUE_SIZE];
    char low_origin[96];
    char high_origin[96];
    weir__origin_describe(config, low, low_origin, sizeof low_origin);
    weir__origin_describe(config, high, high_origin, sizeof high_origin);
    weir__log(config->log, WEIR_LOG_ERROR, "%s=%s (%s) is above %s=%s (%s)", low_name,
              weir__option_format(low, low_value, low_text), low_origin, high_name,
              weir__option_format(high, high_value, high_text), high_origin);
    return EINVAL;
}

int weir__config_check(const weir_config *config)
{
    int error = 0;
    if (check_order(config, "MIN_LIMIT", "MAX_LIMIT") != 0)
        error = EINVAL;
    if (check_order(config, "WINDOW_MIN", "WINDOW_MAX") != 0)
        error = EINVAL;
    if (check_order(config, "QUEUE_MIN", "QUEUE_MAX") != 0)
        error = EINVAL;
    if (config->window_percentile > 0 && check_order(config, "WINDOW_SAMPLES", "WINDOW_CAPACITY") != 0)
        error = EINVAL;
    const weir_estimator_class *class = config->estimator_class;
    bool is_complete = class != NULL && class->name != NULL && class->init != NULL && class->update != NULL;
    if (config->algorithm == WEIR_CUSTOM && !is_complete) {
        weir__log(config->log, WEIR_LOG_ERROR, "ALGORITHM=custom needs an estimator_class with name, init and update");
        error = EINVAL;
    }
    return error;
}

static void record_origins(weir_config *config)
{
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        if (weir__origin_get(config, option) == WEIR__ORIGIN_NONE)
            weir__origin_put(config, option,
                             weir__option_is_default(option, config) ? WEIR__ORIGIN_RESOLVED_DEFAULT
                                                                     : WEIR__ORIGIN_PROGRAM);
    }
}

int weir__config_resolve(weir_config *out, const weir_config *in, const char *name, bool read_env)
{
    weir_config config;
    int error = in != NULL ? weir__config_import(&config, in) : weir_config_init(&config);
    if (error != 0)
        return error;
    const uint32_t known_flags = WEIR_NO_ENV | (uint32_t)WEIR_MONITOR;
    if ((config.flags & ~known_flags) != 0) {
        weir__log(weir__config_threshold(&config), WEIR_LOG_ERROR, "flags=0x%x has bits other than 0x%x",
                  (unsigned)config.flags, (unsigned)known_flags);
        return EINVAL;
    }
    /* From here on the mode alone counts, so that the environment can override the flag and it does not come back. */
    if ((config.flags & (uint32_t)WEIR_MONITOR) != 0) {
        config.mode = WEIR_MONITOR;
        config.flags &= ~(uint32_t)WEIR_MONITOR;
    }
    if (read_env && (config.flags & WEIR_NO_ENV) == 0) {
        error = weir__environment_apply(&config, name);
        if (error != 0)
            return error;
        weir__environment_warn_unknown(weir__config_threshold(&config));
    }
    error = check_fields(&config);
    if (error == 0)
        error = weir__config_check(&config);
    if (error != 0)
        return error;
    record_origins(&config);
    memcpy(out, &config, sizeof config);
    return 0;
}
