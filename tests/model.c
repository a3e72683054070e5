/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "model.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

#define STUCK_NS UINT64_C(60000000000) /* a prediction that has not come true by then never will */

const char *const group_names[GROUPS] = {NULL, "live", "batch"};
static const double group_shares[GROUPS] = {0.25, 0.5, 0.25};

struct model model;
static atomic_ullong entered;   /* jobs that have begun */
static atomic_ullong delivered; /* calls of on_done */

weir_outcome model_run(void *arg)
{
    struct slot *slot = arg;
    atomic_store(&slot->start_ns, weir_now_ns());
    atomic_fetch_add(&slot->runs, 1);
    atomic_fetch_add(&entered, 1);
    while (sem_wait(&slot->go) != 0 && errno == EINTR)
        ;
    return slot->outcome;
}

weir_outcome model_run_copy(void *arg)
{
    return model_run(*(void **)arg);
}

static void on_done(weir_job *job)
{
    struct slot *slot = (struct slot *)job->arg;
    atomic_fetch_add(&slot->done, 1);
    atomic_fetch_add(&delivered, 1);
}

unsigned below(unsigned bound)
{
    return (unsigned)(weir_test_random(&model.random) % bound);
}

/* ---- the model's rules ---- */

static bool fits(uint32_t weight)
{
    return model.out + weight <= model.limit || model.out == 0;
}

bool is_free(uint32_t weight, bool is_job)
{
    return fits(weight) && (model.held ? !is_job : model.queued == 0);
}

bool has_room(unsigned group)
{
    if (model.groups == 1)
        return model.queued < model.depth;
    int64_t left = (int64_t)model.depth;
    for (unsigned i = 0; i < GROUPS; i++) {
        uint32_t own = (uint32_t)(group_shares[i] * model.depth + 1e-9);
        if (i == group && model.queued_in[i] < own)
            return true;
        left -= i != group && model.queued_in[i] < own ? own : model.queued_in[i];
    }
    return left > 0;
}

static struct slot *oldest_queued(void)
{
    struct slot *oldest = NULL;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        if (slot->state == QUEUED && (oldest == NULL || slot->order < oldest->order))
            oldest = slot;
    }
    return oldest;
}

void begin(struct slot *slot)
{
    slot->state = RUNNING;
    slot->unsampled = false;
    slot->above = slot->weight > model.limit;
    model.queued--;
    model.queued_in[slot->group]--;
    model.running++;
    model.out += slot->weight;
    model.started++;
}

void admit(struct slot *slot)
{
    slot->state = QUEUED;
    slot->order = model.orders++;
    model.queued++;
    model.queued_in[slot->group]++;
    model.submitted++;
}

void drop(struct slot *slot)
{
    slot->state = FREE;
    model.queued--;
    model.queued_in[slot->group]--;
    model.cancelled++;
    model.delivered += slot->kind == HANDLE_DONE ? 1 : 0;
}

/* ---- looking ---- */

void wrong(const char *what)
{
    weir_stats stats = weir_test_pool_stats(model.pool);
    ck_abort_msg(
        "%s; model: limit %u out %u running %u queued %u submitted %llu started %llu expired %llu; pool: limit "
        "%u out %u running %u queued %u submitted %llu started %llu expired %llu; held %d frozen %u depth %u",
        what, model.limit, model.out, model.running, model.queued, (unsigned long long)model.submitted,
        (unsigned long long)model.started, (unsigned long long)model.expired, stats.limit, stats.in_flight,
        stats.running, stats.queued, (unsigned long long)stats.submitted, (unsigned long long)stats.started,
        (unsigned long long)stats.expired, model.held, model.frozen, model.depth);
}

void expect(int got, int expected, const char *what)
{
    if (got != expected) {
        char text[80];
        (void)snprintf(text, sizeof text, "%s returned %d instead of %d", what, got, expected);
        wrong(text);
    }
}

