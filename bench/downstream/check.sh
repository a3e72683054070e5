#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Each part of bench/downstream in short: it ends well or says why it is skipped, draws its table, and leaves neither
# files nor processes behind, also when it is interrupted. What it measures in so short a time is not looked at.
# From the environment: top_builddir (default: .).
set -u
LC_ALL=C
export LC_ALL
downstream=$(cd "${top_builddir:-.}" && pwd)/bench/downstream/downstream
status=0
output=$(mktemp -d) || exit 99
TMPDIR=$(mktemp -d) || exit 99
chmod 755 "$TMPDIR"
export TMPDIR
pid=
end()
{
    [ -z "$pid" ] || kill "$pid" 2>/dev/null
    rm -rf "$TMPDIR" "$output"
}
trap end EXIT
trap 'exit 99' HUP INT TERM

fail()
{
    echo "$*" >&2
    [ ! -f "$output/log" ] || cat "$output/log" >&2
    status=1
}

# Processes that work in the temporary directory.
left_over()
{
    for process in /proc/[0-9]*; do
        case $(readlink "$process/cwd") in
        "$TMPDIR"/*) tr '\0' ' ' <"$process/cmdline" ;;
        esac
    done
}

clean()
{
    [ -z "$(ls "$TMPDIR")" ] || fail "$1: leaves $(ls "$TMPDIR") behind"
    left=$(left_over)
    [ -z "$left" ] || fail "$1: leaves processes behind: $left"
}

# run STATUS ARGUMENT...
run()
{
    wanted=$1
    shift
    "$downstream" --output "$output" "$@" >"$output/log" 2>&1
    code=$?
    [ "$code" -eq "$wanted" ] || fail "downstream $* exits with $code instead of $wanted"
}

run 0 --help
run 2 --pools none
run 2 --seconds 0
run 2 nothing

for part in http postgresql redis disk cpu fleet; do
    run 0 --seconds 0.3 --pools 4,best,vegas2 --trace "$part"
    if grep "^$part: skipped" "$output/log"; then
        continue
    fi
    [ -s "$output/downstream-$part.txt" ] || fail "$part: there is no table"
    clean "$part"
done

# Interrupted as soon as there is something to clean up, and later.
for part in http postgresql redis cpu; do
    for delay in 0 6; do
        "$downstream" --output "$output" --pools 4 "$part" >"$output/log" 2>&1 &
        pid=$!
        until [ -n "$(ls "$TMPDIR")" ] || ! kill -0 "$pid" 2>/dev/null; do
            sleep 0.02
        done
        sleep "$delay"
        kill -INT "$pid" 2>/dev/null
        wait "$pid"
        code=$?
        pid=
        grep -q "^$part: skipped" "$output/log" || [ "$code" -eq 130 ] ||
            fail "$part, interrupted after $delay s, exits with $code instead of 130"
        clean "$part, interrupted after $delay s"
    done
done
exit $status
