/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "weirstat.h"

/* What a live file says of one option; the program that wrote it is not trusted to have written what it should. */
struct option_line {
    char name[32];
    char value[128];
    char origin[128];
    bool live;
};

/* The next of the fields that tabs separate, up to the end of the line; *at moves on. */
static void next_field(const char **at, char *buffer, size_t size)
{
    size_t length = strcspn(*at, "\t\n");
    size_t kept = length < size - 1 ? length : size - 1;
    memcpy(buffer, *at, kept);
    buffer[kept] = '\0';
    *at += length + ((*at)[length] == '\t' ? 1 : 0);
}

static bool next_line(const char **text, struct option_line *line)
{
    char live[16];
    if (**text == '\0')
        return false;
    next_field(text, line->name, sizeof line->name);
    next_field(text, line->value, sizeof line->value);
    next_field(text, line->origin, sizeof line->origin);
    next_field(text, live, sizeof live);
    line->live = live[0] != '\0';
    *text += strcspn(*text, "\n");
    *text += **text == '\n' ? 1 : 0;
    return true;
}

void print_options(FILE *out, const char *text)
{
    struct option_line line;
    (void)fprintf(out, "  %-17s %-14s %-4s %s\n", "OPTION", "VALUE", "LIVE", "ORIGIN");
    while (next_line(&text, &line)) {
        char name[sizeof line.name];
        char value[sizeof line.value];
        char origin[sizeof line.origin];
        (void)fprintf(out, "  %-17s %-14s %-4s %s\n", format_name(line.name, sizeof name - 1, name),
                      format_name(line.value, sizeof value - 1, value), line.live ? "yes" : "-",
                      format_name(line.origin, sizeof origin - 1, origin));
    }
}

static bool put_member(FILE *out, const char *before, const char *name, const char *text)
{
    return fprintf(out, "%s\"%s\":", before, name) > 0 && weir__json_text(out, text) == 0;
}

bool print_options_json(FILE *out, const struct weir__record *record, const char *text)
{
    struct option_line line;
    const char *separator = "";
    bool written =
        put_member(out, "\n  {", "kind", record->kind == WEIR__RECORD_POOL ? "pool" : "limiter") &&
        put_member(out, ",", "name", record->name) &&
        fprintf(out, ",\"pid\":%" PRIu32 ",\"id\":%" PRIu64 ",\n   \"options\":{", record->pid, record->id) > 0;
    while (written && next_line(&text, &line)) {
        written = fprintf(out, "%s\n    ", separator) > 0 && weir__json_text(out, line.name) == 0 &&
                  put_member(out, ":{", "value", line.value) && put_member(out, ",", "origin", line.origin) &&
                  fprintf(out, ",\"live\":%s}", line.live ? "true" : "false") > 0;
        separator = ",";
    }
    return written && fputs("}}", out) >= 0;
}
