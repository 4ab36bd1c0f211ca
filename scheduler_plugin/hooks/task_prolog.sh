#!/bin/sh
# TaskProlog: tells every task of a job, also of srun and salloc, how many I/O nodes it has.
# It runs as the user for every task, and asks no daemon.

# A TaskProlog that fails ends the task, and broken settings would end those of all jobs.
trap 'exit 0' EXIT

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

# A step over several components of a het job has the first one's SLURM_JOB_ID on all nodes. (Of a
# job that was submitted inside of a het job, the names of the groups are that one's.)
job_of_this_node() {
    group=0
    job=$SLURM_JOB_ID
    while [ "${SLURM_JOB_ID_HET_GROUP_0-}" = "$SLURM_JOB_ID" ] && [ -n "$job" ]; do
        eval "job=\${SLURM_JOB_ID_HET_GROUP_$group-} nodes=\${SLURM_JOB_NODELIST_HET_GROUP_$group-}"
        if scontrol show hostnames "$nodes" | grep -qxF "$SLURMD_NODENAME"; then
            echo "$job"
            return
        fi
        group=$((group + 1))
    done
    echo "$SLURM_JOB_ID"
}

read_configuration || exit 0
job=$(job_of_this_node)
# Slurm 22.05 tells a task nothing of its licences; 23.02 and later do.
count=$(started_count "$job") || count=$(licence_count "${SLURM_JOB_LICENSES-}" "$LICENCE")
# What was decided at submission may have been changed while the job waited; what burst_buffer.lua
# says when the job starts may not.
if [ "${IONCAST_BURST_BUFFER_OF-}" != "$job" ] &&
    { [ "$count" -gt 0 ] || { [ -n "$JOBS_FOLDER" ] && [ -n "${ION_COUNT-}" ]; }; }; then
    echo "export ION_COUNT=$count"
fi
if [ -r "$JOBS_FOLDER/$job.hosts" ]; then
    echo "export LIBGKFS_HOSTS_FILE=$JOBS_FOLDER/$job.hosts"
    echo "export LIBGKFS_FORWARDING_MAP_FILE=$JOBS_FOLDER/$job.map"
fi
