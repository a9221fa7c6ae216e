# agent.sh ATTEMPT FOLDER: runs once on a node where something other than srun starts the ranks (torchrun, accelerate)
#
# Signals go where they are meant: TERM and INT to the starter, which ends its ranks; all others to the ranks, as under srun, and never to the
# starter, which would die of them. It ends with the ranks' exit code, which torchrun does not pass on (it says it in its summary), and after
# the last line is written.
# shellcheck disable=SC2034,SC2317 # what the form reads, and calls
gl_attempt=$1 gl_folder=$2 gl_host=${SLURMD_NODENAME:-$(uname -n)}
[ -z "${gl_enter-}" ] || exec sh "$gl_folder/node/container.sh" enter "$gl_attempt" "$gl_folder" agent.sh # comes back inside

say() { printf 'glaunch: %s: %s\n' "$gl_host" "$*" >&2; }

# Some Slurms send a signal to this process only (proctrack/cgroup), some to all below it too (linuxproc): one that is there for nothing else
# tells which. "Z": it is dead, and nobody has asked for its end yet.
told_all() {
    for gl_look in 1 2 3 4 5; do # on a busy node some time lies between the one and the other
        sleep 0.1
        case $(cat "/proc/$gl_canary/stat" 2>/dev/null) in
        *") Z "* | '')
            new_canary
            return 0
            ;;
        esac
    done
    return 1
}

new_canary() { # while there is something to tell; none is left behind
    [ -n "$gl_starter" ] || return 0
    sleep 2000000 &
    gl_canary=$!
}

pass_on() { # SIGNAL: to the ranks of this node
    ! told_all || return 0
    for gl_note in "$gl_agent_dir"/rank.*; do
        [ -e "$gl_note" ] && read -r gl_pid <"$gl_note" && kill -s "$1" "$gl_pid" 2>/dev/null
    done
}

end_it() { # SIGNAL
    [ -z "$gl_told" ] || return 0
    gl_told=$1
    told_all || [ -z "$gl_starter" ] || kill -s "$1" "$gl_starter" 2>/dev/null
}

over() { # FILE…: is none of them there any more?
    for gl_file in "$@"; do [ ! -e "$gl_file" ] || return 1; done
}

# What the starter says of its own goes on to the node's output; the first exit code in its summary is that of the rank that failed first.
listen() {
    trap '' HUP INT QUIT TERM USR1 USR2 ALRM
    # shellcheck disable=SC2016 # the program of awk
    notes=$gl_agent_dir sh "$gl_folder/node/reader.sh" '
        BEGIN { notes = ENVIRON["notes"]; ORS = "" }
        { print ($0 "\n"); fflush() }
        /Root Cause/ { code = "" }
        code == "" && match($0, /exitcode *: *-?[0-9]+/) { code = substr($0, RSTART, RLENGTH); sub(/.*: */, "", code) }
        tolower($0) ~ /in ?use/ { print ($0 "\n") >(notes "/in-use") }
        END { if (code != "") print ((code < 0 ? 128 - code : code) "\n") >(notes "/code") }
    ' <"$gl_agent_dir/said"
    rm -f "$gl_agent_dir/said"
}

agent() { # COMMAND…: runs it; sets gl_code
    mkfifo -m 600 "$gl_agent_dir/said" || exit 1
    listen &
    (
        # shellcheck disable=SC2086 # a list
        trap '' $gl_for_ranks # task.sh gives them back to the ranks
        exec "$@" >"$gl_agent_dir/said" 2>&1
    ) &
    gl_starter=$!
    new_canary
    while :; do # a signal ends the wait, not the starter
        wait "$gl_starter"
        gl_code=$?
        kill -0 "$gl_starter" 2>/dev/null || break
    done
    gl_starter=
    kill -s KILL "$gl_canary" 2>/dev/null # a TERM may come before it is a program of its own, and be lost
    gl_tries=0 # Slurm ends what is left when this shell ends: the last words first
    until over "$gl_agent_dir"/said "$gl_agent_dir"/pipe.* || [ "$gl_tries" -ge 50 ]; do
        sleep 0.1
        gl_tries=$((gl_tries + 1))
    done
    if [ "$gl_code" -ne 0 ] && [ -s "$gl_agent_dir/code" ]; then gl_code=$(cat "$gl_agent_dir/code"); fi
    case $gl_told in
    TERM) gl_code=143 ;;
    INT) gl_code=130 ;;
    esac
}

gl_starter='' gl_told='' gl_canary=''
gl_agent_dir=$(mktemp -d "${TMPDIR:-/tmp}/glaunch-agent.XXXXXXXX") || {
    say "cannot make a folder in ${TMPDIR:-/tmp}"
    exit 1
}
export gl_agent_dir
trap 'end_it TERM' TERM
trap 'end_it INT' INT
gl_for_ranks='HUP QUIT USR1 USR2 ALRM'
for gl_signal in $gl_for_ranks; do
    # shellcheck disable=SC2064 # each its own name, now
    trap "pass_on $gl_signal" "$gl_signal"
done

# The shape of this node, and of all
gl_nodes=$(($(wc -l <"$gl_attempt/ordered")))
gl_tasks=$(($(wc -l <"$gl_attempt/hosts")))
# shellcheck source=/dev/null
. "$gl_folder/node/in-order.sh"
gl_node_rank=$(node_rank)
gl_local_size=$(node_size)

# shellcheck source=/dev/null
. "$gl_folder/node/form.sh"
# shellcheck source=/dev/null
. "$gl_folder/command.sh"
cd "${gl_work_dir:-.}" || exit 72
# shellcheck source=/dev/null
. "$gl_folder/starter.sh"
form_agent "$@"
if [ "$gl_node_rank" = 0 ] && [ -e "$gl_agent_dir/in-use" ] && sh "$gl_folder/node/taken.sh" "$MASTER_PORT" <"$gl_agent_dir/in-use"; then
    : >"$gl_attempt/port-taken"
fi
# The first that fails by itself: making a link is atomic, and carries its content
[ "$gl_code" -eq 0 ] || [ -n "$gl_told" ] || ln -s "$gl_code" "$gl_attempt/failed" 2>/dev/null
rm -rf "$gl_agent_dir"
exit "$gl_code"
