# reader.sh WORDS…: awk for what comes through a pipe, line by line as it comes, whatever signal the writer gets
trap '' HUP INT QUIT TERM USR1 USR2 ALRM
export LC_ALL=C
# mawk reads a pipe in whole blocks only, unless it is told otherwise
case $(awk -W version </dev/null 2>&1) in
mawk*) exec awk -W interactive "$@" ;;
esac
exec awk "$@"
