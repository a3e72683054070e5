/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The command: plays scenarios with controllers and seeds, in a few processes, and prints the table. */

#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64

struct suite {
    const struct sim_scenario **scenarios;
    size_t scenarios_count;
    struct sim_drawn *drawn; /* the random ones; NULL: none */
    size_t random;           /* how many are wanted; 0: the suite */
    const struct sim_controller *controllers[MOST];
    size_t controllers_count;
    uint64_t seed;
    unsigned seeds;
    unsigned workers;
    bool quick;
    const char *csv;
    const char *plots;
    const char *decisions;
};

/* Shared by the workers. */
struct board {
    atomic_size_t next; /* atomic; scenario that nobody plays yet */
    atomic_size_t done; /* atomic */
    atomic_bool failed; /* atomic */
    struct sim_row rows[];
};

static const char usage[] =
    "usage: sim [options]\n"
    "  --scenario ID[,ID]     only these (default: all; \"list\" prints them)\n"
    "  --estimator NAME[,…]   only these (default: vegas2 and the references; \"mutants\", \"list\")\n"
    "  --random N             instead of the suite N scenarios at random, one for each seed (suite: 0)\n"
    "  --seed N               the first seed (1)\n"
    "  --seeds K              how many to play a scenario with (5; random: 1)\n"
    "  --jobs N               processes (2)\n"
    "  --quick                the short regression's scenarios, one seed; random: without the sweep of fixed limits\n"
    "  --csv DIR              results as DIR/results.csv, by phases as DIR/phases.csv\n"
    "  --plots DIR            a plot of each run with the first seed, and DIR/index.html\n"
    "  --decisions DIR        why the limit moved: a file for each run\n";

static FILE *open_decisions(const struct suite *suite, const char *scenario, const char *controller, uint64_t seed)
{
    if (suite->decisions == NULL)
        return NULL;
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s-%s-%ju.csv", suite->decisions, scenario, controller, (uintmax_t)seed);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        (void)fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
    else
        (void)fprintf(file, "seconds,client,old,new,phase,reason,rtt_ms,noload_ms,throughput,in_flight,optimum\n");
    return file;
}

static struct sim_row *row_of(const struct suite *suite, struct board *board, size_t scenario, size_t controller)
{
    return &board->rows[scenario * suite->controllers_count + controller];
}

static void play(const struct suite *suite, struct board *board, size_t index)
{
    const struct sim_scenario *scenario = suite->scenarios[index];
    const bool random = scenario->drawn_from != 0;
    const uint64_t seed = random ? scenario->drawn_from : suite->seed;
    struct sim_oracle swept;
    const struct sim_oracle *oracle = random && suite->quick ? NULL : &swept;
    if (oracle != NULL)
        sim_find_oracle(scenario, seed, scenario->heavy || suite->quick || random, &swept);
    for (unsigned i = 0; i < suite->seeds; i++) {
        struct sim_result best;
        sim_run(scenario, sim_find_controller("oracle"), seed + i, oracle, NULL, &best);
        for (size_t k = 0; k < suite->controllers_count; k++) {
            const struct sim_controller *controller = suite->controllers[k];
            if (scenario->heavy && i >= 2 && controller->algorithm != WEIR_VEGAS2)
                continue;
            bool plotted = suite->plots != NULL && i == 0;
            struct sim_trace trace = {.decisions = open_decisions(suite, scenario->id, controller->name, seed + i),
                                      .wanted = plotted};
            struct sim_row *row = row_of(suite, board, index, k);
            sim_run(scenario, controller, seed + i, oracle, &trace, &row->results[i]);
            sim_compare(&row->results[i], &best);
            row->seeds = i + 1;
            if (plotted && !sim_plot(suite->plots, scenario, controller, &trace))
                atomic_store(&board->failed, true);
            free(trace.points);
            if (trace.decisions != NULL && fclose(trace.decisions) != 0)
                atomic_store(&board->failed, true);
        }
    }
}

static void work(const struct suite *suite, struct board *board)
{
    for (;;) {
        size_t index = atomic_fetch_add(&board->next, 1);
        if (index >= suite->scenarios_count)
            return;
        play(suite, board, index);
        size_t done = atomic_fetch_add(&board->done, 1) + 1;
        if (isatty(STDERR_FILENO))
            (void)fprintf(stderr, "\r%zu of %zu scenarios, last %-10s", done, suite->scenarios_count,
                          suite->scenarios[index]->id);
    }
}

static bool run_workers(const struct suite *suite, struct board *board)
{
    pid_t workers[MOST];
    unsigned count = 0;
    while (count + 1 < suite->workers) {
        workers[count] = fork();
        if (workers[count] < 0)
            break;
        if (workers[count] == 0) {
            work(suite, board);
            _exit(0);
        }
        count++;
    }
    work(suite, board);
    bool good = true;
    for (unsigned i = 0; i < count; i++) {
        int status = 0;
        good = waitpid(workers[i], &status, 0) == workers[i] && status == 0 && good;
    }
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r%60s\r", "");
    return good && !atomic_load(&board->failed);
}

