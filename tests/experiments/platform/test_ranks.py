from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.platform import ranks
from experiments.platform.description import NamedIoNodes
from experiments.platform.emulated import Emulated, exec_command
from experiments.platform.ranks import run_ranks
from ioncast_base.errors import InputError, IoncastError
from tests.support.command import killed_at_the_end
from tests.support.emulated import emulated, received_bytes, small, unique_name, wait_until

pytestmark = pytest.mark.platform

FOLDER = Path(__file__).resolve().parents[3] / "experiments" / "platform"
_PATIENCE_S = 120.0

# Writes the rank and the address of its node to a file in the folder $0, named after the rank.
WHERE = (
    "echo ${IONCAST_RANK-$PMI_RANK} $(ip -o -4 addr show e0 | awk '{print $4}') > \"$0\"/"
    "${IONCAST_RANK-$PMI_RANK}"
)
BUSY = "import sys, time; open(sys.argv[1] + '/' + sys.argv[2], 'w'); time.sleep(600)"
# Creates a file named after the rank in the folder that its command line names, and does not end.
STAY = f'"{sys.executable}" -I -S -c "$0" "$1" ${{IONCAST_RANK-$PMI_RANK}}'


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
    )


def running(word: str) -> list[str]:
    """Command lines of the other processes with a word in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in command and int(process.name) != os.getpid():
            found.append(command.replace(b"\0", b" ").decode())
    return found


@pytest.fixture
def folder(platform: Emulated, tmp_path: Path) -> Path:
    """An empty folder in the platform's file system."""
    made = platform.scratch / tmp_path.name
    made.mkdir()
    return made


def places(folder: Path) -> list[str]:
    return sorted(file.read_text().strip() for file in folder.iterdir())


# Four processes on two nodes in blocks; the addresses of compute nodes end with 1, 2 and so on.
BLOCKS = ["0 10.71.1.1/16", "1 10.71.1.1/16", "2 10.71.1.2/16", "3 10.71.1.2/16"]


@pytest.mark.parametrize("io_nodes", [0, 1, 2])
def test_processes_are_spread_over_the_nodes_in_blocks(
    platform: Emulated, folder: Path, io_nodes: int
) -> None:
    command = platform.rank_command(["sh", "-c", WHERE, str(folder)], io_nodes=io_nodes, tasks=4)
    assert run(command).returncode == 0
    assert places(folder) == BLOCKS


def test_each_node_has_a_host_name_of_its_own(platform: Emulated, folder: Path) -> None:
    """A trace names the compute node of each process by it; this machine keeps its own name."""
    before = os.uname().nodename
    program = ["sh", "-c", f"uname -n > {folder}/$IONCAST_RANK"]
    assert run(platform.rank_command(program, io_nodes=1, tasks=4)).returncode == 0
    names = [(folder / str(rank)).read_text().strip() for rank in range(4)]
    assert names == [f"{platform.name}-cn{node}" for node in (0, 0, 1, 1)]
    assert os.uname().nodename == before


def test_by_default_a_run_has_all_processes_of_the_description(
    platform: Emulated, folder: Path
) -> None:
    run(platform.rank_command(["sh", "-c", WHERE, str(folder)], io_nodes=1))
    assert places(folder) == BLOCKS


def test_a_run_may_take_fewer_nodes(platform: Emulated, folder: Path) -> None:
    program = ["sh", "-c", WHERE, str(folder)]
    run(platform.rank_command(program, io_nodes=1, tasks=2, nodes=1))
    assert places(folder) == ["0 10.71.1.1/16", "1 10.71.1.1/16"]


def test_a_run_may_begin_at_another_node(platform: Emulated, folder: Path) -> None:
    program = ["sh", "-c", WHERE, str(folder)]
    run(replace(platform, first_node=1).rank_command(program, io_nodes=1, tasks=2))
    assert places(folder) == ["0 10.71.1.2/16", "1 10.71.1.2/16"]


@pytest.fixture(scope="module")
def named() -> Iterator[Emulated]:
    """A platform on which runs name their nodes."""
    with emulated(small(unique_name(), placement=NamedIoNodes(any=True))) as found:
        yield found


@pytest.mark.parametrize(
    ("on", "through", "used"),
    [
        ("cn1", "io0", {"io0"}),
        ("cn0,cn1", "io1", {"io1"}),
        ("cn1,cn0", "io1,io0", {"io0", "io1"}),
    ],
)
def test_a_run_uses_the_io_nodes_that_it_names_and_no_others(
    named: Emulated, on: str, through: str, used: set[str]
) -> None:
    before = {node: received_bytes(named, node) for node in ("io0", "io1")}
    command = [*exec_command(named.name), f"--on={on}", f"--through={through}", "--", "sh", "-c"]
    folder = named.scratch / f"{on}-{through}"
    folder.mkdir()
    program = f"cd {folder} && uname -n >$IONCAST_RANK && head -c 2M /dev/zero >data$IONCAST_RANK"
    assert run([*command, program]).returncode == 0
    moved = {node: received_bytes(named, node) - before[node] for node in before}
    # Others get only the heartbeats of their clients.
    assert {node for node, size_bytes in moved.items() if size_bytes > 1 << 20} == used
    names = [file.read_text().strip() for file in sorted(folder.glob("[0-9]"))]
    assert names == [f"{named.name}-{node}" for node in on.split(",") for _ in range(2)]


