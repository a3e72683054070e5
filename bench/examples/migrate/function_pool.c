/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From GThreadPool, one function per pool: the ten lines that make up the
 * difference, and a program that uses them. */
#include <pthread.h>
#include <stdio.h>
#include <weir.h>

struct item {
    void (*function)(void *data, void *user_data);
    void *data;
    void *user_data;
};

static weir_outcome call(void *arg)
{
    const struct item *item = (const struct item *)arg;
    item->function(item->data, item->user_data);
    return WEIR_SUCCESS;
}

/* g_thread_pool_push */
static int push(weir_pool *pool, struct item item)
{
    return weir_pool_submit_copy(pool, call, &item, sizeof item);
}

/* ---- the program ---- */

struct total {
    pthread_mutex_t mutex;
    long sum;
};

static void add(void *data, void *user_data)
{
    struct total *total = (struct total *)user_data;
    pthread_mutex_lock(&total->mutex);
    total->sum += *(const int *)data;
    pthread_mutex_unlock(&total->mutex);
}

int main(void)
{
    static int numbers[1000];
    struct total total = {PTHREAD_MUTEX_INITIALIZER, 0};
    weir_pool *pool = NULL; /* g_thread_pool_new */
    int error = weir_pool_create(&pool, "adder", NULL);
    for (int i = 0; i < 1000 && error == 0; i++) {
        struct item item = {add, &numbers[i], &total};
        numbers[i] = i;
        error = push(pool, item);
    }
    if (error != 0)
        fprintf(stderr, "adder: %s\n", weir_strerror(error));
    if (pool != NULL)
        weir_pool_destroy(pool); /* g_thread_pool_free (pool, 0, 1) */
    printf("%ld\n", total.sum);
    return total.sum == 499500 ? 0 : 1;
}
