/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* One pool through all phases, with a reading five times a second. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "downstream.h"

#define TICK_NS       (NS_PER_S / 5)
#define DRAIN_NS      (20 * NS_PER_S)
/* Of a measured phase: before the first, and after each, nothing is measured, but for the pictures. An adaptive pool
 * looks around more often at first, which is not what the quiet phase is about. */
#define WARM          0.4
#define WARM_ADAPTIVE 2.0
#define REST          0.25

/* A stretch of time in one phase. */
struct stretch {
    size_t phase;
    bool measured;
    double seconds;
};

struct run {
    struct part *part;
    struct result *result;
    struct load load;
    struct figures figures; /* of the last tick */
    uint64_t tick_ns;       /* when that was */
    double stretch_at_s;    /* when this stretch began */
    FILE *trace;
};

static size_t plan(const struct part *part, double warm_s, double seconds, struct stretch *stretches)
{
    size_t count = 0;
    stretches[count++] = (struct stretch){0, false, warm_s};
    for (size_t i = 0; i < part->phase_count; i++) {
        if (part->phases[i].absent)
            continue;
        stretches[count++] = (struct stretch){i, true, seconds};
        if (i > 0)
            stretches[count++] = (struct stretch){0, false, REST * seconds};
    }
    return count;
}

static struct reading *next_reading(struct result *result)
{
    if (result->reading_count == result->reading_capacity) {
        size_t capacity = result->reading_capacity == 0 ? 256 : result->reading_capacity * 2;
        struct reading *readings = realloc(result->readings, capacity * sizeof *readings);
        if (readings == NULL)
            return NULL;
        result->readings = readings;
        result->reading_capacity = capacity;
    }
    return &result->readings[result->reading_count++];
}

static void count_in(struct run *run, const struct stretch *stretch, double seconds, uint32_t limit)
{
    if (!stretch->measured)
        return;
    double before_s = (double)run->tick_ns / NS_PER_S - seconds - run->stretch_at_s;
    struct phase_record *phase = &run->result->phases[stretch->phase];
    figures_add(&phase->figures, &run->figures);
    phase->seconds += seconds;
    phase->limit_sum += limit;
    phase->readings++;
    if (before_s < fmin(ONSET_S, stretch->seconds / 3) - 0.01)
        return;
    figures_add(&phase->settled, &run->figures);
    phase->settled_seconds += seconds;
}

static int tick(struct run *run, const struct stretch *stretch)
{
    weir_stats stats = {0};
    int error = weir_pool_stats(run->load.pool, &stats);
    if (error != 0)
        return bench_complain("the pool gives no figures", weir_strerror(error));
    struct reading *reading = next_reading(run->result);
    if (reading == NULL)
        return bench_complain("the readings", strerror(ENOMEM));
    load_collect(&run->figures);
    uint64_t now = weir_now_ns();
    double seconds = (double)(now - run->tick_ns) / NS_PER_S;
    const struct tally *tally = &run->figures.tally;
    *reading = (struct reading){
        .at_s = (double)(now - run->load.start_ns) / NS_PER_S - run->result->warm_s,
        .phase = stretch->phase,
        .limit = stats.limit,
        .in_flight = stats.in_flight,
        .queued = stats.queued,
        .completed_per_s = (double)tally->completed / seconds,
        .failed_per_s = (double)(tally->refused + tally->busy) / seconds,
        .shed_per_s = (double)tally->shed / seconds,
        .p50_ms = histogram_quantile_ms(&run->figures.rtt, 0.5),
        .p99_ms = histogram_quantile_ms(&run->figures.rtt, 0.99),
        .noload_ms = (double)stats.rtt_noload_ns / NS_PER_MS,
        .rtt_ms = (double)stats.rtt_ns / NS_PER_MS,
        .state = stats.phase,
    };
    run->tick_ns = now;
    count_in(run, stretch, seconds, stats.limit);
    return 0;
}

static int still_well(struct run *run)
{
    if (interrupted())
        return EINTR;
    if (run->part->ended != NULL && run->part->ended())
        return bench_complain(run->part->name, "the server ended in the middle of the run");
    int error = atomic_load(&run->load.error);
    return error == 0 ? 0 : bench_complain("the pool takes no more jobs", weir_strerror(error));
}

