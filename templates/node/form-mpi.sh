# form.sh, mpi: the ranks belong to one MPI job. srun starts them where it has a plugin that the MPI library speaks (PMIx, PMI-2), else Open
# MPI's own mpirun does.
# shellcheck disable=SC2034,SC2154 # names that their readers set

# gl_mpi: auto, mpirun, or a type as srun --mpi takes it. That srun names PMIx does not yet mean that it finds the library: it is tried.
form_ready() {
    if [ "$gl_mpi" = auto ]; then
        if (gl_nodes=1 gl_among=$(head -n 1 "$gl_attempt/ordered") && each 60 --mpi=pmix true) >/dev/null 2>&1; then
            gl_mpi=pmix
        elif command -v mpirun >/dev/null; then
            gl_mpi=mpirun
        else
            gl_mpi=pmi2
        fi
    fi
    if [ "$gl_mpi" = mpirun ]; then
        case $(mpirun --version 2>&1 | head -n 1) in
        *"Open MPI"*) ;;
        *) stop "mpirun on ${SLURMD_NODENAME-} is not Open MPI's, or not there: name what its library speaks with srun, e.g. launch.mpi: pmi2" 127 ;;
        esac
    fi
    gl_how=$gl_mpi
    export gl_mpi # for the nodes; no rank keeps it
}

form_start() {
    # shellcheck source=/dev/null
    . "$gl_folder/starter.sh"
    [ "$gl_mpi" = mpirun ] || ranks_step --mpi="$gl_mpi" "$@" sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
    # mpirun asks Slurm for the nodes itself; what speaks of the ranks' shape would contradict what it asks for
    forget_ranks
    export SLURM_EXPORT_ENV=ALL
    # Signals reach steps, not what a batch script starts: so the first node has its helper in a step as well. Each node is a part of its own
    # ("mpirun A : B"), and ranks count on from part to part: every other way of naming an order is sorted, or fails with that first helper.
    set -- --mca ras_base_launch_orted_on_hn 1 --bind-to none "$@"
    case $(mpirun --version | head -n 1) in
    *" "[1-4].*) ;;
    *) shift && set -- --prtemca "$@" ;; # 5.0 has it from PRRTE
    esac
    gl_next=
    while read -r gl_count gl_host; do
        set -- "$@" ${gl_next:+:} -host "$gl_host:$gl_count" -n "$gl_count" sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
        gl_next=1
    done <<LINES
$(uniq -c "$gl_attempt/hosts")
LINES
    cd "$gl_attempt" || exit 1
    if [ -n "$gl_helpers" ]; then
        exec 9<>"$gl_helpers"
        exec 8<"$gl_helpers"
        # Not a child of mpirun's, and no signal of Slurm's is to reach it
        # shellcheck disable=SC2016 # $1 is for the shell within
        (sh -c 'trap "" HUP INT QUIT TERM USR1 USR2 ALRM; cat >/dev/null; rm -f "$1"' sh "$gl_helpers" <&8 8<&- 9>&- &)
    fi
    exec mpirun "$@" >>"out/$gl_first.log" 2>&1 8<&-
}

# Told twice to end, by Slurm and by this script, mpirun ends at once, and leaves its helpers and the ranks to the srun that it started them
# with. That holds on to this pipe as well, whose reader removes it at the end: so the ranks' last words stand before the job's end does.
gl_helpers=
form_before() {
    [ "$gl_mpi" = mpirun ] || return 0
    gl_helpers=$(mktemp -d "${TMPDIR:-/tmp}/glaunch-mpirun.XXXXXXXX")/pipe
    mkfifo -m 600 "$gl_helpers" || gl_helpers=
}

form_over() {
    [ -n "$gl_helpers" ] || return 0
    gl_tries=0
    while [ -e "$gl_helpers" ] && [ "$gl_tries" -lt 100 ]; do
        sleep 0.1
        gl_tries=$((gl_tries + 1))
    done
    rm -rf "${gl_helpers%/*}"
    gl_helpers=
}

form_needs() {
    [ "$gl_mpi" != mpirun ] || command -v orted >/dev/null || there prted # its helper on each node; since 5.0 by the other name
}

form_rank() {
    if [ "$gl_mpi" = mpirun ]; then
        RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK
        LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE NODE_RANK=$(node_rank)
        gl_rank=$RANK gl_local=$LOCAL_RANK gl_label=1 # mpirun's own --tag-output marks pieces, not lines
        export RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE NODE_RANK
    else
        slurm_rank
    fi
    unset gl_mpi
}
