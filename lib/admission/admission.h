/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ADMISSION_H
#define WEIR_ADMISSION_H

/* How much may wait and who is next. It owns no lock: the limiter's lock protects every structure here. */

#include <stdbool.h>
#include <stdint.h>

#include <weir/config.h>
#include <weir/estimator.h>

#include "base/base.h"
#include "base/histogram.h"

/* ---- line.c: what waits, first come, first served ---- */

enum weir__unit_kind {
    WEIR__CALLER,    /* a thread that waits for permits */
    WEIR__SUBMITTER, /* a thread that waits for room in the queue; its job is behind it */
    WEIR__JOB        /* a queued job; the pool has kinds of its own from here on */
};

/* Something that asks for permits. It is embedded in what it stands for. */
struct weir__unit {
    struct weir__unit *next;     /* guarded by the limiter's lock */
    struct weir__unit *previous; /* guarded by the limiter's lock */
    uint32_t weight;             /* immutable after joining: permits it asks for */
    uint16_t partition;          /* immutable after joining: index */
    uint8_t kind;                /* immutable after joining: weir__unit_kind, or the pool's */
    _Atomic uint8_t state;       /* the pool's, see pool.h */
    uint64_t stamp;              /* guarded by the limiter's lock: when it came, see histogram.h; 0: not known */
};

struct weir__line {
    struct weir__unit *first; /* guarded by the limiter's lock */
    struct weir__unit *last;  /* guarded by the limiter's lock */
    uint32_t length;          /* guarded by the limiter's lock */
};

void weir__line_append(struct weir__line *line, struct weir__unit *unit);
void weir__line_prepend(struct weir__line *line, struct weir__unit *unit);
void weir__line_remove(struct weir__line *line, struct weir__unit *unit);
/* The first is another one: count units before it leave the line. NULL: all do. */
void weir__line_cut(struct weir__line *line, struct weir__unit *first, uint32_t count);
/* Puts all of tail behind line. */
void weir__line_join(struct weir__line *line, struct weir__line *tail);
/* unit takes the place of old. */
void weir__line_replace(struct weir__line *line, struct weir__unit *old, struct weir__unit *unit);

enum { WEIR__PENDING = -1 }; /* a caller's verdict until somebody decides */

/* A blocked thread, on its own stack. */
struct weir__caller {
    struct weir__unit unit;
    struct weir__parker parker; /* atomic */
    uint32_t in_flight;         /* guarded by the limiter's lock: permits out when it was granted, itself included */
    int verdict;                /* guarded by the limiter's lock: WEIR__PENDING, 0, or an errno value */
};

void weir__caller_init(struct weir__caller *caller, enum weir__unit_kind kind, uint32_t weight, uint16_t partition);
void weir__caller_destroy(struct weir__caller *caller);

/* Waits, with lock held on entry and exit and dropped meanwhile, until the caller is decided: its verdict; or until the
 * deadline: ETIMEDOUT, and the caller is still in its line. */
int weir__caller_wait(struct weir__caller *caller, pthread_mutex_t *lock, uint64_t deadline_ns);

/* Who is to be woken once the lock is dropped. */
struct weir__wakes {
    struct weir__unit *callers;  /* decided; a singly linked list by next */
    struct weir__parker *worker; /* an idle worker */
    struct weir__parker *keeper; /* the thread that minds the deadlines */
    bool start_worker;           /* or a worker to be started */
    bool start_keeper;
};

/* Decides a caller that is in no line any more and puts it on the list. */
void weir__wakes_add(struct weir__wakes *wakes, struct weir__caller *caller, int verdict);

/* Removes the caller from its line and decides it. */
void weir__line_decide(struct weir__line *line, struct weir__caller *caller, int verdict, struct weir__wakes *wakes);

/* Wakes the callers on the list, without the lock. */
void weir__wakes_callers(struct weir__wakes *wakes);

/* ---- partition.c: shares of the limit and of the queue ---- */

enum { WEIR__PARTITIONS_MOST = 63 };

