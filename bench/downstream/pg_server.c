/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pg_server.h"

static pid_t server;
static unsigned port;
static _Thread_local PGconn *own;

/* Durability is not what is measured, and would measure the disk. */
static const char configuration[] = "listen_addresses = '127.0.0.1'\n"
                                    "port = %u\n"
                                    "unix_socket_directories = ''\n"
                                    "max_connections = 400\n"
                                    "shared_buffers = 64MB\n"
                                    "fsync = off\n"
                                    "synchronous_commit = off\n"
                                    "full_page_writes = off\n"
                                    "autovacuum = off\n"
                                    "jit = off\n"
                                    "max_parallel_workers_per_gather = 0\n"
                                    "log_min_messages = panic\n"
                                    "logging_collector = off\n";

/* The tables and the transaction are those of pgbench, as functions, so that a call is one round trip. The sleep comes
 * before any lock is taken. */
static const char *const schema[] = {
    "CREATE TABLE branches (bid int PRIMARY KEY, bbalance int NOT NULL) WITH (fillfactor = 10)",
    "CREATE TABLE tellers (tid int PRIMARY KEY, bid int NOT NULL, tbalance int NOT NULL) WITH (fillfactor = 10)",
    "CREATE TABLE accounts (aid int PRIMARY KEY, bid int NOT NULL, abalance int NOT NULL, filler char(84) NOT NULL)"
    " WITH (fillfactor = 80)",
    "CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp)",
    "INSERT INTO branches SELECT g, 0 FROM generate_series(1, 20) g",
    "INSERT INTO tellers SELECT g, (g - 1) / 10 + 1, 0 FROM generate_series(1, 200) g",
    "INSERT INTO accounts SELECT g, (g - 1) / 5000 + 1, 0, '' FROM generate_series(1, 100000) g",
    "CREATE FUNCTION inquire(first int, sleep_s float8, accounts int) RETURNS bigint LANGUAGE plpgsql AS $$ "
    "DECLARE sum bigint := 0; BEGIN PERFORM pg_sleep(sleep_s); "
    "SELECT sum(a.abalance) INTO sum FROM generate_series(1, accounts) g, LATERAL "
    "(SELECT abalance FROM accounts t WHERE t.aid = (first + g * 487) % 100000 + 1) a; RETURN sum; END $$",
    "CREATE FUNCTION transfer(account int, delta int, sleep_s float8, accounts int) RETURNS int LANGUAGE plpgsql AS $$ "
    "DECLARE balance int; BEGIN PERFORM pg_sleep(sleep_s); "
    "PERFORM inquire(account, 0, accounts); "
    "UPDATE public.accounts t SET abalance = abalance + delta WHERE t.aid = account RETURNING abalance INTO balance; "
    "UPDATE tellers SET tbalance = tbalance + delta WHERE tid = account % 200 + 1; "
    "UPDATE branches SET bbalance = bbalance + delta WHERE bid = account % 20 + 1; "
    "INSERT INTO history VALUES (account % 200 + 1, account % 20 + 1, account, delta, now()); "
    "RETURN balance; END $$",
    "CREATE ROLE program LOGIN",
    "ALTER ROLE program SET lock_timeout = '100ms'",
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO program",
    "VACUUM ANALYZE",
};

static PGconn *connect_as(const char *user)
{
    char text[160];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u dbname=postgres user=%s connect_timeout=10", port, user);
    PGconn *connection = PQconnectdb(text);
    if (connection == NULL || PQstatus(connection) == CONNECTION_OK)
        return connection;
    if (strcmp(user, "weir") == 0)
        bench_complain("postgresql", PQerrorMessage(connection));
    PQfinish(connection);
    return NULL;
}

PGconn *pg_administrator(void)
{
    return connect_as("weir");
}

/* That the administrator ends connections is part of the play. */
static void say_nothing(void *unused, const char *message)
{
    (void)unused;
    (void)message;
}

/* With its prepared statements; NULL: failed. */
static PGconn *connect_program(void)
{
    PGconn *connection = connect_as("program");
    if (connection == NULL)
        return NULL;
    PQsetNoticeProcessor(connection, say_nothing, NULL);
    PQclear(PQprepare(connection, "inquire", "SELECT inquire($1::int, $2::float8, $3::int)", 3, NULL));
    PQclear(PQprepare(connection, "transfer", "SELECT transfer($1::int, 1, $2::float8, $3::int)", 3, NULL));
    return connection;
}

