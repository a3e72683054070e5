#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Another architecture, with weaker ordering of memory in its manual though not under an emulator: built by Debian's cross
# compiler from what a tarball would hold, tested under qemu-user. Check for arm64 is fetched by apt into a folder, the
# system stays as it is. No sanitizer and no measurement runs here: ThreadSanitizer does not start under qemu-user, and
# its clock is not that of a processor.
set -eu
: "${top_builddir:=.}" "${MAKE:=make}" "${CHECK_ARM64_TESTS:=}"
host=aarch64-linux-gnu
work=$top_builddir/check-arm64
source=$top_builddir/check-arm64-source

for tool in $host-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "check-arm64 skipped: there is no $tool (Debian: apt-get install gcc-$host qemu-user)" >&2
        exit 77
    }
done
chmod -R u+w "$source"
rm -rf "$work"
mkdir -p "$work/build" "$work/packages" "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/root"

# fetch PACKAGE...: into $work/root. Lists of its own, for the system's may be of one architecture.
fetch()
{
    command -v apt-get >/dev/null 2>&1 || return 1
    set -- -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$work/apt/lists" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$work/apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
    (
        cd "$work/packages"
        apt-get "$@"
    ) >>"$work/apt.log" 2>&1
}

tests=--disable-tests
if fetch update && fetch download check libsubunit-dev libsubunit0; then
    for package in "$work"/packages/*.deb; do
        dpkg-deb -x "$package" "$work/root"
    done
    lib=$work/root/usr/lib/$host
    CHECK_CFLAGS=-I$work/root/usr/include
    rm -f "$lib"/*.so* # all of it static: nothing to be found at run time
    CHECK_LIBS="-L$lib -lcheck_pic -lsubunit -lm -lrt"
    export CHECK_CFLAGS CHECK_LIBS
    tests=--enable-tests
else
    echo "check-arm64: Check for arm64 cannot be fetched, so only the programs without it run; see $work/apt.log" >&2
fi

unset MAKEFLAGS MFLAGS MAKELEVEL CC
cd "$work/build"
../../check-arm64-source/configure -q --host=$host --enable-werror $tests PKG_CONFIG=false >configure.log 2>&1 || {
    tail -20 configure.log >&2
    exit 1
}
grep -q '^host=.*aarch64' config.log || { # a missing cross compiler would be replaced by the native one
    echo "check-arm64: configure did not cross-compile" >&2
    exit 1
}
$MAKE -s -j"$(nproc)" all
emulator="qemu-aarch64 -L /usr/$host"
if [ "$tests" = --enable-tests ]; then
    # Scripts compile for the machine that they run on, so the programs alone.
    CK_TIMEOUT_MULTIPLIER=20 WEIR_TEST_SLOW="${WEIR_TEST_SLOW:-20}" WEIR_TEST_EMULATED=1 \
        $MAKE -s -j"$(nproc)" check LOG_COMPILER="$emulator" \
        TESTS="$CHECK_ARM64_TESTS" check_PROGRAMS="$CHECK_ARM64_TESTS"
else
    for program in consumer thpool/program; do
        sed 's,<thpool\.h>,<weir/thpool.h>,' "../../check-arm64-source/tests/$program.c" >program.c
        $host-gcc -std=gnu11 -O1 -I../../check-arm64-source/include program.c -o program .libs/libweir-thpool.a .libs/libweir.a \
            -lm -pthread
        $emulator ./program few >program.out
    done
fi
echo "check-arm64: ok"
