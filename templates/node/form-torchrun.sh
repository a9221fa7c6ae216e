# form.sh, torchrun: one agent a node, which starts the ranks there.
#
# Static rendezvous: each agent is told its place. The other one (c10d) sorts the nodes by name, so that ranks lose their order.
# --no_python: the ranks start as node/task.sh, which becomes the program; so its arguments never go through torchrun's own reading.
# shellcheck disable=SC2034,SC2154 # names that their readers set

form_ready() {
    gl_own_order=1   # each agent is told its place: Slurm need not make the order
    gl_patience_s=30 # so long the other agents get after one has failed
}

form_start() { agents_step sh "$gl_folder/node/agent.sh" "$gl_attempt" "$gl_folder"; }

form_needs() { starter_there torch; }

form_agent() { # STARTER…: torchrun, or python -m torch.distributed.run, and what was asked for. Underscores: older ones know no dashes
    agent "$@" --nnodes="$gl_nodes" --node_rank="$gl_node_rank" --nproc_per_node="$gl_local_size" \
        --rdzv_backend=static --master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT" \
        --no_python sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
}

form_rank() { # torchrun has set RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, GROUP_RANK and more
    gl_rank=$RANK gl_local=$LOCAL_RANK gl_label=1
    NODE_RANK=$(node_rank)
    export NODE_RANK
}
