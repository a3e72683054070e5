/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* The window between raw samples and an algorithm that wants to see them summed up: mean or percentile of the RTT, the
 * greatest number in flight, and whether anything was dropped. */

#include "estimator/estimator.h"

#include <math.h>

/* Samples come in the order of their ends, give or take the RTTs of a recording that is sorted by start. A sample that
 * ends this long before the current window began says that an earlier end was no time at all. */
#define STEP_BACK_NS 60000000000u

static void clear(struct weir__window *window)
{
    window->count = 0;
    window->in_flight = 0;
    window->dropped = false;
    window->min_rtt_ns = UINT64_MAX;
    window->sum_low = 0;
    window->sum_high = 0;
}

static uint64_t length_after(const struct weir__window *window, uint64_t min_rtt_ns)
{
    const struct weir__window_parameters *p = &window->parameters;
    uint64_t length = weir__add_u64(min_rtt_ns, min_rtt_ns);
    length = length < p->min_ns ? p->min_ns : length;
    return length > p->max_ns ? p->max_ns : length;
}

void weir__window_init(struct weir__window *window, const struct weir__window_parameters *parameters)
{
    *window = (struct weir__window){.parameters = *parameters};
    window->length_ns = length_after(window, 0);
    clear(window);
}

void weir__window_retune(struct weir__window *window, const struct weir__window_parameters *parameters)
{
    uint64_t old_ns = window->length_ns;
    uint64_t *rtts = window->parameters.rtts;
    uint32_t capacity = window->parameters.capacity;
    window->parameters = *parameters;
    window->parameters.rtts = rtts;
    window->parameters.capacity = capacity;
    window->length_ns = old_ns < parameters->min_ns   ? parameters->min_ns
                        : old_ns > parameters->max_ns ? parameters->max_ns
                                                      : old_ns;
    if (window->close_ns > old_ns) /* one has begun */
        window->close_ns = weir__add_u64(window->close_ns - old_ns, window->length_ns);
}

/* A percentile window that is full takes no notice of further samples, their drops and in-flight counts included, and
 * samples under the RTT threshold lose theirs as well: the recorded runs of the reference want both. */
static void count_sample(struct weir__window *window, const weir_sample *sample, uint64_t rtt)
{
    const struct weir__window_parameters *p = &window->parameters;
    if (p->percentile > 0) {
        if (window->count >= p->capacity)
            return;
        p->rtts[window->count] = rtt;
    }
    if (window->count == UINT32_MAX)
        return;
    window->count++;
    window->sum_low += rtt;
    window->sum_high += window->sum_low < rtt;
    if (rtt < window->min_rtt_ns)
        window->min_rtt_ns = rtt;
    if (sample->in_flight > window->in_flight)
        window->in_flight = sample->in_flight;
    window->dropped = window->dropped || sample->outcome == WEIR_DROPPED;
}

/* The 128-bit sum divided by the count, 32 bits of quotient at a time; the mean itself fits in 64. */
static uint64_t mean(const struct weir__window *window)
{
    uint64_t divisor = window->count;
    uint64_t rest = window->sum_high % divisor;
    rest = rest << 32 | window->sum_low >> 32;
    uint64_t upper = rest / divisor;
    rest = (rest % divisor) << 32 | (window->sum_low & UINT32_MAX);
    return upper << 32 | rest / divisor;
}

static void sift_down(uint64_t *heap, size_t root, size_t size)
{
    uint64_t value = heap[root];
    for (size_t child; (child = 2 * root + 1) < size; root = child) {
        if (child + 1 < size && heap[child + 1] > heap[child])
            child++;
        if (heap[child] <= value)
            break;
        heap[root] = heap[child];
    }
    heap[root] = value;
}

/* Heapsort, for qsort may allocate. */
static void sort(uint64_t *values, size_t size)
{
    for (size_t root = size / 2; root-- > 0;)
        sift_down(values, root, size);
    for (size_t end = size; end-- > 1;) {
        uint64_t greatest = values[0];
        values[0] = values[end];
        values[end] = greatest;
        sift_down(values, 0, end);
    }
}

/* Rank round(count * percentile), halves up; a rank of 0 means the least RTT. */
static uint64_t percentile(struct weir__window *window)
{
    double exact = window->count * window->parameters.percentile;
    double rank = floor(exact);
    if (exact - rank >= 0.5)
        rank += 1;
    sort(window->parameters.rtts, window->count);
    if (rank < 1)
        rank = 1;
    if (rank > window->count)
        rank = window->count;
    return window->parameters.rtts[(size_t)rank - 1];
}

static void close_window(struct weir__window *window, uint64_t end_ns)
{
    window->closed++;
    window->length_ns = length_after(window, window->min_rtt_ns);
    window->close_ns = weir__add_u64(end_ns, window->length_ns);
    clear(window);
}

void weir__window_restart(struct weir__window *window, uint64_t now_ns)
{
    window->close_ns = weir__add_u64(now_ns, window->length_ns);
    clear(window);
}

bool weir__window_add(struct weir__window *window, const weir_sample *sample, weir_sample *summary)
{
    const struct weir__window_parameters *p = &window->parameters;
    uint64_t rtt = sample->rtt_ns == 0 ? 1 : sample->rtt_ns;
    uint64_t end_ns = weir__add_u64(sample->start_ns, rtt);
    if (rtt < p->min_rtt_ns)
        return false;
    count_sample(window, sample, rtt);
    if (end_ns <= window->close_ns) {
        if (window->close_ns - end_ns > weir__add_u64(window->length_ns, STEP_BACK_NS))
            window->close_ns = end_ns + window->length_ns;
        return false;
    }

    bool enough = window->count >= p->samples;
    if (enough)
        *summary = (weir_sample){
            .start_ns = sample->start_ns,
            .rtt_ns = p->percentile > 0 ? percentile(window) : mean(window),
            .in_flight = window->in_flight,
            .outcome = window->dropped ? WEIR_DROPPED : WEIR_SUCCESS,
        };
    close_window(window, end_ns);
    return enough;
}
