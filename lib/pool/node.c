/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool/pool.h"

/* Nodes are allocated one by one, outside the lock, when none is free, and kept for the next submit as long as there
 * are fewer than a full queue needs: a pool in its stride allocates nothing, and one that held a million jobs once
 * gives the memory back. */
enum { KEPT_AT_LEAST = 128 };

static unsigned index_of(unsigned kind)
{
    return kind == WEIR__COPY ? 1 : 0;
}

struct weir__unit *weir__node_take(weir_pool *pool, enum weir__job_kind kind)
{
    unsigned index = index_of(kind);
    struct weir__unit *node = pool->nodes.free[index];
    if (node != NULL) {
        pool->nodes.free[index] = node->next;
        pool->nodes.count[index]--;
    }
    return node;
}

struct weir__unit *weir__node_allocate(enum weir__job_kind kind)
{
    struct weir__unit *node =
        weir__allocate(kind == WEIR__COPY ? sizeof(struct weir__copy) : sizeof(struct weir__plain));
    if (node != NULL) {
        node->weight = 1;
        node->kind = (uint8_t)kind;
    }
    return node;
}

struct weir__unit *weir__node_return(weir_pool *pool, struct weir__unit *node)
{
    unsigned index = index_of(node->kind);
    uint32_t kept = pool->limiter->depth > KEPT_AT_LEAST ? pool->limiter->depth : KEPT_AT_LEAST;
    if (pool->nodes.count[index] >= kept)
        return node;
    node->next = pool->nodes.free[index];
    pool->nodes.free[index] = node;
    pool->nodes.count[index]++;
    return NULL;
}

int weir__nodes_reserve(weir_pool *pool)
{
    for (unsigned i = 0; i <= KEPT_AT_LEAST; i++) {
        struct weir__unit *node = weir__node_allocate(i == 0 ? WEIR__COPY : WEIR__PLAIN);
        if (node == NULL)
            return ENOMEM;
        node = weir__node_return(pool, node);
        free(node);
    }
    return 0;
}

void weir__node_fill(struct weir__unit *node, weir_fn *fn, const void *arg, uint32_t copy_size)
{
    if (node->kind == WEIR__COPY) {
        struct weir__copy *copy = (struct weir__copy *)node;
        copy->fn = fn;
        if (copy_size != 0)
            memcpy(copy->bytes, arg, copy_size);
    } else {
        struct weir__plain *plain = (struct weir__plain *)node;
        plain->fn = fn;
        plain->arg = (void *)(uintptr_t)arg;
    }
}

void weir__nodes_free(struct weir__nodes *nodes)
{
    for (unsigned index = 0; index < 2; index++) {
        while (nodes->free[index] != NULL) {
            struct weir__unit *node = nodes->free[index];
            nodes->free[index] = node->next;
            free(node);
        }
    }
}
