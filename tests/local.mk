# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# Test programs use Check and speak TAP; scripts end in .test and answer by their exit status.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
TEST_EXTENSIONS = .test
TEST_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	WEIR_TAP=1; export WEIR_TAP; \
	top_srcdir='$(abs_top_srcdir)'; export top_srcdir; \
	top_builddir='$(abs_top_builddir)'; export top_builddir; \
	CC='$(CC)'; export CC; CXX='$(CXX_FOR_TESTS)'; export CXX; MANDOC='$(MANDOC)'; export MANDOC; \
	TEST_CFLAGS='$(CFLAGS) $(PTHREAD_CFLAGS) $(SANITIZER_FLAGS)'; export TEST_CFLAGS; \
	ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:$${ASAN_OPTIONS-}"; export ASAN_OPTIONS; \
	UBSAN_OPTIONS="print_stacktrace=1:$${UBSAN_OPTIONS-}"; export UBSAN_OPTIONS; \
	TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:$${TSAN_OPTIONS-}"; export TSAN_OPTIONS;

if ENABLE_TESTS
weir_test_programs = \
	tests/check_vectors \
	tests/check_estimator \
	tests/check_algorithms \
	tests/check_reaction \
	tests/check_config \
	tests/check_environment \
	tests/check_base \
	tests/check_threads \
	tests/check_admission \
	tests/check_depth \
	tests/check_limiter \
	tests/check_limiter_setup \
	tests/check_limiter_weights \
	tests/check_sampling \
	tests/check_contention \
	tests/check_pool \
	tests/check_pool_life \
	tests/check_pool_threads \
	tests/check_pool_ends \
	tests/check_batch \
	tests/check_pace \
	tests/check_stress \
	tests/check_races \
	tests/check_fork \
	tests/check_faults \
	tests/check_edges \
	tests/check_job \
	tests/check_cancel \
	tests/check_nested \
	tests/check_completions \
	tests/check_deadline \
	tests/check_wheel \
	tests/check_race \
	tests/check_overload \
	tests/check_wakes \
	tests/check_partitions \
	tests/check_weights \
	tests/check_fairness \
	tests/check_figures \
	tests/check_stats_write \
	tests/check_live \
	tests/check_live_faults \
	tests/check_explain \
	tests/check_configure \
	tests/check_thpool \
	tests/check_model \
	tests/check_pool_faults \
	tests/check_limit_faults \
	tests/check_system_faults \
	tests/check_clock_faults \
	tests/check_process_faults
check_PROGRAMS += $(weir_test_programs)
TESTS += $(weir_test_programs)
endif

# What needs no Check, and runs programs of the library.
weir_test_scripts = \
	tests/cxx.test \
	tests/examples.test \
	tests/formats.test \
	tests/limits.test \
	tests/loading.test \
	tests/loops.test \
	tests/migrate.test \
	tests/thpool.test \
	tests/weirstat.test
# What looks at files, which a sanitizer does not change.
weir_text_scripts = \
	tests/dashboard.test \
	tests/format.test \
	tests/headers.test \
	tests/html.test \
	tests/imports.test \
	tests/install.test \
	tests/manpages.test \
	tests/option_list.test \
	tests/probes.test \
	tests/reasons.test \
	tests/register.test \
	tests/symbols.test
TESTS += $(weir_test_scripts) $(weir_text_scripts)
dist_check_SCRIPTS += $(weir_test_scripts) $(weir_text_scripts)
EXTRA_DIST += tests/consumer.c tests/jobs.cc tests/loader.c tests/README.md
include tests/fuzz/fuzz.mk
include tests/proof.mk

noinst_LTLIBRARIES += $(weir_test_support)
if ENABLE_TESTS
weir_test_support = libweir-test.la
libweir_test_la_SOURCES = tests/sanitized.h tests/support.c tests/support.h
libweir_test_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
libweir_test_la_LIBADD = libweir-core.la $(CHECK_LIBS) $(ATOMIC_LIBS)
endif

weir_test_cflags = $(AM_CFLAGS) $(CHECK_CFLAGS) -D_GNU_SOURCE -DWEIR_SRCDIR='"$(abs_top_srcdir)"'

tests_check_vectors_SOURCES = tests/check_vectors.c tests/gradient1.c tests/gradient1.h
tests_check_vectors_CFLAGS = $(weir_test_cflags)
tests_check_vectors_LDADD = libweir-test.la

