/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include <weir/api.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_log_level {
    WEIR_LOG_OFF = 0,
    WEIR_LOG_ERROR = 1,
    WEIR_LOG_WARN = 2,
    WEIR_LOG_INFO = 3
} weir_log_level;

/* Receives one line without a newline. It is never called under a lock of the library, and it may be called by any
 * thread, several at a time. */
typedef void weir_log_fn(weir_log_level level, const char *message, void *arg);

/* Sends the log lines of the whole process to log(…, arg) instead of stderr; NULL goes back to stderr. Call it before
 * the first pool is created: lines written by other threads during the call may still take the old way. MT-Safe. */
WEIR_API void weir_set_log(weir_log_fn *log, void *arg);

#ifdef __cplusplus
}
#endif
#endif
