/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_SANITIZED_H
#define WEIR_TESTS_SANITIZED_H

/* Which sanitizers this program was compiled for, by gcc's names and by clang's. */

#include <stdbool.h>

#ifndef __has_feature
#define __has_feature(feature_) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
enum { IS_THREAD_SANITIZED = true };
#else
enum { IS_THREAD_SANITIZED = false };
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = IS_THREAD_SANITIZED };
#endif

#endif
