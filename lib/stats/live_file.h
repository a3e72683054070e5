/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_LIVE_FILE_H
#define WEIR_LIVE_FILE_H

/* Figures that other processes can read while this one runs: with STATS_DIR each pool and limiter has a file there,
 * weir-<pid>-<id>.live. The writer has it mapped into memory; others read it, for a map of a file that is cut short
 * faults.
 *
 * note:live-file -- the file holds two records. A store fills in the one that is not current, between two counters:
 * begun is raised before, done after, and done & 1 is the current one. A reader copies that and looks whether begun is
 * by now two ahead, for only then may its record have been written to meanwhile. So there is a whole record at every
 * moment, whenever the writer is killed.
 *
 * In the same way it holds the effective options as text, a line each: NAME, value, origin, and whether the option is
 * live, with tabs between.
 *
 * The writer holds a POSIX lock on its file, which ends with the process and is not inherited by a fork child. A file
 * without that lock is stale: whoever comes across it removes it. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/limiter.h>

#include "stats/record.h"

enum { WEIR__LIVE_VERSION = 2, WEIR__LIVE_OPTIONS = 4096 /* bytes */ };
#define WEIR__LIVE_MAGIC "weirlive"

struct weir__live_turns {
    _Atomic uint64_t begun; /* atomic */
    _Atomic uint64_t done;  /* atomic */
};

/* The layout. What does not match in version and sizes is not read. All is in the byte order of the machine. */
struct weir__live_file {
    char magic[8];
    uint32_t version;
    uint32_t record_size;
    uint32_t figures;
    uint32_t pid;
    uint32_t options_size;
    uint32_t record_words; /* of each row of records: enough for the partitions that there are */
    struct weir__live_turns record_turns;
    struct weir__live_turns option_turns;
    _Atomic uint64_t options[2][WEIR__LIVE_OPTIONS / sizeof(uint64_t)]; /* atomic: see note:live-file */
    _Atomic uint64_t records[];                                         /* atomic: two rows, likewise */
};

/* Bytes of a file with rows of that many words. */
static inline size_t weir__live_size(size_t record_words)
{
    return sizeof(struct weir__live_file) + 2 * record_words * sizeof(uint64_t);
}

struct weir__live;

/* ---- the writer ---- */

/* A file in the directory with an empty record, which has room for so many partitions; stale ones there are removed.
 * NULL: *error says why. */
struct weir__live *weir__live_create(const char *directory, uint64_t id, uint32_t partitions, int *error);

/* Makes the record the current one; one caller at a time. */
void weir__live_store(struct weir__live *live, const struct weir__record *record);

/* Makes the text the current one; one caller at a time. What does not fit is cut. */
void weir__live_store_options(struct weir__live *live, const char *text);

/* remove: the file goes, too; a fork child leaves it to its parent. */
void weir__live_close(struct weir__live *live, bool remove);

/* For a limiter with STATS_DIR: creates its file. Where that fails, a log line says so, and it goes without. */
void weir__live_attach(weir_limiter *limiter);

/* Something has changed at now_ns; lock held. It is stored at once if nobody is about to come soon (idle), else if the
 * last store is some time ago. */
void weir__live_note(weir_limiter *limiter, uint64_t now_ns, bool idle);

/* When it would be stored next while there is work; lock held. */
uint64_t weir__live_due_ns(const weir_limiter *limiter);

/* The configuration has changed; lock held. */
void weir__live_configured(weir_limiter *limiter, uint64_t now_ns);

/* ---- the reader ---- */

/* What other processes have in the directory, to be freed; ages are as of now. Counts in *odd the files of other
 * versions. 0, ENOMEM, or why the directory cannot be read. */
int weir__live_read(const char *directory, struct weir__record **records, size_t *count, unsigned *odd);

/* The options of what a record is of. False: it is gone. */
bool weir__live_read_options(const char *directory, const struct weir__record *record, char text[WEIR__LIVE_OPTIONS]);

#endif
