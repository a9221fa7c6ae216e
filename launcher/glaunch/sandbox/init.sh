#!/bin/bash
# init.sh DIR ROOT: the first process of the sandbox's namespaces. Its end is the end of all that lives in them.
# Standard input is a pipe that `up` holds: end of file before the word "keep" means that `up` failed or was killed.
set -euo pipefail
umask 022
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
dir=$1 machine=$2
read -r -a self </proc/self/stat # /proc is still the machine's: who we are out there, and since when
echo "${self[0]} ${self[21]}" >"$dir/init.new"
mv "$dir/init.new" "$dir/init"
# shellcheck source=/dev/null
. "$dir/srv/settings"
# shellcheck source=root.sh
. "$dir/srv/root.sh"

cd "$dir"
mount -t tmpfs -o mode=700 sandbox mnt
cd "$dir/mnt"
mkdir base layer disk
mount --bind "$machine" base
mount -o remount,bind,ro base
cp -a ../srv/layer/. layer/ # an overlay refuses two layers of which one lies in the other
while read -r point; do
    mount --bind "${machine%/}$point" "base$point"
    mount -o remount,bind,ro "base$point"
done <../srv/mounts
own_root "$dir/mnt/disk" "$dir/srv" "$dir/home"
mount -t proc proc proc
bind_folders "$dir/srv/binds"
mkdir .sandbox/{base,layer,disk}
mount --rbind ../../base .sandbox/base
mount --bind ../../layer .sandbox/layer
enter_root
exec bash /srv/keep.sh
