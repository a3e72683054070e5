/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Random operations on a pool and its limiter, one after another, against a model that says what each returns and what
 * the figures are afterwards. Jobs end when the driver says so. What the architecture promises at every instant is
 * checked after every operation:
 *     in flight <= limit, unless the limit has fallen, then it only falls;
 *     queued <= depth, unless a pause has brought jobs back, then it only falls;
 *     submitted = queued + running + ended, and every job ends once. */

#include <stdio.h>
#include <stdlib.h>

#include "model.h"

enum { EPISODE = 400 }; /* operations on one pool */

/* A million operations take too long for every day: as many as fit into BUDGET_NS are made, all with WEIR_TEST_FULL. */
START_TEST(agrees_with_the_model)
{
    enum { OPERATIONS = 1000000 };
    const uint64_t budget_ns = UINT64_C(20000000000);
    const char *full = getenv("WEIR_TEST_FULL");
    bool all = full != NULL && full[0] != '\0';
    unsigned aim = weir_test_scaled(OPERATIONS);
    unsigned made = 0;
    uint64_t begin_ns = weir_now_ns();
    model.random = weir_test_seed();
    helpers_start();
    for (unsigned number = 0; made < aim && (all || weir_now_ns() - begin_ns < budget_ns); number++) {
        model_open(number);
        for (unsigned i = 0; i < EPISODE; i++)
            operate();
        send_callers_home();
        model_close();
        made += EPISODE;
    }
    helpers_end();
    double seconds = (double)(weir_now_ns() - begin_ns) * 1e-9;
    (void)fprintf(stderr, "# %u operations in %.1f s: %.0f per second\n", made, seconds, made / seconds);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model");
    TCase *group = tcase_create("model");
    tcase_set_timeout(group, 900);
    tcase_add_test(group, agrees_with_the_model);
    suite_add_tcase(suite, group);
    return weir_test_main(suite);
}
