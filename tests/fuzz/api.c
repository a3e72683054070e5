/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Sequences of calls to a pool and its limiter against the sequential model of check_model: the first byte says whether
 * there are partitions, the others are the choices. */

#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/base.h"
#include "model.h"

enum { MOST_OPERATIONS = 400 };

static void start(void)
{
    static bool started;
    if (!started)
        helpers_start();
    started = true;
}

/* What the model asserts is said in Check's words, but there is no test to go on, or to fail. */
void __wrap__mark_point(const char *file, int line);
_Noreturn void __wrap__ck_assert_failed(const char *file, int line, const char *expression, const char *text, ...)
    WEIR__PRINTF(4, 5);

void __wrap__mark_point(const char *file, int line)
{
    (void)file;
    (void)line;
}

_Noreturn void __wrap__ck_assert_failed(const char *file, int line, const char *expression, const char *text, ...)
{
    char message[1024] = "";
    va_list arguments;
    va_start(arguments, text);
    if (text != NULL)
        (void)vsnprintf(message, sizeof message, text, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "%s\n", message);
    fuzz_fail(file, line, expression);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    start();
    model.choices = data + 1;
    model.choices_left = size - 1;
    model.is_chosen = true;
    model_open(data[0]);
    for (unsigned i = 0; i < MOST_OPERATIONS && model.choices_left > 0; i++)
        operate();
    send_callers_home();
    model_close();
    return 0;
}
