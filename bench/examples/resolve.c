/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <netdb.h>
#include <stdio.h>
#include <weir.h>

/* A job: one blocking call, and how it ended. */
static weir_outcome resolve(void *name)
{
    struct addrinfo *found = NULL;
    int error = getaddrinfo((char *)name, NULL, NULL, &found);
    printf("%s: %s\n", (char *)name, error == 0 ? "ok" : "not found");
    if (error != 0)
        return error == EAI_AGAIN ? WEIR_DROPPED : WEIR_IGNORE;
    freeaddrinfo(found);
    return WEIR_SUCCESS;
}

int main(int argc, char **argv)
{
    weir_pool *pool = NULL;
    int error = weir_pool_create(&pool, "resolver", NULL);
    for (int i = 1; i < argc && error == 0; i++)
        error = weir_pool_submit(pool, resolve, argv[i]); /* may block */
    if (error != 0)
        fprintf(stderr, "resolver: %s\n", weir_strerror(error));
    return pool != NULL ? weir_pool_destroy(pool) : 1; /* runs the rest */
}