tests_check_estimator_SOURCES = tests/check_estimator.c
tests_check_estimator_CFLAGS = $(weir_test_cflags)
tests_check_estimator_LDADD = libweir-test.la

tests_check_algorithms_SOURCES = tests/check_algorithms.c
tests_check_algorithms_CFLAGS = $(weir_test_cflags)
tests_check_algorithms_LDADD = libweir-test.la

tests_check_reaction_SOURCES = tests/check_reaction.c
tests_check_reaction_CFLAGS = $(weir_test_cflags)
tests_check_reaction_LDADD = libweir-test.la -lm

tests_check_config_SOURCES = tests/check_config.c tests/config_support.c tests/config_support.h
tests_check_config_CFLAGS = $(weir_test_cflags)
tests_check_config_LDADD = libweir-test.la

tests_check_environment_SOURCES = tests/check_environment.c tests/config_support.c tests/config_support.h
tests_check_environment_CFLAGS = $(weir_test_cflags)
tests_check_environment_LDADD = libweir-test.la

tests_check_base_SOURCES = tests/check_base.c tests/suite.h
tests_check_base_CFLAGS = $(weir_test_cflags)
tests_check_base_LDADD = libweir-test.la

tests_check_threads_SOURCES = tests/check_threads.c tests/suite.h
tests_check_threads_CFLAGS = $(weir_test_cflags)
tests_check_threads_LDADD = libweir-test.la

tests_check_admission_SOURCES = tests/check_admission.c tests/job_support.c tests/job_support.h
tests_check_admission_CFLAGS = $(weir_test_cflags)
tests_check_admission_LDADD = libweir-test.la

tests_check_depth_SOURCES = tests/check_depth.c tests/job_support.c tests/job_support.h
tests_check_depth_CFLAGS = $(weir_test_cflags)
tests_check_depth_LDADD = libweir-test.la

tests_check_limiter_SOURCES = \
	tests/check_limiter.c \
	tests/limiter_support.c \
	tests/limiter_support.h \
	tests/suite.h
tests_check_limiter_CFLAGS = $(weir_test_cflags)
tests_check_limiter_LDADD = libweir-test.la

tests_check_limiter_setup_SOURCES = \
	tests/check_limiter_setup.c \
	tests/limiter_support.c \
	tests/limiter_support.h \
	tests/suite.h
tests_check_limiter_setup_CFLAGS = $(weir_test_cflags)
tests_check_limiter_setup_LDADD = libweir-test.la

tests_check_limiter_weights_SOURCES = \
	tests/check_limiter_weights.c \
	tests/limiter_support.c \
	tests/limiter_support.h \
	tests/suite.h
tests_check_limiter_weights_CFLAGS = $(weir_test_cflags)
tests_check_limiter_weights_LDADD = libweir-test.la

tests_check_sampling_SOURCES = \
	tests/check_sampling.c \
	tests/limiter_support.c \
	tests/limiter_support.h \
	tests/suite.h
tests_check_sampling_CFLAGS = $(weir_test_cflags)
tests_check_sampling_LDADD = libweir-test.la

tests_check_contention_SOURCES = \
	tests/check_contention.c \
	tests/limiter_support.c \
	tests/limiter_support.h \
	tests/suite.h
tests_check_contention_CFLAGS = $(weir_test_cflags)
tests_check_contention_LDADD = libweir-test.la

tests_check_configure_SOURCES = tests/check_configure.c tests/pool_support.c tests/pool_support.h
tests_check_configure_CFLAGS = $(weir_test_cflags)
tests_check_configure_LDADD = libweir-test.la

tests_check_pool_SOURCES = tests/check_pool.c tests/pool_support.c tests/pool_support.h
tests_check_pool_CFLAGS = $(weir_test_cflags)
tests_check_pool_LDADD = libweir-test.la

tests_check_pool_life_SOURCES = tests/check_pool_life.c tests/pool_support.c tests/pool_support.h
tests_check_pool_life_CFLAGS = $(weir_test_cflags)
tests_check_pool_life_LDADD = libweir-test.la

tests_check_pool_threads_SOURCES = tests/check_pool_threads.c tests/pool_support.c tests/pool_support.h
tests_check_pool_threads_CFLAGS = $(weir_test_cflags)
tests_check_pool_threads_LDADD = libweir-test.la

