/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* One blocking HTTP/1.1 GET after another on a connection that the calling thread keeps. */
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "demo.h"

/* A blocked call returns this often to see whether the run was abandoned. */
#define SLICE_NS (200 * NS_PER_MS)

struct connection {
    bool open;
    int fd;
    size_t next, size; /* of buffer: bytes received and not yet read */
    char buffer[8192];
};

static _Thread_local struct connection own;

/* One exchange in progress. */
struct exchange {
    struct connection *connection;
    const atomic_bool *abandoned;
    uint64_t deadline_ns;
    bool answered; /* at least one byte came */
    int status;
    bool keep; /* the connection may serve the next request */
    bool chunked;
    bool has_length;
    uint64_t length;
};

void http_close(void *unused)
{
    (void)unused;
    if (own.open)
        close(own.fd);
    own.open = false;
}

static int connect_to(const struct target *target, int *out)
{
    int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    struct timeval slice = {.tv_usec = (suseconds_t)(SLICE_NS / NS_PER_US)};
    struct timeval patience = {.tv_sec = 2}; /* for connect as well */
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (const struct sockaddr *)&target->address, target->address_size) != 0) {
        int error = errno == EINPROGRESS ? ETIMEDOUT : errno;
        close(fd);
        return error;
    }
    *out = fd;
    return 0;
}

static int fill(struct exchange *exchange)
{
    struct connection *connection = exchange->connection;
    for (;;) {
        ssize_t n = recv(connection->fd, connection->buffer, sizeof connection->buffer, 0);
        if (n > 0) {
            exchange->answered = true;
            connection->next = 0;
            connection->size = (size_t)n;
            return 0;
        }
        if (n == 0)
            return ECONNRESET;
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        if (atomic_load(exchange->abandoned))
            return ECANCELED;
        if (weir_now_ns() >= exchange->deadline_ns)
            return ETIMEDOUT;
    }
}

/* A line without its end; what does not fit is dropped. */
static int read_line(struct exchange *exchange, char *line, size_t size)
{
    struct connection *connection = exchange->connection;
    size_t used = 0;
    for (;;) {
        if (connection->next == connection->size) {
            int error = fill(exchange);
            if (error != 0)
                return error;
        }
        char c = connection->buffer[connection->next++];
        if (c == '\n')
            break;
        if (c != '\r' && used + 1 < size)
            line[used++] = c;
    }
    line[used] = '\0';
    return 0;
}

static int skip(struct exchange *exchange, uint64_t bytes)
{
    struct connection *connection = exchange->connection;
    while (bytes > 0) {
        if (connection->next == connection->size) {
            int error = fill(exchange);
            if (error != 0)
                return error;
        }
        uint64_t there = connection->size - connection->next;
        uint64_t taken = there < bytes ? there : bytes;
        connection->next += (size_t)taken;
        bytes -= taken;
    }
    return 0;
}

static void read_field(struct exchange *exchange, char *line)
{
    char *value = strchr(line, ':');
    if (value == NULL)
        return;
    *value++ = '\0';
    value += strspn(value, " \t");
    if (strcasecmp(line, "Content-Length") == 0) {
        exchange->has_length = true;
        exchange->length = strtoull(value, NULL, 10);
    } else if (strcasecmp(line, "Transfer-Encoding") == 0) {
        exchange->chunked = strcasestr(value, "chunked") != NULL;
    } else if (strcasecmp(line, "Connection") == 0) {
        exchange->keep = strcasecmp(value, "close") != 0 && (exchange->keep || strcasecmp(value, "keep-alive") == 0);
    }
}

static int read_head(struct exchange *exchange)
{
    char line[1024];
    int error = read_line(exchange, line, sizeof line);
    if (error != 0)
        return error;
    int minor;
    if (sscanf(line, "HTTP/1.%d %d", &minor, &exchange->status) != 2 || exchange->status < 100 ||
        exchange->status > 599)
        return EPROTO;
    exchange->keep = minor >= 1;
    exchange->chunked = exchange->has_length = false;
    for (;;) {
        error = read_line(exchange, line, sizeof line);
        if (error != 0 || line[0] == '\0')
            return error;
        read_field(exchange, line);
    }
}

