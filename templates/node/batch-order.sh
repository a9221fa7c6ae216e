# batch-order.sh: a part of batch.sh, which reads it: order_ranks, slurm_order, judge_placement and what they are made of. components.sh puts its
# own order_ranks and slurm_order in their place.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # names that job.sbatch and batch.sh set or read; what changes in a subshell is meant for it alone

order_ranks() {
    order_nodes
    [ "$gl_order" = planned ] || slurm_order
}

slurm_order() {
    nodes_as_granted
    name_nodes
    if ask_order; then
        mv "$gl_attempt/ordered.part" "$gl_attempt/ordered"
        spread_ranks
    fi
}

# Where Slurm puts the ranks by itself: by node name, from 26.05 on along its topology. A step shows it, since rank 0's host is the master:
# ATTEMPT/ordered.part, one node a line.
ask_order() {
    # shellcheck disable=SC2016 # for the shell over there
    each 60 sh -c 'echo "$SLURM_PROCID $SLURMD_NODENAME"' 2>/dev/null | sort -n | awk '{ print $2 }' >"$gl_attempt/ordered.part"
    # less of them: a node does not answer, and the next step says which
    [ "$(($(wc -l <"$gl_attempt/ordered.part")))" -ne "$gl_nodes" ] || return 0
    rm -f "$gl_attempt/ordered.part"
    return 1
}

# Writes ATTEMPT/granted, and ATTEMPT/ordered where the plan's order holds ($gl_order). $gl_among names the nodes where the allocation has more of them than the run.
order_nodes() {
    scontrol show hostnames "${SLURM_JOB_NODELIST-}" >"$gl_attempt/granted" || stop "Slurm does not name the nodes of this job"
    gl_granted=$(($(wc -l <"$gl_attempt/granted")))
    [ "$gl_granted" -ge "$gl_nodes" ] || stop "$gl_nodes nodes are needed, and the allocation has $gl_granted"
    if [ "$gl_order" = planned ]; then
        sh "$gl_folder/node/order.sh" "$gl_attempt" "$gl_folder/order.tsv" "$gl_nodes" "$gl_tasks" "$gl_per_node" \
            "$gl_leaf_group" "$gl_pod_group" || gl_order=slurm
    fi
    [ "$gl_order" != planned ] || name_nodes
}

# For the steps that are not the ranks: an allocation may have more nodes than this run
name_nodes() {
    gl_among=
    [ "$gl_granted" -eq "$gl_nodes" ] || gl_among=$(awk '{ printf "%s%s", sep, $0; sep = "," }' "$gl_attempt/ordered")
}

# What Slurm granted, beside the plan and beside what this size needs at best: said where it is worse, and written down.
judge_placement() { # [here]
    # shellcheck disable=SC2046 # four numbers
    set -- "${1-}" $(sh "$gl_folder/node/placed.sh" "$gl_attempt" "$gl_folder/order.tsv" "$gl_folder/switches.tsv")
    [ $# -eq 5 ] || return 0
    gl_pods=$2 gl_leaves=$3 gl_hops=$4 gl_unknown=$5 gl_bad=0
    gl_words="$gl_nodes nodes on $(some "$gl_leaves" leaf leaves) in $(some "$gl_pods" pod pods)"
    if [ "$gl_nodes" -ne "$gl_plan_nodes" ] || [ "$gl_unknown" -gt 0 ]; then
        :
    elif [ "$gl_pods" -gt "$gl_fewest_pods" ] && [ "$gl_fewest_pods" -gt 0 ]; then
        gl_bad=1
        say "placement: $gl_words; so many fit in $(some "$gl_fewest_pods" pod pods)"
    elif [ "$gl_plan_pods" -gt 0 ] && [ $((gl_pods * 1000000 + gl_leaves)) -gt $((gl_plan_pods * 1000000 + gl_plan_leaves)) ]; then
        say "placement: $gl_words; the plan had $(some "$gl_plan_leaves" leaf leaves) in $(some "$gl_plan_pods" pod pods)"
    fi
    case $gl_bad.$gl_on_bad in
    1.fail)
        write_placement failed
        stop "placement: too many pods, and --on-bad-placement fail: no rank was started"
        ;;
    1.requeue) back_to_queue "$1" ;;
    esac
    write_placement ''
}

write_placement() { # DID
    printf '{"schema": "glaunch.placement/1", "pods": %d, "leaves": %d, "hops": %d, "unknown": %d, "fewest_pods": %d, "bad": %d, "did": "%s"}\n' \
        "$gl_pods" "$gl_leaves" "$gl_hops" "$gl_unknown" "$gl_fewest_pods" "$gl_bad" "$1" >"$gl_attempt/placement.json.part"
    mv "$gl_attempt/placement.json.part" "$gl_attempt/placement.json"
}

# Once in a job's life, and never a pinned one, which Slurm does not requeue. It returns when the job goes on.
back_to_queue() { # [here]
    if [ "$1" = here ]; then
        say "placement: this allocation is not for the queue: it goes on"
    elif [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
        say "placement: it has run before: it goes on"
    else
        write_placement requeued # now, since Slurm ends this shell at once
        say "placement: Slurm is asked to take the job back, this once"
        gl_answer=$(scontrol requeue "$SLURM_JOB_ID" 2>&1)
        case $? in
        0 | 1[2-9][0-9]) # Slurm ends all that runs here, in any order: scontrol, a sleep, or this shell first
            gl_left_s=60
            while [ "$gl_left_s" -gt 0 ]; do
                sleep 1 &
                wait $!
                gl_left_s=$((gl_left_s - 1))
            done
            ;;
        esac
        say "placement: Slurm does not take the job back${gl_answer:+ ($gl_answer)}: it goes on"
    fi
}

nodes_as_granted() {
    gl_order=slurm
    head -n "$gl_nodes" "$gl_attempt/granted" >"$gl_attempt/ordered"
    spread_ranks
}

# The host of every rank, as the nodes are ordered.
spread_ranks() {
    gl_most=$gl_per_node
    [ "$gl_tasks" -le $((gl_nodes * gl_per_node)) ] || gl_most=$(((gl_tasks + gl_nodes - 1) / gl_nodes))
    sh "$gl_folder/node/spread.sh" "$gl_attempt/ordered" "$gl_tasks" "$gl_most" >"$gl_attempt/hosts"
}
