# label.sh RANK PIPE FILE: what a rank writes into PIPE goes to the end of FILE, each line behind the rank's label, as srun --label does it
#
# It goes on until the rank and all that it started have closed their output. PIPE is removed at the end: so one can see who still writes.
# Pieces of at most 1,024 bytes and each in one write, as slurmstepd does it: a reader joins them again.
# shellcheck disable=SC2016 # the program of awk
trap '' HUP INT QUIT TERM USR1 USR2 ALRM
sh "${0%/*}/reader.sh" -v label="$1: " '
    BEGIN { ORS = "" }
    {
        while (length($0) > 1024) {
            print (label substr($0, 1, 1024) "\n")
            $0 = substr($0, 1025)
        }
        print (label $0 "\n")
        fflush()
    }
' <"$2" >>"$3"
rm -f "$2"
rmdir "${2%/*}" 2>/dev/null # only where it was made for this pipe alone
