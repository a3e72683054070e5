/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The downstream: an HTTP server whose capacity is known and can be changed while it runs. One thread collects the
 * connections that have a request into a first-in first-out line; a handler takes the first, is occupied for the
 * service time, answers, and hands the connection back. What exceeds the handlers waits in that line, so overload shows
 * as latency, as it does with a real server behind its accept queue. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <netinet/tcp.h>

#include "common.h"

#define HANDLERS_MAX    256u
#define CONNECTIONS_MAX 16384u /* also the line's length: each connection is in it once at most */
#define SERVICE_CV      0.2    /* of the lognormal service time */

struct server {
    int listener;
    int epoll;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work;   /* the line is not empty and busy < allowed */
    unsigned threads;
    unsigned allowed; /* handlers that may work at once */
    unsigned busy;
    unsigned service_us;
    uint64_t random;
    size_t connections;
    size_t first, count; /* of line */
    int line[CONNECTIONS_MAX];
};

static struct server server = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .random = 20,
};

/* Under the mutex. A lognormal factor with mean 1. */
static double service_factor(void)
{
    static const double two_pi = 6.283185307179586;
    double sigma2 = log(1 + SERVICE_CV * SERVICE_CV);
    double radius = sqrt(-2 * log(1 - random_uniform(&server.random)));
    double normal = radius * cos(two_pi * random_uniform(&server.random));
    return exp(sqrt(sigma2) * normal - sigma2 / 2);
}

static void forget(int connection)
{
    close(connection);
    pthread_mutex_lock(&server.mutex);
    server.connections--;
    pthread_mutex_unlock(&server.mutex);
}

static void watch(int connection, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.fd = connection};
    if (epoll_ctl(server.epoll, operation, connection, &event) != 0)
        forget(connection);
}

/* Whether a whole request was there. */
static bool read_request(int connection)
{
    char buffer[4096];
    size_t size = 0;
    while (size < sizeof buffer) {
        ssize_t n = recv(connection, buffer + size, sizeof buffer - size, 0);
        if (n <= 0)
            return false;
        size += (size_t)n;
        if (size >= 4 && memcmp(buffer + size - 4, "\r\n\r\n", 4) == 0)
            return true;
    }
    return false;
}

static bool answer(int connection)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";
    return send(connection, text, sizeof text - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof text - 1);
}

static void serve(int connection, uint64_t service_ns)
{
    uint64_t end = weir_after_ns(service_ns);
    if (!read_request(connection)) {
        forget(connection);
        return;
    }
    sleep_until(end);
    if (answer(connection))
        watch(connection, EPOLL_CTL_MOD);
    else
        forget(connection);
}

static void *handler(void *unused)
{
    (void)unused;
    prctl(PR_SET_TIMERSLACK, 1000ul); /* ns; the default of 50 us would lengthen every service */
    pthread_mutex_lock(&server.mutex);
    for (;;) {
        while (server.count == 0 || server.busy >= server.allowed)
            pthread_cond_wait(&server.work, &server.mutex);
        int connection = server.line[server.first];
        server.first = (server.first + 1) % CONNECTIONS_MAX;
        server.count--;
        server.busy++;
        double service_us = server.service_us * service_factor();
        pthread_mutex_unlock(&server.mutex);
        serve(connection, (uint64_t)(service_us * 1000));
        pthread_mutex_lock(&server.mutex);
        server.busy--;
    }
    return NULL;
}

static void enqueue(int connection)
{
    pthread_mutex_lock(&server.mutex);
    server.line[(server.first + server.count) % CONNECTIONS_MAX] = connection;
    server.count++;
    if (server.busy < server.allowed)
        pthread_cond_signal(&server.work);
    pthread_mutex_unlock(&server.mutex);
}

static void accept_one(void)
{
    int connection = accept4(server.listener, NULL, NULL, SOCK_CLOEXEC);
    if (connection < 0)
        return;
    /* A client that stops in the middle of a request must not hold a handler for ever. */
    struct timeval patience = {.tv_sec = 1};
    int on = 1;
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pthread_mutex_lock(&server.mutex);
    bool full = ++server.connections > CONNECTIONS_MAX;
    pthread_mutex_unlock(&server.mutex);
    if (full)
        forget(connection);
    else
        watch(connection, EPOLL_CTL_ADD);
}

static void *collector(void *unused)
{
    (void)unused;
    struct epoll_event events[64];
    for (;;) {
        int n = epoll_wait(server.epoll, events, sizeof events / sizeof *events, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == server.listener)
                accept_one();
            else
                enqueue(events[i].data.fd);
        }
    }
    return NULL;
}

static int start_thread(void *(*body)(void *))
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, body, NULL);
    return error != 0 ? error : pthread_detach(thread);
}

static int set_service(unsigned handlers, unsigned service_us)
{
    pthread_mutex_lock(&server.mutex);
    int error = 0;
    while (server.threads < handlers && (error = start_thread(handler)) == 0)
        server.threads++;
    if (error == 0) {
        server.allowed = handlers;
        server.service_us = service_us;
        pthread_cond_broadcast(&server.work);
    }
    pthread_mutex_unlock(&server.mutex);
    return error;
}

static int open_listener(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    server.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = server.listener};
    if (server.listener < 0 || server.epoll < 0 ||
        bind(server.listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(server.listener, SOMAXCONN) != 0 ||
        getsockname(server.listener, (struct sockaddr *)&address, &size) != 0 ||
        epoll_ctl(server.epoll, EPOLL_CTL_ADD, server.listener, &event) != 0)
        return errno;
    *port = ntohs(address.sin_port);
    return start_thread(collector);
}

int server_main(int control)
{
    /* Ctrl-C reaches the whole foreground group; the one who started this server ends it through the control socket. */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    FILE *in = fdopen(control, "r");
    unsigned port = 0;
    int error = in == NULL ? errno : open_listener(&port);
    if (error != 0) {
        dprintf(control, "error %s\n", strerror(error));
        return 1;
    }
    dprintf(control, "listening %u\n", port);
    char line[128];
    while (fgets(line, sizeof line, in) != NULL) {
        unsigned handlers, service_us;
        if (sscanf(line, "serve %u %u", &handlers, &service_us) != 2 || handlers == 0 || handlers > HANDLERS_MAX)
            error = EINVAL;
        else
            error = set_service(handlers, service_us);
        if (error != 0)
            dprintf(control, "error %s\n", strerror(error));
        else
            dprintf(control, "ok\n");
    }
    return 0;
}
