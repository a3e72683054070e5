/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_CONFIG_SUPPORT_H
#define WEIR_TESTS_CONFIG_SUPPORT_H

/* What the tests of the configuration have in common. */

#include "config/config.h"
#include "support.h"

#define COUNT(array_) (sizeof(array_) / sizeof(array_)[0])

/* Fixtures: no WEIR_ variable of the caller's environment takes part, and the log is captured. */
void weir_test_clear_environment(void);
void weir_test_release_environment(void);

/* weir_config_init, asserted. */
weir_config weir_test_defaults(void);

/* The log since the capture began contains part. */
void weir_test_assert_logged(const char *part);

/* What weir_config_print prints, to be freed; and that one line of it reads like this. */
char *weir_test_printed(const weir_config *config);
void weir_test_assert_printed(const weir_config *config, const char *name, const char *value, const char *origin);

#endif
