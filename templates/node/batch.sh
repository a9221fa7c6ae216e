# batch.sh: the steps of job.sbatch, which reads this file and sets
#   gl_folder gl_submission gl_work_dir    gl_tasks gl_nodes gl_per_node gl_order    gl_cap_bytes gl_gather_s gl_before_limit_s gl_start_s
# All names begin with gl_: a variable that came with the user's environment stays exported, so setting it here would change what the
# program sees.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # names that job.sbatch sets or reads; what changes in a subshell is meant for it alone

gl_main='' gl_timer='' gl_watcher='' gl_ender='' gl_told='' gl_among='' gl_code=0 gl_started_s='' gl_began_s=${gl_began_s:-$(date +%s)}
gl_speak=0 gl_how='' gl_own_order='' gl_patience_s='' gl_runtime='' gl_gres=--gres=none # what the form says, and the container

say() { printf 'glaunch: %s\n' "$*" >&2; }

stop() {
    say "$1"
    exit "${2:-1}"
}

# A caller may have had no PATH. The shell then has one of its own, which no step sees: it would not find sh.
if [ -n "${PATH-}" ]; then export PATH; else export PATH=/usr/local/bin:/usr/bin:/bin; fi

some() { # COUNT ONE MORE
    if [ "$1" -eq 1 ]; then printf '1 %s' "$2"; else printf '%d %s' "$1" "$3"; fi
}

# The launch form: how the ranks are started, and what each node then does. Of one whose starter may end before what it has started,
# form_before makes the means by which form_over knows the end of that.
form_before() { :; }
form_over() { :; }
# shellcheck source=/dev/null
. "$gl_folder/node/form.sh"
# The steps of one kind each: modules, the order and whether it is a good set, the container
for gl_part in modules order container; do
    # shellcheck source=/dev/null
    . "$gl_folder/node/batch-$gl_part.sh"
done

[ -n "${SLURM_JOB_ID-}" ] || stop "no allocation here: submit this script with sbatch, or run it inside salloc" 2

# What sbatch left in the environment about the ranks: for a step with the job's resources whose tasks are not the ranks.
forget_ranks() {
    unset SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK SLURM_NTASKS_PER_NODE SLURM_TRES_PER_TASK SLURM_GPUS_PER_TASK SLURM_NTASKS_PER_GPU
}

# And about all that the job has: a step of another shape would contradict it.
forget_shape() {
    forget_ranks
    unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_GPUS SLURM_GPUS_PER_NODE SLURM_DISTRIBUTION
}

# One task on every node of this run, beside the ranks: no GPU, no memory of its own, and not in the ranks' order unless asked for.
each() { # SECONDS COMMAND…
    (
        forget_shape
        gl_limit=$1
        shift
        if [ -n "${gl_host_file-}" ]; then
            export SLURM_HOSTFILE="$gl_host_file"
            set -- --distribution=arbitrary "$@" # no --nodes: the host file says how many, and 24.11 refuses both
        else
            set -- --distribution=block --nodes="$gl_nodes" --ntasks-per-node=1 ${gl_among:+"--nodelist=$gl_among"} "$@"
        fi
        exec timeout -k 2 "$gl_limit" srun --export=ALL --overlap --ntasks="$gl_nodes" --cpus-per-task=1 --mem=0 ${gl_gres:+"$gl_gres"} \
            --mpi=none --input=none "$@"
    )
}

# The next line of setup, from stdin: in $gl_line, and in a file while it runs.
gl_next_line() {
    IFS= read -r gl_line
    printf '%s\n' "$gl_line" >|"$gl_attempt/setup" || :
}

