# form.sh, srun: one task of srun a rank, and each becomes the program.
#
# A form is these functions, read by batch.sh (form_ready, form_start), probe.sh (form_needs), agent.sh (form_agent) and task.sh (form_rank).
# shellcheck disable=SC2034,SC2154 # names that their readers set

# In the batch shell, once, before the nodes are looked at.
form_ready() { :; }

# In a shell of its own: becomes what starts the ranks.
form_start() {
    # shellcheck source=/dev/null
    . "$gl_folder/starter.sh"
    ranks_step "$@" sh "$gl_folder/node/task.sh" "$gl_attempt" "$gl_folder"
}

# On every node, before any rank: is there what it needs beside the user's program?
form_needs() { :; }

# In a rank: which one is it? Sets gl_rank and gl_local, and what programs read.
form_rank() { slurm_rank; }
