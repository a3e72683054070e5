/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_POOL_PRIVATE_H
#define WEIR_POOL_PRIVATE_H

/* Workers and the jobs they run.
 *
 * A job's way: it joins the line of its partition; when it is first in line and permits are free, they are reserved and
 * it moves to the ready line; a worker takes it from there and its permits are in flight. A submitter at the ceiling
 * stands in the same line with its job behind it, until there is room.
 *
 * note:chained-wake -- at most one worker is on its way at a time (`waking`). Whoever makes a job ready while none is
 * sends one; a worker that arrives, and finds more ready jobs than it takes, sends the next before it runs its job. A
 * worker that ends a job looks for the next itself (`looking`). The chain stops where more workers would be of no use,
 * and then the watch looks after those that wait (pace.c). Hence: ready > looking implies that a worker is waking, or
 * that the watch is at its post, or that a start has failed and a running worker will look. Wake-ups are what pools
 * spend their time on: this way a flood of short jobs is served by the workers that are awake.
 *
 * Where jobs are very short, submits leave them in the inbox (inbox.c) and a worker takes several at once (batch.c);
 * whoever takes the lock otherwise finds them in their lines all the same. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/completions.h>
#include <weir/job.h>
#include <weir/pool.h>

#include "limiter/limiter.h"

/* ---- node.c: what stands in line for a job ---- */

enum weir__job_kind {
    WEIR__PLAIN = WEIR__JOB, /* struct weir__plain */
    WEIR__COPY,              /* struct weir__copy */
    WEIR__HANDLE             /* struct weir__handle */
};

enum { WEIR__COPY_BYTES = 48 };

struct weir__plain {
    struct weir__unit unit;
    weir_fn *fn;
    void *arg;
};

struct weir__copy {
    struct weir__unit unit;
    weir_fn *fn;
    _Alignas(max_align_t) unsigned char bytes[WEIR__COPY_BYTES];
};

/* Nodes that are free, by kind, for the next submit. */
struct weir__nodes {
    struct weir__unit *free[2]; /* guarded by their owner's lock: plain, copy; linked by next */
    uint32_t count[2];          /* guarded by their owner's lock */
};

#if defined(__GNUC__)
#define WEIR__MAY_ALIAS __attribute__((__may_alias__))
#else
#define WEIR__MAY_ALIAS
#endif

/* What lies in weir_job.opaque. */
struct weir__handle {
    struct weir__unit unit;
    struct weir__timer timer;   /* guarded by lock: its deadline, while it waits */
    weir_pool *pool;            /* immutable from submit to end */
    struct weir__unit *waiters; /* guarded by lock: threads in weir_job_wait, linked by next */
} WEIR__MAY_ALIAS;

_Static_assert(sizeof(struct weir__handle) <= sizeof(((weir_job *)0)->opaque), "a handle fits into a job");

/* unit.state of a handle. From WEIR__SUCCEEDED on the job has ended; the store of such a state is the pool's last
 * access to the memory of a job without on_done and completions. */
enum weir__job_state {
    WEIR__NEW,
    WEIR__CLAIMED, /* a submit fills in the handle; for everybody else as good as new */
    WEIR__SUBMITTING,
    WEIR__QUEUED,     /* in the line of its partition, or behind a blocked submitter */
    WEIR__READY,      /* granted at submit: it runs, whatever its deadline says */
    WEIR__READY_LATE, /* granted after a wait */
    WEIR__RUNNING,
    WEIR__SUCCEEDED, /* + weir_outcome */
    WEIR__CANCELLED = WEIR__SUCCEEDED + 3,
    WEIR__EXPIRED
};

static inline struct weir__handle *weir__handle_of(weir_job *job)
{
    return (struct weir__handle *)job->opaque;
}

static inline weir_job *weir__job_of(struct weir__handle *handle)
{
    return (weir_job *)(void *)((char *)handle - offsetof(weir_job, opaque));
}

/* ---- a pool ---- */

enum weir__pool_state { WEIR__OPEN, WEIR__FINISHING, WEIR__CANCELLING };

/* What a thread waits for in lifecycle.c. */
struct weir__watcher {
    struct weir__caller caller;
    bool for_threads; /* immutable after joining: until the last thread has left, else until the last job has ended */
};

/* A submitter at the ceiling, with its job. */
struct weir__submitter {
    struct weir__caller caller;
    struct weir__unit *node; /* immutable after joining: the job's node; NULL: memory was short, one is found later */
    weir_fn *fn;             /* immutable after joining: for a node that is found later */
    const void *arg;
    uint32_t copy_size;
    enum weir__job_kind kind;
    bool is_patient; /* guarded by lock: it may be let in together with others, see note:readmission */
};

