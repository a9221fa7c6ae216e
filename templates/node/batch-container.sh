# batch-container.sh: a part of batch.sh, which reads it: choose_runtime, bring_container, become_srun, leave_container.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # names that job.sbatch and batch.sh set or read; what changes in a subshell is meant for it alone

# The container of this job, if it has one: gl_runtime is then pyxis, or what each task starts itself (gl_enter tells them).
choose_runtime() {
    [ -r "$gl_folder/container.sh" ] || return 0
    # shellcheck source=/dev/null
    . "$gl_folder/container.sh"
    gl_container=glaunch_${gl_submission}_${gl_attempt##*/}
    case $gl_runtime in
    auto | pyxis)
        if srun --help 2>/dev/null | grep -q -e '--container-image'; then
            gl_runtime=pyxis
            return
        fi
        [ "$gl_runtime" = auto ] || stop "no container on ${SLURMD_NODENAME:-this host}: its srun has no --container-image (pyxis)" 127
        ;;
    esac
    for gl_enter in apptainer singularity; do
        command -v "$gl_enter" >/dev/null && break
        gl_enter=
    done
    [ -n "$gl_enter" ] || stop "no container on ${SLURMD_NODENAME:-this host}: srun has no pyxis there, and there is no apptainer" 127
    gl_runtime=$gl_enter
    export gl_enter
}

with_pyxis() { # COMMAND WORD…: COMMAND with what makes srun start the container, before WORD…
    gl_command=$1
    shift
    set -f # the site's options are words without blanks, and none of them is a pattern
    # shellcheck disable=SC2086
    set -- --container-image="$gl_pyxis" --container-name="$gl_container" --container-mounts="$(shown_folders)" \
        --container-workdir="$gl_inside" ${gl_names:+"--container-env=$(printf '%s' "$gl_names" | tr ' ' ,)"} $gl_options "$@"
    set +f
    "$gl_command" "$@"
}

become_srun() { # [OPTION…] COMMAND…: the step that runs the program
    [ "$gl_runtime" != pyxis ] || with_pyxis srun_itself "$@"
    srun_itself "$@"
}

srun_itself() { exec srun "$@"; }

# With the job's GPUs, unlike other steps beside the ranks: a hook of an image for GPUs fails without any
bring() { (gl_gres='' && each "$gl_import_s" "$@"); }

# Once on each node of the job: the image comes there, and the program is looked for inside. Later steps find it there.
bring_container() {
    say "container $gl_named comes onto $(some "$gl_nodes" node nodes), by $gl_runtime"
    gl_brought=1
    if [ "$gl_runtime" = pyxis ]; then
        [ "${gl_mpi-}" != mpirun ] || stop "mpirun starts no ranks in a container of pyxis: launch.mpi: pmix" 2
        with_pyxis bring sh "$gl_folder/node/probe.sh" "$gl_attempt" "$gl_folder" inside
    else
        bring sh "$gl_folder/node/container.sh" bring "$gl_attempt" "$gl_folder"
    fi
    case $? in
    0) ;;
    124 | 137) stop "container: it did not come within $gl_import_s s (container.import_timeout_s); no rank was started" ;;
    126 | 127) stop "container: the program cannot run in it; no rank was started" 127 ;;
    *) stop "container: it does not start on every node; no rank was started" ;;
    esac
}

# After a cancel Slurm starts no more steps; what is left then is the host of this shell.
leave_container() {
    [ -n "${gl_brought-}" ] || return 0
    [ -z "$gl_file" ] || [ "$gl_runtime" = pyxis ] || [ -z "$gl_started_s" ] || return 0 # a file that Apptainer used where it is
    each 30 sh "$gl_folder/node/container.sh" leave "$gl_attempt" "$gl_folder" "$gl_container" >/dev/null 2>&1 ||
        sh "$gl_folder/node/container.sh" leave "$gl_attempt" "$gl_folder" "$gl_container"
}
