/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "peers.h"

/* Every section interleaves its measurements: each round goes once through all rows and peers, so that what the machine
 * does meanwhile meets everybody alike. */

static unsigned rounds = 5;
static bool quick;
static const char *only; /* a section, or NULL */

static bool wanted(const char *section)
{
    return only == NULL || strcmp(only, section) == 0;
}

static void failed(const struct peer *peer, const char *label)
{
    (void)fprintf(stderr, "peers: %s: %s gave no figure\n", label, peer->name);
}

/* ---- throughput ---- */

struct throughput_cell {
    const struct peer *peer;
    struct load load;
};

static void throughput_of(const void *what, double *figures)
{
    const struct throughput_cell *cell = what;
    struct throughput result;
    measure_throughput(cell->peer, &cell->load, &result);
    figures[0] = result.per_second;
    figures[1] = result.cpu_ns;
    figures[2] = result.switches;
}

struct throughput_row {
    const char *label;
    struct load load;
    struct row rate;
    struct row cpu;
    struct row switches;
};

static struct throughput_row throughput_rows[] = {
    {.label = "no-op, 1 thread", .load = {WORK_NOTHING, 0, 1, 1, 0}},
    {.label = "no-op, 2 threads", .load = {WORK_NOTHING, 0, 2, 1, 0}},
    {.label = "no-op, 4 threads", .load = {WORK_NOTHING, 0, 4, 1, 0}},
    {.label = "no-op, 16 threads", .load = {WORK_NOTHING, 0, 16, 1, 0}},
    {.label = "no-op, 64 threads", .load = {WORK_NOTHING, 0, 64, 1, 0}},
    {.label = "no-op, 8 producers, 4", .load = {WORK_NOTHING, 0, 4, 8, 0}},
    {.label = "no-op, 8 producers, 64", .load = {WORK_NOTHING, 0, 64, 8, 0}},
    {.label = "spin 1 us, 1 thread", .load = {WORK_SPIN, 1000, 1, 1, 0}},
    {.label = "spin 1 us, 4 threads", .load = {WORK_SPIN, 1000, 4, 1, 0}},
    {.label = "spin 10 us, 1 thread", .load = {WORK_SPIN, 10000, 1, 1, 0}},
    {.label = "spin 10 us, 4 threads", .load = {WORK_SPIN, 10000, 4, 1, 0}},
    {.label = "sleep 1 ms, 256 threads", .load = {WORK_SLEEP, 1000000, 256, 1, 0}},
    {.label = "sleep 1 ms, 1024 threads", .load = {WORK_SLEEP, 1000000, 1024, 1, 0}},
};
enum { THROUGHPUT_ROWS = sizeof throughput_rows / sizeof throughput_rows[0] };

static bool takes_part(const struct peer *peer, const struct load *load)
{
    if (peer == &peer_raw && load->work == WORK_NOTHING)
        return false; /* nothing, without a pool, takes no time */
    if (peer->producers != 0 && load->producers > peer->producers)
        return false;
    return peer->most == 0 || load->threads <= peer->most;
}

static void measure_throughput_row(struct throughput_row *row)
{
    struct throughput_cell cell = {.load = row->load};
    if (row->load.work == WORK_SLEEP)
        cell.load.count = (uint64_t)row->load.threads * (quick ? 30 : 100);
    for (unsigned i = 0; peers[i] != NULL; i++) {
        double figures[3];
        cell.peer = peers[i];
        if (!takes_part(peers[i], &row->load))
            continue;
        if (!cell_run(throughput_of, &cell, figures, 3)) {
            failed(peers[i], row->label);
            continue;
        }
        series_add(&row->rate.by_peer[i], figures[0]);
        series_add(&row->cpu.by_peer[i], figures[1]);
        series_add(&row->switches.by_peer[i], figures[2]);
    }
}

static void plot_width(const struct throughput_row *row)
{
    if (row->load.work != WORK_NOTHING || row->load.producers != 1)
        return;
    char line[1024];
    int length = snprintf(line, sizeof line, "%u", row->load.threads);
    for (unsigned i = 0; peers[i] != NULL; i++) {
        if (peers[i] != &peer_raw)
            length += snprintf(line + length, sizeof line - (size_t)length, " %g %g", median(&row->rate.by_peer[i]),
                               median(&row->cpu.by_peer[i]));
    }
    plot_line("width", "%s", line);
}