# ATTEMPT = FOLDER/JOB.TASK.RESTART; a second run inside one allocation gets -2, -3, …
make_attempt() {
    gl_base=$gl_folder/${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}.${SLURM_ARRAY_TASK_ID:-0}.${SLURM_RESTART_COUNT:-0} gl_run=1
    gl_attempt=$gl_base
    until mkdir "$gl_attempt" 2>/dev/null; do
        [ -d "$gl_attempt" ] || stop "cannot write in $gl_folder"
        gl_run=$((gl_run + 1))
        gl_attempt=$gl_base-$gl_run
    done
    mkdir "$gl_attempt/out" "$gl_attempt/logs" "$gl_attempt/ranks.d" || stop "cannot write in $gl_attempt"
    # The batch log of a requeued job goes on; a reader must see which run a line belongs to.
    [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || say "run ${gl_attempt##*/} begins"
}

probe() {
    # shellcheck disable=SC2016 # $1 is for the shell over there
    each 60 sh -c '[ -r "$1/node/probe.sh" ] || { printf "glaunch: %s: does not see %s\\n" "$SLURMD_NODENAME" "$1" >&2; exit 73; }
        exec sh "$1/node/probe.sh" "$2" "$1"' sh "$gl_folder" "$gl_attempt"
}

# The step goes out in the ranks' order where Slurm is to make that, so it also shows whether Slurm takes one.
look_at_nodes() {
    gl_speak=$gl_tasks # so many say where they run
    choose_runtime
    form_ready
    gl_host_file=
    if [ "$gl_order" = planned ] && [ -z "$gl_own_order" ]; then gl_host_file=$gl_attempt/ordered; fi
    probe
    gl_result=$?
    gl_asked=$gl_host_file gl_host_file=
    case $gl_asked:$gl_result in
    :* | *:0 | *:72 | *:73 | *:126 | *:127) ;;
    *)
        slurm_order
        probe
        gl_result=$?
        [ "$gl_result" -ne 0 ] || say "Slurm does not take the plan's order; the ranks follow Slurm's own"
        ;;
    esac
    case $gl_result in
    0) ;;
    126 | 127) stop "the program cannot run on every node; no rank was started" 127 ;;
    *) stop "not every node can take part; no rank was started" ;;
    esac
    cd "$gl_work_dir" || stop "the working folder $gl_work_dir is not there"
}

watch_limit() {
    gl_limit=
    trap '[ -z "$gl_limit" ] || kill "$gl_limit" 2>/dev/null; exit 0' TERM
    trap - EXIT
    sh "$gl_folder/node/limit.sh" "$gl_before_limit_s" &
    gl_limit=$!
    wait "$gl_limit" || exit 0
    say "the time limit is near: gathering the logs now"
    gather early
}

gather() { # early | last
    each "$gl_gather_s" sh "$gl_folder/node/gather.sh" "$gl_attempt" "$gl_cap_bytes" "$1" >"$gl_attempt/manifest.$1" 2>"$gl_attempt/gather.err"
    gl_gathered=$?
    mv "$gl_attempt/manifest.$1" "$gl_attempt/manifest.jsonl"
    [ "$gl_gathered" -ne 0 ] || rm -f "$gl_attempt/gather.err"
    return "$gl_gathered"
}

# Rank 0's node need not be this one, and the port must be free there. Sets and exports MASTER_ADDR and MASTER_PORT.
find_port() { # TRY
    gl_first=$(head -n 1 "$gl_attempt/ordered")
    gl_seed=$((SLURM_JOB_ID + $1 * 101))
    if [ "$gl_first" = "${SLURMD_NODENAME-}" ]; then
        gl_answer=$(sh "$gl_folder/node/port.sh" "$gl_seed")
    else
        gl_answer=$(gl_nodes=1 gl_among=$gl_first && each 60 sh "$gl_folder/node/port.sh" "$gl_seed")
    fi || stop "$gl_first gave no free port"
    export MASTER_PORT="${gl_answer%% *}" MASTER_ADDR="${gl_answer#* }"
}

