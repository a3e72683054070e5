#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh CORPORA PROGRAMS TARGET...: libFuzzer for FUZZ_SECONDS on each target, one after the other. What is found lies
# in fuzz-found/ and makes this fail.
set -eu
corpora=$1
programs=$2
shift 2
export ASAN_OPTIONS="detect_stack_use_after_return=1:detect_leaks=1:${ASAN_OPTIONS-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS-}"
mkdir -p fuzz-found
status=0
for target in "$@"; do
    learned=fuzz-corpus/$target
    mkdir -p "$learned"
    dictionary=
    [ ! -f "$corpora/../$target.dict" ] || dictionary=-dict=$corpora/../$target.dict
    longest=4096
    [ "$target" != api ] || longest=1500
    # shellcheck disable=SC2086 # a word or none
    if "$programs/fuzz_$target" -max_total_time="${FUZZ_SECONDS:-60}" -max_len=$longest -timeout=60 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="fuzz-found/$target-" $dictionary "$learned" "$corpora/$target" \
        >"fuzz-corpus/$target.log" 2>&1; then
        sed -n 's/^stat::number_of_executed_units: */executions /p' "fuzz-corpus/$target.log" |
            sed "s/^/fuzz: $target: nothing found in ${FUZZ_SECONDS:-60} s, /"
    else
        tail -60 "fuzz-corpus/$target.log"
        echo "fuzz: $target: see fuzz-found/ and fuzz-corpus/$target.log"
        status=1
    fi
done
exit $status
