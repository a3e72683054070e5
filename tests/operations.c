/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* What can be done to the pool, each step with what the model says to it. */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "model.h"
#include "pool/pool.h"

#define HOUR_NS    UINT64_C(3600000000000)
#define SHORT_NS   UINT64_C(25000) /* a call this long is sampled at its end, not in a batch */
#define EXPIRY_NS  UINT64_C(2000000)
#define GIVE_UP_NS UINT64_C(300000)

static struct slot *pick(enum slot_state state, enum slot_kind least_kind)
{
    unsigned start = below(SLOTS);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot *slot = &model.slots[(start + i) % SLOTS];
        if (slot->state == state && (state == FREE || slot->kind >= least_kind))
            return slot;
    }
    return NULL;
}

/* how: 0 blocks (only where there is room), 1 tries, 2 is too late to wait. */
static int call_submit(struct slot *slot, unsigned how)
{
    uint64_t past_ns = weir_now_ns() - below(2);
    if (slot->kind == COPY)
        return weir_pool_submit_copy(model.pool, model_run_copy, &slot, sizeof slot);
    if (slot->kind == PLAIN)
        return how == 0   ? weir_pool_submit(model.pool, model_run, slot)
               : how == 1 ? weir_pool_trysubmit(model.pool, model_run, slot)
                          : weir_pool_timedsubmit(model.pool, model_run, slot, past_ns);
    return how == 0   ? weir_job_submit(model.pool, &slot->job)
           : how == 1 ? weir_job_trysubmit(model.pool, &slot->job)
                      : weir_job_timedsubmit(model.pool, &slot->job, past_ns);
}

static void submit(void)
{
    struct slot *slot = pick(FREE, PLAIN);
    if (slot == NULL)
        return;
    fill(slot);
    bool at_once = is_free(slot->group, slot->weight, true);
    bool room = has_room(slot->group) || at_once;
    if (slot->kind == COPY && !room)
        return; /* it would block, see block_submit */
    unsigned how = room ? below(3) : 1 + below(2);
    bool late = slot->kind >= HANDLE && below(8) == 0;
    if (slot->kind >= HANDLE && !late && below(4) == 0)
        slot->job.deadline_ns = weir_after_ns(HOUR_NS);
    if (late)
        slot->job.deadline_ns = 1;
    int expected = late && !at_once ? ETIMEDOUT : room ? 0 : how == 1 ? EAGAIN : ETIMEDOUT;
    expect(call_submit(slot, how), expected, "submit");
    if (expected == EAGAIN)
        model.shed++;
    else if (expected == ETIMEDOUT)
        model.timed_out++;
    else
        admit(slot);
    if (expected == ETIMEDOUT && !late) /* it has stood in line */
        arrive(slot->group);
    dispatch();
}

/* A job whose deadline passes in the queue. The pool may see at once that it is hopeless. */
static void submit_to_expire(void)
{
    struct slot *slot = pick(FREE, PLAIN);
    if (slot == NULL || below(12) != 0)
        return;
    fill(slot);
    if (slot->kind < HANDLE || is_free(slot->group, slot->weight, true) || !has_room(slot->group))
        return;
    slot->job.deadline_ns = weir_after_ns(EXPIRY_NS);
    int error = weir_job_submit(model.pool, &slot->job);
    if (error == ETIMEDOUT) {
        model.timed_out++;
    } else {
        expect(error, 0, "submit with a deadline");
        arrive(slot->group);
        model.submitted++;
        model.expired++;
        model.delivered += slot->kind == HANDLE_DONE ? 1 : 0;
        WEIR_TEST_UNTIL(weir_job_outcome(&slot->job, NULL) == ETIMEDOUT);
    }
    dispatch();
}

/* A submit that blocks until there is room, or gives up. */
static void block_submit(void)
{
    struct slot *slot = pick(FREE, PLAIN);
    struct helper *helper = free_helper();
    if (slot == NULL || helper == NULL)
        return;
    fill(slot);
    if (slot->kind >= HANDLE && below(3) == 0)
        slot->job.deadline_ns = weir_after_ns(HOUR_NS);
    if (is_free(slot->group, slot->weight, true) || has_room(slot->group))
        return;
    if (slot->kind >= HANDLE && below(16) == 0) {
        expect(weir_job_timedsubmit(model.pool, &slot->job, weir_after_ns(GIVE_UP_NS)), ETIMEDOUT, "submit");
        model.timed_out++;
        arrive(slot->group);
    } else {
        block(slot, helper);
    }
    dispatch();
}

