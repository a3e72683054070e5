# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

include bench/common/common.mk
include bench/demo/demo.mk
include bench/downstream/downstream.mk
include bench/examples/examples.mk
include bench/figures/figures.mk
include bench/peers/peers.mk
include bench/sim/sim.mk
