#!/bin/bash
# node.sh NAME: a node, started on the login host in network, UTS, IPC and mount namespaces of its own.
set -euo pipefail
umask 022
name=$1
trap 'echo "$name" >>/srv/broken' EXIT # not run once the last line has become another program
# shellcheck source=/dev/null
. /srv/settings
# shellcheck source=root.sh
. /srv/root.sh
while read -r node address port bridge mac; do [ "$node" != "$name" ] || break; done </srv/nodes
[ "$node" = "$name" ]
echo "$name" >/proc/sys/kernel/hostname
quiet_network

# The sandbox's init is process 1 here: this link's other end goes to its network, and there to the switch of this node.
{
    echo "link add eth0 address $mac type veth peer name $port netns 1"
    printf '%s\n' "link set lo up" "addr add $address/16 dev eth0" "link set eth0 up"
    cat /srv/net/neighbours
} | ip -batch -
nsenter --net=/proc/1/ns/net ip link set "$port" master "$bridge" up
if [ -n "$RATE" ]; then
    tc qdisc add dev eth0 root tbf rate "$RATE" burst 64kb latency 20ms
    nsenter --net=/proc/1/ns/net tc qdisc add dev "$port" root tbf rate "$RATE" burst 64kb latency 20ms
fi

own_root /.sandbox/disk /srv/fstab-node
enter_root
[ -f "/srv/ssh/$name" ] || ssh-keygen -q -t ed25519 -N '' -C "$name" -f "/srv/ssh/$name"
# Process ids of its own come last: kill -9 of the id in /srv/node/NAME is a node that lost its power. bash reaps, which sleep would not.
# shellcheck disable=SC2016
exec unshare --pid --fork --kill-child bash -c '
    read -r pid _ </proc/self/stat
    echo "$pid" >"/srv/node/$0"
    { mount -t proc proc /proc && /usr/sbin/sshd -f /etc/ssh/sshd_config -h "/srv/ssh/$0" -E "/srv/log/sshd-$0" &&
        flock -s /srv/gate slurmd; } || { echo "$0" >>/srv/broken; exit 1; }
    while :; do sleep 1d & wait $!; done' "$name"
