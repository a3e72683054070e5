/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Replays the recorded runs of tests/vectors, see the README there. */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "base/base.h"
#include "estimator/estimator.h"
#include "gradient1.h"
#include "support.h"

#ifndef WEIR_SRCDIR
#define WEIR_SRCDIR "."
#endif

#define LINE     512
#define COLUMNS  16
#define CAPACITY 128 /* RTTs of a percentile window, at most */

/* A recording while it is read. */
struct recording {
    const char *name;
    FILE *file;
    unsigned row;
    char config[LINE]; /* " key=value key=value " */
    double initial_limit;
    double initial_jitter;    /* 0: none */
    double initial_countdown; /* 0: none */
    char header[LINE];
    char *columns[COLUMNS];
    char line[LINE];
    char *cells[COLUMNS];
};

/* ---- reading ---- */

static void split(char *line, char **cells)
{
    line[strcspn(line, "\r\n")] = '\0';
    for (unsigned i = 0; i < COLUMNS; i++) {
        cells[i] = line;
        if (line == NULL)
            continue;
        line = strchr(line, ',');
        if (line != NULL)
            *line++ = '\0';
    }
}

/* The rest of a "# key: rest" line, NULL if it has another key. */
static const char *comment(const char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line + 2, key, length) != 0 || line[2 + length] != ':')
        return NULL;
    return line + 2 + length + 1;
}

static void read_comment(struct recording *r, char *line)
{
    const char *rest;
    line[strcspn(line, "\r\n")] = '\0';
    if ((rest = comment(line, "config")) != NULL)
        (void)snprintf(r->config, sizeof r->config, "%.*s ", LINE - 2, rest);
    if ((rest = comment(line, "initial_limit")) != NULL)
        r->initial_limit = strtod(rest, NULL);
    if ((rest = comment(line, "initial_jitter")) != NULL)
        r->initial_jitter = strtod(rest, NULL);
    if ((rest = comment(line, "initial_countdown")) != NULL)
        r->initial_countdown = strtod(rest, NULL);
}

static bool open_recording(struct recording *r, const char *directory, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    *r = (struct recording){.name = name, .file = fopen(path, "r")};
    if (r->file == NULL)
        return false;
    while (fgets(r->header, sizeof r->header, r->file) != NULL && r->header[0] == '#')
        read_comment(r, r->header);
    split(r->header, r->columns);
    return true;
}

static bool next_row(struct recording *r)
{
    if (fgets(r->line, sizeof r->line, r->file) == NULL)
        return false;
    split(r->line, r->cells);
    r->row++;
    return true;
}

/* NULL: the recording has no such column. */
static const char *cell(const struct recording *r, const char *column)
{
    for (unsigned i = 0; i < COLUMNS && r->columns[i] != NULL; i++)
        if (strcmp(r->columns[i], column) == 0)
            return r->cells[i];
    return NULL;
}

/* NULL: absent. The value ends at a space. */
static const char *option(const struct recording *r, const char *key)
{
    char pattern[64];
    (void)snprintf(pattern, sizeof pattern, " %s=", key);
    const char *found = strstr(r->config, pattern);
    return found != NULL ? found + strlen(pattern) : NULL;
}

static bool option_is(const struct recording *r, const char *key, const char *value)
{
    const char *given = option(r, key);
    size_t length = strlen(value);
    return given != NULL && strncmp(given, value, length) == 0 && given[length] == ' ';
}

static double number(const struct recording *r, const char *key, double absent)
{
    const char *given = option(r, key);
    return given != NULL ? strtod(given, NULL) : absent;
}

static weir_sample sample_of(const struct recording *r)
{
    return (weir_sample){
        .start_ns = strtoull(cell(r, "start_ns"), NULL, 10),
        .rtt_ns = strtoull(cell(r, "rtt_ns"), NULL, 10),
        .in_flight = (uint32_t)strtoul(cell(r, "inflight"), NULL, 10),
        .outcome = strcmp(cell(r, "dropped"), "1") == 0 ? WEIR_DROPPED : WEIR_SUCCESS,
    };
}

/* ---- parameters ---- */

