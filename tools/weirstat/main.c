/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/time.h>

#include "weirstat.h"

enum { STATUS_SHOWN = 0, STATUS_NOTHING = 1, STATUS_USAGE = 2, STATUS_FAILED = 3 };
enum format { TABLE, JSON, PROMETHEUS, EXPLAIN, OPTIONS, OPTIONS_JSON };

struct options {
    const char *directory;
    const char *wanted;   /* a process number or a name; NULL: all */
    double interval_s;    /* 0: one look */
    unsigned long repeat; /* 0: for ever */
    enum format format;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    interrupted = signal_number;
}

/* ---- looking ---- */

static bool is_wanted(const struct weir__record *record, const char *wanted)
{
    char pid[16];
    if (wanted == NULL)
        return true;
    (void)snprintf(pid, sizeof pid, "%lu", (unsigned long)record->pid);
    return strcmp(record->name, wanted) == 0 || strcmp(pid, wanted) == 0;
}

/* What is wanted of what is there. False: it cannot be read, and a message has said why. */
static bool take_look(const struct options *options, struct look *look)
{
    static unsigned told; /* about files of other versions, once */
    unsigned odd = 0;
    int error = weir__live_read(options->directory, &look->records, &look->count, &odd);
    if (error != 0) {
        (void)fprintf(stderr, "weirstat: %s: %s\n", options->directory, strerror(error));
        return false;
    }
    size_t kept = 0;
    for (size_t i = 0; i < look->count; i++) {
        if (is_wanted(&look->records[i], options->wanted))
            look->records[kept++] = look->records[i];
    }
    look->count = kept;
    if (odd > told)
        (void)fprintf(stderr, "weirstat: %u files are of another version of weir or damaged, and left out\n", odd);
    told = odd > told ? odd : told;
    return true;
}

static void forget(struct look *look)
{
    free(look->records);
    *look = (struct look){0};
}

static int nothing(const struct options *options)
{
    (void)fprintf(stderr, "weirstat: %s: no live pool%s%s\n", options->directory,
                  options->wanted != NULL ? " is or belongs to " : "", options->wanted != NULL ? options->wanted : "");
    return STATUS_NOTHING;
}

/* An interrupted sleep is a short one. */
static void rest(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    (void)nanosleep(&time, NULL);
}

/* ---- one look ---- */

static void print_table(const struct look *look, const struct look *before)
{
    print_table_head(stdout);
    for (size_t i = 0; i < look->count; i++)
        print_table_row(stdout, &look->records[i], find_record(before, &look->records[i]));
}

static int show_once(const struct options *options)
{
    struct look look = {0};
    struct look none = {0};
    if (!take_look(options, &look))
        return STATUS_FAILED;
    int status = STATUS_SHOWN;
    if (options->format != TABLE) {
        weir_stats_format format = options->format == JSON ? WEIR_JSON : WEIR_PROMETHEUS;
        if (weir__records_write(stdout, format, look.records, look.count) != 0)
            status = STATUS_FAILED;
    } else if (look.count > 0) {
        print_table(&look, &none);
    }
    if (status == STATUS_SHOWN && look.count == 0)
        status = nothing(options);
    forget(&look);
    return status;
}

/* ---- what is configured ---- */

/* The options of one, after those of others or not. False: the output failed. */
static bool show_options(const struct options *options, const struct weir__record *record, const char *text,
                         bool is_first)
{
    char name[64];
    if (options->format == OPTIONS_JSON)
        return (is_first || putchar(',') != EOF) && print_options_json(stdout, record, text);
    (void)printf("%s%u %s:\n", is_first ? "" : "\n", (unsigned)record->pid,
                 format_name(record->name, sizeof name - 1, name));
    print_options(stdout, text);
    return ferror(stdout) == 0;
}