/* What holds at every instant. */
static void check_invariants(const weir_stats *stats)
{
    uint32_t most_out = stats->limit > model.last.limit ? stats->limit : model.last.limit;
    if (model.last.in_flight > most_out)
        most_out = model.last.in_flight;
    uint32_t most_queued = model.depth > model.last.queued ? model.depth : model.last.queued;
    if (weir_test_accounted(stats) != stats->submitted)
        wrong("jobs are missing");
    if (stats->in_flight > most_out)
        wrong("more than the limit in flight");
    if (stats->queued > most_queued && !model.has_returned)
        wrong("more than the depth queued");
    model.has_returned = false;
    model.last = *stats;
}

static bool is_at_rest(void)
{
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    weir__lock(limiter);
    bool rest = !limiter->estimating && limiter->sample_count == 0 && !model.pool->waking && model.pool->looking == 0 &&
                model.pool->ready.length == 0 && model.pool->delivering == 0;
    weir__unlock(limiter);
    return rest;
}

void rest(void)
{
    uint64_t stuck_ns = weir_after_ns(STUCK_NS);
    while (!is_at_rest() || atomic_load(&entered) != weir_test_pool_stats(model.pool).started) {
        (void)sched_yield();
        if (weir_now_ns() > stuck_ns)
            wrong("it does not come to rest");
    }
}

static bool agrees(const weir_stats *stats)
{
    return stats->submitted == model.submitted && stats->started == model.started && stats->running == model.running &&
           stats->queued == model.queued && stats->in_flight == model.out && stats->estimate == model.limit &&
           stats->succeeded == model.ended[WEIR_SUCCESS] && stats->ignored == model.ended[WEIR_IGNORE] &&
           stats->dropped == model.ended[WEIR_DROPPED] && stats->expired == model.expired &&
           stats->cancelled == model.cancelled && stats->shed == model.shed && stats->timed_out == model.timed_out &&
           stats->frozen == model.frozen && atomic_load(&weir_test_script.updates) == model.samples &&
           stats->waiting == 0 && atomic_load(&entered) == model.started && atomic_load(&delivered) == model.delivered;
}

/* The published limit is the estimate, or covers a heavier job, but is never more than that job needs. */
static void check_limit(const weir_stats *stats)
{
    uint32_t heaviest = model.limit;
    for (unsigned i = 0; i < SLOTS; i++) {
        if (model.slots[i].state == RUNNING && model.slots[i].above && model.slots[i].weight > heaviest)
            heaviest = model.slots[i].weight;
    }
    for (unsigned i = 0; i < PERMITS; i++) {
        if (model.direct[i].weight > heaviest && model.direct[i].above)
            heaviest = model.direct[i].weight;
    }
    if (stats->limit < heaviest)
        wrong("the limit does not cover a heavy job");
    if (stats->limit > model.limit && stats->limit > stats->in_flight)
        wrong("the limit is above the estimate without need");
}

void settle(void)
{
    uint64_t stuck_ns = weir_after_ns(STUCK_NS);
    weir_stats stats = weir_test_pool_stats(model.pool);
    check_invariants(&stats);
    while (!agrees(&stats) || !is_at_rest()) {
        (void)sched_yield();
        stats = weir_test_pool_stats(model.pool);
        check_invariants(&stats);
        if (weir_now_ns() > stuck_ns)
            wrong("it does not come true");
    }
    check_limit(&stats);
}

void begin_seen(void)
{
    uint64_t first_left[GROUPS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        if (slot->state == QUEUED && atomic_load(&slot->runs) == 0 && slot->order < first_left[slot->group])
            first_left[slot->group] = slot->order;
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        if (slot->state != QUEUED || atomic_load(&slot->runs) == 0)
            continue;
        if (slot->order > first_left[slot->group])
            wrong("a job has overtaken another of its partition");
        begin(slot);
    }
}

/* All weigh the same, so it is known how many begin; who they are is read from the pool, and they must be the first of
 * their partition. */
static void begin_in_groups(void)
{
    uint32_t starts = model.out < model.limit ? model.limit - model.out : 0;
    if (starts > model.queued)
        starts = model.queued;
    uint64_t aim = model.started + starts;
    uint64_t stuck_ns = weir_after_ns(STUCK_NS);
    while (atomic_load(&entered) != aim) {
        (void)sched_yield();
        if (weir_now_ns() > stuck_ns)
            wrong("jobs do not begin");
    }
    begin_seen();
}