struct weir__job_counters {
    uint64_t submitted;
    uint64_t started;
    uint64_t ended[3]; /* by weir_outcome */
    uint64_t cancelled;
    uint64_t expired;
    uint64_t shed;
    uint64_t timed_out;
    uint64_t blocked; /* submits that waited at the ceiling */
    uint64_t start_failures;
};

/* The thread that minds the deadlines. Its parker outlives it: who wakes it does so without the lock. */
struct weir__keeper {
    struct weir__parker parker; /* atomic */
    bool exists;                /* guarded by lock: it sleeps until wake_ns, or will look once more before it does */
    bool starting;              /* guarded by lock */
    uint64_t wake_ns;           /* guarded by lock */
};

/* How many workers are of use, see pace.c. */
struct weir__pace {
    uint64_t job_ns;            /* guarded by lock: how long jobs take, smoothed */
    uint32_t fresh[2];          /* guarded by lock: running jobs that began since the watch's last look, and before */
    unsigned period;            /* guarded by lock: counts its looks */
    struct weir__worker *watch; /* guarded by lock: NULL: nobody is; counted as idle */
};

/* Jobs on their way into the line, see inbox.c. */
struct weir__inbox {
    char before[64];          /* its cache lines are the submitters' */
    pthread_mutex_t lock;     /* after the limiter's in the order */
    uint32_t room;            /* guarded by lock: jobs it takes; 0 while it is closed */
    atomic_uint pending;      /* atomic: its jobs, for a look without the lock */
    struct weir__line jobs;   /* guarded by lock */
    struct weir__nodes nodes; /* guarded by lock */
    uint32_t stamp_turn;      /* guarded by lock: jobs while they are short, see note:stamps */
    uint64_t until_ns;        /* guarded by lock: it takes no job from then on; UINT64_MAX: there is no live file */
    char after[64];
    bool is_open; /* guarded by the limiter's lock */
};

struct weir_pool {
    char before[64];       /* its cache line is that of the submitters, who only read it */
    weir_limiter *limiter; /* immutable after create; its lock guards what follows */
    char after[64];
    struct weir__line ready;            /* guarded by lock: jobs with reserved permits */
    struct weir__nodes nodes;           /* guarded by lock */
    struct weir__block *blocks;         /* guarded by lock: where all nodes lie */
    uint32_t node_count[2];             /* guarded by lock: of all blocks */
    struct weir__line watchers;         /* guarded by lock: in drain, shutdown, destroy */
    enum weir__pool_state state;        /* guarded by lock */
    uint32_t executing;                 /* guarded by lock: jobs being run */
    uint32_t delivering;                /* guarded by lock: ended jobs whose on_done or completion is under way */
    uint32_t nested_jobs;               /* guarded by lock: running jobs that wait for other jobs of this pool */
    struct weir__job_counters counters; /* guarded by lock */
    uint32_t stamp_turn;                /* guarded by lock: submits while jobs are short, see note:stamps */
    uint64_t readmission_ns;            /* immutable after create: how long submitters are patient */

    struct weir__wheel deadlines;   /* guarded by lock: of jobs that wait */
    struct weir__standing standing; /* guarded by lock */
    double patience;                /* guarded by lock: ns from submit to deadline, see demand.c */
    bool patience_is_fresh;         /* guarded by lock: a job has told since the last measuring period */
    struct weir__keeper keeper;

    uint32_t workers;    /* guarded by lock: threads that serve or are being started */
    uint32_t threads;    /* guarded by lock: workers, keeper, and those that have left but still run */
    uint32_t idle_count; /* guarded by lock */
    uint32_t looking;    /* guarded by lock: workers that have ended a job and are about to take the next */
    bool waking;         /* guarded by lock: note:chained-wake */
    struct weir__pace pace;
    struct weir__inbox inbox;
    bool start_failed;              /* guarded by lock: the last start of a worker did */
    bool corpse_is_set;             /* guarded by lock */
    pthread_t corpse;               /* guarded by lock: the thread that left last, not joined yet */
    struct weir__worker *idle;      /* guarded by lock: a stack, the warmest on top */
    struct weir__worker *idle_last; /* guarded by lock: at its bottom */
    struct weir__worker *all;       /* guarded by lock: every worker, linked by next */
    struct weir__worker *batches;   /* guarded by lock: workers with a batch, the newest first */
    unsigned next_index;            /* guarded by lock: for the next worker's name */

    pthread_mutex_t start_lock; /* held while the very first worker is started, see limiter.h for its order */
};

