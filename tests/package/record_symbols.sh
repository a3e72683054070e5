#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Brings debian/*.symbols up to the version scripts: a new symbol gets the present version, one that is gone goes, the
# others keep the version they came with.
set -eu
: "${top_srcdir:=.}" "${VERSION:?}"

# record MAP SONAME PACKAGE
record()
{
    list=$top_srcdir/debian/$3.symbols
    node=$(sed -n 's/^\([A-Z0-9_.]*\) {$/\1/p' "$top_srcdir/$1")
    {
        echo "$2 $3 #MINVER#"
        {
            echo "$node"
            sed -n 's/^    \([a-z][a-z0-9_]*\);$/\1/p' "$top_srcdir/$1"
        } | LC_ALL=C sort | while read -r symbol; do
            grep "^ $symbol@$node " "$list" || echo " $symbol@$node $VERSION"
        done
    } >"$list.new"
    mv "$list.new" "$list"
}

record lib/weir.map libweir.so.0 libweir0
record lib/compat/thpool.map libweir-thpool.so.0 libweir-thpool0
