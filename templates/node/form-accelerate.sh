# form.sh, accelerate: one "accelerate launch" a node, which starts the ranks there (by way of torchrun's parts).
#
# What the job's shape says goes before the user's own accelerate configuration file: places, counts and the static rendezvous, which keeps
# the ranks' order. --no_python: the ranks start as node/task.sh, which becomes the program, so its arguments arrive as they are.
# shellcheck disable=SC2034,SC2154 # names that their readers set

form_ready() { :; }

form_start() { agents_step sh "$gl_folder/node/agent.sh" "$gl_attempt" "$gl_folder"; }

form_needs() { starter_there accelerate; }

form_agent() { # STARTER…
    agent "$@" --multi_gpu --num_machines="$gl_nodes" --machine_rank="$gl_node_rank" --num_processes="$gl_tasks" \
        --rdzv_backend=static --same_network --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" \
        --no_python sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
}

form_rank() { # set by accelerate as by torchrun
    gl_rank=$RANK gl_local=$LOCAL_RANK gl_label=1
    NODE_RANK=$(node_rank)
    export NODE_RANK
}
