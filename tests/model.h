/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_MODEL_H
#define WEIR_TESTS_MODEL_H

/* A pool as a simple model sees it. What waits stands in the lines of partitions: jobs, submitters at the ceiling with
 * their jobs, and direct callers. Helpers are threads that block in the driver's place. */

#include "job_support.h"

enum {
    SLOTS = 24,  /* jobs that exist at once */
    PERMITS = 4, /* direct callers' permits */
    HELPERS = 4,
    MOST_LIMIT = 8, /* of the estimator; heavier jobs run above it */
    MOST_WEIGHT = 10,
    GROUPS = 3, /* partitions, with the one for what names none */
};

enum slot_state { FREE, BLOCKED, QUEUED, RUNNING };
enum slot_kind { PLAIN, COPY, HANDLE, HANDLE_DONE };

/* A thread that makes one call at a time. */
struct helper {
    pthread_t thread;
    sem_t work;
    struct slot *slot;     /* it submits its job; NULL: */
    struct direct *direct; /* it acquires; both NULL: it ends */
    weir_pool *pool;
    atomic_int answer; /* -1: none yet */
};

struct slot {
    weir_job job;
    struct helper *helper; /* BLOCKED, or just admitted: who submits it */
    sem_t go;
    atomic_uint runs; /* since the submit */
    atomic_uint done; /* calls of on_done since the submit */
    _Atomic uint64_t start_ns;
    weir_outcome outcome;
    enum slot_kind kind;
    enum slot_state state;
    unsigned group;
    uint32_t weight;
    uint64_t order; /* of admission */
    bool unsampled; /* it ran before a thaw */
    bool above;     /* it was granted above the limit */
};

struct direct {
    weir_permit permit;
    struct helper *helper; /* waiting, or just granted: who acquires */
    bool waiting;
    uint64_t order; /* of arrival */
    uint64_t start_ns;
    unsigned group;
    uint32_t weight; /* 0: none */
    bool unsampled;
    bool above;
};

/* The pool as the model sees it. */
struct model {
    weir_pool *pool;
    uint64_t random;
    bool is_chosen; /* what is random comes from here, until nothing is left, then it is 0: */
    const uint8_t *choices;
    size_t choices_left;
    unsigned groups; /* 1: no partitions, and jobs have weights */
    struct slot slots[SLOTS];
    struct direct direct[PERMITS];
    uint32_t limit;
    uint32_t depth;
    bool held;
    unsigned frozen;
    uint32_t out;     /* permits */
    uint32_t running; /* jobs */
    uint32_t queued;
    uint32_t queued_in[GROUPS];
    uint32_t blocked; /* submitters */
    uint32_t callers; /* that wait */
    uint32_t in_use[GROUPS];
    double virtual_time[GROUPS]; /* whose turn it is */
    double virtual_now;
    bool newest_first; /* jobs with deadlines, until the queue is empty */
    bool raced;        /* the order of the last steps is the pool's to tell */
    uint64_t orders;
    uint64_t submitted, started, ended[3], expired, cancelled, shed, timed_out, delivered, samples;
    bool has_returned; /* a pause may have brought ready jobs back to the queue */
    weir_stats last;   /* as of the check before */
};

extern struct model model; /* there is one; the driver is one thread */
extern const char *const group_names[GROUPS];

/* A random number below bound. */
unsigned below(unsigned bound);

/* A new pool and its model; and the end of both: everything that is left runs or is cancelled. */
void model_open(unsigned number);
void model_close(void);

/* ---- operations.c ---- */

/* One random operation on pool and model. */
void operate(void);
/* Afterwards nobody holds permits or waits for them but jobs and their submitters. */
void send_callers_home(void);

/* ---- what the model says ---- */

/* Whether a newcomer is granted at once. Direct callers do not wait for jobs that are held. */
bool is_free(unsigned group, uint32_t weight, bool is_job);
/* Whether the queue has a place for one more job, and no submitter waits for one. */
bool has_room(unsigned group);

/* ---- what happens to it ---- */

/* Gives a free slot a random job. */
void fill(struct slot *slot);
void admit(struct slot *slot);
/* Something joins the line of a group that may have been empty. */
void arrive(unsigned group);
/* A free helper, or NULL. */
struct helper *free_helper(void);
/* The slot's job is submitted, or the permits acquired, by a helper, and that blocks. */
void block(struct slot *slot, struct helper *helper);
void wait_for_permits(struct direct *direct, struct helper *helper);
/* A direct caller holds its permits, which were free at once or came later. */
void hold(struct direct *direct);
/* A queued job begins to run. */
void begin(struct slot *slot);
/* The queued jobs that have begun in the pool begin; they must be the first of their partition. */
void begin_seen(void);
/* A queued job ends as cancelled. */
void drop(struct slot *slot);

/* ---- whether the pool agrees ---- */

_Noreturn void wrong(const char *what);
void expect(int got, int expected, const char *what);

/* Waits until the pool has begun, ended and delivered what it is about to. */
void rest(void);

/* Waits until the pool is where the model is. */
void settle(void);

/* Permits may have become free, or a job has come: begins what the rules let begin, and settles. */
void dispatch(void);

/* The threads that block. */
void helpers_start(void);
void helpers_end(void);

/* The functions of jobs. */
weir_outcome model_run(void *slot);
weir_outcome model_run_copy(void *slot_pointer);

#endif
