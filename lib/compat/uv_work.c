/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "uv_work.h"

#include <stddef.h>

enum { MOST_AT_ONCE = 64 }; /* then the loop's other handles have their turn */

static weir_outcome run(void *arg)
{
    weir_uv_work *work = (weir_uv_work *)arg;
    work->work(work);
    return work->outcome;
}

/* The work is the caller's again before after_work is called: it may be freed or queued there. */
static void deliver(weir_uv *uv, weir_uv_work *work)
{
    int error = weir_job_outcome(&work->job, NULL);
    if (--uv->active == 0)
        uv_unref((uv_handle_t *)&uv->poll);
    if (work->after_work != NULL)
        work->after_work(work, error != 0 ? uv_translate_sys_error(error) : 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    weir_uv *uv = (weir_uv *)poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < MOST_AT_ONCE && !uv_is_closing((uv_handle_t *)poll); i++) {
        weir_job *job = weir_completions_next(uv->completions);
        if (job == NULL)
            return;
        deliver(uv, (weir_uv_work *)job->arg);
    }
}

int weir_uv_init(weir_uv *uv, uv_loop_t *loop, weir_pool *pool)
{
    int error = weir_completions_create(&uv->completions);
    if (error != 0)
        return uv_translate_sys_error(error);
    int result = uv_poll_init(loop, &uv->poll, weir_completions_fd(uv->completions));
    if (result != 0) {
        weir_completions_destroy(uv->completions);
        return result;
    }
    uv->pool = pool;
    uv->active = 0;
    uv->poll.data = uv;
    uv_unref((uv_handle_t *)&uv->poll);
    return uv_poll_start(&uv->poll, UV_READABLE, on_readable);
}

int weir_uv_queue_work(weir_uv *uv, weir_uv_work *work, weir_uv_work_cb *work_cb, weir_uv_after_work_cb *after_work_cb)
{
    if (work_cb == NULL)
        return UV_EINVAL;
    work->uv = uv;
    work->work = work_cb;
    work->after_work = after_work_cb;
    work->outcome = WEIR_SUCCESS;
    work->job.fn = run;
    work->job.arg = work;
    work->job.completions = uv->completions;
    int error = weir_job_trysubmit(uv->pool, &work->job);
    if (error != 0)
        return uv_translate_sys_error(error);
    if (uv->active++ == 0)
        uv_ref((uv_handle_t *)&uv->poll);
    return 0;
}

int weir_uv_cancel(weir_uv_work *work)
{
    return weir_job_cancel(&work->job) == 0 ? 0 : UV_EBUSY;
}

static void closed(uv_handle_t *poll)
{
    weir_uv *uv = (weir_uv *)poll->data;
    weir_completions_destroy(uv->completions);
    if (uv->on_close != NULL)
        uv->on_close(uv);
}

int weir_uv_close(weir_uv *uv, void (*on_close)(weir_uv *uv))
{
    if (uv->active != 0)
        return UV_EBUSY;
    uv->on_close = on_close;
    uv_close((uv_handle_t *)&uv->poll, closed);
    return 0;
}