static void wait_until_sampled(uint64_t start_ns)
{
    while (weir_now_ns() < start_ns + SHORT_NS)
        ;
}

/* Chooses what the estimator says to the next sample. */
static void choose_limit(void)
{
    if (below(3) == 0)
        atomic_store(&weir_test_script.limit, 1 + below(MOST_LIMIT));
}

static void take_sample(weir_outcome outcome, bool unsampled)
{
    if (outcome == WEIR_IGNORE || unsampled || model.frozen != 0)
        return;
    model.limit = atomic_load(&weir_test_script.limit);
    model.samples++;
}

static uint64_t ended(const uint64_t counts[3])
{
    return counts[0] + counts[1] + counts[2];
}

/* What has raced can be told apart only without those that block, and in the order of arrival. */
static bool is_plain(void)
{
    return model.blocked == 0 && model.callers == 0 && !model.newest_first;
}

/* A pause while a job ends: the next ones have begun, or are back at the head of the queue in their order. */
static void pause_at_the_end(void)
{
    expect(weir_pool_pause(model.pool), 0, "pause");
    model.held = true;
    model.has_returned = true;
    for (;;) {
        weir_stats stats = weir_test_pool_stats(model.pool);
        if (ended((const uint64_t[3]){stats.succeeded, stats.ignored, stats.dropped}) == ended(model.ended))
            break;
        (void)sched_yield();
    }
    rest();
    begin_seen();
    model.raced = true;
}

static void end_job(void)
{
    struct slot *slot = pick(RUNNING, PLAIN);
    if (slot == NULL)
        return;
    slot->outcome = (weir_outcome)below(3);
    wait_until_sampled(atomic_load(&slot->start_ns));
    choose_limit();
    model.ended[slot->outcome]++;
    model.running--;
    model.out -= slot->weight;
    model.in_use[slot->group] -= slot->weight;
    model.delivered += slot->kind == HANDLE_DONE ? 1 : 0;
    slot->state = FREE;
    take_sample(slot->outcome, slot->unsampled);
    (void)sem_post(&slot->go);
    if (below(16) == 0 && is_plain())
        pause_at_the_end();
    dispatch();
    weir_outcome outcome;
    if (slot->kind >= HANDLE) {
        expect(weir_job_outcome(&slot->job, &outcome), 0, "outcome");
        expect((int)outcome, (int)slot->outcome, "the job");
        expect(weir_job_cancel(&slot->job), EALREADY, "cancel of an ended job");
    }
    if (slot->kind == HANDLE_DONE)
        expect((int)atomic_load(&slot->done), 1, "the count of on_done");
}

static void cancel(void)
{
    static const enum slot_state states[4] = {RUNNING, BLOCKED, QUEUED, QUEUED};
    struct slot *slot = pick(states[below(4)], HANDLE);
    if (slot == NULL)
        return;
    expect(weir_job_wait(&slot->job, 0), EINPROGRESS, "wait");
    expect(weir_job_trysubmit(model.pool, &slot->job), EBUSY, "a second submit");
    expect(weir_job_cancel(&slot->job), slot->state != QUEUED ? EBUSY : 0, "cancel");
    if (slot->state != QUEUED)
        return;
    drop(slot);
    expect(weir_job_outcome(&slot->job, NULL), ECANCELED, "outcome");
    dispatch();
}

static void pause_or_resume(void)
{
    if (below(3) == 0) { /* idempotent, and seldom */
        expect(weir_pool_pause(model.pool), 0, "pause");
        model.held = true;
    } else {
        expect(weir_pool_resume(model.pool), 0, "resume");
        model.held = false;
    }
    dispatch();
}

static void freeze_or_thaw(void)
{
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    if (below(3) == 0) {
        expect(weir_limiter_freeze(limiter), 0, "freeze");
        model.frozen++;
        return;
    }
    expect(weir_limiter_thaw(limiter), model.frozen > 0 ? 0 : EINVAL, "thaw");
    if (model.frozen == 0 || --model.frozen != 0)
        return;
    for (unsigned i = 0; i < SLOTS; i++)
        model.slots[i].unsampled = true;
    for (unsigned i = 0; i < PERMITS; i++)
        model.direct[i].unsampled = true;
}

