/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>

#include "base/base.h"
#include "weirstat.h"

/* The rules of weirstat --explain. weirstat(1) has them with their sources: keep them together. A rule looks at what
 * happened between the first look and the last, and at the gauges of all. */

struct explanation {
    FILE *out;
    unsigned said;
    const struct observation *seen;
    const struct weir__record *first;
    const struct weir__record *last;
};

static void say(struct explanation *explanation, const char *rule, const char *format, ...) WEIR__PRINTF(3, 4);

static void say(struct explanation *explanation, const char *rule, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fprintf(explanation->out, "  [%s] ", rule);
    (void)vfprintf(explanation->out, format, arguments);
    (void)fprintf(explanation->out, "\n");
    va_end(arguments);
    explanation->said++;
}

static uint64_t now(const struct explanation *explanation, enum weir__figure figure)
{
    return explanation->last->figures[figure];
}

static uint64_t change(const struct explanation *explanation, enum weir__figure figure)
{
    uint64_t before = explanation->first->figures[figure];
    return now(explanation, figure) > before ? now(explanation, figure) - before : 0;
}

static double mean(const struct explanation *explanation, enum weir__figure figure)
{
    double sum = 0;
    for (size_t i = 0; i < explanation->seen->count; i++)
        sum += (double)explanation->seen->looks[i].figures[figure];
    return sum / (double)explanation->seen->count;
}

static uint64_t ended_meanwhile(const struct explanation *explanation)
{
    return ended(explanation->last) - ended(explanation->first);
}

/* ---- is there work, and who holds it back ---- */

static bool is_idle(const struct explanation *explanation)
{
    return ended_meanwhile(explanation) == 0 && now(explanation, WEIR__FIGURE_IN_FLIGHT) == 0 &&
           now(explanation, WEIR__FIGURE_QUEUED) == 0 && now(explanation, WEIR__FIGURE_WAITING) == 0;
}

static bool has_demand(const struct explanation *explanation)
{
    return now(explanation, WEIR__FIGURE_QUEUED) != 0 || now(explanation, WEIR__FIGURE_WAITING) != 0 ||
           change(explanation, WEIR__FIGURE_SHED) != 0;
}

static void constraint(struct explanation *explanation)
{
    double in_flight = mean(explanation, WEIR__FIGURE_IN_FLIGHT);
    double limit = mean(explanation, WEIR__FIGURE_LIMIT);
    if (!has_demand(explanation) && in_flight < 0.8 * limit)
        say(explanation, "program",
            "the program is the constraint: it has %.1f in flight, of %.1f that it might, and nothing waits", in_flight,
            limit);
    else if (has_demand(explanation))
        say(explanation, "saturated",
            "the limit is the constraint: %.1f of %.1f permits are out, and more is asked for", in_flight, limit);
}

static void bounds(struct explanation *explanation)
{
    char age[NUMBER_SIZE];
    if (now(explanation, WEIR__FIGURE_PINNED_CEILING) != 0 && has_demand(explanation))
        say(explanation, "ceiling",
            "MAX_LIMIT=%.0f holds the program back, for %s now: the algorithm would try more permits, or larger steps",
            (double)now(explanation, WEIR__FIGURE_MAX_LIMIT),
            format_ns(now(explanation, WEIR__FIGURE_PINNED_CEILING), age));
    if (now(explanation, WEIR__FIGURE_PINNED_FLOOR) != 0 && has_demand(explanation))
        say(explanation, "floor",
            "the limit is at MIN_LIMIT=%.0f, for %s now: even that much seems to be too much for the downstream",
            (double)now(explanation, WEIR__FIGURE_MIN_LIMIT),
            format_ns(now(explanation, WEIR__FIGURE_PINNED_FLOOR), age));
}

/* ---- the downstream ---- */

