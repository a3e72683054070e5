/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <weir.h>

static const char request[] = "GET / HTTP/1.0\r\n\r\n";

static weir_outcome outcome_of(int status)
{
    if (status == 429 || status >= 500)
        return WEIR_DROPPED; /* the server says that it is overloaded */
    if (status >= 400)
        return WEIR_IGNORE; /* refused for what it asks, at no cost */
    return WEIR_SUCCESS;
}

/* One call: it blocks for as long as the server takes, at most about two
 * seconds a step, connect included. */
static weir_outcome fetch(void *arg)
{
    const struct addrinfo *to = (const struct addrinfo *)arg;
    int fd = socket(to->ai_family, to->ai_socktype, to->ai_protocol);
    if (fd == -1)
        return WEIR_IGNORE; /* our own shortage: nobody was asked */
    struct timeval limit = {2, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);

    /* Refused, reset or timed out, until it has answered. */
    weir_outcome outcome = WEIR_DROPPED;
    char reply[] = "HTTP/1.0 200";
    const size_t size = sizeof reply - 1;
    if (connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0 &&
        recv(fd, reply, size, MSG_WAITALL) == (ssize_t)size)
        outcome = outcome_of(atoi(reply + strlen("HTTP/1.0 ")));
    close(fd);
    return outcome;
}

/* Submits count calls. What finds no room within 100 ms is shed. */
static int load(weir_pool *pool, struct addrinfo *server, int count)
{
    int shed = 0;
    for (int i = 0; i < count; i++) {
        int error = weir_pool_timedsubmit(pool, fetch, server,
                                          weir_after_ns(100000000));
        if (error == ETIMEDOUT)
            shed++;
        else if (error != 0)
            return error;
    }
    printf("shed %d of %d\n", shed, count);
    return weir_pool_drain(pool, WEIR_FOREVER);
}

static void report(weir_pool *pool)
{
    weir_stats stats;
    stats.size = sizeof stats;
    if (weir_pool_stats(pool, &stats) != 0)
        return;
    printf("limit %u, round trip %.1f ms, of an idle server %.1f ms\n",
           (unsigned)stats.limit, (double)stats.rtt_ns / 1e6,
           (double)stats.rtt_noload_ns / 1e6);
    printf("succeeded %.0f, ignored %.0f, dropped %.0f\n",
           (double)stats.succeeded, (double)stats.ignored,
           (double)stats.dropped);
}

int main(int argc, char **argv)
{
    struct addrinfo *server = NULL;
    struct addrinfo wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.ai_socktype = SOCK_STREAM;
    if (argc != 4 ||
        getaddrinfo(argv[1], argv[2], &wanted, &server) != 0) {
        fprintf(stderr, "usage: fetch HOST PORT COUNT\n");
        return 2;
    }
    weir_pool *pool = NULL;
    int error = weir_pool_create(&pool, "fetch", NULL);
    if (error == 0)
        error = load(pool, server, atoi(argv[3]));
    if (error != 0)
        fprintf(stderr, "fetch: %s\n", weir_strerror(error));
    if (pool != NULL) {
        report(pool);
        weir_pool_destroy(pool);
    }
    freeaddrinfo(server);
    return error == 0 ? 0 : 1;
}