/* Without partitions it is the first in line, as long as it fits. */
static void begin_in_line(void)
{
    for (struct slot *slot = oldest_queued(); slot != NULL && fits(slot->weight); slot = oldest_queued())
        begin(slot);
}

void dispatch(void)
{
    if (!model.held && model.groups == 1)
        begin_in_line();
    else if (!model.held)
        begin_in_groups();
    settle();
    for (unsigned i = 0; i < SLOTS; i++) {
        if (model.slots[i].state == RUNNING && atomic_load(&model.slots[i].runs) != 1)
            wrong("the wrong job runs");
    }
}

/* ---- an episode ---- */

void fill(struct slot *slot)
{
    slot->kind = (enum slot_kind)below(4);
    slot->group = slot->kind >= HANDLE ? below(model.groups) : 0;
    slot->weight = slot->kind >= HANDLE && model.groups == 1 && below(3) == 0 ? 1 + below(MOST_WEIGHT) : 1;
    slot->outcome = WEIR_SUCCESS;
    atomic_store(&slot->runs, 0);
    atomic_store(&slot->done, 0);
    slot->job = (weir_job)WEIR_JOB_INIT(model_run, slot);
    slot->job.partition = group_names[slot->group];
    slot->job.weight = slot->weight == 1 ? below(2) : slot->weight;
    slot->job.on_done = slot->kind == HANDLE_DONE ? on_done : NULL;
}

void model_open(unsigned number)
{
    uint64_t random = model.random;
    memset(&model, 0, sizeof model);
    model.random = random;
    model.groups = number % 2 == 0 ? 1 : GROUPS;
    model.limit = 1 + below(MOST_LIMIT);
    model.depth = below(4) == 0 ? 0 : below(12);
    weir_config config = weir_test_scripted(model.limit, model.depth, model.groups > 1 ? "live=0.5,batch=0.25" : NULL);
    config.max_limit = MOST_WEIGHT;
    model.pool = weir_test_pool(&config);
    model.last.limit = model.limit;
    for (unsigned i = 0; i < SLOTS; i++)
        (void)sem_init(&model.slots[i].go, 0, 0);
    atomic_store(&entered, 0);
    atomic_store(&delivered, 0);
}

void model_close(void)
{
    weir_shutdown how = below(2) == 0 ? WEIR_FINISH : WEIR_CANCEL;
    uint32_t left = model.running + (how == WEIR_FINISH ? model.queued : 0);
    expect(weir_pool_shutdown(model.pool, how, 0), left > 0 ? ETIMEDOUT : 0, "shutdown");
    struct slot late = {.job = WEIR_JOB_INIT(model_run, &late)};
    expect(weir_job_trysubmit(model.pool, &late.job), ESHUTDOWN, "a submit after shutdown");
    for (unsigned i = 0; i < SLOTS; i++)
        (void)sem_post(&model.slots[i].go);
    expect(weir_pool_shutdown(model.pool, how, WEIR_FOREVER), 0, "the second shutdown");
    weir_stats stats = weir_test_pool_stats(model.pool);
    model.cancelled += how == WEIR_CANCEL ? model.queued : 0;
    bool all = stats.submitted == model.submitted && weir_test_accounted(&stats) == stats.submitted &&
               stats.running == 0 && stats.queued == 0 && stats.in_flight == 0 && stats.cancelled == model.cancelled &&
               stats.started == stats.succeeded + stats.ignored + stats.dropped && stats.started == entered;
    if (!all)
        wrong("after the shutdown");
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        unsigned ended = slot->state != FREE && slot->kind == HANDLE_DONE ? 1 : atomic_load(&slot->done);
        if (atomic_load(&slot->done) != ended)
            wrong("on_done was not called");
    }
    expect(weir_pool_destroy(model.pool), 0, "destroy");
    for (unsigned i = 0; i < SLOTS; i++)
        (void)sem_destroy(&model.slots[i].go);
}
