# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# Fuzz targets. "make check" replays their corpora and some changes of each input by fuzz.test, with any compiler; "make
# fuzz" looks for more with libFuzzer, FUZZ_SECONDS for each of FUZZ_TARGETS. What it has learned stays in fuzz-corpus/,
# what it has found in fuzz-found/.
FUZZ_SECONDS = 60
FUZZ_TARGETS = options partitions estimator live_file api
FUZZ_CC = clang

weir_fuzz_cflags = $(AM_CFLAGS) -D_GNU_SOURCE
weir_fuzz_shared = tests/fuzz/fuzz.c tests/fuzz/fuzz.h
weir_fuzz_options = tests/fuzz/options.c $(weir_fuzz_shared)
weir_fuzz_partitions = tests/fuzz/partitions.c $(weir_fuzz_shared)
weir_fuzz_estimator = tests/fuzz/estimator.c $(weir_fuzz_shared)
weir_fuzz_live_file = \
	tests/fuzz/live_file.c \
	tests/fuzz/json.c \
	tests/fuzz/json.h \
	tools/weirstat/explain.c \
	tools/weirstat/history.c \
	tools/weirstat/options.c \
	tools/weirstat/table.c \
	tools/weirstat/text.c \
	tools/weirstat/weirstat.h \
	$(weir_fuzz_shared)
weir_fuzz_api = \
	tests/fuzz/api.c \
	tests/model.c \
	tests/model.h \
	tests/operations.c \
	tests/job_support.c \
	tests/job_support.h \
	$(weir_fuzz_shared)
weir_fuzz_api_ldflags = $(AM_LDFLAGS) -Wl,--wrap=_ck_assert_failed,--wrap=_mark_point

if ENABLE_TESTS
check_PROGRAMS += \
	tests/fuzz/options \
	tests/fuzz/partitions \
	tests/fuzz/estimator \
	tests/fuzz/live_file \
	tests/fuzz/api
EXTRA_PROGRAMS += \
	tests/fuzz/fuzz_options \
	tests/fuzz/fuzz_partitions \
	tests/fuzz/fuzz_estimator \
	tests/fuzz/fuzz_live_file \
	tests/fuzz/fuzz_api
endif
weir_test_scripts += tests/fuzz.test
EXTRA_DIST += tests/fuzz/corpus

tests_fuzz_options_SOURCES = $(weir_fuzz_options) tests/fuzz/replay.c
tests_fuzz_options_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_options_LDADD = libweir-core.la $(ATOMIC_LIBS)

tests_fuzz_partitions_SOURCES = $(weir_fuzz_partitions) tests/fuzz/replay.c
tests_fuzz_partitions_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_partitions_LDADD = libweir-core.la $(ATOMIC_LIBS)

tests_fuzz_estimator_SOURCES = $(weir_fuzz_estimator) tests/fuzz/replay.c
tests_fuzz_estimator_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_estimator_LDADD = libweir-core.la $(ATOMIC_LIBS)

tests_fuzz_live_file_SOURCES = $(weir_fuzz_live_file) tests/fuzz/replay.c
tests_fuzz_live_file_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tests_fuzz_live_file_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_live_file_LDADD = libweir-core.la $(ATOMIC_LIBS)

tests_fuzz_api_SOURCES = $(weir_fuzz_api) tests/fuzz/replay.c
tests_fuzz_api_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_fuzz_api_CFLAGS = $(weir_test_cflags)
tests_fuzz_api_LDADD = libweir-test.la
tests_fuzz_api_LDFLAGS = $(weir_fuzz_api_ldflags)

tests_fuzz_fuzz_options_SOURCES = $(weir_fuzz_options)
tests_fuzz_fuzz_options_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_fuzz_options_LDADD = libweir-core.la $(ATOMIC_LIBS)
tests_fuzz_fuzz_options_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer

tests_fuzz_fuzz_partitions_SOURCES = $(weir_fuzz_partitions)
tests_fuzz_fuzz_partitions_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_fuzz_partitions_LDADD = libweir-core.la $(ATOMIC_LIBS)
tests_fuzz_fuzz_partitions_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer

tests_fuzz_fuzz_estimator_SOURCES = $(weir_fuzz_estimator)
tests_fuzz_fuzz_estimator_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_fuzz_estimator_LDADD = libweir-core.la $(ATOMIC_LIBS)
tests_fuzz_fuzz_estimator_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer

tests_fuzz_fuzz_live_file_SOURCES = $(weir_fuzz_live_file)
tests_fuzz_fuzz_live_file_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tests_fuzz_fuzz_live_file_CFLAGS = $(weir_fuzz_cflags)
tests_fuzz_fuzz_live_file_LDADD = libweir-core.la $(ATOMIC_LIBS)
tests_fuzz_fuzz_live_file_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer

tests_fuzz_fuzz_api_SOURCES = $(weir_fuzz_api)
tests_fuzz_fuzz_api_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_fuzz_fuzz_api_CFLAGS = $(weir_test_cflags)
tests_fuzz_fuzz_api_LDADD = libweir-test.la
tests_fuzz_fuzz_api_LDFLAGS = $(weir_fuzz_api_ldflags) -fsanitize=fuzzer

.PHONY: fuzz
fuzz:
	$(AM_V_at)rm -rf check-fuzz
	$(AM_V_at)$(MKDIR_P) check-fuzz/build
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) -s distdir distdir=check-fuzz/source
	$(AM_V_at)chmod -R u+w check-fuzz/source
	cd check-fuzz/build && ../source/configure -q CC='$(FUZZ_CC)' CFLAGS='-g -O1 -fsanitize=fuzzer-no-link' \
	  --disable-shared --enable-sanitizer=address,undefined,float-cast-overflow && \
	$(MAKE) $(AM_MAKEFLAGS) -s $(FUZZ_TARGETS:%=tests/fuzz/fuzz_%)
	$(AM_V_at)FUZZ_SECONDS='$(FUZZ_SECONDS)' $(SHELL) $(srcdir)/tests/fuzz/run.sh $(srcdir)/tests/fuzz/corpus \
	  check-fuzz/build/tests/fuzz $(FUZZ_TARGETS)
EXTRA_DIST += tests/fuzz/run.sh tests/fuzz/options.dict
