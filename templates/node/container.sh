# container.sh bring ATTEMPT FOLDER              on every node, once: fetches the image for Apptainer, and looks for the program in it
# container.sh enter ATTEMPT FOLDER FILE [WORD]  becomes FILE of node/ (task.sh, agent.sh, probe.sh), inside the container
# container.sh leave ATTEMPT FOLDER NAME         on every node, at the end: what was brought goes; NAME: of the container that pyxis made
#
# gl_enter (in the environment) is the runtime that each task starts itself: apptainer or singularity. Pyxis is a part of srun and needs
# no "enter". What the container is stands in FOLDER/container.sh; an image that is no file lies beside the log folder meanwhile.
# shellcheck disable=SC2154 # names of container.sh
did=$1 attempt=$2 folder=$3 host=${SLURMD_NODENAME:-$(uname -n)}
# shellcheck source=/dev/null
. "$folder/container.sh"
brought=$gl_place/${GLAUNCH_LOG_DIR##*/}.image

told() {
    printf 'glaunch: %s: %s\n' "$host" "$2" >&2
    exit "$1"
}

bring() {
    if [ -n "$gl_file" ]; then
        [ -r "$gl_file" ] || told 72 "there is no image $gl_file"
        return
    fi
    (umask 077 && mkdir "$brought") || told 72 "cannot make $brought"
    mkdir "$brought/work"
    # Its caches too on this node's own disk: on a shared one all nodes would write the same files at once
    (
        for family in APPTAINER SINGULARITY; do
            for what in CACHEDIR TMPDIR; do
                printenv "${family}_$what" >/dev/null || export "${family}_$what=$brought/work"
            done
        done
        exec "$gl_enter" pull "$brought/image.sif" "$gl_pull" >"$brought/said" 2>&1
    ) || {
        said=$(tail -n 3 "$brought/said" | tr -s '[:space:]' ' ' | head -c 400)
        rm -rf "$brought"
        told 72 "$gl_enter cannot fetch $gl_pull: $said"
    }
    rm -rf "$brought/work" "$brought/said"
}

enter() { # FILE [WORD]
    runtime=$gl_enter
    unset gl_enter
    # A value of the job wins over the image's, for these names, and none is read as shell code on its way in ("$(id)" stays what it is)
    prefix=APPTAINERENV
    [ "$runtime" != singularity ] || prefix=SINGULARITYENV
    export APPTAINER_NO_EVAL=1 SINGULARITY_NO_EVAL=1
    for name in $gl_names; do
        eval "[ -z \"\${$name+set}\" ] || export \"${prefix}_$name=\$$name\""
    done
    file=$1
    shift
    set -- "${gl_file:-$brought/image.sif}" sh "$folder/node/$file" "$attempt" "$folder" "$@"
    [ ! -e /dev/nvidiactl ] || set -- --nv "$@"
    [ ! -e /dev/kfd ] || set -- --rocm "$@"
    set -f # options are words without blanks, and none of them is a pattern
    # shellcheck disable=SC2086
    exec "$runtime" exec --bind "$(shown_folders)" --pwd "$gl_inside" $gl_options "$@"
}

case $did in
bring)
    bring
    enter probe.sh inside
    ;;
enter)
    shift 3
    enter "$@"
    ;;
leave)
    rm -rf "$brought"
    rmdir "$GLAUNCH_LOG_DIR" 2>/dev/null # empty where no rank came to start
    ! command -v enroot >/dev/null || enroot remove -f "pyxis_$4" "pyxis_${SLURM_JOB_ID}_$4" >/dev/null 2>&1
    exit 0
    ;;
esac
