# What every rank runs, word by word, and where.
gl_work_dir='/home/ada'
set -- \
    './a.out'
# One of several submissions of a larger array: the program sees the index, and the whole array, that were asked for.
# Slurm's own index stands in the attempt's name, JOB.INDEX.RESTART: a launcher of ranks reads this file before they do.
if [ -n "${SLURM_ARRAY_TASK_ID-}" ] && [ -n "${gl_attempt-}" ]; then
    gl_index=${gl_attempt##*/}; gl_index=${gl_index#*.}; gl_index=${gl_index%%.*}
    export SLURM_ARRAY_TASK_ID=$((gl_index + 20))
    export SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=24 SLURM_ARRAY_TASK_COUNT=25 SLURM_ARRAY_TASK_STEP=1
fi
