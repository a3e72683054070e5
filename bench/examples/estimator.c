/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <weir.h>

/* A model of a server: it works on 40 calls at once, 20 ms each; further
 * ones wait in line. */
static uint64_t server_rtt_ns(unsigned in_flight)
{
    const uint64_t idle_ns = 20000000;
    return in_flight <= 40 ? idle_ns : idle_ns * in_flight / 40;
}

int main(void)
{
    weir_estimator *estimator = NULL;
    int error = weir_estimator_create(&estimator, NULL);
    if (error != 0) {
        fprintf(stderr, "estimator: %s\n", weir_strerror(error));
        return 1;
    }
    /* As many calls are in flight as the limit allows; one ends after the
     * other. */
    uint64_t now_ns = 1000000000;
    for (int i = 0; i < 20000; i++) {
        weir_sample sample;
        sample.in_flight = weir_estimator_limit(estimator);
        sample.rtt_ns = server_rtt_ns(sample.in_flight);
        sample.start_ns = now_ns - sample.rtt_ns;
        sample.outcome = WEIR_SUCCESS;
        weir_estimator_update(estimator, &sample);
        now_ns += sample.rtt_ns / sample.in_flight;
        if (i % 1000 == 0)
            printf("%6.2f s  limit %u\n",
                   (double)(now_ns - 1000000000) / 1e9,
                   weir_estimator_limit(estimator));
    }
    weir_figures figures;
    if (weir_estimator_figures(estimator, &figures) == 0)
        printf("idle %.1f ms, %.0f calls/s, %" PRIu64 " drains\n",
               (double)figures.rtt_noload_ns / 1e6, figures.throughput,
               figures.drains);
    weir_estimator_destroy(estimator);
    return 0;
}
