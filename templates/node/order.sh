# order.sh ATTEMPT ORDER NODES TASKS PER_NODE [LEAF_GROUP POD_GROUP]: the granted nodes in the plan's order.
#   0: done   1: not possible, and why
#
# Reads   ATTEMPT/granted    one node a line, as Slurm granted them
#         ORDER              the plan's table: node TAB position TAB leaf TAB pod
# Writes  ATTEMPT/ordered    the first NODES of them in the plan's order; nodes that the table does not know come last. Groups of
#                            LEAF_GROUP (POD_GROUP) neighbours stay in one leaf (pod) wherever these nodes allow it: whole ones go
#                            first, leaf by leaf and pod by pod, and what is left over of pods, then of leaves, comes last
#         ATTEMPT/hosts      one line a rank, for SLURM_HOSTFILE: PER_NODE lines a node, on the last node what is left; where that would
#                            leave nodes without ranks (sbatch -n 8 by hand), the ranks are spread evenly
#
# The host file is written only when it has a line for every rank: with fewer, srun would silently start fewer ranks.
attempt=$1 order=$2 nodes=$3 tasks=$4 per_node=$5 leaf_group=${6:-1} pod_group=${7:-1}
export LC_ALL=C

say() { printf 'glaunch: %s\n' "$*" >&2; }

no_order() {
    rm -f "$attempt/hosts.part" "$attempt/ordered.part"
    say "no order: $1; the ranks follow Slurm's own"
    exit 1
}

[ -s "$order" ] || no_order "$order is missing or empty"
# Lines on their way: position, place in Slurm's order, node, number of its leaf, of its pod (0: not in the table).
located() {
    awk -F '\t' '
        NR == FNR { position[$1] = $2; leaf[$1] = $4 FS $3; pod[$1] = $4; next }
        !($1 in position) { print 999999999, FNR, $1, 0, 0; next }
        {
            if (!(leaf[$1] in leaf_number)) leaf_number[leaf[$1]] = ++leaves
            if (!(pod[$1] in pod_number)) pod_number[pod[$1]] = ++pods
            print position[$1], FNR, $1, leaf_number[leaf[$1]], pod_number[pod[$1]]
        }
    ' "$order" "$attempt/granted" | sort -k1,1n -k2,2n | awk -v nodes="$nodes" 'NR <= nodes'
}

# left_over COLUMN GROUP: one more column, 1 for the last lines of each leaf (column 4) or pod (5), which make no whole group there.
left_over() {
    awk -v column="$1" -v group="$2" '
        { line[NR] = $0; part[NR] = $column; count[$column]++ }
        END { for (i = 1; i <= NR; i++) print line[i], (part[i] && ++seen[part[i]] > count[part[i]] - count[part[i]] % group) ? 1 : 0 }
    '
}

[ "$pod_group" -ge "$leaf_group" ] || pod_group=$leaf_group
located | left_over 4 "$leaf_group" |
    awk '{ if (!($5 in pod)) pod[$5] = ++pods; print $1, $2, $3, $4, $5 ? pod[$5] : 0, $6 }' |
    sort -k5,5n -k6,6n -k1,1n -k2,2n | left_over 5 "$pod_group" |
    awk '{ print $5 == 0, $7, $7 * $6, NR, $3 }' | sort -k1,1n -k2,2n -k3,3n -k4,4n | awk '{ print $5 }' >"$attempt/ordered.part" ||
    no_order "the table could not be read"

unknown=$(awk -F '\t' 'NR == FNR { known[$1]; next } !($1 in known) { n++ } END { print n + 0 }' "$order" "$attempt/ordered.part")
[ "$unknown" -eq 0 ] || say "$unknown of the granted nodes are not in the plan's order; they come last"

sh "${0%/*}/spread.sh" "$attempt/ordered.part" "$tasks" "$per_node" >"$attempt/hosts.part"
lines=$(wc -l <"$attempt/hosts.part")
[ "$lines" -eq "$tasks" ] || no_order "$((lines)) places for $tasks ranks ($nodes nodes, $per_node a node)"
mv "$attempt/ordered.part" "$attempt/ordered" || no_order "cannot write in $attempt"
mv "$attempt/hosts.part" "$attempt/hosts" || no_order "cannot write in $attempt"
