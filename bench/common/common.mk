# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# What bench/demo and bench/downstream share.
bench_common_sources = \
	bench/common/clock.c \
	bench/common/common.h \
	bench/common/gnuplot.c \
	bench/common/histogram.c \
	bench/common/options.c \
	bench/common/server.c \
	bench/common/server_process.c \
	bench/common/thread.c
