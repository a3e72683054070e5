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

/* A prediction that has not come true by then never will. */
#define STUCK_NS UINT64_C(60000000000)
/* What counts of that from one look to the next at most: a process that is stopped, or does not get a processor, has no
 * time to come to anything. */
#define LOOK_NS  UINT64_C(50000000)

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
    if (!model.is_chosen)
        return (unsigned)(weir_test_random(&model.random) % bound);
    if (model.choices_left == 0)
        return 0;
    model.choices_left--;
    return *model.choices++ % bound;
}

/* ---- the model's rules ---- */

static bool fits(uint32_t weight)
{
    return model.out + weight <= model.limit || model.out == 0;
}

/* Something that waits. */
struct unit {
    struct slot *slot;
    struct direct *direct;
    uint64_t order;
    uint32_t weight;
};

/* The first of a group's line, of those that are served at present. */
static struct unit head_of(unsigned group)
{
    struct unit head = {.order = UINT64_MAX};
    for (unsigned i = 0; i < SLOTS && !model.held; i++) {
        struct slot *slot = &model.slots[i];
        bool waits = slot->state == BLOCKED || slot->state == QUEUED;
        if (waits && slot->group == group && slot->order < head.order)
            head = (struct unit){.slot = slot, .order = slot->order, .weight = slot->weight};
    }
    for (unsigned i = 0; i < PERMITS; i++) {
        struct direct *direct = &model.direct[i];
        if (direct->waiting && direct->group == group && direct->order < head.order)
            head = (struct unit){.direct = direct, .order = direct->order, .weight = direct->weight};
    }
    return head;
}

static bool is_empty(struct unit unit)
{
    return unit.slot == NULL && unit.direct == NULL;
}

/* With partitions all weigh the same. */
static bool is_guaranteed(unsigned group)
{
    return model.in_use[group] + 1 <= group_shares[group] * model.limit + 1e-9;
}

/* What is guaranteed comes before what is borrowed, then who is behind with its turns. */
static struct unit next_unit(void)
{
    struct unit next = {0};
    bool claims = false;
    double time = 0;
    for (unsigned i = 0; i < model.groups; i++) {
        struct unit head = head_of(i);
        if (is_empty(head))
            continue;
        bool claim = model.groups > 1 && is_guaranteed(i);
        if (is_empty(next) || (claim && !claims) || (claim == claims && model.virtual_time[i] < time)) {
            next = head;
            claims = claim;
            time = model.virtual_time[i];
        }
    }
    return next;
}

static bool goes_first(unsigned group)
{
    bool first = is_empty(head_of(group));
    for (unsigned i = 0; i < model.groups && first; i++)
        first = is_empty(head_of(i)) || (is_guaranteed(group) && !is_guaranteed(i));
    return first;
}

bool is_free(unsigned group, uint32_t weight, bool is_job)
{
    if (!fits(weight) || (is_job && model.held))
        return false;
    if (model.callers == 0 && (model.held || model.queued + model.blocked == 0))
        return true;
    return goes_first(group);
}

static bool has_blocked(unsigned group)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        if (model.slots[i].state == BLOCKED && model.slots[i].group == group)
            return true;
    }
    return false;
}

static bool has_place(unsigned group)
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

bool has_room(unsigned group)
{
    return !has_blocked(group) && has_place(group);
}

void arrive(unsigned group)
{
    bool held = model.held;
    model.held = false; /* the line counts as it is */
    if (is_empty(head_of(group)) && model.virtual_time[group] < model.virtual_now)
        model.virtual_time[group] = model.virtual_now;
    model.held = held;
}

static void use(unsigned group, uint32_t weight)
{
    model.in_use[group] += weight;
    model.out += weight;
    if (model.groups == 1)
        return;
    model.virtual_now = model.virtual_time[group];
    model.virtual_time[group] += weight / group_shares[group];
}

static void leave_queue(struct slot *slot)
{
    model.queued--;
    model.queued_in[slot->group]--;
    if (model.queued == 0)
        model.newest_first = false;
}

