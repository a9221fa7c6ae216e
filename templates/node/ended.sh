# ended.sh ATTEMPT MAIN SECONDS: once an agent has failed, the others get SECONDS, then srun (process MAIN) ends them
#
# An agent whose own ranks are done waits for all others (torchrun: five minutes at its exit, and for ever where its ranks hang). Nobody tells
# it that one of them is gone for good.
attempt=$1 main=$2 seconds=$3
trap 'exit 0' TERM
while kill -0 "$main" 2>/dev/null; do
    if [ -h "$attempt/failed" ]; then
        [ "$seconds" -gt 0 ] || {
            kill -TERM "$main"
            exit 0
        }
        seconds=$((seconds - 1))
    fi
    sleep 1
done
