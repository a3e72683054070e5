# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

noinst_PROGRAMS += bench/demo/demo
bench_demo_demo_SOURCES = \
	$(bench_common_sources) \
	bench/demo/demo.h \
	bench/demo/http.c \
	bench/demo/load.c \
	bench/demo/main.c \
	bench/demo/options.c \
	bench/demo/plot.c \
	bench/demo/report.c \
	bench/demo/run.c \
	bench/demo/view.c
# The script is read where it lies: the program is not installed.
bench_demo_demo_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/bench/common -D_GNU_SOURCE \
	'-DDEMO_PLOT_SCRIPT="$(abs_srcdir)/bench/demo/demo.gp"'
bench_demo_demo_LDADD = libweir.la
EXTRA_DIST += bench/demo/demo.gp

# make demo DEMOFLAGS="--rate 300"
demo: bench/demo/demo$(EXEEXT)
	$(AM_V_at)bench/demo/demo$(EXEEXT) $(DEMOFLAGS)
.PHONY: demo
CLEANFILES += weir-demo.png weir-demo-adaptive.dat weir-demo-fixed.dat
