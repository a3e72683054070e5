/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Jobs in C++, see cxx.test. The exit status is the number of the step that failed. */

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir.h>

static std::atomic<unsigned> destroyed(0);

struct guard {
    ~guard()
    {
        destroyed++;
    }
};

extern "C" {
static weir_outcome throw_inside(void *)
{
    guard one;
    try {
        guard two;
        throw std::runtime_error("stays inside");
    } catch (const std::exception &) {
        return WEIR_DROPPED;
    }
}

static weir_outcome end_thread(void *)
{
    guard one;
    pthread_exit(nullptr);
    return WEIR_SUCCESS;
}

static weir_outcome cancel_thread(void *)
{
    guard one;
    (void)pthread_cancel(pthread_self());
    pthread_testcancel();
    return WEIR_SUCCESS;
}

static weir_outcome throw_out(void *)
{
    throw std::runtime_error("leaves the job");
}

static weir_outcome nothing(void *)
{
    return WEIR_SUCCESS;
}
}

static weir_pool *make_pool()
{
    weir_pool *pool = nullptr;
    weir_config config;
    if (weir_config_init(&config) != 0)
        return nullptr;
    config.flags = WEIR_NO_ENV;
    return weir_pool_create(&pool, "cxx", &config) == 0 ? pool : nullptr;
}

static void quit()
{
    _exit(42);
}

/* In a child without a sanitizer's report: an exception out of a job is std::terminate. */
static bool exception_terminates()
{
    pid_t child = fork();
    if (child == 0) {
        std::set_terminate(quit);
        weir_pool *pool = make_pool();
        (void)weir_pool_call(pool, throw_out, nullptr, nullptr);
        _exit(1);
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

int main()
{
    if (!exception_terminates())
        return 1;
    weir_pool *pool = make_pool();
    if (pool == nullptr)
        return 2;
    weir_outcome outcome = WEIR_SUCCESS;
    for (int i = 0; i < 100; i++) {
        if (weir_pool_call(pool, throw_inside, nullptr, &outcome) != 0 || outcome != WEIR_DROPPED)
            return 3;
        if (weir_pool_call(pool, end_thread, nullptr, &outcome) != 0 || outcome != WEIR_IGNORE)
            return 4;
        if (weir_pool_call(pool, cancel_thread, nullptr, &outcome) != 0 || outcome != WEIR_IGNORE)
            return 5;
        if (weir_pool_call(pool, nothing, nullptr, &outcome) != 0 || outcome != WEIR_SUCCESS)
            return 6;
    }
    if (weir_pool_destroy(pool) != 0)
        return 7;
    return destroyed == 400 ? 0 : 8;
}
