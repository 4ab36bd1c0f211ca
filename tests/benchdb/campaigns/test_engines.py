"""The commands of the engines do the I/O that IOR's manual defines, checked with real programs."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from mmap import ACCESS_COPY, PAGESIZE, mmap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchdb.campaigns.engines import ENGINES, BenchmarkJob
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement
from ior_configs import IorConfig
from tests.support.examples import examples

KIB, MIB = 1 << 10, 1 << 20
# A name with characters that a shell, a glob or fio (the colon) could misread.
ODD_NAME = "a b:c$HOME'[1]*"


def pattern(operation: str = "write", **values: Any) -> IorConfig:
    usual = {"block_size": 64 * KIB, "transfer_size": 16 * KIB, "tasks": 3, "nodes": 1}
    return IorConfig(write=operation == "write", read=operation == "read", **usual | values)


@st.composite
def posix_patterns(draw: st.DrawFn) -> IorConfig:
    """Configurations that fio can run on one node: all of POSIX except some uses of -z."""
    shuffled = draw(st.booleans())
    transfer = draw(st.sampled_from([8, 24, 4096, 47008]))
    return pattern(
        draw(st.sampled_from(["write", "read"])),
        tasks=draw(st.integers(1, 4)),
        file_per_process=shuffled or draw(st.booleans()),
        random_offsets=int(shuffled),
        transfer_size=transfer,
        block_size=transfer * draw(st.integers(2 if shuffled else 1, 4)),
        segments=1 if shuffled else draw(st.integers(1, 4)),
        fsync=draw(st.sampled_from(["none", "end", "each"])),
        reorder_tasks=draw(st.booleans()),
    )


def layout(config: IorConfig) -> list[tuple[int, list[tuple[int, int]]]]:
    """The file and the ordered requests (offset, length) of each task, by IOR's manual.

    A file is a sequence of segments. A segment of a shared file has a block of each task; a segment
    of a file per process is one block. A block is a sequence of transfers.
    """
    ranks = []
    for rank in range(config.tasks or 1):
        own = config.file_per_process
        width, place = (1, 0) if own else (config.tasks or 1, rank)
        starts = [(s * width + place) * config.block_size for s in range(config.segments)]
        requests = [
            (start + offset, config.transfer_size)
            for start in starts
            for offset in range(0, config.block_size, config.transfer_size)
        ]
        ranks.append((rank if own else 0, requests))
    return ranks


def job(engine: str, config: IorConfig, folder: Path, **changes: Any) -> BenchmarkJob:
    """A job in `folder`, whose test file has the strangest name that the engine accepts."""
    launch = f"mpiexec -n {config.tasks}" if engine == "ior" else "false"
    values = {
        "config": config,
        "program": engine,
        "launch": launch,
        "test_file": str(folder / (ODD_NAME if engine == "fio" else "test")),
        "output": "output.json",
    }
    return BenchmarkJob(**values | changes)


def run(command: str, folder: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def measured(job: BenchmarkJob, folder: Path, nodes: int = 1) -> Measurement:
    [row] = read_measurements(
        ResultFile("output.json", (folder / job.output).read_text()),
        ImportOptions(
            io_nodes=0,
            nodes=nodes,
            command=job.config.command_line(launcher=True),
        ),
    )[1]
    return row


def logged(folder: Path) -> list[tuple[str, str, list[tuple[int, int]]]]:
    """The file, the operation and the requests of each process of fio.

    Each process appends its part to the log when it ends, in one write if the part is short.
    """
    found = []
    for text in (folder / "iolog").read_text().split("fio version 3 iolog\n")[1:]:
        done = re.findall(r"^\d+ (.*) (read|write) (\d+) (\d+)$", text, re.MULTILINE)
        [(file, operation)] = {(file, operation) for file, operation, _, _ in done}
        found.append((file, operation, [(int(start), int(size)) for _, _, start, size in done]))
    return found


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(config=posix_patterns())
def test_fio_makes_the_requests_of_ior(
    config: IorConfig,
    fio: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("fio")
    ours = job("fio", config, folder)
    engine = ENGINES["fio"]
    for line in engine.prepare(ours):
        run(line, folder)
    run(f"{engine.measure(ours)} --write_iolog=iolog", folder)
    done = logged(folder)
    assert {operation for _, operation, _ in done} == {config.operation}
    numbers = {file: number for number, file in enumerate(sorted({file for file, _, _ in done}))}
    order = sorted if config.random_offsets else list
    assert sorted((numbers[file], order(requests)) for file, _, requests in done) == sorted(
        layout(config)
    )
    files = [path for path in folder.iterdir() if path.name.startswith(ODD_NAME)]
    written = {
        file: max(o + n for f, requests in layout(config) if f == file for o, n in requests)
        for file, _ in layout(config)
    }
    assert [path.stat().st_size for path in sorted(files)] == list(written.values())
    row = measured(ours, folder)
    assert row.config == config
    assert row.bytes == (config.tasks or 1) * config.bytes_per_process
    for line in engine.remove(ours):
        run(line, folder)
    assert not [path for path in folder.iterdir() if path.name.startswith(ODD_NAME)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A test directory with three links to it, which stand for the mounts of compute nodes."""
    root = tmp_path_factory.mktemp("nodes")
    (root / "scratch").mkdir()
    for node in range(3):
        (root / f"cn{node}").symlink_to("scratch")
    return root


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(config=posix_patterns(), count=st.integers(1, 3))
def test_fio_makes_the_requests_of_ior_on_each_node(
    config: IorConfig,
    count: int,
    fio: str,
    nodes: Path,
) -> None:
    """Tasks fill one node after the other; the numbers of tasks differ by at most one."""
    config = replace(config, nodes=min(count, config.tasks or 1))
    tasks, used = config.tasks or 1, config.nodes or 1
    ours = job(
        "fio",
        config,
        nodes / "scratch",
        node_files=tuple(str(nodes / f"cn{node}" / ODD_NAME) for node in range(used)),
    )
    engine = ENGINES["fio"]
    for line in engine.prepare(ours):
        run(line, nodes)
    prepared = {path.stat().st_ino for path in (nodes / "scratch").iterdir()}
    (nodes / "iolog").unlink(missing_ok=True)
    run(engine.measure(ours).replace("=global", "=global --write_iolog=iolog"), nodes)
    node_of = {rank: rank * used // tasks for rank in range(tasks)}
    order = sorted if config.random_offsets else list
    assert sorted(
        (Path(file).parent.name, order(requests)) for file, _, requests in logged(nodes)
    ) == sorted(
        (f"cn{node_of[rank]}", requests) for rank, (_, requests) in enumerate(layout(config))
    )
    files = {file for file, _, _ in logged(nodes)}
    assert len(files) == (tasks if config.file_per_process else used)
    if config.read:
        # fio read the prepared files and did not replace them.
        assert {path.stat().st_ino for path in (nodes / "scratch").iterdir()} == prepared
    row = measured(ours, nodes, nodes=used)
    assert row.config == config
    assert row.bytes == tasks * config.bytes_per_process
    for line in engine.remove(ours):
        run(line, nodes)
    assert list((nodes / "scratch").iterdir()) == []


@pytest.mark.parametrize("segments", [1, 3])
def test_the_processes_of_fio_on_all_nodes_write_one_file(
    segments: int,
    fio: str,
    nodes: Path,
) -> None:
    """No process removes or recreates the file, so it has every byte that was written."""
    config = pattern(tasks=5, nodes=3, segments=segments, fsync="end")
    seen = tuple(str(nodes / f"cn{node}" / "whole") for node in range(3))
    ours = job("fio", config, nodes, test_file=str(nodes / "scratch" / "whole"), node_files=seen)
    run(ENGINES["fio"].measure(ours).replace("=global", "=global --buffer_pattern=0x5a"), nodes)
    whole = nodes / "scratch" / "whole"
    assert whole.read_bytes() == b"\x5a" * (5 * segments * 64 * KIB)
    whole.unlink()


@pytest.mark.parametrize(("fsync", "calls"), [("none", 0), ("end", 2), ("each", 8)])
def test_fio_calls_fsync_as_ior_does(fsync: str, calls: int, fio: str, tmp_path: Path) -> None:
    config = pattern(tasks=2, block_size=64 * KIB, transfer_size=16 * KIB, fsync=fsync)
    command = ENGINES["fio"].measure(job("fio", config, tmp_path))
    run(f"strace -f -e trace=fsync -o trace {command}", tmp_path)
    assert (tmp_path / "trace").read_text().count("fsync(") == calls


@pytest.mark.parametrize("operation", ["write", "read"])
@pytest.mark.parametrize("file_per_process", [False, True])
def test_a_node_that_does_not_have_the_test_directory_fails_the_run(
    operation: str,
    file_per_process: bool,
    fio: str,
    tmp_path: Path,
) -> None:
    """If a mount is missing, the folder below it would get the files."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "cn0").symlink_to("scratch")
    (tmp_path / "cn1").mkdir()
    config = pattern(operation, nodes=2, file_per_process=file_per_process)
    ours = job(
        "fio",
        config,
        tmp_path,
        test_file=str(tmp_path / "scratch" / "test"),
        node_files=(str(tmp_path / "cn0" / "test"), str(tmp_path / "cn1" / "test")),
    )
    lines = [*ENGINES["fio"].prepare(ours), ENGINES["fio"].measure(ours)]
    script = " && ".join(f"{{ {line}; }}" for line in lines)
    assert subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False).returncode != 0
    assert list((tmp_path / "cn1").iterdir()) == []


def test_fio_uses_a_new_random_order_in_each_run_and_process(
    fio: str,
    tmp_path: Path,
) -> None:
    config = pattern(file_per_process=True, random_offsets=1, block_size=512 * KIB)
    orders = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        run(ENGINES["fio"].measure(job("fio", config, folder)) + " --write_iolog=iolog", folder)
        orders += [tuple(requests) for _, _, requests in logged(folder)]
    assert len(set(orders)) == 6
    assert not any(list(order) == sorted(order) for order in orders)


@pytest.mark.parametrize(
    ("changes", "clauses"),
    [
        ({}, []),
        ({"segments": 4}, []),
        ({"odirect": True, "fsync": "end", "reorder_tasks": True}, []),
        ({"fsync": "each"}, []),
        ({"random_offsets": 1, "file_per_process": True}, []),
        ({"random_offsets": 1, "tasks": 1}, []),
        ({"api": "MPIIO"}, ["fio runs POSIX configurations, not MPIIO"]),
        ({"collective": True}, ["-c has no effect with POSIX"]),
        ({"intra_test_barriers": True}, ["fio has no barriers within a run (-g)"]),
        ({"conditions": ("-M 75%", "-l random")}, ["fio has no -M 75% -l random"]),
        ({"fsync": None}, ["it is not known when the benchmark calls fsync"]),
        (
            {"random_offsets": 1},
            ["fio cannot distribute the requests of a shared file at random (-z)"],
        ),
        (
            {"random_offsets": 1, "file_per_process": True, "segments": 2},
            ["fio cannot repeat one random order in each segment (-z with -s)"],
        ),
        (
            {"random_offsets": 2},
            ["fio cannot choose the overlapping blocks of -z given twice"],
        ),
    ],
)
def test_fio_rejects_configurations_that_it_cannot_run_exactly(
    changes: dict[str, Any], clauses: list[str]
) -> None:
    assert ENGINES["fio"].refusals(pattern(**changes)) == clauses


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"api": "MPIIO", "collective": True, "nodes": 2, "intra_test_barriers": True}, None),
        ({"random_offsets": 2}, None),
        ({"random_offsets": 1, "block_size": 16 * KIB}, "-z shuffles within a block"),
        ({"collective": True}, "-c has no effect with POSIX"),
        ({"fsync": "each", "conditions": ("-M 75%", "-l random")}, None),
        ({"fsync": None}, "it is not known when the benchmark calls fsync"),
        ({"conditions": ("-E",)}, "-E needs a file that is there"),
        ({"conditions": ("-u",)}, "-u puts files into folders"),
        ({"conditions": ("-y",)}, "-y needs a second mount"),
        ({"conditions": ("--dryRun",)}, "with --dryRun IOR does no I/O"),
        ({"conditions": ("-f script",)}, "IOR read options from a script"),
        ({"api": "MPIIO", "odirect": True}, "--posix.odirect has no effect with MPIIO"),
        ({"api": "MPIIO", "collective": True, "random_offsets": 1}, "-z is not available with -c"),
    ],
)
def test_ior_rejects_options_that_have_no_effect(changes: dict[str, Any], said: str | None) -> None:
    clauses = ENGINES["ior"].refusals(pattern(**changes))
    assert (clauses == []) if said is None else clauses[0].startswith(said)


def test_hints_of_mpi_io_are_in_the_environment_of_ior() -> None:
    conditions = ("IOR_HINT__MPI__cb_nodes=4", "IOR_HINT__MPI__romio_cb_write=enable")
    config = pattern(api="MPIIO", collective=True, conditions=conditions)
    assert ENGINES["ior"].refusals(config) == []
    command = ENGINES["ior"].measure(job("ior", config, Path("/scratch"), launch="srun -n 4"))
    assert command.startswith(f"srun -n 4 env {' '.join(conditions)} ")
    assert IorConfig.from_command_line(command).conditions == conditions


@given(config=posix_patterns(), launch=st.sampled_from(["srun -n $N", "mpiexec -n 4", ""]))
def test_the_command_of_ior_is_the_configuration(config: IorConfig, launch: str) -> None:
    ours = job("ior", config, Path("/scratch"), launch=launch, program="/opt/i or/ior")
    command = ENGINES["ior"].measure(ours)
    assert command.startswith(launch)
    read = IorConfig.from_command_line(command.replace("$N", "4"))
    assert read.pattern() == replace(config, tasks=read.tasks, nodes=read.nodes)
    assert (read.keep_file, read.test_file, read.repetitions) == (True, "/scratch/test", 1)
    assert command.endswith("-O summaryFormat=JSON -O summaryFile=output.json")


@given(config=posix_patterns())
def test_a_write_needs_no_preparation_and_a_read_needs_files_without_holes(
    config: IorConfig,
) -> None:
    lines = ENGINES["ior"].prepare(job("ior", config, Path("/scratch")))
    if config.write:
        assert lines == []
        return
    written = IorConfig.from_command_line(lines[0])
    assert written.pattern() == replace(
        config, write=True, read=False, random_offsets=0, fsync="end", nodes=None
    )
    assert written.keep_file
    assert lines[1].startswith("mpiexec -n ")


def pages_in_memory(file: Path) -> list[bool]:
    """For each page of a file, whether it is in the page cache.

    A read that must not wait (``RWF_NOWAIT``) would also tell, but it makes the kernel read ahead,
    so that later pages may be in the cache before they are looked at.
    """
    with file.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-len(mapped) // PAGESIZE))()
        first = ctypes.c_char.from_buffer(mapped)
        failed = ctypes.CDLL(None).mincore(ctypes.byref(first), ctypes.c_size_t(len(mapped)), pages)
        del first
    assert not failed
    return [bool(page & 1) for page in pages]


def file_system(folder: Path) -> str:
    told = subprocess.run(
        ["stat", "--file-system", "--format=%T", folder], capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


@pytest.mark.parametrize("file_per_process", [False, True])
def test_files_to_read_are_not_in_the_page_cache(
    file_per_process: bool,
    fio: str,
    tmp_path: Path,
) -> None:
    config = pattern("read", file_per_process=file_per_process, block_size=MIB)
    ours = job("fio", config, tmp_path)
    lay_out, drop = ENGINES["fio"].prepare(ours)
    if file_system(tmp_path) == "tmpfs":
        pytest.skip("files in a tmpfs are always in memory")
    run(lay_out, tmp_path)
    files = list(tmp_path.iterdir())
    assert len(files) == (3 if file_per_process else 1)
    assert all(all(pages_in_memory(file)) for file in files)
    run(drop, tmp_path)
    assert not any(any(pages_in_memory(file)) for file in files)


def test_direct_access_does_not_use_the_page_cache(fio: str, tmp_path: Path) -> None:
    config = pattern(odirect=True)
    run(ENGINES["fio"].measure(job("fio", config, tmp_path)), tmp_path)
    assert not any(pages_in_memory(tmp_path / ODD_NAME))


@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("file_per_process", [False, True])
def test_removing_leaves_the_files_of_other_runs(
    engine: str, file_per_process: bool, tmp_path: Path
) -> None:
    config = pattern(file_per_process=file_per_process)
    ours = job(engine, config, tmp_path, test_file=str(tmp_path / "run.1"))
    [remove] = ENGINES[engine].remove(ours)
    run(remove, tmp_path)
    names = ["run.1.0", "run.1.00000001"] if file_per_process else ["run.1"]
    for name in [*names, "run.12", "run.10.0"]:
        (tmp_path / name).touch()
    run(remove, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"run.12", "run.10.0"}


@pytest.mark.slow
def test_thousands_of_files_are_removed(tmp_path: Path) -> None:
    """All names together are longer than a command line can be."""
    folder = tmp_path / ("x" * 200)
    folder.mkdir()
    for number in range(12_000):
        (folder / f"run.{number:08d}").touch()
    config = pattern(file_per_process=True, tasks=12_000)
    run(*ENGINES["ior"].remove(job("ior", config, folder, test_file=str(folder / "run"))), folder)
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="session")
def ior() -> str:
    found = shutil.which("ior")
    if found is None or shutil.which("mpiexec") is None:
        pytest.skip("ior and mpiexec are not on the PATH; no distribution packages IOR")
    return found


@pytest.mark.parametrize(
    "config",
    [
        pattern(fsync="end"),
        pattern(fsync="each"),
        pattern(conditions=("-M 1%", "-l random")),
        pattern(random_offsets=2, conditions=("--randomPrefill=64k",)),
        pattern("read", conditions=("-Z",)),
        pattern(api="MPIIO", conditions=("--mpiio.useFileView",)),
        pattern(segments=3),
        pattern(file_per_process=True, random_offsets=1),
        pattern("read", segments=3, reorder_tasks=True),
        pattern("read", random_offsets=1),
        pattern("read", random_offsets=2),
        pattern("read", file_per_process=True, segments=2, intra_test_barriers=True),
        pattern(api="MPIIO", collective=True),
        pattern("read", api="MPIIO", collective=True, segments=3),
        pattern("read", tasks=1),
    ],
    ids=IorConfig.command_line,
)
def test_ior_runs_the_configuration(config: IorConfig, ior: str, tmp_path: Path) -> None:
    ours = job("ior", config, tmp_path, program=ior)
    engine = ENGINES["ior"]
    assert engine.refusals(config) == []
    for line in engine.prepare(ours):
        run(line, tmp_path)
    assert not any(any(pages_in_memory(file)) for file in tmp_path.iterdir())
    run(engine.measure(ours), tmp_path)
    row = measured(ours, tmp_path)
    assert (row.config, row.engine) == (config, "ior")
    assert row.bytes == (config.tasks or 1) * config.bytes_per_process
    for line in engine.remove(ours):
        run(line, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["output.json"]
