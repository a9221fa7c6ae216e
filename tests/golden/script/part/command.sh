# What every rank runs, word by word, and where.
gl_work_dir='/home/ada'
set -- \
    './a.out'
# One of several submissions of a larger array: the program sees the index, and the whole array, that were asked for.
if [ -n "${SLURM_ARRAY_TASK_ID-}" ]; then
    export SLURM_ARRAY_TASK_ID=$((SLURM_ARRAY_TASK_ID + 20))
    export SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_MAX=24 SLURM_ARRAY_TASK_COUNT=25 SLURM_ARRAY_TASK_STEP=1
fi
