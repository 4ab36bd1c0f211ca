#!/bin/sh
# name_io_nodes.sh JOB N: give a job N named I/O nodes, and print the names. A program of its own, so that
# the prolog can end it with all its processes, if the lock is not given or a file system hangs. If it fails
# or is ended, the prolog removes JOB.hosts, because dash runs no EXIT trap at a signal.

# shellcheck source-path=SCRIPTDIR source=io_nodes.sh
. "${0%/*}/io_nodes.sh"

umask 022
read_configuration || exit 1
(
    flock -w 3 9 || fail "job $1: $JOBS_FOLDER/lock was busy for 3 s"
    hosts=$(choose "$1" "$2")
    [ -n "$hosts" ] || fail "job $1: no I/O node of IO_NODES is free (see $JOBS_FOLDER)"
    put "$1.hosts" "$hosts" || fail "job $1: cannot write $JOBS_FOLDER/$1.hosts"
    note_names "$1"
) 9>"$JOBS_FOLDER/lock" || exit 1
names_of "$1"
