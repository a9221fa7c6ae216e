# form.sh, exec: the program runs once, on the first node, in the environment of a batch script; it starts what it wants by itself.
#
# It has MASTER_ADDR (its node), MASTER_PORT (free) and GLAUNCH_HOSTFILE: "HOST slots=N" a line, in the ranks' order.
# shellcheck disable=SC2034,SC2154 # names that their readers set

form_ready() { gl_speak=1 gl_own_order=1; } # of the ranks only this one says where it runs; and Slurm need not make the order

# The names of Slurm's variables that a step has in its own way. Not those that hold for both, nor what may be a secret: they go along as they are.
gl_slurms='
    function slurms(name) {
        return name ~ /^(SLURM|SRUN)_[A-Za-z0-9_]*$/ && name !~ /^SLURM_(CONF|JWT)$/ && tolower(name) !~ /token|key|secret|pass|credential|auth/
    }'

# A step, so that signals and output go their usual ways, but one that takes nothing away from those which the program starts. They must
# find the job's environment, not that of this step.
form_start() {
    awk '!($0 in slots) { host[++n] = $0 } { slots[$0]++ } END { for (i = 1; i <= n; i++) print host[i], "slots=" slots[host[i]] }' \
        "$gl_attempt/hosts" >"$gl_attempt/hostfile"
    export GLAUNCH_HOSTFILE="$gl_attempt/hostfile"
    LC_ALL=C awk "$gl_slurms"'
        BEGIN {
            for (name in ENVIRON) {
                if (!slurms(name)) continue
                value = ENVIRON[name]
                gsub(/\047/, "\047\"\047\"\047", value)
                printf "export %s=\047%s\047\n", name, value
            }
        }' >"$gl_attempt/slurm.env"
    forget_ranks
    # shellcheck source=/dev/null
    . "$gl_folder/starter.sh"
    cd "$gl_attempt" || exit 1
    become_srun --export=ALL --overlap --nodes=1 --ntasks=1 --nodelist="$gl_first" --distribution=block --cpu-bind=none --mem=0 --mpi=none \
        --label --open-mode=append --output=out/%N.log "$@" sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
}

form_needs() { :; }

form_rank() {
    gl_rank=0 gl_local=0
    # shellcheck disable=SC2046 # names, one word each
    unset $(awk "$gl_slurms"'BEGIN { for (name in ENVIRON) if (slurms(name)) print name }')
    # shellcheck source=/dev/null
    . "$gl_attempt/slurm.env"
}
