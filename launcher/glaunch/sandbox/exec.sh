#!/bin/bash
# DIR/exec [-u USER] [-n NODE] [CMD…]: `glaunch sandbox exec` without the start of a Python. No CMD: a login shell.
set -euo pipefail
dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) user=root node=
while getopts +u:n: option; do case $option in u) user=$OPTARG ;; n) node=$OPTARG ;; *) exit 2 ;; esac; done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- bash -l
read -r init since <"$dir/init"
stat=$(cat "/proc/$init/stat" 2>/dev/null) || stat=
read -r -a field <<<"${stat##*) }"
[ "${field[19]-}" = "$since" ] || { echo "$dir is not up" >&2; exit 1; }
set -- setpriv --reuid "$user" --regid "$user" --init-groups --pdeathsig TERM env -i "--chdir=/home/$user" --default-signal=INT,QUIT HOME="/home/$user" \
    USER="$user" LOGNAME="$user" SHELL=/bin/bash TERM="${TERM-dumb}" LANG=C.UTF-8 SLURM_CONF=/etc/slurm/slurm.conf \
    PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin "$@"
# shellcheck disable=SC2016
[ -z "$node" ] || set -- setpriv --pdeathsig TERM sh -c 'exec nsenter -t "$(cat "/srv/node/$0")" -n -u -i -m -p -- "$@"' "$node" "$@"
trap '' INT QUIT # ^C is for the command, which has it back by --default-signal; nsenter's own end would add a TERM
exec nsenter -t "$init" -n -u -i -m -p -- "$@"