void begin(struct slot *slot)
{
    slot->state = RUNNING;
    slot->unsampled = false;
    slot->above = slot->weight > model.limit;
    leave_queue(slot);
    model.running++;
    use(slot->group, slot->weight);
    model.started++;
}

static void enter_queue(struct slot *slot)
{
    slot->state = QUEUED;
    model.queued++;
    model.queued_in[slot->group]++;
    model.submitted++;
}

void admit(struct slot *slot)
{
    arrive(slot->group);
    slot->order = model.orders++;
    enter_queue(slot);
}

void drop(struct slot *slot)
{
    slot->state = FREE;
    leave_queue(slot);
    model.cancelled++;
    model.delivered += slot->kind == HANDLE_DONE ? 1 : 0;
}

/* ---- helpers ---- */

static int call(struct helper *helper)
{
    struct slot *slot = helper->slot;
    struct direct *direct = helper->direct;
    if (slot == NULL)
        return weir_limiter_acquire_many(weir_pool_limiter(helper->pool), &direct->permit, direct->weight,
                                         group_names[direct->group], WEIR_FOREVER);
    if (slot->kind == PLAIN)
        return weir_pool_submit(helper->pool, model_run, slot);
    if (slot->kind == COPY)
        return weir_pool_submit_copy(helper->pool, model_run_copy, &slot, sizeof slot);
    return weir_job_submit(helper->pool, &slot->job);
}

static void *help(void *arg)
{
    struct helper *helper = arg;
    for (;;) {
        while (sem_wait(&helper->work) != 0 && errno == EINTR)
            ;
        if (helper->slot == NULL && helper->direct == NULL)
            return NULL;
        atomic_store(&helper->answer, call(helper));
    }
}

static struct helper helpers[HELPERS]; /* they outlive a pool's model */

void helpers_start(void)
{
    for (unsigned i = 0; i < HELPERS; i++) {
        (void)sem_init(&helpers[i].work, 0, 0);
        if (pthread_create(&helpers[i].thread, NULL, help, &helpers[i]) != 0)
            ck_abort_msg("no thread for the test");
    }
}

void helpers_end(void)
{
    for (unsigned i = 0; i < HELPERS; i++) {
        helpers[i].slot = NULL;
        helpers[i].direct = NULL;
        (void)sem_post(&helpers[i].work);
        (void)pthread_join(helpers[i].thread, NULL);
        (void)sem_destroy(&helpers[i].work);
    }
}

struct helper *free_helper(void)
{
    for (unsigned i = 0; i < HELPERS; i++) {
        if (helpers[i].slot == NULL && helpers[i].direct == NULL)
            return &helpers[i];
    }
    return NULL;
}

static void send(struct helper *helper, struct slot *slot, struct direct *direct)
{
    helper->slot = slot;
    helper->direct = direct;
    helper->pool = model.pool;
    atomic_store(&helper->answer, -1);
    (void)sem_post(&helper->work);
}

void block(struct slot *slot, struct helper *helper)
{
    arrive(slot->group);
    slot->state = BLOCKED;
    slot->order = model.orders++;
    slot->helper = helper;
    model.blocked++;
    send(helper, slot, NULL);
}

void wait_for_permits(struct direct *direct, struct helper *helper)
{
    arrive(direct->group);
    direct->waiting = true;
    direct->order = model.orders++;
    direct->helper = helper;
    model.callers++;
    send(helper, NULL, direct);
}

/* How long something has been waited for. */
struct patience {
    uint64_t last_ns;
    uint64_t passed_ns;
};

static bool is_at_an_end(struct patience *patience)
{
    uint64_t now_ns = weir_now_ns();
    uint64_t step_ns = now_ns - patience->last_ns;
    patience->last_ns = now_ns;
    patience->passed_ns += step_ns < LOOK_NS ? step_ns : LOOK_NS;
    return patience->passed_ns > STUCK_NS;
}

