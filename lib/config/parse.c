/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "config/config.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define UNITS_WANTED "a duration needs a unit"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits; *end is behind them. False: there are none, or they do not fit. */
static bool parse_digits(const char *text, const char **end, uint64_t *number)
{
    const char *at = text;
    uint64_t sum = 0;
    for (; is_digit(*at); at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *end = at;
    *number = sum;
    return at != text;
}

/* Adds the digits behind the point, in units of unit ns. Exact: a digit that is no whole number of ns is refused. */
static bool parse_fraction(const char *text, const char **end, uint64_t unit, uint64_t *number)
{
    const char *at = text;
    uint64_t tenths = unit;
    bool finest = false;
    for (; is_digit(*at); at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (digit != 0 && (finest || tenths * digit % 10 != 0 || *number > UINT64_MAX - tenths * digit / 10))
            return false;
        if (!finest)
            *number += tenths * digit / 10;
        finest = finest || tenths % 10 != 0;
        tenths /= 10;
    }
    *end = at;
    return at != text;
}

static uint64_t unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ns", 1},
                 {"us", UINT64_C(1000)},
                 {"ms", UINT64_C(1000000)},
                 {"s", UINT64_C(1000000000)},
                 {"m", UINT64_C(60000000000)}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ns;
    return 0;
}

/* Digits, perhaps a point and more digits, a unit. 0 is the same in all units and needs none. */
static const char *parse_duration(const char *text, uint64_t *ns)
{
    const char *end;
    if (!parse_digits(text, &end, ns))
        return "";
    if (*end == '\0')
        return *ns == 0 ? NULL : UNITS_WANTED;
    const char *point = *end == '.' ? end : NULL;
    const char *suffix = end;
    if (point != NULL)
        for (suffix++; is_digit(*suffix);)
            suffix++;
    uint64_t unit = unit_ns(suffix);
    if (unit == 0)
        return UNITS_WANTED;
    if (*ns > UINT64_MAX / unit)
        return "";
    *ns *= unit;
    if (point != NULL && !parse_fraction(point + 1, &end, unit, ns))
        return "not a whole number of ns";
    return NULL;
}

static const char *parse_size(const char *text, uint64_t *bytes)
{
    const char *end;
    if (!parse_digits(text, &end, bytes))
        return "";
    unsigned shift = 0;
    if (*end == 'K')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    if (shift != 0)
        end++;
    if (*end != '\0' || *bytes > UINT64_MAX >> shift)
        return "";
    *bytes <<= shift;
    return NULL;
}

/* Digits with a point among them, of which double holds all as a whole number, and so the power of ten to divide by:
 * the quotient is the nearest number there is. */
static double parse_short_real(const char *text, size_t length)
{
    double digits = 0;
    double divisor = 1;
    bool is_fraction = false;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i])) {
            is_fraction = true;
            continue;
        }
        digits = digits * 10 + (text[i] - '0');
        if (is_fraction)
            divisor *= 10;
    }
    return digits / divisor;
}

/* strtod rounds correctly but wants the locale's point, which no thread-safe call tells; printing shows it. */
static bool parse_long_real(const char *text, size_t length, size_t whole, double *value)
{
    char probe[16];
    char number[WEIR__VALUE_SIZE];
    size_t fraction = whole < length ? whole + 1 : whole;
    int probed = snprintf(probe, sizeof probe, "%.1f", 0.5);
    if (probed < 3 || probed >= (int)sizeof probe)
        return false;
    int printed = snprintf(number, sizeof number, "%.*s%.*s%.*s", (int)whole, text, whole < length ? probed - 2 : 0,
                           probe + 1, (int)(length - fraction), text + fraction);
    if (length >= sizeof number || printed < 0 || printed >= (int)sizeof number)
        return false;
    int saved_errno = errno;
    char *rest;
    *value = strtod(number, &rest);
    errno = saved_errno;
    return *rest == '\0';
}

bool weir__parse_real(const char *text, size_t length, double *value)
{
    enum { SHORT = 16 }; /* 15 digits and the point; with x87 a quotient is rounded twice */
    size_t whole = 0;
    while (whole < length && is_digit(text[whole]))
        whole++;
    size_t fraction = whole < length ? whole + 1 : whole;
    size_t end = fraction;
    while (end < length && is_digit(text[end]))
        end++;
    if (whole == 0 || end != length || (whole < length && (text[whole] != '.' || end == fraction)))
        return false;

    if (length > SHORT || (length == SHORT && whole == length) || FLT_EVAL_METHOD != 0)
        return parse_long_real(text, length, whole, value);
    *value = parse_short_real(text, length);
    return true;
}

static bool is_name_character(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-';
}

