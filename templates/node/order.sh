# order.sh ATTEMPT ORDER NODES TASKS PER_NODE: the granted nodes in the plan's order.   0: done   1: not possible, and why
#
# Reads   ATTEMPT/granted    one node a line, as Slurm granted them
#         ORDER              the plan's table: node TAB position TAB leaf TAB pod
# Writes  ATTEMPT/ordered    the first NODES of them in the plan's order; nodes that the table does not know come last
#         ATTEMPT/hosts      one line a rank, for SLURM_HOSTFILE: PER_NODE lines a node, on the last node what is left; where that would
#                            leave nodes without ranks (sbatch -n 8 by hand), the ranks are spread evenly
#
# The host file is written only when it has a line for every rank: with fewer, srun would silently start fewer ranks.
attempt=$1 order=$2 nodes=$3 tasks=$4 per_node=$5
export LC_ALL=C

say() { printf 'glaunch: %s\n' "$*" >&2; }

no_order() {
    rm -f "$attempt/hosts.part" "$attempt/ordered.part"
    say "no order: $1; the ranks follow Slurm's own"
    exit 1
}

[ -s "$order" ] || no_order "$order is missing or empty"
awk -F '\t' '
    NR == FNR { position[$1] = $2; next }
    { print (($1 in position) ? position[$1] : 999999999), FNR, $1 }
' "$order" "$attempt/granted" | sort -k1,1n -k2,2n | awk -v nodes="$nodes" 'NR <= nodes { print $3 }' >"$attempt/ordered.part" ||
    no_order "the table could not be read"

unknown=$(awk -F '\t' 'NR == FNR { known[$1]; next } !($1 in known) { n++ } END { print n + 0 }' "$order" "$attempt/ordered.part")
[ "$unknown" -eq 0 ] || say "$unknown of the granted nodes are not in the plan's order; they come last"

awk -v tasks="$tasks" -v per_node="$per_node" -v nodes="$nodes" '
    BEGIN { even = tasks <= per_node * (nodes - 1) }
    {
        here = even ? int(tasks / (nodes - NR + 1) + 0.999999) : per_node
        for (i = 0; i < here && tasks > 0; i++) { print; tasks-- }
    }
' "$attempt/ordered.part" >"$attempt/hosts.part"
lines=$(wc -l <"$attempt/hosts.part")
[ "$lines" -eq "$tasks" ] || no_order "$((lines)) places for $tasks ranks ($nodes nodes, $per_node a node)"
mv "$attempt/ordered.part" "$attempt/ordered" || no_order "cannot write in $attempt"
mv "$attempt/hosts.part" "$attempt/hosts" || no_order "cannot write in $attempt"
