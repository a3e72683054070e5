/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The waiting line, the callers in it, and the books of the partitions. */

#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admission.h"
#include "job_support.h"

/* ---- the line ---- */

enum { UNITS = 6 };

/* In both directions the line holds exactly these units, given by their digits. */
static void assert_line(const struct weir__line *line, const struct weir__unit *units, const char *expected)
{
    const struct weir__unit *previous = NULL;
    const struct weir__unit *unit = line->first;
    ck_assert_uint_eq(line->length, strlen(expected));
    for (const char *digit = expected; *digit != '\0'; digit++) {
        ck_assert_ptr_eq(unit, &units[*digit - '0']);
        ck_assert_ptr_eq(unit->previous, previous);
        previous = unit;
        unit = unit->next;
    }
    ck_assert_ptr_null(unit);
    ck_assert_ptr_eq(line->last, previous);
}

/* A line keeps the order of what is appended, prepended, removed from anywhere, and replaced. */
START_TEST(line_keeps_its_order)
{
    struct weir__line line = {0};
    struct weir__unit units[UNITS] = {{0}};
    assert_line(&line, units, "");
    weir__line_append(&line, &units[1]);
    assert_line(&line, units, "1");
    weir__line_append(&line, &units[2]);
    weir__line_prepend(&line, &units[0]);
    weir__line_append(&line, &units[3]);
    assert_line(&line, units, "0123");
    weir__line_replace(&line, &units[2], &units[4]);
    assert_line(&line, units, "0143");
    weir__line_replace(&line, &units[0], &units[2]);
    weir__line_replace(&line, &units[3], &units[0]);
    assert_line(&line, units, "2140");
    weir__line_remove(&line, &units[1]);
    assert_line(&line, units, "240");
    weir__line_remove(&line, &units[2]);
    weir__line_remove(&line, &units[0]);
    assert_line(&line, units, "4");
    weir__line_replace(&line, &units[4], &units[5]);
    assert_line(&line, units, "5");
    weir__line_remove(&line, &units[5]);
    assert_line(&line, units, "");
    weir__line_prepend(&line, &units[3]);
    assert_line(&line, units, "3");
}
END_TEST

/* ---- callers ---- */

/* A caller whose deadline passes is told so, with the lock held and its place in the line as before. */
START_TEST(deadline_ends_the_wait)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct weir__line line = {0};
    struct weir__caller caller;
    weir__caller_init(&caller, WEIR__CALLER, 3, 2);
    ck_assert_uint_eq(caller.unit.weight, 3);
    ck_assert_uint_eq(caller.unit.partition, 2);
    ck_assert_uint_eq(caller.unit.kind, WEIR__CALLER);
    weir__line_append(&line, &caller.unit);
    ck_assert_int_eq(pthread_mutex_lock(&lock), 0);
    ck_assert_int_eq(weir__caller_wait(&caller, &lock, 0), ETIMEDOUT);
    uint64_t deadline = weir_after_ns(2000000);
    ck_assert_int_eq(weir__caller_wait(&caller, &lock, deadline), ETIMEDOUT);
    ck_assert_uint_ge(weir_now_ns(), deadline);
    ck_assert_int_eq(pthread_mutex_trylock(&lock), EBUSY);
    ck_assert_ptr_eq(line.first, &caller.unit);
    ck_assert_int_eq(caller.verdict, WEIR__PENDING);
    ck_assert_int_eq(pthread_mutex_unlock(&lock), 0);
    weir__caller_destroy(&caller);
}
END_TEST