@pytest.mark.parametrize(
    ("on", "through", "said"),
    [
        ("cn2", "io0", "it has no node 'cn2'; choose cn0 to cn1"),
        ("cn0", "io9", "it has no node 'io9'; choose io0 to io1"),
        ("cn0,", "io0", "it has no node ''"),
        ("cn0,cn0", "io0", "cn0,cn0 has a node twice"),
    ],
)
def test_a_node_that_the_platform_lacks_is_an_error(
    named: Emulated, on: str, through: str, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        named.place_through(on.split(","), through.split(","), tasks=None)


def test_a_platform_without_placement_has_no_named_io_nodes(platform: Emulated) -> None:
    with pytest.raises(InputError, match="a run cannot name its I/O nodes"):
        platform.place_through(["cn0"], ["io0"], tasks=None)


def test_a_first_node_that_the_platform_lacks_is_an_error(platform: Emulated) -> None:
    with pytest.raises(InputError, match="has no compute node 2"):
        replace(platform, first_node=2).rank_command(["true"], io_nodes=1)


def test_more_nodes_than_the_platform_has_are_an_error(platform: Emulated) -> None:
    with pytest.raises(InputError, match="it cannot use 3 compute nodes; choose 1 to 2"):
        platform.rank_command(["true"], io_nodes=1, nodes=3)


def test_each_rank_sees_the_file_system_through_its_own_node_and_no_other(
    platform: Emulated, folder: Path
) -> None:
    mounts = f"cd {folder}; cat /proc/mounts > $IONCAST_RANK; stat -c %d . > device$IONCAST_RANK"
    run(platform.rank_command(["sh", "-c", mounts], io_nodes=2, tasks=2))
    for rank in ("0", "1"):
        seen = [line.split()[1] for line in (folder / rank).read_text().splitlines()]
        # The rank's own mount lies over the administrator's.
        assert [path for path in seen if path.startswith(f"{platform.folder}/")] == [
            f"{platform.folder}/bricks",
            f"{platform.folder}/scratch",
            f"{platform.folder}/scratch",
        ]
    devices = {platform.node_directory(2, node).stat().st_dev for node in (0, 1)}
    assert {int(file.read_text()) for file in folder.glob("device*")} == devices


def test_the_working_directory_is_the_nodes_own_too(platform: Emulated, folder: Path) -> None:
    program = [str(platform.folder / "rank"), "2", "sh", "-c", "stat -c %d ."]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True)
    assert int(done.stdout) == platform.node_directory(2, 0).stat().st_dev


@pytest.mark.mpi
def test_mpiexec_starts_ranks_on_their_nodes(platform: Emulated, folder: Path) -> None:
    program = [str(platform.folder / "rank"), "2", "sh", "-c", WHERE, str(folder)]
    assert run(["mpiexec", "-n", "4", *program]).returncode == 0
    assert places(folder) == BLOCKS


