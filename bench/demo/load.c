/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The load: Poisson arrivals at a given rate, whatever becomes of them. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "demo.h"

struct request {
    struct load *load;
    uint64_t intended_ns;
};

static void count_end(struct tally *tally, int status)
{
    if (status < 0)
        tally->failed++;
    else if (status == 429 || status >= 500)
        tally->refused++;
    else if (status >= 400)
        tally->ignored++;
    else
        tally->completed++;
}

static void record_end(struct recorder *recorder, int status, uint64_t rtt_ns, uint64_t end_to_end_ns)
{
    pthread_mutex_lock(&recorder->mutex);
    if (!recorder->closed) {
        struct phase_record *phase = &recorder->phases[recorder->phase];
        count_end(&phase->tally, status);
        count_end(&recorder->interval.tally, status);
        if (status >= 200 && status < 400) {
            histogram_add(&phase->rtt, rtt_ns / NS_PER_US);
            histogram_add(&phase->end_to_end, end_to_end_ns / NS_PER_US);
            histogram_add(&recorder->interval.rtt, rtt_ns / NS_PER_US);
        }
    }
    pthread_mutex_unlock(&recorder->mutex);
}

static void record_arrival(struct recorder *recorder, bool shed)
{
    pthread_mutex_lock(&recorder->mutex);
    if (!recorder->closed) {
        struct phase_record *phase = &recorder->phases[recorder->phase];
        phase->tally.arrived++;
        phase->tally.shed += shed;
        recorder->interval.tally.arrived++;
        recorder->interval.tally.shed += shed;
    }
    pthread_mutex_unlock(&recorder->mutex);
}

static weir_outcome outcome_of(int status)
{
    if (status == -ECANCELED)
        return WEIR_IGNORE;
    if (status < 0 || status == 429 || status >= 500)
        return WEIR_DROPPED;
    return status >= 400 ? WEIR_IGNORE : WEIR_SUCCESS;
}

/* The job. */
static weir_outcome fetch(void *arg)
{
    struct request request = *(struct request *)arg;
    free(arg);
    if (atomic_load(&request.load->abandoned))
        return WEIR_IGNORE;
    uint64_t start = weir_now_ns();
    int status = http_get(request.load->target, &request.load->abandoned);
    uint64_t end = weir_now_ns();
    record_end(request.load->recorder, status, end - start, end - request.intended_ns);
    return outcome_of(status);
}

static int submit(struct load *load, uint64_t intended_ns)
{
    struct request *request = malloc(sizeof *request);
    if (request == NULL)
        return ENOMEM;
    *request = (struct request){.load = load, .intended_ns = intended_ns};
    int error = weir_pool_trysubmit(load->pool, fetch, request);
    if (error != 0)
        free(request);
    if (error != 0 && error != EAGAIN)
        return error;
    record_arrival(load->recorder, error == EAGAIN);
    return 0;
}

/* Arrivals keep to their intended times: one that is late is submitted at once and its lateness counts as latency. */
static void *arrive(void *arg)
{
    struct load *load = arg;
    uint64_t random = 7;
    double offset_ns = 0;
    prctl(PR_SET_TIMERSLACK, 1000ul); /* ns */
    for (;;) {
        offset_ns -= log(1 - random_uniform(&random)) / load->rate * (double)NS_PER_S;
        uint64_t intended = load->start_ns + (uint64_t)offset_ns;
        if (intended >= load->end_ns)
            return NULL;
        for (uint64_t now = weir_now_ns(); now < intended; now = weir_now_ns()) {
            uint64_t slice = now + 100 * NS_PER_MS; /* how late an abandoned run may be noticed */
            sleep_until(slice < intended ? slice : intended);
            if (atomic_load(&load->abandoned))
                return NULL;
        }
        int error = atomic_load(&load->abandoned) ? ECANCELED : submit(load, intended);
        if (error != 0) {
            if (error != ECANCELED)
                atomic_store(&load->error, error);
            return NULL;
        }
    }
}

int load_start(struct load *load)
{
    return thread_start(&load->thread, arrive, load);
}

void load_join(struct load *load)
{
    pthread_join(load->thread, NULL);
}
