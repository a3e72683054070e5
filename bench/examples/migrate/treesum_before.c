/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* treesum THREADS DIRECTORY: a checksum of each file in a tree, sorted by
 * name, and the totals. Files and directories are read by the threads of
 * a pool. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <thpool.h>

struct entry {
    char *name;
    uint64_t bytes;
    uint64_t checksum;
};

/* What all jobs work on. */
static struct {
    threadpool pool;
    pthread_mutex_t mutex;
    struct entry *entries; /* guarded by mutex */
    size_t count;          /* guarded by mutex */
    size_t capacity;       /* guarded by mutex */
    int failures;          /* guarded by mutex */
} sum = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void fail(const char *name, int error)
{
    fprintf(stderr, "treesum: %s: %s\n", name, strerror(error));
    (void)pthread_mutex_lock(&sum.mutex);
    sum.failures++;
    (void)pthread_mutex_unlock(&sum.mutex);
}

/* ---- results ---- */

/* Keeps name from then on. */
static int append(char *name, uint64_t bytes, uint64_t checksum)
{
    int error = 0;
    (void)pthread_mutex_lock(&sum.mutex);
    if (sum.count == sum.capacity) {
        size_t capacity = sum.capacity != 0 ? 2 * sum.capacity : 64;
        struct entry *entries =
            realloc(sum.entries, capacity * sizeof *entries);
        if (entries != NULL) {
            sum.entries = entries;
            sum.capacity = capacity;
        } else {
            error = ENOMEM;
        }
    }
    if (error == 0)
        sum.entries[sum.count++] = (struct entry){name, bytes, checksum};
    (void)pthread_mutex_unlock(&sum.mutex);
    return error;
}

static int by_name(const void *a, const void *b)
{
    const struct entry *left = a;
    const struct entry *right = b;
    return strcmp(left->name, right->name);
}

/* When no job is left. */
static void print(void)
{
    uint64_t bytes = 0;
    uint64_t checksum = 0;
    if (sum.count != 0)
        qsort(sum.entries, sum.count, sizeof *sum.entries, by_name);
    for (size_t i = 0; i < sum.count; i++) {
        const struct entry *entry = &sum.entries[i];
        printf("%016llx %10llu %s\n", (unsigned long long)entry->checksum,
               (unsigned long long)entry->bytes, entry->name);
        bytes += entry->bytes;
        checksum ^= entry->checksum;
    }
    printf("%016llx %10llu bytes in %zu files, %d failed\n",
           (unsigned long long)checksum, (unsigned long long)bytes,
           sum.count, sum.failures);
}

static void free_entries(void)
{
    for (size_t i = 0; i < sum.count; i++)
        free(sum.entries[i].name);
    free(sum.entries);
}

/* ---- jobs ---- */

/* FNV-1a, of 64 bits. */
static uint64_t mix(uint64_t checksum, const unsigned char *bytes,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        checksum = (checksum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return checksum;
}

static void sum_file(void *arg)
{
    char *name = arg;
    unsigned char block[16384];
    uint64_t checksum = UINT64_C(0xcbf29ce484222325);
    uint64_t bytes = 0;
    int error = 0;
    FILE *file = fopen(name, "rb");
    if (file == NULL) {
        fail(name, errno);
        free(name);
        return;
    }
    for (;;) {
        size_t count = fread(block, 1, sizeof block, file);
        if (count == 0)
            break;
        checksum = mix(checksum, block, count);
        bytes += count;
    }
    if (ferror(file))
        error = EIO;
    (void)fclose(file);
    if (error == 0)
        error = append(name, bytes, checksum);
    if (error != 0) {
        fail(name, error);
        free(name);
    }
}

static void read_directory(void *arg);

/* Files and directories become jobs, anything else is left out. */
static void add(char *name)
{
    struct stat status;
    void (*job)(void *) = NULL;
    if (lstat(name, &status) != 0)
        fail(name, errno);
    else if (S_ISREG(status.st_mode))
        job = sum_file;
    else if (S_ISDIR(status.st_mode))
        job = read_directory;
    if (job == NULL) {
        free(name);
    } else if (thpool_add_work(sum.pool, job, name) != 0) {
        fail(name, ENOMEM);
        free(name);
    }
}

static char *join(const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *joined = malloc(size);
    if (joined != NULL)
        (void)snprintf(joined, size, "%s/%s", directory, name);
    return joined;
}

static void read_directory(void *arg)
{
    char *name = arg;
    DIR *directory = opendir(name);
    if (directory == NULL) {
        fail(name, errno);
        free(name);
        return;
    }
    for (;;) {
        const struct dirent *entry = readdir(directory);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") == 0 ||
            strcmp(entry->d_name, "..") == 0)
            continue;
        char *path = join(name, entry->d_name);
        if (path != NULL)
            add(path);
        else
            fail(entry->d_name, ENOMEM);
    }
    (void)closedir(directory);
    free(name);
}

/* ---- the program ---- */

int main(int argc, char **argv)
{
    int threads = argc == 3 ? atoi(argv[1]) : 0;
    if (threads < 1) {
        fprintf(stderr, "usage: treesum THREADS DIRECTORY\n");
        return 2;
    }
    sum.pool = thpool_init(threads);
    if (sum.pool == NULL) {
        fprintf(stderr, "treesum: no pool\n");
        return 1;
    }
    char *root = strdup(argv[2]);
    if (root != NULL)
        add(root);
    else
        fail(argv[2], ENOMEM);
    thpool_wait(sum.pool);
    print();
    thpool_destroy(sum.pool);
    free_entries();
    return sum.failures == 0 ? 0 : 1;
}