static FILE *open_csv(const char *directory, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *csv = fopen(path, "w");
    if (csv == NULL)
        (void)fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
    return csv;
}

static bool write_csv(const struct suite *suite, struct board *board)
{
    FILE *results = open_csv(suite->csv, "results.csv"), *phases = open_csv(suite->csv, "phases.csv");
    bool good = results != NULL && phases != NULL;
    if (good) {
        sim_csv_head(results);
        sim_phases_head(phases);
        for (size_t s = 0; s < suite->scenarios_count; s++)
            for (size_t k = 0; k < suite->controllers_count; k++) {
                const struct sim_scenario *scenario = suite->scenarios[s];
                const struct sim_row *row = row_of(suite, board, s, k);
                const uint64_t seed = scenario->drawn_from != 0 ? scenario->drawn_from : suite->seed;
                sim_csv_row(results, scenario, suite->controllers[k], row, seed);
                sim_phases_row(phases, scenario, suite->controllers[k], row, seed);
            }
    }
    good = results != NULL && fclose(results) == 0 && good;
    return phases != NULL && fclose(phases) == 0 && good;
}

static void print_suite(const struct suite *suite, struct board *board)
{
    sim_print_head(stdout);
    size_t met = 0;
    for (size_t s = 0; s < suite->scenarios_count; s++) {
        (void)printf("%s: %s\n", suite->scenarios[s]->id, suite->scenarios[s]->title);
        for (size_t k = 0; k < suite->controllers_count; k++) {
            const struct sim_controller *controller = suite->controllers[k];
            bool judged = controller->algorithm == WEIR_VEGAS2 || controller->mutant;
            sim_print_row(stdout, suite->scenarios[s], controller, row_of(suite, board, s, k), judged);
            struct sim_result mean = sim_mean(row_of(suite, board, s, k));
            met += judged && !controller->mutant && sim_missed(suite->scenarios[s], &mean) == NULL;
        }
    }
    (void)printf("vegas2 meets the goals of %zu of %zu scenarios\n", met, suite->scenarios_count);
}

static bool print_results(const struct suite *suite, struct board *board)
{
    if (suite->random > 0) {
        struct sim_population all = {suite->scenarios, suite->scenarios_count, suite->controllers,
                                     suite->controllers_count, board->rows};
        sim_print_population(stdout, &all);
    } else {
        print_suite(suite, board);
    }
    return suite->csv == NULL || write_csv(suite, board);
}

/* ---- options ---- */

static int list_scenarios(void)
{
    for (size_t i = 0; i < sim_scenarios_count; i++)
        (void)printf("%-10s %s\n", sim_scenarios[i].id, sim_scenarios[i].title);
    return EXIT_SUCCESS;
}

static int list_controllers(void)
{
    for (size_t i = 0; i < sim_controllers_count; i++)
        (void)printf("%-14s %s\n", sim_controllers[i].name, sim_controllers[i].title);
    return EXIT_SUCCESS;
}

static void *room_for(size_t count, size_t size)
{
    void *room = calloc(count, size);
    if (room == NULL)
        abort();
    return room;
}

static bool choose_scenarios(struct suite *suite, char *ids)
{
    free(suite->scenarios);
    suite->scenarios = room_for(strlen(ids) + 1, sizeof *suite->scenarios);
    suite->scenarios_count = 0;
    for (char *id = strtok(ids, ","); id != NULL; id = strtok(NULL, ",")) {
        const struct sim_scenario *scenario = sim_find_scenario(id);
        if (scenario == NULL) {
            (void)fprintf(stderr, "sim: no scenario %s\n", id);
            return false;
        }
        suite->scenarios[suite->scenarios_count++] = scenario;
    }
    return true;
}

static void choose_mutants(struct suite *suite)
{
    for (size_t i = 0; i < sim_controllers_count && suite->controllers_count < MOST; i++)
        if (sim_controllers[i].mutant)
            suite->controllers[suite->controllers_count++] = &sim_controllers[i];
}

static bool choose_controllers(struct suite *suite, char *names)
{
    suite->controllers_count = 0;
    for (char *name = strtok(names, ","); name != NULL && suite->controllers_count < MOST; name = strtok(NULL, ",")) {
        if (strcmp(name, "mutants") == 0) {
            choose_mutants(suite);
            continue;
        }
        const struct sim_controller *controller = sim_find_controller(name);
        if (controller == NULL) {
            (void)fprintf(stderr, "sim: no estimator %s\n", name);
            return false;
        }
        suite->controllers[suite->controllers_count++] = controller;
    }
    return true;
}

