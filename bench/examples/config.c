/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <weir.h>

/* Called once for each change of the limit, never under a lock. */
static void trace(const weir_trace_event *event, void *arg)
{
    fprintf((FILE *)arg, "%s: limit %u to %u (%s)\n", event->name,
            (unsigned)event->old_limit, (unsigned)event->new_limit,
            event->reason);
}

int main(void)
{
    /* Fields for what is known when the program is compiled. */
    weir_config config;
    weir_config_init(&config);
    config.algorithm = WEIR_GRADIENT2;
    config.max_limit = 200;
    config.trace = trace;
    config.trace_arg = stderr;

    /* Text for what comes from a file or an argument; the syntax is that
     * of the environment. */
    int error = weir_config_set(&config, "WINDOW_MIN", "100ms");
    if (error == 0)
        error = weir_config_set(&config, "idle_timeout", "2m");
    weir_pool *pool = NULL;
    if (error == 0)
        error = weir_pool_create(&pool, "reports", &config);
    if (error != 0) { /* the log has said which option is bad */
        fprintf(stderr, "reports: %s\n", weir_strerror(error));
        return 1;
    }
    weir_config_load_env(&config, "reports"); /* as the pool has done */
    weir_config_print(&config, stdout);
    return weir_pool_destroy(pool);
}
