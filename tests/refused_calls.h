/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_REFUSED_CALLS_H
#define WEIR_TESTS_REFUSED_CALLS_H

/* open, openat and fcntl in the place of the system's, for programs that the linker wraps them in. */

#include <stdbool.h>

/* The program says whether the call that is made now fails, and has set errno then. */
bool weir_test_refuses(void);

#endif
