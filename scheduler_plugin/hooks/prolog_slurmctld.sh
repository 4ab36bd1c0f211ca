#!/bin/sh
# PrologSlurmctld: give a job the I/O nodes of its licences, before it starts.

# Most jobs have no licences. Exit before the settings are read, so that broken ones cannot stop these jobs.
[ -n "${SLURM_JOB_LICENSES-}" ] || exit 0

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

read_configuration
configured=$?
count=$(licence_count "$SLURM_JOB_LICENSES" "$LICENCE")
[ "$count" -gt 0 ] || exit 0
[ "$configured" -eq 0 ] || fail "job $SLURM_JOB_ID: cannot read $HOOKS_CONF"
start_io_nodes "$SLURM_JOB_ID" "$count" "${SLURM_JOB_NODELIST-}"
