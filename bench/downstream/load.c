/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The load: Poisson arrivals at a given rate whatever becomes of them, or one caller that always has work. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "downstream.h"

/* Workers note what they measure in one of these, so that they seldom wait for each other. */
#define SHARDS 64

struct shard {
    pthread_mutex_t mutex; /* guards all below */
    struct figures figures;
};

static struct shard shards[SHARDS];
static pthread_once_t shards_once = PTHREAD_ONCE_INIT;
static atomic_uint next_shard;
static _Thread_local struct shard *own;

/* Of the load thread. */
static atomic_uint_fast64_t arrived, shed;

struct request {
    struct load *load;
    uint64_t intended_ns;
    uint64_t random;
};

static void shards_init(void)
{
    for (size_t i = 0; i < SHARDS; i++)
        pthread_mutex_init(&shards[i].mutex, NULL);
}

static void worker_start(void *arg)
{
    const struct part *part = arg;
    own = &shards[atomic_fetch_add(&next_shard, 1) % SHARDS];
    if (part->worker_start != NULL)
        part->worker_start();
}

static void worker_stop(void *arg)
{
    const struct part *part = arg;
    if (part->worker_stop != NULL)
        part->worker_stop();
}

void figures_add(struct figures *into, const struct figures *from)
{
    into->tally.arrived += from->tally.arrived;
    into->tally.shed += from->tally.shed;
    into->tally.completed += from->tally.completed;
    into->tally.refused += from->tally.refused;
    into->tally.busy += from->tally.busy;
    histogram_merge(&into->rtt, &from->rtt);
    histogram_merge(&into->end_to_end, &from->end_to_end);
}

void load_collect(struct figures *figures)
{
    pthread_once(&shards_once, shards_init);
    memset(figures, 0, sizeof *figures);
    for (size_t i = 0; i < SHARDS; i++) {
        pthread_mutex_lock(&shards[i].mutex);
        figures_add(figures, &shards[i].figures);
        memset(&shards[i].figures, 0, sizeof shards[i].figures);
        pthread_mutex_unlock(&shards[i].mutex);
    }
    figures->tally.arrived += atomic_exchange(&arrived, 0);
    figures->tally.shed += atomic_exchange(&shed, 0);
}

static void note(enum ending ending, uint64_t rtt_ns, uint64_t end_to_end_ns)
{
    pthread_mutex_lock(&own->mutex);
    struct figures *figures = &own->figures;
    figures->tally.completed += ending == ENDED_WELL;
    figures->tally.refused += ending == ENDED_REFUSED;
    figures->tally.busy += ending == ENDED_BUSY;
    if (ending == ENDED_WELL) {
        histogram_add(&figures->rtt, rtt_ns / NS_PER_US);
        histogram_add(&figures->end_to_end, end_to_end_ns / NS_PER_US);
    }
    pthread_mutex_unlock(&own->mutex);
}

/* The job. */
static weir_outcome make_call(void *arg)
{
    struct request request = *(struct request *)arg;
    free(arg);
    uint64_t start = weir_now_ns();
    enum ending ending = request.load->part->call(request.random);
    uint64_t end = weir_now_ns();
    note(ending, end - start, end - request.intended_ns);
    return ending == ENDED_WELL ? WEIR_SUCCESS : ending == ENDED_REFUSED ? WEIR_DROPPED : WEIR_IGNORE;
}

static int submit(struct load *load, uint64_t intended_ns, uint64_t *random)
{
    struct request *request = malloc(sizeof *request);
    if (request == NULL)
        return ENOMEM;
    *request = (struct request){
        .load = load, .intended_ns = intended_ns, .random = (uint64_t)(random_uniform(random) * 0x1p53)};
    int error = load->rate > 0 ? weir_pool_trysubmit(load->pool, make_call, request)
                               : weir_pool_submit(load->pool, make_call, request);
    if (error != 0)
        free(request);
    if (error != 0 && error != EAGAIN)
        return error;
    atomic_fetch_add(&arrived, 1);
    if (error == EAGAIN)
        atomic_fetch_add(&shed, 1);
    return 0;
}

/* Arrivals keep to their intended times: one that is late is submitted at once, and its lateness counts as latency. */
static int arrive_on_time(struct load *load)
{
    uint64_t random = load->seed;
    double offset_ns = 0;
    int error = 0;
    while (error == 0) {
        offset_ns -= log(1 - random_uniform(&random)) / load->rate * (double)NS_PER_S;
        uint64_t intended = load->start_ns + (uint64_t)offset_ns;
        for (uint64_t now = weir_now_ns(); now < intended; now = weir_now_ns()) {
            uint64_t slice = now + 100 * NS_PER_MS; /* how late the end may be noticed */
            sleep_until(slice < intended ? slice : intended);
        }
        if (atomic_load(&load->stopped))
            return 0;
        error = submit(load, intended, &random);
    }
    return error;
}

static int always_busy(struct load *load)
{
    uint64_t random = load->seed;
    int error = 0;
    while (error == 0 && !atomic_load(&load->stopped))
        error = submit(load, weir_now_ns(), &random);
    return error;
}

static void *arrive(void *arg)
{
    struct load *load = arg;
    prctl(PR_SET_TIMERSLACK, 1000ul); /* ns */
    int error = load->rate > 0 ? arrive_on_time(load) : always_busy(load);
    if (error != ESHUTDOWN)
        atomic_store(&load->error, error);
    return NULL;
}

void load_configure(struct part *part, const struct pool_kind *kind, weir_config *config)
{
    weir_config_init(config);
    config->flags |= WEIR_NO_ENV;
    config->algorithm = kind->algorithm;
    config->max_limit = part->widest;
    if (kind->algorithm == WEIR_FIXED) {
        config->initial_limit = kind->fixed;
        config->queue_depth = kind->fixed; /* as many places as threads */
        if (config->max_limit < kind->fixed)
            config->max_limit = kind->fixed;
    }
    config->on_worker_start = worker_start;
    config->on_worker_stop = worker_stop;
    union {
        const struct part *in;
        void *out;
    } hook = {.in = part};
    config->hook_arg = hook.out;
}

int load_start(struct load *load)
{
    struct figures *stale = malloc(sizeof *stale);
    if (stale == NULL)
        return ENOMEM;
    load_collect(stale);
    free(stale);
    load->start_ns = weir_now_ns();
    return thread_start(&load->thread, arrive, load);
}

void load_stop(struct load *load)
{
    atomic_store(&load->stopped, true);
    pthread_join(load->thread, NULL);
}
