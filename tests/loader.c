/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* loader LIBRARY destroyed|idle: see loading.test. */

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir.h>

static atomic_uint ran;

static weir_outcome count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&ran, 1);
    return WEIR_SUCCESS;
}

/* The functions, by the types of their declarations. */
static struct {
    __typeof__(weir_config_init) *config_init;
    __typeof__(weir_pool_create) *create;
    __typeof__(weir_pool_call) *call;
    __typeof__(weir_pool_destroy) *destroy;
} weir;

static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int find_all(void *library)
{
    return find(library, "weir_config_init", &weir.config_init) && find(library, "weir_pool_create", &weir.create) &&
           find(library, "weir_pool_call", &weir.call) && find(library, "weir_pool_destroy", &weir.destroy);
}

static weir_pool *use(void)
{
    weir_pool *pool = NULL;
    weir_config config;
    if (weir.config_init(&config) != 0)
        return NULL;
    config.flags = WEIR_NO_ENV;
    config.idle_timeout = 20000000; /* MIN_LIMIT is 1: of two workers one leaves after that */
    if (weir.create(&pool, "loaded", &config) != 0)
        return NULL;
    for (int i = 0; i < 20; i++) {
        if (weir.call(pool, count, NULL, NULL) != 0)
            return NULL;
    }
    return pool;
}

static weir_pool *left_behind; /* reachable: it is no leak */

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !find_all(library)) {
        (void)fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    left_behind = use();
    if (left_behind == NULL || atomic_load(&ran) != 20)
        return 4;
    if (strcmp(argv[2], "destroyed") == 0 && weir.destroy(left_behind) != 0)
        return 5;
    if (strcmp(argv[2], "destroyed") == 0)
        left_behind = NULL;
    if (dlclose(library) != 0)
        return 6;
    /* Long enough for the workers to wake up from their timeout in code that would be gone. */
    (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL || !find_all(library))
        return 7;
    if (left_behind == NULL)
        return 0;
    return weir.call(left_behind, count, NULL, NULL) == 0 && weir.destroy(left_behind) == 0 ? 0 : 8;
}
