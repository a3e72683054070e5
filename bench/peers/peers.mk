# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# The pools people use, against ours: `make bench-peers` (minutes), `make bench-peers-quick` (under one). Nothing here is
# built by default; a pool that configure did not find is left out, and the table says so.
EXTRA_PROGRAMS += bench/peers/peers
bench_peers_peers_SOURCES = \
	bench/peers/cell.c \
	bench/peers/clock.c \
	bench/peers/cost.c \
	bench/peers/gate.c \
	bench/peers/latency.c \
	bench/peers/list.c \
	bench/peers/main.c \
	bench/peers/peer_raw.c \
	bench/peers/peer_textbook.c \
	bench/peers/peer_weir.c \
	bench/peers/peers.h \
	bench/peers/process.c \
	bench/peers/report.c \
	bench/peers/update.c \
	bench/peers/workload.c
if WITH_THPOOL
bench_peers_peers_SOURCES += bench/peers/peer_thpool.c
endif
if WITH_GLIB
bench_peers_peers_SOURCES += bench/peers/peer_glib.c
endif
if WITH_UV
bench_peers_peers_SOURCES += bench/peers/peer_uv.c
endif
if WITH_APR
bench_peers_peers_SOURCES += bench/peers/peer_apr.c
endif
if WITH_OPENMP
bench_peers_peers_SOURCES += bench/peers/peer_openmp.c
endif
bench_peers_peers_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE '-DPEERS_PLOT_SCRIPT="$(abs_srcdir)/bench/peers/peers.gp"' \
	$(PEERS_CPPFLAGS)
bench_peers_peers_CFLAGS = $(AM_CFLAGS) $(PEERS_CFLAGS)
bench_peers_peers_LDADD = libweir-core.la $(ATOMIC_LIBS) $(PEERS_LIBS) -lm
EXTRA_DIST += bench/peers/peers.gp
CLEANFILES += bench/peers/peers$(EXEEXT)

PEERS_FLAGS = --plots bench-peers
.PHONY: bench-peers bench-peers-quick
bench-peers: bench/peers/peers$(EXEEXT)
	$(AM_V_at)bench/peers/peers$(EXEEXT) $(PEERS_FLAGS)
bench-peers-quick: bench/peers/peers$(EXEEXT)
	$(AM_V_at)bench/peers/peers$(EXEEXT) $(PEERS_FLAGS) --quick

# The same cost in instructions and atomic operations, which no other load on the machine disturbs.
EXTRA_PROGRAMS += bench/peers/count
bench_peers_count_SOURCES = bench/peers/count.c
bench_peers_count_CPPFLAGS = $(AM_CPPFLAGS) -D_GNU_SOURCE
bench_peers_count_LDFLAGS = -all-static
bench_peers_count_LDADD = libweir-core.la $(ATOMIC_LIBS) -lm
EXTRA_DIST += bench/peers/count.sh
CLEANFILES += bench/peers/count$(EXEEXT)

.PHONY: bench-count
bench-count: bench/peers/count$(EXEEXT)
	$(AM_V_at)$(SHELL) $(srcdir)/bench/peers/count.sh bench/peers/count$(EXEEXT)
