# ranks.sh ATTEMPT TASKS [all]: where the ranks really ran, one file from what every node noted   0: done (or was)   1: not yet
#
# Writes ATTEMPT/ranks.tsv: rank TAB host TAB local rank TAB process id. With "all" only when every rank has spoken; without, from what is
# there. The nodes' own notes then go, so that a run never has more files than it needs.
attempt=$1 tasks=$2 all=${3-}

[ ! -e "$attempt/ranks.tsv" ] || exit 0
# By name, never by listing the folder: what other nodes put there may be invisible for half a minute on NFS
notes="$attempt/ranks.d/" awk '{
    note = ENVIRON["notes"] $1
    while ((getline line <note) > 0) print line
    close(note)
}' "$attempt/ordered" 2>/dev/null | LC_ALL=C sort -n >"$attempt/ranks.tsv.$$"
found=$(wc -l <"$attempt/ranks.tsv.$$")
if [ "$found" -eq 0 ] || { [ "$all" = all ] && [ "$found" -lt "$tasks" ]; }; then
    rm -f "$attempt/ranks.tsv.$$"
    exit 1
fi
mv "$attempt/ranks.tsv.$$" "$attempt/ranks.tsv" && rm -rf "$attempt/ranks.d" 2>/dev/null
