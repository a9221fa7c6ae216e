#!/bin/bash
# init.sh DIR ROOT: the first process of the sandbox's namespaces. Its end is the end of all that lives in them.
# Standard input is a pipe that `up` holds: end of file before the word "keep" means that `up` failed or was killed.
set -euo pipefail
umask 022
dir=$1 machine=$2
read -r -a self </proc/self/stat # /proc is still the machine's: who we are out there, and since when
echo "${self[0]} ${self[21]}" >"$dir/init.new"
mv "$dir/init.new" "$dir/init"
# shellcheck source=/dev/null
. "$dir/srv/settings"
# shellcheck source=root.sh
. "$dir/srv/root.sh"

mount -t tmpfs -o mode=700 sandbox "$dir/mnt"
cd "$dir/mnt"
mkdir -m 755 base layer bare disk
mount --bind "$machine" base
mount -o remount,bind,ro base
cp -a ../srv/layer/. layer/ # an overlay refuses two layers of which one lies in the other
while read -r point; do
    mkdir -p "layer$point" "bare$point"
    mount --bind "${machine%/}$point" "base$point"
    mount -o remount,bind,ro "base$point"
done <../srv/mounts
# whiteouts: what they name is not there for nodes that have this layer
while read -r folder; do
    folder=$(realpath -e "${machine%/}$folder" 2>/dev/null) || continue # /bin may be a link; a folder here would hide it
    folder=${folder#"${machine%/}"}
    for program in "${machine%/}$folder"/{python,pypy,micropython}*; do
        [ -e "$program" ] || [ -L "$program" ] || continue
        [ ! -e "bare$folder/${program##*/}" ] || continue
        mkdir -p "bare$folder"
        mknod "bare$folder/${program##*/}" c 0 0
    done
done <../srv/pythons
own_root "$dir/mnt/disk" "$dir/srv/fstab"
mkdir .sandbox/{base,layer,bare,disk}
mount --rbind ../../base .sandbox/base
mount --bind ../../layer .sandbox/layer
mount --bind ../../bare .sandbox/bare
enter_root
exec bash /srv/keep.sh
