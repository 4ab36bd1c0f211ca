"""Errors of failed runs: the line that names the error, and errors that are the same.

The logs are what MPICH 4.0, IOR 4.0, fio 3.33, Slurm 22.05 and bash printed on the failures that
the tests name.
"""

from __future__ import annotations

import pytest

from benchdb.campaigns.failing import comparable, error_line

IOR_WITHOUT_ITS_FILE = """\
IOR-4.0.0: MPI Coordinated Test of Parallel I/O
aggregate filesize  : 2 MiB

Results:

ERROR: open64("/scratch/ioncast.0a1b.2c3d", 0) failed: No such file, (aiori-POSIX.c:641)
ERROR: open64("/scratch/ioncast.0a1b.2c3d", 0) failed: No such file, (aiori-POSIX.c:641)
Abort(-1) on node 0 (rank 0 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, -1) - process 0
Abort(-1) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, -1) - process 1
"""
KILLED_UNDER_MPICH = """\

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 9511 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
UNKNOWN_NODE_UNDER_MPICH = """\
ssh: Could not resolve hostname nohost: Name or service not known
[mpiexec@vm] HYDU_sock_write (utils/sock/sock.c:254): write error (Bad file descriptor)
[mpiexec@vm] main (ui/mpich/mpiexec.c:325): process manager error waiting for completion
"""
WITHOUT_SLURM = """\
srun: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
srun: fatal: Could not establish a configuration source
"""
WARNING_FIRST = """\
WARNING: unable to use the hint, the default is used
ior: unrecognized option '--x'
"""


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (IOR_WITHOUT_ITS_FILE, IOR_WITHOUT_ITS_FILE.splitlines()[5]),
        (KILLED_UNDER_MPICH, KILLED_UNDER_MPICH.splitlines()[8]),
        (UNKNOWN_NODE_UNDER_MPICH, UNKNOWN_NODE_UNDER_MPICH.splitlines()[0]),
        (WITHOUT_SLURM, WITHOUT_SLURM.splitlines()[0]),
        (WARNING_FIRST, WARNING_FIRST.splitlines()[1]),
        ("cell.sh: line 3: mpiexecx: command not found\n", None),
        ("a\nsomething odd\n\n", "something odd"),
        ("\x1b[31mfio: disk full\x07\n", "[31mfio: disk full"),
    ],
)
def test_the_error_is_the_first_line_that_says_one(log: str, expected: str | None) -> None:
    assert error_line(log) == (expected or log.strip())


def test_a_log_that_says_nothing_has_no_error() -> None:
    assert error_line(" \n\n") is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            'ERROR: open64("/scratch/ioncast.0a1b", 0) failed: No such file or directory',
            'ERROR: open64("/scratch/ioncast.99ff", 0) failed: No such file or directory',
        ),
        ("[vm:123] mpirun was unable to find a node", "[vm:77] mpirun was unable to find a node"),
        ("srun: error: node017: task 3: Killed", "srun: error: node042: task 11: Killed"),
        ("/scratch/b is too small: 1.1TiB", "/scratch/a is too small: 12GiB"),
    ],
)
def test_paths_numbers_and_nodes_do_not_make_another_error(one: str, other: str) -> None:
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("write failed: No space left on device", "write failed: Disk quota exceeded"),
        ("12 34", "12 35"),
    ],
)
def test_other_words_are_another_error(one: str, other: str) -> None:
    assert comparable(one) != comparable(other)
