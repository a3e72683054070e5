# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# A page per public header, those of section 7, weirstat(1); the others name one of these in a .so line, a page per function.
dist_man_MANS += \
	man/thpool_add_work.3 \
	man/thpool_destroy.3 \
	man/thpool_init.3 \
	man/thpool_num_threads_working.3 \
	man/thpool_pause.3 \
	man/thpool_resume.3 \
	man/thpool_wait.3 \
	man/weir.7 \
	man/weir_after_ns.3 \
	man/weir_completions.3 \
	man/weir_completions_create.3 \
	man/weir_completions_destroy.3 \
	man/weir_completions_fd.3 \
	man/weir_completions_next.3 \
	man/weir_config.3 \
	man/weir_config_init.3 \
	man/weir_config_load_env.3 \
	man/weir_config_print.3 \
	man/weir_config_set.3 \
	man/weir_configure.3 \
	man/weir_environ.7 \
	man/weir_error.3 \
	man/weir_estimator.3 \
	man/weir_estimator_create.3 \
	man/weir_estimator_destroy.3 \
	man/weir_estimator_figures.3 \
	man/weir_estimator_limit.3 \
	man/weir_estimator_reaction_ns.3 \
	man/weir_estimator_set_wall_offset.3 \
	man/weir_estimator_update.3 \
	man/weir_histogram_bound_ns.3 \
	man/weir_histogram_merge.3 \
	man/weir_histogram_quantile_ns.3 \
	man/weir_job.3 \
	man/weir_job_cancel.3 \
	man/weir_job_outcome.3 \
	man/weir_job_submit.3 \
	man/weir_job_timedsubmit.3 \
	man/weir_job_trysubmit.3 \
	man/weir_job_wait.3 \
	man/weir_limiter.3 \
	man/weir_limiter_acquire.3 \
	man/weir_limiter_acquire_many.3 \
	man/weir_limiter_configure.3 \
	man/weir_limiter_create.3 \
	man/weir_limiter_destroy.3 \
	man/weir_limiter_freeze.3 \
	man/weir_limiter_partition_histogram.3 \
	man/weir_limiter_partition_stats.3 \
	man/weir_limiter_histogram.3 \
	man/weir_limiter_release.3 \
	man/weir_limiter_stats.3 \
	man/weir_limiter_thaw.3 \
	man/weir_limiter_timedacquire.3 \
	man/weir_limiter_tryacquire.3 \
	man/weir_log.3 \
	man/weir_migrate.7 \
	man/weir_now_ns.3 \
	man/weir_pool.3 \
	man/weir_pool_call.3 \
	man/weir_pool_configure.3 \
	man/weir_pool_create.3 \
	man/weir_pool_destroy.3 \
	man/weir_pool_drain.3 \
	man/weir_pool_histogram.3 \
	man/weir_pool_limiter.3 \
	man/weir_pool_partition_histogram.3 \
	man/weir_pool_partition_stats.3 \
	man/weir_pool_pause.3 \
	man/weir_pool_resume.3 \
	man/weir_pool_shutdown.3 \
	man/weir_pool_stats.3 \
	man/weir_pool_submit.3 \
	man/weir_pool_submit_copy.3 \
	man/weir_pool_timedsubmit.3 \
	man/weir_pool_trysubmit.3 \
	man/weir_pool_trysubmit_copy.3 \
	man/weir_set_log.3 \
	man/weir_stats.3 \
	man/weir_stats_write.3 \
	man/weir_strerror.3 \
	man/weir_thpool.3 \
	man/weir_thpool_config.3 \
	man/weir_thpool_create.3 \
	man/weir_thpool_pool.3 \
	man/weir_time.3 \
	man/weir_trace.7 \
	man/weir_vegas2.7 \
	man/weirstat.1

# The pages for a browser, in html/; those of one line lead to the page that they name.
HTML_DIRECTORY = html
html-local:
	$(AM_V_at)if test -z '$(MANDOC)'; then echo 'make html needs mandoc' >&2; exit 1; fi
	$(AM_V_at)$(MKDIR_P) $(HTML_DIRECTORY)
	$(AM_V_GEN)for page in $(dist_man_MANS); do \
	  name=`basename $$page`; \
	  target=`sed -n 's,^\.so man./,,p' '$(srcdir)/'$$page`; \
	  if test -n "$$target"; then \
	    echo "<!DOCTYPE html><meta http-equiv=\"refresh\" content=\"0; url=$$target.html\"><a href=\"$$target.html\">$$target</a>" \
	      >$(HTML_DIRECTORY)/$$name.html; \
	  else \
	    $(MANDOC) -T html -O man=%N.%S.html,toc '$(srcdir)/'$$page >$(HTML_DIRECTORY)/$$name.html || exit 1; \
	  fi; \
	done
