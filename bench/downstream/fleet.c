/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Many processes before one PostgreSQL. None knows of the others; each has a pool of its own that always has work.
 * Whether they share it well shows in the sum of what they have in flight, in the tail and in how alike their parts
 * are. What the simulator says of the same is in its scenarios 13x8 and 13x32. */
#include "downstream.h"

#ifdef WITH_LIBPQ
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pg_server.h"

#define CLIENTS_MAX 32
#define TICK_NS     (NS_PER_S / 10)
#define JOIN_S      6.0  /* until all clients are there; one comes after the other */
#define WARM_S      8.0  /* more, before anything is measured */
#define MEASURED_S  24.0 /* unless --seconds says otherwise */
#define TICKS_MAX   20000

/* One client's; written by it, read by the parent after its end but for the gauges. */
struct client {
    atomic_uint in_flight;
    atomic_uint limit;
    atomic_int error;
    struct figures figures;
};

struct shared {
    atomic_bool measuring;
    atomic_bool ending;
    struct client clients[CLIENTS_MAX];
};

/* One run of some clients. */
struct run {
    const struct options *options;
    struct part *part;
    unsigned clients;
    bool drain;
    struct shared *shared;
    pid_t pids[CLIENTS_MAX];
    uint64_t start_ns;
    double seconds; /* measured */
    double sums[TICKS_MAX];
    size_t sum_count;
    FILE *data;
};

struct summary {
    char label[32];
    double completed_per_s;
    double in_flight, peak; /* sum: mean, 95th percentile */
    double p50_ms, p99_ms;
    double jain;
};

/* Less to compute than in the other part, and longer to wait, so that there are some permits for each of 32. */
static enum ending call(uint64_t random)
{
    static const struct pg_work work = {.sleep_ms = 50, .accounts = 50};
    return pg_call(random, &work);
}

static int enter(size_t phase)
{
    (void)phase;
    return 0;
}

/* --- a client --------------------------------------------------------------------------------------------------- */

static int serve_client(struct run *run, struct client *client, unsigned index)
{
    static struct figures recent;
    struct pool_kind kind = {.label = "fleet", .algorithm = WEIR_VEGAS2};
    struct load load = {.part = run->part, .seed = index + 1};
    weir_config config;
    load_configure(run->part, &kind, &config);
    if (!run->drain)
        config.drain_interval = 0;
    int error = weir_pool_create(&load.pool, "fleet", &config);
    if (error == 0)
        error = load_start(&load);
    if (error != 0)
        return error;
    while (!atomic_load(&run->shared->ending)) {
        weir_stats stats = {0};
        sleep_until(weir_after_ns(TICK_NS / 2));
        weir_pool_stats(load.pool, &stats);
        atomic_store(&client->in_flight, stats.in_flight);
        atomic_store(&client->limit, stats.limit);
        load_collect(&recent);
        if (atomic_load(&run->shared->measuring))
            figures_add(&client->figures, &recent);
    }
    load_stop(&load);
    return weir_pool_destroy(load.pool);
}

static int start_client(struct run *run, unsigned index)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return bench_complain("fleet: a client", strerror(errno));
    run->pids[index] = pid;
    if (pid > 0)
        return 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0); /* Ctrl-C is for the parent */
    struct client *client = &run->shared->clients[index];
    atomic_store(&client->error, serve_client(run, client, index));
    _exit(0);
}

/* --- all of them ------------------------------------------------------------------------------------------------ */

static void look(struct run *run)
{
    unsigned in_flight = 0, least = UINT32_MAX, most = 0;
    for (unsigned i = 0; i < run->clients; i++) {
        unsigned limit = atomic_load(&run->shared->clients[i].limit);
        in_flight += atomic_load(&run->shared->clients[i].in_flight);
        least = limit < least ? limit : least;
        most = limit > most ? limit : most;
    }
    if (atomic_load(&run->shared->measuring) && run->sum_count < TICKS_MAX)
        run->sums[run->sum_count++] = in_flight;
    if (run->data != NULL)
        fprintf(run->data, "%.2f %u %u %u\n", (double)(weir_now_ns() - run->start_ns) / NS_PER_S, in_flight, least,
                most);
}

