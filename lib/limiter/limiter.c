/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "estimator/estimator.h"
#include "limiter/limiter.h"
#include "stats/live_file.h"

static uint32_t initial_depth(const weir_config *config)
{
    if (config->queue_depth != WEIR_QUEUE_AUTO)
        return config->queue_depth;
    if (config->initial_limit < config->queue_min)
        return config->queue_min;
    return config->initial_limit < config->queue_max ? config->initial_limit : config->queue_max;
}

static int copy_text(char **copy, const char *text)
{
    size_t size = strlen(text) + 1;
    *copy = weir__allocate(size);
    if (*copy == NULL)
        return ENOMEM;
    memcpy(*copy, text, size);
    return 0;
}

/* The strings of a configuration are the program's, or the environment's, and live until the creation only. */
static int copy_texts(weir_limiter *limiter)
{
    weir_config *config = &limiter->config;
    int error = 0;
    if (config->partitions != NULL)
        error = copy_text(&limiter->partitions_text, config->partitions);
    if (error == 0 && config->stats_dir != NULL)
        error = copy_text(&limiter->stats_dir_text, config->stats_dir);
    config->partitions = limiter->partitions_text;
    config->stats_dir = limiter->stats_dir_text;
    return error;
}

static int add_histograms(weir_limiter *limiter)
{
    limiter->histograms = weir__allocate_pages(sizeof *limiter->histograms);
    return limiter->histograms != NULL ? 0 : ENOMEM;
}

enum { SAMPLES_BYTES = 2 * WEIR__SAMPLES_ROOM * sizeof(weir_sample) };

static int allocate_samples(weir_limiter *limiter)
{
    limiter->all_samples = weir__allocate_pages(SAMPLES_BYTES);
    if (limiter->all_samples == NULL)
        return ENOMEM;
    limiter->samples = limiter->all_samples;
    limiter->other_samples = limiter->all_samples + WEIR__SAMPLES_ROOM;
    return 0;
}

static void free_parts(weir_limiter *limiter)
{
    weir__free_pages(limiter->all_samples, SAMPLES_BYTES);
    weir_estimator_destroy(limiter->estimator);
    weir__partitions_free(&limiter->partitions);
    weir__free_pages(limiter->histograms, sizeof *limiter->histograms);
    free(limiter->partitions_text);
    free(limiter->stats_dir_text);
    free(limiter->name);
    free(limiter);
}

static void start_state(weir_limiter *limiter, const struct weir__backlog *backlog)
{
    const weir_config *config = &limiter->config;
    limiter->fork_generation = weir__fork_generation();
    limiter->estimate = weir_estimator_limit(limiter->estimator);
    limiter->limit = weir__limiter_enforced(limiter);
    limiter->depth = initial_depth(config);
    limiter->depth_term = config->queue_depth != WEIR_QUEUE_AUTO ? "fixed" : "initial";
    weir__demand_init(&limiter->demand);
    limiter->reaction_ns = weir_estimator_reaction_ns(limiter->estimator);
    (void)weir_estimator_figures(limiter->estimator, &limiter->figures);
    weir__limiter_note_bounds(limiter, weir_now_ns());
    weir__limiter_publish_config(limiter);
    if (backlog != NULL)
        limiter->backlog = *backlog;
    weir__mutex_init(&limiter->lock);
    weir__fork_register(&limiter->fork_lock, &limiter->lock);
}

