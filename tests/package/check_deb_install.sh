#!/bin/sh
# SPDX-FileCopyrightText: 2026 The weir authors
# SPDX-License-Identifier: Apache-2.0
#
# The packages that check-deb has built, as a user meets them: in a Debian that debootstrap has just made, apt installs
# first those for running programs, then those for compiling them; the examples of the manual are compiled and one runs,
# weirstat runs, the tests of debian/tests run; and what purge leaves is nothing.
# CHECK_DEB_SUITE: of this machine, for the packages were built against its libc. CHECK_DEB_MIRROR: the one that apt uses.
# Needs root and the mirror.
set -eu
: "${top_builddir:=.}" "${VERSION:?}" "${CHECK_DEB_SUITE:=}" "${CHECK_DEB_MIRROR:=}"

skip()
{
    echo "check-deb-install skipped: $*" >&2
    exit 77
}
fail()
{
    [ ! -f "$work/$2" ] || tail -20 "$work/$2" >&2
    echo "check-deb-install: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || skip "debootstrap and chroot need root"
command -v debootstrap >/dev/null 2>&1 || skip "there is no debootstrap (Debian: apt-get install debootstrap)"
built=$top_builddir/check-deb
ls "$built"/*.deb >/dev/null 2>&1 || skip "check-deb has built no packages"
suite=${CHECK_DEB_SUITE:-$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)}
# shellcheck disable=SC2016 # for apt-get
mirror=${CHECK_DEB_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" "Codename: $suite" \
    "Origin: Debian" 2>/dev/null | head -1)}

work=$top_builddir/check-deb-install
root=$work/root
clean_up()
{
    ! mountpoint -q "$root/proc" || umount "$root/proc"
    rm -rf --one-file-system "$root"
}
mkdir -p "$work"
clean_up
trap clean_up EXIT
trap 'exit 99' HUP INT TERM
rm -f "$work"/*.log

debootstrap --variant=minbase "$suite" "$root" "${mirror:-http://deb.debian.org/debian/}" >"$work/debootstrap.log" 2>&1 ||
    fail "debootstrap fails" debootstrap.log
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
mkdir "$root/packages" "$root/source"
cp "$built"/*.deb "$root/packages"
cp -R "$built/weir-$VERSION/debian" "$built/weir-$VERSION/tests" "$root/source"

# in_chroot LOG COMMAND: in a shell there, in an environment of its own.
in_chroot()
{
    log=$1
    shift
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        chroot "$root" sh -euc "$*" >"$work/$log" 2>&1
}
# apt_install LOG PACKAGE...: names in the archive, or files.
apt_install()
{
    log=$1
    shift
    in_chroot "$log" "cd /packages && apt-get install -y --no-install-recommends $*"
}
dpkg_list()
{
    in_chroot "$1" "dpkg-query -W -f '\${Package} \${db:Status-Abbrev}\n'"
}

dpkg_list before.log
apt_install runtime.log ./libweir0_*.deb ./libweir-thpool0_*.deb ./weir-tools_*.deb ||
    fail "the packages for running programs cannot be installed" runtime.log
# shellcheck disable=SC2016 # for the shell in the chroot
in_chroot weirstat.log 'mkdir /figures && ldconfig -p | grep -q "libweir\.so\.0" && test ! -e /usr/include/weir.h
    weirstat --help
    status=0; weirstat -d /figures || status=$?; test "$status" -eq 1' || fail "weirstat does not run" weirstat.log
depends=$(sed -n 's/^Depends: *//p' "$root/source/debian/tests/control" | tr ', ' '\n\n' | grep -v weir | sort -u |
    tr '\n' ' ')
apt_install dev.log "./libweir-dev_*.deb $depends" || fail "libweir-dev cannot be installed" dev.log

# What needs more than weir is compiled by the tests of the tree.
# shellcheck disable=SC2016 # for the shell in the chroot
in_chroot examples.log '
    mkdir /examples && cd /examples && cp /usr/share/doc/libweir-dev/examples/*.c .
    grep -L -e "<uv\.h>" -e "<curl/curl\.h>" *.c | while read -r example; do
        echo "$example"
        cc -std=c11 -D_GNU_SOURCE -Wall -Werror "$example" -o "${example%.c}" $(pkg-config --cflags --libs weir)
    done
    ./resolve 127.0.0.1 | tee resolved && grep -q "^127.0.0.1: ok" resolved
    man=/usr/share/man/man7/weir.7.gz && test -f $man && gzip -t $man' || fail "an example fails" examples.log

tests=$(sed -n 's/^Tests: *//p' "$root/source/debian/tests/control" | tr ',\n' '  ')
for test in $tests; do
    in_chroot "test-$test.log" "cd /source && AUTOPKGTEST_TMP=\$(mktemp -d) && export AUTOPKGTEST_TMP && sh debian/tests/$test" ||
        fail "debian/tests/$test fails" "test-$test.log"
done

in_chroot purge.log "apt-get purge -y 'libweir*' weir-tools && apt-get purge -y --autoremove $depends" ||
    fail "the packages cannot be purged" purge.log
left=$(find "$root" -xdev -name '*weir*' ! -path "$root/packages/*" ! -path "$root/source/*" ! -path "$root/examples/*" \
    ! -path "$root/var/log/*" ! -path "$root/tmp/*")
[ -z "$left" ] || fail "purge leaves $left" purge.log
echo "check-deb-install: ok ($suite; $tests)"
