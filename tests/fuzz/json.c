/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <string.h>

/* Each function moves *at behind what it names and says whether that was there. */

static void skip_space(const char **at)
{
    *at += strspn(*at, " \n\r\t");
}

static bool take(const char **at, char c)
{
    skip_space(at);
    if (**at != c)
        return false;
    ++*at;
    return true;
}

static bool take_string(const char **at)
{
    if (!take(at, '"'))
        return false;
    for (; **at != '"'; ++*at) {
        if ((unsigned char)**at < 0x20)
            return false;
        if (**at == '\\' && strchr("\"\\/bfnrt", *++*at) == NULL)
            return false;
    }
    ++*at;
    return true;
}

/* As the library writes them: no sign, no exponent. */
static bool take_number(const char **at)
{
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || (**at == '0' && digits > 1))
        return false;
    *at += digits;
    if (**at != '.')
        return true;
    digits = strspn(++*at, "0123456789");
    *at += digits;
    return digits != 0;
}

static bool take_value(const char **at, int depth);

static bool take_members(const char **at, int depth, char end)
{
    if (take(at, end))
        return true;
    do {
        if (end == '}' && (!take_string(at) || !take(at, ':')))
            return false;
        if (!take_value(at, depth))
            return false;
    } while (take(at, ','));
    return take(at, end);
}

static bool take_value(const char **at, int depth)
{
    skip_space(at);
    if (depth == 0)
        return false;
    if (take(at, '{'))
        return take_members(at, depth - 1, '}');
    if (take(at, '['))
        return take_members(at, depth - 1, ']');
    return **at == '"' ? take_string(at) : take_number(at);
}

bool json_is_valid(const char *text)
{
    bool valid = take_value(&text, 8);
    skip_space(&text);
    return valid && *text == '\0';
}
