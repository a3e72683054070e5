/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "weirstat.h"

/* The next of the fields that tabs separate, up to the end of the line, as text of its own; *at moves on. */
static const char *next_field(const char **at, char *buffer, size_t size)
{
    size_t length = strcspn(*at, "\t\n");
    size_t kept = length < size - 1 ? length : size - 1;
    char raw[256];
    kept = kept < sizeof raw - 1 ? kept : sizeof raw - 1;
    memcpy(raw, *at, kept);
    raw[kept] = '\0';
    *at += length + ((*at)[length] == '\t' ? 1 : 0);
    return format_name(raw, size - 1, buffer);
}

void print_options(FILE *out, const char *text)
{
    (void)fprintf(out, "  %-17s %-14s %-4s %s\n", "OPTION", "VALUE", "LIVE", "ORIGIN");
    while (*text != '\0') {
        char name[32];
        char value[128];
        char origin[128];
        char live[16];
        (void)next_field(&text, name, sizeof name);
        (void)next_field(&text, value, sizeof value);
        (void)next_field(&text, origin, sizeof origin);
        (void)next_field(&text, live, sizeof live);
        text += strcspn(text, "\n");
        text += *text == '\n' ? 1 : 0;
        (void)fprintf(out, "  %-17s %-14s %-4s %s\n", name, value, live[0] != '\0' ? "yes" : "-", origin);
    }
}
