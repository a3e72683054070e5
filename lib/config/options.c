/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "config/config.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/base.h"

#define FIELD(name_) .offset = offsetof(weir_config, name_)
#define MOST_PERMITS UINT64_C(1073741824)        /* 2^30 */
#define MOST_JOBS    UINT64_C(16777216)          /* 2^24 */
#define MOST_SAMPLES UINT64_C(1048576)           /* 2^20 */
#define MOST_STACK   UINT64_C(1073741824)        /* 1 GiB */
#define YEAR         UINT64_C(31536000000000000) /* ns, 365 days */

typedef struct weir__option_word word;
static const word algorithms[] = {{.word = "vegas2", .number = WEIR_VEGAS2},
                                  {.word = "gradient2", .number = WEIR_GRADIENT2},
                                  {.word = "vegas", .number = WEIR_VEGAS},
                                  {.word = "aimd", .number = WEIR_AIMD},
                                  {.word = "fixed", .number = WEIR_FIXED},
                                  {.word = "custom", .number = WEIR_CUSTOM, .program_only = true},
                                  {.word = NULL}};
static const word by_algorithm[] = {{.word = "default", .number = WEIR_BY_ALGORITHM, .real = NAN}, {.word = NULL}};
static const word auto_depth[] = {{.word = "auto", .number = WEIR_QUEUE_AUTO}, {.word = NULL}};
static const word on_off[] = {{.word = "on", .number = 1}, {.word = "off", .number = 0}, {.word = NULL}};
static const word mean[] = {{.word = "mean", .real = 0.0}, {.word = NULL}};
static const word drains[] = {
    {.word = "auto", .number = WEIR_DRAIN_AUTO}, {.word = "off", .number = 0}, {.word = NULL}};
static const word none[] = {{.word = "none", .number = 0}, {.word = NULL}};
static const word modes[] = {
    {.word = "enforce", .number = WEIR_ENFORCE}, {.word = "monitor", .number = WEIR_MONITOR}, {.word = NULL}};
static const word off[] = {{.word = "off", .number = 0}, {.word = NULL}};
static const word zero[] = {{.word = "0", .number = 0}, {.word = NULL}};
static const word levels[] = {{.word = "off", .number = WEIR_LOG_OFF},
                              {.word = "error", .number = WEIR_LOG_ERROR},
                              {.word = "warn", .number = WEIR_LOG_WARN},
                              {.word = "info", .number = WEIR_LOG_INFO},
                              {.word = NULL}};