static int options_now(const struct options *options)
{
    char text[WEIR__LIVE_OPTIONS];
    struct look look = {0};
    if (!take_look(options, &look))
        return STATUS_FAILED;
    unsigned shown = 0;
    bool written = options->format != OPTIONS_JSON || fputs("{\"version\":1,\n \"records\":[", stdout) >= 0;
    for (size_t i = 0; i < look.count && written; i++) {
        const struct weir__record *record = &look.records[i];
        if (weir__live_read_options(options->directory, record, text)) /* else it went meanwhile */
            written = show_options(options, record, text, shown++ == 0);
    }
    if (options->format == OPTIONS_JSON)
        written = written && fputs("]}\n", stdout) >= 0;
    forget(&look);
    if (!written)
        return STATUS_FAILED;
    return shown > 0 ? STATUS_SHOWN : nothing(options);
}

/* ---- a view that goes on ---- */

static struct history histories[HISTORY_POOLS];

/* NULL: all are taken by pools that live. */
static struct history *history_of(const struct look *look, const struct weir__record *record)
{
    struct history *found = NULL;
    for (unsigned i = 0; i < HISTORY_POOLS; i++) {
        struct history *history = &histories[i];
        struct weir__record owner = {.pid = history->pid, .id = history->id};
        if (history->pid == record->pid && history->id == record->id)
            return history;
        if (history->pid == 0 || find_record(look, &owner) == NULL)
            found = history;
    }
    if (found != NULL)
        *found = (struct history){.pid = record->pid, .id = record->id};
    return found;
}

static void draw(const struct options *options, const struct look *look, const struct look *before, bool unicode)
{
    char text[32] = "";
    time_t seconds = time(NULL);
    struct tm local;
    if (localtime_r(&seconds, &local) != NULL)
        (void)strftime(text, sizeof text, "%H:%M:%S", &local);
    (void)printf("\033[H\033[Jweirstat %s  every %g s  %.48s\n\n", text, options->interval_s, options->directory);
    print_table(look, before);
    for (size_t i = 0; i < look->count; i++) {
        const struct weir__record *record = &look->records[i];
        struct history *history = history_of(look, record);
        if (history == NULL)
            continue;
        history_add(history, record, find_record(before, record));
        print_title(stdout, record);
        history_print(stdout, history, unicode);
        print_details(stdout, record);
    }
}

/* Where it is not a terminal: a table that grows. */
static void append(const struct look *look, const struct look *before)
{
    for (size_t i = 0; i < look->count; i++)
        print_table_row(stdout, &look->records[i], find_record(before, &look->records[i]));
}

static int watch(const struct options *options)
{
    struct look before = {0};
    bool drawn = isatty(STDOUT_FILENO) == 1;
    bool unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    bool shown = false;
    if (!drawn)
        print_table_head(stdout);
    for (unsigned long turn = 0; !interrupted && (options->repeat == 0 || turn < options->repeat); turn++) {
        struct look look = {0};
        if (turn > 0)
            rest(options->interval_s);
        if (interrupted)
            break;
        if (!take_look(options, &look))
            return STATUS_FAILED;
        shown = shown || look.count > 0;
        if (drawn)
            draw(options, &look, &before, unicode);
        else
            append(&look, &before);
        forget(&before);
        before = look;
        if (fflush(stdout) != 0)
            return STATUS_FAILED;
    }
    forget(&before);
    return shown ? STATUS_SHOWN : nothing(options);
}

/* ---- in words ---- */

enum { LOOKS = 20 };

/* The pools of the first look that were there in each of the others. */
static void explain_all(const struct look *looks)
{
    struct weir__record *seen = calloc(LOOKS, sizeof *seen);
    char name[64];
    for (size_t i = 0; seen != NULL && i < looks[0].count; i++) {
        const struct weir__record *record = &looks[0].records[i];
        size_t count = 0;
        for (const struct weir__record *at = record; at != NULL && count < LOOKS;) {
            seen[count++] = *at;
            at = count < LOOKS ? find_record(&looks[count], record) : NULL;
        }
        if (count < LOOKS)
            continue; /* it went meanwhile */
        (void)printf("%u %s:\n", (unsigned)record->pid, format_name(record->name, sizeof name - 1, name));
        struct observation observation = {.looks = seen, .count = count};
        (void)explain(stdout, &observation);
    }
    free(seen);
}