# What a form starts the ranks with; both become srun. SLURM_HOSTFILE is for this one srun only; its file names one host a task. The output's
# files are named from where srun stands, so that a "%" or a backslash in the folder's name is not taken for a pattern. With "here" in a step
# (SLURM_STEP_ID) that step holds the cores and waits for this one, so this one shares them.
ranks_step() { # [OPTION…] COMMAND…: one task a rank
    set -- --export=ALL --ntasks="$gl_tasks" --label --open-mode=append --output=out/%N.log \
        ${SLURM_CPUS_PER_TASK:+"--cpus-per-task=$SLURM_CPUS_PER_TASK"} ${SLURM_STEP_ID:+--overlap} "$@"
    cd "$gl_attempt" || exit 1
    if [ "$gl_order" = planned ]; then
        unset SLURM_NTASKS_PER_NODE # the host file says it, also for a last node with fewer (and no --nodes: 24.11 refuses both)
        export SLURM_HOSTFILE="$gl_attempt/hosts"
        become_srun --distribution=arbitrary "$@"
    fi
    [ "$gl_tasks" -gt $((gl_nodes * gl_per_node)) ] || set -- --ntasks-per-node="$gl_per_node" "$@" # else Slurm spreads them itself
    become_srun --distribution=block ${gl_among:+"--nodelist=$gl_among"} "$@"
}

# Where each of them stands in the order it reads itself, so Slurm's own order is good enough.
# Without --cpus-per-task a step has all cores of the job on its nodes (with it, only so many), and --cpu-bind=none leaves them to the
# ranks, whoever starts those.
agents_step() { # [OPTION…] COMMAND…: one task a node, which starts the ranks there itself
    forget_ranks
    cd "$gl_attempt" || exit 1
    become_srun --export=ALL --nodes="$gl_nodes" --ntasks="$gl_nodes" --ntasks-per-node=1 --distribution=block \
        ${gl_among:+"--nodelist=$gl_among"} --cpu-bind=none --mpi=none --open-mode=append --output=out/%N.log \
        ${SLURM_STEP_ID:+--overlap} "$@"
}

start() {
    form_before
    (
        trap - EXIT
        form_start
    ) &
    gl_main=$!
    [ -n "$gl_patience_s" ] || return 0
    sh "$gl_folder/node/ended.sh" "$gl_attempt" "$gl_main" "$gl_patience_s" >/dev/null 2>&1 &
    gl_ender=$!
}

audit() { # TRY: what the report compares with the plan
    printf '{"schema": "glaunch.audit/1", "order": "%s", "first": "%s", "master": "%s", "port": %d, "try": %d, "tasks": %d, "nodes": %d, ' \
        "$gl_order" "$gl_first" "$MASTER_ADDR" "$MASTER_PORT" "$1" "$gl_tasks" "$gl_nodes"
    printf '"how": "%s", "log_dir": "%s", "began_s": %d}\n' "$gl_how" "$(printf '%s' "$GLAUNCH_LOG_DIR" | awk '{ gsub(/[\\"]/, "\\\\&"); print }')" "$gl_began_s"
}

