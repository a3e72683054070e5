# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# Pools before real servers: `make bench-downstream`, some minutes for each part. Nothing here is built by default; a part
# whose library configure did not find, or whose server is not installed, is skipped with a line that says so.
EXTRA_PROGRAMS += bench/downstream/downstream
bench_downstream_downstream_SOURCES = \
	$(bench_common_sources) \
	bench/downstream/cpu.c \
	bench/downstream/disk.c \
	bench/downstream/downstream.h \
	bench/downstream/fleet.c \
	bench/downstream/http.c \
	bench/downstream/load.c \
	bench/downstream/main.c \
	bench/downstream/options.c \
	bench/downstream/place.c \
	bench/downstream/plot.c \
	bench/downstream/postgresql.c \
	bench/downstream/redis.c \
	bench/downstream/report.c \
	bench/downstream/run.c \
	bench/downstream/sweep.c
if WITH_LIBPQ
bench_downstream_downstream_SOURCES += bench/downstream/pg_server.c bench/downstream/pg_server.h
endif
bench_downstream_downstream_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/bench/common -D_GNU_SOURCE \
	'-DDOWNSTREAM_PLOT_SCRIPT="$(abs_srcdir)/bench/downstream/downstream.gp"' \
	'-DFLEET_PLOT_SCRIPT="$(abs_srcdir)/bench/downstream/fleet.gp"' $(DOWNSTREAM_CPPFLAGS)
bench_downstream_downstream_LDADD = libweir.la $(DOWNSTREAM_LIBS) -lm
EXTRA_DIST += bench/downstream/check.sh bench/downstream/downstream.gp bench/downstream/fleet.gp
CLEANFILES += bench/downstream/downstream$(EXEEXT)

# make bench-downstream DOWNSTREAM_FLAGS="--rounds 3 http"
.PHONY: bench-downstream check-downstream
bench-downstream: bench/downstream/downstream$(EXEEXT)
	$(AM_V_at)bench/downstream/downstream$(EXEEXT) $(DOWNSTREAM_FLAGS)
# That every part runs and cleans up after itself: minutes, and servers, so not a part of the suite.
check-downstream: bench/downstream/downstream$(EXEEXT)
	$(AM_V_at)top_builddir='$(abs_top_builddir)' $(SHELL) $(srcdir)/bench/downstream/check.sh