static bool appears_before(const char *list, const char *name, size_t length)
{
    for (const char *at = list; at < name; at = strchr(at, ',') + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return true;
    return false;
}

/* One walk, entry by entry. The sum has a tolerance: ten shares of 0.1 are a whole in the user's eyes. */
static const char *check_shares(const char *list)
{
    double sum = 0.0;
    const char *at = list;
    for (;;) {
        size_t name = 0;
        while (is_name_character(at[name]))
            name++;
        if (name == 0 || at[name] != '=')
            return "";
        if (appears_before(list, at, name))
            return "a name appears twice";
        size_t share_length = strcspn(at + name + 1, ",");
        double share;
        if (!weir__parse_real(at + name + 1, share_length, &share) || !(share <= 1.0))
            return "a share is not a number from 0 to 1";
        sum += share;
        at += name + 1 + share_length;
        if (*at == '\0')
            break;
        at++;
    }
    return sum <= 1.0 + 1e-9 ? NULL : "the shares are above 1 in sum";
}

static bool number_in_range(const struct weir__option *option, uint64_t number)
{
    return number >= weir__option_least(option) && number <= option->most;
}

static bool real_in_range(const struct weir__option *option, double real)
{
    bool low_enough = option->below_high ? real < option->high : real <= option->high;
    return low_enough && (option->above_low ? real > option->low : real >= option->low);
}

const char *weir__option_check(const struct weir__option *option, struct weir__value value)
{
    bool is_real = option->type == WEIR__OPTION_DOUBLE;
    for (const struct weir__option_word *word = option->words; word != NULL && word->word != NULL; word++)
        if (is_real ? word->real == value.real || (isnan(word->real) && isnan(value.real))
                    : word->number == value.number)
            return NULL;
    if (option->type == WEIR__OPTION_CHOICE)
        return "";
    return (is_real ? real_in_range(option, value.real) : number_in_range(option, value.number)) ? NULL : "";
}

/* Digits must not reach the values that words such as "auto" stand for, except 0. */
static const char *check_digits(const struct weir__option *option, struct weir__value value)
{
    bool is_real = option->type == WEIR__OPTION_DOUBLE;
    if (is_real ? value.real == 0.0 : value.number == 0)
        return weir__option_check(option, value);
    return (is_real ? real_in_range(option, value.real) : number_in_range(option, value.number)) ? NULL : "";
}

static const struct weir__option_word *find_word(const struct weir__option *option, const char *text)
{
    for (const struct weir__option_word *word = option->words; word != NULL && word->word != NULL; word++)
        if (strcmp(word->word, text) == 0)
            return word;
    return NULL;
}

const char *weir__option_parse(const struct weir__option *option, const char *text, struct weir__value *value)
{
    if (strcmp(text, "default") == 0)
        text = option->default_value;
    *value = (struct weir__value){0};
    const struct weir__option_word *word = find_word(option, text);
    if (word != NULL) {
        value->number = word->number;
        value->real = word->real;
        return word->program_only ? "only the program can choose it" : NULL;
    }

    const char *end;
    const char *reason = NULL;
    switch (option->type) {
    case WEIR__OPTION_U32:
        reason = parse_digits(text, &end, &value->number) && *end == '\0' ? NULL : "";
        break;
    case WEIR__OPTION_DURATION:
        reason = parse_duration(text, &value->number);
        break;
    case WEIR__OPTION_SIZE:
        reason = parse_size(text, &value->number);
        break;
    case WEIR__OPTION_DOUBLE:
        reason = weir__parse_real(text, strlen(text), &value->real) ? NULL : "";
        break;
    case WEIR__OPTION_CHOICE:
        return "";
    case WEIR__OPTION_DIRECTORY:
        value->text = text;
        return text[0] != '\0' ? NULL : "";
    case WEIR__OPTION_SHARES:
        value->text = text;
        return check_shares(text);
    }
    return reason != NULL ? reason : check_digits(option, *value);
}

int weir_config_set(weir_config *config, const char *name, const char *text)
{
    if (config == NULL || name == NULL || text == NULL)
        return EINVAL;
    weir_config full;
    int error = weir__config_import(&full, config);
    if (error != 0)
        return error;
    uint32_t threshold = weir__config_threshold(&full);
    const struct weir__option *option = weir__option_find(name, strlen(name));
    if (option == NULL || option->offset + weir__option_width(option) > config->size) {
        weir__log(threshold, WEIR_LOG_ERROR, "there is no option \"%.64s\"%s", name,
                  option != NULL ? " in the version that the program was built with" : "");
        return EINVAL;
    }
    struct weir__value value;
    const char *reason = weir__option_parse(option, text, &value);
    if (reason != NULL) {
        weir__option_refuse(threshold, option->name, text, option, reason);
        return EINVAL;
    }
    weir__option_store(option, &full, value);
    weir__origin_put(&full, option, strcmp(text, "default") == 0 ? WEIR__ORIGIN_NONE : WEIR__ORIGIN_SET);
    weir__config_give_back(config, &full);
    return 0;
}
