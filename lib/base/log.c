/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"

/* Function and argument belong together, so they change under one lock; it is never held while the function runs. */
static pthread_mutex_t sink_mutex = PTHREAD_MUTEX_INITIALIZER;
static weir_log_fn *sink; /* guarded by sink_mutex */
static void *sink_arg;    /* guarded by sink_mutex */

void weir_set_log(weir_log_fn *log, void *arg)
{
    WEIR__MUST(pthread_mutex_lock(&sink_mutex));
    sink = log;
    sink_arg = arg;
    WEIR__MUST(pthread_mutex_unlock(&sink_mutex));
}

void weir__log(uint32_t threshold, weir_log_level level, const char *format, ...)
{
    if ((uint32_t)level > threshold)
        return;
    int saved_errno = errno;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    for (char *at = line; *at != '\0'; at++)
        *at = weir__harmless(*at);

    WEIR__MUST(pthread_mutex_lock(&sink_mutex));
    weir_log_fn *log = sink;
    void *arg = sink_arg;
    WEIR__MUST(pthread_mutex_unlock(&sink_mutex));
    int cancel = weir__cancel_forbid();
    if (log != NULL)
        log(level, line, arg);
    else
        (void)fprintf(stderr, "weir: %s\n", line);
    weir__cancel_restore(cancel);
    errno = saved_errno;
}

void weir__log_before_fork(void)
{
    WEIR__MUST(pthread_mutex_lock(&sink_mutex));
}

void weir__log_after_fork(void)
{
    WEIR__MUST(pthread_mutex_unlock(&sink_mutex));
}
