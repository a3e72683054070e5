/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TESTS_FUZZ_H
#define WEIR_TESTS_FUZZ_H

/* What the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput: linked with libFuzzer by "make fuzz",
 * with replay.c for "make check". It aborts where something is wrong. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts with the place and what was expected there. */
#define FUZZ_CHECK(condition_)                          \
    do {                                                \
        if (!(condition_))                              \
            fuzz_fail(__FILE__, __LINE__, #condition_); \
    } while (0)
_Noreturn void fuzz_fail(const char *file, int line, const char *what);

/* What is left of an input. */
struct fuzz_input {
    const uint8_t *data;
    size_t size;
};

/* The next number of that many bytes, at most 8; zeros once nothing is left. */
uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes);

/* The next line without its end, as a string to be freed; NULL: nothing is left. A zero byte ends the string. */
char *fuzz_line(struct fuzz_input *input);

/* From now on the library's log lines are looked at, not printed: each is one line of text. */
void fuzz_watch_log(void);

/* Whether text has no character that would steer a terminal, but for the ends of lines where those are allowed. */
bool fuzz_is_harmless(const char *text, bool may_have_lines);

#endif