int weir__limiter_create(weir_limiter **limiter, const char *name, const weir_config *config, const char *kind,
                         const struct weir__backlog *backlog)
{
    if (limiter == NULL)
        return EINVAL;
    if (name == NULL)
        name = "default";
    int error = weir__fork_watch();
    if (error != 0)
        return error;
    weir_limiter *created = weir__allocate(sizeof *created);
    if (created == NULL)
        return ENOMEM;
    error = weir__config_resolve(&created->config, config, name, true);
    if (error == 0)
        error = weir__estimator_settle(&created->config);
    if (error == 0)
        error = weir__limiter_check_greatest(&created->config, backlog, name);
    if (error == 0)
        error = weir__estimator_create(&created->estimator, &created->config);
    if (error == 0)
        error = copy_text(&created->name, name);
    if (error == 0)
        error = copy_texts(created);
    if (error == 0)
        error = add_histograms(created);
    if (error == 0)
        error = allocate_samples(created);
    if (error == 0)
        error = weir__partitions_init(&created->partitions, created->config.partitions);
    if (error != 0) {
        free_parts(created);
        return error;
    }
    *limiter =
        created; /* its pool looks for it there as soon as somebody takes the lock, a collection of figures say */
    start_state(created, backlog);
    int cancel = weir__cancel_forbid();
    weir__live_attach(created);
    weir__config_display(&created->config, kind, name);
    weir__cancel_restore(cancel);
    return 0;
}

int weir_limiter_create(weir_limiter **limiter, const char *name, const weir_config *config)
{
    return weir__limiter_create(limiter, name, config, "limiter", NULL);
}

void weir__limiter_free(weir_limiter *limiter)
{
    weir__fork_unregister(&limiter->fork_lock);
    int cancel = weir__cancel_forbid();
    weir__live_close(limiter->live, weir__limiter_usable(limiter) == 0);
    weir__cancel_restore(cancel);
    WEIR__MUST(pthread_mutex_destroy(&limiter->lock));
    free_parts(limiter);
}

void weir__limiter_publish_config(weir_limiter *limiter)
{
    const weir_config *config = &limiter->config;
    bool is_fixed = config->algorithm == WEIR_FIXED && config->mode != WEIR_MONITOR;
    /* relaxed: they lead to no other memory */
    atomic_store_explicit(&limiter->log, config->log, memory_order_relaxed);
    atomic_store_explicit(&limiter->most_weight, is_fixed ? config->initial_limit : config->max_limit,
                          memory_order_relaxed);
}

void weir__limiter_note_bounds(weir_limiter *limiter, uint64_t now_ns)
{
    limiter->changed_ns = now_ns;
    weir__limiter_note_pinned(limiter, now_ns);
}

void weir__limiter_note_pinned(weir_limiter *limiter, uint64_t now_ns)
{
    const weir_config *config = &limiter->config;
    uint32_t pinned = WEIR_NOT_PINNED;
    if (config->algorithm != WEIR_FIXED && config->min_limit < config->max_limit) {
        if (limiter->estimate == config->min_limit)
            pinned = WEIR_PINNED_AT_FLOOR;
        else if (limiter->estimate == config->max_limit)
            pinned = WEIR_PINNED_AT_CEILING;
    }
    if (pinned != limiter->pinned)
        limiter->pinned_since_ns = now_ns;
    limiter->pinned = pinned;
}

int weir_limiter_destroy(weir_limiter *limiter)
{
    if (limiter == NULL || limiter->backlog.owner != NULL)
        return EINVAL;
    if (weir__limiter_usable(limiter) == 0) {
        weir__lock(limiter);
        bool busy = limiter->holders != 0 || limiter->partitions.callers != 0;
        weir__unlock(limiter);
        if (busy)
            return EBUSY;
    }
    weir__limiter_free(limiter);
    return 0;
}

int weir_limiter_freeze(weir_limiter *limiter)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    weir__lock(limiter);
    (void)weir__samples_process(limiter);
    limiter->frozen++;
    weir__unlock(limiter);
    return 0;
}

int weir_limiter_thaw(weir_limiter *limiter)
{
    int error = weir__limiter_usable(limiter);
    if (error != 0)
        return error;
    uint64_t now = weir_now_ns();
    weir__lock(limiter);
    if (limiter->frozen == 0) {
        error = EINVAL;
    } else if (--limiter->frozen == 0) {
        limiter->thaw_ns = now;
        limiter->thawed = true;
    }
    weir__unlock(limiter);
    return error;
}