/* What a worker is to do. */
struct weir__work {
    weir_fn *fn; /* NULL: nothing */
    void *arg;
    weir_job *job; /* NULL: it has no handle */
    uint32_t weight;
    uint16_t partition;
};

enum { WEIR__BATCH_MOST = 32 };

/* How a job of a batch has ended. */
struct weir__ended {
    uint64_t ns; /* when */
    uint32_t outcome;
};

/* Jobs that a worker has taken together, see batch.c. */
struct weir__batch {
    bool is_open;                               /* owner thread */
    uint32_t current;                           /* owner thread: the one that runs */
    atomic_uint claims;                         /* atomic: how many were begun, and how many there are */
    struct weir__unit *units[WEIR__BATCH_MOST]; /* written by the owner with the lock held */
    struct weir__ended ended[WEIR__BATCH_MOST]; /* owner thread; those before the last claim, who has seen that claim */
    uint32_t booked;                            /* guarded by lock: how many of them have been booked */
    uint32_t reserved;                          /* guarded by lock: so many after the first have permits */
    struct weir__worker *next;                  /* guarded by lock: of the pool's batches, an older one */
    struct weir__worker *previous;              /* guarded by lock */
};

struct weir__worker {
    weir_pool *pool;                    /* immutable after start */
    unsigned index;                     /* immutable after start */
    struct weir__parker parker;         /* atomic */
    struct weir__worker *next_idle;     /* guarded by lock */
    struct weir__worker *previous_idle; /* guarded by lock */
    struct weir__worker *next;          /* guarded by lock: of all */
    struct weir__worker *previous;      /* guarded by lock */
    bool is_idle;                       /* guarded by lock */
    unsigned period;                    /* guarded by lock: of the pace, when its job began */
    struct weir__work work;             /* owner thread: the job being run */
    weir_outcome outcome;               /* owner thread: of that job, also if it ends the thread */
    weir_sample sample;                 /* owner thread: of that job */
    uint64_t stamp;                     /* owner thread: of that job, see histogram.h */
    uint64_t booked_ns;                 /* guarded by lock: when the job began that is booked next */
    struct weir__batch batch;
    _Atomic uint64_t running_since_ns;                          /* atomic: when that job started; 0: none runs */
    _Alignas(max_align_t) unsigned char copy[WEIR__COPY_BYTES]; /* owner thread: its argument, if that was copied */
};

/* Whom the calling thread works for. A fork child inherits it from the thread that forked, but works for nobody. */
struct weir__current {
    weir_pool *pool;             /* in a job, in on_done or in a hook of this pool */
    struct weir__worker *worker; /* in a job */
    unsigned fork_generation;
};
extern _Thread_local struct weir__current weir__current;

/* 0, EINVAL (NULL), or ECHILD in a fork child. */
static inline int weir__pool_usable(const weir_pool *pool)
{
    return pool == NULL ? EINVAL : weir__limiter_usable(pool->limiter);
}

static inline bool weir__pool_is_mine(const weir_pool *pool)
{
    return weir__current.pool == pool && weir__current.fork_generation == weir__fork_generation();
}

/* Lock held: nothing is queued, nothing runs, everything was delivered. */
static inline bool weir__pool_is_empty(const weir_pool *pool)
{
    return pool->limiter->partitions.queued == 0 && pool->ready.length == 0 && pool->executing == 0 &&
           pool->delivering == 0;
}

/* ---- inbox.c ---- */

void weir__inbox_init(struct weir__inbox *inbox);

/* Without the lock: leaves a job there; false: it has to go the long way. */
bool weir__inbox_put(weir_pool *pool, enum weir__job_kind kind, weir_fn *fn, const void *arg, uint32_t copy_size,
                     uint64_t stamp);

/* The others with the lock held: whether it may be open; opens it; puts its jobs in line, which the caller must then
 * dispatch; and closes it as well. True: there were jobs. */
bool weir__inbox_may_be_open(const weir_pool *pool);
void weir__inbox_open(weir_pool *pool);
bool weir__inbox_empty(weir_pool *pool);
bool weir__inbox_close(weir_pool *pool);

/* ---- batch.c; lock held where nothing else is said ---- */

/* The worker has taken a job and is about to run it: it takes more, if that is of use. */
void weir__batch_fill(struct weir__worker *worker);

/* The worker's job has ended: makes the next of its batch its work; false: there is none, and the end is for finish to
 * book. Without the lock. */
bool weir__batch_next(struct weir__worker *worker, weir_outcome outcome, uint64_t end_ns);

/* Books all jobs of the worker's batch but the last, which becomes a job like any other, and puts back what has not
 * begun. */
