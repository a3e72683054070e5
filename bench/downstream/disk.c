/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Random reads of a file past the page cache: the right number is the depth that the device works at. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "downstream.h"

enum { QUIET, NEIGHBOUR };

#define BLOCK      4096u
#define FILE_SIZE  (512ull << 20)
#define CHUNK      (1u << 20)
#define NEIGHBOURS 4

static int file = -1;
static size_t current;
static pthread_t neighbours[NEIGHBOURS];
static unsigned neighbour_count;
static atomic_bool neighbours_stop;

static _Thread_local void *own; /* a buffer */

static void worker_start(void)
{
    if (posix_memalign(&own, BLOCK, BLOCK) != 0)
        own = NULL;
}

static void worker_stop(void)
{
    free(own);
    own = NULL;
}

static enum ending call(uint64_t random)
{
    off_t offset = (off_t)((random >> 8) % (FILE_SIZE / BLOCK) * BLOCK);
    return own != NULL && pread(file, own, BLOCK, offset) == BLOCK ? ENDED_WELL : ENDED_REFUSED;
}

/* A second reader, of a whole chunk at a time. */
static void *read_chunks(void *unused)
{
    (void)unused;
    void *buffer;
    uint64_t random = 3;
    if (posix_memalign(&buffer, BLOCK, CHUNK) != 0)
        return NULL;
    while (!atomic_load(&neighbours_stop)) {
        uint64_t chunk = (uint64_t)(random_uniform(&random) * (double)(FILE_SIZE / CHUNK));
        if (pread(file, buffer, CHUNK, (off_t)(chunk * CHUNK)) != (ssize_t)CHUNK)
            break;
    }
    free(buffer);
    return NULL;
}

static int enter(size_t phase)
{
    if (phase == current)
        return 0;
    current = phase;
    atomic_store(&neighbours_stop, phase != NEIGHBOUR);
    if (phase != NEIGHBOUR) {
        while (neighbour_count > 0)
            pthread_join(neighbours[--neighbour_count], NULL);
        return 0;
    }
    while (neighbour_count < NEIGHBOURS) {
        int error = pthread_create(&neighbours[neighbour_count], NULL, read_chunks, NULL);
        if (error != 0)
            return bench_complain("disk", strerror(error));
        neighbour_count++;
    }
    return 0;
}

/* What can be read back as zeros without reading would not ask the device. */
static int write_file(void)
{
    uint64_t random = 1;
    uint64_t *buffer = malloc(CHUNK);
    int error = buffer == NULL ? ENOMEM : 0;
    for (uint64_t at = 0; at < FILE_SIZE && error == 0; at += CHUNK) {
        for (size_t i = 0; i < CHUNK / sizeof *buffer; i++)
            buffer[i] = random = random * 6364136223846793005u + 1442695040888963407u;
        if (pwrite(file, buffer, CHUNK, (off_t)at) != (ssize_t)CHUNK)
            error = errno;
        else if (interrupted())
            error = EINTR;
    }
    free(buffer);
    if (error == 0 && fsync(file) != 0)
        error = errno;
    return error == 0 || error == EINTR ? error : bench_complain("disk: the file", strerror(error));
}

static int start(const struct place *place)
{
    char path[160];
    struct statvfs space;
    snprintf(path, sizeof path, "%s/file", place->path);
    if (statvfs(place->path, &space) == 0 && (uint64_t)space.f_bavail * space.f_frsize < 2 * FILE_SIZE) {
        printf("disk: skipped: less than 1 GB is free in %s\n", place->path);
        return ENOTSUP;
    }
    file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int error = file < 0 ? bench_complain(path, strerror(errno)) : write_file();
    if (error != 0)
        return error;
    close(file);
    file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file >= 0)
        return 0;
    printf("disk: skipped: the file system of %s has no O_DIRECT; TMPDIR takes another\n", place->path);
    return ENOTSUP;
}

static void stop(void)
{
    enter(QUIET);
    if (file >= 0)
        close(file);
    file = -1;
}

struct part part_disk = {
    .name = "disk",
    .title = "O_DIRECT random reads of 4 KiB, a file of 512 MiB",
    .widest = 256,
    .seconds = 8,
    .phase_count = 2,
    .phases =
        {
            [QUIET] = {.name = "quiet"},
            [NEIGHBOUR] = {.name = "four readers of 1 MiB blocks"},
        },
    .start = start,
    .enter = enter,
    .stop = stop,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .call = call,
};
