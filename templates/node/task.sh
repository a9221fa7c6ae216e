# task.sh ATTEMPT FOLDER: what starts as every rank, whoever starts it (srun, torchrun, mpirun, …); becomes the user's program
#
# The form tells which rank this is and sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and NODE_RANK where its own starter does not
# (MASTER_ADDR, MASTER_PORT, GLAUNCH_LOG_DIR come from the job's script). Makes the log folder on this node and records which rank this is
# on which host.
# shellcheck disable=SC2154 # gl_rank and gl_local come from the form
gl_attempt=$1 gl_folder=$2 gl_host=${SLURMD_NODENAME:-$(uname -n)}
[ -z "${gl_enter-}" ] || exec sh "$gl_folder/node/container.sh" enter "$gl_attempt" "$gl_folder" task.sh # comes back inside

# For forms too: node_rank, node_size
# shellcheck source=/dev/null
. "$gl_folder/node/in-order.sh"

# For forms whose ranks are srun's own tasks.
slurm_rank() {
    RANK=$SLURM_PROCID WORLD_SIZE=${SLURM_STEP_NUM_TASKS:-$SLURM_NTASKS} LOCAL_RANK=$SLURM_LOCALID NODE_RANK=$(node_rank)
    if [ -n "${GLAUNCH_COMPONENT-}" ]; then
        # Slurm numbers the nodes component by component, and lists their ranks by the nodes' names (seen on 24.11)
        LOCAL_WORLD_SIZE=$(node_size)
        # What srun says here may be another component's (seen on 22.05, 24.11 and 26.05); the job's own word is right
        eval "gl_cpus=\${SLURM_CPUS_PER_TASK_HET_GROUP_$GLAUNCH_COMPONENT-}"
        if [ -n "$gl_cpus" ]; then export SLURM_CPUS_PER_TASK="$gl_cpus"; else unset SLURM_CPUS_PER_TASK; fi
    else
        LOCAL_WORLD_SIZE=$(ranks_here)
    fi
    gl_rank=$RANK gl_local=$LOCAL_RANK
    export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK
    # The names by which programs for DeepSpeed's own launcher know the same
    export CROSS_RANK="$NODE_RANK" CROSS_SIZE="${SLURM_STEP_NUM_NODES:-$SLURM_NNODES}" LOCAL_SIZE="$LOCAL_WORLD_SIZE"
}

# "8(x7),4": the ranks of each node, by SLURM_NODEID
ranks_here() {
    echo "${SLURM_STEP_TASKS_PER_NODE:-$SLURM_TASKS_PER_NODE}" | awk -v node="$SLURM_NODEID" '{
        parts = split($0, part, ",")
        for (i = 1; i <= parts; i++) {
            times = 1
            if (split(part[i], word, /[(x)]+/) > 1) times = word[2]
            if (node < times) { print word[1] + 0; exit }
            node -= times
        }
    }'
}

# shellcheck source=/dev/null
. "$gl_folder/node/form.sh"
form_rank

# srun labels each line with its rank; where another starts the ranks, this does it, into the same file
if [ -n "${gl_label-}" ]; then
    if [ -n "${gl_agent_dir-}" ]; then
        gl_reset=--default-signal=HUP,QUIT,USR1,USR2,ALRM # agent.sh keeps them from the starter
        gl_pipe=$gl_agent_dir/pipe.$gl_local.$$
        echo "$$" >"$gl_agent_dir/rank.$gl_local" # for signals
        unset gl_agent_dir
    else
        gl_pipe=$(mktemp -d "${TMPDIR:-/tmp}/glaunch-rank.XXXXXXXX")/pipe
    fi
    if mkfifo -m 600 "$gl_pipe"; then
        # Not a child: the program waits for its own children only. It holds on to the output that the starter gave this rank, and a starter
        # waits for the end of that: so no last word is lost. In a process group of its own, where the system can do that: at a cancel
        # mpirun's helper kills the rank's group as soon as the rank is gone, and what was still in the pipe went with it.
        gl_apart=$(command -v setsid || :)
        ($gl_apart sh "$gl_folder/node/label.sh" "$gl_rank" "$gl_pipe" "$gl_attempt/out/$gl_host.log" &)
        exec >"$gl_pipe" 2>&1
    fi
fi

# One speaks for the node, or every line would come once a rank
say() { [ "$gl_local" != 0 ] || printf 'glaunch: %s: %s\n' "$gl_host" "$*" >&2; }

# The log folder lies in a place where all users may write, so a folder that is there already must be this user's and closed to
# others. The program runs without it rather than into a stranger's.
if [ -n "${GLAUNCH_LOG_DIR-}" ]; then
    gl_mask=$(umask)
    umask 077
    mkdir "$GLAUNCH_LOG_DIR" 2>/dev/null
    umask "$gl_mask"
    # shellcheck disable=SC2012 # one known name, and ls is everywhere
    case $(LC_ALL=C ls -ldn "$GLAUNCH_LOG_DIR" 2>/dev/null | awk '{ print substr($1, 1, 10), $3; exit }') in
    "drwx------ $(id -u)") ;;
    "")
        say "cannot make $GLAUNCH_LOG_DIR; the ranks here run without GLAUNCH_LOG_DIR"
        unset GLAUNCH_LOG_DIR
        ;;
    *)
        say "$GLAUNCH_LOG_DIR exists and is not this user's own; the ranks here run without GLAUNCH_LOG_DIR"
        unset GLAUNCH_LOG_DIR
        ;;
    esac
fi

# The name of rank 0's host must lead there from every other one; a program that cannot reach it waits for many minutes
if [ "$gl_local" = 0 ] && [ "${NODE_RANK:-0}" != 0 ] && [ -n "${MASTER_ADDR-}" ] && command -v getent >/dev/null; then
    case $(timeout 5 getent ahosts "$MASTER_ADDR" || [ $? -eq 2 ] || echo slow) in
    '') say "does not know MASTER_ADDR $MASTER_ADDR, the host of rank 0" ;;
    127.* | ::1[!0-9a-f:]*) say "takes MASTER_ADDR $MASTER_ADDR, the host of rank 0, for itself: its name leads to a loopback address here" ;;
    esac
fi

# The same process id after exec: a rank can be found again by it. One that its starter starts again stands there already.
if [ "${TORCHELASTIC_RESTART_COUNT:-0}" -eq 0 ]; then
    printf '%s\t%s\t%s\t%s\n' "$gl_rank" "$gl_host" "$gl_local" "$$" >>"$gl_attempt/ranks.d/$gl_host" || say "rank $gl_rank is not in the rank map"
fi

# The program and its arguments stand in a file, not on srun's command line: srun takes a lone ":" for the start of another job
# shellcheck source=/dev/null
. "$gl_folder/command${GLAUNCH_COMPONENT:+-$GLAUNCH_COMPONENT}.sh"
cd "${gl_work_dir:-.}" || exit 72
# Exported functions of bash, which none of the shells until here hands on; "env" would take a program with a "=" for one more
if [ -n "${gl_functions-}" ]; then
    gl_words=$gl_functions
    unset gl_functions
    case $1 in
    *=*) ;;
    *) ! command -v env >/dev/null || eval "set -- env $gl_words \"\$@\"" ;;
    esac
fi
# Without such an "env" (coreutils before 8.31) they stay ignored until the program sets a handler
if [ -n "${gl_reset-}" ] && env "$gl_reset" true 2>/dev/null; then exec env "$gl_reset" sh -c 'exec "$@"' sh "$@"; fi
exec "$@"
