# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# Prints the option list of weir_environ(7) from the option table.
noinst_PROGRAMS += tools/option_list
tools_option_list_SOURCES = tools/option_list.c
tools_option_list_LDADD = libweir-core.la $(ATOMIC_LIBS)

# Shows the live files of other processes. It contains what it needs of the library, for the layout is private.
bin_PROGRAMS = tools/weirstat/weirstat
tools_weirstat_weirstat_SOURCES = \
	tools/weirstat/demand.c \
	tools/weirstat/explain.c \
	tools/weirstat/history.c \
	tools/weirstat/main.c \
	tools/weirstat/options.c \
	tools/weirstat/table.c \
	tools/weirstat/text.c \
	tools/weirstat/weirstat.h
tools_weirstat_weirstat_LDADD = libweir-core.la $(ATOMIC_LIBS)
