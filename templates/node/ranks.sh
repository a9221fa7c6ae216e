# ranks.sh ATTEMPT TASKS [all]: where the ranks really ran, one file from what every node noted   0: done (or was)   1: not yet
#
# Writes ATTEMPT/ranks.tsv: rank TAB host TAB local rank TAB process id. With "all" it waits for no one: every rank must have spoken;
# without, it takes what is there. The nodes' own notes then go, so that a run never has more files than it needs.
attempt=$1 tasks=$2 all=${3-}

[ -d "$attempt/ranks.d" ] || exit 0
found=$(cat "$attempt/ranks.d"/* 2>/dev/null | wc -l)
[ "$found" -gt 0 ] || exit 1
[ "$all" != all ] || [ "$found" -ge "$tasks" ] || exit 1
cat "$attempt/ranks.d"/* | LC_ALL=C sort -n >"$attempt/ranks.tsv.$$" && mv "$attempt/ranks.tsv.$$" "$attempt/ranks.tsv" && rm -rf "$attempt/ranks.d"
