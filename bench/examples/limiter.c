/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <weir.h>

static weir_limiter *disk;

/* A thread that the program has anyway: it asks before each call to the
 * disk. */
static void *write_records(void *arg)
{
    FILE *file = tmpfile();
    (void)arg;
    for (int i = 0; i < 10 && file != NULL; i++) {
        weir_permit permit;
        if (weir_limiter_acquire(disk, &permit) != 0)
            break;
        bool written = fprintf(file, "record %d\n", i) > 0 &&
                       fflush(file) == 0 && fsync(fileno(file)) == 0;
        weir_limiter_release(disk, &permit,
                             written ? WEIR_SUCCESS : WEIR_DROPPED);
    }
    if (file != NULL)
        fclose(file);
    return NULL;
}

int main(void)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    int started = 0;
    int error = weir_limiter_create(&disk, "disk", NULL);
    if (error != 0) {
        fprintf(stderr, "disk: %s\n", weir_strerror(error));
        return 1;
    }
    while (started < THREADS && pthread_create(&threads[started], NULL,
                                               write_records, NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);

    weir_stats stats;
    stats.size = sizeof stats;
    if (weir_limiter_stats(disk, &stats) == 0)
        printf("%u writes at once, %.2f ms each\n", (unsigned)stats.limit,
               (double)stats.rtt_ns / 1e6);
    return weir_limiter_destroy(disk);
}
