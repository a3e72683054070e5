/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <math.h>

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t next(struct sim_random *random)
{
    uint64_t z = (random->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double sim_uniform(struct sim_random *random)
{
    return ((double)(next(random) >> 12) + 0.5) * 0x1p-52;
}

/* The polar method of Marsaglia. */
double sim_normal(struct sim_random *random)
{
    if (random->has_spare) {
        random->has_spare = false;
        return random->spare;
    }
    double u, v, s;
    do {
        u = 2 * sim_uniform(random) - 1;
        v = 2 * sim_uniform(random) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s <= 0);
    double scale = sqrt(-2 * log(s) / s);
    random->spare = v * scale;
    random->has_spare = true;
    return u * scale;
}

double sim_exponential(struct sim_random *random)
{
    return -log(sim_uniform(random));
}
