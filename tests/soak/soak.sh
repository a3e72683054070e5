#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# soak.sh MINUTES PROGRAM...: three quarters of the time load that lasts (tests/soak/soak), the rest the racy programs of
# the suite again and again, on one CPU and on two. Its report is soak.txt. Fails at the first thing that is wrong.
set -eu
minutes=$1
shift
report=soak.txt
: >"$report"

say() {
    printf '%s\n' "$*" | tee -a "$report"
}
die() {
    say "soak: FAILED: $*"
    exit 1
}

say "soak: $(uname -sr), $(nproc) CPUs, $minutes minutes from $(date -u '+%Y-%m-%d %H:%M:%S') on"
GLIBC_TUNABLES=glibc.malloc.tcache_count=0 tests/soak/soak "$(awk "BEGIN { print $minutes * 0.75 }")" >soak.log 2>&1 || {
    cat soak.log
    die "the load: see soak.log"
}
cat soak.log | tee -a "$report"

end=$(($(date +%s) + $(awk "BEGIN { printf \"%d\", $minutes * 15 }")))
rounds=0
checks=0
while [ "$(date +%s)" -lt "$end" ]; do
    for program in "$@"; do
        for cpus in 0 0,1; do
            [ "$(date +%s)" -lt "$end" ] || break
            pin="taskset -c $cpus"
            $pin true 2>/dev/null || pin=
            WEIR_TAP=1 CK_TIMEOUT_MULTIPLIER=10 $pin "$program" >soak-check.log 2>&1 ||
                die "$program on CPU $cpus: see soak-check.log"
            rounds=$((rounds + 1))
            checks=$((checks + $(grep -c '^ok' soak-check.log)))
        done
    done
done
say "racy programs: $rounds runs on one CPU and on two, $checks tests, none failed"
say "soak: passed"
