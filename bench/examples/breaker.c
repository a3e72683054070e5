/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <weir.h>

/* A circuit breaker in front of a limiter. After five failures in a row
 * it opens: calls fail at once, but for one now and then that tries.
 * While it is open the limiter is frozen, for neither the refused calls
 * nor the one that tries tell how many calls the server stands. */
struct breaker {
    pthread_mutex_t mutex;
    weir_limiter *limiter;
    unsigned failures; /* in a row */
    bool open;
    uint64_t retry_ns; /* when to try again */
};

enum { MOST_FAILURES = 5 };
static const uint64_t pause_ns = 20000000;

static bool may_call(struct breaker *breaker)
{
    pthread_mutex_lock(&breaker->mutex);
    bool may = !breaker->open || weir_now_ns() >= breaker->retry_ns;
    if (may && breaker->open)
        breaker->retry_ns = weir_after_ns(pause_ns); /* the others wait */
    pthread_mutex_unlock(&breaker->mutex);
    return may;
}

static void take_note(struct breaker *breaker, bool success)
{
    pthread_mutex_lock(&breaker->mutex);
    breaker->failures = success ? 0 : breaker->failures + 1;
    if (success && breaker->open) {
        breaker->open = false;
        weir_limiter_thaw(breaker->limiter);
    } else if (breaker->failures >= MOST_FAILURES && !breaker->open) {
        breaker->open = true;
        breaker->retry_ns = weir_after_ns(pause_ns);
        weir_limiter_freeze(breaker->limiter);
    }
    pthread_mutex_unlock(&breaker->mutex);
}

/* EHOSTDOWN: the breaker is open. The permit goes back before the breaker
 * hears of the outcome: what closes it is still discarded. */
static int call_server(struct breaker *breaker, bool (*server)(void))
{
    weir_permit permit;
    if (!may_call(breaker))
        return EHOSTDOWN;
    int error = weir_limiter_acquire(breaker->limiter, &permit);
    if (error != 0)
        return error;
    bool success = server();
    weir_limiter_release(breaker->limiter, &permit,
                         success ? WEIR_SUCCESS : WEIR_DROPPED);
    take_note(breaker, success);
    return success ? 0 : EIO;
}

static uint64_t up_again_ns;

/* A server that is down for a while. */
static bool server_works(void)
{
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    return weir_now_ns() >= up_again_ns;
}

int main(void)
{
    struct breaker breaker = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, false,
                              0};
    unsigned refused = 0, failed = 0, served = 0;
    int error = weir_limiter_create(&breaker.limiter, "server", NULL);
    if (error != 0) {
        fprintf(stderr, "server: %s\n", weir_strerror(error));
        return 1;
    }
    up_again_ns = weir_after_ns(100000000);
    while (served < 20) {
        struct timespec millisecond = {0, 1000000};
        error = call_server(&breaker, server_works);
        refused += error == EHOSTDOWN;
        failed += error == EIO;
        served += error == 0;
        nanosleep(&millisecond, NULL); /* the next request arrives */
    }
    printf("%u refused at once, %u failed, %u served\n", refused, failed,
           served);
    pthread_mutex_destroy(&breaker.mutex);
    return weir_limiter_destroy(breaker.limiter);
}
