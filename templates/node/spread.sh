# spread.sh ORDERED TASKS PER_NODE: prints the host of every rank, one a line: PER_NODE ranks on each node of the file ORDERED, on the last
# what is left; where that would leave nodes without ranks (sbatch -n 8 by hand), they are spread evenly
awk -v tasks="$2" -v per_node="$3" '
    { node[NR] = $0 }
    END {
        even = tasks <= per_node * (NR - 1)
        for (n = 1; n <= NR; n++) {
            here = even ? int(tasks / (NR - n + 1) + 0.999999) : per_node
            for (i = 0; i < here && tasks > 0; i++) { print node[n]; tasks-- }
        }
    }
' "$1"