tests_check_pool_ends_SOURCES = tests/check_pool_ends.c tests/pool_support.c tests/pool_support.h
tests_check_pool_ends_CFLAGS = $(weir_test_cflags)
tests_check_pool_ends_LDADD = libweir-test.la

tests_check_batch_SOURCES = tests/check_batch.c tests/pool_support.c tests/pool_support.h
tests_check_batch_CFLAGS = $(weir_test_cflags)
tests_check_batch_LDADD = libweir-test.la
tests_check_pace_SOURCES = tests/check_pace.c tests/pool_support.c tests/pool_support.h
tests_check_pace_CFLAGS = $(weir_test_cflags)
tests_check_pace_LDADD = libweir-test.la

tests_check_fork_SOURCES = tests/check_fork.c tests/pool_support.c tests/pool_support.h
tests_check_fork_CFLAGS = $(weir_test_cflags)
tests_check_fork_LDADD = libweir-test.la

tests_check_faults_SOURCES = tests/check_faults.c tests/pool_support.c tests/pool_support.h
tests_check_faults_CFLAGS = $(weir_test_cflags)
tests_check_faults_LDADD = libweir-test.la
tests_check_faults_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=mmap,--wrap=munmap,--wrap=pthread_create

tests_check_edges_SOURCES = tests/check_edges.c tests/pool_support.c tests/pool_support.h
tests_check_edges_CFLAGS = $(weir_test_cflags)
tests_check_edges_LDADD = libweir-test.la
tests_check_edges_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=pthread_create

tests_check_pool_faults_SOURCES = tests/check_pool_faults.c tests/pool_support.c tests/pool_support.h
tests_check_pool_faults_CFLAGS = $(weir_test_cflags)
tests_check_pool_faults_LDADD = libweir-test.la
tests_check_pool_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=weir__unpark \
	-Wl,--wrap=pthread_mutex_init,--wrap=pthread_mutex_destroy,--wrap=pthread_cond_init,--wrap=pthread_cond_destroy

tests_check_limit_faults_SOURCES = \
	tests/check_limit_faults.c \
	tests/pool_support.c \
	tests/pool_support.h \
	tests/stream.h
tests_check_limit_faults_CFLAGS = $(weir_test_cflags)
tests_check_limit_faults_LDADD = libweir-test.la -lm

tests_check_system_faults_SOURCES = tests/check_system_faults.c tests/refused_calls.c tests/refused_calls.h \
	tests/pool_support.c tests/pool_support.h
tests_check_system_faults_CFLAGS = $(weir_test_cflags)
tests_check_system_faults_LDADD = libweir-test.la
tests_check_system_faults_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=open,--wrap=openat,--wrap=fcntl,--wrap=fchmod,--wrap=posix_fallocate,--wrap=mmap,--wrap=linkat \
	-Wl,--wrap=fdopendir,--wrap=eventfd,--wrap=pthread_atfork,--wrap=pthread_attr_init

tests_check_clock_faults_SOURCES = tests/check_clock_faults.c tests/pool_support.c tests/pool_support.h
tests_check_clock_faults_CFLAGS = $(weir_test_cflags)
tests_check_clock_faults_LDADD = libweir-test.la -lm
tests_check_clock_faults_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime,--wrap=syscall

tests_check_process_faults_SOURCES = tests/check_process_faults.c tests/pool_support.c tests/pool_support.h
tests_check_process_faults_CFLAGS = $(weir_test_cflags)
tests_check_process_faults_LDADD = libweir-test.la

tests_check_job_SOURCES = tests/check_job.c tests/handle_support.c tests/handle_support.h
tests_check_job_CFLAGS = $(weir_test_cflags)
tests_check_job_LDADD = libweir-test.la

tests_check_cancel_SOURCES = tests/check_cancel.c tests/handle_support.c tests/handle_support.h
tests_check_cancel_CFLAGS = $(weir_test_cflags)
tests_check_cancel_LDADD = libweir-test.la

tests_check_nested_SOURCES = tests/check_nested.c tests/handle_support.c tests/handle_support.h
tests_check_nested_CFLAGS = $(weir_test_cflags)
tests_check_nested_LDADD = libweir-test.la

tests_check_completions_SOURCES = tests/check_completions.c tests/handle_support.c tests/handle_support.h
tests_check_completions_CFLAGS = $(weir_test_cflags)
tests_check_completions_LDADD = libweir-test.la

tests_check_deadline_SOURCES = tests/check_deadline.c tests/handle_support.c tests/handle_support.h
tests_check_deadline_CFLAGS = $(weir_test_cflags)
tests_check_deadline_LDADD = libweir-test.la

