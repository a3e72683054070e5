/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_SUITE_H
#define WEIR_TESTS_SUITE_H

/* Groups of tests with a time limit, and loops whose length can be cut down. */

#include <check.h>
#include <stdlib.h>

/* How often a loop runs: rounds, divided by WEIR_TEST_SLOW where a sanitizer or valgrind makes everything slow. */
static inline unsigned weir_test_scaled(unsigned rounds)
{
    const char *given = getenv("WEIR_TEST_SLOW");
    unsigned long divisor = given != NULL ? strtoul(given, NULL, 10) : 1;
    if (divisor <= 1)
        return rounds;
    return rounds / divisor > 0 ? (unsigned)(rounds / divisor) : 1;
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