/* The helper's call returns as it must, and the helper is free again. */
static void hear(struct helper **helper, int expected)
{
    struct patience patience = {.last_ns = weir_now_ns()};
    while (atomic_load(&(*helper)->answer) == -1) {
        (void)sched_yield();
        if (is_at_an_end(&patience))
            wrong("a call does not return");
    }
    expect(atomic_load(&(*helper)->answer), expected, "a call that was blocked");
    (*helper)->slot = NULL;
    (*helper)->direct = NULL;
    *helper = NULL;
}

/* Those that are served are told so, and nobody else. */
static void hear_helpers(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        if (slot->helper != NULL && slot->state != BLOCKED)
            hear(&slot->helper, 0);
        else if (slot->helper != NULL && atomic_load(&slot->helper->answer) != -1)
            wrong("a submitter was served out of turn");
    }
    for (unsigned i = 0; i < PERMITS; i++) {
        struct direct *direct = &model.direct[i];
        if (direct->helper != NULL && !direct->waiting) {
            hear(&direct->helper, 0);
            direct->start_ns = weir_now_ns();
        } else if (direct->helper != NULL && atomic_load(&direct->helper->answer) != -1) {
            wrong("a caller was served out of turn");
        }
    }
}

void hold(struct direct *direct)
{
    use(direct->group, direct->weight);
    direct->start_ns = weir_now_ns();
    direct->unsampled = false;
    direct->above = direct->weight > model.limit;
}

/* ---- looking ---- */

static bool is_at_rest(void)
{
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    weir__lock(limiter);
    bool rest = !limiter->estimating && limiter->sample_count == 0 && !model.pool->waking && model.pool->looking == 0 &&
                model.pool->ready.length == 0 && model.pool->delivering == 0;
    weir__unlock(limiter);
    return rest;
}