/* A row's index is part of what weir_config.origin means, so new rows go to the end. */
const struct weir__option weir__options[] = {
    {.name = "ALGORITHM",
     .type = WEIR__OPTION_CHOICE,
     FIELD(algorithm),
     .default_value = "vegas2",
     .words = algorithms,
     .help = "The algorithm that estimates how much may run at once."},
    {.name = "INITIAL_LIMIT",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE_IF_FIXED,
     FIELD(initial_limit),
     .default_value = "0",
     .unit = "permits",
     .least = 0,
     .most = MOST_PERMITS,
     .help = "The limit at the start; 0 is the algorithm's own, 4 for vegas2 and 20 for the others."},
    {.name = "MIN_LIMIT",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(min_limit),
     .default_value = "1",
     .unit = "permits",
     .least = 1,
     .most = MOST_PERMITS,
     .help = "The limit never falls below this."},
    {.name = "MAX_LIMIT",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(max_limit),
     .default_value = "1000",
     .unit = "permits",
     .least = 1,
     .most = MOST_PERMITS,
     .help = "The limit never rises above this, and a pool starts no more threads; a pool takes at most 65536."},
    {.name = "QUEUE_DEPTH",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(queue_depth),
     .default_value = "auto",
     .unit = "jobs",
     .words = auto_depth,
     .least = 0,
     .most = MOST_JOBS,
     .help = "How many jobs may wait; auto follows the time the limit takes to react, 0 is no queue."},
    {.name = "QUEUE_MIN",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(queue_min),
     .default_value = "1",
     .unit = "jobs",
     .least = 0,
     .most = MOST_JOBS,
     .help = "The least depth of an automatic queue."},
    {.name = "QUEUE_MAX",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(queue_max),
     .default_value = "65536",
     .unit = "jobs",
     .least = 0,
     .most = MOST_JOBS,
     .help = "The greatest depth of an automatic queue."},
    {.name = "WINDOW",
     .type = WEIR__OPTION_CHOICE,
     FIELD(window),
     .default_value = "on",
     .words = on_off,
     .help = "Whether gradient2, vegas and aimd see one sample per window or every single one."},
    {.name = "WINDOW_MIN",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(window_min),
     .default_value = "1s",
     .least = 1,
     .most = YEAR,
     .help = "The least length of that window."},
    {.name = "WINDOW_MAX",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(window_max),
     .default_value = "1s",
     .least = 1,
     .most = YEAR,
     .help = "Its greatest length; in between it is twice the fastest round trip seen in it."},
    {.name = "WINDOW_SAMPLES",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(window_samples),
     .default_value = "10",
     .unit = "samples",
     .least = 1,
     .most = MOST_SAMPLES,
     .help = "The least number of samples in a window."},
    {.name = "WINDOW_PERCENTILE",
     .type = WEIR__OPTION_DOUBLE,
     FIELD(window_percentile),
     .default_value = "mean",
     .words = mean,
     .low = 0.0,
     .high = 1.0,
     .above_low = true,
     .below_high = true,
     .help = "Which round trip of a window the algorithm is given: the mean, or the one at this fraction of all."},
    {.name = "WINDOW_CAPACITY",
     .type = WEIR__OPTION_U32,
     FIELD(window_capacity),
     .default_value = "100",
     .unit = "samples",
     .least = 1,
     .most = MOST_SAMPLES,
     .help = "How many round trips a window keeps for WINDOW_PERCENTILE, at least WINDOW_SAMPLES."},
    {.name = "MIN_RTT",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(min_rtt),
     .default_value = "100us",
     .least = 0,
     .most = YEAR,
     .help = "Round trips shorter than this do not enter a window."},
    {.name = "SMOOTHING",
     .type = WEIR__OPTION_DOUBLE,
     .live = WEIR__LIVE,
     FIELD(smoothing),
     .default_value = "default",
     .words = by_algorithm,
     .low = 0.0,
     .high = 1.0,
     .above_low = true,
     .help = "The weight of a new estimate against the old one: 0.2 for gradient2, 1 for vegas."},
    {.name = "RTT_TOLERANCE",
     .type = WEIR__OPTION_DOUBLE,
     .live = WEIR__LIVE,
     FIELD(rtt_tolerance),
     .default_value = "default",
     .words = by_algorithm,
     .low = 1.0,
     .high = 1000.0,
     .help = "How many times its long average the round trip may reach before gradient2 lowers the limit: 1.5."},
    {.name = "LONG_WINDOW",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(long_window),
     .default_value = "default",
     .unit = "samples",
     .words = by_algorithm,
     .least = 1,
     .most = MOST_PERMITS,
     .help = "How many samples the long average of gradient2 spans: 600."},
    {.name = "QUEUE_ALLOWANCE",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(queue_allowance),
     .default_value = "default",
     .unit = "permits",
     .words = by_algorithm,
     .least = 0,
     .most = MOST_PERMITS,
     .help = "What gradient2 adds to its estimate at each step, the queue it allows in the downstream: 4."},
    {.name = "ALPHA",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(alpha),
     .default_value = "default",
     .unit = "permits",
     .words = by_algorithm,
     .least = 0,
     .most = MOST_PERMITS,
     .help = "vegas raises the limit while fewer calls than this queue: 3 times the decimal logarithm of the limit."},
    {.name = "BETA",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(beta),
     .default_value = "default",
     .unit = "permits",
     .words = by_algorithm,
     .least = 0,
     .most = MOST_PERMITS,
     .help = "vegas lowers the limit while more calls than this queue: 6 times the decimal logarithm of the limit."},
    {.name = "PROBE_MULTIPLIER",
     .type = WEIR__OPTION_U32,
     .live = WEIR__LIVE,
     FIELD(probe_multiplier),
     .default_value = "default",
     .words = by_algorithm,
     .least = 0,
     .most = MOST_PERMITS,
     .help = "vegas measures its baseline anew after about this many times the limit in samples: 30."},
    {.name = "BACKOFF_RATIO",
     .type = WEIR__OPTION_DOUBLE,
     .live = WEIR__LIVE,
     FIELD(backoff_ratio),
     .default_value = "0.9",
     .low = 0.5,
     .high = 1.0,
     .below_high = true,
     .help = "aimd multiplies the limit by this at each loss."},
    {.name = "TIMEOUT",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(timeout),
     .default_value = "5s",
     .least = 1,
     .most = YEAR,
     .help = "aimd counts a round trip longer than this as a loss."},
    {.name = "DRAIN_INTERVAL",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(drain_interval),
     .default_value = "auto",
     .words = drains,
     .least = 1000,
     .most = YEAR,
     .help = "How often vegas2 lowers the limit for a moment to see the round trip without a queue."},
    {.name = "RTT_CEILING",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(rtt_ceiling),
     .default_value = "none",
     .words = none,
     .least = 1,
     .most = YEAR,
     .help = "vegas2 never takes a round trip longer than this for a healthy baseline."},
    {.name = "MODE",
     .type = WEIR__OPTION_CHOICE,
     .live = WEIR__LIVE,
     FIELD(mode),
     .default_value = "enforce",
     .words = modes,
     .help = "Whether the estimate is enforced, or only published while MAX_LIMIT is."},
    {.name = "PARTITIONS",
     .type = WEIR__OPTION_SHARES,
     .live = WEIR__LIVE,
     FIELD(partitions),
     .default_value = "none",
     .words = none,
     .unit = "name=share,name=share with names of letters digits _ . - and shares from 0 to 1, in sum at most 1",
     .help = "Named kinds of work, each with the share of the limit that is its own whenever it has work."},
    {.name = "IDLE_TIMEOUT",
     .type = WEIR__OPTION_DURATION,
     .live = WEIR__LIVE,
     FIELD(idle_timeout),
     .default_value = "30s",
     .least = 0,
     .most = YEAR,
     .help = "A worker without work ends after this, except for the last MIN_LIMIT ones."},
    {.name = "STACK_SIZE",
     .type = WEIR__OPTION_SIZE,
     FIELD(stack_size),
     .default_value = "0",
     .words = zero,
     .most = MOST_STACK,
     .here_least = weir__thread_least_stack,
     .help = "The stack of a worker; 0 is the system's default."},
    {.name = "STATS_DIR",
     .type = WEIR__OPTION_DIRECTORY,
     FIELD(stats_dir),
     .default_value = "off",
     .words = off,
     .unit = "a directory",
     .help = "Where the process publishes its live figures."},
    {.name = "LOG",
     .type = WEIR__OPTION_CHOICE,
     .live = WEIR__LIVE,
     FIELD(log),
     .default_value = "warn",
     .words = levels,
     .help = "The least serious lines that are logged, to stderr unless the program takes them."},
};
const size_t weir__options_count = sizeof weir__options / sizeof weir__options[0];