static void latency(struct explanation *explanation)
{
    const struct weir__record_histogram *whole = &explanation->last->histograms[WEIR_HISTOGRAM_RTT];
    const struct weir__record_histogram *then = &explanation->first->histograms[WEIR_HISTOGRAM_RTT];
    uint64_t rtt_ns = now(explanation, WEIR__FIGURE_RTT);
    uint64_t noload_ns = now(explanation, WEIR__FIGURE_RTT_NOLOAD);
    char text[2][NUMBER_SIZE];
    if (noload_ns != 0 && rtt_ns >= 2 * noload_ns)
        say(explanation, "congested",
            "the downstream is congested: a call takes %s, %.1f times the %s of an idle downstream",
            format_ns(rtt_ns, text[0]), (double)rtt_ns / (double)noload_ns, format_ns(noload_ns, text[1]));
    if (whole->count <= then->count)
        return;
    double recent_ns = (double)(whole->sum_ns - then->sum_ns) / (double)(whole->count - then->count);
    double usual_ns = (double)whole->quantile_ns[0];
    if (usual_ns > 0 && recent_ns >= 1.5 * usual_ns)
        say(explanation, "degraded",
            "the downstream has degraded: calls now take %s, %.1f times the %s that is the median since the start",
            format_ns(whole_ns(recent_ns), text[0]), recent_ns / usual_ns, format_ns(whole_ns(usual_ns), text[1]));
}

/* Completions per second and the limit, over a third of the looks. */
struct part {
    double rate;
    double limit;
};

static struct part part_of(const struct observation *seen, size_t begin, size_t length)
{
    const struct weir__record *looks = seen->looks + begin;
    struct part part = {.rate = completions_per_s(&looks[length - 1], &looks[0])};
    for (size_t i = 0; i < length; i++)
        part.limit += (double)looks[i].figures[WEIR__FIGURE_LIMIT] / (double)length;
    return part;
}

/* Fewer calls at a time, each of which would take as long as before if it were alone. */
static void capacity(struct explanation *explanation)
{
    const struct observation *seen = explanation->seen;
    size_t third = seen->count / 3;
    if (third < 2 || !has_demand(explanation))
        return;
    struct part before = part_of(seen, 0, third), after = part_of(seen, seen->count - third, third);
    double noload = (double)explanation->first->figures[WEIR__FIGURE_RTT_NOLOAD];
    bool as_fast = (double)now(explanation, WEIR__FIGURE_RTT_NOLOAD) < 1.3 * noload;
    if (as_fast && after.limit <= 0.7 * before.limit && after.rate <= 0.75 * before.rate)
        say(explanation, "capacity",
            "the downstream has lost capacity: it completes %.0f calls a second, not %.0f, and the limit has followed "
            "from %.0f to %.0f",
            after.rate, before.rate, before.limit, after.limit);
}

static void failures(struct explanation *explanation)
{
    uint64_t dropped = change(explanation, WEIR__FIGURE_DROPPED);
    uint64_t all = ended_meanwhile(explanation);
    if (all != 0 && dropped * 100 >= all)
        say(explanation, "failing",
            "the downstream fails: %.1f %% of the calls ended as dropped (refused, timed out, 503)",
            100.0 * (double)dropped / (double)all);
}

static void hanging(struct explanation *explanation)
{
    uint64_t longest_ns = now(explanation, WEIR__FIGURE_LONGEST_RUN);
    uint64_t usual_ns = explanation->last->histograms[WEIR_HISTOGRAM_RTT].quantile_ns[2];
    char text[2][NUMBER_SIZE];
    if (longest_ns >= UINT64_C(1000000000) && longest_ns >= 10 * usual_ns)
        say(explanation, "hanging", "a job has run for %s, where 99 %% take %s or less: a call without a timeout?",
            format_ns(longest_ns, text[0]), usual_ns != 0 ? format_ns(usual_ns, text[1]) : "no time yet");
}

/* ---- the queue and the callers ---- */

/* At how many looks a tenth of the queue's places or less was free. */
static size_t full_looks(const struct observation *seen)
{
    size_t count = 0;
    for (size_t i = 0; i < seen->count; i++) {
        const uint64_t *figures = seen->looks[i].figures;
        count += figures[WEIR__FIGURE_QUEUED] * 10 >= figures[WEIR__FIGURE_QUEUE_DEPTH] * 9;
    }
    return count;
}

