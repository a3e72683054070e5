/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "config/config.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum { SHOWN = 80 }; /* bytes of a value in a message */

/* Text that is built piece by piece; what does not fit is cut. */
struct text {
    char *buffer;
    size_t size;
    size_t used;
};

static void add(struct text *text, const char *format, ...) WEIR__PRINTF(2, 3);

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int printed = vsnprintf(text->buffer + text->used, text->size - text->used, format, arguments);
    va_end(arguments);
    if (printed > 0)
        text->used += (size_t)printed;
    if (text->used >= text->size)
        text->used = text->size - 1;
}

/* The locale's decimal point, whatever its length, becomes a point. */
static void normalize_point(char *number)
{
    char *digit = number;
    while (*digit >= '0' && *digit <= '9')
        digit++;
    char *after = digit;
    while (*after != '\0' && (*after < '0' || *after > '9') && *after != 'e')
        after++;
    if (digit == number || after == digit)
        return;
    *digit = '.';
    memmove(digit + 1, after, strlen(after) + 1);
}

/* The fewest decimals that give the value back. What no option accepts (nan, 1e300) only has to be recognised. */
static void format_real(double value, char *buffer)
{
    enum { DECIMALS = 345 }; /* of the smallest double, with 17 significant digits, and then some */
    if (!(fabs(value) < 1e15)) {
        (void)snprintf(buffer, WEIR__VALUE_SIZE, "%g", value);
        normalize_point(value < 0 ? buffer + 1 : buffer);
        return;
    }
    char *number = buffer;
    if (value < 0)
        *number++ = '-';
    for (int decimals = 0; decimals <= DECIMALS; decimals++) {
        double back;
        (void)snprintf(number, WEIR__VALUE_SIZE - 1, "%.*f", decimals, fabs(value));
        normalize_point(number);
        if (weir__parse_real(number, strlen(number), &back) && back == fabs(value))
            return;
    }
}

static void format_scaled(uint64_t number, bool is_duration, char *buffer)
{
    static const struct {
        const char *name;
        uint64_t scale;
    } units[] = {{"m", UINT64_C(60000000000)},
                 {"s", UINT64_C(1000000000)},
                 {"ms", UINT64_C(1000000)},
                 {"us", UINT64_C(1000)},
                 {"ns", 1}},
      sizes[] = {{"G", UINT64_C(1) << 30}, {"M", UINT64_C(1) << 20}, {"K", UINT64_C(1) << 10}, {"", 1}};
    size_t i = 0;
    if (is_duration) {
        while (number % units[i].scale != 0)
            i++;
        (void)snprintf(buffer, WEIR__VALUE_SIZE, "%llu%s", (unsigned long long)(number / units[i].scale),
                       number != 0 ? units[i].name : "");
    } else {
        while (number % sizes[i].scale != 0)
            i++;
        (void)snprintf(buffer, WEIR__VALUE_SIZE, "%llu%s", (unsigned long long)(number / sizes[i].scale),
                       number != 0 ? sizes[i].name : "");
    }
}

static void format_plain(const struct weir__option *option, struct weir__value value, char *buffer)
{
    switch (option->type) {
    case WEIR__OPTION_DURATION:
        format_scaled(value.number, true, buffer);
        break;
    case WEIR__OPTION_SIZE:
        format_scaled(value.number, false, buffer);
        break;
    case WEIR__OPTION_DOUBLE:
        format_real(value.real, buffer);
        break;
    case WEIR__OPTION_U32:
    case WEIR__OPTION_CHOICE:
    case WEIR__OPTION_DIRECTORY:
    case WEIR__OPTION_SHARES:
        (void)snprintf(buffer, WEIR__VALUE_SIZE, "%llu", (unsigned long long)value.number);
        break;
    }
}

const char *weir__option_format(const struct weir__option *option, struct weir__value value,
                                char buffer[WEIR__VALUE_SIZE])
{
    bool is_text = option->type == WEIR__OPTION_DIRECTORY || option->type == WEIR__OPTION_SHARES;
    if (is_text)
        return value.text != NULL ? value.text : option->words[0].word;
    for (const struct weir__option_word *word = option->words; word != NULL && word->word != NULL; word++) {
        struct weir__value meant = {.number = word->number, .real = word->real};
        if (weir__option_equal(option, meant, value))
            return word->word;
    }
    format_plain(option, value, buffer);
    return buffer;
}

