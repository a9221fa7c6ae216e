# placed.sh ATTEMPT ORDER SWITCHES: what the nodes of this run cost on the fabric.
#
# Reads   ATTEMPT/ordered    one node a line
#         ORDER              the plan's table: node TAB position TAB leaf TAB pod
#         SWITCHES           the plan's other table: leaf TAB the switch above it TAB … TAB the root
# Prints  PODS LEAVES HOPS UNKNOWN    hops: switches between two nodes, summed over all pairs, -1 where no path joins them all;
#                                     unknown: nodes that the table does not have
#
# Of n nodes x hang below a link between switches: x (n - x) pairs cross it, and each pair crosses one switch more than links.
awk -F '\t' '
    kind == "order" { leaf[$1] = $3; pod[$1] = $4; next }
    kind == "switches" {
        root[$1] = $NF
        for (i = 1; i < NF; i++) link[$1, i] = $i
        links[$1] = NF - 1
        next
    }
    {
        n++
        if (!($1 in leaf)) { unknown++; next }
        here = leaf[$1]
        if (!(here in on_leaf)) leaves++
        on_leaf[here]++
        if (!(pod[$1] in seen_pod)) { seen_pod[pod[$1]]; pods++ }
        if (!(here in root)) { apart = 1; next }
        if (!(root[here] in seen_root)) { seen_root[root[here]]; roots++ }
    }
    END {
        for (here in on_leaf) for (i = 1; i <= links[here]; i++) below[link[here, i]] += on_leaf[here]
        hops = n * (n - 1) / 2
        for (name in below) hops += below[name] * (n - below[name])
        if (roots > 1 || apart || (unknown && n > 1)) hops = -1
        printf "%d %d %.0f %d\n", pods, leaves, hops, unknown
    }
' kind=order "$2" kind=switches "$3" kind=nodes "$1/ordered"
