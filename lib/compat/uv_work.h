/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_UV_WORK_H
#define WEIR_UV_WORK_H

/* uv_queue_work on a weir pool: work runs on the pool's threads, after_work on the loop's. Source to be compiled into a
 * program, see weir_migrate(7); no part of libweir, which does not know libuv.
 *
 * Functions return 0 or a negative value of libuv's. All but what happens in work belongs to the loop's thread. Several
 * loops may share one pool. */

#include <uv.h>
#include <weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a loop needs; its memory is the caller's until on_close. */
typedef struct weir_uv {
    weir_pool *pool;
    weir_completions *completions;
    uv_poll_t poll;
    unsigned active; /* works that have not come back; they keep the loop alive */
    void (*on_close)(struct weir_uv *uv);
    void *data; /* the caller's */
} weir_uv;

typedef struct weir_uv_work weir_uv_work;
typedef void weir_uv_work_cb(weir_uv_work *work);
typedef void weir_uv_after_work_cb(weir_uv_work *work, int status);

/* The caller's, from queue_work to after_work; zero before the first. */
struct weir_uv_work {
    weir_job job;         /* partition, weight and deadline_ns may be set before queue_work */
    weir_outcome outcome; /* work may set it; WEIR_SUCCESS otherwise */
    void *data;           /* the caller's */
    weir_uv *uv;
    weir_uv_work_cb *work;
    weir_uv_after_work_cb *after_work;
};

int weir_uv_init(weir_uv *uv, uv_loop_t *loop, weir_pool *pool);

/* UV_EAGAIN: shed, the pool is at its ceiling; uv_queue_work has no such answer. after_work, which may be NULL, is not
 * called then. */
int weir_uv_queue_work(weir_uv *uv, weir_uv_work *work, weir_uv_work_cb *work_cb, weir_uv_after_work_cb *after_work_cb);

/* As uv_cancel: 0, and after_work gets UV_ECANCELED; UV_EBUSY: it runs or has run. */
int weir_uv_cancel(weir_uv_work *work);

/* UV_EBUSY: works are active. on_close may be NULL. */
int weir_uv_close(weir_uv *uv, void (*on_close)(weir_uv *uv));

#ifdef __cplusplus
}
#endif
#endif
