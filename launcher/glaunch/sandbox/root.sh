# shellcheck shell=bash
# shellcheck disable=SC2164  # set -e in both
# Sourced by init.sh and node.sh: how a host of the sandbox gets a root file system of its own (mounts.py says what is in it).

# own_root HERE FSTAB: this host's disk at HERE, its root at HERE/root, where the cwd then is.
own_root() {
    mount -t tmpfs -o "mode=755,size=${DISK_MIB}m" disk "$1"
    cd "$1"
    mkdir root upper work log uppers works
    mkdir -m 1777 tmp vartmp
    for ((number = 1; number <= POINTS; number++)); do mkdir "uppers/$number" "works/$number"; done
    mount -a -T "$2"
    mkdir -m 700 root/.sandbox root/.sandbox/old root/run/sshd
    cd root
}

# enter_root: the cwd becomes the root of this mount namespace; the one before is gone when the last program that sees it ends.
enter_root() {
    pivot_root . .sandbox/old
    cd /
    umount -l /.sandbox/old
}

# quiet_network: no IPv6 in this network. 128 nodes' neighbour discovery would flood every switch.
quiet_network() {
    local each
    for each in all default; do [ ! -e "/proc/sys/net/ipv6/conf/$each" ] || echo 1 >"/proc/sys/net/ipv6/conf/$each/disable_ipv6"; done
}
