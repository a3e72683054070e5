#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# Debian packages from the tarball, and from nothing else: built by dpkg-buildpackage, looked at by lintian, unpacked to
# an empty prefix, where the tests of debian/tests compile, link and run.
# CHECK_DEB_CHROOT=1 also installs them by apt in a fresh Debian of debootstrap and runs the tests there; that needs root
# and a mirror. DEB_BUILD_OPTIONS: "nocheck" unless it is set, for `make check` is a target of its own.
set -eu
: "${top_builddir:=.}" "${VERSION:?}" "${CHECK_DEB_CHROOT:=}" "${DEB_BUILD_OPTIONS:=nocheck}"

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

# run_tests WHERE COMMAND: each test of debian/tests.
run_tests()
{
    where=$1
    shift
    for test in link thpool weirstat; do
        "$@" "$test" || {
            echo "check-deb: $test fails in $where" >&2
            exit 1
        }
    done
}

run_unpacked()
{
    mkdir -p "$work/$1.tmp"
    (
        cd "$work/weir-$VERSION"
        AUTOPKGTEST_TMP=$work/$1.tmp PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$libdir \
            PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root sh "debian/tests/$1"
    )
}
run_tests "an empty prefix" run_unpacked

# ---- a fresh Debian ----

run_in_chroot()
{
    chroot "$work/chroot" sh -c "cd /source && AUTOPKGTEST_TMP=\$(mktemp -d) && export AUTOPKGTEST_TMP && sh debian/tests/$1"
}

if [ -n "$CHECK_DEB_CHROOT" ]; then
    debootstrap --variant=minbase --include=gcc,libc6-dev,pkg-config "${CHECK_DEB_SUITE:-stable}" "$work/chroot" >chroot.log 2>&1 || {
        tail -20 chroot.log >&2
        echo "check-deb: debootstrap failed" >&2
        exit 1
    }
    mkdir "$work/chroot/packages" "$work/chroot/source"
    cp -- *.deb "$work/chroot/packages"
    rm -f "$work"/chroot/packages/*dbgsym*
    cp -R "weir-$VERSION/debian" "weir-$VERSION/tests" "$work/chroot/source"
    chroot "$work/chroot" sh -c 'apt-get install -y --no-install-recommends /packages/*.deb' >>chroot.log 2>&1 || {
        tail -20 chroot.log >&2
        echo "check-deb: the packages cannot be installed" >&2
        exit 1
    }
    run_tests "a fresh Debian" run_in_chroot
    chroot "$work/chroot" sh -c 'dpkg --purge weir-tools libweir-dev libweir-thpool0 libweir0' >>chroot.log 2>&1
    left=$(find "$work/chroot/usr" -path '*weir*' ! -path '*/dpkg/*')
    rm -rf "$work/chroot"
    [ -z "$left" ] || {
        echo "check-deb: left by purge: $left" >&2
        exit 1
    }
fi
echo "check-deb: ok"
