/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admission.h"
#include "config/config.h"

/* Shares that were written as decimals add up to 1 only almost. */
#define TOLERANCE 1e-9

/* ---- creation ---- */

static uint16_t count_names(const char *text)
{
    uint16_t count = text != NULL && text[0] != '\0' ? 1 : 0;
    for (const char *at = text; count > 0 && *at != '\0'; at++)
        count = (uint16_t)(count + (*at == ',' ? 1 : 0));
    return count;
}

/* One "name=share" of the given length. */
static int fill_in(struct weir__partition *partition, const char *text, size_t length)
{
    size_t name_length = strcspn(text, "=");
    if (name_length >= length || !weir__parse_real(text + name_length + 1, length - name_length - 1, &partition->share))
        return EINVAL;
    partition->name = weir__allocate(name_length + 1);
    if (partition->name == NULL)
        return ENOMEM;
    memcpy(partition->name, text, name_length);
    return 0;
}

int weir__partitions_init(struct weir__partitions *partitions, const char *text)
{
    uint16_t count = (uint16_t)(count_names(text) + 1);
    if (count > WEIR__PARTITIONS_MOST)
        return EINVAL;
    partitions->all = weir__allocate(count * sizeof *partitions->all);
    if (partitions->all == NULL)
        return ENOMEM;
    partitions->count = count;
    for (uint16_t i = 0; i < count && count > 1; i++) { /* of a partition that is never used no page is touched */
        partitions->all[i].histograms = weir__allocate(sizeof *partitions->all[i].histograms);
        if (partitions->all[i].histograms == NULL)
            return ENOMEM;
    }
    double rest = 1.0;
    for (uint16_t i = 1; i < count; i++) {
        size_t length = strcspn(text, ",");
        int error = fill_in(&partitions->all[i], text, length);
        if (error != 0)
            return error;
        rest -= partitions->all[i].share;
        text += length + 1;
    }
    partitions->all[0].share = weir__partition_rest(rest);
    return 0;
}

double weir__partition_rest(double rest)
{
    return rest > TOLERANCE ? rest : 0.0;
}

void weir__partitions_free(struct weir__partitions *partitions)
{
    for (uint16_t i = 0; i < partitions->count; i++) {
        free(partitions->all[i].name);
        free(partitions->all[i].histograms);
    }
    free(partitions->all);
}

