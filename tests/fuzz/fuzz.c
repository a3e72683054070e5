/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

void fuzz_fail(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

uint64_t fuzz_number(struct fuzz_input *input, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes && input->size > 0; i++) {
        number = number << 8 | *input->data++;
        input->size--;
    }
    return number;
}

char *fuzz_line(struct fuzz_input *input)
{
    if (input->size == 0)
        return NULL;
    const uint8_t *end = memchr(input->data, '\n', input->size);
    size_t length = end != NULL ? (size_t)(end - input->data) : input->size;
    char *line = malloc(length + 1);
    FUZZ_CHECK(line != NULL);
    memcpy(line, input->data, length);
    line[length] = '\0';
    size_t used = end != NULL ? length + 1 : length;
    input->data += used;
    input->size -= used;
    return line;
}

bool fuzz_is_harmless(const char *text, bool may_have_lines)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if ((*at < 0x20 || *at == 0x7f) && !(may_have_lines && *at == '\n'))
            return false;
    }
    return true;
}

static void look_at_log(weir_log_level level, const char *message, void *arg)
{
    (void)arg;
    FUZZ_CHECK(level >= WEIR_LOG_ERROR && level <= WEIR_LOG_INFO);
    FUZZ_CHECK(fuzz_is_harmless(message, false));
}

void fuzz_watch_log(void)
{
    weir_set_log(look_at_log, NULL);
}
