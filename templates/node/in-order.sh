# in-order.sh: a part of task.sh and agent.sh, which read it: where this node stands in the ranks' order, and how many of them it has.
# shellcheck disable=SC2154 # names that its readers set

# SLURM_NODEID counts nodes by name, so it is the line in the order that counts.
node_rank() { awk -v host="$gl_host" '$1 == host { print NR - 1; exit }' "$gl_attempt/ordered"; }

node_size() { awk -v host="$gl_host" '$1 == host { n++ } END { print n + 0 }' "$gl_attempt/hosts"; }
