# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# thpool's interface, a library of its own: its names are not ours. The convenience library is for the tests, which link
# libweir-core.
noinst_LTLIBRARIES += libweir-thpool-core.la
libweir_thpool_core_la_CFLAGS = $(AM_CFLAGS) $(VISIBILITY_CFLAGS)
libweir_thpool_core_la_SOURCES = lib/compat/thpool.c

lib_LTLIBRARIES += libweir-thpool.la
libweir_thpool_la_SOURCES =
libweir_thpool_la_LIBADD = libweir-thpool-core.la libweir.la
libweir_thpool_la_LDFLAGS = $(AM_LDFLAGS) $(LIBRARY_LDFLAGS) \
	-version-info $(WEIR_THPOOL_LT_CURRENT):$(WEIR_THPOOL_LT_REVISION):$(WEIR_THPOOL_LT_AGE)
if HAVE_VERSION_SCRIPT
libweir_thpool_la_LDFLAGS += -Wl,--version-script=$(srcdir)/lib/compat/thpool.map
EXTRA_libweir_thpool_la_DEPENDENCIES = lib/compat/thpool.map
else
libweir_thpool_la_LDFLAGS += -export-symbols-regex '^(weir_)?thpool_'
endif
EXTRA_DIST += lib/compat/thpool.map
pkgconfig_DATA += lib/compat/weir-thpool.pc

# Recipes that are longer than ten lines: source to be compiled into a program. uv_work needs libuv, which we do not.
compatdir = $(pkgdatadir)/compat
dist_compat_DATA = \
	lib/compat/routine.c \
	lib/compat/routine.h \
	lib/compat/uv_work.c \
	lib/compat/uv_work.h
