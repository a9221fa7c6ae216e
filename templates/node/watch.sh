# watch.sh ATTEMPT TASKS HOST OFFSET                  did rank 0 fail to bind its port?   0: yes   1: no
# watch.sh ATTEMPT TASKS HOST OFFSET MAIN SECONDS     the same, again and again for SECONDS
#
# Looks at what rank 0 wrote into ATTEMPT/out/HOST.log after OFFSET bytes (its port: MASTER_PORT); where an agent starts the ranks and holds
# the port for them, it leaves ATTEMPT/port-taken. The second form runs beside the ranks: it makes the rank map as soon as all have spoken,
# and when rank 0 could not bind and is gone it ends srun (process MAIN), since all others would wait for rank 0 for many minutes.
attempt=$1 tasks=$2 host=$3 offset=$4 main=${5-} seconds=${6-0}

failed() { # only the first part: a program that fails so has not said much yet
    [ ! -e "$attempt/port-taken" ] || return 0
    tail -c +$((offset + 1)) "$attempt/out/$host.log" 2>/dev/null | head -c 1000000 | LC_ALL=C awk '/^ *0: /' |
        sh "${0%/*}/taken.sh" "$MASTER_PORT"
}

gone() { # is rank 0's process over? Asked on its own host, and only after it said that it could not bind
    [ ! -e "$attempt/port-taken" ] || return 0
    pid=$(cat "$attempt/ranks.tsv" "$attempt/ranks.d/$host" 2>/dev/null | awk '$1 == "0" { print $4; exit }')
    [ -n "$pid" ] || return 1
    # shellcheck disable=SC2016 # $1 is for the shell over there
    answer=$(timeout 20 srun --export=ALL --overlap --nodes=1 --ntasks=1 --nodelist="$host" --mem=0 --gres=none --mpi=none --input=none \
        sh -c 'kill -0 "$1" 2>/dev/null && echo alive || echo gone' sh "$pid" 2>/dev/null)
    [ "$answer" = gone ]
}

if [ -z "$main" ]; then
    failed
    exit
fi
trap 'exit 1' TERM
end=$(($(date +%s) + seconds)) pause=1 next=0
while kill -0 "$main" 2>/dev/null && [ "$(date +%s)" -lt "$end" ]; do
    sleep 1
    if [ "$(date +%s)" -ge "$next" ]; then # on thousands of nodes each look opens thousands of files: ever more seldom
        sh "${0%/*}/ranks.sh" "$attempt" "$tasks" all
        next=$(($(date +%s) + pause))
        pause=$((pause * 2))
    fi
    if failed && gone && failed; then # its last words may name another port
        kill -TERM "$main"
        exit 0
    fi
done
exit 1
