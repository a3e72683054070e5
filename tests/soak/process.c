/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "soak.h"

static uint64_t status_line(const char *name)
{
    char line[256];
    unsigned long long value = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            (void)sscanf(line + strlen(name), "%llu", &value);
    }
    (void)fclose(file);
    return value;
}

uint64_t process_rss_kib(void)
{
    return status_line("VmRSS:");
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
uint64_t process_heap_kib(void)
{
    return mallinfo2().uordblks / 1024;
}
#else
uint64_t process_heap_kib(void)
{
    return 0;
}
#endif

unsigned process_threads(void)
{
    return (unsigned)status_line("Threads:");
}

unsigned process_descriptors(void)
{
    unsigned count = 0;
    DIR *stream = opendir("/proc/self/fd");
    if (stream == NULL)
        return 0;
    while (readdir(stream) != NULL)
        count++;
    (void)closedir(stream);
    return count;
}
