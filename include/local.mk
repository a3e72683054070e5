# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

include_HEADERS = include/weir.h
weirincludedir = $(includedir)/weir
weirinclude_HEADERS = \
	include/weir/api.h \
	include/weir/completions.h \
	include/weir/config.h \
	include/weir/error.h \
	include/weir/estimator.h \
	include/weir/job.h \
	include/weir/limiter.h \
	include/weir/log.h \
	include/weir/pool.h \
	include/weir/stats.h \
	include/weir/thpool.h \
	include/weir/time.h
