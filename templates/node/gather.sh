# gather.sh ATTEMPT CAP_BYTES [last]: brings this node's $GLAUNCH_LOG_DIR home as ATTEMPT/logs/HOST.tar.gz; prints one line of JSON about it
#
# Up to CAP_BYTES of log are taken. Beyond that, a file that alone is more than a quarter of the cap is cut to its head and its
# tail, and then the oldest are left out until the rest fits; the line of JSON says which. With "last" (the job's end) the folder
# on the node goes when all of it is safely home: /tmp is often memory.
attempt=$1 cap=$2 last=${3-} host=${SLURMD_NODENAME:-$(uname -n)} dir=${GLAUNCH_LOG_DIR-}
archive=logs/$host.tar.gz part=$attempt/logs/$host.tar.gz.part.$$ work=$attempt/logs/.$host.$$
export LC_ALL=C

quoted() { # a text as a JSON string; a file's name is any bytes, so what is no plain character becomes "?"
    printf '%s' "$1" | tr -c '[:print:]' '?' | awk '{ gsub(/[\\"]/, "\\\\&"); printf "\"%s\"", $0 } END { if (!NR) printf "\"\"" }'
}

report() { # REASON DETAIL [SIZE_BYTES]
    [ -n "${3-}" ] && name=$archive || name=
    printf '{"host": %s, "how": "gathered", "archive": %s, "size_bytes": %s, "reason": "%s", "detail": %s}\n' \
        "$(quoted "$host")" "$(quoted "$name")" "${3:-0}" "$1" "$(quoted "$2")"
    rm -rf "$work" "$part"
    exit 0
}

walk() { # "size mtime path" of every regular file below $1; links say nothing here, and what they point to may be a secret
    for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        case $entry in
        *"$newline"*) continue ;; # a list of lines cannot name it
        esac
        if [ -L "$entry" ]; then
            continue
        elif [ -d "$entry" ]; then
            (walk "$entry")
        elif [ -f "$entry" ]; then
            stat --printf '%s %Y ' "$entry" && printf '%s\n' "$entry"
        fi
    done
}
newline='
'

pack() { # tar's arguments; 0 when all was read, or merely grew while it was read (tar's 1)
    code=$({ {
        tar -cf - "$@" 2>/dev/null
        echo $? >&3
    } | gzip -c >"$part"; } 3>&1)
    [ "${code:-9}" -le 1 ] && gzip -t "$part" 2>/dev/null
}

keep_part() { # the finished archive takes its name in one step: what is called .tar.gz is whole
    mv "$part" "$attempt/$archive" || report broken "cannot write $attempt/$archive"
}

[ -n "$dir" ] || report no-logs "GLAUNCH_LOG_DIR is not set"
# shellcheck disable=SC2012 # one known name
case $(ls -ldn "$dir" 2>/dev/null | awk '{ print substr($1, 1, 10), $3; exit }') in
"drwx------ $(id -u)") ;;
"") report no-logs "$dir is not there: no rank made it" ;;
*) report no-logs "$dir is not this user's own" ;;
esac
cd "$dir" || report broken "cannot go to $dir"

total=$(du -sb . | awk '{ print $1 }')
if [ "$total" -le "$cap" ]; then
    pack . || report broken "cannot pack $dir into $attempt/$archive: is the disk full?"
    keep_part
    [ "$last" != last ] || { cd / && rm -rf "$dir"; }
    report "" "" "$(wc -c <"$attempt/$archive" | tr -d ' ')"
fi

mkdir "$work" "$work/cut" || report broken "cannot write in $attempt/logs"
walk . | sort -k2,2nr >"$work/all"
# big: to be cut; take: whole, newest first, as many as fit beside what the cut ones need; left: the rest
lists=$work awk -v cap="$cap" '
    BEGIN { work = ENVIRON["lists"] }
    { size = $1; sub(/^[0-9]+ [0-9]+ /, ""); path = $0 }
    size > cap / 4 && used + cap / 4 <= cap { used += cap / 4; print path >(work "/big"); next }
    used + size <= cap { used += size; print path >(work "/take"); next }
    { print path >(work "/left") }
' "$work/all"
touch "$work/big" "$work/take" "$work/left"
half=$((cap / 8))
while IFS= read -r path; do
    mkdir -p "$work/cut/${path%/*}" && {
        head -c "$half" "$path"
        printf '\n[glaunch: of %s bytes the first and the last %s are kept]\n' "$(wc -c <"$path" | tr -d ' ')" "$half"
        tail -c "$half" "$path"
    } >"$work/cut/$path"
done <"$work/big"
pack -T "$work/take" -C "$work/cut" . || report broken "cannot pack $dir into $attempt/$archive: is the disk full?"
keep_part
report too-large "$total bytes, at most $cap are gathered; cut to head and tail: $(awk '{ printf "%s%s", sep, $0; sep = ", " }' "$work/big"); left out, oldest first: $(
    awk 'NR <= 5 { printf "%s%s", sep, $0; sep = ", " } END { if (NR > 5) printf " and %d more", NR - 5; if (!NR) printf "none" }' "$work/left"
)" "$(wc -c <"$attempt/$archive" | tr -d ' ')"