static void acquire(void)
{
    struct direct *direct = &model.direct[below(PERMITS)];
    if (direct->weight != 0)
        return;
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    unsigned group = below(model.groups);
    uint32_t weight = model.groups == 1 && below(3) == 0 ? 1 + below(MOST_WEIGHT) : 1;
    bool try_only = weight == 1 && below(2) == 0;
    if (try_only)
        group = 0;
    bool free_now = is_free(group, weight, false);
    int expected = free_now ? 0 : try_only ? EAGAIN : ETIMEDOUT;
    expect(try_only ? weir_limiter_tryacquire(limiter, &direct->permit)
                    : weir_limiter_acquire_many(limiter, &direct->permit, weight, group_names[group], 0),
           expected, "acquire");
    if (free_now || !try_only)
        arrive(group);
    if (free_now) {
        direct->weight = weight;
        direct->group = group;
        hold(direct);
    }
    settle();
}

/* An acquire that blocks until it gets its permits. */
static void block_acquire(void)
{
    struct direct *direct = &model.direct[below(PERMITS)];
    struct helper *helper = free_helper();
    if (direct->weight != 0 || helper == NULL)
        return;
    direct->group = below(model.groups);
    uint32_t weight = model.groups == 1 && below(3) == 0 ? 1 + below(MOST_WEIGHT) : 1;
    if (is_free(direct->group, weight, false))
        return;
    direct->weight = weight;
    direct->above = false;
    wait_for_permits(direct, helper);
    dispatch();
}

/* A queue that stands, without the time that it takes to be seen. */
static void stand(void)
{
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    if (model.queued == 0)
        return;
    weir__lock(limiter);
    model.pool->standing.newest_first = true;
    weir__unlock(limiter);
    model.newest_first = true;
}

static void release(struct direct *direct)
{
    weir_limiter *limiter = weir_pool_limiter(model.pool);
    if (direct->waiting)
        return;
    if (direct->weight == 0) {
        expect(weir_limiter_release(limiter, &direct->permit, WEIR_SUCCESS), EINVAL, "a second release");
        return;
    }
    weir_outcome outcome = (weir_outcome)below(3);
    wait_until_sampled(direct->start_ns);
    choose_limit();
    model.out -= direct->weight;
    model.in_use[direct->group] -= direct->weight;
    direct->weight = 0;
    take_sample(outcome, direct->unsampled);
    expect(weir_limiter_release(limiter, &direct->permit, outcome), 0, "release");
    dispatch();
}

/* A job that may start at once, and before it is known whether it has: a cancel, or a pause. Both leave it running or
 * as if it had never started. */
static void submit_and_interfere(void)
{
    struct slot *slot = pick(FREE, PLAIN);
    if (slot == NULL)
        return;
    fill(slot);
    if (slot->kind < HANDLE || !is_free(slot->group, slot->weight, true) || !is_plain())
        return;
    expect(weir_job_submit(model.pool, &slot->job), 0, "submit");
    admit(slot);
    if (below(2) == 0) {
        expect(weir_pool_pause(model.pool), 0, "pause");
        model.held = true;
        model.has_returned = true;
        rest();
        if (atomic_load(&slot->runs) == 1)
            begin(slot);
    } else if (weir_job_cancel(&slot->job) == 0) {
        drop(slot);
    }
    model.raced = true;
    dispatch();
}

void operate(void)
{
    unsigned choice = below(38);
    if (choice < 13)
        submit();
    else if (choice < 22)
        end_job();
    else if (choice < 24)
        cancel();
    else if (choice < 26)
        acquire();
    else if (choice < 29)
        release(&model.direct[below(PERMITS)]);
    else if (choice == 29)
        pause_or_resume();
    else if (choice == 30)
        freeze_or_thaw();
    else if (choice < 35)
        block_submit();
    else if (choice < 37)
        block_acquire();
    else if (below(3) == 0)
        stand();
    else if (below(3) == 0)
        submit_and_interfere();
    else
        submit_to_expire();
}

void send_callers_home(void)
{
    for (bool any = true; any || model.callers != 0;) {
        any = false;
        for (unsigned i = 0; i < PERMITS; i++) {
            any = any || (model.direct[i].weight != 0 && !model.direct[i].waiting);
            release(&model.direct[i]);
        }
        if (!any && model.callers != 0) {
            end_job();
            any = true;
        }
    }
}
