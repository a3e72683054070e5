/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "weirstat.h"

/* Three digits, and the unit. */
static const char *three_digits(double value, const char *unit, char buffer[NUMBER_SIZE])
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)snprintf(buffer, NUMBER_SIZE, "%.*f%s", decimals, value, unit);
    return buffer;
}

const char *format_ns(uint64_t ns, char buffer[NUMBER_SIZE])
{
    double value = (double)ns;
    unsigned minutes = (unsigned)(ns / UINT64_C(60000000000) % 60);
    uint64_t hours = ns / UINT64_C(3600000000000);
    if (ns == 0)
        (void)snprintf(buffer, NUMBER_SIZE, "-");
    else if (value < 999.5e3)
        return three_digits(value / 1e3, "us", buffer);
    else if (value < 999.5e6)
        return three_digits(value / 1e6, "ms", buffer);
    else if (value < 99.95e9)
        return three_digits(value / 1e9, "s", buffer);
    else if (hours == 0)
        (void)snprintf(buffer, NUMBER_SIZE, "%um%02us", minutes, (unsigned)(ns / 1000000000 % 60));
    else if (hours < 100)
        (void)snprintf(buffer, NUMBER_SIZE, "%uh%02um", (unsigned)hours, minutes);
    else
        (void)snprintf(buffer, NUMBER_SIZE, "%ud", (unsigned)(hours / 24));
    return buffer;
}

uint64_t whole_ns(double ns)
{
    if (!(ns > 0))
        return 0;
    return ns < 0x1p64 ? (uint64_t)ns : UINT64_MAX;
}

const char *format_count(double count, char buffer[NUMBER_SIZE])
{
    if (count < 9999.5)
        (void)snprintf(buffer, NUMBER_SIZE, "%.0f", count);
    else if (count < 999.5e3)
        return three_digits(count / 1e3, "k", buffer);
    else if (count < 999.5e6)
        return three_digits(count / 1e6, "M", buffer);
    else
        return three_digits(count / 1e9, "G", buffer);
    return buffer;
}

const char *format_name(const char *name, size_t width, char *buffer)
{
    size_t i = 0;
    for (; i < width && name[i] != '\0'; i++)
        buffer[i] = (char)(name[i] >= 0x20 && name[i] < 0x7f ? name[i] : '?');
    buffer[i] = '\0';
    return buffer;
}
