/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "common.h"

int thread_start(pthread_t *thread, void *(*function)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, function, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