static double half(double estimate, double unused)
{
    (void)unused;
    return estimate / 2;
}

static double plus(double estimate, double x)
{
    return estimate + x;
}

static double minus(double estimate, double x)
{
    return estimate - x;
}

static double times(double estimate, double x)
{
    return estimate * x;
}

static struct weir__of_estimate step(const struct recording *r, const char *key, struct weir__of_estimate absent)
{
    const char *given = option(r, key);
    if (given == NULL)
        return absent;
    if (strncmp(given, "half", 4) == 0)
        return (struct weir__of_estimate){half, 0};
    double argument = strtod(given + 4, NULL);
    if (strncmp(given, "add:", 4) == 0)
        return (struct weir__of_estimate){plus, argument};
    if (strncmp(given, "sub:", 4) == 0)
        return (struct weir__of_estimate){minus, argument};
    return (struct weir__of_estimate){times, argument};
}

static struct weir__of_limit of_limit(const struct recording *r, const char *key, struct weir__of_limit absent)
{
    const char *given = option(r, key);
    if (given == NULL)
        return absent;
    if (strncmp(given, "sqrt", 4) == 0)
        return (struct weir__of_limit){weir__root2_or_more, (int32_t)strtol(given + 4, NULL, 10)};
    return (struct weir__of_limit){weir__constant, (int32_t)strtol(given, NULL, 10)};
}

static struct weir__gradient2_parameters gradient2_parameters(const struct recording *r)
{
    return (struct weir__gradient2_parameters){
        .initial = number(r, "initial", 20),
        .min = number(r, "min", 20),
        .max = number(r, "max", 200),
        .smoothing = number(r, "smoothing", 0.2),
        .rtt_tolerance = number(r, "rttTolerance", 1.5),
        .long_window = (uint32_t)number(r, "longWindow", 600),
        .allowance = of_limit(r, "queueSize", (struct weir__of_limit){weir__constant, 4}),
    };
}

static struct weir__vegas_parameters vegas_parameters(const struct recording *r)
{
    return (struct weir__vegas_parameters){
        .initial = number(r, "initial", 20),
        .min = 1,
        .max = number(r, "max", 1000),
        .smoothing = number(r, "smoothing", 1.0),
        .probe_multiplier = number(r, "probeMultiplier", 30),
        .alpha = of_limit(r, "alpha", (struct weir__of_limit){weir__times_root10, 3}),
        .beta = of_limit(r, "beta", (struct weir__of_limit){weir__times_root10, 6}),
        .threshold = of_limit(r, "threshold", (struct weir__of_limit){weir__times_root10, 1}),
        .increase = step(r, "increase", (struct weir__of_estimate){weir__plus_root10, 1}),
        .decrease = step(r, "decrease", (struct weir__of_estimate){weir__plus_root10, -1}),
    };
}

static struct weir__aimd_parameters aimd_parameters(const struct recording *r)
{
    return (struct weir__aimd_parameters){
        .initial = (int32_t)number(r, "initial", 20),
        .min = (int32_t)number(r, "min", 20),
        .max = (int32_t)number(r, "max", 200),
        .backoff_ratio = number(r, "backoffRatio", 0.9),
        .timeout_ns = (uint64_t)number(r, "timeoutNs", 5e9),
    };
}

static struct gradient1_parameters gradient1_parameters(const struct recording *r)
{
    struct gradient1_parameters parameters = gradient1_defaults();
    parameters.probe_interval = (int32_t)number(r, "probeInterval", parameters.probe_interval);
    return parameters;
}

static struct weir__window_parameters window_parameters(const struct recording *r, uint64_t *rtts)
{
    return (struct weir__window_parameters){
        .min_ns = (uint64_t)number(r, "minWindowNs", 1e9),
        .max_ns = (uint64_t)number(r, "maxWindowNs", 1e9),
        .min_rtt_ns = (uint64_t)number(r, "minRttNs", 100000),
        .samples = (uint32_t)number(r, "windowSize", 10),
        .percentile = option_is(r, "window", "percentile") ? number(r, "percentile", 0.5) : 0,
        .rtts = rtts,
        .capacity = (uint32_t)number(r, "pctSize", 100),
    };
}

