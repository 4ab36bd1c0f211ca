#!/bin/sh -p
# TaskProlog: set ION_COUNT for every process of a job, also for those of srun and salloc.
# It runs as the job's user for every process, so it asks no daemon. It reads the count from JOBS_FOLDER, which
# only PrologSlurmctld can write: users can change everything in their environment. With -p, bash ignores the
# functions in this environment.

# If TaskProlog fails, Slurm ends the process. Broken settings would end the processes of all jobs.
trap 'exit 0' EXIT

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

# The id of the job, or of the component of a het job, that this node belongs to. A step over several
# components has the first component's SLURM_JOB_ID on all nodes, so look for the component with this node.
# A job that is submitted inside a het job inherits the variables of its groups; their ids differ from its
# own, so they are ignored. A user who changes the variables sees another job's count, but gets no I/O nodes.
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
names=
if count=$(started_count "$job"); then
    echo "export ION_COUNT=$count"
    names=$(names_of "$job")
# Without a count, a number from submission may be out of date, because the arbiter may have changed it.
elif [ -n "${ION_COUNT-}" ]; then
    echo "export ION_COUNT=0"
fi
# Names in a user's environment may be those of another job.
if [ -n "$names${ION_NODES-}" ]; then
    echo "export ION_NODES=$names"
fi
if [ -r "$JOBS_FOLDER/$job.map" ]; then
    echo "export LIBGKFS_HOSTS_FILE=$JOBS_FOLDER/$job.hosts"
    echo "export LIBGKFS_FORWARDING_MAP_FILE=$JOBS_FOLDER/$job.map"
fi