/* "auto, off, " or, for a choice, "on or off". */
static void add_words(struct text *text, const struct weir__option *option)
{
    const struct weir__option_word *shown[16];
    size_t count = 0;
    for (const struct weir__option_word *word = option->words; word != NULL && word->word != NULL; word++)
        if (!word->program_only && strcmp(word->word, "default") != 0 && count < sizeof shown / sizeof shown[0])
            shown[count++] = word;
    for (size_t i = 0; i < count; i++) {
        const char *after = ", ";
        if (option->type == WEIR__OPTION_CHOICE)
            after = i + 1 == count ? "" : i + 2 == count ? " or " : ", ";
        add(text, "%s%s", shown[i]->word, after);
    }
    if (count > 0 && option->type != WEIR__OPTION_CHOICE)
        add(text, "or ");
}

static void add_range(struct text *text, const struct weir__option *option, bool portable)
{
    char low[WEIR__VALUE_SIZE];
    char high[WEIR__VALUE_SIZE];
    if (option->type == WEIR__OPTION_DOUBLE) {
        format_real(option->low, low);
        format_real(option->high, high);
        const char *above = option->above_low ? "above " : option->below_high ? "at least " : "";
        const char *below = option->below_high ? ", below " : option->above_low ? ", at most " : " to ";
        add(text, "%s%s%s%s", above, low, below, high);
        return;
    }
    format_plain(option, (struct weir__value){.number = weir__option_least(option)}, low);
    format_plain(option, (struct weir__value){.number = option->most}, high);
    if (option->here_least != NULL && portable)
        (void)snprintf(low, sizeof low, "the least stack of the system");
    add(text, "%s to %s", low, high);
    if (option->type == WEIR__OPTION_DURATION)
        add(text, " (units: ns us ms s m)");
    else if (option->type == WEIR__OPTION_SIZE)
        add(text, " bytes (K M G are powers of 1024)");
}

void weir__option_accepts(const struct weir__option *option, bool portable, char buffer[WEIR__ACCEPTS_SIZE])
{
    struct text text = {.buffer = buffer, .size = WEIR__ACCEPTS_SIZE};
    buffer[0] = '\0';
    add_words(&text, option);
    if (option->type == WEIR__OPTION_DIRECTORY || option->type == WEIR__OPTION_SHARES) {
        add(&text, "%s", option->unit);
    } else if (option->type != WEIR__OPTION_CHOICE) {
        add_range(&text, option, portable);
        if (option->unit != NULL)
            add(&text, " %s", option->unit);
    }
}

void weir__option_refuse(uint32_t threshold, const char *label, const char *text, const struct weir__option *option,
                         const char *reason)
{
    bool is_long = strlen(text) > SHOWN;
    char accepts[WEIR__ACCEPTS_SIZE];
    weir__option_accepts(option, false, accepts);
    bool has_reason = reason[0] != '\0';
    weir__log(threshold, WEIR_LOG_ERROR, "%s=\"%.*s%s\" is not accepted%s%s%s: %s", label, (int)SHOWN, text,
              is_long ? "..." : "", has_reason ? " (" : "", reason, has_reason ? ")" : "", accepts);
}

uint32_t weir__config_threshold(const weir_config *config)
{
    return config->log <= (uint32_t)WEIR_LOG_INFO ? config->log : (uint32_t)WEIR_LOG_WARN;
}

bool weir__option_is_default(const struct weir__option *option, const weir_config *config)
{
    struct weir__value initial = {0};
    (void)weir__option_parse(option, option->default_value, &initial);
    return weir__option_equal(option, initial, weir__option_load(option, config));
}

