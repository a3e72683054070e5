/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "estimator/estimator.h"
#include "limiter/limiter.h"
#include "stats/live_file.h"

/* Options that change while the limiter runs.
 *
 * note:configure -- parsing, checking, allocating and logging need a configuration that stands still, and must not be
 * done under the lock. So a change is worked out on a copy, and put into effect under the lock if nobody has changed
 * anything meanwhile; else it is worked out again. Only the field of the option is written: those that never change are
 * read without the lock. The estimator learns of it from the thread that owns it, before it sees another sample; what
 * the limit is bounded by counts at once. */

struct change {
    const struct weir__option *option;
    struct weir__value value; /* as it will be, settled */
    weir_config config;       /* the whole, as it was when the change was worked out, and then as it will be */
    uint64_t configured;      /* limiter->configured then */
    char *text;               /* a copy of the new PARTITIONS; afterwards the old one */
    double shares[WEIR__PARTITIONS_MOST];
};

/* ---- whether it may be; without the lock ---- */

/* "pool "name": MAX_LIMIT", the option's part being optional. */
static const char *label_of(const weir_limiter *limiter, const char *option, char label[160])
{
    (void)snprintf(label, 160, "%s \"%.80s\"%s%.64s", limiter->backlog.owner != NULL ? "pool" : "limiter",
                   limiter->name, option != NULL ? ": " : "", option != NULL ? option : "");
    return label;
}

int weir__limiter_check_greatest(const weir_config *config, const struct weir__backlog *backlog, const char *name)
{
    if (backlog == NULL || backlog->owner == NULL || config->max_limit <= backlog->greatest_limit)
        return 0;
    weir__log(config->log, WEIR_LOG_ERROR,
              "pool \"%s\": MAX_LIMIT=%u is not accepted: 1 to %u, for each permit of a pool is a thread", name,
              config->max_limit, backlog->greatest_limit);
    return EINVAL;
}

static int refuse_not_live(const weir_limiter *limiter, const struct weir__option *option)
{
    char label[160];
    weir__log(weir__limiter_log(limiter), WEIR_LOG_ERROR, "%s cannot change while it runs%s; it is set at creation",
              label_of(limiter, option->name, label),
              option->live == WEIR__LIVE_IF_FIXED ? ", unless the algorithm is fixed" : "");
    return ENOTSUP;
}

/* The limit that the algorithm began with is of the past, unless it is the limit. */
static int settle(struct change *change)
{
    weir_config *config = &change->config;
    uint32_t initial_limit = config->initial_limit;
    if (config->algorithm != WEIR_FIXED)
        config->initial_limit = 0;
    int error = weir__estimator_settle(config);
    if (config->algorithm != WEIR_FIXED)
        config->initial_limit = initial_limit;
    return error;
}

/* The shares by partition, from "name=share,...", which has been checked. The partitions themselves stay. */
static int read_shares(const weir_limiter *limiter, struct change *change)
{
    const struct weir__partitions *partitions = &limiter->partitions;
    uint16_t named = 0;
    double rest = 1.0;
    for (const char *at = change->text; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ",");
        size_t name_length = strcspn(at, "=");
        uint16_t index = 1;
        while (index < partitions->count && (strncmp(partitions->all[index].name, at, name_length) != 0 ||
                                             partitions->all[index].name[name_length] != '\0'))
            index++;
        if (index == partitions->count ||
            !weir__parse_real(at + name_length + 1, length - name_length - 1, &change->shares[index]))
            return ENOTSUP;
        rest -= change->shares[index];
        named++;
        at += length + (at[length] == ',' ? 1 : 0);
    }
    change->shares[0] = weir__partition_rest(rest);
    return named == partitions->count - 1 ? 0 : ENOTSUP;
}

static int prepare_partitions(const weir_limiter *limiter, struct change *change)
{
    char label[160];
    if (change->value.text != NULL) {
        size_t size = strlen(change->value.text) + 1;
        change->text = weir__allocate(size);
        if (change->text == NULL)
            return ENOMEM;
        memcpy(change->text, change->value.text, size);
    }
    change->value.text = change->text;
    int error = read_shares(limiter, change);
    if (error == ENOTSUP)
        weir__log(weir__limiter_log(limiter), WEIR_LOG_ERROR,
                  "%s cannot change by name while it runs: the shares can, of the partitions that it was created with",
                  label_of(limiter, change->option->name, label));
    return error;
}