tests_check_wheel_SOURCES = tests/check_wheel.c tests/handle_support.c tests/handle_support.h
tests_check_wheel_CFLAGS = $(weir_test_cflags)
tests_check_wheel_LDADD = libweir-test.la

tests_check_race_SOURCES = tests/check_race.c tests/handle_support.c tests/handle_support.h
tests_check_race_CFLAGS = $(weir_test_cflags)
tests_check_race_LDADD = libweir-test.la

tests_check_overload_SOURCES = tests/check_overload.c tests/handle_support.c tests/handle_support.h
tests_check_overload_CFLAGS = $(weir_test_cflags)
tests_check_overload_LDADD = libweir-test.la -lm

tests_check_wakes_SOURCES = tests/check_wakes.c tests/handle_support.c tests/handle_support.h
tests_check_wakes_CFLAGS = $(weir_test_cflags)
tests_check_wakes_LDADD = libweir-test.la -lm
tests_check_wakes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=weir__unpark

tests_check_partitions_SOURCES = tests/check_partitions.c tests/job_support.c tests/job_support.h
tests_check_partitions_CFLAGS = $(weir_test_cflags)
tests_check_partitions_LDADD = libweir-test.la

tests_check_weights_SOURCES = tests/check_weights.c tests/job_support.c tests/job_support.h
tests_check_weights_CFLAGS = $(weir_test_cflags)
tests_check_weights_LDADD = libweir-test.la

tests_check_fairness_SOURCES = tests/check_fairness.c tests/job_support.c tests/job_support.h
tests_check_fairness_CFLAGS = $(weir_test_cflags)
tests_check_fairness_LDADD = libweir-test.la

tests_check_model_SOURCES = \
	tests/check_model.c \
	tests/model.c \
	tests/model.h \
	tests/operations.c \
	tests/job_support.c \
	tests/job_support.h
tests_check_model_CFLAGS = $(weir_test_cflags)
tests_check_model_LDADD = libweir-test.la

tests_check_stress_SOURCES = tests/check_stress.c tests/pool_support.c tests/pool_support.h
tests_check_stress_CFLAGS = $(weir_test_cflags)
tests_check_stress_LDADD = libweir-test.la

tests_check_races_SOURCES = tests/check_races.c tests/pool_support.c tests/pool_support.h
tests_check_races_CFLAGS = $(weir_test_cflags)
tests_check_races_LDADD = libweir-test.la

tests_check_figures_SOURCES = tests/check_figures.c tests/pool_support.c tests/pool_support.h
tests_check_figures_CFLAGS = $(weir_test_cflags)
tests_check_figures_LDADD = libweir-test.la -lm

tests_check_stats_write_SOURCES = tests/check_stats_write.c tests/pool_support.c tests/pool_support.h
tests_check_stats_write_CFLAGS = $(weir_test_cflags)
tests_check_stats_write_LDADD = libweir-test.la

tests_check_live_SOURCES = tests/check_live.c tests/pool_support.c tests/pool_support.h
tests_check_live_CFLAGS = $(weir_test_cflags)
tests_check_live_LDADD = libweir-test.la

tests_check_live_faults_SOURCES = tests/check_live_faults.c tests/refused_calls.c tests/refused_calls.h \
	tests/pool_support.c tests/pool_support.h
tests_check_live_faults_CFLAGS = $(weir_test_cflags)
tests_check_live_faults_LDADD = libweir-test.la
tests_check_live_faults_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pread,--wrap=fstat,--wrap=mmap,--wrap=open,--wrap=openat,--wrap=opendir,--wrap=fcntl

tests_check_explain_SOURCES = \
	tests/check_explain.c \
	tools/weirstat/explain.c \
	tools/weirstat/table.c \
	tools/weirstat/text.c \
	tools/weirstat/weirstat.h
tests_check_explain_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tools
tests_check_explain_CFLAGS = $(weir_test_cflags)
tests_check_explain_LDADD = libweir-test.la

tests_check_thpool_SOURCES = tests/check_thpool.c tests/pool_support.c tests/pool_support.h
tests_check_thpool_CFLAGS = $(weir_test_cflags)
tests_check_thpool_LDADD = libweir-thpool-core.la libweir-test.la
tests_check_thpool_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
EXTRA_DIST += tests/thpool

