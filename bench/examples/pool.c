/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <weir.h>

struct block {
    FILE *file;
    char text[32];
};

/* Writes a block and waits until the disk has it. */
static weir_outcome flush(void *arg)
{
    const struct block *block = (const struct block *)arg;
    if (fputs(block->text, block->file) == EOF ||
        fflush(block->file) != 0)
        return WEIR_DROPPED;
    return fsync(fileno(block->file)) == 0 ? WEIR_SUCCESS : WEIR_IGNORE;
}

/* Blocks where there is no room. Each job has its own copy. */
static int submit_all(weir_pool *pool, struct block *block)
{
    int error = 0;
    for (int i = 0; i < 20 && error == 0; i++) {
        snprintf(block->text, sizeof block->text, "record %d\n", i);
        error = weir_pool_submit_copy(pool, flush, block, sizeof *block);
    }
    return error;
}

static int run(weir_pool *pool, struct block *block)
{
    int error = submit_all(pool, block);
    if (error != 0)
        return error;
    error = weir_pool_trysubmit(pool, flush, block);
    if (error == EAGAIN)
        puts("shed"); /* L + D jobs are in the pool */
    else if (error != 0)
        return error;
    error = weir_pool_drain(pool, weir_after_ns(UINT64_C(10000000000)));
    if (error != 0)
        return error; /* ETIMEDOUT: a very slow disk */
    weir_outcome outcome = WEIR_IGNORE;
    error = weir_pool_call(pool, flush, block, &outcome);
    if (error == 0)
        printf("the last one %s\n",
               outcome == WEIR_SUCCESS ? "is on the disk" : "failed");
    return error;
}

int main(void)
{
    struct block block = {tmpfile(), ""};
    weir_pool *pool = NULL;
    if (block.file == NULL)
        return 1;
    int error = weir_pool_create(&pool, "journal", NULL);
    if (error == 0)
        error = run(pool, &block);
    if (error != 0)
        fprintf(stderr, "journal: %s\n", weir_strerror(error));
    if (pool != NULL)
        weir_pool_destroy(pool); /* before what the jobs use */
    fclose(block.file);
    return error == 0 ? 0 : 1;
}
