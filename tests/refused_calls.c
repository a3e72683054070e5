/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "refused_calls.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>

int __real_open(const char *path, int flags, mode_t mode);
int __real_openat(int directory, const char *path, int flags, mode_t mode);
int __real_fcntl(int descriptor, int command, void *arg);

int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return weir_test_refuses() ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return weir_test_refuses() ? -1 : __real_openat(directory, path, flags, mode);
}

/* The library calls it with pointers only. */
int __wrap_fcntl(int descriptor, int command, ...);
int __wrap_fcntl(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void *arg = va_arg(arguments, void *);
    va_end(arguments);
    return weir_test_refuses() ? -1 : __real_fcntl(descriptor, command, arg);
}
