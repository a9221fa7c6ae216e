# port.sh SEED: prints "PORT NAME": a TCP port that is free on this host, and the name under which others reach the host
#
# Outside the range from which the system gives ports to outgoing connections, and from a place that depends on SEED (job and
# try), so that jobs which share a host do not all begin with the same one.
seed=$1
low=20000 high=32767
if read -r from _ </proc/sys/net/ipv4/ip_local_port_range 2>/dev/null && [ "$from" -le "$high" ] && [ "$from" -gt 12000 ]; then
    low=$((from - 10000)) high=$((from - 1))
fi

port=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk -v low="$low" -v high="$high" -v seed="$seed" '
    # local_address is HEX:PORT; awk has no hexadecimal of its own that all awks agree on
    function number(hex,    i, n) {
        n = 0
        for (i = 1; i <= length(hex); i++) n = 16 * n + index("123456789ABCDEF", toupper(substr(hex, i, 1)))
        return n
    }
    $1 ~ /:$/ { split($2, part, ":"); taken[number(part[2])] }
    END {
        span = high - low + 1
        for (i = 0; i < span; i++) {
            port = low + (seed * 7919 + i) % span
            if (!(port in taken)) { print port; exit }
        }
    }')
[ -n "$port" ] || {
    echo "glaunch: $(uname -n): no free port between $low and $high" >&2
    exit 1
}

# Slurm's name of the node is the one the plan speaks of. Where the host calls itself otherwise (clouds), its own name is the
# one that resolves.
name=${SLURMD_NODENAME:-$(uname -n)} self=$(uname -n)
[ "${self%%.*}" = "${name%%.*}" ] || name=$self
echo "$port $name"