void weir__batch_close(struct weir__worker *worker);

/* Puts what has not begun back in line, and books what has ended; true: the caller must dispatch. */
bool weir__batches_recall(weir_pool *pool);

/* Only books; true: the caller must dispatch. */
bool weir__batches_book(weir_pool *pool);

/* Recalls where a batch's job runs long. */
void weir__batches_look(weir_pool *pool, uint64_t now_ns);

/* In a fork child: frees what the jobs own that have not begun. */
void weir__batch_discard(const struct weir__worker *worker);

/* Brings in what is outside, in the inbox or in batches; true: the caller must dispatch. */
bool weir__pool_gather(weir_pool *pool);

/* The backlog's enter and exit. */
void weir__pool_enter(void *pool);
void weir__pool_exit(void *pool);

/* ---- node.c; lock held ---- */

/* In which store those of a kind are. */
static inline unsigned weir__node_index(unsigned kind)
{
    return kind == WEIR__COPY ? 1 : 0;
}

/* A free node of the kind, or NULL. */
static inline struct weir__unit *weir__node_take(struct weir__nodes *nodes, enum weir__job_kind kind)
{
    unsigned index = weir__node_index(kind);
    struct weir__unit *node = nodes->free[index];
    if (node != NULL) {
        nodes->free[index] = node->next;
        nodes->count[index]--;
    }
    return node;
}

/* Gives the inbox the greater of the two stores. */
void weir__nodes_exchange(struct weir__nodes *pools, struct weir__nodes *inboxes);

/* Gives a node back. */
static inline void weir__node_return(weir_pool *pool, struct weir__unit *node)
{
    unsigned index = weir__node_index(node->kind);
    node->next = pool->nodes.free[index];
    pool->nodes.free[index] = node;
    pool->nodes.count[index]++;
}

/* Allocates a block of nodes, without the lock, of the size that the other function says; takes it in. */
struct weir__block *weir__block_allocate(enum weir__job_kind kind, uint32_t count);
uint32_t weir__block_next(const weir_pool *pool, enum weir__job_kind kind);
void weir__block_adopt(weir_pool *pool, struct weir__block *block);

/* Some nodes of each kind, at creation: when memory is short, a submitter waits for a node, and there is one to wait
 * for. 0 or ENOMEM. */
int weir__nodes_reserve(weir_pool *pool);

/* The pool is empty and its inbox closed: blocks that are to be freed without the lock, or NULL. */
struct weir__block *weir__blocks_spare(weir_pool *pool);
void weir__blocks_free(struct weir__block *blocks);

void weir__node_fill(struct weir__unit *node, weir_fn *fn, const void *arg, uint32_t copy_size);

/* ---- submit.c ---- */

/* The backlog's functions: lock held. */
bool weir__pool_grant(void *pool, struct weir__unit *unit, struct weir__wakes *wakes);
void weir__pool_settle(void *pool, struct weir__wakes *wakes);

/* Queues a job with a handle, whose unit is filled in. */
int weir__pool_put_job(weir_pool *pool, weir_job *job, bool wait, uint64_t deadline_ns);

/* A job stands in its line without permits; lock held. */
void weir__pool_begin_to_wait(weir_pool *pool, struct weir__unit *unit, struct weir__wakes *wakes);

/* Sends the blocked submitters away; lock held. */
void weir__pool_refuse_submitters(weir_pool *pool, int verdict, struct weir__wakes *wakes);

/* Takes permits back from a ready job that will not run; lock held. */
void weir__pool_unready(weir_pool *pool, struct weir__unit *unit);

/* ---- worker.c ---- */

/* Picks the worker to send, if one should be; lock held. */
void weir__pool_send_worker(weir_pool *pool, struct weir__wakes *wakes);

/* One sleep of a worker, which first wakes whom it has to; true: it was woken, so there is work for it. Lock held on
 * entry and exit, dropped meanwhile. */
bool weir__worker_sleep(struct weir__worker *worker, uint64_t deadline_ns, struct weir__wakes *wakes);

/* Takes the warmest idle worker off the stack, the watch last; it will find its way when it is woken. NULL: none. Lock
 * held. */
struct weir__worker *weir__pool_pop_idle(weir_pool *pool);

/* The backlog's after: starts what the wakes ask for, without the lock. */
void weir__pool_after(void *pool, const struct weir__wakes *wakes);

/* Makes sure that there is a worker, with the lock held on entry and exit and dropped meanwhile: 0, or what
 * pthread_create said. */
int weir__pool_first_worker(weir_pool *pool);

/* A thread's last act on its pool: it joins the one that left before it, so that at most one is left to be joined. Lock
 * held on entry, dropped for good; memory is freed. */
