#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# What a no-op job costs, counted, not timed: instructions and atomic read-modify-writes (lock-prefixed instructions and
# xchg with memory), by callgrind, once with and once without the estimator. The first thread submits, the second is the
# pool's. For x86-64.   count.sh PROGRAM [JOBS]
set -eu
program=$1
jobs=${2-200000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for tool in valgrind objdump; do
    command -v $tool >/dev/null || { echo "count.sh needs $tool"; exit 77; }
done
objdump -d --no-show-raw-insn "$program" |
    awk '/^ *[0-9a-f]+:/ && ($2 ~ /^lock/ || ($2 ~ /^xchg/ && /\(/)) { sub(":", "", $1); print "0x" $1 }' >"$work/atomic"

for algorithm in fixed vegas2; do
    rm -f "$work"/count.*
    valgrind -q --tool=callgrind --separate-threads=yes --dump-instr=yes --compress-pos=no --compress-strings=no \
        --callgrind-out-file="$work/count" "$program" $algorithm "$jobs"
    for thread in 01 02; do
        # The line behind "calls=" is what the called function cost, which its own lines say as well.
        awk -v jobs="$jobs" -v who="$algorithm, $([ $thread = 01 ] && echo submit || echo worker)" '
            FNR == NR { atomic[$1] = 1; next }
            /^fn=/ { fn = substr($0, 4) }
            /^calls=/ { skip = 1; next }
            /^0x/ { if (skip) { skip = 0; next } all += $3; of[fn] += $3; if ($1 in atomic) locked += $3 }
            END {
                printf "%s: %.0f instructions, %.2f atomic, per job; most of them in", who, all / jobs, locked / jobs
                for (i = 0; i < 5; i++) {
                    most = ""
                    for (name in of) if (most == "" || of[name] > of[most]) most = name
                    printf " %s %.0f%s", most, of[most] / jobs, i < 4 ? "," : "\n"
                    delete of[most]
                }
            }' "$work/atomic" "$work/count-$thread"
    done
done