int pg_execute(PGconn *connection, const char *sql)
{
    PGresult *result = PQexec(connection, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return 0;
    return bench_complain(sql, PQerrorMessage(connection));
}

/* 53xxx: insufficient resources, too_many_connections among them; 57xxx: operator intervention. What remains are lock
 * timeouts and deadlocks, which say nothing of how much the server can take. */
static enum ending ending_of(const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        return ENDED_WELL;
    return state == NULL || strncmp(state, "53", 2) == 0 || strncmp(state, "57", 2) == 0 ? ENDED_REFUSED : ENDED_BUSY;
}

void pg_worker_start(void)
{
    own = connect_program();
}

void pg_worker_stop(void)
{
    PQfinish(own);
    own = NULL;
}

enum ending pg_call(uint64_t random, const struct pg_work *work)
{
    if (own == NULL)
        own = connect_program();
    if (own == NULL)
        return ENDED_REFUSED;
    char account[16], sleep_s[16], accounts[16];
    const char *const values[] = {account, sleep_s, accounts};
    snprintf(account, sizeof account, "%u", (unsigned)(random >> 8) % PG_ACCOUNTS + 1);
    snprintf(sleep_s, sizeof sleep_s, "%u.%03u", work->sleep_ms / 1000, work->sleep_ms % 1000);
    snprintf(accounts, sizeof accounts, "%u", work->accounts);
    PGresult *result = PQexecPrepared(own, random % 4 == 0 ? "transfer" : "inquire", 3, values, NULL, NULL, 0);
    enum ending ending = ending_of(result);
    PQclear(result);
    if (PQstatus(own) != CONNECTION_OK)
        pg_worker_stop(); /* the next call connects anew */
    return ending;
}

/* Debian keeps the server's programs in a directory per version; the last is the latest. */
static bool find_programs(char *directory, size_t size)
{
    glob_t found;
    bool there = glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0 && found.gl_pathc > 0;
    if (there) {
        const char *path = found.gl_pathv[found.gl_pathc - 1];
        snprintf(directory, size, "%.*s", (int)(strrchr(path, '/') - path), path);
    } else if (program_exists("initdb") && program_exists("postgres")) {
        *directory = '\0';
        there = true;
    }
    globfree(&found);
    return there;
}

static int create_cluster(const struct place *place, const char *directory)
{
    char program[300];
    snprintf(program, sizeof program, "%s%sinitdb", directory, *directory != '\0' ? "/" : "");
    char *arguments[] = {program, "-D", "data", "-U",         "weir",      "-A",
                         "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions",
                         NULL};
    int error = place_run(place, &(struct spawn){"initdb", arguments, SIGTERM});
    char text[sizeof configuration + 16];
    snprintf(text, sizeof text, configuration, port);
    return error != 0 ? error : place_write(place, "data/postgresql.conf", text);
}

static int wait_until_up(const struct place *place)
{
    char text[96];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%u dbname=postgres user=weir", port);
    for (int i = 0; i < 500; i++) {
        if (PQping(text) == PQPING_OK)
            return 0;
        int error = pause_ns(20 * NS_PER_MS);
        if (error != 0)
            return error;
        if (process_ended(&server))
            break;
    }
    place_log(place, "postgres");
    return bench_complain("postgresql", "it does not start");
}

static int fill(void)
{
    PGconn *connection = pg_administrator();
    int error = connection == NULL ? EIO : 0;
    for (size_t i = 0; i < sizeof schema / sizeof *schema && error == 0; i++)
        error = pg_execute(connection, schema[i]);
    PQfinish(connection);
    return error;
}

int pg_server_start(const struct place *place, const char *part)
{
    char directory[256], program[300];
    if (!find_programs(directory, sizeof directory)) {
        printf("%s: skipped: the server is not installed (Debian: postgresql)\n", part);
        return ENOTSUP;
    }
    int error = free_port(&port);
    if (error == 0)
        error = create_cluster(place, directory);
    if (error != 0)
        return error;
    snprintf(program, sizeof program, "%s%spostgres", directory, *directory != '\0' ? "/" : "");
    char *arguments[] = {program, "-D", "data", NULL};
    error = place_spawn(place, &(struct spawn){"postgres", arguments, SIGQUIT}, &server);
    if (error == 0)
        error = wait_until_up(place);
    return error != 0 ? error : fill();
}

void pg_server_stop(void)
{
    process_stop(&server, SIGQUIT); /* at once: the cluster is thrown away */
}

bool pg_server_ended(void)
{
    return process_ended(&server);
}
