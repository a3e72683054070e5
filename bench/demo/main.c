/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The same load through an adaptive pool and through a fixed one, and what became of it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo.h"

const char bench_name[] = "demo";

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_EXPECTATION = 3, EXIT_INTERRUPTED = 130 };

static volatile sig_atomic_t signalled;

static void note_signal(int number)
{
    signalled = number;
}

bool interrupted(void)
{
    return signalled != 0;
}

/* The first signal ends the run in order, the second at once. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

/* Each request in flight is a descriptor here and one in the server, which inherits this. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static bool prepare_output(const char *directory)
{
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "demo: %s: %s\n", directory, strerror(errno));
        return false;
    }
    if (access(directory, W_OK | X_OK) != 0) {
        fprintf(stderr, "demo: %s: %s\n", directory, strerror(errno));
        return false;
    }
    return true;
}

static const char *algorithm_name(uint32_t algorithm)
{
    switch (algorithm) {
    case WEIR_VEGAS2:
        return "vegas2";
    case WEIR_GRADIENT2:
        return "gradient2";
    case WEIR_VEGAS:
        return "vegas";
    case WEIR_AIMD:
        return "aimd";
    default:
        return "fixed";
    }
}

/* A pool as it comes, but for what the environment and --algorithm say, in this order. */
static int run_adaptive(const struct options *options, struct result *result)
{
    weir_config config;
    weir_config_init(&config);
    int error = weir_config_load_env(&config, "adaptive");
    if (error == 0 && options->algorithm != NULL) {
        error = weir_config_set(&config, "ALGORITHM", options->algorithm);
        config.flags |= WEIR_NO_ENV; /* it has been read, and would now win */
    }
    if (error != 0)
        return error;
    config.on_worker_stop = http_close;
    struct run run = {
        .options = options,
        .label = "adaptive",
        .algorithm = algorithm_name(config.algorithm),
        .number = 1,
        .config = &config,
    };
    return run_once(&run, result);
}

/* A plain pool: a number of threads and as many places in front of them. The environment does not reach it. */
static int run_fixed(const struct options *options, struct result *result)
{
    weir_config config;
    weir_config_init(&config);
    config.flags |= WEIR_NO_ENV;
    config.algorithm = WEIR_FIXED;
    config.initial_limit = options->fixed;
    if (config.max_limit < options->fixed)
        config.max_limit = options->fixed;
    config.queue_depth = options->fixed;
    config.on_worker_stop = http_close;
    char algorithm[32];
    snprintf(algorithm, sizeof algorithm, "%u threads", options->fixed);
    struct run run = {
        .options = options,
        .label = "fixed",
        .algorithm = algorithm,
        .number = 2,
        .config = &config,
    };
    return run_once(&run, result);
}

static double cpu_s(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int compare(const struct options *options, struct result *adaptive, struct result *fixed)
{
    uint64_t start = weir_now_ns();
    int error = run_adaptive(options, adaptive);
    if (error == 0)
        error = run_fixed(options, fixed);
    if (error == EINTR)
        fputs("demo: interrupted\n", stderr);
    if (error != 0)
        return error == EINTR ? EXIT_INTERRUPTED : error == EINVAL ? EXIT_USAGE : EXIT_FAILED;
    double seconds = (double)(weir_now_ns() - start) / NS_PER_S;
    bool holds = report(options, adaptive, fixed);
    printf("Both runs took %.0f s and %.1f s of processor time%s.\n", seconds,
           cpu_s(RUSAGE_SELF) + cpu_s(RUSAGE_CHILDREN), options->plan.own_server ? ", the server's included" : "");
    if (plot(options, adaptive, fixed) != 0)
        return EXIT_FAILED;
    return options->check && !holds ? EXIT_EXPECTATION : EXIT_DONE;
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
    if (!prepare_output(options.output))
        return EXIT_FAILED;
    raise_descriptor_limit();
    catch_signals();
    static struct result adaptive, fixed;
    int status = compare(&options, &adaptive, &fixed);
    result_free(&adaptive);
    result_free(&fixed);
    if (fflush(stdout) != 0 && status == EXIT_DONE)
        status = EXIT_FAILED;
    return status;
}