static void draw_scenarios(struct suite *suite)
{
    suite->drawn = room_for(suite->random, sizeof *suite->drawn);
    suite->scenarios = room_for(suite->random, sizeof *suite->scenarios);
    for (size_t i = 0; i < suite->random; i++) {
        sim_draw(&suite->drawn[i], suite->seed + i);
        suite->scenarios[suite->scenarios_count++] = &suite->drawn[i].scenario;
    }
}

static void take_all_scenarios(struct suite *suite)
{
    suite->scenarios = room_for(sim_scenarios_count, sizeof *suite->scenarios);
    for (size_t i = 0; i < sim_scenarios_count; i++)
        if (!suite->quick || sim_scenarios[i].quick)
            suite->scenarios[suite->scenarios_count++] = &sim_scenarios[i];
}

/* Those that adapt, and in the suite, whose capacities they were chosen for, the fixed ones as well. */
static void take_all_controllers(struct suite *suite)
{
    for (size_t i = 0; i < sim_controllers_count && suite->controllers_count < MOST; i++) {
        const struct sim_controller *c = &sim_controllers[i];
        bool adapts = c->algorithm != 0 && c->algorithm != WEIR_FIXED;
        if (!c->mutant && (adapts || suite->random == 0))
            suite->controllers[suite->controllers_count++] = c;
    }
}

/* What no option has said. */
static void complete(struct suite *suite)
{
    if (suite->random > 0)
        draw_scenarios(suite);
    else if (suite->scenarios == NULL)
        take_all_scenarios(suite);
    if (suite->controllers_count == 0)
        take_all_controllers(suite);
    if (suite->seeds == 0)
        suite->seeds = suite->random > 0 || suite->quick ? 1 : 5;
}

/* -1: go on, else the exit status. */
static int read_option(struct suite *suite, int option)
{
    switch (option) {
    case 's':
        if (strcmp(optarg, "list") == 0)
            return list_scenarios();
        return choose_scenarios(suite, optarg) ? -1 : 2;
    case 'e':
        if (strcmp(optarg, "list") == 0)
            return list_controllers();
        return choose_controllers(suite, optarg) ? -1 : 2;
    case 'n':
        suite->seed = strtoull(optarg, NULL, 10);
        return suite->seed >= 1 ? -1 : 2;
    case 'k':
        suite->seeds = (unsigned)strtoul(optarg, NULL, 10);
        return suite->seeds >= 1 && suite->seeds <= SIM_MOST_SEEDS ? -1 : 2;
    case 'j':
        suite->workers = (unsigned)strtoul(optarg, NULL, 10);
        return suite->workers >= 1 && suite->workers <= MOST ? -1 : 2;
    case 'q':
        suite->quick = true;
        return -1;
    case 'r':
        suite->random = strtoul(optarg, NULL, 10);
        return suite->random >= 1 && suite->random <= 100000 ? -1 : 2;
    case 'c':
        suite->csv = optarg;
        return -1;
    case 'p':
        suite->plots = optarg;
        return -1;
    case 'd':
        suite->decisions = optarg;
        return -1;
    case 'h':
        (void)fputs(usage, stdout);
        return EXIT_SUCCESS;
    default:
        (void)fputs(usage, stderr);
        return 2;
    }
}

static bool make_directory(const char *path)
{
    if (path == NULL || mkdir(path, 0777) == 0 || errno == EEXIST)
        return true;
    (void)fprintf(stderr, "sim: %s: %s\n", path, strerror(errno));
    return false;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"scenario", required_argument, NULL, 's'}, {"estimator", required_argument, NULL, 'e'},
        {"random", required_argument, NULL, 'r'},   {"seed", required_argument, NULL, 'n'},
        {"seeds", required_argument, NULL, 'k'},    {"jobs", required_argument, NULL, 'j'},
        {"quick", no_argument, NULL, 'q'},          {"csv", required_argument, NULL, 'c'},
        {"plots", required_argument, NULL, 'p'},    {"decisions", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    struct suite suite = {.seed = 1, .workers = 2};
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        int status = read_option(&suite, option);
        if (status >= 0)
            return status;
    }
    if (!make_directory(suite.csv) || !make_directory(suite.plots) || !make_directory(suite.decisions))
        return EXIT_FAILURE;
    complete(&suite);
    size_t rows = suite.scenarios_count * suite.controllers_count;
    struct board *board = mmap(NULL, sizeof *board + rows * sizeof board->rows[0], PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return EXIT_FAILURE;
    bool good = run_workers(&suite, board);
    good = print_results(&suite, board) && good;
    if (suite.plots != NULL)
        good = sim_plot_index(suite.plots, suite.scenarios, suite.scenarios_count, suite.controllers,
                              suite.controllers_count) &&
               good;
    free(suite.scenarios);
    free(suite.drawn);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
