/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool/pool.h"

/* Nodes come in blocks, allocated outside the lock when none is free, each as large as all before it, and return to the
 * pool's store: a pool in its stride allocates nothing. Blocks are freed with the pool, or when it has run empty and
 * they are far more than its queue is deep. The greatest, of nodes of 48 bytes, fills 48 pages together with its head
 * and malloc's: none is begun for a remainder. */
enum { LEAST_AT_ONCE = 128, MOST_AT_ONCE = 4095, MOST_COPIES_AT_ONCE = 64 };

struct weir__block {
    struct weir__block *next;
    size_t bytes;
    unsigned kind;
    uint32_t count;
    _Alignas(max_align_t) unsigned char nodes[];
};

void weir__nodes_exchange(struct weir__nodes *pools, struct weir__nodes *inboxes)
{
    for (unsigned index = 0; index < 2; index++) {
        if (pools->count[index] <= inboxes->count[index])
            continue;
        struct weir__unit *free_nodes = pools->free[index];
        uint32_t count = pools->count[index];
        pools->free[index] = inboxes->free[index];
        pools->count[index] = inboxes->count[index];
        inboxes->free[index] = free_nodes;
        inboxes->count[index] = count;
    }
}

static size_t size_of(unsigned kind)
{
    return kind == WEIR__COPY ? sizeof(struct weir__copy) : sizeof(struct weir__plain);
}

/* Has the kernel provide the pages at once: one by one, at their first use, they cost a submit several times as much.
 * For one or two it is not worth the call. */
static void populate(struct weir__block *block)
{
#ifdef MADV_POPULATE_WRITE
    enum { FEW_BYTES = 16384 };
    if (block->bytes < FEW_BYTES)
        return;
    int saved_errno = errno;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)block + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)block + block->bytes) & ~(page - 1);
    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_POPULATE_WRITE); /* older kernels refuse: no harm */
    errno = saved_errno;
#else
    (void)block;
#endif
}

static struct weir__unit *node_at(struct weir__block *block, uint32_t i)
{
    return (struct weir__unit *)(void *)(block->nodes + i * size_of(block->kind));
}

/* All of them, first to last. Where memory is new to the processor that takes longer than all else, so it is done
 * without the lock. */
static void link_nodes(struct weir__block *block)
{
    struct weir__unit *next = NULL;
    for (uint32_t i = block->count; i-- > 0; next = node_at(block, i))
        *node_at(block, i) = (struct weir__unit){.next = next, .weight = 1, .kind = (uint8_t)block->kind};
}

struct weir__block *weir__block_allocate(enum weir__job_kind kind, uint32_t count)
{
    size_t bytes = sizeof(struct weir__block) + count * size_of(kind);
    int saved_errno = errno;
    struct weir__block *block = malloc(bytes);
    errno = saved_errno;
    if (block == NULL)
        return NULL;
    block->next = NULL;
    block->bytes = bytes;
    block->kind = kind;
    block->count = count;
    populate(block);
    link_nodes(block);
    return block;
}

void weir__block_adopt(weir_pool *pool, struct weir__block *block)
{
    unsigned index = weir__node_index(block->kind);
    node_at(block, block->count - 1)->next = pool->nodes.free[index];
    pool->nodes.free[index] = node_at(block, 0);
    pool->nodes.count[index] += block->count;
    block->next = pool->blocks;
    pool->blocks = block;
    pool->node_count[index] += block->count;
}

uint32_t weir__block_next(const weir_pool *pool, enum weir__job_kind kind)
{
    uint32_t most = kind == WEIR__COPY ? MOST_COPIES_AT_ONCE : MOST_AT_ONCE;
    uint32_t count = pool->node_count[weir__node_index(kind)];
    return count < most ? count : most;
}

int weir__nodes_reserve(weir_pool *pool)
{
    struct weir__block *plain = weir__block_allocate(WEIR__PLAIN, LEAST_AT_ONCE);
    struct weir__block *copy = weir__block_allocate(WEIR__COPY, 1);
    if (plain == NULL || copy == NULL) {
        free(plain);
        free(copy);
        return ENOMEM;
    }
    weir__block_adopt(pool, plain);
    weir__block_adopt(pool, copy);
    return 0;
}

struct weir__block *weir__blocks_spare(weir_pool *pool)
{
    uint32_t kept = pool->limiter->depth > LEAST_AT_ONCE ? pool->limiter->depth : LEAST_AT_ONCE;
    if (pool->node_count[0] / 4 <= kept && pool->node_count[1] / 4 <= kept)
        return NULL;
    for (unsigned index = 0; index < 2; index++) {
        if (pool->nodes.count[index] + pool->inbox.nodes.count[index] != pool->node_count[index])
            return NULL; /* one is in use after all, by a submitter at the ceiling */
    }
    struct weir__block *spare = pool->blocks;
    pool->blocks = NULL;
    pool->nodes = pool->inbox.nodes = (struct weir__nodes){0};
    pool->node_count[0] = pool->node_count[1] = 0;
    while (spare->next->next != NULL) { /* the first two stay */
        struct weir__block *next = spare->next;
        spare->next = pool->blocks;
        pool->blocks = spare;
        spare = next;
    }
    struct weir__block *first = spare;
    spare = pool->blocks;
    pool->blocks = NULL;
    link_nodes(first->next);
    weir__block_adopt(pool, first->next);
    link_nodes(first);
    weir__block_adopt(pool, first);
    return spare;
}

void weir__blocks_free(struct weir__block *blocks)
{
    while (blocks != NULL) {
        struct weir__block *next = blocks->next;
        free(blocks);
        blocks = next;
    }
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
