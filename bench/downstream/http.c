/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl before nginx, which limits connections and requests, before a backend of HANDLERS times SERVICE_US. The
 * backend sleeps rather than computes, so that it and not the processors of this machine is the bottleneck. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "downstream.h"

#define HANDLERS   20u
#define SERVICE_US 20000u

#ifdef WITH_CURL
#include <curl/curl.h>

enum { QUIET, LOSS, SLOW, CONNECTIONS, REQUESTS };

static struct server_process backend = SERVER_PROCESS_NONE;
static pid_t nginx;
static char urls[3][64]; /* without a limit, with limit_conn, with limit_req */
static atomic_uint chosen_url;

static _Thread_local CURL *own;

static const char configuration[] =
    "daemon off;\n"
    "master_process off;\n"
    "pid nginx.pid;\n"
    "error_log stderr crit;\n"
    "events { worker_connections 4096; }\n"
    "http {\n"
    "  access_log off;\n"
    "  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;\n"
    "  uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n"
    "  keepalive_requests 1000000;\n"
    "  limit_conn_zone $server_port zone=connections:1m;\n"
    "  limit_req_zone $server_port zone=requests:1m rate=500r/s;\n"
    "  limit_conn_status 503;\n"
    "  limit_req_status 429;\n"
    "  upstream backend { server 127.0.0.1:%u; keepalive 512; keepalive_requests 1000000; }\n"
    "  proxy_http_version 1.1;\n"
    "  proxy_set_header Connection \"\";\n"
    "  server {\n"
    "    listen 127.0.0.1:%u backlog=1024;\n"
    "    location / { proxy_pass http://backend; }\n"
    "    location /conn { limit_conn connections 10; proxy_pass http://backend; }\n"
    "    location /req { limit_req zone=requests burst=10 nodelay; proxy_pass http://backend; }\n"
    "  }\n"
    "}\n";

static size_t discard(char *data, size_t size, size_t count, void *unused)
{
    (void)data;
    (void)unused;
    return size * count;
}

static void worker_start(void)
{
    own = curl_easy_init();
    if (own == NULL)
        return;
    curl_easy_setopt(own, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(own, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(own, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(own, CURLOPT_PROXY, "");
}

static void worker_stop(void)
{
    if (own != NULL)
        curl_easy_cleanup(own);
    own = NULL;
}

static enum ending call(uint64_t random)
{
    (void)random;
    long status = 0;
    if (own == NULL)
        return ENDED_REFUSED;
    curl_easy_setopt(own, CURLOPT_URL, urls[atomic_load(&chosen_url)]);
    if (curl_easy_perform(own) != CURLE_OK)
        return ENDED_REFUSED;
    curl_easy_getinfo(own, CURLINFO_RESPONSE_CODE, &status);
    return status < 400 ? ENDED_WELL : status == 429 || status >= 500 ? ENDED_REFUSED : ENDED_BUSY;
}

static int enter(size_t phase)
{
    atomic_store(&chosen_url, phase == CONNECTIONS ? 1 : phase == REQUESTS ? 2 : 0);
    return server_process_serve(&backend, phase == LOSS ? 6 : HANDLERS, phase == SLOW ? 3 * SERVICE_US : SERVICE_US);
}

static int start_nginx(const struct place *place, unsigned port)
{
    char text[sizeof configuration + 32];
    snprintf(text, sizeof text, configuration, (unsigned)ntohs(backend.address.sin_port), port);
    int error = place_write(place, "nginx.conf", text);
    if (error != 0)
        return error;
    char prefix[160];
    snprintf(prefix, sizeof prefix, "%s/", place->path);
    char *arguments[] = {"nginx", "-p", prefix, "-c", "nginx.conf", "-e", "stderr", NULL};
    return place_spawn(place, &(struct spawn){"nginx", arguments, SIGTERM}, &nginx);
}

static int first_answer(const struct place *place)
{
    int error = EAGAIN;
    worker_start();
    for (int i = 0; i < 200 && error == EAGAIN; i++) {
        error = pause_ns(20 * NS_PER_MS);
        if (error == 0 && call(0) != ENDED_WELL)
            error = process_ended(&nginx) ? EIO : EAGAIN;
    }
    worker_stop();
    if (error != 0 && error != EINTR) {
        place_log(place, "nginx");
        return bench_complain("nginx", "it does not answer");
    }
    return error;
}

static int start(const struct place *place)
{
    if (!program_exists("nginx")) {
        printf("http: skipped: nginx is not installed (Debian: nginx)\n");
        return ENOTSUP;
    }
    unsigned port = 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int error = server_process_start(&backend);
    if (error == 0)
        error = enter(QUIET);
    if (error == 0)
        error = free_port(&port);
    static const char *const paths[] = {"", "conn", "req"};
    for (size_t i = 0; i < 3; i++)
        snprintf(urls[i], sizeof urls[i], "http://127.0.0.1:%u/%s", port, paths[i]);
    if (error == 0)
        error = start_nginx(place, port);
    return error != 0 ? error : first_answer(place);
}

static void stop(void)
{
    process_stop(&nginx, SIGTERM);
    server_process_stop(&backend);
}

static bool ended(void)
{
    return process_ended(&nginx) || server_process_ended(&backend);
}

struct part part_http = {
    .name = "http",
    .title = "libcurl, nginx as a proxy, a backend of 20 handlers that take 20 ms",
    .widest = 256,
    .seconds = 4.5,
    .phase_count = 5,
    .phases =
        {
            [QUIET] = {.name = "quiet"},
            [LOSS] = {.name = "6 of 20 handlers left"},
            [SLOW] = {.name = "each call takes 60 ms"},
            [CONNECTIONS] = {.name = "limit_conn 10"},
            [REQUESTS] = {.name = "limit_req 500/s"},
        },
    .start = start,
    .enter = enter,
    .stop = stop,
    .ended = ended,
    .worker_start = worker_start,
    .worker_stop = worker_stop,
    .call = call,
};
#else
struct part part_http = {.name = "http", .missing = "built without libcurl (Debian: libcurl4-openssl-dev)"};
#endif
