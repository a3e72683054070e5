/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIRSTAT_H
#define WEIRSTAT_H

/* weirstat shows the live files of other processes. It reads them and nothing else. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stats/live_file.h"

/* What one look at the directory found. */
struct look {
    struct weir__record *records;
    size_t count;
};

/* ---- text.c ---- */

enum { NUMBER_SIZE = 16 };

/* Six characters or less: 850us, 1.25ms, 12.5s, 3h05m; "-" for 0. */
const char *format_ns(uint64_t ns, char buffer[NUMBER_SIZE]);

/* As a whole number: the nearest that there is. */
uint64_t whole_ns(double ns);

/* Six characters or less: 950, 12.3k, 4.56M. */
const char *format_count(double count, char buffer[NUMBER_SIZE]);

/* The name in at most width columns: what is not printable ASCII becomes a question mark. */
const char *format_name(const char *name, size_t width, char *buffer);

/* ---- table.c ---- */

void print_table_head(FILE *out);

/* before is the same pool's record of the look before, or NULL. */
void print_table_row(FILE *out, const struct weir__record *record, const struct weir__record *before);

/* The line above a pool's history. */
void print_title(FILE *out, const struct weir__record *record);

/* Successful, ignored and dropped calls together. */
uint64_t ended(const struct weir__record *record);

/* Completions per second since before; without it, those that the pool has measured. */
double completions_per_s(const struct weir__record *record, const struct weir__record *before);

/* The record of the same pool in another look, or NULL. */
const struct weir__record *find_record(const struct look *look, const struct weir__record *record);

/* ---- options.c ---- */

/* The effective options from the lines of a live file, as a table. */
void print_options(FILE *out, const char *text);

/* The same as an element of the records in JSON. False: the stream failed. */
bool print_options_json(FILE *out, const struct weir__record *record, const char *text);

/* ---- demand.c: what comes, and whose it is ---- */

/* One line on a pool's arrivals and what its depth comes from, then one per partition. */
void print_details(FILE *out, const struct weir__record *record);

/* ---- history.c: how figures went ---- */

enum { HISTORY_LENGTH = 48, HISTORY_POOLS = 4 };

struct history {
    uint32_t pid; /* 0: free */
    uint64_t id;
    unsigned length;
    double limit[HISTORY_LENGTH];
    double in_flight[HISTORY_LENGTH];
    double rtt_ns[HISTORY_LENGTH]; /* mean since the look before; 0: nothing ended */
};

void history_add(struct history *history, const struct weir__record *record, const struct weir__record *before);

/* Three lines of text; in blocks where the terminal knows them. */
void history_print(FILE *out, const struct history *history, bool unicode);

/* ---- explain.c ---- */

/* What was seen of one pool in several looks, one after the other. */
struct observation {
    const struct weir__record *looks; /* the oldest first */
    size_t count;                     /* at least 2 */
};

/* Says in words what holds; the number of rules that did. */
unsigned explain(FILE *out, const struct observation *observation);

#endif
