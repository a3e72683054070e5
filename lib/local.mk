# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# The library proper is one convenience library, which the tests link too: they reach what is hidden in libweir.so.
noinst_LTLIBRARIES += libweir-core.la
libweir_core_la_CFLAGS = $(AM_CFLAGS) $(VISIBILITY_CFLAGS)
libweir_core_la_SOURCES = \
	lib/base/base.h \
	lib/base/clock.c \
	lib/base/delay.c \
	lib/base/error.c \
	lib/base/fork.c \
	lib/base/histogram.c \
	lib/base/histogram.h \
	lib/base/lock.c \
	lib/base/log.c \
	lib/base/memory.c \
	lib/base/park.c \
	lib/base/probe.c \
	lib/base/probe.h \
	lib/base/thread.c \
	lib/config/config.h \
	lib/config/environment.c \
	lib/config/options.c \
	lib/config/parse.c \
	lib/config/print.c \
	lib/estimator/aimd.c \
	lib/estimator/arithmetic.c \
	lib/estimator/estimator.c \
	lib/estimator/estimator.h \
	lib/estimator/fixed.c \
	lib/estimator/gradient2.c \
	lib/estimator/vegas.c \
	lib/estimator/vegas2.c \
	lib/estimator/vegas2_drains.c \
	lib/estimator/vegas2_limit.c \
	lib/estimator/vegas2_loss.c \
	lib/estimator/vegas2_parts.h \
	lib/estimator/vegas2_phases.c \
	lib/estimator/vegas2_state.h \
	lib/estimator/vegas2_trial.c \
	lib/estimator/window.c \
	lib/admission/admission.h \
	lib/admission/demand.c \
	lib/admission/depth.c \
	lib/admission/flow.c \
	lib/admission/line.c \
	lib/admission/partition.c \
	lib/admission/standing.c \
	lib/admission/wheel.c \
	lib/limiter/configure.c \
	lib/limiter/limiter.c \
	lib/limiter/limiter.h \
	lib/limiter/permit.c \
	lib/limiter/samples.c \
	lib/pool/batch.c \
	lib/pool/completions.c \
	lib/pool/deadline.c \
	lib/pool/demand.c \
	lib/pool/inbox.c \
	lib/pool/job.c \
	lib/pool/lifecycle.c \
	lib/pool/pool.c \
	lib/pool/pool.h \
	lib/pool/node.c \
	lib/pool/pace.c \
	lib/pool/submit.c \
	lib/pool/worker.c \
	lib/stats/partition_stats.c \
	lib/stats/histogram.c \
	lib/stats/live_file.c \
	lib/stats/live_file.h \
	lib/stats/record.c \
	lib/stats/record.h \
	lib/stats/stats.c \
	lib/stats/stats.h \
	lib/stats/write.c

lib_LTLIBRARIES += libweir.la
libweir_la_SOURCES =
libweir_la_LIBADD = libweir-core.la $(ATOMIC_LIBS)
libweir_la_LDFLAGS = $(AM_LDFLAGS) $(LIBRARY_LDFLAGS) \
	-version-info $(WEIR_LT_CURRENT):$(WEIR_LT_REVISION):$(WEIR_LT_AGE)
if HAVE_VERSION_SCRIPT
libweir_la_LDFLAGS += -Wl,--version-script=$(srcdir)/lib/weir.map
EXTRA_libweir_la_DEPENDENCIES = lib/weir.map
else
libweir_la_LDFLAGS += -export-symbols-regex '^weir_[^_]'
endif
EXTRA_DIST += lib/weir.map

pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = lib/weir.pc

include lib/compat/compat.mk