struct weir__partition {
    char *name;                          /* immutable; NULL: the first, for what names none */
    double share;                        /* guarded by lock: of the limit and of the queue's depth, guaranteed */
    struct weir__line line;              /* guarded by lock: everything that waits, in the order of arrival */
    struct weir__unit *blocked;          /* guarded by lock: the first submitter in the line */
    uint32_t in_use;                     /* guarded by lock: permits out or reserved */
    uint32_t queued;                     /* guarded by lock: jobs in the line */
    uint32_t submitters;                 /* guarded by lock: submitters in the line */
    uint32_t callers;                    /* guarded by lock: callers in the line */
    uint64_t submitted;                  /* guarded by lock: jobs that were admitted, calls that were granted */
    uint64_t ended[3];                   /* guarded by lock: of these, by weir_outcome */
    uint64_t expired;                    /* guarded by lock */
    uint64_t cancelled;                  /* guarded by lock */
    uint64_t shed;                       /* guarded by lock: refused at the ceiling */
    uint64_t timed_out;                  /* guarded by lock: refused after a wait, or for a deadline */
    double virtual_time;                 /* guarded by lock: note:virtual-time */
    struct weir__histograms *histograms; /* immutable; what they hold is guarded by lock. NULL: the only partition */
};

struct weir__partitions {
    struct weir__partition *all; /* immutable */
    uint16_t count;              /* immutable, at least 1 */
    uint32_t queued;             /* guarded by lock: jobs in all lines */
    uint32_t submitters;         /* guarded by lock */
    uint32_t callers;            /* guarded by lock */
    double virtual_now;          /* guarded by lock: of the partition that was granted last */
};

/* From "live=0.9,batch=0.1", as the configuration has accepted it, or NULL. 0 or ENOMEM. */
int weir__partitions_init(struct weir__partitions *partitions, const char *text);
/* The share of what names no partition, from what the named ones leave. */
double weir__partition_rest(double rest);
void weir__partitions_free(struct weir__partitions *partitions);

/* The index of a name, NULL being the first; -1: unknown. */
int weir__partition_find(const struct weir__partitions *partitions, const char *name);

/* Something comes to a partition, to wait or to be granted permits at once. */
static inline void weir__partition_arrive(struct weir__partitions *partitions, uint16_t index)
{
    struct weir__partition *partition = &partitions->all[index];
    if (partition->line.first == NULL && partition->virtual_time < partitions->virtual_now)
        partition->virtual_time = partitions->virtual_now; /* note:virtual-time */
}

void weir__partition_join(struct weir__partitions *partitions, struct weir__unit *unit);
/* The same for a line of jobs, which is empty then. */
void weir__partition_join_line(struct weir__partitions *partitions, uint16_t index, struct weir__line *jobs);
/* A job goes back to the head of its line. */
void weir__partition_return(struct weir__partitions *partitions, struct weir__unit *unit);
void weir__partition_leave(struct weir__partitions *partitions, struct weir__unit *unit);
/* A submitter's job takes its place in the line. */
void weir__partition_admit(struct weir__partitions *partitions, struct weir__unit *submitter, struct weir__unit *job);

/* Who gets the next free permits, or NULL. Jobs and submitters are passed over while held. */
struct weir__unit *weir__partitions_next(const struct weir__partitions *partitions, uint32_t limit, bool held);

/* Whether a unit that comes now would be next, those that wait for more permits than are free included. */
bool weir__partition_goes_first(const struct weir__partitions *partitions, uint16_t index, uint32_t weight,
                                uint32_t limit, bool held);

/* Books permits that a partition gets, reserved or in flight. */
static inline void weir__partition_use(struct weir__partitions *partitions, uint16_t index, uint32_t weight)
{
    struct weir__partition *partition = &partitions->all[index];
    partition->in_use += weight;
    if (partitions->count == 1)
        return;
    if (partition->share > 0) { /* note:virtual-time */
        partitions->virtual_now = partition->virtual_time;
        partition->virtual_time += weight / partition->share;
    }
}

