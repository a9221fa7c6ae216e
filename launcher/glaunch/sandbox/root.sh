# shellcheck shell=bash
# Sourced by init.sh and node.sh: how a host of the sandbox gets a root file system of its own.

# own_root HERE SRV HOME: mounts at HERE (beside HERE/../base, the machine's root, read-only, and HERE/../layer, the files of the sandbox)
# this host's disk, and on it HERE/root: what the machine has, with the host's own changes on top. Nothing that is written in it can
# reach the machine. Called with the cwd anywhere; leaves it in HERE/root. All names are relative: an overlay takes no comma or colon.
own_root() {
    local here=$1 srv=$2 home=$3 count=0 point
    mount -t tmpfs -o "mode=755,size=${DISK_MIB}m" disk "$here"
    cd "$here"
    mkdir root upper work log
    mkdir -m 1777 tmp vartmp
    mount -t overlay overlay -o lowerdir=../layer:../base,upperdir=upper,workdir=work root
    while read -r point; do # file systems below /usr, /opt, … that the machine mounts by themselves
        count=$((count + 1))
        mkdir "upper$count" "work$count"
        mount -t overlay overlay -o "lowerdir=../base$point,upperdir=upper$count,workdir=work$count" "root$point"
    done <"$srv/mounts"
    mkdir -p root/{proc,sys,dev,run,root,home,srv,tmp,var/tmp,var/log,etc/slurm,etc/glaunch}
    mount --bind tmp root/tmp
    mount --bind vartmp root/var/tmp
    mount --bind log root/var/log
    mount -t tmpfs -o mode=755 run root/run
    mount -t tmpfs -o mode=755 root root/root
    mount -t sysfs sysfs root/sys # this network's links only; no cgroups: slurmd is told to do without
    mount --bind /dev root/dev
    mount --bind /dev/pts root/dev/pts
    mount -t tmpfs -o mode=1777,nosuid,nodev shm root/dev/shm
    mount --bind "$home" root/home
    mount --bind "$srv" root/srv
    mount --bind "$srv/etc/slurm" root/etc/slurm
    mount --bind "$srv/etc/glaunch" root/etc/glaunch
    mkdir -p root/run/{sshd,munge} root/.sandbox/old
    chmod 700 root/.sandbox
    cd root
}

# bind_folders LIST: those folders of the machine, read-only, at the same paths (below /home, /root, /tmp too, which hosts have for themselves).
bind_folders() {
    local path
    while read -r path; do
        if [ -d "$path" ]; then mkdir -p ".$path"; else
            mkdir -p ".${path%/*}"
            [ -e ".$path" ] || : >".$path"
        fi
        mount --bind "$path" ".$path"
        mount -o remount,bind,ro ".$path"
    done <"$1"
}

# enter_root: the cwd becomes the root of this mount namespace; the one before is gone when the last program that sees it ends.
enter_root() {
    pivot_root . .sandbox/old
    cd /
    umount -l /.sandbox/old
}
