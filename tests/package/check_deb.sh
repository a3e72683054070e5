#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Debian packages from the tarball, and from nothing else: built by dpkg-buildpackage, looked at by lintian, unpacked to
# an empty prefix, where the tests of debian/tests compile, link and run.
# DEB_BUILD_OPTIONS: "nocheck" unless it is set, for `make check` is a target of its own.
set -eu
: "${top_builddir:=.}" "${VERSION:?}" "${DEB_BUILD_OPTIONS=nocheck}"

for tool in dpkg-buildpackage dh lintian; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "check-deb skipped: there is no $tool (Debian: apt-get install dpkg-dev debhelper lintian)" >&2
        exit 77
    }
done
work=$top_builddir/check-deb
rm -rf "$work"
mkdir "$work"
cp "$top_builddir/weir-$VERSION.tar.xz" "$work/weir_$VERSION.orig.tar.xz"
cd "$work"
tar -xf "weir_$VERSION.orig.tar.xz"

# The flags of the make that runs this are not for the one below, nor what it exports.
unset MAKEFLAGS MFLAGS MAKELEVEL CC
(
    cd "weir-$VERSION"
    DEB_BUILD_OPTIONS="$DEB_BUILD_OPTIONS parallel=$(nproc)"
    export DEB_BUILD_OPTIONS
    dpkg-buildpackage -us -uc
) >build.log 2>&1 || {
    tail -40 build.log >&2
    echo "check-deb: dpkg-buildpackage failed; $work/build.log has all of it" >&2
    exit 1
}
ls -- *.deb
lintian --fail-on error --tag-display-limit 0 -- *.changes || {
    echo "check-deb: lintian finds errors" >&2
    exit 1
}

# ---- an empty prefix ----

root=$work/root
for package in libweir0 libweir-thpool0 libweir-dev weir-tools; do
    dpkg-deb -x "$package"_*.deb "$root"
done
left=$(find "$root" -name '*.la')
[ -z "$left" ] || {
    echo "check-deb: packaged: $left" >&2
    exit 1
}
libdir=$(dirname "$(find "$root" -name libweir.so.0)")

tests=$(sed -n 's/^Tests: *//p' "weir-$VERSION/debian/tests/control" | tr ',\n' '  ')
for test in $tests; do
    mkdir -p "$work/$test.tmp"
    (
        cd "$work/weir-$VERSION"
        AUTOPKGTEST_TMP=$work/$test.tmp PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$libdir \
            PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root sh "debian/tests/$test"
    ) || {
        echo "check-deb: $test fails" >&2
        exit 1
    }
done
echo "check-deb: ok"
