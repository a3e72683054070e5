/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

/* Signals that report a fault of the very instruction that raised them stay deliverable: blocking them would turn a
 * crash with a handler and a core into a silent kill. Everything else belongs to the program's own threads. */
static void asynchronous_signals(sigset_t *set)
{
    static const int synchronous[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    (void)sigfillset(set);
    for (size_t i = 0; i < sizeof synchronous / sizeof synchronous[0]; i++)
        (void)sigdelset(set, synchronous[i]);
}

uint64_t weir__thread_least_stack(void)
{
    /* PTHREAD_STACK_MIN may be a system call and too small for a signal frame plus printf. */
    long least = PTHREAD_STACK_MIN;
    return least > 65536 ? (uint64_t)least : UINT64_C(65536);
}

int weir__thread_start(pthread_t *thread, uint64_t stack_size, void *(*run)(void *), void *arg)
{
    int saved_errno = errno;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    if (stack_size != 0) {
        long page = sysconf(_SC_PAGESIZE);
        uint64_t mask = page > 0 ? (uint64_t)page - 1 : 4095;
        error = pthread_attr_setstacksize(&attributes, (size_t)((stack_size + mask) & ~mask));
    }
    if (error == 0) {
        sigset_t blocked;
        sigset_t before;
        asynchronous_signals(&blocked);
        /* Set before the start, so that no instruction of the new thread takes a signal. */
        WEIR__MUST(pthread_sigmask(SIG_BLOCK, &blocked, &before));
        error = pthread_create(thread, &attributes, run, arg);
        WEIR__DELAY();
        WEIR__MUST(pthread_sigmask(SIG_SETMASK, &before, NULL));
    }
    WEIR__MUST(pthread_attr_destroy(&attributes));
    errno = saved_errno;
    return error;
}

void weir__thread_set_name(const char *name, unsigned index)
{
#ifdef HAVE_PTHREAD_SETNAME_NP
    char suffix[12];
    char text[16]; /* the kernel keeps 15 bytes */
    int length = snprintf(suffix, sizeof suffix, "/%u", index);
    if (length < 0 || length > 15)
        return;
    (void)snprintf(text, sizeof text, "%.*s%s", 15 - length, name, suffix);
    (void)pthread_setname_np(pthread_self(), text); /* a name is a convenience */
#else
    (void)name;
    (void)index;
#endif
}
