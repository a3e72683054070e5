# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# The programs that README.md and the manual pages show. `make examples` builds them; tests/examples.test compares them
# with what is shown, compiles and runs them.
EXAMPLES = \
	bench/examples/breaker \
	bench/examples/completions \
	bench/examples/config \
	bench/examples/configure \
	bench/examples/custom \
	bench/examples/error \
	bench/examples/estimator \
	bench/examples/fetch \
	bench/examples/job \
	bench/examples/limiter \
	bench/examples/log \
	bench/examples/metrics \
	bench/examples/migrate/function_pool \
	bench/examples/migrate/per_request \
	bench/examples/migrate/routine \
	bench/examples/migrate/treesum_after \
	bench/examples/pool \
	bench/examples/resolve \
	bench/examples/stats \
	bench/examples/time
EXTRA_PROGRAMS += $(EXAMPLES)
EXTRA_DIST += bench/examples/.clang-format bench/examples/epoll_loop.c bench/examples/uv_loop.c
# What weir_migrate(7) refers to; tests/migrate.test builds and runs them. The one before is for the original pool.
EXTRA_DIST += bench/examples/migrate/treesum_before.c bench/examples/migrate/uv_work.c
# They see the public headers only, as an outside program does.
EXAMPLES_CPPFLAGS = -I$(top_srcdir)/include -D_POSIX_C_SOURCE=200809L
bench_examples_breaker_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_breaker_LDADD = libweir.la
bench_examples_completions_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_completions_LDADD = libweir.la
bench_examples_config_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_config_LDADD = libweir.la
bench_examples_configure_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_configure_LDADD = libweir.la
bench_examples_custom_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_custom_LDADD = libweir.la
bench_examples_error_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_error_LDADD = libweir.la
bench_examples_estimator_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_estimator_LDADD = libweir.la
bench_examples_fetch_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_fetch_LDADD = libweir.la
bench_examples_job_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_job_LDADD = libweir.la
bench_examples_limiter_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_limiter_LDADD = libweir.la
bench_examples_log_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_log_LDADD = libweir.la
bench_examples_metrics_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_metrics_LDADD = libweir.la
bench_examples_migrate_function_pool_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_migrate_function_pool_LDADD = libweir.la
bench_examples_migrate_per_request_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_migrate_per_request_LDADD = libweir.la
bench_examples_migrate_routine_SOURCES = bench/examples/migrate/routine.c lib/compat/routine.c lib/compat/routine.h
bench_examples_migrate_routine_CPPFLAGS = $(EXAMPLES_CPPFLAGS) -I$(top_srcdir)/lib/compat
bench_examples_migrate_routine_LDADD = libweir.la
bench_examples_migrate_treesum_after_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_migrate_treesum_after_LDADD = libweir-thpool.la libweir.la
bench_examples_pool_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_pool_LDADD = libweir.la
bench_examples_resolve_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_resolve_LDADD = libweir.la
bench_examples_stats_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_stats_LDADD = libweir.la
bench_examples_time_CPPFLAGS = $(EXAMPLES_CPPFLAGS)
bench_examples_time_LDADD = libweir.la

examples: $(EXAMPLES)
.PHONY: examples
CLEANFILES += $(EXAMPLES)
