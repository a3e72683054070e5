#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# static.sh SOURCE BUILD: gcc -fanalyzer, clang-tidy with .clang-tidy, and cppcheck, on the library and the tools. All have
# to be silent; one that is not installed is left out, and said so.
set -eu
source=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
: "${CC:=cc}"
cd "$source"
sources=$(find lib tools -name '*.c' | sort)
flags="-std=c11 -D_GNU_SOURCE -Iinclude -Ilib -Itools -I$build -DHAVE_CONFIG_H -pthread"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# check NAME COMMAND...: fails if it says anything, or fails
check() {
    name=$1
    shift
    if "$@" >"$work/log" 2>&1 && [ ! -s "$work/log" ]; then
        echo "static: $name: clean"
    else
        cat "$work/log"
        echo "static: $name: see above"
        status=1
    fi
}

analyze() {
    for file in $sources; do
        # shellcheck disable=SC2086 # lists of words
        "$CC" $flags -O1 -fanalyzer -c "$file" -o "$work/object" || return 1
    done
}

tidy() {
    # The count of what is left out goes to stderr. shellcheck disable=SC2086
    clang-tidy --quiet $sources -- $flags 2>"$work/tidy"
}

# shadowFunction: a local variable may have the name of a static function elsewhere in the file, such as limit.
# variableScope: buffers are declared where their function begins.
# missingInclude, missingIncludeSystem: the headers of the system are not searched.
look() {
    cppcheck --quiet --std=c11 --enable=warning,performance,portability,style --error-exitcode=1 \
        --suppress=shadowFunction --suppress=variableScope --suppress=missingIncludeSystem --suppress=missingInclude \
        -Iinclude -Ilib -Itools -I"$build" -DHAVE_CONFIG_H -DHAVE_LINUX_FUTEX_H=1 -DHAVE_SYS_EVENTFD_H=1 \
        -D__GNUC__=12 lib tools
}

if echo 'int f(void);' | "$CC" -fanalyzer -x c -c - -o "$work/object" 2>/dev/null && "$CC" -v 2>&1 | grep -q '^gcc'; then
    check "gcc -fanalyzer" analyze
else
    echo "static: $CC has no -fanalyzer: left out"
fi
if command -v clang-tidy >/dev/null; then
    check clang-tidy tidy
else
    echo "static: clang-tidy is not installed: left out"
fi
if command -v cppcheck >/dev/null; then
    check cppcheck look
else
    echo "static: cppcheck is not installed: left out"
fi
exit $status
