#!/bin/sh -p
# TaskProlog: tells every task of a job, also of srun and salloc, how many I/O nodes it has.
# It runs as the user for every task, and asks no daemon. It takes what it tells from JOBS_FOLDER, which
# PrologSlurmctld has written, because users can change all else that their tasks are told. With -p bash
# leaves the functions of their environment out.

# A TaskProlog that fails ends the task, and broken settings would end those of all jobs.
trap 'exit 0' EXIT

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

# A step over several components of a het job has the first one's SLURM_JOB_ID on all nodes. (Of a
# job that was submitted inside of a het job, the names of the groups are that one's. A user who changes
# them is told another job's number, and has no I/O node more by it.)
job_of_this_node() {
    group=0
    job=$SLURM_JOB_ID
    while [ "${SLURM_JOB_ID_HET_GROUP_0-}" = "$SLURM_JOB_ID" ] && is_number "$job"; do
        eval "job=\${SLURM_JOB_ID_HET_GROUP_$group-} nodes=\${SLURM_JOB_NODELIST_HET_GROUP_$group-}"
        if is_number "$job" && scontrol show hostnames "$nodes" | grep -qxF "$SLURMD_NODENAME"; then
            echo "$job"
            return
        fi
        group=$((group + 1))
    done
    echo "$SLURM_JOB_ID"
}

read_configuration || exit 0
[ -n "$JOBS_FOLDER" ] || exit 0
job=$(job_of_this_node)
if count=$(started_count "$job"); then
    echo "export ION_COUNT=$count"
# What was decided at submission may have been changed while the job waited; what burst_buffer.lua
# says when the job starts may not.
elif [ -n "${ION_COUNT-}" ] && [ "${IONCAST_BURST_BUFFER_OF-}" != "$job" ]; then
    echo "export ION_COUNT=0"
fi
if [ -r "$JOBS_FOLDER/$job.hosts" ]; then
    echo "export LIBGKFS_HOSTS_FILE=$JOBS_FOLDER/$job.hosts"
    echo "export LIBGKFS_FORWARDING_MAP_FILE=$JOBS_FOLDER/$job.map"
fi