static int drive(struct run *run, const struct stretch *stretches, size_t count)
{
    uint64_t boundary = run->load.start_ns;
    uint64_t next_tick = boundary + TICK_NS;
    for (size_t i = 0; i < count; i++) {
        int error = run->part->enter(stretches[i].phase);
        if (stretches[i].measured)
            run->result->phase_at[stretches[i].phase] =
                (double)(boundary - run->load.start_ns) / NS_PER_S - run->result->warm_s;
        run->stretch_at_s = (double)boundary / NS_PER_S;
        boundary += (uint64_t)(stretches[i].seconds * (double)NS_PER_S);
        for (bool ended = false; error == 0 && !ended;) {
            uint64_t until = next_tick < boundary ? next_tick : boundary;
            sleep_until(until);
            uint64_t now = weir_now_ns();
            ended = now >= boundary;
            error = still_well(run);
            if (error == 0 && (now >= next_tick || ended))
                error = tick(run, &stretches[i]);
            while (next_tick <= now)
                next_tick += TICK_NS;
        }
        if (error != 0)
            return error;
    }
    return 0;
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void write_change(const weir_trace_event *event, void *arg)
{
    struct run *run = arg;
    fprintf(run->trace, "%.4f %u -> %u %s %s R %.3f R0 %.3f X %.1f N %u\n",
            ((double)event->time_ns - (double)run->load.start_ns) / NS_PER_S - run->result->warm_s, event->old_limit,
            event->new_limit, event->phase, event->reason, (double)event->rtt_ns / NS_PER_MS,
            (double)event->rtt_noload_ns / NS_PER_MS, event->throughput, event->in_flight);
}

static int open_trace(struct run *run, const struct options *options, weir_config *config)
{
    if (!options->trace || config->algorithm == WEIR_FIXED)
        return 0;
    char path[512];
    snprintf(path, sizeof path, "%s/downstream-%s-%s.trace", options->output, run->part->name, run->result->kind.label);
    run->trace = fopen(path, "w");
    if (run->trace == NULL)
        return bench_complain(path, strerror(errno));
    fputs("# seconds limit phase reason R,ms R0,ms X,/s in flight\n", run->trace);
    config->trace = write_change;
    config->trace_arg = run;
    return 0;
}

/* Calls in flight may finish. */
static int wind_up(struct run *run, int error)
{
    load_stop(&run->load);
    run->part->enter(0);
    int drained = weir_pool_drain(run->load.pool, weir_after_ns(DRAIN_NS));
    int destroyed = weir_pool_destroy(run->load.pool);
    if (error == 0 && drained != 0)
        return bench_complain("the pool does not drain", weir_strerror(drained));
    if (error == 0 && destroyed != 0)
        return bench_complain("the pool cannot be destroyed", weir_strerror(destroyed));
    return error;
}

static int run_configured(struct run *run, const weir_config *config, double seconds)
{
    struct stretch stretches[2 * PHASES_MAX + 1];
    run->result->warm_s = seconds * (run->result->kind.algorithm == WEIR_FIXED ? WARM : WARM_ADAPTIVE);
    size_t count = plan(run->part, run->result->warm_s, seconds, stretches);
    int error = weir_pool_create(&run->load.pool, run->part->name, config);
    if (error != 0)
        return bench_complain("the pool cannot be created", weir_strerror(error));
    double cpu = cpu_s();
    error = load_start(&run->load);
    if (error != 0) {
        weir_pool_destroy(run->load.pool);
        return bench_complain("the load does not start", strerror(error));
    }
    run->tick_ns = run->load.start_ns;
    error = drive(run, stretches, count);
    run->result->seconds = (double)(weir_now_ns() - run->load.start_ns) / NS_PER_S;
    run->result->generator_cpu = (cpu_s() - cpu) / run->result->seconds;
    return wind_up(run, error);
}

int run_pool(struct part *part, const struct options *options, double rate, struct result *result)
{
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return bench_complain("the run", strerror(ENOMEM));
    run->part = part;
    run->result = result;
    run->load = (struct load){.part = part, .rate = rate, .seed = 7};
    weir_config config;
    load_configure(part, &result->kind, &config);
    int error = open_trace(run, options, &config);
    if (error == 0)
        error = run_configured(run, &config, options->seconds > 0 ? options->seconds : part->seconds);
    if (run->trace != NULL)
        fclose(run->trace);
    free(run);
    return error;
}

void result_free(struct result *result)
{
    free(result->readings);
    result->readings = NULL;
}
