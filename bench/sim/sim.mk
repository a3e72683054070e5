# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# The simulator. It links the library's own objects: `make bench-sim` prints the table, SIM_FLAGS goes to the program.
sim_sources = \
	bench/sim/boundary.c \
	bench/sim/controllers.c \
	bench/sim/downstream.c \
	bench/sim/draw.c \
	bench/sim/evaluate.c \
	bench/sim/events.c \
	bench/sim/gate.c \
	bench/sim/histogram.c \
	bench/sim/oracle.c \
	bench/sim/random.c \
	bench/sim/run.c \
	bench/sim/scenarios.c \
	bench/sim/sim.h \
	bench/sim/world.h

EXTRA_PROGRAMS += bench/sim/sim
bench_sim_sim_SOURCES = $(sim_sources) \
	bench/sim/main.c \
	bench/sim/plot.c \
	bench/sim/population.c \
	bench/sim/report.c \
	bench/sim/report.h
bench_sim_sim_CFLAGS = $(AM_CFLAGS) -D_GNU_SOURCE
bench_sim_sim_LDADD = libweir-core.la $(ATOMIC_LIBS) -lm
CLEANFILES += bench/sim/sim$(EXEEXT)

SIM_FLAGS = --plots sim-plots --csv sim-plots
.PHONY: bench-sim
bench-sim: bench/sim/sim$(EXEEXT)
	bench/sim/sim$(EXEEXT) $(SIM_FLAGS)

if ENABLE_TESTS
weir_sim_tests = tests/check_vegas2 tests/check_sim
check_PROGRAMS += $(weir_sim_tests)
TESTS += $(weir_sim_tests)
endif

tests_check_vegas2_SOURCES = tests/check_vegas2.c tests/stream.h
tests_check_vegas2_CFLAGS = $(weir_test_cflags)
tests_check_vegas2_LDADD = libweir-test.la -lm

tests_check_sim_SOURCES = tests/check_sim.c $(sim_sources)
tests_check_sim_CFLAGS = $(weir_test_cflags) -I$(top_srcdir)/bench/sim
tests_check_sim_LDADD = libweir-test.la -lm