static void throughput_section(void)
{
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < THROUGHPUT_ROWS; i++)
            measure_throughput_row(&throughput_rows[i]);
    }
    report_heading("Jobs per second");
    for (unsigned i = 0; i < THROUGHPUT_ROWS; i++) {
        struct throughput_row *row = &throughput_rows[i];
        row->rate.unit = UNIT_RATE;
        row->rate.more_is_better = true;
        row->cpu.unit = UNIT_NS;
        row->switches.unit = UNIT_NUMBER;
        (void)snprintf(row->rate.label, sizeof row->rate.label, "%s", row->label);
        (void)snprintf(row->cpu.label, sizeof row->cpu.label, "%s", row->label);
        (void)snprintf(row->switches.label, sizeof row->switches.label, "%s", row->label);
        report_row(&row->rate);
        plot_width(row);
    }
    report_heading("CPU time per job, whole process");
    for (unsigned i = 0; i < THROUGHPUT_ROWS; i++)
        report_row(&throughput_rows[i].cpu);
    report_heading("Context switches per job");
    for (unsigned i = 0; i < THROUGHPUT_ROWS; i++)
        report_row(&throughput_rows[i].switches);
}

/* ---- latency ---- */

struct ping_cell {
    const struct peer *peer;
    unsigned threads;
    uint64_t pause_ns;
    unsigned pings;
};

static void ping_of(const void *what, double *figures)
{
    const struct ping_cell *cell = what;
    if (cell->peer == &peer_raw)
        measure_semaphores(cell->pause_ns, cell->pings, figures);
    else
        measure_ping(cell->peer, cell->threads, cell->pause_ns, cell->pings, figures);
}

static struct ping_row {
    const char *label;
    unsigned threads;
    uint64_t pause_ns;
    struct row row[PERCENTILES];
} ping_rows[] = {
    {.label = "hot, 1 thread", .threads = 1},
    {.label = "hot, 4 threads", .threads = 4},
    {.label = "hot, 64 threads", .threads = 64},
    {.label = "idle 200 us, 1 thread", .threads = 1, .pause_ns = 200000},
    {.label = "idle 200 us, 4 threads", .threads = 4, .pause_ns = 200000},
    {.label = "idle 200 us, 64 threads", .threads = 64, .pause_ns = 200000},
};
enum { PING_ROWS = sizeof ping_rows / sizeof ping_rows[0] };

static void measure_ping_row(struct ping_row *row)
{
    struct ping_cell cell = {.threads = row->threads, .pause_ns = row->pause_ns};
    cell.pings = row->pause_ns != 0 ? 300 : 5000;
    cell.pings *= quick ? 1 : 2;
    for (unsigned i = 0; peers[i] != NULL; i++) {
        double figures[PERCENTILES];
        cell.peer = peers[i];
        if (peers[i]->run != NULL && peers[i] != &peer_raw)
            continue;
        if (!cell_run(ping_of, &cell, figures, PERCENTILES)) {
            failed(peers[i], row->label);
            continue;
        }
        for (unsigned p = 0; p < PERCENTILES; p++)
            series_add(&row->row[p].by_peer[i], figures[p] / 1e3);
    }
}

static void ping_section(void)
{
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < PING_ROWS; i++)
            measure_ping_row(&ping_rows[i]);
    }
    report_heading("Submit and wait (raw: two threads and two semaphores)");
    for (unsigned i = 0; i < PING_ROWS; i++) {
        for (unsigned p = 0; p < PERCENTILES; p++) {
            struct row *row = &ping_rows[i].row[p];
            row->unit = UNIT_US;
            (void)snprintf(row->label, sizeof row->label, "%s, p%g", ping_rows[i].label, percentiles[p]);
            if (percentiles[p] > 49 && percentiles[p] < 99.5)
                report_row(row);
        }
        for (unsigned peer = 0; peers[peer] != NULL; peer++) {
            const struct row *row = ping_rows[i].row;
            if (row[0].by_peer[peer].count != 0)
                plot_line("latency", "\"%s\" \"%s\" %u %g %g %g %g %g", ping_rows[i].label, peers[peer]->name, i,
                          median(&row[0].by_peer[peer]), median(&row[1].by_peer[peer]), median(&row[2].by_peer[peer]),
                          median(&row[3].by_peer[peer]), median(&row[4].by_peer[peer]));
        }
    }
}

/* ---- what a queue costs ---- */

static void cost_of(const void *what, double *figures)
{
    struct cost cost;
    const struct peer *peer = *(const struct peer *const *)what;
    measure_cost(peer, peer->most_queued != 0 ? peer->most_queued : MANY, &cost);
    figures[0] = cost.bytes;
    figures[1] = cost.mallocs;
    figures[2] = cost.few_ns;
    figures[3] = cost.many_ns;
}

static void life_of(const void *what, double *figures)
{
    struct life life = {0};
    measure_life(*(const struct peer *const *)what, 64, quick ? 500000000 : 2000000000, &life);
    figures[0] = life.create_us;
    figures[1] = life.create_threads;
    figures[2] = life.destroy_idle_us;
    figures[3] = life.destroy_busy_us;
    figures[4] = life.idle_switches;
    figures[5] = life.idle_cpu_us;
}

