/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* A libuv loop with thousands of blocking calls in flight. uv_queue_work
 * would run them on a fixed number of threads behind an endless queue;
 * here the number follows what the backend can do, and what it cannot do
 * in time is refused or expires. Exits with 0 if each request came back
 * exactly once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uv.h>
#include <weir.h>

enum { IN_FLIGHT = 4000, REQUESTS = 12000, HASTY_EVERY = 40 };

struct request {
    weir_job job;
    int served; /* by the worker */
    int ended;  /* by the loop */
};

struct backend {
    weir_pool *pool;
    weir_completions *completions;
    struct request *requests;
    uv_poll_t poll;
    uv_timer_t timer;
    int sent;
    int in_flight;
    int most_in_flight;
    int served;
    int expired;
    int refused; /* at submit: it would have been too late */
    int failed;
    unsigned long ticks;
};

static weir_outcome call(void *arg)
{
    struct request *request = (struct request *)arg;
    struct timespec span = {0, 1000000};
    nanosleep(&span, NULL);
    request->served++;
    return WEIR_SUCCESS;
}

static void send_one(struct backend *backend, struct request *request)
{
    request->job.fn = call;
    request->job.arg = request;
    request->job.completions = backend->completions;
    if (backend->sent % HASTY_EVERY ==
        0) /* its client waits only so long */
        request->job.deadline_ns = weir_after_ns(20000000);
    int error = weir_job_trysubmit(backend->pool, &request->job);
    if (error == 0) {
        if (++backend->in_flight > backend->most_in_flight)
            backend->most_in_flight = backend->in_flight;
    } else if (error == ETIMEDOUT) {
        backend->refused++;
    } else {
        backend->failed++;
    }
}

static void send_more(struct backend *backend)
{
    while (backend->in_flight < IN_FLIGHT && backend->sent < REQUESTS)
        send_one(backend, &backend->requests[backend->sent++]);
}

static void take(struct backend *backend, weir_job *job)
{
    struct request *request = (struct request *)job->arg;
    int status = weir_job_outcome(job, NULL);
    backend->in_flight--;
    request->ended++;
    if (status == 0)
        backend->served++;
    else if (status == ETIMEDOUT)
        backend->expired++;
    else
        backend->failed++;
}

/* A bounded number at a time: while there are more, libuv calls again. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct backend *backend = (struct backend *)poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < 100; i++) {
        weir_job *job = weir_completions_next(backend->completions);
        if (job == NULL)
            break;
        take(backend, job);
    }
    send_more(backend);
    if (backend->in_flight == 0) { /* nothing keeps the loop alive then */
        uv_close((uv_handle_t *)&backend->poll, NULL);
        uv_close((uv_handle_t *)&backend->timer, NULL);
    }
}

static void on_timer(uv_timer_t *timer)
{
    ((struct backend *)timer->data)->ticks++;
}

static int run(struct backend *backend)
{
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0)
        return ENOMEM;
    int fd = weir_completions_fd(backend->completions);
    backend->poll.data = backend;
    backend->timer.data = backend;
    if (uv_poll_init(&loop, &backend->poll, fd) != 0 ||
        uv_timer_init(&loop, &backend->timer) != 0 ||
        uv_poll_start(&backend->poll, UV_READABLE, on_readable) != 0 ||
        uv_timer_start(&backend->timer, on_timer, 5, 5) != 0)
        return EIO;
    send_more(backend);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? 0 : EBUSY;
}

/* Each request came back once, or was refused; it was served unless it
 * expired. */
static int check(const struct backend *backend)
{
    int ended = 0;
    int right = 0;
    for (int i = 0; i < REQUESTS; i++) {
        const struct request *request = &backend->requests[i];
        int served = weir_job_outcome(&request->job, NULL) == 0;
        ended += request->ended;
        right += request->ended <= 1 && request->served == served;
    }
    printf("%d served, %d expired, %d refused, %d in flight at most, "
           "%lu ticks\n",
           backend->served, backend->expired, backend->refused,
           backend->most_in_flight, backend->ticks);
    return right == REQUESTS && ended + backend->refused == REQUESTS &&
           backend->failed == 0 && backend->most_in_flight == IN_FLIGHT &&
           backend->ticks > 0;
}

static int open_all(struct backend *backend)
{
    weir_config config;
    int error = weir_config_init(&config);
    if (error == 0)
        error = weir_config_set(&config, "QUEUE_DEPTH", "4000");
    if (error == 0)
        error = weir_config_set(&config, "MAX_LIMIT", "32");
    if (error == 0)
        error = weir_pool_create(&backend->pool, "backend", &config);
    if (error == 0)
        error = weir_completions_create(&backend->completions);
    if (error != 0)
        return error;
    backend->requests =
        (struct request *)calloc(REQUESTS, sizeof *backend->requests);
    return backend->requests != NULL ? 0 : ENOMEM;
}

int main(void)
{
    struct backend backend;
    memset(&backend, 0, sizeof backend);
    int error = open_all(&backend);
    if (error == 0)
        error = run(&backend);
    if (error != 0)
        fprintf(stderr, "uv_loop: %s\n", weir_strerror(error));
    int good = error == 0 && check(&backend);
    if (backend.pool != NULL)
        weir_pool_destroy(backend.pool); /* before what it delivers to */
    weir_completions_destroy(backend.completions);
    free(backend.requests);
    return good ? 0 : 1;
}