void weir__pool_leave(weir_pool *pool, void *memory, struct weir__wakes *wakes);

/* ---- pace.c; lock held ---- */

void weir__pace_init(struct weir__pace *pace);

/* A worker takes a job, and has ended it after ns. */
void weir__pace_begin(weir_pool *pool, struct weir__worker *worker);
void weir__pace_end(weir_pool *pool, struct weir__worker *worker, uint64_t ns);

/* A job of its batch has. */
void weir__pace_learn(struct weir__pace *pace, uint64_t ns);

/* Its job waits for another one. */
void weir__pace_block(weir_pool *pool, struct weir__worker *worker);

/* Workers that run a job of which nobody knows that it is long, or are about to take one. */
uint32_t weir__pace_helping(const weir_pool *pool);

/* Whether jobs take no longer than it takes to wake a thread. */
bool weir__pace_is_short(const weir_pool *pool);

/* Whether another worker would be of no use, and somebody watches. */
bool weir__pace_suffices(const weir_pool *pool);

/* Whether the calling worker, which runs no job, would be of no use. */
bool weir__pace_is_superfluous(const weir_pool *pool);

/* Makes the worker the watch until it is needed, woken, or until there is nothing to watch: false. The lock is dropped
 * meanwhile. */
bool weir__pace_watch(struct weir__worker *worker, struct weir__wakes *wakes);

/* Takes the watch off its post: it, or NULL. */
struct weir__worker *weir__pace_relieve(weir_pool *pool);

/* ---- deadline.c ---- */

uint64_t weir__job_due_ns(const struct weir__timer *timer);

/* A job with a deadline waits from now on; lock held. */
void weir__deadline_add(weir_pool *pool, struct weir__handle *handle, struct weir__wakes *wakes);

/* It waits no longer; lock held. */
void weir__deadline_remove(weir_pool *pool, struct weir__handle *handle);

/* Whether a job that is submitted now would start too late for its deadline; lock held. */
bool weir__deadline_is_hopeless(weir_pool *pool, uint64_t deadline_ns);

/* The unit to serve instead of the first of its line, while a queue stands; lock held. */
struct weir__unit *weir__deadline_choose(weir_pool *pool, struct weir__unit *first);

/* The queue has become shorter; lock held. */
void weir__deadline_watch_queue(weir_pool *pool);

/* At the end of a job: whether a queue stands. Lock held. */
void weir__deadline_look(weir_pool *pool, uint64_t now_ns);

/* Starts the thread that minds the deadlines; without the lock. */
void weir__keeper_start(weir_pool *pool);

/* ---- demand.c ---- */

/* The backlog's demand: lock held. */
void weir__pool_demand(void *pool, struct weir__asked *asked);

/* A job that cannot start at once has so much time until its deadline; lock held. */
void weir__pool_note_patience(weir_pool *pool, uint64_t left_ns);

/* ---- job.c ---- */

/* Publishes the end of a job that has been counted, and makes its completions entry; lock held. Afterwards, unless
 * weir__job_has_delivery said so before, its memory may be gone. */
void weir__job_publish(weir_job *job, enum weir__job_state state, struct weir__wakes *wakes);

static inline bool weir__job_has_delivery(const weir_job *job)
{
    return job->on_done != NULL;
}

/* The job was not admitted: it is as before, and who waited for it while its submitter was blocked is told so. Lock
 * held. */
void weir__job_refuse(weir_job *job, struct weir__wakes *wakes);

/* Calls on_done; without the lock. */
void weir__job_deliver(weir_job *job);

/* Ends a job that waits: takes it out of the pool as cancelled or expired. Lock held; true: the caller must deliver it
 * and then account for that (pool->delivering). */
bool weir__job_end_waiting(weir_pool *pool, weir_job *job, enum weir__job_state state, struct weir__wakes *wakes);

/* After a delivery, without the lock. */
void weir__job_delivered(weir_pool *pool);

/* Frees what a plain or copied job that will never run owned; without the lock. */
void weir__unit_discard(const struct weir__unit *unit);

/* ---- completions.c ---- */

void weir__completions_put(struct weir_completions *completions, weir_job *job);

/* ---- lifecycle.c ---- */

/* Waits until the last job has ended, or the last thread has left; lock held on entry and exit, dropped meanwhile. 0 or
 * ETIMEDOUT. */
int weir__pool_watch(weir_pool *pool, bool for_threads, uint64_t deadline_ns);

/* Wakes the watchers whose condition has come true; lock held. */
void weir__pool_notice(weir_pool *pool, struct weir__wakes *wakes);

#endif