@pytest.mark.parametrize(
    "starter",
    [
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
        ("PALS_RANKID", "PALS_NRANKS"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
        ("IONCAST_RANK", "IONCAST_TASKS"),
    ],
)
def test_a_rank_gets_its_number_from_its_launcher(
    platform: Emulated, folder: Path, starter: tuple[str, str]
) -> None:
    rank, tasks = starter
    program = [str(platform.folder / "rank"), "2", "stat", "-c", "%d", str(folder)]
    done = run(program, **{rank: "3", tasks: "4"})
    assert int(done.stdout) == platform.node_directory(2, 1).stat().st_dev


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["7", "true"], "has no runs with 7 I/O nodes"),
        (["2"], "usage:"),
    ],
)
def test_a_wrong_call_of_the_rank_script_is_an_error_of_one_line(
    platform: Emulated, arguments: list[str], said: str
) -> None:
    done = run([str(platform.folder / "rank"), *arguments])
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("program", ["mount", "umount"])
@pytest.mark.parametrize("mpi", [False, pytest.param(True, marks=pytest.mark.mpi)])
def test_a_rank_that_cannot_see_its_own_node_does_not_run(
    platform: Emulated, tmp_path: Path, program: str, mpi: bool
) -> None:
    (tmp_path / program).write_text("#!/bin/sh\necho 'permission denied' >&2\nexit 32\n")
    (tmp_path / program).chmod(0o755)
    command = platform.rank_command(["echo", "it runs"], io_nodes=1, tasks=1, mpi=mpi)
    done = run(command, PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the rank cannot see the mount of its own node: permission denied" in done.stderr


def test_mpi_ranks_without_mpiexec_are_an_error(
    platform: Emulated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    placement = platform.place(io_nodes=1, tasks=1, nodes=1)
    with pytest.raises(IoncastError, match="mpiexec cannot be found"):
        run_ranks(platform, ["true"], placement, mpi=True)


MPI_SUM = r"""
#include <mpi.h>
#include <stdio.h>
int main(void) {
    int rank, sum;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) printf("%d\n", sum);
    MPI_Finalize();
    return sum == 6 ? 0 : 1;
}
"""


# Python loads libraries, and so MPI, with RTLD_LOCAL: other libraries do not see their symbols.
LOADED = (
    sys.executable,
    "-I",
    "-S",
    "-c",
    "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).main())",
)


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("options", "starter"),
    [([], ()), (["-shared", "-fPIC"], LOADED)],
    ids=["linked with MPI", "loading MPI"],
)
def test_ranks_of_an_mpi_program_reach_each_other(
    platform: Emulated, tmp_path: Path, options: list[str], starter: tuple[str, ...]
) -> None:
    (tmp_path / "sum.c").write_text(MPI_SUM)
    subprocess.run(["mpicc", *options, "-o", tmp_path / "sum", tmp_path / "sum.c"], check=True)
    program = [*starter, str(tmp_path / "sum")]
    done = run(platform.rank_command(program, io_nodes=1, tasks=4, mpi=True))
    # 0 + 1 + 2 + 3
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.parametrize("mpi", [False, pytest.param(True, marks=pytest.mark.mpi)])
def test_one_failing_rank_ends_all_and_its_code_is_that_of_the_run(
    platform: Emulated, folder: Path, mpi: bool
) -> None:
    fail = f"test ${{IONCAST_RANK-$PMI_RANK}} = 2 && exit 7; exec {STAY}"
    program = ["sh", "-c", fail, BUSY, str(folder)]
    command = platform.rank_command(program, io_nodes=1, tasks=4, mpi=mpi)
    assert run(command).returncode == 7
    assert running(str(folder)) == []


@pytest.mark.parametrize(
    ("number", "mpi"),
    [
        (signal.SIGINT, False),
        (signal.SIGTERM, False),
        (signal.SIGHUP, False),
        pytest.param(signal.SIGINT, True, marks=pytest.mark.mpi),
    ],
)
def test_a_signal_ends_all_ranks(
    platform: Emulated, folder: Path, number: signal.Signals, mpi: bool
) -> None:
    program = ["sh", "-c", f"exec {STAY}", BUSY, str(folder)]
    command = platform.rank_command(program, io_nodes=1, tasks=4, mpi=mpi)
    with killed_at_the_end(command, start_new_session=True) as process:
        wait_until(lambda: len(list(folder.iterdir())) == 4)
        process.send_signal(number)
        assert process.wait(_PATIENCE_S) == 130
    assert running(str(folder)) == []


def test_ranks_end_when_their_launcher_is_killed(platform: Emulated, folder: Path) -> None:
    program = ["sh", "-c", f"exec {STAY}", BUSY, str(folder)]
    command = platform.rank_command(program, io_nodes=1, tasks=4)
    with killed_at_the_end(command):
        wait_until(lambda: len(list(folder.iterdir())) == 4)
    wait_until(lambda: running(str(folder)) == [])


def test_processes_that_a_rank_leaves_running_end_with_the_run(
    platform: Emulated, folder: Path
) -> None:
    program = ["sh", "-c", f"setsid {STAY} & exit 0", BUSY, str(folder)]
    assert run(platform.rank_command(program, io_nodes=1, tasks=2)).returncode == 0
    assert running(str(folder)) == []


def test_the_code_that_a_rank_wrote_counts_more_than_that_of_its_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "failures"
    told.touch()
    launcher = subprocess.Popen(["false"])
    launcher.wait()

    def tell_and_end() -> int:
        told.write_text("7\n")
        return 1

    monkeypatch.setattr(launcher, "poll", tell_and_end)
    with told.open() as failures:
        assert ranks._first_failure([launcher], failures) == 7


@pytest.mark.tools
def test_shellcheck_finds_nothing(platform: Emulated) -> None:
    done = run(["shellcheck", str(platform.folder / "rank")])
    assert done.returncode == 0, done.stdout


@pytest.mark.mpi
def test_mpi_ranks_preload_yielding_before_the_libraries_of_the_user(platform: Emulated) -> None:
    command = platform.rank_command(["sh", "-c", "echo $LD_PRELOAD"], io_nodes=1, tasks=1, mpi=True)
    mine = "/usr/lib/mine.so"
    assert run(command, LD_PRELOAD="").stdout == f"{platform.folder}/yielding.so\n"
    # The user's library stays in the list. It does not exist here, which the loader reports itself.
    assert run(command, LD_PRELOAD=mine).stdout == f"{platform.folder}/yielding.so:{mine}\n"