static int explain_now(const struct options *options)
{
    struct look looks[LOOKS] = {{0}};
    double seconds = options->interval_s > 0 ? options->interval_s : 2;
    int status = STATUS_SHOWN;
    for (int i = 0; i < LOOKS && status == STATUS_SHOWN; i++) {
        if (i > 0)
            rest(seconds / (LOOKS - 1));
        if (!take_look(options, &looks[i]))
            status = STATUS_FAILED;
        else if (looks[i].count == 0)
            status = nothing(options);
    }
    if (status == STATUS_SHOWN)
        explain_all(looks);
    for (int i = 0; i < LOOKS; i++)
        forget(&looks[i]);
    return status;
}

/* ---- arguments ---- */

static void print_usage(FILE *out)
{
    (void)fputs("usage: weirstat [-d directory] [-i seconds [-c count]] \n"
                "                [--explain | --options [--json] | --json | --prometheus] [pid | name]\n"
                "Shows the pools and limiters of processes that run with WEIR_STATS_DIR; see weirstat(1).\n",
                out);
}

static bool parse_number(const char *text, double least, double *number)
{
    char *end = NULL;
    *number = strtod(text, &end);
    return end != text && *end == '\0' && *number >= least && *number <= 1e6;
}

/* 0, or the status to exit with; -1: help was wanted. */
static int parse(int argc, char **argv, struct options *options)
{
    static const struct option words[] = {{"json", no_argument, NULL, 'j'},    {"prometheus", no_argument, NULL, 'p'},
                                          {"explain", no_argument, NULL, 'e'}, {"options", no_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},    {NULL, 0, NULL, 0}};
    double count = 0;
    for (int letter; (letter = getopt_long(argc, argv, "d:i:c:h", words, NULL)) != -1;) {
        bool good = true;
        switch (letter) {
        case 'd':
            options->directory = optarg;
            break;
        case 'i':
            good = parse_number(optarg, 0.01, &options->interval_s);
            break;
        case 'c':
            good = parse_number(optarg, 1, &count);
            options->repeat = (unsigned long)count;
            break;
        case 'j':
            options->format = options->format == OPTIONS ? OPTIONS_JSON : JSON;
            break;
        case 'p':
            options->format = PROMETHEUS;
            break;
        case 'e':
            options->format = EXPLAIN;
            break;
        case 'o':
            options->format = options->format == JSON ? OPTIONS_JSON : OPTIONS;
            break;
        case 'h':
            return -1;
        default:
            good = false;
            break;
        }
        if (!good)
            return STATUS_USAGE;
    }
    if (optind < argc)
        options->wanted = argv[optind++];
    return optind == argc ? 0 : STATUS_USAGE;
}

int main(int argc, char **argv)
{
    struct options options = {.directory = getenv("WEIR_STATS_DIR"), .format = TABLE};
    (void)setlocale(LC_CTYPE, "");
    int status = parse(argc, argv, &options);
    if (status == -1) {
        print_usage(stdout);
        return STATUS_SHOWN;
    }
    if (status == 0 && (options.directory == NULL || options.directory[0] == '\0')) {
        (void)fputs("weirstat: no directory: neither -d nor WEIR_STATS_DIR\n", stderr);
        status = STATUS_USAGE;
    }
    if (status != 0) {
        print_usage(stderr);
        return status;
    }
    struct sigaction action = {.sa_handler = interrupt};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (options.format == EXPLAIN)
        status = explain_now(&options);
    else if (options.format == OPTIONS || options.format == OPTIONS_JSON)
        status = options_now(&options);
    else if (options.interval_s > 0 && options.format == TABLE)
        status = watch(&options);
    else
        status = show_once(&options);
    return fflush(stdout) != 0 ? STATUS_FAILED : status;
}