enum { MOST_FIGURES = 6 };

/* One process gives all figures of a peer, each a row. */
static void figures_section(const char *title, measure_fn *measure, struct row *rows, unsigned count)
{
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; peers[i] != NULL; i++) {
            double figures[MOST_FIGURES];
            if (peers[i]->run != NULL)
                continue;
            if (!cell_run(measure, &peers[i], figures, count)) {
                failed(peers[i], title);
                continue;
            }
            for (unsigned f = 0; f < count; f++)
                series_add(&rows[f].by_peer[i], figures[f]);
        }
    }
    report_heading(title);
    for (unsigned f = 0; f < count; f++)
        report_row(&rows[f]);
}

static void cost_section(void)
{
    static struct row rows[] = {{.label = "bytes per queued job", .unit = UNIT_NUMBER},
                                {.label = "mallocs per submit", .unit = UNIT_NUMBER},
                                {.label = "submit at 10 queued", .unit = UNIT_NS},
                                {.label = "submit at 10^6 queued", .unit = UNIT_NS}};
    figures_section("What a queue costs (one thread, busy; apr, slow at it, with 2*10^4 queued)", cost_of, rows, 4);
}

static void life_section(void)
{
    static struct row rows[] = {{.label = "create, 64 threads", .unit = UNIT_US},
                                {.label = "threads started by that", .unit = UNIT_NUMBER},
                                {.label = "destroy, 64 idle", .unit = UNIT_US},
                                {.label = "destroy, 64 in 1 ms jobs", .unit = UNIT_US},
                                {.label = "context switches while idle", .unit = UNIT_NUMBER},
                                {.label = "CPU while idle", .unit = UNIT_US}};
    figures_section("Birth, idleness and death (libuv cannot be destroyed)", life_of, rows, 6);
}

/* ---- permits ---- */

struct gate_cell {
    enum gate gate;
    unsigned threads;
    unsigned permits;
};

static void gate_of(const void *what, double *figures)
{
    const struct gate_cell *cell = what;
    figures[0] = measure_gate(cell->gate, cell->threads, cell->permits);
}

static void gate_section(void)
{
    static const struct gate_cell shapes[] = {{.threads = 1, .permits = 1},  {.threads = 2, .permits = 2},
                                              {.threads = 8, .permits = 8},  {.threads = 64, .permits = 64},
                                              {.threads = 2, .permits = 1},  {.threads = 8, .permits = 4},
                                              {.threads = 64, .permits = 32}};
    enum { SHAPES = sizeof shapes / sizeof shapes[0] };
    static struct series all[SHAPES][GATES];
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < SHAPES; i++) {
            for (unsigned gate = 0; gate < GATES; gate++) {
                struct gate_cell cell = shapes[i];
                double ns;
                cell.gate = (enum gate)gate;
                if (cell_run(gate_of, &cell, &ns, 1))
                    series_add(&all[i][gate], ns);
            }
        }
    }
    (void)printf("\nAcquire and release (time of the run per pair)\n%-30s", "");
    for (unsigned gate = 0; gate < GATES; gate++)
        (void)printf("%11s ", gate_names[gate]);
    (void)printf("\n");
    for (unsigned i = 0; i < SHAPES; i++) {
        (void)printf("%3u threads, %3u permits       ", shapes[i].threads, shapes[i].permits);
        for (unsigned gate = 0; gate < GATES; gate++)
            report_cell(UNIT_NS, &all[i][gate]);
        (void)printf("\n");
    }
}

/* ---- the estimator ---- */

static void update_of(const void *what, double *figures)
{
    struct update update;
    measure_update(*(const uint32_t *)what, &update);
    figures[0] = update.ns;
    figures[1] = update.mallocs;
}

static void update_section(void)
{
    static const uint32_t algorithms[] = {WEIR_VEGAS2, WEIR_GRADIENT2, WEIR_VEGAS, WEIR_AIMD, WEIR_FIXED};
    static const char *const names[] = {"vegas2", "gradient2", "vegas", "aimd", "fixed"};
    enum { ALGORITHMS = sizeof algorithms / sizeof algorithms[0] };
    static struct series time[ALGORITHMS];
    static struct series mallocs[ALGORITHMS];
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < ALGORITHMS; i++) {
            double figures[2];
            if (!cell_run(update_of, &algorithms[i], figures, 2))
                continue;
            series_add(&time[i], figures[0]);
            series_add(&mallocs[i], figures[1]);
        }
    }
    (void)printf("\nAn update of the estimator\n%-30s        time     mallocs\n", "");
    for (unsigned i = 0; i < ALGORITHMS; i++) {
        (void)printf("%-30s", names[i]);
        report_cell(UNIT_NS, &time[i]);
        report_cell(UNIT_NUMBER, &mallocs[i]);
        (void)printf("\n");
    }
}

