/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From a thread per connection to a pool. Where the server said
 *     pthread_create(&thread, &detached, serve, connection)
 * it now asks the pool, and a client who finds it full is told so at
 * once. Here 200 clients come at the same time and the backend takes
 * four calls at once. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

enum { CLIENTS = 200 };

static int at_once;
static int most_at_once;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void enter(int change)
{
    pthread_mutex_lock(&mutex);
    at_once += change;
    if (at_once > most_at_once)
        most_at_once = at_once;
    pthread_mutex_unlock(&mutex);
}

static void answer(int connection, const char *text)
{
    (void)!write(connection, text, strlen(text));
    close(connection);
}

/* The former thread's function. It returned NULL; now it says how the
 * backend did. */
static weir_outcome serve(void *arg)
{
    int connection = (int)(intptr_t)arg;
    struct timespec span = {0, 5000000};
    enter(1);
    nanosleep(&span, NULL); /* the call to the backend */
    enter(-1);
    answer(connection, "done");
    return WEIR_SUCCESS;
}

static int accept_one(weir_pool *pool, int connection)
{
    int error =
        weir_pool_trysubmit(pool, serve, (void *)(intptr_t)connection);
    if (error != 0)
        answer(connection, error == EAGAIN ? "busy" : "down");
    return error;
}

int main(void)
{
    int clients[CLIENTS];
    int done = 0;
    int busy = 0;
    weir_pool *pool = NULL;
    weir_config config;
    if (weir_config_init(&config) != 0)
        return 1;
    config.max_limit = 4;     /* threads, where there were 200 */
    config.queue_depth = 100; /* connections that wait for one */
    if (weir_pool_create(&pool, "server", &config) != 0)
        return 1;
    for (int i = 0; i < CLIENTS; i++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            return 1;
        clients[i] = pair[0];
        (void)accept_one(pool, pair[1]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        char text[5] = "";
        if (recv(clients[i], text, 4, MSG_WAITALL) == 4) {
            done += strcmp(text, "done") == 0;
            busy += strcmp(text, "busy") == 0;
        }
        close(clients[i]);
    }
    weir_pool_destroy(pool);
    printf("%d done, %d busy, %d at once\n", done, busy, most_at_once);
    return done + busy == CLIENTS && done >= 104 && most_at_once <= 4 ? 0
                                                                      : 1;
}