/* Works it out. 0, or what is wrong, logged. */
static int prepare(const weir_limiter *limiter, struct change *change, const char *text)
{
    char label[160];
    const struct weir__option *option = change->option;
    if (!weir__option_is_live(option, &change->config))
        return refuse_not_live(limiter, option);
    const char *reason = weir__option_parse(option, text, &change->value);
    if (reason != NULL) {
        weir__option_refuse(weir__limiter_log(limiter), label_of(limiter, option->name, label), text, option, reason);
        return EINVAL;
    }
    weir__option_store(option, &change->config, change->value);
    weir__origin_put(&change->config, option, WEIR__ORIGIN_CONFIGURED);
    int error = weir__config_check(&change->config);
    if (error == 0)
        error = settle(change);
    if (error == 0)
        error = weir__limiter_check_greatest(&change->config, &limiter->backlog, limiter->name);
    if (error != 0)
        return error;
    change->value = weir__option_load(option, &change->config);
    if (option->type == WEIR__OPTION_SHARES)
        error = prepare_partitions(limiter, change);
    return error;
}

/* ---- putting it into effect; lock held ---- */

static void set_shares(weir_limiter *limiter, struct change *change)
{
    for (uint16_t i = 0; i < limiter->partitions.count; i++)
        limiter->partitions.all[i].share = change->shares[i];
    char *old = limiter->partitions_text;
    limiter->partitions_text = change->text;
    change->text = old;
}

/* A depth that was fixed begins anew, as at creation; else the present one is kept within its bounds until the end of
 * the measuring period. */
static void set_queue(weir_limiter *limiter, bool was_fixed)
{
    const weir_config *config = &limiter->config;
    if (config->queue_depth != WEIR_QUEUE_AUTO) {
        limiter->depth = config->queue_depth;
        limiter->depth_term = "fixed";
        return;
    }
    if (was_fixed) {
        limiter->depth = limiter->limit;
        limiter->depth_term = "initial";
    }
    if (limiter->depth < config->queue_min) {
        limiter->depth = config->queue_min;
        limiter->depth_term = "queue_min";
    } else if (limiter->depth > config->queue_max) {
        limiter->depth = config->queue_max;
        limiter->depth_term = "queue_max";
    }
}

/* May drop the lock meanwhile. */
static void apply(weir_limiter *limiter, struct change *change, struct weir__wakes *wakes)
{
    uint64_t now_ns = weir_now_ns();
    bool was_fixed = limiter->config.queue_depth != WEIR_QUEUE_AUTO;
    weir__option_store(change->option, &limiter->config, change->value);
    weir__origin_put(&limiter->config, change->option, WEIR__ORIGIN_CONFIGURED);
    limiter->configured++;
    weir__limiter_publish_config(limiter);
    if (change->option->type == WEIR__OPTION_SHARES)
        set_shares(limiter, change);
    limiter->limit = weir__limiter_enforced(limiter);
    set_queue(limiter, was_fixed);
    weir__limiter_note_pinned(limiter, now_ns);
    limiter->retune = true;
    (void)weir__samples_process(limiter);
    weir__limiter_dispatch(limiter, wakes);
    if (limiter->backlog.owner != NULL)
        limiter->backlog.settle(limiter->backlog.owner, wakes); /* there may be room for who is blocked */
    if (limiter->live != NULL)
        weir__live_configured(limiter, now_ns);
}

/* ---- both ---- */

static void discard(struct change *change)
{
    free(change->text);
    change->text = NULL;
}

int weir_limiter_configure(weir_limiter *limiter, const char *name, const char *text)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    if (name == NULL || text == NULL)
        return EINVAL;
    char label[160];
    struct change change = {.option = weir__option_find(name, strlen(name))};
    if (change.option == NULL) {
        weir__log(weir__limiter_log(limiter), WEIR_LOG_ERROR, "%s: there is no option \"%.64s\"",
                  label_of(limiter, NULL, label), name);
        return EINVAL;
    }
    bool done = false;
    while (error == 0 && !done) {
        struct weir__wakes wakes = {0};
        weir__lock(limiter);
        change.config = limiter->config;
        change.configured = limiter->configured;
        weir__unlock(limiter);
        error = prepare(limiter, &change, text);
        if (error == 0) {
            weir__lock(limiter);
            done = limiter->configured == change.configured; /* note:configure */
            if (done)
                apply(limiter, &change, &wakes);
            weir__unlock(limiter);
            weir__limiter_wake(limiter, &wakes);
        }
        discard(&change);
    }
    return error;
}
