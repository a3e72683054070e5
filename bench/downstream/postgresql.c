/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* libpq before a PostgreSQL, with a connection per worker. A call waits for 10 ms and computes for about one, in the
 * server, so that the processors' time is the bottleneck; what the load generator takes of it the report says. */
#include <errno.h>

#include "downstream.h"

#ifdef WITH_LIBPQ
#include "pg_server.h"

enum { QUIET, NEIGHBOUR, LOCK, CONNECTIONS };

#define NEIGHBOURS 4

static PGconn *administrator;
static PGconn *locker;
static PGconn *neighbours[NEIGHBOURS];
static size_t current;

static enum ending call(uint64_t random)
{
    static const struct pg_work work = {.sleep_ms = 10, .accounts = 200};
    return pg_call(random, &work);
}

static int start(const struct place *place)
{
    int error = pg_server_start(place, "postgresql");
    if (error != 0)
        return error;
    administrator = pg_administrator();
    locker = pg_administrator();
    return administrator == NULL || locker == NULL ? EIO : 0;
}

static void stop(void)
{
    PQfinish(administrator);
    PQfinish(locker);
    pg_server_stop();
}

/* Queries that compute until they are cancelled. */
static int neighbours_come(void)
{
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        neighbours[i] = pg_administrator();
        if (neighbours[i] == NULL)
            return EIO;
        PQsendQuery(neighbours[i], "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b");
    }
    return 0;
}

static int neighbours_go(void)
{
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        char text[256];
        PGcancel *cancel = PQgetCancel(neighbours[i]);
        PQcancel(cancel, text, sizeof text);
        PQfreeCancel(cancel);
        PQfinish(neighbours[i]);
        neighbours[i] = NULL;
    }
    return 0;
}

static int lock(void)
{
    int error = pg_execute(locker, "BEGIN");
    return error != 0 ? error : pg_execute(locker, "LOCK TABLE branches IN EXCLUSIVE MODE");
}

/* As if another program had taken the connections: those there are end, and only some come back. */
static int few_connections(void)
{
    int error = pg_execute(administrator, "ALTER ROLE program CONNECTION LIMIT 8");
    return error != 0 ? error
                      : pg_execute(administrator, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                                  " WHERE usename = 'program'");
}

static int leave(size_t phase)
{
    switch (phase) {
    case NEIGHBOUR:
        return neighbours_go();
    case LOCK:
        return pg_execute(locker, "ROLLBACK");
    case CONNECTIONS:
        return pg_execute(administrator, "ALTER ROLE program CONNECTION LIMIT -1");
    default:
        return 0;
    }
}

static int enter(size_t phase)
{
    if (phase == current)
        return 0;
    int error = leave(current);
    current = phase;
    if (error != 0)
        return error;
    switch (phase) {
    case NEIGHBOUR:
        return neighbours_come();
    case LOCK:
        return lock();
    case CONNECTIONS:
        return few_connections();
    default:
        return 0;
    }
}

struct part part_postgresql = {
    .name = "postgresql",
    .title = "libpq, PostgreSQL, pgbench-like reads and writes, a connection per worker",
    .widest = 256,
    .seconds = 5.5,
    .phase_count = 4,
    .phases =
        {
            [QUIET] = {.name = "quiet"},
            [NEIGHBOUR] = {.name = "a second client takes CPU"},
            [LOCK] = {.name = "a lock is held"},
            [CONNECTIONS] = {.name = "8 connections allowed"},
        },
    .start = start,
    .enter = enter,
    .stop = stop,
    .ended = pg_server_ended,
    .worker_start = pg_worker_start,
    .worker_stop = pg_worker_stop,
    .call = call,
};
#else
struct part part_postgresql = {.name = "postgresql", .missing = "built without libpq (Debian: libpq-dev)"};
#endif
