/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Prints the list of options for weir_environ(7), in mdoc, from the table that the library itself uses. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"

/* A line of text: a backslash begins an escape in mdoc, and a point or an apostrophe at its start a macro. */
static void print_text(const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        (void)fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            (void)fputs("\\e", stdout);
        else
            (void)putchar(*text);
    }
}

static void print_option(const struct weir__option *option)
{
    char accepts[WEIR__ACCEPTS_SIZE];
    weir__option_accepts(option, true, accepts);
    (void)printf(".It Ev WEIR_%s\n", option->name);
    print_text(option->help);
    (void)fputs("\nTakes ", stdout);
    print_text(accepts);
    if (option->live == WEIR__LIVE)
        (void)fputs(".\nCan change while running", stdout);
    else if (option->live == WEIR__LIVE_IF_FIXED)
        (void)fputs(".\nCan change while running if the algorithm is fixed", stdout);
    (void)fputs(".\nDefault:\n", stdout);
    if (strcmp(option->default_value, "default") == 0)
        (void)fputs("the algorithm's own.\n", stdout);
    else
        (void)printf(".Li %s .\n", option->default_value);
}

int main(void)
{
    for (size_t i = 0; i < weir__options_count; i++)
        print_option(&weir__options[i]);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
