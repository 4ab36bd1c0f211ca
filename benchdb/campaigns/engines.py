"""The benchmark programs, with the shell commands that each runs for a configuration.

IOR runs every configuration of bandwidth, because such configurations are IOR's. fio runs POSIX
configurations, on the nodes whose directories this machine has; a configuration that it cannot run
exactly is rejected.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from benchdb.measurements.storing import unstorable
from ior_configs import IorConfig, format_size

# Slurm, Open MPI, MPICH and PALS number the tasks of a node, so only task 0 continues. With other
# launchers every task continues.
FIRST_OF_NODE = (
    "local=${SLURM_LOCALID:-${OMPI_COMM_WORLD_LOCAL_RANK:-"
    "${MPI_LOCALRANKID:-${PALS_LOCAL_RANKID:-0}}}};"
    " [ $local = 0 ] || exit 0; "
)
_UNKNOWN_FSYNC = "it is not known when the benchmark calls fsync"
# The reasons why a campaign, which makes and removes the files of a run, cannot keep a condition.
_UNFIT = {
    "-E": "-E needs a file that is there before the run",
    "-u": "-u puts files into folders, which a campaign does not remove",
    "-y": "-y needs a second mount of the file system",
}


_Config = TypeVar("_Config")


@dataclass(frozen=True)
class BenchmarkJob(Generic[_Config]):
    """One run of a benchmark.

    `launch` are shell words that start a command once for each task; fio starts its processes
    itself. No other run uses the absolute path `test_file` at the same time; with a file per
    process, a dot and numbers are added. The name of `output` has no blanks and no commas.
    `node_files` are the paths of `test_file` for each compute node, for fio; empty if all have the
    same path.
    """

    config: _Config
    program: str
    launch: str
    test_file: str
    output: str
    node_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Engine(Generic[_Config]):
    """A benchmark program, and the commands that use it.

    `name` is that of the program and of the importer of its output, the file `output`. Without
    `launched` the program starts its processes itself, all on one machine. `refusals` gives the
    reasons why it cannot run a configuration, as clauses; `prepare` the commands before the
    measurement, which are not timed.
    """

    name: str
    launched: bool
    refusals: Callable[[_Config], list[str]]
    prepare: Callable[[BenchmarkJob[_Config]], list[str]]
    measure: Callable[[BenchmarkJob[_Config]], str]
    remove: Callable[[BenchmarkJob[_Config]], list[str]]
    output: str = "output.json"


def _ior_refusals(config: IorConfig) -> list[str]:
    c = config
    rules = {
        f"--posix.odirect has no effect with {c.api}": c.odirect and c.api != "POSIX",
        "-c has no effect with POSIX": c.collective and c.api == "POSIX",
        "-z is not available with -c": c.collective and bool(c.random_offsets),
        _UNKNOWN_FSYNC: c.fsync is None,
        **{clause: option in c.conditions for option, clause in _UNFIT.items()},
    }
    if reason := unstorable(c):
        return [reason]
    return [*c.problems(), *(clause for clause, refused in rules.items() if refused)]


def _ior_prepare(job: BenchmarkJob[IorConfig]) -> list[str]:
    if not job.config.read:
        return []
    written = replace(_in_order(job.config), keep_file=True, test_file=job.test_file)
    return [_ior(job, written), _drop_from_memory(job, job.launch)]


def _ior_measure(job: BenchmarkJob[IorConfig]) -> str:
    measured = replace(
        job.config.pattern(),
        keep_file=True,
        test_file=job.test_file,
        summary_format="JSON",
        other_options=("-O", f"summaryFile={job.output}"),
    )
    return _ior(job, measured)


def _ior(job: BenchmarkJob[IorConfig], config: IorConfig) -> str:
    words = [*config.environment(), job.program, *config.to_args()]
    return f"{job.launch} {shlex.join(words)}".strip()


def _fio_refusals(config: IorConfig) -> list[str]:
    c = config
    rules = {
        f"fio runs POSIX configurations, not {c.api}": c.api != "POSIX",
        "-c has no effect with POSIX": c.collective,
        "fio has no barriers within a run (-g)": c.intra_test_barriers,
        f"fio has no {' '.join(c.conditions)}": bool(c.conditions),
        _UNKNOWN_FSYNC: c.fsync is None,
        "fio cannot choose the overlapping blocks of -z given twice": c.random_offsets == 2,
        "fio cannot distribute the requests of a shared file at random (-z)": (
            c.random_offsets == 1 and c.file_access == "shared"
        ),
        "fio cannot repeat one random order in each segment (-z with -s)": (
            c.random_offsets == 1 and c.segments > 1
        ),
    }
    return [clause for clause, refused in rules.items() if refused]


def _fio_prepare(job: BenchmarkJob[IorConfig]) -> list[str]:
    if not job.config.read:
        return [_see_from_all_nodes(job)] if job.node_files else []
    # I/O nodes may cache data that they wrote, so the files are written without them.
    written = _fio(replace(job, node_files=()), _in_order(job.config))
    return [shlex.join(written), _drop_from_memory(job, launch="")]


def _see_from_all_nodes(job: BenchmarkJob[IorConfig]) -> str:
    """A command that fails if a node's directory is not the test directory but a local disk."""
    probe = ".0" if job.config.file_per_process else ""
    seen = shlex.join(file + probe for file in job.node_files)
    script = (
        f"touch {shlex.quote(job.test_file + probe)} && for file in {seen}; do"
        ' [ -e "$file" ] || { echo "$file is not in the test directory"; exit 1; }; done'
    )
    return f"bash -c {shlex.quote(script)} && {_remove(job)[0]}"