/* Four bits of origin for each option, then the pool's name in its variables. */
enum { ORIGIN_BYTES = 24, ORIGIN_POOL_SIZE = 40 };
_Static_assert(sizeof weir__options / sizeof weir__options[0] <= ORIGIN_BYTES * 2,
               "no room for another option's origin");
_Static_assert(sizeof((weir_config *)0)->origin >= ORIGIN_BYTES + ORIGIN_POOL_SIZE, "no room for the pool's name");

static char upper(char c)
{
    return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

const struct weir__option *weir__option_find(const char *name, size_t length)
{
    for (size_t i = 0; i < weir__options_count; i++) {
        const char *candidate = weir__options[i].name;
        size_t matched = 0;
        while (matched < length && candidate[matched] != '\0' && upper(name[matched]) == candidate[matched])
            matched++;
        if (matched == length && candidate[matched] == '\0')
            return &weir__options[i];
    }
    return NULL;
}

size_t weir__option_width(const struct weir__option *option)
{
    switch (option->type) {
    case WEIR__OPTION_U32:
    case WEIR__OPTION_CHOICE:
        return sizeof(uint32_t);
    case WEIR__OPTION_DURATION:
    case WEIR__OPTION_SIZE:
        return sizeof(uint64_t);
    case WEIR__OPTION_DOUBLE:
        return sizeof(double);
    case WEIR__OPTION_DIRECTORY:
    case WEIR__OPTION_SHARES:
        break;
    }
    return sizeof(const char *);
}

uint64_t weir__option_least(const struct weir__option *option)
{
    return option->here_least != NULL ? option->here_least() : option->least;
}

struct weir__value weir__option_load(const struct weir__option *option, const weir_config *config)
{
    struct weir__value value = {0};
    const unsigned char *field = (const unsigned char *)config + option->offset;
    switch (option->type) {
    case WEIR__OPTION_U32:
    case WEIR__OPTION_CHOICE: {
        uint32_t number;
        memcpy(&number, field, sizeof number);
        value.number = number;
        break;
    }
    case WEIR__OPTION_DURATION:
    case WEIR__OPTION_SIZE:
        memcpy(&value.number, field, sizeof value.number);
        break;
    case WEIR__OPTION_DOUBLE:
        memcpy(&value.real, field, sizeof value.real);
        break;
    case WEIR__OPTION_DIRECTORY:
    case WEIR__OPTION_SHARES:
        memcpy(&value.text, field, sizeof value.text);
        break;
    }
    return value;
}

void weir__option_store(const struct weir__option *option, weir_config *config, struct weir__value value)
{
    unsigned char *field = (unsigned char *)config + option->offset;
    switch (option->type) {
    case WEIR__OPTION_U32:
    case WEIR__OPTION_CHOICE: {
        uint32_t number = (uint32_t)value.number;
        memcpy(field, &number, sizeof number);
        break;
    }
    case WEIR__OPTION_DURATION:
    case WEIR__OPTION_SIZE:
        memcpy(field, &value.number, sizeof value.number);
        break;
    case WEIR__OPTION_DOUBLE:
        memcpy(field, &value.real, sizeof value.real);
        break;
    case WEIR__OPTION_DIRECTORY:
    case WEIR__OPTION_SHARES:
        memcpy(field, &value.text, sizeof value.text);
        break;
    }
}

bool weir__option_equal(const struct weir__option *option, struct weir__value a, struct weir__value b)
{
    switch (option->type) {
    case WEIR__OPTION_DOUBLE:
        return a.real == b.real || (isnan(a.real) && isnan(b.real));
    case WEIR__OPTION_DIRECTORY:
    case WEIR__OPTION_SHARES:
        return a.text == b.text || (a.text != NULL && b.text != NULL && strcmp(a.text, b.text) == 0);
    case WEIR__OPTION_U32:
    case WEIR__OPTION_CHOICE:
    case WEIR__OPTION_DURATION:
    case WEIR__OPTION_SIZE:
        break;
    }
    return a.number == b.number;
}

enum weir__origin weir__origin_get(const weir_config *config, const struct weir__option *option)
{
    size_t index = (size_t)(option - weir__options);
    return (enum weir__origin)(((unsigned)config->origin[index / 2] >> (index % 2 * 4)) & 15u);
}

void weir__origin_put(weir_config *config, const struct weir__option *option, enum weir__origin origin)
{
    size_t index = (size_t)(option - weir__options);
    unsigned shift = (unsigned)(index % 2 * 4);
    unsigned other = config->origin[index / 2] & ~(15u << shift);
    config->origin[index / 2] = (uint8_t)(other | (unsigned)origin << shift);
}

const char *weir__origin_pool(const weir_config *config)
{
    return (const char *)config->origin + ORIGIN_BYTES;
}

void weir__origin_set_pool(weir_config *config, const char *pool)
{
    char *kept = (char *)config->origin + ORIGIN_BYTES;
    if (strncmp(kept, pool, ORIGIN_POOL_SIZE - 1) == 0)
        return;
    for (size_t i = 0; i < weir__options_count; i++)
        if (weir__origin_get(config, &weir__options[i]) == WEIR__ORIGIN_POOL_ENV)
            weir__origin_put(config, &weir__options[i], WEIR__ORIGIN_SET);
    size_t length = strlen(pool);
    if (length > ORIGIN_POOL_SIZE - 1)
        length = ORIGIN_POOL_SIZE - 1;
    memset(kept, 0, ORIGIN_POOL_SIZE);
    memcpy(kept, pool, length);
}

int weir_config_init(weir_config *config)
{
    if (config == NULL)
        return EINVAL;
    memset(config, 0, sizeof *config);
    config->size = sizeof *config;
    for (size_t i = 0; i < weir__options_count; i++) {
        struct weir__value value = {0};
        (void)weir__option_parse(&weir__options[i], weir__options[i].default_value, &value);
        weir__option_store(&weir__options[i], config, value);
    }
    return 0;
}

int weir__config_import(weir_config *full, const weir_config *given)
{
    enum { ABSURD = 4096 };
    size_t size = given->size;
    /* Every version's size is a multiple of the alignment, which rules out most of what an uninitialised one holds. */
    if (size < offsetof(weir_config, min_limit) || size > ABSURD || size % _Alignof(weir_config) != 0) {
        weir__log(WEIR_LOG_WARN, WEIR_LOG_ERROR, "a configuration of size %zu: weir_config_init was not called for it",
                  size);
        return EINVAL;
    }
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *full; i < size; i++) {
        if (bytes[i] != 0) {
            weir__log(WEIR_LOG_WARN, WEIR_LOG_ERROR,
                      "a configuration of size %zu sets what this version of the library, with size %zu, does not know",
                      size, sizeof *full);
            return EINVAL;
        }
    }
    if (size < sizeof *full)
        (void)weir_config_init(full);
    memcpy(full, given, size < sizeof *full ? size : sizeof *full);
    full->size = sizeof *full;
    full->origin[sizeof full->origin - 1] = 0; /* ends the pool's name, whatever the program left there */
    return 0;
}

void weir__config_give_back(weir_config *given, const weir_config *full)
{
    size_t size = given->size;
    memcpy(given, full, size < sizeof *full ? size : sizeof *full);
    given->size = size;
}