/* Places of a queue of the given depth that a partition is guaranteed. */
uint32_t weir__partition_places(const struct weir__partition *partition, uint32_t depth);

/* Whether the queue of the given depth has a place for one more job of the partition. A place guaranteed to another
 * partition is none. */
bool weir__partition_has_room(const struct weir__partitions *partitions, uint16_t index, uint32_t depth);

/* ---- flow.c: measuring periods ---- */

/* Completions of the running measuring period. */
struct weir__flow {
    uint64_t period_start_ns; /* 0 before the first sample */
    uint64_t count;
    uint64_t rtt_sum_ns;
    double rtt_squares;      /* sum, ns^2 */
    double rtt_ns;           /* mean of the last period, 0 before the first */
    double rtt_deviation_ns; /* standard deviation over the last period */
    double throughput;       /* completions per second of the last period */
};

enum { WEIR__PERIOD_LEAST_NS = 100000000 };

/* With the completion at end_ns counted: true when it closes the period. */
bool weir__flow_close(struct weir__flow *flow, uint64_t end_ns);

/* True when the sample closed a measuring period. */
static inline bool weir__flow_measure(struct weir__flow *flow, const weir_sample *sample)
{
    if (sample->outcome != WEIR_SUCCESS)
        return false; /* failures tell neither how fast nor how much the downstream works */
    uint64_t end_ns = sample->start_ns + sample->rtt_ns;
    if (flow->period_start_ns == 0)
        flow->period_start_ns = sample->start_ns;
    flow->count++;
    flow->rtt_sum_ns += sample->rtt_ns;
    flow->rtt_squares += (double)sample->rtt_ns * (double)sample->rtt_ns;
    if (flow->throughput > 0 && end_ns < flow->period_start_ns + WEIR__PERIOD_LEAST_NS)
        return false; /* most samples are spared a division */
    return weir__flow_close(flow, end_ns);
}

/* A call takes longer than this less often than once in a hundred, unless its time varies wildly. */
double weir__flow_slow_rtt_ns(const struct weir__flow *flow);

/* ---- demand.c: how fast work comes, and how evenly ---- */

/* What the owner of a queue has counted since its creation. */
struct weir__asked {
    uint64_t arrivals; /* jobs that were submitted, admitted or not */
    uint64_t blocked;  /* of these, those whose submitter had to wait */
    bool blocking;     /* somebody waits now */
    double patience;   /* ns a job has from its submit to its deadline, on average of late; 0: jobs carry none */
};

/* Arrivals by measuring periods. */
struct weir__demand {
    double rate;       /* lambda, jobs per ns over the last period; 0: unknown, or callers block */
    double dispersion; /* c_a^2: variance of the count of a period by its mean; 1 for Poisson arrivals */
    double patience;   /* as in struct weir__asked */

    uint64_t begin_ns;        /* of the present period; 0: none has begun */
    struct weir__asked begun; /* as of then */
    double count;             /* arrivals of the last period */
    double length;            /* ns of the last period; 0: there was none */
};

void weir__demand_init(struct weir__demand *demand);

/* A period has ended and the next begins. */
void weir__demand_measure(struct weir__demand *demand, uint64_t now_ns, const struct weir__asked *asked);

/* ---- depth.c: the bound of the queue ---- */

struct weir__depth_terms {
    double limit;         /* L, permits */
    double rtt_ns;        /* R, the mean over the last measuring period */
    uint64_t reaction_ns; /* T_r; 0: the limit never moves */
    double rate;          /* X, completions per ns that the limit allows; 0: L/R */
    double arrivals;      /* lambda, per ns; 0: not measurable */
    double dispersion;    /* c_a^2 */
    double climb_ns;      /* T_up, until the limit that climbs now lets lambda through; 0: it does not climb */
    double dip;           /* 1 - f: the share of the limit that a drain takes away */
    double dip_ns;        /* and for how long */
    double affordable_ns; /* B: the wait that jobs can afford; 0: they do not say */
};

/* D in jobs, within the configuration's bounds. *term becomes the name of the term or bound that decides, a constant
 * string. */
