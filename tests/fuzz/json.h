/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_FUZZ_JSON_H
#define WEIR_TESTS_FUZZ_JSON_H

#include <stdbool.h>

/* Whether text is one JSON value of the kinds that the library writes: objects, arrays, strings, plain numbers. */
bool json_is_valid(const char *text);

#endif
