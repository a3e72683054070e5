/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_SUITE_H
#define WEIR_TESTS_SUITE_H

/* Groups of tests with a time limit, and loops whose length can be cut down. */

#include <check.h>

#include "support.h"

/* How often a loop runs: rounds divided by weir_test_slow, at least 1. */
static inline unsigned weir_test_scaled(unsigned rounds)
{
    unsigned scaled = rounds / weir_test_slow();
    return scaled > 0 ? scaled : 1;
}

/* Adds tests, up to a NULL, under one name; each may take a minute, for none is about speed. */
static inline void weir_test_add_group(Suite *suite, const char *name, const TTest *const *tests)
{
    TCase *group = tcase_create(name);
    tcase_set_timeout(group, 60);
    for (; *tests != NULL; tests++)
        tcase_add_test(group, *tests);
    suite_add_tcase(suite, group);
}

#endif
