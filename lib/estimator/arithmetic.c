/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Arithmetic that has to come out as it does on a Java virtual machine, whatever C leaves open. */

#include "estimator/estimator.h"

#include <math.h>

int32_t weir__trunc32(double x)
{
    if (isnan(x))
        return 0;
    if (x >= 2147483647.0)
        return INT32_MAX;
    if (x <= -2147483648.0)
        return INT32_MIN;
    return (int32_t)x;
}

uint64_t weir__trunc_u64(double x)
{
    if (!(x > 0))
        return 0;
    if (x >= 0x1p64)
        return UINT64_MAX;
    return (uint64_t)x;
}

double weir__dmin(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? a : b;
    return a < b ? a : b;
}

double weir__dmax(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    if (a == b)
        return signbit(a) ? b : a;
    return a > b ? a : b;
}

uint64_t weir__add_u64(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* By counting digits: log10 of a C library need not be exact at the powers of ten. */
int32_t weir__root10(int32_t t)
{
    int32_t root = 0;
    for (; t >= 10; t /= 10)
        root++;
    return root < 1 ? 1 : root;
}

int32_t weir__root2(int32_t t)
{
    return t < 1 ? 1 : (int32_t)sqrt(t);
}

int32_t weir__constant(int32_t limit, int32_t argument)
{
    (void)limit;
    return argument;
}

int32_t weir__times_root10(int32_t limit, int32_t factor)
{
    return factor * weir__root10(limit);
}

int32_t weir__root2_or_more(int32_t limit, int32_t least)
{
    int32_t root = weir__root2(limit);
    return root < least ? least : root;
}

double weir__plus_root10(double estimate, double factor)
{
    return estimate + factor * weir__root10(weir__trunc32(estimate));
}

void weir__average_init(struct weir__average *average, uint32_t window, uint32_t warmup)
{
    *average = (struct weir__average){.divisor = (double)window + 1, .warmup = warmup};
}

double weir__average_add(struct weir__average *average, double x)
{
    if (average->count < average->warmup) {
        average->count++;
        average->sum = average->sum + x;
        average->value = average->sum / average->count;
        return average->value;
    }
    double factor = 2.0 / average->divisor;
    average->value = (average->value * (1 - factor)) + (x * factor);
    return average->value;
}
