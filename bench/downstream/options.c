/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include <getopt.h>
#include <string.h>

#include "downstream.h"

static const char usage_text[] =
    "Usage: downstream [OPTION]... [PART]...\n"
    "Puts pools before real downstreams while these degrade: fixed ones of several numbers of\n"
    "threads, the best such number that a sweep finds, and adaptive ones. Each part starts its\n"
    "own server on loopback, in a temporary directory, and ends it. Without a PART, all of:\n"
    "\n"
    "  http        libcurl, nginx with limit_conn and limit_req, a backend that slows down\n"
    "  postgresql  libpq, a connection per worker; a busy neighbour, a lock, few connections\n"
    "  redis       hiredis; calls of microseconds, a stall\n"
    "  disk        O_DIRECT random reads of a file\n"
    "  cpu         a computation; fewer processors\n"
    "  fleet       8 and 32 processes before one PostgreSQL, drain grid on and off\n"
    "\n"
    "  --pools LIST    of numbers of threads, best, vegas2, gradient2, vegas and aimd\n"
    "                  (default 4,16,64,256,best,gradient2,vegas,vegas2)\n"
    "  --seconds S     of each phase (default: the part's own, about 5)\n"
    "  --load X        arrivals, by what the best fixed number completes (default 1.2)\n"
    "  --rounds N      runs of each pool; the table shows means (default 1)\n"
    "  --output DIR    where tables, pictures and data go (default: bench-downstream)\n"
    "  --trace         also write why each limit moved\n"
    "  --lock FILE     hold an flock on FILE while measuring, for a minute or two at a time; may\n"
    "                  be given twice\n"
    "  --check         exit with 3 if vegas2 does not do what the verdict lists\n"
    "  --help          this text\n"
    "\n"
    "Exit status: 0 done, 1 a run failed, 2 bad arguments, 3 see --check, 130 interrupted.\n";

static bool parse_pool(const char *text, struct pool_kind *kind)
{
    static const struct {
        const char *name;
        uint32_t algorithm;
    } names[] = {
        {"best", WEIR_FIXED},  {"vegas2", WEIR_VEGAS2}, {"gradient2", WEIR_GRADIENT2},
        {"vegas", WEIR_VEGAS}, {"aimd", WEIR_AIMD},
    };
    *kind = (struct pool_kind){.algorithm = WEIR_FIXED};
    snprintf(kind->label, sizeof kind->label, "%s", text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i].name) != 0)
            continue;
        kind->algorithm = names[i].algorithm;
        return true;
    }
    return option_whole(text, 1, 1000, &kind->fixed);
}

static bool parse_pools(struct options *options, const char *text)
{
    char copy[256];
    char *rest = copy;
    if (strlen(text) >= sizeof copy)
        return false;
    strcpy(copy, text);
    options->pool_count = 0;
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (options->pool_count == POOLS_MAX || !parse_pool(word, &options->pools[options->pool_count++]))
            return false;
    }
    return true;
}

static enum options_result parse_one(struct options *options, int option, const char *value)
{
    switch (option) {
    case 'p':
        if (!parse_pools(options, value))
            return option_refuse("--pools", value,
                                 "a list of numbers of threads, best, vegas2, gradient2, vegas and aimd");
        return OPTIONS_RUN;
    case 's':
        if (!option_number(value, 0.2, 3600, &options->seconds))
            return option_refuse("--seconds", value, "a number of seconds from 0.2 to 3600");
        return OPTIONS_RUN;
    case 'l':
        if (!option_number(value, 0.01, 100, &options->load))
            return option_refuse("--load", value, "a factor from 0.01 to 100");
        return OPTIONS_RUN;
    case 'r':
        if (!option_whole(value, 1, 20, &options->rounds))
            return option_refuse("--rounds", value, "a whole number from 1 to 20");
        return OPTIONS_RUN;
    case 'o':
        options->output = value;
        return OPTIONS_RUN;
    case 't':
        options->trace = true;
        return OPTIONS_RUN;
    case 'k':
        options->locks[options->locks[0] != NULL] = value;
        return OPTIONS_RUN;
    case 'c':
        options->check = true;
        return OPTIONS_RUN;
    case 'h':
        fputs(usage_text, stdout);
        return OPTIONS_HELP;
    default:
        fputs("downstream: --help lists the options\n", stderr);
        return OPTIONS_BAD;
    }
}

static enum options_result parse_parts(struct options *options, int count, char **names)
{
    for (int i = 0; i < count; i++) {
        if (part_find(names[i]) == NULL)
            return option_refuse("part", names[i], "one that --help lists");
        if (options->part_count < sizeof options->parts / sizeof *options->parts)
            options->parts[options->part_count++] = names[i];
    }
    return OPTIONS_RUN;
}

enum options_result options_parse(struct options *options, int argc, char **argv)
{
    static const struct option table[] = {
        {"pools", required_argument, NULL, 'p'},  {"seconds", required_argument, NULL, 's'},
        {"load", required_argument, NULL, 'l'},   {"rounds", required_argument, NULL, 'r'},
        {"output", required_argument, NULL, 'o'}, {"trace", no_argument, NULL, 't'},
        {"lock", required_argument, NULL, 'k'},   {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    *options = (struct options){.load = 1.2, .rounds = 1, .output = "bench-downstream"};
    parse_pools(options, "4,16,64,256,best,gradient2,vegas,vegas2");
    int option;
    while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
        enum options_result result = parse_one(options, option, optarg);
        if (result != OPTIONS_RUN)
            return result;
    }
    return parse_parts(options, argc - optind, argv + optind);
}
