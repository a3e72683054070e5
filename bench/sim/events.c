/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <stdlib.h>

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_schedule(struct sim_events *events, uint64_t at, enum sim_event_kind kind, uint32_t subject)
{
    if (events->count == events->room) {
        events->room = events->room == 0 ? 1024 : 2 * events->room;
        events->heap = realloc(events->heap, events->room * sizeof *events->heap);
        if (events->heap == NULL)
            abort();
    }
    struct sim_event event = {.at = at, .order = events->orders++, .kind = (uint32_t)kind, .subject = subject};
    size_t i = events->count++;
    while (i > 0 && before(&event, &events->heap[(i - 1) / 2])) {
        events->heap[i] = events->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    events->heap[i] = event;
}

bool sim_next(struct sim_events *events, struct sim_event *event)
{
    if (events->count == 0)
        return false;
    *event = events->heap[0];
    struct sim_event last = events->heap[--events->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= events->count)
            break;
        if (child + 1 < events->count && before(&events->heap[child + 1], &events->heap[child]))
            child++;
        if (!before(&events->heap[child], &last))
            break;
        events->heap[i] = events->heap[child];
        i = child;
    }
    events->heap[i] = last;
    return true;
}
