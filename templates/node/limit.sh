# limit.sh SECONDS: returns when SECONDS (a quarter of what is left, if that is less) remain before the job's time limit
#
# 0: now   1: there is no limit, or Slurm does not say. Slurm can warn a job itself (--signal), but only once a job, and that one is the user's.
before=$1
# Under its bare id the last task of an array answers together with all others
job=${SLURM_ARRAY_TASK_ID:+${SLURM_ARRAY_JOB_ID-}_$SLURM_ARRAY_TASK_ID}
job=${job:-$SLURM_JOB_ID}

left() { # seconds until the time limit, of several components the first; the limit may be raised while the job runs, so it is asked for again
    end=$(SLURM_TIME_FORMAT=standard scontrol --local show job "$job" 2>/dev/null |
        awk '$1 ~ /^StartTime=/ && $2 ~ /^EndTime=[0-9]/ { at = substr($2, 9); if (end == "" || at < end) end = at } END { print end }')
    [ -n "$end" ] && end=$(date -d "$end" +%s 2>/dev/null) && echo $((end - $(date +%s)))
}

sleeper=
trap '[ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null; exit 1' TERM
rest=$(left) || exit 1
[ "$before" -le $((rest / 4)) ] || before=$((rest / 4))
while [ "$rest" -gt "$before" ]; do
    sleep $((rest - before)) &
    sleeper=$!
    wait "$sleeper"
    sleeper=
    rest=$(left) || exit 1
done
