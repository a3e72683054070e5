/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ADMISSION_H
#define WEIR_ADMISSION_H

/* How much may wait and who is next. It owns no lock: the limiter's lock protects every structure here. */

#include <stdbool.h>
#include <stdint.h>

#include <weir/config.h>

#include "base/base.h"

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
};

struct weir__line {
    struct weir__unit *first; /* guarded by the limiter's lock */
    struct weir__unit *last;  /* guarded by the limiter's lock */
    uint32_t length;          /* guarded by the limiter's lock */
};

void weir__line_append(struct weir__line *line, struct weir__unit *unit);
void weir__line_prepend(struct weir__line *line, struct weir__unit *unit);
void weir__line_remove(struct weir__line *line, struct weir__unit *unit);
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
    char *name;                 /* immutable; NULL: the first, for what names none */
    double share;               /* immutable: of the limit and of the queue's depth, guaranteed */
    struct weir__line line;     /* guarded by lock: everything that waits, in the order of arrival */
    struct weir__unit *blocked; /* guarded by lock: the first submitter in the line */
    uint32_t in_use;            /* guarded by lock: permits out or reserved */
    uint32_t queued;            /* guarded by lock: jobs in the line */
    uint32_t submitters;        /* guarded by lock: submitters in the line */
    uint32_t callers;           /* guarded by lock: callers in the line */
    uint64_t granted;           /* guarded by lock: units ever */
    uint64_t shed;              /* guarded by lock: refused at the ceiling */
    double virtual_time;        /* guarded by lock: note:virtual-time */
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
void weir__partitions_free(struct weir__partitions *partitions);

/* The index of a name, NULL being the first; -1: unknown. */
int weir__partition_find(const struct weir__partitions *partitions, const char *name);

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
void weir__partition_use(struct weir__partitions *partitions, uint16_t index, uint32_t weight);

/* Whether the queue of the given depth has a place for one more job of the partition. A place guaranteed to another
 * partition is none. */
bool weir__partition_has_room(const struct weir__partitions *partitions, uint16_t index, uint32_t depth);

/* ---- depth.c: the bound of the queue ---- */

struct weir__depth_terms {
    double limit;         /* L, permits */
    double rtt_ns;        /* R, the mean over the last measuring period */
    uint64_t reaction_ns; /* T_r; 0: the limit never moves */
};

/* D in jobs, within the configuration's bounds. */
uint32_t weir__depth(const weir_config *config, const struct weir__depth_terms *terms);

/* The depth to go on with: current, unless wanted differs from it by more than a quarter. */
uint32_t weir__depth_settle(uint32_t current, uint32_t wanted);

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
