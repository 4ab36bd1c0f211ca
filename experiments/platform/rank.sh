# Starts a program as one rank on its compute node; `ioncast platform up` writes its settings in front.
# Usage: mpiexec -n TASKS rank IO_NODES PROGRAM [ARGUMENT...]
# `ioncast platform exec` gives the mounts of the run's compute nodes, with spaces between, for IO_NODES.
set -eu

fail() {
    echo "ioncast: $1" >&2
    exit 2
}

# If a rank fails before MPI_Init, mpiexec may wait for the other ranks. So each rank reports its failure
# in a file.
if [ -n "${IONCAST_FAILURES-}" ]; then
    failures=$IONCAST_FAILURES
    unset IONCAST_FAILURES
    "$folder/rank" "$@" && exit
    code=$?
    echo "$code" >> "$failures"
    exit "$code"
fi

[ $# -ge 2 ] || fail "usage: $folder/rank IO_NODES PROGRAM [ARGUMENT...]"
case $1 in
*/*) mounts=$1 ;;
*)
    [ -d "$folder/mounts/io$1" ] || fail "the platform $name has no runs with $1 I/O nodes"
    mounts=$(seq -f "$folder/mounts/io$1/cn%.0f" 0 $((compute_nodes - 1)))
    ;;
esac
shift
# A launcher inside a job knows the rank better than the job's scheduler, so Slurm comes last.
rank=${IONCAST_RANK-${OMPI_COMM_WORLD_RANK-${PMI_RANK-${PALS_RANKID-${SLURM_PROCID-0}}}}}
tasks=${IONCAST_TASKS-${OMPI_COMM_WORLD_SIZE-${PMI_SIZE-${PALS_NRANKS-${SLURM_NTASKS-1}}}}}
# mount_of_rank MOUNT...: print the mount of this rank's compute node.
mount_of_rank() {
    shift $((rank * $# / tasks))
    echo "$1"
}
# shellcheck disable=SC2086 # the mounts are words
view=$(mount_of_rank $mounts)
node=${view##*/cn}
mountpoint -q "$view" || fail "$view does not answer; see \`ioncast platform status $name\`"

# Give the rank the host name of its node, which traces write down.
# Unmount the other nodes' mounts in this rank's namespace: a program that asks every file system would
# wait for all of them. Enter the working directory again, because it may be in the file system.
# shellcheck disable=SC2016 # the shell in the new namespace expands these variables
in_sight='
must() {
    said=$("$@" 2>&1) || { echo "ioncast: the rank cannot see the mount of its own node: $said" >&2; exit 2; }
}
must mount --bind "$0" "$1/scratch"
must umount --lazy "$1/mounts"
must hostname "$2"
cd "$PWD" || exit 2
shift 2
exec "$@"
'
export IONCAST_PLATFORM_MEMBER="${IONCAST_PLATFORM_MEMBER-$name}"
# Open MPI's ranks meet their launcher at the host's loopback address, so they stay in its network.
if [ -z "${OMPI_COMM_WORLD_RANK-}" ]; then
    set -- nsenter --net="/run/netns/$name-cn$node" "$@"
fi
exec unshare --mount --uts --propagation slave /bin/sh -c "$in_sight" "$view" "$folder" "$name-cn$node" "$@"
