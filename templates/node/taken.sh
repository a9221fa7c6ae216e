# taken.sh PORT: is this, on standard input, the word of a program whose PORT was taken by another?   0: yes   1: no
#
# "Address already in use" is said of any port. Where the ports are named, PORT must be one of them; where none is, it may well be meant.
# Named, that is: 0.0.0.0:80, [::]:80, :80, port 80, port: 80, ('', 80), 10.0.0.1<80>. Not a time of day, a line of a file, HOST:PID.
LC_ALL=C awk -v port="$1" '
    function names_some(line,    number) {
        while (match(line, /[0-9]\.[0-9]+\.[0-9]+\.[0-9]+:[0-9]+|(^|[^0-9a-z_]):[0-9]+|(^|[^a-z])ports?[^0-9a-z]*[0-9]+|["\047], *[0-9]+ *[,)]|[0-9\]]<[0-9]+>/)) {
            number = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            gsub(/[^0-9]+$/, "", number)
            sub(/.*[^0-9]/, "", number)
            if (number >= 10 && number <= 65535) return 1
        }
        return 0
    }
    { said = tolower($0) }
    said ~ /address already in use|eaddrinuse|port [0-9]+ is (already )?in use/ {
        if (" " said " " ~ "[^0-9]" port "[^0-9]") {
            ours = 1
            exit
        }
        if (names_some(said)) others = 1
        else unnamed = 1
    }
    END { exit !(ours || (unnamed && !others)) }'