/* ---- how cost grows ---- */

struct scale_cell {
    enum { BY_WORKERS, BY_PRODUCERS, BY_QUEUED, BY_POOLS } by;
    unsigned at;
};

static const char *const dimensions[] = {"workers", "producers", "queued", "pools"};

static void scale_of(const void *what, double *figures)
{
    const struct scale_cell *cell = what;
    if (cell->by == BY_POOLS) {
        struct scale scale;
        measure_pools(cell->at, &scale);
        figures[0] = scale.ns;
        figures[1] = scale.cpu_ns;
    } else if (cell->by == BY_QUEUED) {
        struct cost cost;
        measure_cost(&peer_weir, cell->at, &cost);
        figures[0] = figures[1] = cost.many_ns;
    } else {
        struct load load = {.work = WORK_NOTHING,
                            .threads = cell->by == BY_WORKERS ? cell->at : 4,
                            .producers = cell->by == BY_PRODUCERS ? cell->at : 1};
        struct throughput result;
        measure_throughput(&peer_weir, &load, &result);
        figures[0] = 1e9 / result.per_second;
        figures[1] = result.cpu_ns;
    }
}

static void scale_section(void)
{
    static const struct scale_cell cells[] = {
        {BY_WORKERS, 1},    {BY_WORKERS, 4},    {BY_WORKERS, 16},  {BY_WORKERS, 64},    {BY_WORKERS, 256},
        {BY_WORKERS, 1024}, {BY_WORKERS, 4096}, {BY_PRODUCERS, 1}, {BY_PRODUCERS, 4},   {BY_PRODUCERS, 16},
        {BY_PRODUCERS, 64}, {BY_QUEUED, 10},    {BY_QUEUED, 1000}, {BY_QUEUED, 100000}, {BY_QUEUED, 1000000},
        {BY_POOLS, 1},      {BY_POOLS, 10},     {BY_POOLS, 100},   {BY_POOLS, 1000},
    };
    enum { CELLS = sizeof cells / sizeof cells[0] };
    static struct series time[CELLS];
    static struct series cpu[CELLS];
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < CELLS; i++) {
            double figures[2];
            if (!cell_run(scale_of, &cells[i], figures, 2))
                continue;
            series_add(&time[i], figures[0]);
            series_add(&cpu[i], figures[1]);
        }
    }
    (void)printf("\nHow weir's cost grows (no-op jobs; queued: of one submit; pools: submit and wait, in turns)\n"
                 "%-30s        time         CPU\n",
                 "");
    for (unsigned i = 0; i < CELLS; i++) {
        (void)printf("%-10s %8u           ", dimensions[cells[i].by], cells[i].at);
        report_cell(UNIT_NS, &time[i]);
        report_cell(UNIT_NS, &cpu[i]);
        (void)printf("\n");
        plot_line("scale", "%s %u %g %g", dimensions[cells[i].by], cells[i].at, median(&time[i]), median(&cpu[i]));
    }
}

/* ---- the program ---- */

static void usage(int status)
{
    (void)fprintf(status == 0 ? stdout : stderr, "peers [--quick] [--rounds N] [--plots DIRECTORY] [--only SECTION]\n"
                                                 "sections: throughput ping cost life gate update scale\n");
    exit(status);
}

static const char *value_of(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc)
        usage(2);
    return argv[++*i];
}

int main(int argc, char **argv)
{
    const char *plots = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = (unsigned)strtoul(value_of(argc, argv, &i), NULL, 10);
        else if (strcmp(argv[i], "--plots") == 0)
            plots = value_of(argc, argv, &i);
        else if (strcmp(argv[i], "--only") == 0)
            only = value_of(argc, argv, &i);
        else
            usage(strcmp(argv[i], "--help") == 0 ? 0 : 2);
    }
    if (rounds < 1 || rounds > MOST_ROUNDS)
        usage(2);
    if (quick) {
        throughput_ns = 30000000;
        rounds = rounds == 5 ? 1 : rounds;
    }
    for (const char *const *missing = missing_peers; *missing != NULL; missing++)
        (void)printf("skipped, not installed: %s\n", *missing);
    (void)printf("Medians of %u interleaved rounds; %% is half the distance between the quartiles.\n", rounds);
    calibrate_spin();
    plot_open(plots);
    if (wanted("throughput"))
        throughput_section();
    if (wanted("ping"))
        ping_section();
    if (wanted("cost"))
        cost_section();
    if (wanted("life"))
        life_section();
    if (wanted("gate"))
        gate_section();
    if (wanted("update"))
        update_section();
    if (wanted("scale"))
        scale_section();
    if (only == NULL)
        plot_draw();
    return 0;
}
