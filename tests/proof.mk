# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# What takes longer than a suite that is run every day, or needs tools of its own.

# Checkers that read the sources.
.PHONY: check-static
check-static:
	$(AM_V_at)CC='$(CC)' $(SHELL) $(srcdir)/tests/static.sh $(srcdir) .
EXTRA_DIST += tests/static.sh .clang-tidy

# What the suite runs of lib/, counted by gcov in a build of its own.
.PHONY: coverage
coverage:
	$(AM_V_at)rm -rf check-coverage
	$(AM_V_at)$(MKDIR_P) check-coverage/build
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) -s distdir distdir=check-coverage/source
	$(AM_V_at)chmod -R u+w check-coverage/source
	cd check-coverage/build && ../source/configure -q CC='$(CC)' CFLAGS='-O0 -g --coverage -fprofile-update=atomic' && \
	  CK_TIMEOUT_MULTIPLIER=5 $(MAKE) $(AM_MAKEFLAGS) -s check
	$(AM_V_at)$(SHELL) $(srcdir)/tests/coverage.sh check-coverage/source check-coverage/build
EXTRA_DIST += tests/coverage.sh tests/coverage.md

# Load that lasts, and the racy programs again and again: SOAK_MINUTES in all.
SOAK_MINUTES = 30
weir_racy_programs = \
	tests/check_base \
	tests/check_batch \
	tests/check_cancel \
	tests/check_completions \
	tests/check_contention \
	tests/check_deadline \
	tests/check_fork \
	tests/check_pace \
	tests/check_pool_ends \
	tests/check_pool_faults \
	tests/check_pool_life \
	tests/check_pool_threads \
	tests/check_race \
	tests/check_races \
	tests/check_stress \
	tests/check_wakes
EXTRA_PROGRAMS += tests/soak/soak
tests_soak_soak_SOURCES = \
	tests/soak/epoch.c \
	tests/soak/process.c \
	tests/soak/server.c \
	tests/soak/soak.c \
	tests/soak/soak.h
tests_soak_soak_CFLAGS = $(AM_CFLAGS) -D_GNU_SOURCE
tests_soak_soak_LDADD = libweir.la
.PHONY: soak
soak: tests/soak/soak $(weir_racy_programs)
	$(AM_V_at)$(SHELL) $(srcdir)/tests/soak/soak.sh $(SOAK_MINUTES) $(weir_racy_programs)
EXTRA_DIST += tests/soak/soak.sh

# helgrind and DRD know mutexes and condition variables, but no C11 atomics: every hand-over through one is a race to
# them. So they look at the modules that have none, the log and the start of threads; for all others there is check-tsan.
weir_mutex_programs = tests/check_threads
.PHONY: check-helgrind
check-helgrind: $(weir_mutex_programs)
	$(AM_V_at)for tool in helgrind drd; do \
	  for test in $(weir_mutex_programs); do \
	    echo "$$tool $$test"; \
	    CK_FORK=no WEIR_TEST_SLOW=20 CK_TIMEOUT_MULTIPLIER=30 $(LIBTOOL) --mode=execute \
	      valgrind -q --tool=$$tool --error-exitcode=9 ./$$test || exit 1; \
	  done; \
	done
