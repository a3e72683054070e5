/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weir.h>

static void write_line(weir_log_level level, const char *message,
                       void *arg)
{
    static const char *const words[] = {"off", "error", "warning",
                                        "info"};
    /* One call, so that lines of several threads stay whole. */
    fprintf((FILE *)arg, "[%s] %s\n", words[level], message);
}

int main(void)
{
    weir_set_log(write_line, stdout); /* before the first pool */
    weir_config config;
    weir_config_init(&config);
    config.flags = WEIR_NO_ENV;
    config.min_limit = 50;
    config.max_limit = 10;
    weir_pool *pool = NULL;
    int error = weir_pool_create(&pool, "backups", &config); /* refused */
    if (error != 0)
        printf("backups: %s\n", weir_strerror(error));
    else
        weir_pool_destroy(pool);
    weir_set_log(NULL, NULL);
    return 0;
}
