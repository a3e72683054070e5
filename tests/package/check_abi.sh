#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# The binary interface of the shared libraries as they are built here, against that of the last tag; where there is no
# clone or no tag, against the dumps in tests/package/abi, which "record" writes. Fails if a program that was linked to
# the older one might not run with the newer one; additions are shown.
set -eu
: "${top_srcdir:=.}" "${top_builddir:=.}" "${MAKE:=make}"
recorded=$top_srcdir/tests/package/abi
suppressions=$top_srcdir/tests/package/abi.suppressions
work=$top_builddir/check-abi

for tool in abidw abidiff; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "check-abi skipped: there is no $tool (Debian: apt-get install abigail-tools)" >&2
        exit 77
    }
done
rm -rf "$work"
mkdir "$work"

# dump LIBRARY OUT: the types that it shows, private ones included.
dump()
{
    abidw --exported-interfaces-only --no-show-locs --no-corpus-path --no-comp-dir-path --type-id-style hash \
        --out-file "$2" "$1"
    # Where it was built is nobody's business.
    sed -i "s,path='[^']*/lib/,path='lib/," "$2"
}

for name in libweir libweir-thpool; do
    dump "$top_builddir/.libs/$name.so" "$work/$name.abi"
done
if [ "${1-}" = record ]; then
    cp "$work"/*.abi "$recorded"
    exit 0
fi

tag=$(git -C "$top_srcdir" describe --tags --abbrev=0 2>/dev/null || true)
if [ -n "$tag" ]; then
    echo "check-abi: against $tag" >&2
    mkdir "$work/source" "$work/build" "$work/old"
    git -C "$top_srcdir" archive "$tag" | tar -xf - -C "$work/source"
    unset MAKEFLAGS MFLAGS MAKELEVEL
    (
        cd "$work/source"
        autoreconf -fi
        cd "$work/build"
        ../source/configure -q --disable-tests
        $MAKE -s libweir.la
        grep -q '^libweir-thpool\.la:' Makefile && $MAKE -s libweir-thpool.la
    ) >"$work/log" 2>&1 || true
    for library in "$work"/build/.libs/libweir*.so; do
        [ -f "$library" ] || {
            tail -20 "$work/log" >&2
            echo "check-abi: $tag does not build" >&2
            exit 1
        }
        dump "$library" "$work/old/$(basename "$library" .so).abi"
    done
    old=$work/old
else
    echo "check-abi: there is no tag, so against what was recorded in tests/package/abi" >&2
    old=$recorded
fi

# What has changed beyond additions, of the report on the standard input. Symbols that are gone make abidiff answer
# "incompatible", while a member that has moved does not, so its words are read: structs that tell their size may grow
# at the end, and nothing else is let through.
worse_than_additions()
{
    grep -v -e '^$' -e '^Functions changes summary:' -e '^Variables changes summary:' \
        -e '^[0-9]* functions* with some indirect sub-type change' -e "^  \\[C\\] 'function .* has some indirect sub-type" \
        -e '^    parameter [0-9]* of type .* has sub-type changes:' -e '^      in pointed to type ' \
        -e "^        underlying type 'struct weir_\\(config\\|stats\\|partition_stats\\)' changed:" \
        -e '^          type size changed from ' -e '^          [0-9]* data member insertions*:' \
        -e "^            '.*', at offset [0-9]* (in bits)" -e '^          no data member changes* ([0-9]* filtered);$'
}

status=0
for dumped in "$old"/*.abi; do
    name=$(basename "$dumped" .abi)
    abidiff --suppressions "$suppressions" --no-show-locs "$dumped" "$work/$name.abi" || true # to be read
    abidiff --suppressions "$suppressions" --no-show-locs --no-added-syms "$dumped" "$work/$name.abi" >"$work/$name.diff" 2>&1 || true
    if worse_than_additions <"$work/$name.diff" >"$work/$name.worse"; then
        head -20 "$work/$name.worse" >&2
        echo "check-abi: $name is not compatible; see CONTRIBUTING.md on the soname" >&2
        status=1
    else
        echo "check-abi: $name runs what was linked to the older one" >&2
    fi
done
exit $status
