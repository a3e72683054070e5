# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0

# What is checked before a release, and needs tools that a build does not: see CONTRIBUTING.md. Each leaves its work in
# a folder of its name, and says so in a line if a tool is missing.
PACKAGE_CHECK = top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' VERSION='$(VERSION)' MAKE='$(MAKE)' \
	CC='$(CC)' $(SHELL) $(srcdir)/tests/package
.PHONY: check-deb check-deb-install check-abi record-abi check-arm64
check-deb: dist
	$(AM_V_at)$(PACKAGE_CHECK)/check_deb.sh || test $$? -eq 77
check-deb-install: check-deb
	$(AM_V_at)$(PACKAGE_CHECK)/check_deb_install.sh || test $$? -eq 77
check-abi: libweir.la libweir-thpool.la
	$(AM_V_at)$(PACKAGE_CHECK)/check_abi.sh || test $$? -eq 77
# What the interface is from now on, for check-abi and for debian/*.symbols.
record-abi: libweir.la libweir-thpool.la
	$(AM_V_at)$(PACKAGE_CHECK)/record_symbols.sh
	$(AM_V_at)$(PACKAGE_CHECK)/check_abi.sh record || test $$? -eq 77
check-arm64:
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) -s distdir distdir=check-arm64-source
	$(AM_V_at)CHECK_ARM64_TESTS='$(CHECK_ARM64_TESTS)' $(PACKAGE_CHECK)/check_arm64.sh || test $$? -eq 77
# Not there: check_fork, for qemu-user gives up when the child of a process with threads starts one, and check_threads,
# for the signal masks it shows are not all of those that were set.
CHECK_ARM64_TESTS = $(filter-out tests/check_fork tests/check_threads,$(weir_test_programs))
EXTRA_DIST += \
	debian \
	tests/package/check_abi.sh \
	tests/package/check_arm64.sh \
	tests/package/check_deb.sh \
	tests/package/check_deb_install.sh \
	tests/package/record_symbols.sh \
	tests/package/abi \
	tests/package/abi.suppressions
package_folders = check-deb check-deb-install check-abi check-arm64 check-arm64-source
