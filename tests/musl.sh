#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# musl.sh SOURCE BUILD: the library and pool_process with musl-gcc, in a directory of its own: with futexes, where the
# kernel's headers are found, and with condition variables in their place. Without musl-gcc a line says so.
set -eu
source=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)
compiler=${MUSL_CC:-musl-gcc}

command -v "$compiler" >/dev/null 2>&1 || {
    echo "skipped: there is no $compiler (Debian: apt-get install musl-tools)"
    exit 0
}

# try WHAT CPPFLAGS
try()
{
    mkdir -p "$build/$1"
    (
        cd "$build/$1"
        "$source/configure" -q --disable-tests --disable-shared --enable-werror CC="$compiler" CPPFLAGS="$2" \
            CFLAGS="-O1 -g" >configure.log
        ${MAKE:-make} -s libweir.la tests/pool_process >make.log 2>&1 || {
            cat make.log
            exit 1
        }
        if [ "$1" = futexes ] && ! grep -q '^#define HAVE_LINUX_FUTEX_H 1' config.h; then
            echo "$1: the kernel's headers were not used"
            exit 1
        fi
        tests/pool_process tour
        tests/pool_process crowd 32
        tests/pool_process lower 8 nproc
    )
    echo "musl with $1: ok"
}

# Only the kernel's, for those of another libc do not fit.
kernel=$build/kernel
rm -rf "$kernel"
mkdir "$kernel"
for name in linux asm asm-generic; do
    for directory in /usr/include /usr/include/"$(cc -print-multiarch 2>/dev/null)"; do
        [ -d "$directory/$name" ] && ! [ -e "$kernel/$name" ] && ln -s "$directory/$name" "$kernel/$name"
    done || :
done
[ -f "$kernel/linux/futex.h" ] && [ -d "$kernel/asm" ] && try futexes "-idirafter $kernel"
try conditions ""