/* Who is decided leaves the line, keeps the verdict and is woken, also if that came before the wait; others are not. */
START_TEST(decided_callers_are_woken)
{
    enum { CALLERS = 5 };
    static const int verdicts[CALLERS] = {0, WEIR__PENDING, ESHUTDOWN, WEIR__PENDING, EAGAIN};
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct weir__line line = {0};
    struct weir__wakes wakes = {0};
    struct weir__caller callers[CALLERS];
    for (int i = 0; i < CALLERS; i++) {
        weir__caller_init(&callers[i], WEIR__CALLER, 1, 0);
        weir__line_append(&line, &callers[i].unit);
    }
    for (int i = 0; i < CALLERS; i += 2)
        weir__line_decide(&line, &callers[i], verdicts[i], &wakes);
    ck_assert_uint_eq(line.length, 2);
    weir__wakes_callers(&wakes);
    ck_assert_ptr_null(wakes.callers);
    ck_assert_int_eq(pthread_mutex_lock(&lock), 0);
    for (int i = 0; i < CALLERS; i++) {
        int expected = verdicts[i] == WEIR__PENDING ? ETIMEDOUT : verdicts[i];
        ck_assert_int_eq(weir__caller_wait(&callers[i], &lock, 0), expected);
    }
    ck_assert_int_eq(pthread_mutex_unlock(&lock), 0);
    for (int i = 0; i < CALLERS; i++)
        weir__caller_destroy(&callers[i]);
}
END_TEST

struct race {
    pthread_mutex_t lock;
    struct weir__line line;       /* guarded by lock */
    struct weir__caller *waiting; /* guarded by lock: in the line, not decided */
    bool over;                    /* guarded by lock */
    unsigned decided;             /* guarded by lock */
};

static void *decide_all(void *arg)
{
    struct race *race = arg;
    for (;;) {
        struct weir__wakes wakes = {0};
        (void)pthread_mutex_lock(&race->lock);
        bool over = race->over;
        if (race->waiting != NULL) {
            weir__line_decide(&race->line, race->waiting, 0, &wakes);
            race->waiting = NULL;
            race->decided++;
        }
        (void)pthread_mutex_unlock(&race->lock);
        weir__wakes_callers(&wakes);
        if (over)
            return NULL;
    }
}

/* When a deadline and a decision come at once one of them holds: a caller that was decided never reads that its time is
 * up, one that left is not decided any more, and its frame is not touched after the wait. */
START_TEST(timeout_races_with_decision)
{
    struct race race = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    unsigned granted = 0;
    unsigned timed_out = 0;
    uint64_t random = weir_test_seed();
    ck_assert_int_eq(pthread_create(&thread, NULL, decide_all, &race), 0);
    for (unsigned i = 0; i < weir_test_scaled(50000); i++) {
        struct weir__caller *caller = malloc(sizeof *caller); /* so that a late access shows */
        ck_assert_ptr_nonnull(caller);
        weir__caller_init(caller, WEIR__CALLER, 1, 0);
        (void)pthread_mutex_lock(&race.lock);
        weir__line_append(&race.line, &caller->unit);
        race.waiting = caller;
        int verdict = weir__caller_wait(caller, &race.lock, weir_after_ns(weir_test_random(&random) % 4000));
        if (verdict == ETIMEDOUT) {
            timed_out++;
            if (race.waiting != caller)
                ck_abort_msg("decided, and out of time");
            weir__line_remove(&race.line, &caller->unit);
            race.waiting = NULL;
        } else {
            granted++;
        }
        bool consistent = race.line.length == 0 && race.decided == granted;
        (void)pthread_mutex_unlock(&race.lock);
        weir__caller_destroy(caller);
        free(caller);
        if (!consistent)
            ck_abort_msg("%u decided, %u read it", race.decided, granted);
    }
    (void)pthread_mutex_lock(&race.lock);
    race.over = true;
    (void)pthread_mutex_unlock(&race.lock);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_gt(granted + timed_out, 0);
}
END_TEST

/* ---- partitions: creation ---- */

static void assert_share(const struct weir__partitions *partitions, const char *name, double share)
{
    int index = weir__partition_find(partitions, name);
    ck_assert_int_ge(index, 0);
    ck_assert_int_lt(index, partitions->count);
    ck_assert_double_eq_tol(partitions->all[index].share, share, 1e-12);
}