static void queue(struct explanation *explanation)
{
    uint64_t shed = change(explanation, WEIR__FIGURE_SHED);
    double queued = mean(explanation, WEIR__FIGURE_QUEUED);
    double depth = mean(explanation, WEIR__FIGURE_QUEUE_DEPTH);
    char text[NUMBER_SIZE];
    if (explanation->last->kind == WEIR__RECORD_POOL && shed != 0 &&
        full_looks(explanation->seen) * 20 <= explanation->seen->count)
        say(explanation, "short queue",
            "the queue is too short for the bursts: %.0f jobs were shed, though only %.1f of %.1f places are taken on "
            "average",
            (double)shed, queued, depth);
    else if (shed != 0)
        say(explanation, "overload", "more is asked for than the downstream completes: %.0f calls or jobs were shed",
            (double)shed);
    if (now(explanation, WEIR__FIGURE_WAITING) != 0)
        say(explanation, "blocked", "%.0f callers are blocked; the longest wait so far is %s",
            (double)now(explanation, WEIR__FIGURE_WAITING),
            format_ns(now(explanation, WEIR__FIGURE_OLDEST_WAIT), text));
    uint64_t late = change(explanation, WEIR__FIGURE_EXPIRED) + change(explanation, WEIR__FIGURE_TIMED_OUT);
    if (late != 0)
        say(explanation, "late", "%.0f jobs or callers gave up, for their deadline came before their turn",
            (double)late);
}

/* ---- the limit itself ---- */

/* How often it turned round by more than a quarter. */
static unsigned turns(const struct observation *seen)
{
    unsigned count = 0;
    int direction = 0;
    double turned_at = (double)seen->looks[0].figures[WEIR__FIGURE_LIMIT];
    for (size_t i = 1; i < seen->count; i++) {
        double limit = (double)seen->looks[i].figures[WEIR__FIGURE_LIMIT];
        int goes = limit > turned_at * 1.25 ? 1 : limit < turned_at * 0.75 ? -1 : 0;
        if (goes == 0)
            continue;
        count += direction != 0 && goes != direction;
        direction = goes;
        turned_at = limit;
    }
    return count;
}

static void limit(struct explanation *explanation)
{
    unsigned count = turns(explanation->seen);
    char reason[sizeof explanation->last->reason];
    if (count >= 4)
        say(explanation, "oscillates",
            "the limit oscillates: it turned round %u times, by more than a quarter (last reason: %s)", count,
            format_name(explanation->last->reason, sizeof reason - 1, reason));
    if (now(explanation, WEIR__FIGURE_FROZEN) != 0)
        say(explanation, "frozen", "the limit is frozen: the program has not thawed it yet");
    if (explanation->last->mode[0] == 'm')
        say(explanation, "monitor", "monitor mode: the estimate is %.0f, and not enforced",
            (double)now(explanation, WEIR__FIGURE_ESTIMATE));
    if (change(explanation, WEIR__FIGURE_START_FAILURES) != 0)
        say(explanation, "threads", "the system refuses threads: fewer jobs run than the limit allows");
}

unsigned explain(FILE *out, const struct observation *observation)
{
    struct explanation explanation = {.out = out,
                                      .seen = observation,
                                      .first = &observation->looks[0],
                                      .last = &observation->looks[observation->count - 1]};
    if (is_idle(&explanation)) {
        say(&explanation, "idle", "nothing runs, and nothing waits");
    } else {
        constraint(&explanation);
        bounds(&explanation);
        latency(&explanation);
        capacity(&explanation);
        failures(&explanation);
        hanging(&explanation);
        queue(&explanation);
    }
    limit(&explanation);
    if (explanation.said == 0)
        say(&explanation, "healthy", "the permits are in use, nothing waits, and the downstream is as fast as ever");
    return explanation.said;
}
