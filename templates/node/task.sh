# task.sh ATTEMPT FOLDER: what srun starts for every rank; becomes the user's program
#
# Sets RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and NODE_RANK (MASTER_ADDR, MASTER_PORT, GLAUNCH_LOG_DIR come from the job's script),
# makes the log folder on this node and records which rank this is on which host.
gl_attempt=$1 gl_folder=$2 gl_host=${SLURMD_NODENAME:-$(uname -n)}

RANK=$SLURM_PROCID WORLD_SIZE=${SLURM_STEP_NUM_TASKS:-$SLURM_NTASKS} LOCAL_RANK=$SLURM_LOCALID
# SLURM_NODEID counts nodes by name; ranks follow the order of the plan, so this node's number is its line in it
NODE_RANK=$(awk -v host="$gl_host" '$1 == host { print NR - 1; exit }' "$gl_attempt/ordered")
# "8(x7),4": the ranks of each node, by SLURM_NODEID
LOCAL_WORLD_SIZE=$(echo "${SLURM_STEP_TASKS_PER_NODE:-$SLURM_TASKS_PER_NODE}" | awk -v node="$SLURM_NODEID" '{
    parts = split($0, part, ",")
    for (i = 1; i <= parts; i++) {
        times = 1
        if (split(part[i], word, /[(x)]+/) > 1) times = word[2]
        if (node < times) { print word[1] + 0; exit }
        node -= times
    }
}')
export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK

# One speaks for the node, or every line would come once a rank
say() { [ "$LOCAL_RANK" != 0 ] || printf 'glaunch: %s: %s\n' "$gl_host" "$*" >&2; }

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

# The same process id after exec: a rank can be found again by it
printf '%s\t%s\t%s\t%s\n' "$RANK" "$gl_host" "$LOCAL_RANK" "$$" >>"$gl_attempt/ranks.d/$gl_host" || say "rank $RANK is not in the rank map"

# The program and its arguments stand in a file, not on srun's command line: srun takes a lone ":" for the start of another job
# shellcheck source=/dev/null
. "$gl_folder/command.sh"
cd "${gl_work_dir:-.}" || exit 72
exec "$@"
