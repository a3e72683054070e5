/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "admission/admission.h"

void weir__caller_init(struct weir__caller *caller, uint32_t weight)
{
    caller->next = NULL;
    caller->previous = NULL;
    weir__parker_init(&caller->parker);
    caller->position = 0;
    caller->weight = weight;
    caller->in_flight = 0;
    caller->verdict = WEIR__PENDING;
}

void weir__caller_destroy(struct weir__caller *caller)
{
    weir__parker_destroy(&caller->parker);
}

void weir__line_append(struct weir__line *line, struct weir__caller *caller)
{
    caller->next = NULL;
    caller->previous = line->last;
    if (line->last != NULL)
        line->last->next = caller;
    else
        line->first = caller;
    line->last = caller;
    line->length++;
}

void weir__line_remove(struct weir__line *line, struct weir__caller *caller)
{
    if (caller->previous != NULL)
        caller->previous->next = caller->next;
    else
        line->first = caller->next;
    if (caller->next != NULL)
        caller->next->previous = caller->previous;
    else
        line->last = caller->previous;
    line->length--;
}

void weir__wakes_add(struct weir__wakes *wakes, struct weir__caller *caller, int verdict)
{
    caller->verdict = verdict;
    caller->next = wakes->callers;
    wakes->callers = caller;
}

void weir__line_decide(struct weir__line *line, struct weir__caller *caller, int verdict, struct weir__wakes *wakes)
{
    weir__line_remove(line, caller);
    weir__wakes_add(wakes, caller, verdict);
}

void weir__wakes_callers(struct weir__wakes *wakes)
{
    while (wakes->callers != NULL) {
        struct weir__caller *caller = wakes->callers;
        wakes->callers = caller->next;
        weir__unpark(&caller->parker); /* the caller's stack frame may be gone from here on */
    }
}

int weir__line_wait(struct weir__line *line, struct weir__caller *caller, pthread_mutex_t *lock, uint64_t deadline_ns)
{
    WEIR__MUST(pthread_mutex_unlock(lock));
    bool woken = weir__park(&caller->parker, deadline_ns);
    WEIR__MUST(pthread_mutex_lock(lock));
    if (!woken && caller->verdict == WEIR__PENDING) {
        weir__line_remove(line, caller);
        caller->verdict = ETIMEDOUT;
        return ETIMEDOUT;
    }
    if (!woken) { /* decided in the last moment: the waker still needs this frame until its wake-up has come */
        WEIR__MUST(pthread_mutex_unlock(lock));
        (void)weir__park(&caller->parker, WEIR_FOREVER);
        WEIR__MUST(pthread_mutex_lock(lock));
    }
    return caller->verdict;
}