static int skip_chunks(struct exchange *exchange)
{
    char line[256];
    int error;
    for (;;) {
        error = read_line(exchange, line, sizeof line);
        if (error != 0)
            return error;
        if (!isxdigit((unsigned char)line[0]))
            return EPROTO;
        uint64_t size = strtoull(line, NULL, 16);
        if (size == 0)
            break;
        error = skip(exchange, size);
        if (error == 0)
            error = read_line(exchange, line, sizeof line);
        if (error != 0)
            return error;
    }
    do {
        error = read_line(exchange, line, sizeof line);
    } while (error == 0 && line[0] != '\0');
    return error;
}

static int skip_body(struct exchange *exchange)
{
    if (exchange->status == 204 || exchange->status == 304)
        return 0;
    if (exchange->chunked)
        return skip_chunks(exchange);
    if (exchange->has_length)
        return skip(exchange, exchange->length);
    exchange->keep = false;
    int error = skip(exchange, UINT64_MAX);
    return error == ECONNRESET ? 0 : error; /* the end of the connection is the end of the body */
}

static int converse(struct exchange *exchange, const struct target *target)
{
    struct connection *connection = exchange->connection;
    connection->next = connection->size = 0;
    ssize_t sent = send(connection->fd, target->request, target->request_size, MSG_NOSIGNAL);
    if (sent != (ssize_t)target->request_size)
        return sent < 0 ? errno : EPIPE;
    int error;
    do {
        error = read_head(exchange);
    } while (error == 0 && exchange->status < 200);
    return error != 0 ? error : skip_body(exchange);
}

int http_get(const struct target *target, const atomic_bool *abandoned)
{
    struct exchange exchange = {
        .connection = &own,
        .abandoned = abandoned,
        .deadline_ns = weir_after_ns(REQUEST_TIMEOUT_NS),
    };
    for (;;) {
        bool reused = own.open;
        if (!reused) {
            int error = connect_to(target, &own.fd);
            if (error != 0)
                return -error;
            own.open = true;
        }
        int error = converse(&exchange, target);
        if (error != 0 || !exchange.keep)
            http_close(NULL);
        if (error == 0)
            return exchange.status;
        /* A kept connection may have been closed by the server while it was idle: that is no failure of this request.
         */
        if (!reused || exchange.answered || (error != ECONNRESET && error != EPIPE))
            return -error;
    }
}

static void write_request(struct target *target, const char *host, const char *port, const char *path)
{
    bool v6 = strchr(host, ':') != NULL;
    bool plain = strcmp(port, "80") == 0;
    int size = snprintf(target->request, sizeof target->request,
                        "GET %s HTTP/1.1\r\nHost: %s%s%s%s%s\r\nUser-Agent: weir-demo\r\nAccept: */*\r\n\r\n", path,
                        v6 ? "[" : "", host, v6 ? "]" : "", plain ? "" : ":", plain ? "" : port);
    target->request_size = (size_t)size;
}

void target_of_server(struct target *target, const struct server_process *server)
{
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)ntohs(server->address.sin_port));
    memcpy(&target->address, &server->address, sizeof server->address);
    target->address_size = sizeof server->address;
    write_request(target, "127.0.0.1", port, "/");
}

int target_of_url(struct target *target, const struct url *url)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    int failure = getaddrinfo(url->host, url->port, &hints, &list);
    if (failure != 0) {
        fprintf(stderr, "demo: %s: %s\n", url->host, gai_strerror(failure));
        return EHOSTUNREACH;
    }
    write_request(target, url->host, url->port, url->path);
    int error = EHOSTUNREACH;
    for (struct addrinfo *entry = list; entry != NULL && error != 0; entry = entry->ai_next) {
        memcpy(&target->address, entry->ai_addr, entry->ai_addrlen);
        target->address_size = entry->ai_addrlen;
        int fd;
        error = connect_to(target, &fd);
        if (error == 0)
            close(fd);
    }
    freeaddrinfo(list);
    if (error != 0)
        fprintf(stderr, "demo: nobody answers at %s port %s: %s\n", url->host, url->port, strerror(error));
    return error;
}
