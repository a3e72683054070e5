# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# Prints the option list of weir_environ(7) from the option table.
noinst_PROGRAMS += tools/option_list
tools_option_list_SOURCES = tools/option_list.c
tools_option_list_LDADD = libweir-core.la $(ATOMIC_LIBS)
