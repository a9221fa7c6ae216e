# form.sh, accelerate: one "accelerate launch" a node, which starts the ranks there (by way of torchrun's parts).
#
# Places, counts and the rendezvous are told, so they win over a configuration file of the user's. Static, and --same_network, without which
# accelerate does not hand the address on: so the ranks keep their order. --no_python: the ranks start as node/task.sh, which becomes the
# program, so its arguments arrive as they are. It shares the ranks out evenly, whatever it is told.
# shellcheck disable=SC2034,SC2154 # names that their readers set

form_ready() {
    gl_own_order=1   # each agent is told its place: Slurm need not make the order
    gl_patience_s=30 # so long the other agents get after one has failed
}

form_start() {
    [ $((gl_tasks % gl_nodes)) -eq 0 ] || stop "accelerate wants as many ranks on every node, and $gl_tasks on $gl_nodes nodes are not" 2
    agents_step sh "$gl_folder/node/agent.sh" "$gl_attempt" "$gl_folder"
}

form_needs() { starter_there accelerate; }

# What kind of job it is, only where neither the options nor a configuration file say so: it then asks what it sees on its own node.
kind_is_said() { # STARTER…
    for gl_word in "$@"; do
        case $gl_word in
        --cpu | --tpu | --multi[_-]gpu | --use[_-]deepspeed | --use[_-]fsdp | --use[_-]megatron[_-]lm | --config[_-]file*) return 0 ;;
        esac
    done
    set -- "${HF_HOME:-${XDG_CACHE_HOME:-${HOME-}/.cache}/huggingface}/accelerate/default_config"
    [ -e "$1.yaml" ] || [ -e "$1.json" ]
}

form_agent() { # STARTER…
    [ "$gl_tasks" -lt 2 ] || kind_is_said "$@" || set -- "$@" --multi_gpu
    agent "$@" --num_machines="$gl_nodes" --machine_rank="$gl_node_rank" --num_processes="$gl_tasks" \
        --rdzv_backend=static --same_network --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" \
        --deepspeed_multinode_launcher=standard --no_python sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
}

form_rank() { # set by accelerate as by torchrun, except for a single rank
    export RANK="${RANK:-0}" WORLD_SIZE="${WORLD_SIZE:-1}" LOCAL_RANK="${LOCAL_RANK:-0}" LOCAL_WORLD_SIZE="${LOCAL_WORLD_SIZE:-1}"
    gl_rank=$RANK gl_local=$LOCAL_RANK gl_label=1
    NODE_RANK=$(node_rank)
    export NODE_RANK
}
