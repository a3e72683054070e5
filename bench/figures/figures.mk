# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# What snapshots and live files cost: `make bench-figures`, half a minute.
EXTRA_PROGRAMS += bench/figures/figures
bench_figures_figures_SOURCES = bench/figures/main.c
bench_figures_figures_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
bench_figures_figures_LDADD = libweir-core.la $(ATOMIC_LIBS)
CLEANFILES += bench/figures/figures$(EXEEXT)

.PHONY: bench-figures
bench-figures: bench/figures/figures$(EXEEXT)
	$(AM_V_at)bench/figures/figures$(EXEEXT)
