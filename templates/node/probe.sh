# probe.sh ATTEMPT FOLDER: on every node, before any rank: can it write the ranks' output, and is the program there?
#
# 0: yes   73: it cannot write   72: no working folder   126, 127: the program, as a shell would say
#
# A node that cannot write its output never starts its ranks, and srun still says that all is well; a node without the program
# leaves all others waiting for its ranks. Here it is one line for each such node, and no rank has started.
attempt=$1 folder=$2 host=${SLURMD_NODENAME:-$(uname -n)}

told() {
    printf 'glaunch: %s: %s\n' "$host" "$2" >&2
    exit "$1"
}

# in a subshell: a redirection that fails ends the whole shell where the command is ":"
(: >>"$attempt/out/$host.log") 2>/dev/null || told 73 "cannot write $attempt/out/$host.log"
[ -r "$folder/command.sh" ] || told 73 "cannot read $folder/command.sh"
# shellcheck source=/dev/null
. "$folder/command.sh"
cd "${gl_work_dir:-.}" 2>/dev/null || told 72 "the working folder $gl_work_dir is not there"

program=$(command -v "$1") || told 127 "$1: not found"
case $program in
*/*) [ -x "$program" ] || told 126 "$1: may not be executed" ;;
*) exit 0 ;; # something that the shell itself has; exec will look once more
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
exit 0
