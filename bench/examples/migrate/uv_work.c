/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* From uv_queue_work to a pool: what the loop asks for is a request with
 * two functions as before. New is that the pool may refuse. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <uv.h>
#include <weir.h>

#include "uv_work.h"

enum { REQUESTS = 300, CANCEL_EVERY = 30, DEPTH = 100 };

struct request {
    weir_uv_work work;
    int answer; /* by the worker */
};

static struct request requests[REQUESTS];
static int next;      /* request to be sent */
static int served;    /* answered */
static int cancelled; /* came back without */
static int refused;   /* sent again later */

/* On a thread of the pool. */
static void query(weir_uv_work *work)
{
    struct request *request = (struct request *)work->data;
    struct timespec span = {0, 1000000};
    nanosleep(&span, NULL);
    request->answer = 1;
}

static void send_more(weir_uv *uv);

/* On the loop. */
static void answered(weir_uv_work *work, int status)
{
    struct request *request = (struct request *)work->data;
    if (status == 0 && request->answer == 1)
        served++;
    else if (status == UV_ECANCELED && request->answer == 0)
        cancelled++;
    send_more(work->uv);
}

/* Until the pool has enough: a refused request waits for an answered one.
 * A server would rather tell its client. */
static void send_more(weir_uv *uv)
{
    while (next < REQUESTS) {
        struct request *request = &requests[next];
        request->work.data = request;
        int error =
            weir_uv_queue_work(uv, &request->work, query, answered);
        if (error == UV_EAGAIN) {
            refused++;
            return;
        }
        if (++next % CANCEL_EVERY == 0)
            (void)weir_uv_cancel(&request->work);
    }
}

int main(void)
{
    uv_loop_t loop;
    weir_uv uv;
    weir_pool *pool = NULL;
    weir_config config;
    if (weir_config_init(&config) != 0)
        return 1;
    config.queue_depth = DEPTH;
    config.max_limit = 16;
    memset(&uv, 0, sizeof uv);
    if (uv_loop_init(&loop) != 0 ||
        weir_pool_create(&pool, "queries", &config) != 0 ||
        weir_uv_init(&uv, &loop, pool) != 0)
        return 1;
    send_more(&uv);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends when nothing is active */
    int closed = weir_uv_close(&uv, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    weir_pool_destroy(pool);
    printf("%d served, %d cancelled, refusals: %s\n", served, cancelled,
           refused > 0 ? "some" : "none");
    return closed == 0 && uv_loop_close(&loop) == 0 && refused > 0 &&
                   served + cancelled == REQUESTS
               ? 0
               : 1;
}
