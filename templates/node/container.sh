# container.sh bring ATTEMPT FOLDER              on every node, once: fetches the image for Apptainer, and looks for the program in it
# container.sh enter ATTEMPT FOLDER FILE [WORD]  becomes FILE of node/ (task.sh, agent.sh, probe.sh), inside the container
# container.sh leave ATTEMPT FOLDER NAME         on every node, at the end: what was brought goes; NAME: of the container that pyxis made
#
# All names begin with gl_, as in batch.sh: what is set here would change what the program sees under that name.
# gl_enter (in the environment) is the runtime that each task starts itself: apptainer or singularity. Pyxis is a part of srun and needs
# no "enter". What the container is stands in FOLDER/container.sh; an image that is no file lies beside the log folder meanwhile.
# shellcheck disable=SC2154 # names of container.sh
gl_did=$1 gl_attempt=$2 gl_folder=$3 gl_host=${SLURMD_NODENAME:-$(uname -n)}
# shellcheck source=/dev/null
. "$gl_folder/container.sh"
gl_brought=$gl_place/${GLAUNCH_LOG_DIR##*/}.image

told() {
    printf 'glaunch: %s: %s\n' "$gl_host" "$2" >&2
    exit "$1"
}

bring() {
    if [ -n "$gl_file" ]; then
        [ -r "$gl_file" ] || told 72 "there is no image $gl_file"
        return
    fi
    (umask 077 && mkdir "$gl_brought") || told 72 "cannot make $gl_brought"
    mkdir "$gl_brought/work"
    # Its caches too on this node's own disk: on a shared one all nodes would write the same files at once
    (
        for gl_family in APPTAINER SINGULARITY; do
            for gl_what in CACHEDIR TMPDIR; do
                printenv "${gl_family}_$gl_what" >/dev/null || export "${gl_family}_$gl_what=$gl_brought/work"
            done
        done
        exec "$gl_enter" pull "$gl_brought/image.sif" "$gl_pull" >"$gl_brought/said" 2>&1
    ) || {
        gl_said=$(tail -n 3 "$gl_brought/said" | tr -s '[:space:]' ' ' | head -c 400)
        rm -rf "$gl_brought"
        told 72 "$gl_enter cannot fetch $gl_pull: $gl_said"
    }
    rm -rf "$gl_brought/work" "$gl_brought/said"
}

enter() { # FILE [WORD]
    gl_by=$gl_enter
    unset gl_enter
    # A value of the job wins over the image's, for these names, and none is read as shell code on its way in ("$(id)" stays what it is)
    gl_prefix=APPTAINERENV
    [ "$gl_by" != singularity ] || gl_prefix=SINGULARITYENV
    export APPTAINER_NO_EVAL=1 SINGULARITY_NO_EVAL=1
    for gl_name in $gl_names; do
        eval "[ -z \"\${$gl_name+set}\" ] || export \"${gl_prefix}_$gl_name=\$$gl_name\""
    done
    gl_inner=$1
    shift
    set -- "${gl_file:-$gl_brought/image.sif}" sh "$gl_folder/node/$gl_inner" "$gl_attempt" "$gl_folder" "$@"
    [ ! -e /dev/nvidiactl ] || set -- --nv "$@"
    [ ! -e /dev/kfd ] || set -- --rocm "$@"
    set -f # options are words without blanks, and none of them is a pattern
    # shellcheck disable=SC2086
    exec "$gl_by" exec --bind "$(shown_folders)" --pwd "$gl_inside" $gl_options "$@"
}

case $gl_did in
bring)
    bring
    enter probe.sh inside
    ;;
enter)
    shift 3
    enter "$@"
    ;;
leave)
    rm -rf "$gl_brought"
    rmdir "$GLAUNCH_LOG_DIR" 2>/dev/null # empty where no rank came to start
    ! command -v enroot >/dev/null || enroot remove -f "pyxis_$4" "pyxis_${SLURM_JOB_ID}_$4" >/dev/null 2>&1
    exit 0
    ;;
esac
