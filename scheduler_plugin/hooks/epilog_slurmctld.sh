#!/bin/sh
# EpilogSlurmctld: take a job's I/O nodes back, before Slurm gives its licences to other jobs.
# To clean up after a job by hand: SLURM_JOB_ID=123 epilog_slurmctld.sh

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

read_configuration
configured=$?
count=$(started_count "$SLURM_JOB_ID") ||
    count=$(licence_count "${SLURM_JOB_LICENSES-}" "$LICENCE")
[ "$count" -gt 0 ] || exit 0
[ "$configured" -eq 0 ] || fail "job $SLURM_JOB_ID: cannot read $HOOKS_CONF"
end_io_nodes "$SLURM_JOB_ID" "$count" "${SLURM_JOB_NODELIST-}"
