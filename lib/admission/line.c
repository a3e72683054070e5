/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>

#include "admission/admission.h"

void weir__line_append(struct weir__line *line, struct weir__unit *unit)
{
    unit->next = NULL;
    unit->previous = line->last;
    if (line->last != NULL)
        line->last->next = unit;
    else
        line->first = unit;
    line->last = unit;
    line->length++;
}

void weir__line_join(struct weir__line *line, struct weir__line *tail)
{
    if (tail->first == NULL)
        return;
    tail->first->previous = line->last;
    if (line->last != NULL)
        line->last->next = tail->first;
    else
        line->first = tail->first;
    line->last = tail->last;
    line->length += tail->length;
    *tail = (struct weir__line){0};
}

void weir__line_prepend(struct weir__line *line, struct weir__unit *unit)
{
    unit->previous = NULL;
    unit->next = line->first;
    if (line->first != NULL)
        line->first->previous = unit;
    else
        line->last = unit;
    line->first = unit;
    line->length++;
}

void weir__line_remove(struct weir__line *line, struct weir__unit *unit)
{
    if (unit->previous != NULL)
        unit->previous->next = unit->next;
    else
        line->first = unit->next;
    if (unit->next != NULL)
        unit->next->previous = unit->previous;
    else
        line->last = unit->previous;
    line->length--;
}

void weir__line_cut(struct weir__line *line, struct weir__unit *first, uint32_t count)
{
    line->first = first;
    line->length -= count;
    if (first != NULL)
        first->previous = NULL;
    else
        line->last = NULL;
}

void weir__line_replace(struct weir__line *line, struct weir__unit *old, struct weir__unit *unit)
{
    unit->next = old->next;
    unit->previous = old->previous;
    if (unit->previous != NULL)
        unit->previous->next = unit;
    else
        line->first = unit;
    if (unit->next != NULL)
        unit->next->previous = unit;
    else
        line->last = unit;
}

void weir__caller_init(struct weir__caller *caller, enum weir__unit_kind kind, uint32_t weight, uint16_t partition)
{
    caller->unit = (struct weir__unit){.weight = weight, .partition = partition, .kind = (uint8_t)kind};
    weir__parker_init(&caller->parker);
    caller->in_flight = 0;
    caller->verdict = WEIR__PENDING;
}

void weir__caller_destroy(struct weir__caller *caller)
{
    weir__parker_destroy(&caller->parker);
}

int weir__caller_wait(struct weir__caller *caller, pthread_mutex_t *lock, uint64_t deadline_ns)
{
    WEIR__MUST(pthread_mutex_unlock(lock));
    bool woken = weir__park(&caller->parker, deadline_ns);
    WEIR__MUST(pthread_mutex_lock(lock));
    if (!woken && caller->verdict == WEIR__PENDING)
        return ETIMEDOUT;
    if (!woken) { /* decided in the last moment: the waker still needs this frame until its wake-up has come */
        WEIR__MUST(pthread_mutex_unlock(lock));
        (void)weir__park(&caller->parker, WEIR_FOREVER);
        WEIR__MUST(pthread_mutex_lock(lock));
    }
    return caller->verdict;
}

void weir__wakes_add(struct weir__wakes *wakes, struct weir__caller *caller, int verdict)
{
    caller->verdict = verdict;
    caller->unit.next = wakes->callers;
    wakes->callers = &caller->unit;
}

void weir__line_decide(struct weir__line *line, struct weir__caller *caller, int verdict, struct weir__wakes *wakes)
{
    weir__line_remove(line, &caller->unit);
    weir__wakes_add(wakes, caller, verdict);
}

void weir__wakes_callers(struct weir__wakes *wakes)
{
    while (wakes->callers != NULL) {
        struct weir__caller *caller = (struct weir__caller *)wakes->callers;
        wakes->callers = caller->unit.next;
        weir__unpark(&caller->parker); /* the caller's stack frame may be gone from here on */
    }
}