/* ---- comparing ---- */

struct tally {
    unsigned files;
    unsigned rows;
    unsigned wrong;
    char first[LINE]; /* complaint about the first wrong cell */
};

static void complain(struct tally *tally, const struct recording *r, const char *format, ...) WEIR__PRINTF(3, 4);

static void complain(struct tally *tally, const struct recording *r, const char *format, ...)
{
    if (tally->wrong++ != 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    int used = snprintf(tally->first, sizeof tally->first, "%s, row %u: ", r->name, r->row);
    (void)vsnprintf(tally->first + used, sizeof tally->first - (size_t)used, format, arguments);
    va_end(arguments);
}

static void expect_integer(struct tally *tally, const struct recording *r, const char *column, int64_t is)
{
    const char *given = cell(r, column);
    char *end;
    if (given == NULL || *given == '\0')
        complain(tally, r, "no %s", column);
    else if (strtoll(given, &end, 10) != is || *end != '\0')
        complain(tally, r, "%s is %" PRId64 ", recorded %s", column, is, given);
}

static void expect_double(struct tally *tally, const struct recording *r, const char *column, double is)
{
    const char *given = cell(r, column);
    double recorded = given != NULL ? strtod(given, NULL) : -1;
    if (memcmp(&recorded, &is, sizeof is) != 0)
        complain(tally, r, "%s is %.17g, recorded %s", column, is, given != NULL ? given : "nowhere");
}

/* ---- the algorithms, with parameters that a configuration would refuse ---- */

/* One of them, and the window in front. */
struct subject {
    const weir_estimator_class *class;
    union {
        struct weir__gradient2_state gradient2;
        struct weir__vegas_state vegas;
        struct weir__aimd_state aimd;
        struct gradient1 gradient1;
    } state;
    bool windowed;
    struct weir__window window;
    uint64_t rtts[CAPACITY];
};

static void init_subject(struct subject *s, const struct recording *r)
{
    s->windowed = option(r, "window") != NULL;
    struct weir__window_parameters window = window_parameters(r, s->rtts);
    weir__window_init(&s->window, &window);
    if (option_is(r, "algo", "gradient2")) {
        s->class = &weir__gradient2.class;
        struct weir__gradient2_parameters parameters = gradient2_parameters(r);
        weir__gradient2_init(&s->state.gradient2, &parameters);
    } else if (option_is(r, "algo", "vegas")) {
        s->class = &weir__vegas.class;
        struct weir__vegas_parameters parameters = vegas_parameters(r);
        weir__vegas_init(&s->state.vegas, &parameters);
        s->state.vegas.jitter = r->initial_jitter;
    } else if (option_is(r, "algo", "aimd")) {
        s->class = &weir__aimd.class;
        struct weir__aimd_parameters parameters = aimd_parameters(r);
        weir__aimd_init(&s->state.aimd, &parameters);
    } else {
        s->class = &gradient1_class;
        struct gradient1_parameters parameters = gradient1_parameters(r);
        gradient1_init(&s->state.gradient1, &parameters);
        s->state.gradient1.countdown = (int64_t)r->initial_countdown;
    }
}

static void compare_vegas(struct tally *tally, const struct recording *r, struct weir__vegas_state *state)
{
    expect_double(tally, r, "est", state->estimate);
    expect_integer(tally, r, "rtt_noload", (int64_t)state->rtt_noload);
    expect_integer(tally, r, "probe_count", (int64_t)state->probe_count);
    const char *jitter = cell(r, "jitter");
    if (jitter == NULL || *jitter == '\0')
        return;
    if (state->probe_count != 0 || state->jitter < 0.5 || state->jitter >= 1)
        complain(tally, r, "no jitter was drawn");
    state->jitter = strtod(jitter, NULL);
}

static void compare_gradient1(struct tally *tally, const struct recording *r, struct gradient1 *state)
{
    expect_double(tally, r, "est", state->estimate);
    expect_integer(tally, r, "rtt_noload", (int64_t)state->rtt_noload);
    if (state->probed)
        state->countdown = strtoll(cell(r, "countdown"), NULL, 10);
    if (r->initial_countdown > 0)
        expect_integer(tally, r, "countdown", state->countdown);
}

static void compare_state(struct tally *tally, const struct recording *r, struct subject *s)
{
    if (s->class == &weir__gradient2.class) {
        expect_double(tally, r, "est", s->state.gradient2.estimate);
        expect_double(tally, r, "long_rtt", s->state.gradient2.rtt_long.value);
    } else if (s->class == &weir__vegas.class) {
        compare_vegas(tally, r, &s->state.vegas);
        if (option(r, "jitter") != NULL)
            s->state.vegas.jitter = number(r, "jitter", 0);
    } else if (s->class == &gradient1_class) {
        compare_gradient1(tally, r, &s->state.gradient1);
    }
}

static void compare_handoff(struct tally *tally, const struct recording *r, bool handed, const weir_sample *given)
{
    expect_integer(tally, r, "handoff", handed);
    if (!handed)
        return;
    expect_integer(tally, r, "h_rtt", (int64_t)given->rtt_ns);
    expect_integer(tally, r, "h_inflight", given->in_flight);
    expect_integer(tally, r, "h_dropped", given->outcome == WEIR_DROPPED);
}

static void replay_states(struct tally *tally, struct recording *r)
{
    struct subject subject = {0};
    init_subject(&subject, r);
    int32_t limit = (int32_t)r->initial_limit;
    while (next_row(r)) {
        weir_sample given = sample_of(r);
        bool handed = true;
        if (subject.windowed) {
            handed = weir__window_add(
                &subject.window, &(weir_sample){given.start_ns, given.rtt_ns, given.in_flight, given.outcome}, &given);
            compare_handoff(tally, r, handed, &given);
        }
        if (handed)
            limit = (int32_t)subject.class->update(&subject.state, &given);
        expect_integer(tally, r, "limit", limit);
        compare_state(tally, r, &subject);
        tally->rows++;
    }
}

/* ---- the public interface, with what a configuration takes ---- */

/* Parameters that only a constructor takes, or random numbers that only a state can be given. An initial limit of 0
 * means something else in a configuration. */
static bool is_private(const struct recording *r)
{
    if (r->initial_limit == 0)
        return true;
    static const char *const keys[] = {"threshold", "increase", "decrease"};
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (option(r, keys[i]) != NULL)
            return true;
    const char *allowance = option(r, "queueSize");
    if (allowance != NULL && strncmp(allowance, "sqrt", 4) == 0)
        return true;
    return option_is(r, "algo", "vegas") && number(r, "probeMultiplier", 30) < 1e9;
}

static void configure(weir_config *config, const struct recording *r)
{
    struct weir__window_parameters window = window_parameters(r, NULL);
    config->window = option(r, "window") != NULL;
    config->window_min = window.min_ns;
    config->window_max = window.max_ns;
    config->min_rtt = window.min_rtt_ns;
    config->window_samples = window.samples;
    config->window_percentile = window.percentile;
    config->window_capacity = window.capacity;
    config->initial_limit = (uint32_t)r->initial_limit;
    config->smoothing = number(r, "smoothing", config->smoothing);
    if (option_is(r, "algo", "gradient2")) {
        config->algorithm = WEIR_GRADIENT2;
        config->min_limit = (uint32_t)number(r, "min", 20);
        config->max_limit = (uint32_t)number(r, "max", 200);
        config->rtt_tolerance = number(r, "rttTolerance", config->rtt_tolerance);
        config->long_window = (uint32_t)number(r, "longWindow", WEIR_BY_ALGORITHM);
        config->queue_allowance = (uint32_t)number(r, "queueSize", WEIR_BY_ALGORITHM);
    } else if (option_is(r, "algo", "vegas")) {
        config->algorithm = WEIR_VEGAS;
        config->max_limit = (uint32_t)number(r, "max", 1000);
        config->alpha = (uint32_t)number(r, "alpha", WEIR_BY_ALGORITHM);
        config->beta = (uint32_t)number(r, "beta", WEIR_BY_ALGORITHM);
        config->probe_multiplier = (uint32_t)number(r, "probeMultiplier", WEIR_BY_ALGORITHM);
    } else if (option_is(r, "algo", "aimd")) {
        config->algorithm = WEIR_AIMD;
        config->min_limit = (uint32_t)number(r, "min", 20);
        config->max_limit = (uint32_t)number(r, "max", 200);
        config->backoff_ratio = number(r, "backoffRatio", 0.9);
        config->timeout = (uint64_t)number(r, "timeoutNs", 5e9);
    }
}

static int create_estimator(weir_estimator **estimator, const struct recording *r, struct gradient1_setup *setup)
{
    weir_config config;
    int error = weir_config_init(&config);
    if (error != 0)
        return error;
    config.log = WEIR_LOG_OFF;
    configure(&config, r);
    if (option_is(r, "algo", "gradient")) {
        config.algorithm = WEIR_CUSTOM;
        config.estimator_class = &gradient1_class;
        setup->parameters = gradient1_parameters(r);
        config.hook_arg = setup;
    }
    return weir_estimator_create(estimator, &config);
}

static void replay_limits(struct tally *tally, struct recording *r)
{
    weir_estimator *estimator;
    struct gradient1_setup gradient1 = {.created = NULL};
    if (is_private(r) || create_estimator(&estimator, r, &gradient1) != 0)
        return;
    tally->files++;
    if (gradient1.created != NULL)
        gradient1.created->countdown = (int64_t)r->initial_countdown;
    if (weir_estimator_limit(estimator) != (unsigned)r->initial_limit)
        complain(tally, r, "the initial limit is %u", weir_estimator_limit(estimator));
    while (next_row(r)) {
        weir_sample sample = sample_of(r);
        expect_integer(tally, r, "limit", weir_estimator_update(estimator, &sample));
        if (gradient1.created != NULL)
            compare_gradient1(tally, r, gradient1.created);
        tally->rows++;
    }
    weir_estimator_destroy(estimator);
}

/* ---- all files ---- */

static int is_recording(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 4 && strcmp(entry->d_name + length - 4, ".csv") == 0 && strncmp(entry->d_name, "quirk_", 6) != 0;
}

static struct tally replay_all(void (*replay)(struct tally *, struct recording *))
{
    const char *source = getenv("top_srcdir");
    char directory[3000];
    (void)snprintf(directory, sizeof directory, "%s/tests/vectors", source != NULL ? source : WEIR_SRCDIR);
    struct dirent **entries;
    int count = scandir(directory, &entries, is_recording, alphasort);
    if (count < 0)
        ck_abort_msg("%s: %s", directory, strerror(errno));

    struct tally tally = {0};
    for (int i = 0; i < count; i++) {
        struct recording recording;
        if (!open_recording(&recording, directory, entries[i]->d_name))
            ck_abort_msg("%s: %s", entries[i]->d_name, strerror(errno));
        replay(&tally, &recording);
        (void)fclose(recording.file);
        free(entries[i]);
    }
    free(entries);
    return tally;
}

/* Every published limit, every window and every double inside equals what the reference recorded, bit for bit. */
START_TEST(states_match_the_recordings)
{
    struct tally tally = replay_all(replay_states);
    (void)fprintf(stderr, "# %u rows compared, state and limit\n", tally.rows);
    ck_assert_msg(tally.wrong == 0, "%u cells differ, first %s", tally.wrong, tally.first);
    ck_assert_uint_ge(tally.rows, 39000);
}
END_TEST

/* A program that configures the same parameters gets the same limits. */
START_TEST(limits_match_through_the_interface)
{
    struct tally tally = replay_all(replay_limits);
    (void)fprintf(stderr, "# %u rows compared of %u files, public interface\n", tally.rows, tally.files);
    ck_assert_msg(tally.wrong == 0, "%u cells differ, first %s", tally.wrong, tally.first);
    ck_assert_uint_ge(tally.rows, 20000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("vectors");
    TCase *vectors = tcase_create("vectors");
    tcase_set_timeout(vectors, 60);
    tcase_add_test(vectors, states_match_the_recordings);
    tcase_add_test(vectors, limits_match_through_the_interface);
    suite_add_tcase(suite, vectors);
    return weir_test_main(suite);
}
