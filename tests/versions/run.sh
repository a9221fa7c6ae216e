#!/bin/bash
# run.sh [24.11|26.05]... [-- PYTEST'S WORDS]: the tests on a real Slurm, on these versions of it (both, if none is named). `make test-versions`.
#
#   root.sh     the recipe of one root file system: Debian's Slurm of that version, its Python, and for 26.05 a pyslurm made for it
#   inside.sh   runs a command in one, in namespaces of its own: pytest, glaunch, Slurm, sshd and the jobs all run there
#   check_root.py   the other way in: `glaunch sandbox up --slurm-root` from this machine's own Python
#   pyslurm-on-26.05/   headers with which pyslurm 25.11, the newest on PyPI, builds for Slurm 26.05
#
# VERSIONS_DIR (/var/cache/glaunch) keeps the roots, 1 GB each; one is made anew when its recipe's text changes. The versions
# go side by side. Killed at any moment it leaves no mount and no process, only that folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${VERSIONS_DIR:-/var/cache/glaunch}
ALL=(24.11 26.05)
LIMIT_S=1500

[ "$(id -u)" = 0 ] || { echo "run.sh: needs root: it makes root file systems, namespaces and mounts" >&2 && exit 1; }
mkdir -p "$cache"
if [ "${1-}" != --inside ]; then # all that follows ends with this process
    setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child=KILL --mount-proc "$0" --inside "$@" </dev/null &
    trap 'kill -KILL $!; exit 130' INT TERM HUP
    wait $! && exit 0 || exit $?
fi
shift

versions=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do versions+=("$1") && shift; done
[ "${1-}" != -- ] || shift
[ ${#versions[@]} -gt 0 ] || versions=("${ALL[@]}")

# root_of VERSION: where its root is; the name changes with the recipe.
root_of() {
    local parts=("$here/root.sh")
    [ "$1" != 26.05 ] || parts+=("$here"/pyslurm-on-26.05/slurm/*.h)
    printf '%s/slurm-%s-%s\n' "$cache" "$1" "$(cat "${parts[@]}" | sha256sum | cut -c 1-12)"
}

# build VERSION: its root, unless it is there; those of older recipes go, but for one that somebody uses. From then on it is in use (8).
build() {
    local root lock
    root=$(root_of "$1")
    for lock in "$cache/slurm-$1"-*.lock; do
        [ ! -e "$lock" ] || [ "$lock" = "$root.lock" ] ||
            flock --nonblock "$lock" rm -rf --one-file-system "${lock%.lock}" "${lock%.lock}.new" "${lock%.lock}.log" "$lock" || :
    done
    exec 8>"$root.lock"
    flock --shared 8
    [ -d "$root" ] || flock 8 # one makes it, the others wait
    if [ ! -d "$root" ]; then
        rm -rf --one-file-system "$root.new"
        if ! unshare --mount "$here/root.sh" "$1" "$root.new" 3>&1 >"$root.log" 2>&1 8>&-; then
            tail -n 20 "$root.log"
            echo "no root for Slurm $1; all that was said is in $root.log"
            return 1
        fi
        mv "$root.new" "$root"
    fi
    flock --shared 8
}

# try VERSION WORDS...: the tests on it; on the newest, with the newest Python, those without a Slurm too.
try() {
    local root version=$1 began=$SECONDS
    root=$(root_of "$version")
    shift
    if [ $# = 0 ]; then
        set -- -m "slurm or sshd"
        # without a repository and shellcheck, of which this machine's own tests make use
        [ "$version" != 26.05 ] || set -- -m "not browser and not ibsim" -k "not shellcheck and not good_script" --ignore=tests/test_wheel.py --ignore=tests/versions
    fi
    echo "its tests begin, on $(readlink "$root/usr/bin/python3")"
    # shellcheck disable=SC2016
    timeout --foreground -k 10 "$LIMIT_S" "$here/inside.sh" "$root" \
        sh -c 'python3 -m compileall -q launcher tests && exec python3 -m pytest -rsfE -p no:cacheprovider "$@"' pytest "$@"
    echo "all well ($((SECONDS - began)) s)"
}

# from_outside: one launch in each root, by this checkout's own Python (PYTHON).
from_outside() {
    local version
    export ROOTS=''
    for version in "${versions[@]}"; do ROOTS+="$version $(root_of "$version")"$'\n'; done
    echo "glaunch sandbox up --slurm-root"
    PYTHONPATH=$here/../../launcher "${PYTHON:-python3}" -m pytest -q -rsfE -p no:cacheprovider "$here/check_root.py"
}

# Side by side: the tests wait more than they compute, and pass on a busy machine. What failed is named at the end, for who reads
# only that (9: tests/conftest.py writes it there; FAILED_TESTS: the file in which `make test` keeps such names).
failed=()
names=$(mktemp "$cache/failed.XXXXXX")
trap 'rm -f "$names"' EXIT
declare -A job
for version in "${versions[@]}"; do
    (build "$version" && try "$version" "$@") 9>>"$names" 2>&1 | sed -u "s/^/$version  /" &
    job[$version]=$!
done
for version in "${versions[@]}"; do wait "${job[$version]}" || failed+=("Slurm $version"); done
[ ${#failed[@]} -gt 0 ] || from_outside || failed+=("--slurm-root")
if [ ${#failed[@]} -gt 0 ]; then
    cat "$names" >&2
    cat "$names" >>"${FAILED_TESTS:-/dev/null}"
    echo "run.sh: failed: ${failed[*]}" >&2
    exit 1
fi
echo "Slurm ${versions[*]}: all well, $SECONDS s in all"
