/* SPDX-FileCopyrightText: 2026 The weir authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <string.h>

/* The mutants are what a suite must not let pass. */
const struct sim_controller sim_controllers[] = {
    {.name = "oracle", .title = "knows the capacity"},
    {.name = "vegas2", .title = "vegas2", .algorithm = WEIR_VEGAS2},
    {.name = "gradient2", .title = "gradient2", .algorithm = WEIR_GRADIENT2},
    {.name = "vegas", .title = "vegas", .algorithm = WEIR_VEGAS},
    {.name = "aimd", .title = "AIMD on errors", .algorithm = WEIR_AIMD},
    {.name = "static-low", .title = "static, 16", .algorithm = WEIR_FIXED, .fixed = 16},
    {.name = "static-high", .title = "static, 1000", .algorithm = WEIR_FIXED, .fixed = 1000},
    {.name = "frozen-start", .title = "frozen at the start", .algorithm = WEIR_FIXED, .fixed = 4, .mutant = true},
    {.name = "frozen-floor", .title = "frozen at the floor", .algorithm = WEIR_FIXED, .fixed = 1, .mutant = true},
    {.name = "frozen-cap", .title = "frozen at the cap", .algorithm = WEIR_FIXED, .fixed = 1000, .mutant = true},
    {.name = "flipped", .title = "sign flipped", .algorithm = WEIR_VEGAS2, .twist = SIM_FLIPPED, .mutant = true},
    {.name = "no-drain", .title = "never drains", .algorithm = WEIR_VEGAS2, .twist = SIM_NO_DRAIN, .mutant = true},
    {.name = "idle-growth",
     .title = "grows while idle",
     .algorithm = WEIR_VEGAS2,
     .twist = SIM_IDLE_GROWTH,
     .mutant = true},
    {.name = "wait-counted",
     .title = "queue wait in the RTT",
     .algorithm = WEIR_VEGAS2,
     .twist = SIM_WAIT_COUNTED,
     .mutant = true},
};
const size_t sim_controllers_count = sizeof sim_controllers / sizeof sim_controllers[0];

const struct sim_controller *sim_find_controller(const char *name)
{
    for (size_t i = 0; i < sim_controllers_count; i++)
        if (strcmp(sim_controllers[i].name, name) == 0)
            return &sim_controllers[i];
    return NULL;
}
