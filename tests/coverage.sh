#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# coverage.sh SOURCE BUILD: what the suite has run of lib/ in a build with --coverage. A table of lines and one of
# branches, with the lines that lack something; then the lines whose branches are neither all taken nor explained in
# coverage.md. Fails below COVERAGE_LINES or COVERAGE_BRANCHES percent.
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
: "${COVERAGE_LINES:=95}"
: "${COVERAGE_BRANCHES:=88}"

if ! command -v gcovr >/dev/null; then
    echo "gcovr is not installed (Debian: gcovr): coverage is not measured"
    exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Objects of the archive and of the shared library count together. A process that is forked or killed while its threads
# count leaves numbers that do not add up, and gcov a branch that was "taken -1" times: its line is left out.
gcovr -r "$source" --object-directory "$build" -f "$source/lib/" --gcov-ignore-parse-errors \
    --json "$work/all.json" "$build" 2>"$work/log" || {
    cat "$work/log"
    exit 1
}
report() {
    gcovr -r "$source" -a "$work/all.json" "$@" 2>/dev/null
}
report | sed 's/GCC Code Coverage Report/Lines/'
report --branches >"$work/branches"
sed 's/GCC Code Coverage Report/Branches/' "$work/branches"

# Rows of coverage.md: | `file` | `the line's code` | reason |
awk -v source="$source" '
    FILENAME ~ /coverage\.md$/ {
        if (split($0, part, /` \| `|^\| `|` \| /) >= 4)
            reason[part[2] "\t" part[3]] = part[4]
        next
    }
    $1 ~ /^lib\// && NF == 5 {
        path = source "/" $1
        delete text
        for (n = 1; (getline line < path) > 0; n++) {
            gsub(/^[ \t]+|[ \t]+$/, "", line)
            text[n] = line
        }
        close(path)
        count = split($5, missing, ",")
        for (i = 1; i <= count; i++) {
            key = $1 "\t" text[missing[i]]
            if (key in reason)
                explained++
            else
                unexplained[++rest] = $1 ":" missing[i] ": " text[missing[i]]
        }
    }
    END {
        printf "Lines with a branch that was not taken: %d explained in tests/coverage.md, %d not\n", explained, rest
        for (i = 1; i <= rest; i++)
            print "  " unexplained[i]
    }' "$source/tests/coverage.md" "$work/branches"

report --fail-under-line "$COVERAGE_LINES" --fail-under-branch "$COVERAGE_BRANCHES" >/dev/null || {
    echo "coverage: less than $COVERAGE_LINES % of the lines or $COVERAGE_BRANCHES % of the branches"
    exit 1
}
echo "coverage: at least $COVERAGE_LINES % of the lines and $COVERAGE_BRANCHES % of the branches"
