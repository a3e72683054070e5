/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/base.h"

void *weir__allocate(size_t size)
{
    int saved_errno = errno;
    void *memory = calloc(1, size);
    errno = saved_errno;
    return memory;
}

#ifdef MAP_ANONYMOUS
void *weir__allocate_pages(size_t size)
{
    int saved_errno = errno;
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory != MAP_FAILED ? memory : NULL;
}

void weir__free_pages(void *memory, size_t size)
{
    int saved_errno = errno;
    if (memory != NULL)
        (void)munmap(memory, size);
    errno = saved_errno;
}
#else
void *weir__allocate_pages(size_t size)
{
    return weir__allocate(size);
}

void weir__free_pages(void *memory, size_t size)
{
    (void)size;
    free(memory);
}
#endif
