/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <weir.h>

int main(void)
{
    weir_limiter *limiter = NULL;
    weir_config config;
    weir_config_init(&config);
    config.flags = WEIR_NO_ENV;
    config.algorithm = WEIR_FIXED;
    config.initial_limit = 1;
    if (weir_limiter_create(&limiter, "one", &config) != 0)
        return 1;
    weir_permit first;
    weir_permit second;
    weir_limiter_acquire(limiter, &first);
    uint64_t begin_ns = weir_now_ns();
    uint64_t deadline_ns = weir_after_ns(50000000); /* 50 ms from now */
    int error = weir_limiter_timedacquire(limiter, &second, deadline_ns);
    if (error == ETIMEDOUT)
        printf("waited %.0f ms in vain\n",
               (double)(weir_now_ns() - begin_ns) / 1e6);
    weir_limiter_release(limiter, &first, WEIR_SUCCESS);

    /* 0 is long past: what is free is granted all the same. */
    if (weir_limiter_timedacquire(limiter, &second, 0) == 0) {
        puts("granted");
        weir_limiter_release(limiter, &second, WEIR_SUCCESS);
    }
    return weir_limiter_destroy(limiter);
}
