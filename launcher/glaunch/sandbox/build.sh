#!/bin/bash
# build.sh: makes the cluster, as a child of the sandbox's init. Its words go to /srv/log/up, its verdict is /srv/up or /srv/failed.
set -euo pipefail
umask 022
export HOME=/home/root
# shellcheck source=/dev/null
. /srv/settings
verdict() { if [ "$1" = 0 ]; then : >/srv/up; else : >/srv/failed; fi; }
trap 'verdict $?' EXIT
# shellcheck source=root.sh
. /srv/root.sh
cd /srv

# every daemon tells what kills it in its log; slurmctld forks before it can fail, so its exit code proves nothing
dead() {
    grep -h "fatal:" /srv/log/slurm* 2>/dev/null || { [ -e /srv/broken ] && echo "no host: $(tr '\n' ' ' </srv/broken)"; }
}

chown slurm: state log
chown -R munge: munge
echo ctl >/proc/sys/kernel/hostname
quiet_network
ip link set lo up
setpriv --reuid munge --regid munge --clear-groups munged --key-file=/run/munge/key --pid-file=/run/munge/pid --log-file=/run/munge/log --seed-file=/run/munge/seed
ip -batch net/switches
[ ! -s net/rates ] || tc -batch net/rates

for user in root ada bob; do
    (
        ssh-keygen -q -t ed25519 -N '' -C "$user@sandbox" -f "/home/$user/.ssh/id_ed25519"
        cp "/home/$user/.ssh/id_ed25519.pub" "/home/$user/.ssh/authorized_keys"
        chown -R "$user:" "/home/$user"
    ) &
done
install -m 755 /srv/glaunch /usr/local/bin/glaunch
for ((gpu = 0; gpu < GPU_FILES; gpu++)); do mknod -m 666 "etc/slurm/gpu$gpu" c 1 3; done # twins of /dev/null
# From 23.02 on slurmd wants systemd unless it has no cgroups at all; 22.05 knows no "disabled", and its v1 plugin asks for nothing.
case $(slurmctld -V) in *" "2[0-2].*) echo CgroupPlugin=cgroup/v1 ;; *) echo CgroupPlugin=disabled ;; esac >etc/slurm/cgroup.conf

# A slurmd that comes before its controller asks again only after seconds: nodes wait at this lock.
exec 9>gate
flock 9
while read -r name _; do
    unshare --net --uts --ipc --mount bash /srv/node.sh "$name" 9>&- &
done <nodes
if [ "$ACCOUNTING" = yes ]; then bash /srv/accounting.sh >log/accounting 2>&1 || { tail -n 5 log/accounting; exit 1; }; fi
slurmctld -c
until scontrol ping | grep -q UP; do
    ! dead || exit 1
    sleep 0.05
done
flock -u 9

wanted=$(wc -l <nodes)
until [ "$(timeout 5 sinfo -h -t idle -o %D 2>/dev/null)" = "$wanted" ]; do
    ! dead || exit 1
    sleep 0.1
done
while read -r name address _; do
    read -r kind key _ <"ssh/$name.pub"
    echo "$name,$address $kind $key"
done <nodes >etc/known_hosts
for user in root ada bob; do install -o "$user" -g "$user" -m 600 etc/known_hosts "/home/$user/.ssh/known_hosts"; done
