/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* An event loop with epoll and nothing else. One thread keeps thousands
 * of blocking calls in flight, cancels some of them, and never blocks
 * itself: a timer in the same loop ticks all the while. Exits with 0 if
 * each request came back exactly once. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <weir.h>

enum { IN_FLIGHT = 4000, REQUESTS = 12000, CANCEL_EVERY = 50 };

struct request {
    weir_job job;
    int served; /* by the worker */
    int ended;  /* by the loop */
};

struct loop {
    weir_pool *pool;
    weir_completions *completions;
    struct request *requests;
    int epoll_fd;
    int timer_fd;
    int sent;
    int in_flight;
    int most_in_flight;
    int served;
    int cancelled;
    int failed;
    unsigned long ticks;
};

/* What would block the loop: a query, a lookup, a file. */
static weir_outcome call(void *arg)
{
    struct request *request = (struct request *)arg;
    struct timespec span = {0, 1000000};
    nanosleep(&span, NULL);
    request->served++;
    return WEIR_SUCCESS;
}

/* trysubmit does not wait. A server would answer EAGAIN with "busy"; here
 * the queue is deep enough for what this loop has in flight. */
static void send_more(struct loop *loop)
{
    while (loop->in_flight < IN_FLIGHT && loop->sent < REQUESTS) {
        struct request *request = &loop->requests[loop->sent++];
        request->job.fn = call;
        request->job.arg = request;
        request->job.completions = loop->completions;
        if (weir_job_trysubmit(loop->pool, &request->job) != 0) {
            loop->failed++;
            continue;
        }
        if (++loop->in_flight > loop->most_in_flight)
            loop->most_in_flight = loop->in_flight;
        /* The client has hung up. The job comes back all the same. */
        if (loop->sent % CANCEL_EVERY == 0)
            (void)weir_job_cancel(&request->job);
    }
}

static void take(struct loop *loop, weir_job *job)
{
    struct request *request = (struct request *)job->arg;
    int status = weir_job_outcome(job, NULL);
    loop->in_flight--;
    request->ended++;
    if (status == 0)
        loop->served++;
    else if (status == ECANCELED)
        loop->cancelled++;
    else
        loop->failed++;
}

/* A bounded number at a time: the descriptor stays readable while there
 * are more, and the loop's other work has its turn. */
static void on_completions(struct loop *loop)
{
    weir_job *job;
    for (int i = 0; i < 100; i++) {
        job = weir_completions_next(loop->completions);
        if (job == NULL)
            break;
        take(loop, job);
    }
    send_more(loop);
}

static void on_timer(struct loop *loop)
{
    uint64_t expirations;
    if (read(loop->timer_fd, &expirations, sizeof expirations) ==
        (ssize_t)sizeof expirations)
        loop->ticks += (unsigned long)expirations;
}

static int watch(struct loop *loop, int fd)
{
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.fd = fd;
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static int run(struct loop *loop)
{
    int completions_fd = weir_completions_fd(loop->completions);
    if (watch(loop, completions_fd) != 0 ||
        watch(loop, loop->timer_fd) != 0)
        return errno;
    send_more(loop);
    while (loop->in_flight > 0) {
        struct epoll_event events[8];
        int count = epoll_wait(loop->epoll_fd, events, 8, -1);
        if (count < 0 && errno != EINTR)
            return errno;
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == completions_fd)
                on_completions(loop);
            else
                on_timer(loop);
        }
    }
    return 0;
}

/* Each request came back once, and was served unless it was cancelled. */
static int check(const struct loop *loop)
{
    int right = 0;
    for (int i = 0; i < REQUESTS; i++) {
        const struct request *request = &loop->requests[i];
        int cancelled =
            weir_job_outcome(&request->job, NULL) == ECANCELED;
        right +=
            request->ended == 1 && request->served == (cancelled ? 0 : 1);
    }
    printf("%d served, %d cancelled, %d in flight at most, %lu ticks\n",
           loop->served, loop->cancelled, loop->most_in_flight,
           loop->ticks);
    return right == REQUESTS && loop->failed == 0 &&
           loop->most_in_flight == IN_FLIGHT && loop->ticks > 0;
}

static int open_all(struct loop *loop)
{
    weir_config config;
    struct itimerspec period = {{0, 5000000}, {0, 5000000}};
    int error = weir_config_init(&config);
    if (error == 0)
        error = weir_config_set(&config, "QUEUE_DEPTH", "4000");
    if (error == 0)
        error = weir_config_set(&config, "MAX_LIMIT", "32");
    if (error == 0)
        error = weir_pool_create(&loop->pool, "backend", &config);
    if (error == 0)
        error = weir_completions_create(&loop->completions);
    if (error != 0)
        return error;
    loop->requests =
        (struct request *)calloc(REQUESTS, sizeof *loop->requests);
    if (loop->requests == NULL)
        return ENOMEM;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (loop->epoll_fd < 0 || loop->timer_fd < 0 ||
        timerfd_settime(loop->timer_fd, 0, &period, NULL) != 0)
        return errno;
    return 0;
}

int main(void)
{
    struct loop loop;
    memset(&loop, 0, sizeof loop);
    loop.epoll_fd = loop.timer_fd = -1;
    int error = open_all(&loop);
    if (error == 0)
        error = run(&loop);
    if (error != 0)
        fprintf(stderr, "epoll_loop: %s\n", weir_strerror(error));
    int good = error == 0 && check(&loop);
    if (loop.pool != NULL)
        weir_pool_destroy(loop.pool); /* before what it delivers to */
    weir_completions_destroy(loop.completions);
    close(loop.timer_fd);
    close(loop.epoll_fd);
    free(loop.requests);
    return good ? 0 : 1;
}