static int look_for(struct run *run, double seconds)
{
    uint64_t end = weir_after_ns((uint64_t)(seconds * (double)NS_PER_S));
    while (weir_now_ns() < end) {
        int error = pause_ns(TICK_NS);
        if (error != 0)
            return error;
        if (pg_server_ended())
            return bench_complain("fleet", "the server ended in the middle of the run");
        look(run);
    }
    return 0;
}

static int play(struct run *run)
{
    int error = 0;
    for (unsigned i = 0; i < run->clients && error == 0; i++) {
        error = start_client(run, i);
        if (error == 0)
            error = look_for(run, JOIN_S / run->clients);
    }
    if (error == 0)
        error = look_for(run, fmin(WARM_S, run->seconds));
    atomic_store(&run->shared->measuring, true);
    uint64_t start = weir_now_ns();
    if (error == 0)
        error = look_for(run, run->seconds);
    atomic_store(&run->shared->measuring, false);
    run->seconds = (double)(weir_now_ns() - start) / NS_PER_S;
    atomic_store(&run->shared->ending, true);
    for (unsigned i = 0; i < run->clients; i++) {
        if (run->pids[i] > 0)
            waitpid(run->pids[i], NULL, 0);
        int failed = atomic_load(&run->shared->clients[i].error);
        if (error == 0 && failed != 0)
            error = bench_complain("fleet: a client", strerror(failed));
    }
    return error;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void sum_up(struct run *run, struct summary *summary)
{
    static struct figures all;
    double sum = 0, squares = 0;
    memset(&all, 0, sizeof all);
    for (unsigned i = 0; i < run->clients; i++) {
        const struct figures *figures = &run->shared->clients[i].figures;
        figures_add(&all, figures);
        sum += (double)figures->tally.completed;
        squares += (double)figures->tally.completed * (double)figures->tally.completed;
    }
    summary->completed_per_s = sum / run->seconds;
    summary->jain = squares > 0 ? sum * sum / (run->clients * squares) : 0;
    summary->p50_ms = histogram_quantile_ms(&all.rtt, 0.5);
    summary->p99_ms = histogram_quantile_ms(&all.rtt, 0.99);
    for (size_t i = 0; i < run->sum_count; i++)
        summary->in_flight += run->sums[i] / (double)run->sum_count;
    qsort(run->sums, run->sum_count, sizeof *run->sums, ascending);
    if (run->sum_count > 0)
        summary->peak = run->sums[(size_t)(0.95 * (double)(run->sum_count - 1))];
}

static int run_clients(struct run *run, struct summary *summary)
{
    char path[512];
    snprintf(summary->label, sizeof summary->label, "%u clients, drain %s", run->clients, run->drain ? "on" : "off");
    snprintf(path, sizeof path, "%s/downstream-fleet-%u-%s.dat", run->options->output, run->clients,
             run->drain ? "on" : "off");
    run->shared = mmap(NULL, sizeof *run->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run->shared == MAP_FAILED)
        return bench_complain("fleet", strerror(errno));
    run->data = fopen(path, "w");
    if (run->data != NULL)
        fputs("# seconds sum_in_flight least_limit greatest_limit\n", run->data);
    int error = lock_machine(run->options);
    run->start_ns = weir_now_ns();
    if (error == 0)
        error = play(run);
    yield_machine();
    if (run->data != NULL)
        fclose(run->data);
    if (error == 0)
        sum_up(run, summary);
    munmap(run->shared, sizeof *run->shared);
    return error;
}

/* --- what to compare with: one pool of the best fixed number ---------------------------------------------------- */

static int measure_best(struct part *part, const struct options *options, struct sweep *best, struct summary *summary)
{
    struct figures *figures = calloc(1, sizeof *figures);
    struct load load = {.part = part, .seed = 1};
    weir_config config;
    int error = figures == NULL ? ENOMEM : lock_machine(options);
    if (error == 0)
        error = sweep(part, options, best);
    load_configure(part, &(struct pool_kind){.algorithm = WEIR_FIXED, .fixed = best->best}, &config);
    if (error == 0)
        error = weir_pool_create(&load.pool, "best", &config);
    if (error == 0)
        error = load_start(&load);
    if (error == 0) {
        error = pause_ns(NS_PER_S);
        load_collect(figures);
        uint64_t start = weir_now_ns();
        if (error == 0)
            error = pause_ns((uint64_t)(fmin(5, options->seconds > 0 ? options->seconds : 5) * (double)NS_PER_S));
        load_collect(figures);
        summary->completed_per_s =
            (double)figures->tally.completed * (double)NS_PER_S / (double)(weir_now_ns() - start);
        load_stop(&load);
        weir_pool_destroy(load.pool);
    }
    yield_machine();
    if (figures != NULL) {
        summary->p50_ms = histogram_quantile_ms(&figures->rtt, 0.5);
        summary->p99_ms = histogram_quantile_ms(&figures->rtt, 0.99);
    }
    free(figures);
    summary->in_flight = summary->peak = best->best;
    summary->jain = 1;
    snprintf(summary->label, sizeof summary->label, "one, %u threads, best", best->best);
    return error;
}

static void print_summaries(FILE *out, const struct summary *summaries, size_t count)
{
    fputs("\nfleet: processes that do not know of each other before one PostgreSQL, vegas2\n"
          "                         completed       in flight     RTT, ms         p99 by   in flight  fairness\n"
          "                                /s    mean     p95      p50      p99   the best     by it      Jain\n",
          out);
    for (size_t i = 0; i < count; i++) {
        const struct summary *s = &summaries[i];
        fprintf(out, "  %-23s %8.1f  %6.1f  %6.1f  %7.1f  %7.1f  %9.2f %9.2f  %8.3f\n", s->label, s->completed_per_s,
                s->in_flight, s->peak, s->p50_ms, s->p99_ms, s->p99_ms / summaries[0].p99_ms,
                s->in_flight / summaries[0].in_flight, s->jain);
    }
    fputs("To compare: bench/sim/sim --scenario 13x8,13x32 --estimator vegas2,no-drain\n", out);
}

static void draw(const struct options *options)
{
    char command[1024];
    snprintf(command, sizeof command, "gnuplot -e \"directory='%s'\" '%s'", options->output, FLEET_PLOT_SCRIPT);
    if (system(command) == 0)
        printf("Picture: %s/downstream-fleet.png and .svg\n", options->output);
    else
        printf("No picture (is gnuplot installed?); the data are in %s/downstream-fleet-*.dat\n", options->output);
}

static void write_table(const struct options *options, const struct summary *summaries, size_t count)
{
    char path[512];
    snprintf(path, sizeof path, "%s/downstream-fleet.txt", options->output);
    FILE *file = fopen(path, "w");
    if (file != NULL) {
        print_summaries(file, summaries, count);
        fclose(file);
    }
    print_summaries(stdout, summaries, count);
}

static int run_fleet(struct part *part, const struct place *place, const struct options *options)
{
    static const unsigned sizes[] = {8, 8, 32, 32};
    struct summary summaries[5] = {{{0}, 0, 0, 0, 0, 0, 0}};
    struct sweep best = {0};
    struct run *run = malloc(sizeof *run);
    int error = run == NULL ? ENOMEM : pg_server_start(place, part->name);
    if (error == 0)
        error = measure_best(part, options, &best, &summaries[0]);
    for (size_t i = 0; i < 4 && error == 0; i++) {
        memset(run, 0, sizeof *run);
        run->options = options;
        run->part = part;
        run->clients = sizes[i];
        run->drain = i % 2 == 0;
        run->seconds = options->seconds > 0 ? options->seconds : MEASURED_S;
        error = run_clients(run, &summaries[i + 1]);
    }
    pg_server_stop();
    free(run);
    if (error != 0)
        return error;
    write_table(options, summaries, 5);
    draw(options);
    return 0;
}

struct part part_fleet = {
    .name = "fleet",
    .title = "processes that do not know of each other, before one PostgreSQL",
    .widest = 256,
    .phase_count = 1,
    .phases = {{.name = "quiet"}},
    .enter = enter,
    .worker_start = pg_worker_start,
    .worker_stop = pg_worker_stop,
    .call = call,
    .run = run_fleet,
};
#else
struct part part_fleet = {.name = "fleet", .missing = "built without libpq (Debian: libpq-dev)"};
#endif
