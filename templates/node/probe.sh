# probe.sh ATTEMPT FOLDER [inside]: on every node, before any rank: can it write the ranks' output, and is the program there?
#
# 0: yes   73: it cannot write   72: no working folder   126, 127: the program, as a shell would say
#
# A node that cannot write its output never starts its ranks, and srun still says that all is well; a node without the program
# leaves all others waiting for its ranks. Here it is one line for each such node, and no rank has started. Where the job has a container, the
# node is looked at first, and the program later, inside.
attempt=$1 folder=$2 host=${SLURMD_NODENAME:-$(uname -n)}
command=$folder/command${GLAUNCH_COMPONENT:+-$GLAUNCH_COMPONENT}.sh

told() {
    printf 'glaunch: %s: %s\n' "$host" "$2" >&2
    exit "$1"
}

# in a subshell: a redirection that fails ends the whole shell where the command is ":"
(: >>"$attempt/out/$host.log") 2>/dev/null || told 73 "cannot write $attempt/out/$host.log"
[ -r "$command" ] || told 73 "cannot read $command"

if [ -r "$folder/container.sh" ] && [ "${3-}" != inside ]; then
    # What is shown inside must be there before; node/task.sh looks at whose it is
    [ -d "$GLAUNCH_LOG_DIR" ] || (umask 077 && mkdir "$GLAUNCH_LOG_DIR") || told 73 "cannot make $GLAUNCH_LOG_DIR"
    exit 0
fi
[ "${3-}" != inside ] || command -v awk >/dev/null || told 127 "the image has no awk, which ranks start with"

# Ends with 126 or 127 where a program is not there, or what runs it is not.
there() { # PROGRAM
    program=$(command -v "$1") || told 127 "$1: not found"
    case $program in
    */*) [ -x "$program" ] || told 126 "$1: may not be executed" ;;
    *) return ;; # something that the shell itself has; exec will look once more
    esac
    # A script whose first line names an interpreter needs that too: without it the message would blame the script
    first=$(head -c 256 "$program" 2>/dev/null | LC_ALL=C tr -d '\000' | head -n 1)
    case $first in
    '#!'*)
        # shellcheck disable=SC2086 # the words of the line are wanted: interpreter, argument
        set -f && set -- ${first#'#!'} && set +f
        [ -x "${1-}" ] || told 127 "${1-}: not found, and $program is run by it"
        if [ "${1##*/}" = env ] && [ $# -eq 2 ]; then
            command -v "$2" >/dev/null || told 127 "$2: not found, and $program is run by it"
        fi
        ;;
    esac
}

# For forms: what starts the ranks of a node, and where that is "python -m …", the Python package that it belongs to.
# shellcheck disable=SC2317 # called by the form
starter_there() { # PACKAGE
    package=$1
    # shellcheck source=/dev/null
    . "$folder/starter.sh"
    there "$1"
    if [ "${2-}" = -m ]; then
        "$1" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)' "$package" 2>/dev/null ||
            told 127 "$1 has no package $package"
    fi
}

# shellcheck source=/dev/null
. "$command"
cd "${gl_work_dir:-.}" 2>/dev/null || told 72 "the working folder $gl_work_dir is not there"
there "$1"
# shellcheck source=/dev/null
. "$folder/node/form.sh"
form_needs
exit 0
