/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A program written for C-Thread-Pool: all that it prints follows from what that library documents. thpool.test builds
 * it with the original and with libweir-thpool, and compares with program.out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <thpool.h>

static void nap(long milliseconds)
{
    struct timespec span = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    (void)nanosleep(&span, NULL);
}

/* Jobs wait here until it is opened. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int waiting;
    int open;
};
static void pass(void *arg)
{
    struct gate *gate = arg;
    (void)pthread_mutex_lock(&gate->mutex);
    gate->waiting++;
    (void)pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    (void)pthread_mutex_unlock(&gate->mutex);
}

static void wait_for(struct gate *gate, int waiting)
{
    (void)pthread_mutex_lock(&gate->mutex);
    while (gate->waiting < waiting)
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    (void)pthread_mutex_unlock(&gate->mutex);
}

static void open_gate(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->mutex);
    gate->open = 1;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->mutex);
}

static atomic_int count;

static void add(void *number)
{
    atomic_fetch_add(&count, (int)(intptr_t)number);
}

static int added(threadpool pool, int jobs, void (*function)(void *), void *arg)
{
    int failed = 0;
    for (int i = 0; i < jobs; i++)
        failed += thpool_add_work(pool, function, arg) != 0;
    return jobs - failed;
}

/* One thread runs the jobs one after the other, in the order in which they were added. */
static char line[200];

static void append(void *letter)
{
    line[strlen(line)] = (char)(intptr_t)letter;
}

static void order(void)
{
    threadpool pool = thpool_init(1);
    for (int i = 0; i < 78; i++)
        (void)thpool_add_work(pool, append, (void *)(intptr_t)('a' + i % 26));
    thpool_wait(pool);
    printf("order: %s\n", line);
    thpool_destroy(pool);
}

/* Four threads, several rounds: each job runs once, and wait returns when all have. */
static void rounds(void)
{
    threadpool pool = thpool_init(4);
    thpool_wait(pool);
    for (int round = 1; round <= 5; round++) {
        atomic_store(&count, 0);
        int jobs = added(pool, 2000, add, (void *)(intptr_t)round);
        thpool_wait(pool);
        printf("rounds: %d jobs, sum %d, %d working\n", jobs, atomic_load(&count), thpool_num_threads_working(pool));
    }
    thpool_destroy(pool);
}

/* Jobs add jobs; wait waits for those, too. */
static threadpool family;

static void spawn(void *depth)
{
    atomic_fetch_add(&count, 1);
    for (intptr_t i = 0; i < 2 && (intptr_t)depth > 1; i++)
        (void)thpool_add_work(family, spawn, (void *)((intptr_t)depth - 1));
}

static void spawning(void)
{
    atomic_store(&count, 0);
    family = thpool_init(3);
    (void)thpool_add_work(family, spawn, (void *)10);
    thpool_wait(family);
    printf("spawning: %d jobs\n", atomic_load(&count));
    thpool_destroy(family);
}

/* As many jobs run at once as there are threads, and not one more. */
static threadpool run_together(int threads)
{
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    threadpool pool = thpool_init(threads);
    int jobs = added(pool, threads + 5, pass, &gate);
    wait_for(&gate, threads);
    if (threads < 100)
        nap(50);
    (void)pthread_mutex_lock(&gate.mutex);
    printf("together: %d of %d, %d working\n", gate.waiting, jobs, thpool_num_threads_working(pool));
    (void)pthread_mutex_unlock(&gate.mutex);
    open_gate(&gate);
    thpool_wait(pool);
    printf("together: %d of %d, %d working\n", gate.waiting, jobs, thpool_num_threads_working(pool));
    return pool;
}

/* A paused pool takes jobs and runs none. The naps are for the original, whose threads hear of it by a signal. */
static void pausing(void)
{
    threadpool pool = thpool_init(2);
    atomic_store(&count, 0);
    thpool_pause(pool);
    nap(100);
    int jobs = added(pool, 50, add, (void *)1);
    nap(100);
    printf("pausing: %d added, %d ran\n", jobs, atomic_load(&count));
    thpool_resume(pool);
    thpool_wait(pool);
    printf("pausing: %d added, %d ran\n", jobs, atomic_load(&count));
    thpool_destroy(pool);
}

/* destroy waits for the job that runs, and drops those that wait. */
static void *open_later(void *gate)
{
    nap(150);
    open_gate(gate);
    return NULL;
}

static void dropping(void)
{
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    pthread_t opener;
    threadpool pool = thpool_init(1);
    atomic_store(&count, 0);
    (void)thpool_add_work(pool, pass, &gate);
    wait_for(&gate, 1);
    int jobs = added(pool, 100, add, (void *)1);
    if (pthread_create(&opener, NULL, open_later, &gate) != 0)
        abort();
    thpool_destroy(pool);
    printf("dropping: %d added, %d ran, gate %s\n", jobs, atomic_load(&count), gate.open ? "open" : "closed");
    (void)pthread_join(opener, NULL);
}

/* Without threads nothing runs, and nothing hangs as long as nobody waits. */
static void no_threads(int threads)
{
    threadpool pool = thpool_init(threads);
    atomic_store(&count, 0);
    thpool_wait(pool);
    int jobs = added(pool, 3, add, (void *)1);
    nap(20);
    printf("no threads: %d added, %d ran, %d working\n", jobs, atomic_load(&count), thpool_num_threads_working(pool));
    thpool_destroy(pool);
}

/* Two pools side by side. */
static void two(void)
{
    threadpool pools[2] = {thpool_init(2), thpool_init(3)};
    struct gate gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    atomic_store(&count, 0);
    (void)thpool_add_work(pools[0], pass, &gate);
    (void)added(pools[0], 10, add, (void *)1);
    (void)added(pools[1], 10, add, (void *)1);
    thpool_wait(pools[1]);
    wait_for(&gate, 1);
    open_gate(&gate);
    thpool_wait(pools[0]);
    printf("two: %d ran\n", atomic_load(&count));
    thpool_destroy(pools[0]);
    thpool_destroy(pools[1]);
}

/* An argument leaves out what needs many threads. */
int main(int argc, char **argv)
{
    (void)argv;
    setbuf(stdout, NULL);
    order();
    rounds();
    spawning();
    thpool_destroy(run_together(8));
    pausing();
    dropping();
    no_threads(0);
    no_threads(-7);
    two();
    thpool_destroy(NULL);
    /* Not destroyed: the original then ends its threads one a second. */
    if (argc == 1)
        (void)run_together(1000);
    puts("end");
    return 0;
}