# Sets $gl_code. A rank 0 that cannot bind its port at the start is tried again with another, twice.
run_ranks() {
    gl_try=1
    while :; do
        find_port "$gl_try"
        audit "$gl_try" >"$gl_attempt/audit.json.part" && mv "$gl_attempt/audit.json.part" "$gl_attempt/audit.json"
        gl_offset=$(wc -c <"$gl_attempt/out/$gl_first.log" || echo 0)
        gl_started_s=$(date +%s)
        start
        sh "$gl_folder/node/watch.sh" "$gl_attempt" "$gl_speak" "$gl_first" "$((gl_offset))" "$gl_main" "$gl_start_s" >/dev/null 2>&1 &
        gl_watcher=$!
        while :; do # a signal ends the wait, not the ranks
            wait "$gl_main"
            gl_code=$?
            kill -0 "$gl_main" 2>/dev/null || break
        done
        for gl_process in $gl_watcher $gl_ender; do kill "$gl_process" 2>/dev/null; done
        gl_main='' gl_watcher='' gl_ender=''
        form_over
        # srun ends with the highest code of all agents; that of the one which failed first is the cause
        if [ "$gl_code" -ne 0 ] && [ -z "$gl_told" ] && [ -h "$gl_attempt/failed" ]; then gl_code=$(readlink "$gl_attempt/failed"); fi
        # Ended by TERM: at scancel and at the time limit this shell is told too, sometimes a moment later than the ranks
        if [ "$gl_code" -eq 143 ] && [ -z "$gl_told" ]; then sleep 1; fi
        if [ "$gl_code" -eq 0 ] || [ -n "$gl_told" ] || [ "$gl_try" -ge 3 ]; then break; fi
        [ $(($(date +%s) - gl_started_s)) -le $((gl_start_s + 30)) ] || break
        sh "$gl_folder/node/watch.sh" "$gl_attempt" "$gl_speak" "$gl_first" "$((gl_offset))" || break
        gl_try=$((gl_try + 1))
        say "port $MASTER_PORT was taken on $gl_first in the meantime; once more with another"
        rm -rf "$gl_attempt/ranks.tsv" "$gl_attempt/ranks.d" "$gl_attempt/port-taken" "$gl_attempt/failed"
        mkdir "$gl_attempt/ranks.d"
    done
}

pass_on() { # SIGNAL
    [ -z "$gl_main" ] || kill -s "$1" "$gl_main"
}

# Slurm ends the job (scancel, the time limit, a requeue), or somebody ends this shell: the ranks are told as well.
stopped() { # SIGNAL CODE
    gl_told=$1
    [ -n "$gl_main" ] || exit "$2"
    kill -s TERM "$gl_main"
}

finish() {
    gl_code=$?
    trap - EXIT
    trap '' HUP INT TERM USR1 USR2
    if [ -n "${gl_line-}" ] && [ -z "$gl_told" ]; then # a line of the user's own was running: "exit 0" in it is no end of the job's either
        set +ef
        say "setup ended with $gl_code in the line: $gl_line"
        [ "$gl_code" -ne 0 ] || gl_code=1
    fi
    for gl_process in $gl_timer $gl_watcher $gl_ender; do kill "$gl_process" 2>/dev/null; done
    [ -z "$gl_timer" ] || wait "$gl_timer" # it may be gathering right now
    form_over
    sh "$gl_folder/node/ranks.sh" "$gl_attempt" "${gl_speak:-$gl_tasks}" # it may end before that is known
    if [ -n "$gl_started_s" ] && ! gather last; then
        # After scancel and at the time limit Slurm starts no more steps; what is left is the host of this shell
        awk -v host="${SLURMD_NODENAME-}" 'index($0, "{\"host\": \"" host "\",") { found = 1 } END { exit !found }' "$gl_attempt/manifest.jsonl" ||
            sh "$gl_folder/node/gather.sh" "$gl_attempt" "$gl_cap_bytes" last >>"$gl_attempt/manifest.jsonl"
        say "$(($(wc -l <"$gl_attempt/manifest.jsonl"))) of $gl_nodes nodes gave their logs at the job's end"
    fi
    leave_container
    gl_signal=0
    [ "$gl_code" -le 128 ] || gl_signal=$((gl_code - 128))
    printf '{"schema": "glaunch.exit/1", "job_id": "%s", "code": %d, "signal": %d, "told": "%s", "began_s": %d, "ended_s": %d}\n' \
        "$SLURM_JOB_ID" "$gl_code" "$gl_signal" "$gl_told" "$gl_began_s" "$(date +%s)" >"$gl_attempt/exit.json.part" &&
        mv "$gl_attempt/exit.json.part" "$gl_attempt/exit.json"
    exit "$gl_code"
}
