# guard.sh FOLDER: may this job run this submission?   0: go on   1: another job of it is not over
#
# Acts when glaunch itself submitted (the script then got the submission's id as its argument), so that a submission whose
# answer was lost and that was repeated cannot run twice. A requeued job and the other tasks of an array go on.
#
# A chain of symbolic links: making one is atomic and carries its content, and nothing is ever removed, so there is no moment
# in which two jobs both believe that they are the one.
say() { printf 'glaunch: %s\n' "$*" >&2; }

folder=$1
guard=$folder/guard.${SLURM_ARRAY_TASK_ID:-0}
tries=0
until ln -s "$SLURM_JOB_ID" "$guard" 2>/dev/null; do
    owner=$(readlink "$guard") || {
        say "cannot write in $folder"
        exit 1
    }
    [ "$owner" != "$SLURM_JOB_ID" ] || exit 0 # this very job, run again after a requeue
    answer=$(squeue --local -h -t all -j "$owner" -o '%A %T' 2>&1) || case $answer in
    *"Invalid job id"*) ;; # Slurm has forgotten it: it is over
    *)
        tries=$((tries + 1))
        if [ "$tries" -lt 4 ]; then
            sleep "${GLAUNCH_GUARD_PAUSE_S:-5}"
            continue
        fi
        say "Slurm does not say whether job $owner is over; going on"
        answer=
        ;;
    esac
    # an array's id answers with all its tasks: only the line of the owner counts
    state=$(printf '%s\n' "$answer" | awk -v owner="$owner" '$1 == owner { print $2; exit }')
    case $state in
    PENDING | CONFIGURING | RUNNING | SUSPENDED | STOPPED | RESIZING | SIGNALING | COMPLETING | STAGE_OUT | REQUEUE* | SPECIAL_EXIT | RESV_DEL_HOLD)
        say "job $owner runs the same submission and is not over; job $SLURM_JOB_ID stops here (scancel $owner, or wait)"
        exit 1
        ;;
    esac
    guard=$folder/guard.${SLURM_ARRAY_TASK_ID:-0}.$owner # the owner is over: the place of its one successor
    tries=0
done
