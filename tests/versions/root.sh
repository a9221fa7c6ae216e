#!/bin/bash
# root.sh VERSION DIR: make DIR, a root file system of Debian with that Slurm (24.11 or 26.05), with munge, sshd, a Python of its own and
# the Debian packages that glaunch and its tests run on. run.sh keeps it as long as this text, and the headers beside it, stay the same.
# Needs root, debootstrap, and apt set to a mirror of Debian; nothing of this machine is changed, and no service starts.
# MIRROR: another mirror than apt's. PYTHON: a Python with pip, which fetches pyslurm's source (26.05 only).
set -euo pipefail
version=$1 root=$2
here=$(cd "$(dirname "$0")" && pwd)
case $version in
    24.11) suite=trixie ;;
    26.05) suite=forky ;;
    *) echo "root.sh: no recipe for Slurm $version" >&2 && exit 2 ;;
esac
PYSLURM=25.11.2 # the newest on PyPI
PYSLURM_SHA256=6e0e4bc639ea3177591b102b77c1dd8df55a9e411ac42ef339a4adb3908cca34

for_slurm=(slurmctld slurmd slurm-client slurmdbd mariadb-{server,client}-core munge openssh-server openssh-client iproute2 util-linux-extra procps)
for_glaunch=(python3-{click,jinja2,numpy,paramiko,rich,yaml})
for_tests=(python3-{pytest,pytest-timeout,hypothesis,packaging,setuptools} environment-modules)
for_pyslurm=()
[ "$version" != 26.05 ] || for_pyslurm=(libslurm-dev gcc libc6-dev python3-dev python3-wheel cython3)

{ : >&3; } 2>/dev/null || exec 3>&1
say() { printf '%s (%d s)\n' "$*" "$SECONDS" >&3; } # to those who wait; all the rest is for when it fails

mirror() { # the one that apt is set to
    local codename
    # shellcheck source=/dev/null
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    apt-get indextargets --format "\$(REPO_URI)" "Codename: $codename" | head -n 1
}

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

base() {
    local from=${MIRROR:-$(mirror)}
    [ -n "$from" ] || { echo "root.sh: apt knows no mirror of Debian; name one with MIRROR=" >&2 && exit 1; }
    # Debian 12's debootstrap does not know the newest names; all of them are made as sid is
    debootstrap --variant=minbase "$suite" "$root" "$from" /usr/share/debootstrap/scripts/sid
    # A mirror may be frozen, so its lists out of date: signatures are checked all the same. Nobody reads manuals here.
    printf '%s\n' 'APT::Install-Recommends "false";' 'Acquire::Retries "3";' 'Acquire::Check-Valid-Until "false";' \
        'Acquire::Languages "none";' 'Dpkg::Use-Pty "0";' >"$root/etc/apt/apt.conf.d/01glaunch"
    printf '%s\n' force-unsafe-io 'path-exclude=/usr/share/doc/*' 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/locale/*' \
        >"$root/etc/dpkg/dpkg.cfg.d/01glaunch"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    printf '127.0.0.1 localhost\n' >"$root/etc/hosts"
    mkdir "$root/src"
    mount -t proc proc "$root/proc"
    say "a plain $suite stands"
}

packages() {
    inside apt-get -q update
    inside apt-get -q install -y "${for_slurm[@]}" "${for_glaunch[@]}" "${for_tests[@]}" "${for_pyslurm[@]}"
    inside apt-get clean
    inside useradd --system --no-create-home mysql # comes with mariadb-server, which would also make a database that nobody asks
    local is
    is=$(inside slurmctld -V)
    case $is in
        *" $version."*) say "$is, $(inside python3 -V)" ;;
        *) echo "root.sh: $suite has $is by now, not $version: the recipe, and the headers for pyslurm, must be looked at" >&2 && exit 1 ;;
    esac
}

# pyslurm builds against the Slurm of its own number only. These headers give 26.05's calls the form of 25.11; one private struct that
# pyslurm repeats by hand has a field more in 26.05.
pyslurm() {
    local build=$root/usr/src/pyslurm
    mkdir -p "$build"
    printf 'pyslurm==%s --hash=sha256:%s\n' "$PYSLURM" "$PYSLURM_SHA256" >"$build/wanted"
    "${PYTHON:-python3}" -m pip -q --disable-pip-version-check download --no-deps --no-binary pyslurm --no-build-isolation -d "$build" -r "$build/wanted"
    tar -C "$build" --strip-components=1 -xzf "$build/pyslurm-$PYSLURM.tar.gz"
    cp -r "$here/pyslurm-on-26.05" "$build/headers"
    sed -i 's/^    bitstr_t \*node_bitmap$/&\n    uint32_t *node_ranks/' "$build/pyslurm/slurm/extra.pxi"
    # shellcheck disable=SC2016
    inside sh -ec 'cd /usr/src/pyslurm
        export SLURM_INCLUDE_DIR=$PWD/headers SLURM_LIB_DIR=/usr/lib/$(gcc -print-multiarch) PYSLURM_BUILD_JOBS=2 CFLAGS="-O0 -g0"
        python3 setup.py build -j2
        cp -r build/lib*/pyslurm /usr/lib/python3/dist-packages/
        cd / && rm -r /usr/src/pyslurm # beside its source the built one is not found'
    is=$(inside env PYSLURM_DISABLE_AUTO_INIT=1 python3 -c 'import pyslurm; print(pyslurm.__version__, "for", *pyslurm.slurm_api_version())')
    say "pyslurm $is"
}

base
packages
[ "$version" != 26.05 ] || pyslurm
umount "$root/proc"
