/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_CONFIG_PRIVATE_H
#define WEIR_CONFIG_PRIVATE_H

/* The one option table and its faces. It knows names, types, ranges and units, and nothing of what the values do. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <weir/config.h>

/* ---- options.c: the table ---- */

enum weir__option_type {
    WEIR__OPTION_U32,
    WEIR__OPTION_DURATION, /* uint64_t, ns */
    WEIR__OPTION_SIZE,     /* uint64_t, bytes */
    WEIR__OPTION_DOUBLE,
    WEIR__OPTION_CHOICE,    /* uint32_t, one of .words */
    WEIR__OPTION_DIRECTORY, /* const char *, NULL is the first of .words */
    WEIR__OPTION_SHARES     /* likewise: name=share,name=share */
};

/* A word that stands for a value: a choice, or one such as "auto" that lies outside the range. */
struct weir__option_word {
    const char *word; /* NULL ends a list */
    uint64_t number;
    double real;
    bool program_only; /* neither the setter nor the environment may choose it */
};

/* Whether a pool or limiter that runs takes another value, see weir_limiter_configure. The zero of the type, so that a
 * new row is not live by oversight. */
enum weir__liveness { WEIR__AT_CREATION, WEIR__LIVE, WEIR__LIVE_IF_FIXED /* the algorithm is */ };

/* One row of the table. What it accepts in words is derived, see weir__option_accepts. */
struct weir__option {
    const char *name; /* upper case, as in WEIR_<name> */
    enum weir__option_type type;
    enum weir__liveness live;
    size_t offset;             /* of the field in weir_config */
    const char *default_value; /* in the setter's syntax; "default": left to the algorithm */
    const char *unit;          /* of plain numbers; what a string holds */
    const char *help;          /* one sentence for the manual */
    const struct weir__option_word *words;
    uint64_t least;
    uint64_t most;
    double low;
    double high;
    bool above_low;               /* low itself is out */
    bool below_high;              /* high itself is out */
    uint64_t (*here_least)(void); /* replaces least where the system decides it */
};

extern const struct weir__option weir__options[];
extern const size_t weir__options_count;

/* The value of any option, in the member that its type uses. */
struct weir__value {
    uint64_t number;
    double real;
    const char *text;
};

/* NULL: no such option. Either case matches. */
const struct weir__option *weir__option_find(const char *name, size_t length);

struct weir__value weir__option_load(const struct weir__option *option, const weir_config *config);
void weir__option_store(const struct weir__option *option, weir_config *config, struct weir__value value);
bool weir__option_equal(const struct weir__option *option, struct weir__value a, struct weir__value b);

/* The bytes of the field, and the least value that counts on this system. */
size_t weir__option_width(const struct weir__option *option);
uint64_t weir__option_least(const struct weir__option *option);

/* Where a value came from. Before a creation has resolved a configuration, a field without a record that differs from
 * its default was written by the program. resolve turns that into a record, so a later difference is the algorithm's
 * own value in the place of WEIR_BY_ALGORITHM. */
enum weir__origin {
    WEIR__ORIGIN_NONE,
    WEIR__ORIGIN_SET,
    WEIR__ORIGIN_ENV,
    WEIR__ORIGIN_POOL_ENV,
    WEIR__ORIGIN_PROGRAM,
    WEIR__ORIGIN_RESOLVED_DEFAULT,
    WEIR__ORIGIN_CONFIGURED
};
enum weir__origin weir__origin_get(const weir_config *config, const struct weir__option *option);
void weir__origin_put(weir_config *config, const struct weir__option *option, enum weir__origin origin);

/* The pool whose variables were read last, as it appears in their names. Records of another pool become
 * WEIR__ORIGIN_SET, for there is room for one. */
const char *weir__origin_pool(const weir_config *config);
void weir__origin_set_pool(weir_config *config, const char *pool);

/* A program may have been built with an older weir_config (shorter: the rest are defaults) or a newer one (longer: what
 * lies beyond must be zero). import makes a full one of it, or returns EINVAL, logged; give_back writes the part that
 * the program has. */
int weir__config_import(weir_config *full, const weir_config *given);
void weir__config_give_back(weir_config *given, const weir_config *full);

/* ---- parse.c: text to values ---- */

/* NULL and *value, or what is wrong in words ("" where the accepted range says it all). */
const char *weir__option_parse(const struct weir__option *option, const char *text, struct weir__value *value);

/* As above, for a value that a program wrote into the field. */
const char *weir__option_check(const struct weir__option *option, struct weir__value value);

/* Digits, at most one point between them, nothing else, in every locale. */
bool weir__parse_real(const char *text, size_t length, double *value);

/* ---- print.c: values to text ---- */

enum { WEIR__VALUE_SIZE = 400, WEIR__ACCEPTS_SIZE = 256 };

/* The value in the setter's syntax: in buffer, or a string that lives as long as value and table do. */
const char *weir__option_format(const struct weir__option *option, struct weir__value value,
                                char buffer[WEIR__VALUE_SIZE]);

/* What the option takes, in words; portable leaves out figures of this system. */
void weir__option_accepts(const struct weir__option *option, bool portable, char buffer[WEIR__ACCEPTS_SIZE]);

/* Whether the field holds its default. */
bool weir__option_is_default(const struct weir__option *option, const weir_config *config);

/* "default", "program", "set", "algorithm", "configure" or "from WEIR_…". */
void weir__origin_describe(const weir_config *config, const struct weir__option *option, char *buffer, size_t size);

/* Logs that text was refused as the value of label, for reason (as weir__option_parse gives it). */
void weir__option_refuse(uint32_t threshold, const char *label, const char *text, const struct weir__option *option,
                         const char *reason);

/* config->log, or "warn" where it holds no level. */
uint32_t weir__config_threshold(const weir_config *config);

/* Every option in a line of its own, "NAME\tvalue\torigin\tlive" (the last may be empty), as much as fits; a long value
 * is cut. Returns the length. */
size_t weir__config_render(const weir_config *config, char *buffer, size_t size);

/* Whether a configuration's option takes another value while it is in use. */
bool weir__option_is_live(const struct weir__option *option, const weir_config *config);

/* Prints the configuration to stderr if WEIR_DISPLAY_ENV=1 and WEIR_NO_ENV is not set; kind is "pool" or "limiter". */
void weir__config_display(const weir_config *config, const char *kind, const char *name);

/* ---- environment.c: what a creation works with ---- */

/* getenv for programs whose environment can be trusted, NULL for set-user-ID ones. */
const char *weir__getenv(const char *name);

/* weir_config_load_env for a full configuration. */
int weir__environment_apply(weir_config *config, const char *pool_name);

/* Logs one warning that names the WEIR_ variables nobody reads, such as a misspelt one. */
void weir__environment_warn_unknown(uint32_t threshold);

/* The configuration that a creation works with: in (NULL: defaults), taken over according to its size, then, unless
 * read_env is false or WEIR_NO_ENV is set, the environment for name. EINVAL, logged: a value out of its range (fields
 * a program filled by hand included), a bad variable, or a contradiction that shows without knowing the algorithm; out
 * is then untouched. out may be in. */
int weir__config_resolve(weir_config *out, const weir_config *in, const char *name, bool read_env);

/* The last part of that: EINVAL, logged, for a contradiction. */
int weir__config_check(const weir_config *config);

#endif
