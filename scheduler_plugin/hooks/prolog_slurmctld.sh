#!/bin/sh
# PrologSlurmctld: gives a job the I/O nodes that its licences say, before it starts.

# Most jobs have no licences; broken settings shall not keep those from starting.
[ -n "${SLURM_JOB_LICENSES-}" ] || exit 0

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

read_configuration
configured=$?
count=$(licence_count "$SLURM_JOB_LICENSES" "$LICENCE")
[ "$count" -gt 0 ] || exit 0
[ "$configured" -eq 0 ] || fail "job $SLURM_JOB_ID: cannot read $HOOKS_CONF"
start_io_nodes "$SLURM_JOB_ID" "$count" "${SLURM_JOB_NODELIST-}"
