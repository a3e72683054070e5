/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <weir.h>

static weir_outcome work(void *arg)
{
    (void)arg;
    return WEIR_SUCCESS;
}

int main(void)
{
    weir_pool *pool = NULL;
    int error = weir_pool_create(&pool, "errors", NULL);
    if (error != 0) {
        fprintf(stderr, "errors: %s\n", weir_strerror(error));
        return 1;
    }
    weir_pool_shutdown(pool, WEIR_FINISH, WEIR_FOREVER);
    error = weir_pool_submit(pool, work, NULL);
    if (error == ESHUTDOWN)
        printf("not submitted: %s\n", weir_strerror(error));
    return weir_pool_destroy(pool);
}