/* The text names partitions and their shares; the first, for what names none, has the rest. */
START_TEST(partitions_from_text)
{
    struct weir__partitions partitions = {0};
    ck_assert_int_eq(weir__partitions_init(&partitions, "live=0.6,batch=0.25"), 0);
    ck_assert_uint_eq(partitions.count, 3);
    assert_share(&partitions, "live", 0.6);
    assert_share(&partitions, "batch", 0.25);
    assert_share(&partitions, NULL, 0.15);
    ck_assert_int_eq(weir__partition_find(&partitions, NULL), 0);
    ck_assert_int_eq(weir__partition_find(&partitions, "liv"), -1);
    ck_assert_int_eq(weir__partition_find(&partitions, "live="), -1);
    ck_assert_int_eq(weir__partition_find(&partitions, ""), -1);
    weir__partitions_free(&partitions);
}
END_TEST

/* Without a text there is one partition with everything. */
START_TEST(no_partitions)
{
    static const char *const texts[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        struct weir__partitions partitions = {0};
        ck_assert_int_eq(weir__partitions_init(&partitions, texts[i]), 0);
        ck_assert_uint_eq(partitions.count, 1);
        assert_share(&partitions, NULL, 1.0);
        ck_assert_int_eq(weir__partition_find(&partitions, "any"), -1);
        weir__partitions_free(&partitions);
    }
}
END_TEST

/* Decimals that add up to 1 leave nothing, although their binary values do not add up to 1; and a share's whole number
 * of places is not cut by that either. */
START_TEST(decimals_add_up)
{
    static const char *const texts[] = {"a=0.1,b=0.2,c=0.7", "a=0.7,b=0.1,c=0.2", "a=0.3,b=0.3,c=0.4", "a=0.9,b=0.1",
                                        "a=0.33,b=0.33,c=0.34"};
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct weir__partitions partitions = {0};
        ck_assert_int_eq(weir__partitions_init(&partitions, texts[i]), 0);
        ck_assert_double_le(partitions.all[0].share, 0.0);
        weir__partitions_free(&partitions);
    }
    struct weir__partitions partitions = {0};
    ck_assert_int_eq(weir__partitions_init(&partitions, "a=0.29,b=0.71"), 0); /* 0.29 * 100 is 28.999999999999996 */
    struct weir__unit jobs[30] = {{0}};
    unsigned a = (unsigned)weir__partition_find(&partitions, "a");
    for (unsigned i = 0; i < 29; i++) {
        ck_assert(weir__partition_has_room(&partitions, (uint16_t)a, 100));
        jobs[i] = (struct weir__unit){.weight = 1, .partition = (uint16_t)a, .kind = WEIR__JOB};
        weir__partition_join(&partitions, &jobs[i]);
    }
    ck_assert(!weir__partition_has_room(&partitions, (uint16_t)a, 100));
    weir__partitions_free(&partitions);
}
END_TEST

