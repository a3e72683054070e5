/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "common.h"

enum options_result option_refuse(const char *option, const char *value, const char *wanted)
{
    fprintf(stderr, "%s: %s: \"%s\" is not %s\n", bench_name, option, value, wanted);
    return OPTIONS_BAD;
}

bool option_number(const char *text, double low, double high, double *number)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(value) || value < low || value > high)
        return false;
    *number = value;
    return true;
}

bool option_whole(const char *text, unsigned low, unsigned high, unsigned *number)
{
    double value;
    if (!option_number(text, low, high, &value) || value != floor(value))
        return false;
    *number = (unsigned)value;
    return true;
}
