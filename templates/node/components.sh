# components.sh: in place of what batch.sh does with one set of nodes, the same for each component of a heterogeneous job.
#
# Reads     gl_shapes    one line a component: RANKS NODES RANKS_A_NODE LEAF_GROUP POD_GROUP
# Writes    ATTEMPT/component.N/granted ordered hosts    as order.sh does, for component N alone
#           ATTEMPT/granted ordered hosts                all of them, component after component: so RANK counts through
#
# Slurm gives no node to two components, so a node's name also says which component it is in.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # names that job.sbatch and batch.sh set; a text that is evaluated; what changes in a subshell is meant for it alone
gl_components=$(printf '%s\n' "$gl_shapes" | awk 'END { print NR }')

# The numbers of one component: Slurm's own where it has them (sbatch -n … by hand), else the plan's.
shape() { # COMPONENT
    # shellcheck disable=SC2046 # five numbers
    set -- "$1" $(printf '%s\n' "$gl_shapes" | awk -v component="$1" 'NR == component + 1')
    eval "gl_tasks=\${SLURM_NTASKS_HET_GROUP_$1:-$2} gl_nodes=\${SLURM_JOB_NUM_NODES_HET_GROUP_$1:-$3}
        gl_per_node=\${SLURM_NTASKS_PER_NODE_HET_GROUP_$1:-$4} gl_cpus=\${SLURM_CPUS_PER_TASK_HET_GROUP_$1-}
        gl_nodelist=\${SLURM_JOB_NODELIST_HET_GROUP_$1-}"
    gl_leaf_group=$5 gl_pod_group=$6
}

# Each in a shell of its own, with its own numbers and its own folder.
in_components() { # COMMAND…
    gl_component=0
    while [ "$gl_component" -lt "$gl_components" ]; do
        (
            shape "$gl_component"
            gl_attempt=$gl_attempt/component.$gl_component
            "$@"
        ) || return
        gl_component=$((gl_component + 1))
    done
}

order_one() {
    mkdir "$gl_attempt" || stop "cannot write in $gl_attempt"
    SLURM_JOB_NODELIST=$gl_nodelist
    order_nodes
    [ "$gl_order" = planned ] || exit 4
}

put_together() {
    rm -f "$gl_attempt/granted" "$gl_attempt/ordered" "$gl_attempt/hosts"
    in_components add_one || exit 1
}

add_one() {
    for gl_name in granted ordered hosts; do
        cat "$gl_attempt/$gl_name" >>"${gl_attempt%/*}/$gl_name" || stop "cannot write in $gl_attempt"
    done
}

order_ranks() {
    [ "${SLURM_HET_SIZE:-1}" -eq "$gl_components" ] ||
        stop "this job has $gl_components components, and the allocation has ${SLURM_HET_SIZE:-1}: submit the script with sbatch" 2
    in_components order_one
    case $? in
    0) put_together ;;
    4) slurm_order ;;
    *) exit 1 ;;
    esac
    count_all
}

slurm_order() { # for all, so that one step can start them
    gl_order=slurm
    in_components granted_one || exit 1
    put_together
    count_all
    if ask_order; then
        in_components order_shown || exit 1
        rm -f "$gl_attempt/ordered.part"
        put_together
    fi
}

granted_one() {
    mkdir -p "$gl_attempt"
    scontrol show hostnames "$gl_nodelist" >"$gl_attempt/granted" || stop "Slurm does not name the nodes of this job"
    gl_granted=$(($(wc -l <"$gl_attempt/granted")))
    nodes_as_granted
}

order_shown() { # of what the step has shown, this component's nodes
    awk 'NR == FNR { own[$1]; next } $1 in own' "$gl_attempt/granted" "${gl_attempt%/*}/ordered.part" >"$gl_attempt/ordered" ||
        stop "cannot write in $gl_attempt"
    spread_ranks
}

count_all() {
    gl_tasks=$(($(wc -l <"$gl_attempt/hosts"))) gl_nodes=$(($(wc -l <"$gl_attempt/ordered"))) gl_granted=$(($(wc -l <"$gl_attempt/ordered")))
}

# srun's words for all components, between colons: for each its own options, then the same words again. It replaces "$@" of its caller by
# setting it anew, so it is a text that the caller evaluates.
#   $gl_own    a function that sets gl_options, the component's own options in one text (numbers and plain names only)
gl_each_component='
    gl_words=$# gl_component=0
    while [ "$gl_component" -lt "$gl_components" ]; do
        [ "$gl_component" -eq 0 ] || set -- "$@" :
        "$gl_own" "$gl_component"
        set -f
        set -- "$@" --het-group="$gl_component" --export=ALL,GLAUNCH_COMPONENT="$gl_component" $gl_options
        set +f
        gl_word=1
        while [ "$gl_word" -le "$gl_words" ]; do
            eval "set -- \"\$@\" \"\${$gl_word}\""
            gl_word=$((gl_word + 1))
        done
        gl_component=$((gl_component + 1))
    done
    shift "$gl_words"'

# What the job says of each component's ranks a node: 22.05 would warn of a step that has other ones.
forget_per_node() {
    gl_component=0
    while [ "$gl_component" -lt "$gl_components" ]; do
        unset "SLURM_NTASKS_PER_NODE_HET_GROUP_$gl_component" "SLURM_NTASKS_PER_NODE_PACK_GROUP_$gl_component"
        gl_component=$((gl_component + 1))
    done
}

each_own() { # COMPONENT
    shape "$1"
    gl_options="--ntasks=$gl_nodes --nodelist=./component.$1/ordered --distribution"
    if [ -n "${gl_host_file-}" ]; then
        gl_options="$gl_options=arbitrary"
    else
        gl_options="$gl_options=block --nodes=$gl_nodes --ntasks-per-node=1"
    fi
}

# As batch.sh's: one task on every node of this run, or on one node of the first component.
each() { # SECONDS COMMAND…
    (
        forget_shape # the first component's, which would hold for all
        gl_limit=$1 gl_own=each_own
        shift
        set -- --overlap --cpus-per-task=1 --mem=0 --gres=none --mpi=none --input=none "$@"
        cd "$gl_attempt" || exit 1
        if [ "$gl_nodes" -eq 1 ]; then
            exec timeout -k 2 "$gl_limit" srun --export=ALL --nodes=1 --ntasks=1 --nodelist="$gl_among" "$@"
        fi
        eval "$gl_each_component"
        forget_per_node
        exec timeout -k 2 "$gl_limit" srun "$@"
    )
}

ranks_own() { # COMPONENT
    shape "$1"
    gl_options="--ntasks=$gl_tasks${gl_cpus:+ --cpus-per-task=$gl_cpus}"
    if [ "$gl_order" = planned ]; then
        gl_options="$gl_options --distribution=arbitrary --nodelist=./component.$1/hosts"
    else
        gl_options="$gl_options --distribution=block --nodes=$gl_nodes --nodelist=./component.$1/ordered"
        [ "$gl_tasks" -gt $((gl_nodes * gl_per_node)) ] || gl_options="$gl_options --ntasks-per-node=$gl_per_node"
    fi
}

ranks_step() { # [OPTION…] COMMAND…: one task a rank, in one step over all components
    forget_shape
    gl_own=ranks_own
    set -- --label --open-mode=append --output=out/%N.log ${SLURM_STEP_ID:+--overlap} "$@"
    cd "$gl_attempt" || exit 1
    eval "$gl_each_component"
    forget_per_node
    exec srun "$@"
}