/* As many partitions as there may be, and not one more. */
START_TEST(most_partitions)
{
    char text[WEIR__PARTITIONS_MOST * 16] = "";
    size_t used = 0;
    struct weir__partitions partitions = {0};
    for (int i = 1; i < WEIR__PARTITIONS_MOST; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%sp%d=0.01", i > 1 ? "," : "", i);
    ck_assert_int_eq(weir__partitions_init(&partitions, text), 0);
    ck_assert_uint_eq(partitions.count, WEIR__PARTITIONS_MOST);
    assert_share(&partitions, "p62", 0.01);
    assert_share(&partitions, NULL, 0.38);
    weir__partitions_free(&partitions);
    (void)snprintf(text + used, sizeof text - used, ",more=0.01");
    struct weir__partitions too_many = {0};
    ck_assert_int_eq(weir__partitions_init(&too_many, text), EINVAL);
    weir__partitions_free(&too_many);
}
END_TEST

/* ---- partitions: the books, against a naive model ---- */

enum { MODEL_UNITS = 40, MODEL_PARTITIONS = 4 };

struct books {
    struct weir__partitions partitions;
    struct weir__unit units[MODEL_UNITS];
    bool waits[MODEL_UNITS];
    unsigned order[MODEL_PARTITIONS][MODEL_UNITS]; /* indices of units, first come first */
    unsigned length[MODEL_PARTITIONS];
};

static unsigned place_of(const struct books *books, unsigned unit)
{
    const unsigned *order = books->order[books->units[unit].partition];
    unsigned place = 0;
    while (order[place] != unit)
        place++;
    return place;
}

static void model_insert(struct books *books, unsigned unit, unsigned place)
{
    unsigned partition = books->units[unit].partition;
    unsigned *order = books->order[partition];
    memmove(order + place + 1, order + place, (books->length[partition]++ - place) * sizeof *order);
    order[place] = unit;
    books->waits[unit] = true;
}

static void model_remove(struct books *books, unsigned unit)
{
    unsigned partition = books->units[unit].partition;
    unsigned *order = books->order[partition];
    unsigned place = place_of(books, unit);
    memmove(order + place, order + place + 1, (--books->length[partition] - place) * sizeof *order);
    books->waits[unit] = false;
}

static bool partition_agrees(const struct books *books, unsigned index, unsigned sums[3])
{
    const struct weir__partition *partition = &books->partitions.all[index];
    const struct weir__unit *unit = partition->line.first;
    const struct weir__unit *blocked = NULL;
    unsigned counts[3] = {0};
    for (unsigned i = 0; i < books->length[index]; i++, unit = unit->next) {
        if (unit != &books->units[books->order[index][i]])
            return false;
        counts[unit->kind]++;
        if (unit->kind == WEIR__SUBMITTER && blocked == NULL)
            blocked = unit;
    }
    for (int kind = 0; kind < 3; kind++)
        sums[kind] += counts[kind];
    return unit == NULL && partition->line.length == books->length[index] && partition->blocked == blocked &&
           partition->callers == counts[WEIR__CALLER] && partition->submitters == counts[WEIR__SUBMITTER] &&
           partition->queued == counts[WEIR__JOB];
}

static bool books_agree(const struct books *books)
{
    unsigned sums[3] = {0};
    for (unsigned i = 0; i < MODEL_PARTITIONS; i++) {
        if (!partition_agrees(books, i, sums))
            return false;
    }
    return books->partitions.callers == sums[WEIR__CALLER] && books->partitions.submitters == sums[WEIR__SUBMITTER] &&
           books->partitions.queued == sums[WEIR__JOB];
}

/* One random step: somebody joins, leaves, is admitted, or goes back to the head. */
static void step_books(struct books *books, uint64_t *random)
{
    unsigned index = (unsigned)(weir_test_random(random) % MODEL_UNITS);
    struct weir__unit *unit = &books->units[index];
    uint64_t choice = weir_test_random(random);
    if (books->waits[index] && unit->kind == WEIR__SUBMITTER && choice % 2 == 0) {
        unsigned job = 0;
        while (job < MODEL_UNITS && books->waits[job])
            job++;
        if (job == MODEL_UNITS)
            return;
        books->units[job] =
            (struct weir__unit){.weight = unit->weight, .partition = unit->partition, .kind = WEIR__JOB};
        unsigned place = place_of(books, index);
        weir__partition_admit(&books->partitions, unit, &books->units[job]);
        model_remove(books, index);
        model_insert(books, job, place);
    } else if (books->waits[index]) {
        weir__partition_leave(&books->partitions, unit);
        model_remove(books, index);
    } else {
        unsigned partition = (unsigned)(choice / 16 % MODEL_PARTITIONS);
        *unit = (struct weir__unit){.weight = 1 + (uint32_t)(choice / 256 % 4),
                                    .partition = (uint16_t)partition,
                                    .kind = (uint8_t)(choice / 64 % 3)};
        bool back = unit->kind == WEIR__JOB && choice % 4 == 0;
        if (back)
            weir__partition_return(&books->partitions, unit);
        else
            weir__partition_join(&books->partitions, unit);
        model_insert(books, index, back ? 0 : books->length[partition]);
    }
}

/* Whatever comes and goes, the lines hold who waits in their order, the counts agree with them, and the first blocked
 * submitter of each is known. */
START_TEST(books_agree_with_a_model)
{
    static struct books books;
    uint64_t random = weir_test_seed();
    ck_assert_int_eq(weir__partitions_init(&books.partitions, "a=0.5,b=0.2,c=0"), 0);
    for (unsigned i = 0; i < weir_test_scaled(300000); i++) {
        step_books(&books, &random);
        if (!books_agree(&books))
            ck_abort_msg("the books are wrong after step %u", i);
    }
    weir__partitions_free(&books.partitions);
}
END_TEST

/* ---- who is next ---- */

static struct weir__unit unit_of(const struct weir__partitions *partitions, const char *name, uint32_t weight,
                                 unsigned kind)
{
    return (struct weir__unit){
        .weight = weight, .partition = (uint16_t)weir__partition_find(partitions, name), .kind = (uint8_t)kind};
}

static void use(struct weir__partitions *partitions, const char *name, uint32_t permits)
{
    partitions->all[weir__partition_find(partitions, name)].in_use = permits;
}

/* A partition within its share comes before one that would borrow; of two within it, the one that has less of it. */
START_TEST(shares_decide_who_is_next)
{
    struct weir__partitions partitions = {0};
    ck_assert_int_eq(weir__partitions_init(&partitions, "live=0.8,batch=0.2"), 0);
    ck_assert_ptr_null(weir__partitions_next(&partitions, 10, false));
    struct weir__unit live = unit_of(&partitions, "live", 1, WEIR__JOB);
    struct weir__unit batch = unit_of(&partitions, "batch", 1, WEIR__JOB);
    weir__partition_join(&partitions, &batch);
    use(&partitions, "batch", 9);
    ck_assert_ptr_eq(weir__partitions_next(&partitions, 10, false), &batch); /* nobody else wants it */
    weir__partition_join(&partitions, &live);
    ck_assert_ptr_eq(weir__partitions_next(&partitions, 10, false), &live);
    use(&partitions, "live", 7);
    use(&partitions, "batch", 2);
    ck_assert_ptr_eq(weir__partitions_next(&partitions, 10, false), &live); /* the eighth is still its own */
    use(&partitions, "live", 8);
    use(&partitions, "batch", 1);
    ck_assert_ptr_eq(weir__partitions_next(&partitions, 10, false), &batch);
    weir__partitions_free(&partitions);
}
END_TEST

/* What has a share of 0 comes after everybody, and gets what is idle. */
START_TEST(zero_is_last)
{
    struct weir__partitions partitions = {0};
    ck_assert_int_eq(weir__partitions_init(&partitions, "spare=0,live=1"), 0);
    struct weir__unit spare = unit_of(&partitions, "spare", 1, WEIR__CALLER);
    struct weir__unit live = unit_of(&partitions, "live", 1, WEIR__CALLER);
    weir__partition_join(&partitions, &spare);
    weir__partition_join(&partitions, &live);
    use(&partitions, "live", 3);
    ck_assert_ptr_eq(weir__partitions_next(&partitions, 4, false), &live);
    weir__partition_leave(&partitions, &live);
    ck_assert_ptr_eq(weir__partitions_next(&partitions, 4, false), &spare);
    weir__partitions_free(&partitions);
}
END_TEST

/* While jobs are held the first direct caller is next, however many jobs and submitters stand before it. */
START_TEST(held_jobs_are_passed_over)
{
    static const char *const texts[] = {NULL, "a=0.5"};
    for (int i = 0; i < 2; i++) {
        struct weir__partitions partitions = {0};
        ck_assert_int_eq(weir__partitions_init(&partitions, texts[i]), 0);
        struct weir__unit job = unit_of(&partitions, NULL, 1, WEIR__JOB);
        struct weir__unit submitter = unit_of(&partitions, NULL, 1, WEIR__SUBMITTER);
        struct weir__unit caller = unit_of(&partitions, NULL, 1, WEIR__CALLER);
        weir__partition_join(&partitions, &job);
        weir__partition_join(&partitions, &submitter);
        ck_assert_ptr_null(weir__partitions_next(&partitions, 4, true));
        weir__partition_join(&partitions, &caller);
        ck_assert_ptr_eq(weir__partitions_next(&partitions, 4, true), &caller);
        ck_assert_ptr_eq(weir__partitions_next(&partitions, 4, false), &job);
        weir__partitions_free(&partitions);
    }
}
END_TEST

/* ---- room in the queue ---- */

/* Places by a naive reading: a partition's own, and what is left when the others' unused own places are set aside. */
static bool naive_room(const uint32_t *queued, const double *shares, unsigned index, uint32_t depth)
{
    double free_places = depth;
    for (unsigned i = 0; i < MODEL_PARTITIONS; i++) {
        double own = floor(shares[i] * depth + 1e-9);
        if (i == index && queued[i] < own)
            return true;
        free_places -= i != index && queued[i] < own ? own : queued[i];
    }
    return free_places >= 1;
}

/* Jobs come where there is room and go at random: there is room for a partition within its guaranteed places whatever
 * the others did, and the sum never exceeds the depth. */
START_TEST(places_of_a_share_are_kept)
{
    static const double shares[MODEL_PARTITIONS] = {0.15, 0.5, 0.35, 0.0};
    enum { DEPTH = 23 };
    uint64_t random = weir_test_seed();
    struct weir__partitions partitions = {0};
    uint32_t *queued[MODEL_PARTITIONS];
    ck_assert_int_eq(weir__partitions_init(&partitions, "a=0.5,b=0.35,c=0"), 0);
    for (unsigned i = 0; i < MODEL_PARTITIONS; i++)
        queued[i] = &partitions.all[i].queued;
    for (unsigned i = 0; i < weir_test_scaled(200000); i++) {
        unsigned index = (unsigned)(weir_test_random(&random) % MODEL_PARTITIONS);
        uint32_t counts[MODEL_PARTITIONS];
        for (unsigned j = 0; j < MODEL_PARTITIONS; j++)
            counts[j] = *queued[j];
        bool room = weir__partition_has_room(&partitions, (uint16_t)index, DEPTH);
        if (room != naive_room(counts, shares, index, DEPTH))
            ck_abort_msg("step %u: room for %u with %u %u %u %u", i, index, counts[0], counts[1], counts[2], counts[3]);
        if (room && weir_test_random(&random) % 3 != 0) {
            (*queued[index])++;
            partitions.queued++;
        } else if (!room && *queued[index] > 0 && weir_test_random(&random) % 2 == 0) {
            (*queued[index])--;
            partitions.queued--;
        }
        if (partitions.queued > DEPTH)
            ck_abort_msg("step %u: %u queued", i, partitions.queued);
    }
    weir__partitions_free(&partitions);
}
END_TEST

/* Without partitions there is room up to the depth. */
START_TEST(room_up_to_the_depth)
{
    struct weir__partitions partitions = {0};
    ck_assert_int_eq(weir__partitions_init(&partitions, NULL), 0);
    ck_assert(!weir__partition_has_room(&partitions, 0, 0));
    partitions.queued = 4;
    ck_assert(weir__partition_has_room(&partitions, 0, 5));
    partitions.queued = 5;
    ck_assert(!weir__partition_has_room(&partitions, 0, 5));
    ck_assert(!weir__partition_has_room(&partitions, 0, 3)); /* it has just fallen */
    weir__partitions_free(&partitions);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission");
    const TTest *const line[] = {line_keeps_its_order, NULL};
    const TTest *const callers[] = {deadline_ends_the_wait, decided_callers_are_woken, timeout_races_with_decision,
                                    NULL};
    const TTest *const creation[] = {partitions_from_text, no_partitions, decimals_add_up, most_partitions, NULL};
    const TTest *const books[] = {books_agree_with_a_model, NULL};
    const TTest *const next[] = {shares_decide_who_is_next, zero_is_last, held_jobs_are_passed_over, NULL};
    const TTest *const room[] = {places_of_a_share_are_kept, room_up_to_the_depth, NULL};
    weir_test_add_group(suite, "line", line);
    weir_test_add_group(suite, "callers", callers);
    weir_test_add_group(suite, "creation", creation);
    weir_test_add_group(suite, "books", books);
    weir_test_add_group(suite, "next", next);
    weir_test_add_group(suite, "room", room);
    return weir_test_main(suite);
}
