"""Programs that follow the snippets of the advice move the same bytes as before.

Each snippet for MPI-IO or POSIX is compiled into a program of two processes. The file holds the
numbers 0, 1, 2 … as doubles: a program that writes leaves exactly these, and a program that reads
checks each number that it got.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ioncast.insights.checks.registry import all_advice
from tests.support.checking import check_log

PROCESSES = 2
PROCESSES_OF_LOGS = 4
FIXTURES = Path(__file__).parent / "fixtures"
# 24,000,000 bytes: neither the file nor the part of a process is a multiple of a buffer.
VALUES = 3_000_000
SNIPPETS = {
    (key, library): advice.snippets[library]
    for key, advice in all_advice().items()
    for library in ("mpiio", "posix")
    if library in advice.snippets
}

# A part of the file for each process, one after the other; `data` has room for all values.
FRAME = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MPI_Comm comm = MPI_COMM_WORLD;
MPI_Datatype part, own_parts;
MPI_File file;
MPI_Info info;
MPI_Offset offset, end;
MPI_Request request;
char *taken;
const char *path;
double *data;
int descriptor, mode = MPI_MODE_CREATE | MPI_MODE_WRONLY, processes, rank;
size_t bytes, count;
enum { total = VALUES, values = 1000, parts = total / values / PROCESSES };

void compute(void) {}

/* The values that a program takes out of a buffer. */
void use(const char *buffer, size_t size)
{
    memcpy(taken, buffer, size);
    taken += size;
}

void numbers_from(size_t first)
{
    for (size_t i = 0; i < count; i++)
        data[i] = first + i;
}

void expect(double value, double expected)
{
    if (value != expected)
        MPI_Abort(comm, 3);
}

void expect_numbers_from(size_t first)
{
    for (size_t i = 0; i < count; i++)
        expect(data[i], first + i);
}

void open_file(int mode)
{
    MPI_File_open(comm, path, mode, MPI_INFO_NULL, &file);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &processes);
    path = argv[1];
    count = total / processes;
    bytes = count * sizeof *data;
    offset = rank * bytes;
    end = offset + bytes;
    data = calloc(total, sizeof *data);
    taken = (char *)data;
    BEFORE
    {
    SNIPPET
    AFTER
    }
    MPI_Finalize();
}
"""


@dataclass(frozen=True)
class Use:
    """The code around a snippet, and whether the program writes the file or reads it."""

    before: str = ""
    after: str = ""
    writes: bool = True


OWN = "numbers_from(rank * count);"
CHECK = "expect_numbers_from(rank * count);"
WRITTEN = "MPI_File_close(&file);"
TO_WRITE = "open_file(MPI_MODE_CREATE | MPI_MODE_WRONLY);"
TO_READ = "open_file(MPI_MODE_RDONLY);"
WRITE_ALL = (
    "MPI_File_write_at_all(file, offset, data, count, MPI_DOUBLE, MPI_STATUS_IGNORE);"
    " MPI_File_close(&file);"
)
READ_ALL = (
    "MPI_File_read_at_all(file, offset, data, count, MPI_DOUBLE, MPI_STATUS_IGNORE);"
    " MPI_File_close(&file);"
)
# The left and the right half of an array of 1,000 rows.
HALVES = "int sizes[] = {1000, 3000}, own_sizes[] = {1000, 1500}, starts[] = {0, rank * 1500};"
NUMBER_IN_HALF = "i / 1500 * 3000 + rank * 1500 + i % 1500"
# In turn each process has 1,000 numbers.
IN_TURN = "offset = rank * values * sizeof *data;"
NUMBER_IN_TURN = "(i / values * processes + rank) * values + i % values"
OF_ALL = "for (size_t i = 0; i < count; i++)"

