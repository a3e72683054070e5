/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"

void *weir__allocate(size_t size)
{
    int saved_errno = errno;
    void *memory = calloc(1, size);
    errno = saved_errno;
    return memory;
}
