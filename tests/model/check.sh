#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Checks the models with Spin: as they are they must hold, with each of their faults they must not.
set -eu
: "${top_srcdir:=.}"
: "${CC:=cc}"

if ! command -v spin >/dev/null; then
    echo "spin is not installed (Debian: spin): the model is not checked"
    exit 77
fi
models=$(cd "$top_srcdir" && pwd)/tests/model
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# verify MODEL DEFINES...: 0 if the model holds. Twice: with what it says about the end (under weak fairness), which is
# cut where that has come true; and without, for assertions and deadlocks everywhere.
verify() {
    model=$1
    shift
    spin -a "$@" "$models/$model.pml" >spin.log 2>&1 || { cat spin.log; exit 1; }
    "$CC" -O2 -w -DNFAIR=5 -DMEMLIM=3000 -DCOLLAPSE -o live pan.c
    "$CC" -O2 -w -DNOCLAIM -DSAFETY -DMEMLIM=3000 -DCOLLAPSE -o safe pan.c
    stop=
    [ "$model" != fork ] || stop=-E # in the child the other threads stop where they are
    # shellcheck disable=SC2086 # a word or none
    { ./safe $stop -n -m1000000 && ./live -a -f -n -m1000000; } >pan.log 2>&1
    ! grep -q 'max search depth too small\|out of memory' pan.log || { cat pan.log; exit 1; }
    grep -q 'errors: 0' pan.log && ! grep -q 'errors: [1-9]' pan.log
}

# check MODEL WHAT DEFINES FAULT...: as it is, and with each fault
check() {
    name=$1
    what=$2
    defines=$3
    shift 3
    # shellcheck disable=SC2086 # a list of words
    verify "$name" $defines || { cat pan.log; echo "$name: the model does not hold"; exit 1; }
    echo "$name holds: $what"
    for fault in "$@"; do
        # shellcheck disable=SC2086
        if verify "$name" $defines -DFAULT_$fault; then
            echo "$name: fault $fault was not found"
            exit 1
        fi
        echo "$name, found: $fault"
    done
}

check fork "what a child inherits is whole, its locks are free, and it does not take it for its own" "" \
    NESTING REGISTRY OBJECT LOG GENERATION
check ends "every job ends once and is told once, permits come back, shutdown waits for all and returns" "" \
    TIMER PERMITS DELIVERING LOOK LATE HELD CUT RAISE ADMIT
check wake "no lost wake-up, no deadlock, running within the limit, every worker leaves" -DJOBS=3 \
    NO_WATCH LIMIT ENTER NOTICE WAKING CHAIN REST STALE RAISE BATCH_ENTER BATCH_REST BOOK
