/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

/* A chunk too many is kept, so that a queue which sways around a chunk's end does not allocate each time. */
enum { SPARES_KEPT = 2 };

/* Stands where a job's function would: the job's own function and its bytes follow. */
static weir_outcome copy_mark(void *arg)
{
    (void)arg;
    return WEIR_IGNORE;
}

struct weir__chunk *weir__chunk_create(void)
{
    return weir__allocate(sizeof(struct weir__chunk));
}

void weir__chunks_free(struct weir__chunk *chunk)
{
    while (chunk != NULL) {
        struct weir__chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void weir__queue_grow(struct weir__queue *queue, struct weir__chunk *chunk)
{
    chunk->next = NULL;
    if (queue->first == NULL) {
        queue->first = chunk;
        queue->last = chunk;
        return;
    }
    chunk->next = queue->spare;
    queue->spare = chunk;
    queue->spares++;
}

/* Goes on in a spare chunk. */
static void next_chunk(struct weir__queue *queue)
{
    struct weir__chunk *chunk = queue->spare;
    queue->spare = chunk->next;
    queue->spares--;
    chunk->next = NULL;
    queue->last->next = chunk;
    queue->last = chunk;
    queue->tail = 0;
}

void weir__queue_push(struct weir__queue *queue, const struct weir__work *work)
{
    uint32_t slots = work->is_copy ? WEIR__COPY_SLOTS : 1;
    if (queue->tail + slots > WEIR__CHUNK_SLOTS) {
        if (queue->tail < WEIR__CHUNK_SLOTS)
            queue->last->slots[queue->tail].plain.fn = NULL; /* the rest is unused */
        next_chunk(queue);
    }
    union weir__slot *slot = &queue->last->slots[queue->tail];
    if (work->is_copy) {
        slot->head.mark = copy_mark;
        slot->head.fn = work->fn;
        if (work->copy_size != 0)
            memcpy(slot[1].bytes, work->arg, work->copy_size);
    } else {
        slot->plain.fn = work->fn;
        slot->plain.arg = work->arg;
    }
    queue->tail += slots;
    queue->count++;
}

static void drop_first(struct weir__queue *queue)
{
    struct weir__chunk *chunk = queue->first;
    queue->first = chunk->next;
    queue->head = 0;
    weir__queue_grow(queue, chunk);
}

struct weir__work weir__queue_pop(struct weir__queue *queue, void *buffer)
{
    struct weir__work work = {0};
    if (queue->head == WEIR__CHUNK_SLOTS || queue->first->slots[queue->head].plain.fn == NULL)
        drop_first(queue);
    const union weir__slot *slot = &queue->first->slots[queue->head];
    if (slot->plain.fn == copy_mark) {
        work.fn = slot->head.fn;
        work.arg = buffer;
        memcpy(buffer, slot[1].bytes, WEIR__COPY_BYTES);
        queue->head += WEIR__COPY_SLOTS;
    } else {
        work.fn = slot->plain.fn;
        work.arg = slot->plain.arg;
        queue->head++;
    }
    if (--queue->count == 0) { /* start over: an empty queue uses one chunk only */
        while (queue->first != queue->last)
            drop_first(queue);
        queue->head = 0;
        queue->tail = 0;
    }
    return work;
}

struct weir__chunk *weir__queue_surplus(struct weir__queue *queue)
{
    if (queue->spares <= SPARES_KEPT || !weir__queue_has(queue, (SPARES_KEPT + 1) * WEIR__CHUNK_SLOTS))
        return NULL;
    struct weir__chunk *chunk = queue->spare;
    queue->spare = chunk->next;
    queue->spares--;
    chunk->next = NULL;
    return chunk;
}
