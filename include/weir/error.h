/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every function of the library that can fail returns 0 or a positive errno value and leaves errno alone.
 *
 * Words for such a value in the library's own terms: EAGAIN is "shed: the ceiling is reached", ESHUTDOWN "the pool
 * has been shut down". Values the library never returns are worded as "unknown error". The string is constant.
 * MT-Safe, async-signal-safe. */
WEIR_API const char *weir_strerror(int error);

#ifdef __cplusplus
}
#endif
#endif