uint32_t weir__depth(const weir_config *config, const struct weir__depth_terms *terms, const char **term);

/* The depth to go on with: current, unless wanted differs from it by more than a quarter. */
uint32_t weir__depth_settle(uint32_t current, uint32_t wanted);

/* What the depth is made of, from one measuring period to the next. */
struct weir__depth_meter {
    double rate;      /* X as held */
    uint64_t low_ns;  /* since when less than that has been measured; 0: not */
    double limits[2]; /* of the two periods before */
    double growth;    /* of the limit over the last period, logarithm per ns; 0: none */
    uint64_t look_ns; /* end of the last period */
};

/* A period has ended. rate: the completions per ns that were measured or that the limit allows, whichever is more. */
void weir__depth_measure(struct weir__depth_meter *meter, uint64_t now_ns, double limit, double rate,
                         uint64_t reaction_ns);

/* How long the limit would climb on, as it does now, to the level; 0: it does not climb, or is there. */
double weir__depth_climb_ns(const struct weir__depth_meter *meter, double limit, double level);

/* Both, at the end of a period, and the terms that follow. */
struct weir__depth_look {
    uint64_t now_ns;
    double limit;
    uint64_t reaction_ns;
    double dip;
    double dip_ns;
    struct weir__asked asked;
};
struct weir__depth_terms weir__depth_look(const struct weir__flow *flow, struct weir__demand *demand,
                                          struct weir__depth_meter *meter, const struct weir__depth_look *look);

/* ---- standing.c: jobs with deadlines in a queue ---- */

/* Whether a queue stands; see the file. */
struct weir__standing {
    bool newest_first; /* it does */
    uint32_t least;    /* jobs queued since the look began, at the least */
    uint64_t begin_ns; /* of the present look at the queue */
};

/* The queue has become shorter. */
void weir__standing_watch(struct weir__standing *standing, uint32_t queued);

/* Now and then, at best at each end of a job. */
void weir__standing_look(struct weir__standing *standing, uint64_t now_ns, uint64_t reaction_ns, uint32_t queued,
                         uint32_t limit);

/* Whether a job behind so many others would start too late to end, one RTT later, in the time left. */
bool weir__wait_is_hopeless(uint32_t queued, double rtt_ns, uint32_t limit, uint64_t left_ns);

/* ---- wheel.c: deadlines of what waits ---- */

/* A hierarchical timing wheel: inserting and removing take constant time, and it needs no memory but the timers
 * themselves. Ticks are 2^20 ns, about a millisecond: a timer fires up to one tick late, never early. */
struct weir__timer {
    struct weir__timer *next;
    struct weir__timer *previous; /* NULL: not in a wheel */
};

enum { WEIR__WHEEL_LEVELS = 7, WEIR__WHEEL_SLOTS = 64, WEIR__TICK_SHIFT = 20 };

struct weir__wheel {
    uint64_t now_tick;                                               /* guarded by lock */
    uint32_t count;                                                  /* guarded by lock */
    uint64_t occupied[WEIR__WHEEL_LEVELS];                           /* guarded by lock: bit per slot */
    struct weir__timer slots[WEIR__WHEEL_LEVELS][WEIR__WHEEL_SLOTS]; /* guarded by lock: list heads */
    uint64_t (*due_ns)(const struct weir__timer *timer);             /* immutable: when a timer fires */
};

void weir__wheel_init(struct weir__wheel *wheel, uint64_t now_ns, uint64_t (*due_ns)(const struct weir__timer *timer));
void weir__wheel_add(struct weir__wheel *wheel, struct weir__timer *timer);
void weir__wheel_remove(struct weir__wheel *wheel, struct weir__timer *timer);
/* Takes one timer that is due at now_ns out of the wheel, or NULL. */
struct weir__timer *weir__wheel_expire(struct weir__wheel *wheel, uint64_t now_ns);
/* When to look again at the latest; WEIR_FOREVER: the wheel is empty. */
uint64_t weir__wheel_next_ns(const struct weir__wheel *wheel);

#endif
