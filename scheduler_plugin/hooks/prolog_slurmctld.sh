#!/bin/sh
# PrologSlurmctld: give a job the I/O nodes of its licences, before it starts.

# Most jobs have no licences. Broken settings must not stop these jobs, so a subshell reads them.
if [ -z "${SLURM_JOB_LICENSES-}" ]; then
    (
        # shellcheck source-path=SCRIPTDIR source=io_nodes.sh
        . "${0%/*}/io_nodes.sh"
        read_configuration && end_left_behind "$SLURM_JOB_ID"
    )
    exit 0
fi

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

read_configuration
configured=$?
count=$(licence_count "$SLURM_JOB_LICENSES" "$LICENCE")
if [ "$count" -eq 0 ]; then
    (end_left_behind "$SLURM_JOB_ID")
    exit 0
fi
[ "$configured" -eq 0 ] || fail "job $SLURM_JOB_ID: cannot read $HOOKS_CONF"
start_io_nodes "$SLURM_JOB_ID" "$count" "${SLURM_JOB_NODELIST-}"