void weir__origin_describe(const weir_config *config, const struct weir__option *option, char *buffer, size_t size)
{
    bool is_default = weir__option_is_default(option, config);
    switch (weir__origin_get(config, option)) {
    case WEIR__ORIGIN_NONE:
        (void)snprintf(buffer, size, "%s", is_default ? "default" : "program");
        return;
    case WEIR__ORIGIN_SET:
        (void)snprintf(buffer, size, "set");
        return;
    case WEIR__ORIGIN_ENV:
        (void)snprintf(buffer, size, "from WEIR_%s", option->name);
        return;
    case WEIR__ORIGIN_POOL_ENV:
        (void)snprintf(buffer, size, "from WEIR_%s__%s", option->name, weir__origin_pool(config));
        return;
    case WEIR__ORIGIN_PROGRAM:
        (void)snprintf(buffer, size, "program");
        return;
    case WEIR__ORIGIN_RESOLVED_DEFAULT:
        (void)snprintf(buffer, size, "%s", is_default ? "default" : "algorithm");
        return;
    case WEIR__ORIGIN_CONFIGURED:
        (void)snprintf(buffer, size, "configure");
        return;
    }
    (void)snprintf(buffer, size, "unknown");
}

bool weir__option_is_live(const struct weir__option *option, const weir_config *config)
{
    return option->live == WEIR__LIVE || (option->live == WEIR__LIVE_IF_FIXED && config->algorithm == WEIR_FIXED);
}

size_t weir__config_render(const weir_config *config, char *buffer, size_t size)
{
    enum { LONGEST = 100 };
    struct text text = {.buffer = buffer, .size = size};
    buffer[0] = '\0';
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        char formatted[WEIR__VALUE_SIZE];
        char shown[LONGEST + 1];
        char origin[96];
        const char *value = weir__option_format(option, weir__option_load(option, config), formatted);
        size_t length = 0;
        for (; length < LONGEST && value[length] != '\0'; length++)
            shown[length] = weir__harmless(value[length]);
        shown[length] = '\0';
        weir__origin_describe(config, option, origin, sizeof origin);
        add(&text, "%s\t%s%s\t%s\t%s\n", option->name, shown, value[length] != '\0' ? "..." : "", origin,
            weir__option_is_live(option, config) ? "live" : "");
    }
    return text.used;
}

/* One line per option. False: the stream failed. */
static bool print_options(const weir_config *config, FILE *out)
{
    bool written = true;
    for (size_t i = 0; i < weir__options_count; i++) {
        const struct weir__option *option = &weir__options[i];
        char buffer[WEIR__VALUE_SIZE];
        char origin[96];
        const char *value = weir__option_format(option, weir__option_load(option, config), buffer);
        weir__origin_describe(config, option, origin, sizeof origin);
        if (fprintf(out, "%-17s ", option->name) < 0)
            written = false;
        for (const char *at = value; *at != '\0'; at++)
            if (fputc(weir__harmless(*at), out) == EOF)
                written = false;
        int padding = strlen(value) < 10 ? 10 - (int)strlen(value) : 0;
        if (fprintf(out, "%*s %s%s\n", padding, "", origin, weir__option_is_live(option, config) ? ", live" : "") < 0)
            written = false;
    }
    return written;
}

int weir_config_print(const weir_config *config, FILE *out)
{
    if (config == NULL || out == NULL)
        return EINVAL;
    weir_config full;
    int error = weir__config_import(&full, config);
    if (error != 0)
        return error;
    if ((full.flags & (uint32_t)WEIR_MONITOR) != 0)
        full.mode = WEIR_MONITOR;
    int saved_errno = errno;
    flockfile(out);
    bool written = print_options(&full, out);
    /* A full disk shows when the buffer is written. */
    if (fflush(out) != 0)
        written = false;
    funlockfile(out);
    errno = saved_errno;
    return written ? 0 : EIO;
}

void weir__config_display(const weir_config *config, const char *kind, const char *name)
{
    const char *wanted = (config->flags & WEIR_NO_ENV) == 0 ? weir__getenv("WEIR_DISPLAY_ENV") : NULL;
    if (wanted == NULL || strcmp(wanted, "1") != 0)
        return;
    int saved_errno = errno;
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (memory != NULL) {
        (void)fprintf(memory, "weir: %s \"", kind);
        for (const char *at = name != NULL ? name : "default"; *at != '\0'; at++)
            (void)fputc(weir__harmless(*at), memory);
        (void)fputs("\" configuration\n", memory);
        (void)print_options(config, memory);
        /* stderr has no buffer, so one call is one piece between the lines of other threads. */
        if (fclose(memory) == 0)
            (void)fwrite(text, 1, length, stderr);
        free(text);
    }
    errno = saved_errno;
}
