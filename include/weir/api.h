/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_H
#define WEIR_API_H

/* Marks what the shared library exports; everything else in it is hidden. */
#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#else
#define WEIR_API
#endif

/* A job that was refused is lost where nobody looks at the answer, so compilers warn of that: those that let a cast to
 * void say that it is meant. gcc does so from C++17 and C23 on. */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define WEIR_MUST_CHECK [[nodiscard]]
#elif defined(__clang__)
#define WEIR_MUST_CHECK __attribute__((__warn_unused_result__))
#else
#define WEIR_MUST_CHECK
#endif

#endif
