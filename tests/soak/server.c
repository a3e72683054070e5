/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* One thread, one table of connections. Each is answered with a byte when its time has come, and closed. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"

enum { CONNECTIONS = 512, BACKLOG = 256, ANSWER_MS = 400 };
enum mood { HEALTHY, SLOW, STALLED, RESETTING, DOWN, MOODS };

#define MS UINT64_C(1000000)

struct server {
    uint16_t port;
    int listener; /* -1: down */
    struct pollfd polled[CONNECTIONS + 1];
    uint64_t due_ns[CONNECTIONS];
    unsigned count;
    uint64_t random;
};

/* Healthy half of the time, the others by turns, for a second and a half each. */
static enum mood mood_at(uint64_t ns)
{
    uint64_t turn = ns / (1500 * MS);
    return turn % 2 == 0 ? HEALTHY : (enum mood)(SLOW + turn / 2 % (MOODS - SLOW));
}

/* ---- the child ---- */

static int listen_on(uint16_t *port)
{
    int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        (void)close(fd);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static void reset_connection(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(fd);
}

static void accept_all(struct server *server, enum mood mood, uint64_t now_ns)
{
    while (server->count < CONNECTIONS) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            return;
        if (mood == RESETTING) {
            reset_connection(fd);
            continue;
        }
        uint64_t delay_ns = mood == SLOW ? 60 * MS : 2 * MS;
        server->polled[server->count + 1] = (struct pollfd){.fd = fd, .events = POLLIN};
        server->due_ns[server->count++] = now_ns + delay_ns + soak_random(&server->random, delay_ns);
    }
}

static void drop_at(struct server *server, unsigned i)
{
    (void)close(server->polled[i + 1].fd);
    server->count--;
    server->polled[i + 1] = server->polled[server->count + 1];
    server->due_ns[i] = server->due_ns[server->count];
}

static void answer_due(struct server *server, uint64_t now_ns)
{
    for (unsigned i = server->count; i-- > 0;) {
        char byte;
        bool gone = (server->polled[i + 1].revents & POLLIN) != 0 && read(server->polled[i + 1].fd, &byte, 1) == 0;
        if (!gone && now_ns < server->due_ns[i])
            continue;
        if (!gone)
            (void)send(server->polled[i + 1].fd, "1", 1, MSG_NOSIGNAL);
        drop_at(server, i);
    }
}

_Noreturn static void serve(struct server *server)
{
    for (;;) {
        enum mood mood = mood_at(weir_now_ns());
        if (mood == DOWN && server->listener >= 0) {
            (void)close(server->listener);
            server->listener = -1;
        } else if (mood != DOWN && server->listener < 0) {
            server->listener = listen_on(&server->port);
        }
        server->polled[0] = (struct pollfd){.fd = server->listener, .events = POLLIN};
        (void)poll(server->polled, server->count + 1, server->count > 0 ? 1 : 10);
        if (getppid() == 1)
            _exit(0);
        uint64_t now_ns = weir_now_ns();
        if (server->listener >= 0)
            accept_all(server, mood, now_ns);
        if (mood != STALLED)
            answer_due(server, now_ns);
    }
}

uint16_t server_start(pid_t *pid)
{
    static struct server server = {.random = 1};
    server.listener = listen_on(&server.port);
    if (server.listener < 0)
        soak_fail("no server: %s", strerror(errno));
    *pid = fork();
    if (*pid < 0)
        soak_fail("no server: %s", strerror(errno));
    if (*pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(&server);
    }
    (void)close(server.listener);
    return server.port;
}

/* ---- the clients ---- */

weir_outcome request(uint16_t port, struct request_counts *counts)
{
    char byte = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    struct timeval patience = {.tv_usec = ANSWER_MS * 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        soak_fail("no socket: %s", strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    bool sent = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && send(fd, "?", 1, MSG_NOSIGNAL) == 1;
    ssize_t got = sent ? recv(fd, &byte, 1, 0) : -1;
    int error = errno;
    (void)close(fd);
    if (got == 1)
        atomic_fetch_add(&counts->answered, 1);
    else if (error == EAGAIN || error == EINPROGRESS)
        atomic_fetch_add(&counts->timed_out, 1);
    else
        atomic_fetch_add(&counts->refused, 1);
    return got == 1 ? WEIR_SUCCESS : WEIR_DROPPED;
}
