/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_ADMISSION_H
#define WEIR_ADMISSION_H

/* How much may wait and who is next. It owns no lock: the limiter's lock protects every structure here. */

#include <stdbool.h>
#include <stdint.h>

#include <weir/config.h>

#include "base/base.h"

/* ---- line.c: threads that wait, first come, first served ---- */

enum { WEIR__PENDING = -1 }; /* a caller's verdict until somebody decides */

/* A blocked thread, on its own stack. */
struct weir__caller {
    struct weir__caller *next;     /* guarded by the limiter's lock; in a line or in a list of wake-ups */
    struct weir__caller *previous; /* guarded by the limiter's lock */
    struct weir__parker parker;    /* atomic */
    uint64_t position;             /* immutable after joining: demand that had arrived before it */
    uint32_t weight;               /* immutable after joining: permits it asks for */
    uint32_t in_flight;            /* guarded by the limiter's lock: permits out when it was granted, itself included */
    int verdict;                   /* guarded by the limiter's lock: WEIR__PENDING, 0, or an errno value */
};

struct weir__line {
    struct weir__caller *first; /* guarded by the limiter's lock */
    struct weir__caller *last;  /* guarded by the limiter's lock */
    uint32_t length;            /* guarded by the limiter's lock */
};

void weir__caller_init(struct weir__caller *caller, uint32_t weight);
void weir__caller_destroy(struct weir__caller *caller);

void weir__line_append(struct weir__line *line, struct weir__caller *caller);
void weir__line_remove(struct weir__line *line, struct weir__caller *caller);

/* Who is to be woken once the lock is dropped. */
struct weir__wakes {
    struct weir__caller *callers; /* decided; a singly linked list by next */
    struct weir__parker *worker;  /* an idle worker */
    bool start_worker;            /* or a worker to be started */
};

/* Decides a caller that is in no line any more and puts it on the list. */
void weir__wakes_add(struct weir__wakes *wakes, struct weir__caller *caller, int verdict);

/* Removes the caller from its line and decides it. */
void weir__line_decide(struct weir__line *line, struct weir__caller *caller, int verdict, struct weir__wakes *wakes);

/* Wakes the callers on the list, without the lock. */
void weir__wakes_callers(struct weir__wakes *wakes);

/* Waits, with lock held on entry and exit and dropped meanwhile, until the caller is decided; at the deadline it leaves
 * its line with ETIMEDOUT. Returns the verdict. */
int weir__line_wait(struct weir__line *line, struct weir__caller *caller, pthread_mutex_t *lock, uint64_t deadline_ns);

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

#endif
