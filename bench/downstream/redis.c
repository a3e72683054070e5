/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* hiredis before a Redis, with a connection per worker. Calls take microseconds, so what a pool costs shows. The server
 * has one thread; three calls of four are a GET, one sorts a list, so that the server has something to do besides
 * reading and writing its sockets. */
#include <errno.h>

#include "downstream.h"

#ifdef WITH_HIREDIS
#include <hiredis/hiredis.h>
#include <signal.h>
#include <string.h>

enum { QUIET, NEIGHBOUR, STALLS };

#define KEYS           1000
#define ELEMENTS       200
/* Of the connections that measure and the others. */
#define CALL_TIMEOUT_S 5

static pid_t server;
static unsigned port;
static size_t current;

/* The second client: an endless series of calls that keep the server from everything else. */
static pthread_t disturber;
static bool disturbing;
static atomic_bool disturber_stops;

static _Thread_local redisContext *own;

static redisContext *connect_own(void)
{
    redisContext *context = redisConnectWithTimeout("127.0.0.1", (int)port, (struct timeval){.tv_sec = 2});
    if (context != NULL && context->err != 0) {
        redisFree(context);
        return NULL;
    }
    if (context != NULL)
        redisSetTimeout(context, (struct timeval){.tv_sec = CALL_TIMEOUT_S});
    return context;
}

static void worker_start(void)
{
    own = connect_own();
}

static void worker_stop(void)
{
    if (own != NULL)
        redisFree(own);
    own = NULL;
}

static enum ending call(uint64_t random)
{
    if (own == NULL)
        own = connect_own();
    if (own == NULL)
        return ENDED_REFUSED;
    unsigned key = (unsigned)(random >> 8) % KEYS;
    redisReply *reply =
        random % 4 == 0 ? redisCommand(own, "SORT list:%u LIMIT 0 1", key % 10) : redisCommand(own, "GET key:%u", key);
    if (reply == NULL) {
        worker_stop();
        return ENDED_REFUSED;
    }
    enum ending ending = reply->type == REDIS_REPLY_ERROR ? ENDED_REFUSED : ENDED_WELL;
    freeReplyObject(reply);
    return ending;
}

/* NEIGHBOUR: calls of a millisecond, back to back with pauses as long; STALLS: half a second of every 1.5. */
static void *disturb(void *arg)
{
    bool stalls = *(const size_t *)arg == STALLS;
    redisContext *context = connect_own();
    while (context != NULL && !atomic_load(&disturber_stops)) {
        redisReply *reply = redisCommand(context, stalls ? "DEBUG SLEEP 0.5" : "DEBUG SLEEP 0.001");
        if (reply == NULL)
            break;
        freeReplyObject(reply);
        sleep_until(weir_after_ns(stalls ? NS_PER_S : NS_PER_MS));
    }
    if (context != NULL)
        redisFree(context);
    return NULL;
}

static int enter(size_t phase)
{
    if (phase == current)
        return 0;
    if (disturbing) {
        atomic_store(&disturber_stops, true);
        pthread_join(disturber, NULL);
        disturbing = false;
    }
    current = phase;
    if (phase == QUIET)
        return 0;
    atomic_store(&disturber_stops, false);
    int error = pthread_create(&disturber, NULL, disturb, &current);
    disturbing = error == 0;
    return error == 0 ? 0 : bench_complain("redis", strerror(error));
}

static bool command(redisContext *context, const char *text)
{
    redisReply *reply = redisCommand(context, text);
    bool well = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    if (reply != NULL)
        freeReplyObject(reply);
    return well;
}

static int fill(void)
{
    bool well = true;
    redisContext *context = connect_own();
    for (unsigned i = 0; i < KEYS && context != NULL && well; i++) {
        char text[128];
        snprintf(text, sizeof text, "SET key:%u 0123456789012345678901234567890123456789", i);
        well = command(context, text);
    }
    for (unsigned i = 0; i < 10 * ELEMENTS && context != NULL && well; i++) {
        char text[64];
        snprintf(text, sizeof text, "RPUSH list:%u %u", i % 10, i * 7919 % 10007);
        well = command(context, text);
    }
    if (context != NULL)
        redisFree(context);
    return context != NULL && well ? 0 : bench_complain("redis", "the keys cannot be set");
}

static int wait_until_up(const struct place *place)
{
    for (int i = 0; i < 250; i++) {
        redisContext *context = connect_own();
        bool up = context != NULL && command(context, "PING");
        if (context != NULL)
            redisFree(context);
        int error = up ? 0 : pause_ns(20 * NS_PER_MS);
        if (up || error != 0)
            return error;
        if (process_ended(&server))
            break;
    }
    place_log(place, "redis");
    return bench_complain("redis", "it does not start");
}

static int start(const struct place *place)
{
    if (!program_exists("redis-server")) {
        printf("redis: skipped: the server is not installed (Debian: redis-server)\n");
        return ENOTSUP;
    }
    int error = free_port(&port);
    if (error != 0)
        return error;
    char number[16];
    snprintf(number, sizeof number, "%u", port);
    char *arguments[] = {
        "redis-server",           "--port", number,         "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
        "--enable-debug-command", "yes",    "--maxclients", "1000",   NULL};
    error = place_spawn(place, &(struct spawn){"redis", arguments, SIGTERM}, &server);
    if (error == 0)
        error = wait_until_up(place);
    return error != 0 ? error : fill();
}

static void stop(void)
{
    enter(QUIET);
    process_stop(&server, SIGTERM);
}

static bool ended(void)
{
    return process_ended(&server);
}

struct part part_redis = {
    .name = "redis",
    .title = "hiredis, Redis, calls of microseconds, a connection per worker",
    .widest = 256,
    .seconds = 6,
    .phase_count = 3,
    .phases =
        {
            [QUIET] = {.name = "quiet"},
            [NEIGHBOUR] = {.name = "a neighbour takes half of it"},
            [STALLS] = {.name = "DEBUG SLEEP 0.5 each 1.5 s"},
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
struct part part_redis = {.name = "redis", .missing = "built without hiredis (Debian: libhiredis-dev)"};
#endif
