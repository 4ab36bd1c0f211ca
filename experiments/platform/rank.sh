# Starts a program as one rank on its compute node; `ioncast platform up` wrote this file.
# Usage: mpiexec -n TASKS rank IO_NODES PROGRAM [ARGUMENT...]
set -eu

fail() {
    echo "ioncast: $1" >&2
    exit 2
}

# mpiexec may wait for the others when a rank fails before it knows of MPI.
if [ -n "${IONCAST_FAILURES-}" ]; then
    failures=$IONCAST_FAILURES
    unset IONCAST_FAILURES
    "$folder/rank" "$@" && exit
    code=$?
    echo "$code" >> "$failures"
    exit "$code"
fi

[ $# -ge 2 ] || fail "usage: $folder/rank IO_NODES PROGRAM [ARGUMENT...]"
io_nodes=$1
shift
# What starts ranks within a job knows better than the job's scheduler.
rank=${IONCAST_RANK-${OMPI_COMM_WORLD_RANK-${PMI_RANK-${PALS_RANKID-${SLURM_PROCID-0}}}}}
tasks=${IONCAST_TASKS-${OMPI_COMM_WORLD_SIZE-${PMI_SIZE-${PALS_NRANKS-${SLURM_NTASKS-1}}}}}
node=$((rank * ${IONCAST_NODES-$compute_nodes} / tasks))
view=$folder/mounts/io$io_nodes/cn$node
[ -d "$folder/mounts/io$io_nodes" ] || fail "no runs with $io_nodes I/O nodes on the platform $name"
mountpoint -q "$view" || fail "$view does not answer; see \`ioncast platform status $name\`"

# shellcheck disable=SC2016 # what the shell in the new namespace expands
# The mounts of other nodes go out of sight: a program that asks every file system would wait for
# all of them. The working directory may be in the file system: enter it again.
in_sight='
must() {
    said=$("$@" 2>&1) || { echo "ioncast: the rank does not see its own node: $said" >&2; exit 2; }
}
must mount --bind "$0" "$1/scratch"
must umount --lazy "$1/mounts"
cd "$PWD" || exit 2
shift
exec "$@"
'
export IONCAST_PLATFORM_MEMBER="${IONCAST_PLATFORM_MEMBER-$name}"
# Ranks of Open MPI meet their launcher at the host's loopback address.
if [ -z "${OMPI_COMM_WORLD_RANK-}" ]; then
    set -- nsenter --net="/run/netns/$name-cn$node" "$@"
fi
exec unshare --mount --propagation slave /bin/sh -c "$in_sight" "$view" "$folder" "$@"