void wrong(const char *what)
{
    weir_stats stats = weir_test_pool_stats(model.pool);
    ck_abort_msg(
        "%s; model: limit %u out %u running %u queued %u submitted %llu started %llu ended %llu+%llu+%llu expired %llu "
        "cancelled %llu shed %llu late %llu samples %llu waiting %u delivered %llu; pool: limit %u out %u running %u "
        "queued %u submitted %llu started %llu (seen: %llu) ended %llu+%llu+%llu expired %llu cancelled %llu shed %llu "
        "late %llu samples %llu waiting %u delivered %llu; at rest %d held %d frozen %u depth %u",
        what, model.limit, model.out, model.running, model.queued, (unsigned long long)model.submitted,
        (unsigned long long)model.started, (unsigned long long)model.ended[WEIR_SUCCESS],
        (unsigned long long)model.ended[WEIR_IGNORE], (unsigned long long)model.ended[WEIR_DROPPED],
        (unsigned long long)model.expired, (unsigned long long)model.cancelled, (unsigned long long)model.shed,
        (unsigned long long)model.timed_out, (unsigned long long)model.samples,
        (unsigned)(model.blocked + model.callers), (unsigned long long)model.delivered, stats.limit, stats.in_flight,
        stats.running, stats.queued, (unsigned long long)stats.submitted, (unsigned long long)stats.started,
        (unsigned long long)atomic_load(&entered), (unsigned long long)stats.succeeded,
        (unsigned long long)stats.ignored, (unsigned long long)stats.dropped, (unsigned long long)stats.expired,
        (unsigned long long)stats.cancelled, (unsigned long long)stats.shed, (unsigned long long)stats.timed_out,
        (unsigned long long)atomic_load(&weir_test_script.updates), stats.waiting,
        (unsigned long long)atomic_load(&delivered), is_at_rest(), model.held, model.frozen, model.depth);
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

void rest(void)
{
    struct patience patience = {.last_ns = weir_now_ns()};
    while (!is_at_rest() || atomic_load(&entered) != weir_test_pool_stats(model.pool).started) {
        (void)sched_yield();
        if (is_at_an_end(&patience))
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
           stats->waiting == model.blocked + model.callers && atomic_load(&entered) == model.started &&
           atomic_load(&delivered) == model.delivered;
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

/* The figures of the partitions add up to it, and each has what the model says. */
static void check_groups(void)
{
    for (unsigned i = 0; i < model.groups; i++) {
        weir_partition_stats stats = {.size = sizeof stats};
        expect(weir_pool_partition_stats(model.pool, group_names[i], &stats), 0, "partition stats");
        if (stats.queued != model.queued_in[i] || stats.in_flight != model.in_use[i])
            wrong("a partition has other figures");
    }
}

void settle(void)
{
    struct patience patience = {.last_ns = weir_now_ns()};
    weir_stats stats = weir_test_pool_stats(model.pool);
    check_invariants(&stats);
    while (!agrees(&stats) || !is_at_rest()) {
        (void)sched_yield();
        stats = weir_test_pool_stats(model.pool);
        check_invariants(&stats);
        if (is_at_an_end(&patience))
            wrong("it does not come true");
    }
    check_limit(&stats);
    check_groups();
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

/* After a race the pool tells whose turn it is. */
static void adopt_turns(void)
{
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    weir__lock(limiter);
    for (unsigned i = 0; i < model.groups; i++)
        model.virtual_time[i] = limiter->partitions.all[i].virtual_time;
    model.virtual_now = limiter->partitions.virtual_now;
    weir__unlock(limiter);
    model.raced = false;
}

/* While a queue stands the newest with a deadline is served in the place of the first job. */
static struct slot *instead_of(struct slot *first)
{
    struct slot *newest = first;
    for (unsigned i = 0; model.newest_first && i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        if (slot->state == QUEUED && slot->group == first->group && slot->kind >= HANDLE &&
            slot->job.deadline_ns != 0 && fits(slot->weight) && (newest == first || slot->order > newest->order))
            newest = slot;
    }
    return newest;
}

static void serve(struct unit unit)
{
    if (unit.direct != NULL) {
        unit.direct->waiting = false;
        model.callers--;
        hold(unit.direct);
        return;
    }
    struct slot *slot = unit.slot;
    if (slot->state == BLOCKED) {
        model.blocked--;
        enter_queue(slot);
    } else {
        slot = instead_of(slot);
    }
    begin(slot);
}

static struct slot *first_blocked(unsigned group)
{
    struct slot *first = NULL;
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[i];
        if (slot->state == BLOCKED && slot->group == group && (first == NULL || slot->order < first->order))
            first = slot;
    }
    return first;
}

static void admit_blocked(void)
{
    for (unsigned i = 0; i < model.groups; i++) {
        for (struct slot *slot = first_blocked(i); slot != NULL && has_place(i); slot = first_blocked(i)) {
            model.blocked--;
            enter_queue(slot);
        }
    }
}

void dispatch(void)
{
    for (struct unit unit = next_unit(); !is_empty(unit) && fits(unit.weight); unit = next_unit())
        serve(unit);
    admit_blocked();
    settle();
    if (model.raced)
        adopt_turns();
    hear_helpers();
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
    struct model before = model;
    memset(&model, 0, sizeof model);
    model.random = before.random;
    model.is_chosen = before.is_chosen;
    model.choices = before.choices;
    model.choices_left = before.choices_left;
    model.groups = number % 2 == 0 ? 1 : GROUPS;
    model.limit = 1 + below(MOST_LIMIT);
    model.depth = below(4) == 0 ? 0 : below(12);
    weir_config config = weir_test_scripted(model.limit, model.depth, model.groups > 1 ? "live=0.5,batch=0.25" : NULL);
    config.max_limit = MOST_WEIGHT;
    model.pool = weir_test_pool(&config);
    model.last.limit = model.limit;
    model.last.queued = 0;
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
    for (unsigned i = 0; i < SLOTS; i++) {
        if (model.slots[i].state == BLOCKED) {
            hear(&model.slots[i].helper, ESHUTDOWN);
            model.slots[i].state = FREE;
        }
    }
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