# What weirstat.test looks at.
check_PROGRAMS += tests/live_process
tests_live_process_SOURCES = tests/live_process.c
tests_live_process_LDADD = libweir.la

# What limits.test puts under limits.
check_PROGRAMS += tests/pool_process
tests_pool_process_SOURCES = tests/pool_process.c tests/sanitized.h
tests_pool_process_CFLAGS = $(AM_CFLAGS) -D_GNU_SOURCE
tests_pool_process_LDADD = libweir-core.la $(ATOMIC_LIBS)

# Its output goes through the tools that know the formats, in formats.test.
check_PROGRAMS += tests/figures_writer
tests_figures_writer_SOURCES = tests/figures_writer.c
tests_figures_writer_LDADD = libweir.la

# The same suites with a sanitizer, in a build of their own from what a tarball would hold.
.PHONY: check-asan check-tsan check-valgrind
check-asan:
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check-sanitized sanitizer=address,undefined,float-cast-overflow name=asan
check-tsan:
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) check-sanitized sanitizer=thread name=tsan
check-sanitized:
	$(AM_V_at)rm -rf check-$(name)
	$(AM_V_at)$(MKDIR_P) check-$(name)/build
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) -s distdir distdir=check-$(name)/source
	$(AM_V_at)chmod -R u+w check-$(name)/source
	cd check-$(name)/build && ../source/configure -q CC='$(CC)' CFLAGS='-g -O1' --enable-werror \
	  --enable-sanitizer=$(sanitizer) && \
	CK_TIMEOUT_MULTIPLIER=10 WEIR_TEST_SLOW=10 $(MAKE) $(AM_MAKEFLAGS) -s check \
	  TESTS='$(filter-out $(weir_text_scripts),$(TESTS))'

# The short suite under valgrind, without forks so that it sees every leak. All programs are run, whatever one finds.
# Threads take turns fairly, or one that loops keeps the others waiting for minutes.
check-valgrind: $(check_PROGRAMS)
	$(AM_V_at)failed=; for test in $(weir_test_programs); do \
	  echo "valgrind $$test"; \
	  CK_FORK=no WEIR_TEST_SLOW=100 CK_TIMEOUT_MULTIPLIER=30 $(LIBTOOL) --mode=execute valgrind -q --error-exitcode=9 \
	    --fair-sched=try --leak-check=full --show-leak-kinds=definite,indirect \
	    --errors-for-leak-kinds=definite,indirect ./$$test || failed="$$failed $$test"; \
	done; test -z "$$failed" || { echo "valgrind: failed:$$failed"; exit 1; }

# The models of wake-ups, of the ends of jobs and of a fork, and their faults, with Spin: minutes, so not a part of the suite.
.PHONY: check-model
check-model:
	$(AM_V_at)top_srcdir='$(abs_top_srcdir)' CC='$(CC)' $(SHELL) $(srcdir)/tests/model/check.sh || test $$? -eq 77
EXTRA_DIST += tests/model/check.sh tests/model/ends.pml tests/model/fork.pml tests/model/wake.pml

# Another libc, without Check.
.PHONY: check-musl
check-musl:
	$(AM_V_at)rm -rf check-musl
	$(AM_V_at)$(MKDIR_P) check-musl
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) -s distdir distdir=check-musl/source
	$(AM_V_at)chmod -R u+w check-musl/source
	$(AM_V_at)MAKE='$(MAKE)' $(SHELL) $(srcdir)/tests/musl.sh check-musl/source check-musl/build
EXTRA_DIST += tests/musl.sh

# The races, with pauses at random where threads meet: WEIR_TEST_ROUNDS says how often.
.PHONY: check-delays
check-delays:
	$(AM_V_at)rm -rf check-delays
	$(AM_V_at)$(MKDIR_P) check-delays/build
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) -s distdir distdir=check-delays/source
	$(AM_V_at)chmod -R u+w check-delays/source
	cd check-delays/build && ../source/configure -q CC='$(CC)' --enable-werror --enable-test-delays && \
	  CK_TIMEOUT_MULTIPLIER=10 $(MAKE) $(AM_MAKEFLAGS) -s check TESTS='$(weir_racy_programs)'

include tests/package/package.mk

clean-local:
	-chmod -R u+w check-asan check-tsan check-musl check-delays $(package_folders) 2>/dev/null
	-rm -rf check-asan check-tsan check-musl check-delays $(package_folders) html

EXTRA_DIST += tests/vectors