USES = {
    # The program has one process, as the advice says.
    ("no_stdio", "posix"): Use(
        "if (rank > 0) { MPI_Finalize(); return 0; } count = total; numbers_from(0);"
    ),
    ("no_stdio", "mpiio"): Use(OWN),
    ("larger_reads", "posix"): Use("descriptor = open(path, O_RDONLY);", CHECK, writes=False),
    ("larger_reads", "mpiio"): Use(TO_READ, CHECK, writes=False),
    ("larger_writes", "posix"): Use(
        "descriptor = open(path, O_CREAT | O_WRONLY, 0644);" + OWN, "close(descriptor);"
    ),
    ("larger_writes", "mpiio"): Use(TO_WRITE + OWN, WRITTEN),
    ("use_mpiio", "mpiio"): Use(OWN),
    ("collective_reads", "mpiio"): Use(
        IN_TURN + TO_READ,
        f"{OF_ALL} expect(data[i], {NUMBER_IN_TURN});",
        writes=False,
    ),
    ("collective_writes", "mpiio"): Use(
        IN_TURN + TO_WRITE + f"{OF_ALL} data[i] = {NUMBER_IN_TURN};", WRITTEN
    ),
    ("align_buffers", "posix"): Use(
        OWN,
        "expect((uintptr_t)buffer % sysconf(_SC_PAGESIZE), 0);"
        "memcpy(buffer, data, bytes);"
        "pwrite(open(path, O_CREAT | O_WRONLY, 0644), buffer, bytes, offset);",
    ),
    ("align_reads", "posix"): Use("descriptor = open(path, O_RDONLY);", CHECK, writes=False),
    ("align_reads", "mpiio"): Use(TO_READ, CHECK, writes=False),
    ("align_writes", "posix"): Use(
        "descriptor = open(path, O_CREAT | O_WRONLY, 0644);" + OWN, "close(descriptor);"
    ),
    ("align_writes", "mpiio"): Use(TO_WRITE + OWN, WRITTEN),
    ("align_aggregators", "mpiio"): Use(OWN, WRITE_ALL),
    ("read_once", "mpiio"): Use(TO_READ, "count = total; expect_numbers_from(0);", writes=False),
    ("no_sieving_reads", "mpiio"): Use("mode = MPI_MODE_RDONLY;", READ_ALL + CHECK, writes=False),
    ("no_sieving_writes", "mpiio"): Use(OWN, WRITE_ALL),
    ("no_gaps_reads", "mpiio"): Use("mode = MPI_MODE_RDONLY;", READ_ALL + CHECK, writes=False),
    ("no_gaps_writes", "mpiio"): Use(OWN, WRITE_ALL),
    ("ordered_reads", "mpiio"): Use(
        HALVES + TO_READ, f"{OF_ALL} expect(data[i], {NUMBER_IN_HALF});", writes=False
    ),
    ("ordered_writes", "mpiio"): Use(
        HALVES + TO_WRITE + f"{OF_ALL} data[i] = {NUMBER_IN_HALF};", WRITTEN
    ),
    ("nonblocking_reads", "mpiio"): Use(TO_READ, CHECK, writes=False),
    ("nonblocking_writes", "mpiio"): Use(TO_WRITE + OWN, WRITTEN),
    ("read_by_one", "mpiio"): Use("", "expect_numbers_from(0);", writes=False),
    ("fewer_files", "mpiio"): Use("MPI_Comm group;" + OWN),
    ("balance", "mpiio"): Use(TO_WRITE + OWN, WRITTEN),
    ("striping", "mpiio"): Use(OWN, WRITE_ALL),
    ("aggregators", "mpiio"): Use(OWN, WRITE_ALL),
    ("collective_buffering", "mpiio"): Use(
        IN_TURN + TO_WRITE + f"{OF_ALL} data[i] = {NUMBER_IN_TURN};", WRITTEN
    ),
}


def test_each_snippet_of_mpiio_and_posix_has_a_program() -> None:
    assert USES.keys() == SNIPPETS.keys()


@pytest.mark.mpi
@pytest.mark.parametrize(("advice", "library"), USES)
def test_a_program_with_the_snippet_moves_the_same_bytes(
    advice: str, library: str, tmp_path: Path
) -> None:
    use = USES[advice, library]
    numbers = np.arange(VALUES, dtype=np.float64).tobytes()
    path = tmp_path / "file"
    if not use.writes:
        path.write_bytes(numbers)
    elif advice == "no_stdio":
        # A longer file from before; fopen with "w" empties it.
        path.write_bytes(bytes(len(numbers) + 1))
    run_program(tmp_path, SNIPPETS[advice, library], use, path)
    assert path.read_bytes() == numbers


def test_data_that_all_need_are_read_once_and_not_only_by_rank_0() -> None:
    """Darshan's logs of four processes that need 24 MB: each reads all; then with the snippet."""
    before = check_log(FIXTURES / "read-once-whole.darshan")
    [found] = [each for each in before.findings if each.check.code == "P09"]
    assert [advice.key for advice in found.advice] == ["read_once"]
    assert found.finding.numbers["factor"] == PROCESSES_OF_LOGS
    after = check_log(FIXTURES / "read-once-parts.darshan")
    codes = {each.check.code for each in after.findings}
    # With a broadcast by rank 0 these would follow: rank 0 does most, unequal bytes.
    assert not codes & {"P09", "D01", "D02", "P18"}


def run_program(folder: Path, snippet: str, use: Use, path: Path) -> None:
    """Compile and run the program of a snippet; a process whose data are wrong aborts."""
    source, program = folder / "program.c", folder / "program"
    code = FRAME.replace("VALUES", str(VALUES)).replace("PROCESSES", str(PROCESSES))
    for name, text in (("BEFORE", use.before), ("SNIPPET", snippet), ("AFTER", use.after)):
        code = code.replace(f"    {name}\n", f"{text}\n")
    source.write_text(code, encoding="utf-8")
    options = ["-Wall", "-Werror", "-Wno-unused-result"]
    for command in (
        ["mpicc", *options, "-o", program, source],
        ["mpiexec", "-n", str(PROCESSES), program, path],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
