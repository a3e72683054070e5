/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_PG_SERVER_H
#define BENCH_PG_SERVER_H

/* A PostgreSQL of its own with tables like pgbench's, and the calls that programs make to it. */

#include <libpq-fe.h>

#include "downstream.h"

#define PG_ACCOUNTS 100000
#define PG_BRANCHES 20

/* Starts the server and fills the tables. ENOTSUP: it is not installed; said so. */
int pg_server_start(const struct place *place, const char *part);
void pg_server_stop(void);
bool pg_server_ended(void);

/* A connection as the administrator; NULL: failed, and it is said on stderr. */
PGconn *pg_administrator(void);
/* As the administrator: 0 or EIO. */
int pg_execute(PGconn *connection, const char *sql);

/* The hooks of a part's workers: each has a connection of its own, as a program. */
void pg_worker_start(void);
void pg_worker_stop(void);

struct pg_work {
    unsigned sleep_ms;
    unsigned accounts; /* read by index */
};
/* One call of a worker: it waits, reads accounts, and if it is one of four also makes a transfer, which writes four
 * tables. A connection that is broken, or could not be had, is ENDED_REFUSED; the next call tries again. */
enum ending pg_call(uint64_t random, const struct pg_work *work);

#endif
