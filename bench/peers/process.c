/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "peers.h"

static double nanoseconds(const struct timeval *time)
{
    return (double)time->tv_sec * 1e9 + (double)time->tv_usec * 1e3;
}

struct usage usage_now(void)
{
    struct rusage self;
    (void)getrusage(RUSAGE_SELF, &self);
    return (struct usage){.cpu_ns = nanoseconds(&self.ru_utime) + nanoseconds(&self.ru_stime),
                          .switches = (double)self.ru_nvcsw + (double)self.ru_nivcsw,
                          .at_ns = now_ns()};
}

double resident_bytes(void)
{
    unsigned long total = 0;
    unsigned long resident = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    if (statm != NULL) {
        if (fscanf(statm, "%lu %lu", &total, &resident) != 2)
            resident = 0;
        (void)fclose(statm);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

unsigned thread_count(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return 0;
    for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks))
        count += entry->d_name[0] != '.' ? 1 : 0;
    (void)closedir(tasks);
    return count;
}

/* ---- allocations, counted by standing before the C library's ---- */

static atomic_bool counting;
static atomic_uint_fast64_t counted;

void count_mallocs(bool on)
{
    atomic_store(&counting, on);
}

uint64_t mallocs_counted(void)
{
    return atomic_load(&counted);
}

static void count(void)
{
    /* relaxed: a count, read when the threads are at rest */
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
}

#ifdef __GLIBC__
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size)
{
    count();
    return __libc_calloc(number, size);
}
#endif
