/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The parts, one after the other. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "downstream.h"

#define LOCKED_MOST_NS (75 * NS_PER_S)

const char bench_name[] = "downstream";

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_EXPECTATION = 3, EXIT_INTERRUPTED = 130 };

struct part *const parts[] = {&part_http, &part_postgresql, &part_redis, &part_disk, &part_cpu, &part_fleet, NULL};

static volatile sig_atomic_t signalled;
static int lock_descriptors[2] = {-1, -1};
static uint64_t locked_ns;

static void note_signal(int number)
{
    signalled = number;
}

bool interrupted(void)
{
    return signalled != 0;
}

int bench_complain(const char *what, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "downstream: %s: %s\n", what, why);
    return EIO;
}

/* The first signal ends the runs in order, the second at once. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int pause_ns(uint64_t ns)
{
    uint64_t end = weir_after_ns(ns);
    while (!interrupted() && weir_now_ns() < end)
        sleep_until(end);
    return interrupted() ? EINTR : 0;
}

static int lock_one(const char *path, int *descriptor)
{
    *descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*descriptor < 0)
        return bench_complain(path, strerror(errno));
    if (flock(*descriptor, LOCK_EX) == 0)
        return 0;
    return errno == EINTR ? EINTR : bench_complain(path, strerror(errno));
}

int lock_machine(const struct options *options)
{
    int error = 0;
    for (size_t i = 0; i < 2 && error == 0; i++) {
        if (options->locks[i] == NULL || lock_descriptors[i] >= 0)
            continue;
        error = lock_one(options->locks[i], &lock_descriptors[i]);
        locked_ns = weir_now_ns();
    }
    if (error != 0)
        unlock_machine();
    return error;
}

void yield_machine(void)
{
    if (weir_now_ns() - locked_ns > LOCKED_MOST_NS)
        unlock_machine();
}

void unlock_machine(void)
{
    for (size_t i = 2; i-- > 0;) {
        if (lock_descriptors[i] >= 0)
            close(lock_descriptors[i]);
        lock_descriptors[i] = -1;
    }
}

struct part *part_find(const char *name)
{
    for (size_t i = 0; parts[i] != NULL; i++)
        if (strcmp(parts[i]->name, name) == 0)
            return parts[i];
    return NULL;
}

/* Every round goes once through all pools, so that what the machine does meanwhile meets all alike. */
static int run_all(struct outcome *outcome)
{
    const struct options *options = outcome->options;
    size_t total = options->pool_count * options->rounds;
    for (size_t i = 0; i < total; i++) {
        struct result *result = &outcome->results[i];
        result->kind = options->pools[i % options->pool_count];
        if (result->kind.algorithm == WEIR_FIXED && result->kind.fixed == 0)
            result->kind.fixed = outcome->sweep.best;
        int error = lock_machine(options);
        if (error == 0)
            error = run_pool(outcome->part, options, outcome->rate, result);
        yield_machine();
        if (error != 0)
            return error;
        outcome->count++;
        printf(" %s", result->kind.label);
        fflush(stdout);
    }
    putchar('\n');
    return 0;
}

static int measure(struct part *part, const struct options *options, bool *holds)
{
    struct outcome outcome = {.part = part, .options = options};
    int error = lock_machine(options);
    if (error == 0)
        error = sweep(part, options, &outcome.sweep);
    if (error != 0)
        return error;
    outcome.rate = options->load * outcome.sweep.rate;
    outcome.results = calloc(options->pool_count * options->rounds, sizeof *outcome.results);
    if (outcome.results == NULL)
        return bench_complain("the results", strerror(ENOMEM));
    printf("%s: %.0f arrivals per second; pools:", part->name, outcome.rate);
    error = run_all(&outcome);
    if (error == 0) {
        *holds &= report(&outcome);
        error = plot(&outcome);
    }
    for (size_t i = 0; i < outcome.count; i++)
        result_free(&outcome.results[i]);
    free(outcome.results);
    return error;
}

/* 0 also when the part had to be skipped. */
static int do_part(struct part *part, const struct options *options, bool *holds)
{
    if (part->missing != NULL) {
        printf("%s: skipped: %s\n", part->name, part->missing);
        return 0;
    }
    struct place place = {.path = ""};
    int error = place_create(&place, part->name);
    if (error == 0 && part->run != NULL) {
        error = part->run(part, &place, options);
    } else if (error == 0) {
        error = part->start(&place);
        if (error == 0)
            error = measure(part, options, holds);
        part->stop();
    }
    unlock_machine();
    place_remove(&place);
    return error == ENOTSUP ? 0 : error;
}

static bool chosen(const struct part *part, const struct options *options)
{
    bool found = options->part_count == 0;
    for (size_t i = 0; i < options->part_count; i++)
        found |= strcmp(options->parts[i], part->name) == 0;
    return found;
}

static bool prepare(const struct options *options)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max; /* a descriptor for each call in flight, here and in servers */
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (mkdir(options->output, 0777) != 0 && errno != EEXIST) {
        bench_complain(options->output, strerror(errno));
        return false;
    }
    catch_signals();
    return true;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], SERVER_MODE) == 0)
        return server_main(atoi(argv[2]));
    struct options options;
    switch (options_parse(&options, argc, argv)) {
    case OPTIONS_HELP:
        return EXIT_DONE;
    case OPTIONS_BAD:
        return EXIT_USAGE;
    case OPTIONS_RUN:
        break;
    }
    if (!prepare(&options))
        return EXIT_FAILED;
    bool holds = true;
    bool failed = false;
    for (size_t i = 0; parts[i] != NULL && !interrupted(); i++)
        if (chosen(parts[i], &options))
            failed |= do_part(parts[i], &options, &holds) != 0;
    if (interrupted()) {
        fputs("downstream: interrupted\n", stderr);
        return EXIT_INTERRUPTED;
    }
    return failed ? EXIT_FAILED : options.check && !holds ? EXIT_EXPECTATION : EXIT_DONE;
}
