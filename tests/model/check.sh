#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks wake.pml with Spin: as it is it must hold, with each of its faults it must not.
set -eu
: "${top_srcdir:=.}"
: "${CC:=cc}"

if ! command -v spin >/dev/null; then
    echo "spin is not installed (Debian: spin): the model is not checked"
    exit 77
fi
model=$(cd "$top_srcdir" && pwd)/tests/model/wake.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# verify DEFINES...: 0 if the model holds
verify() {
    spin -a "$@" "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
    "$CC" -O2 -w -DNFAIR=4 -DMEMLIM=3000 -DCOLLAPSE -o pan pan.c
    { ./pan -a -f -n -m1000000 && ./pan -n -noclaim -m1000000; } >pan.log 2>&1
    ! grep -q 'max search depth too small\|out of memory' pan.log || { cat pan.log; exit 1; }
    grep -q 'errors: 0' pan.log && ! grep -q 'errors: [1-9]' pan.log
}

verify -DJOBS=3 || { cat pan.log; echo "the model does not hold"; exit 1; }
echo "holds: no lost wake-up, no deadlock, running within the limit, every worker leaves"
for fault in NO_WATCH LIMIT ENTER NOTICE WAKING CHAIN REST STALE; do
    if verify -DJOBS=3 -DFAULT_$fault; then
        echo "fault $fault was not found"
        exit 1
    fi
    echo "found: $fault"
done