int weir__partition_find(const struct weir__partitions *partitions, const char *name)
{
    if (name == NULL)
        return 0;
    for (uint16_t i = 1; i < partitions->count; i++) {
        if (strcmp(partitions->all[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* ---- joining and leaving ---- */

static void count_unit(struct weir__partitions *partitions, const struct weir__unit *unit, uint32_t change)
{
    struct weir__partition *partition = &partitions->all[unit->partition];
    if (unit->kind == WEIR__CALLER) {
        partition->callers += change;
        partitions->callers += change;
    } else if (unit->kind == WEIR__SUBMITTER) {
        partition->submitters += change;
        partitions->submitters += change;
    } else {
        partition->queued += change;
        partitions->queued += change;
    }
}

static struct weir__unit *next_submitter(struct weir__unit *unit)
{
    while (unit != NULL && unit->kind != WEIR__SUBMITTER)
        unit = unit->next;
    return unit;
}

void weir__partition_join_line(struct weir__partitions *partitions, uint16_t index, struct weir__line *jobs)
{
    struct weir__partition *partition = &partitions->all[index];
    weir__partition_arrive(partitions, index);
    partition->queued += jobs->length;
    partition->submitted += jobs->length;
    partitions->queued += jobs->length;
    weir__line_join(&partition->line, jobs);
}

void weir__partition_join(struct weir__partitions *partitions, struct weir__unit *unit)
{
    struct weir__partition *partition = &partitions->all[unit->partition];
    weir__partition_arrive(partitions, unit->partition);
    weir__line_append(&partition->line, unit);
    count_unit(partitions, unit, 1);
    if (unit->kind == WEIR__SUBMITTER && partition->blocked == NULL)
        partition->blocked = unit;
}

void weir__partition_return(struct weir__partitions *partitions, struct weir__unit *unit)
{
    weir__line_prepend(&partitions->all[unit->partition].line, unit);
    count_unit(partitions, unit, 1);
}

void weir__partition_leave(struct weir__partitions *partitions, struct weir__unit *unit)
{
    struct weir__partition *partition = &partitions->all[unit->partition];
    if (partition->blocked == unit)
        partition->blocked = next_submitter(unit->next);
    weir__line_remove(&partition->line, unit);
    count_unit(partitions, unit, (uint32_t)-1);
}

void weir__partition_admit(struct weir__partitions *partitions, struct weir__unit *submitter, struct weir__unit *job)
{
    struct weir__partition *partition = &partitions->all[submitter->partition];
    if (partition->blocked == submitter)
        partition->blocked = next_submitter(submitter->next);
    weir__line_replace(&partition->line, submitter, job);
    count_unit(partitions, submitter, (uint32_t)-1);
    count_unit(partitions, job, 1);
}

/* ---- who is next ---- */

static struct weir__unit *head_of(const struct weir__partition *partition, bool held)
{
    struct weir__unit *unit = partition->line.first;
    if (!held)
        return unit;
    if (partition->callers == 0)
        return NULL;
    while (unit->kind != WEIR__CALLER)
        unit = unit->next;
    return unit;
}

/* Whose turn it is first: what is guaranteed comes before what is borrowed, and a share of 0 comes last. A share of
 * less than a permit is never within its guarantee: it takes its turn among those that borrow. So does a weight above
 * the guarantee, which a stream of others' claims could keep out for ever: once they have had all permits twice over
 * while it waited, it counts as a claim. */
enum { CLAIM, BORROW, REST, NOBODY };

static int class_of(const struct weir__partitions *partitions, uint16_t index, uint32_t weight, uint32_t limit)
{
    const struct weir__partition *partition = &partitions->all[index];
    if (partition->share <= 0)
        return REST;
    double guaranteed = partition->share * limit + TOLERANCE;
    bool is_guaranteed = (double)partition->in_use + weight <= guaranteed;
    bool was_passed_over =
        (double)partition->in_use + 1 <= guaranteed && partitions->virtual_now - partition->virtual_time > 2.0 * limit;
    return is_guaranteed || was_passed_over ? CLAIM : BORROW;
}

bool weir__partition_goes_first(const struct weir__partitions *partitions, uint16_t index, uint32_t weight,
                                uint32_t limit, bool held)
{
    if (head_of(&partitions->all[index], held) != NULL)
        return false;
    int its_class = class_of(partitions, index, weight, limit);
    for (uint16_t i = 0; i < partitions->count; i++) {
        const struct weir__unit *unit = head_of(&partitions->all[i], held);
        if (unit != NULL && class_of(partitions, i, unit->weight, limit) <= its_class)
            return false;
    }
    return true;
}

/* note:virtual-time -- partitions take turns by their shares: each grant moves a partition's clock on by weight/share,
 * and the one whose clock is behind is next (stride scheduling, C. Waldspurger and W. Weihl, 1995). One that has had
 * nothing to do joins at the present. What is guaranteed comes before what is borrowed; a share of 0 comes last. */
struct weir__unit *weir__partitions_next(const struct weir__partitions *partitions, uint32_t limit, bool held)
{
    if (partitions->count == 1)
        return head_of(&partitions->all[0], held);
    struct weir__unit *next = NULL;
    int least_class = NOBODY;
    double least_time = INFINITY;
    for (uint16_t i = 0; i < partitions->count; i++) {
        const struct weir__partition *partition = &partitions->all[i];
        struct weir__unit *unit = head_of(partition, held);
        if (unit == NULL)
            continue;
        int its_class = class_of(partitions, i, unit->weight, limit);
        if (its_class < least_class || (its_class == least_class && partition->virtual_time < least_time)) {
            next = unit;
            least_class = its_class;
            least_time = partition->virtual_time;
        }
    }
    return next;
}

/* ---- room in the queue ---- */

uint32_t weir__partition_places(const struct weir__partition *partition, uint32_t depth)
{
    return (uint32_t)floor(partition->share * depth + TOLERANCE);
}

bool weir__partition_has_room(const struct weir__partitions *partitions, uint16_t index, uint32_t depth)
{
    if (partitions->count == 1)
        return partitions->queued < depth;
    uint64_t kept = 0; /* places that others are guaranteed and do not use */
    for (uint16_t i = 0; i < partitions->count; i++) {
        uint32_t places = weir__partition_places(&partitions->all[i], depth);
        uint32_t queued = partitions->all[i].queued;
        if (i == index && queued < places)
            return true;
        if (i != index && queued < places)
            kept += places - queued;
    }
    return (uint64_t)partitions->queued + kept < depth;
}
