#!/bin/bash
# inside.sh ROOT COMMAND...: run COMMAND in the root file system ROOT, in a copy of this checkout, as root with a clean environment.
# All of it lives in namespaces of its own, which end with this process, even by kill -9: no mount, process or listener is left, and
# nothing beyond loopback is reached. ROOT is read-only; /tmp, /var/tmp, /run and /root are empty. Recordings that lie beside the
# checkout (../shared, or GLAUNCH_SHARED) do so inside too.
# Names of failed tests go to descriptor 9, where one is open.
set -euo pipefail
{ : >&9; } 2>/dev/null || exec 9>/dev/null
root=$1 checkout=$(cd "$(dirname "$0")/../.." && pwd)
shared=${GLAUNCH_SHARED:-$checkout/../shared}
shift
# shellcheck disable=SC2016
exec setpriv --pdeathsig KILL unshare --net --uts --ipc --pid --mount --fork --kill-child=KILL bash -euc '
root=$1 checkout=$2 shared=$3
shift 3
ip link set lo up
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
for own in tmp var/tmp dev/shm; do mount -t tmpfs -o mode=1777 own "$root/$own"; done
for own in run root src; do mount -t tmpfs -o mode=755 own "$root/$own"; done
mkdir "$root/src/glaunch" "$root/run/lock" "$root/run/old"
cd "$checkout"
tar --exclude=./.venv --exclude=./.git --exclude=__pycache__ --exclude="./.*_cache" -cf - . | tar -C "$root/src/glaunch" --no-same-owner -xf -
[ ! -d "$shared" ] || { mkdir "$root/src/shared"; mount --rbind "$shared" "$root/src/shared"; }
# A change of root by chroot alone would not hold: what enters the sandbox comes out at the root of its mount namespace.
cd "$root"
pivot_root . run/old
cd /src/glaunch
umount -l /run/old
env -i --default-signal=INT,QUIT PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb CI="${CI-}" FAILED_TESTS=/proc/self/fd/9 "$@"
exit $? # no exec: this shell is the first process, and reaps what others leave behind
' inside "$root" "$checkout" "$shared" "$@"