def _fio_measure(job: BenchmarkJob[IorConfig]) -> str:
    results = ["--output-format=json", f"--output={job.output}"]
    return shlex.join([*_fio(job, job.config), *results])


def _fio(job: BenchmarkJob[IorConfig], config: IorConfig) -> list[str]:
    """The words of a fio command that does the same I/O as IOR.

    Each task is a process, which makes one request at a time. IOR gives the kernel no hints, keeps
    the page cache while it reads, and creates a file by opening it; so does fio with these options.
    ``-C`` makes processes read data of other processes. It needs no option, because the page cache
    is empty.
    """
    shuffled = config.random_offsets == 1
    words = [
        job.program,
        "--name=global",
        "--ioengine=psync",
        f"--rw={'rand' if shuffled else ''}{config.operation}",
        f"--bs={format_size(config.transfer_size)}",
        *_fio_layout(config),
        "--fadvise_hint=0",
        "--invalidate=0",
    ]
    flags = {
        "--create_on_open=1": config.write,
        # Without it, fio would create a file that is missing, and read that.
        "--allow_file_create=0": config.read,
        # After the last write, only the fsync at the end comes.
        "--fsync=1": config.write and config.fsync == "each",
        "--end_fsync=1": config.write and config.fsync in {"end", "each"},
        "--direct=1": config.odirect,
        "--randrepeat=0": shuffled,
    }
    return [*words, *(flag for flag, on in flags.items() if on), *_fio_nodes(job, config)]


def _fio_nodes(job: BenchmarkJob[IorConfig], config: IorConfig) -> Iterator[str]:
    """Options for each node: number of processes, path of the test files, and first offset."""
    tasks, nodes = config.tasks or 1, config.nodes or 1
    # Tasks fill one node after the other.
    first = [-(-node * tasks // nodes) for node in range(nodes + 1)]
    for node, file in enumerate(job.node_files or (job.test_file,) * nodes):
        yield f"--name={node}"
        yield f"--numjobs={first[node + 1] - first[node]}"
        if config.file_per_process:
            yield f"--filename_format={file}.{node}.$jobnum"
        else:
            # In fio, a colon separates file names.
            yield "--filename=" + file.replace(":", "\\:")
            yield f"--offset={format_size(first[node] * _fio_increment(config))}"


def _fio_increment(config: IorConfig) -> int:
    """Bytes between the first offsets of two neighbouring processes in a shared file."""
    return config.block_size if config.layout == "1d-strided" else config.bytes_per_process


def _fio_layout(config: IorConfig) -> list[str]:
    """Options that give each process its blocks; in a shared file, one block of each segment."""
    size, block = config.bytes_per_process, config.block_size
    if config.file_per_process:
        return [f"--size={format_size(size)}"]
    increment = f"--offset_increment={format_size(_fio_increment(config))}"
    if config.layout != "1d-strided":
        return [f"--size={format_size(size)}", increment]
    skipped = ((config.tasks or 1) - 1) * block
    return [
        f"--size={format_size(size + (config.segments - 1) * skipped)}",
        f"--io_size={format_size(size)}",
        increment,
        "--zonemode=strided",
        f"--zonesize={format_size(block)}",
        f"--zonerange={format_size(block)}",
        f"--zoneskip={format_size(skipped)}",
    ]


def _in_order(config: IorConfig) -> IorConfig:
    """The configuration that writes the file that `config` reads, in order and with fsync."""
    return replace(config.pattern(), write=True, read=False, random_offsets=0, fsync="end")


def _drop_from_memory(job: BenchmarkJob[IorConfig], launch: str) -> str:
    """A command that removes the test files from each node's page cache.

    Pages that are not on the disks yet would stay in the cache, so the command writes them first;
    IOR has no fsync in some apis.
    """
    script = (
        f"{FIRST_OF_NODE if launch else ''}for file in {_files(job)}; do"
        ' sync "$file" && dd if="$file" iflag=nocache count=0 status=none || exit 1; done'
    )
    return f"{launch} bash -c {shlex.quote(script)}".strip()


def _remove(job: BenchmarkJob[IorConfig]) -> list[str]:
    # With a file per process, all names together may be longer than a command line can be.
    return [f"printf '%s\\0' {_files(job)} | xargs -0 rm -f --"]


def _files(job: BenchmarkJob[IorConfig]) -> str:
    """The test files as a word for the shell."""
    return shlex.quote(job.test_file) + (".*" if job.config.file_per_process else "")


ENGINES: dict[str, Engine[IorConfig]] = {
    engine.name: engine
    for engine in (
        Engine("ior", True, _ior_refusals, _ior_prepare, _ior_measure, _remove),
        Engine("fio", False, _fio_refusals, _fio_prepare, _fio_measure, _remove),
    )
}
