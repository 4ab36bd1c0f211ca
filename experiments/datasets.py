"""Measured results as the project ships them: a folder that says where all of it is from.

A data set is a folder with

- `provenance.json`: who measured what where, how, when (see `experiments.provenance`),
- `benchmarks.csv`: one row for each run of a benchmark, as `ioncast bench import` takes it,
- `applications.csv`: the same of applications, as `ioncast validate` takes it,
- `logs/`: Darshan logs of the applications,
- `tables/`: what was made of these (see `experiments.published_tables`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from benchdb.measurements.importers import Source, read_measurements
from benchdb.measurements.storing import Measurement
from experiments.provenance import PROVENANCE, Log, Provenance, read_provenance
from experiments.shipped import DATA, TESTBED
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ioncast_base.toml_files import read_text
from ior_configs import IorConfig
from predictor.validation.reruns import Rerun, read_reruns
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import LogReader

BENCHMARKS, APPLICATIONS = "benchmarks.csv", "applications.csv"
LOGS, TABLES = "logs", "tables"


@dataclass(frozen=True)
class Run:
    """A row of `applications.csv`: one run of a program.

    Attributes
    ----------
    name : str
        The application; of a benchmark, what its pattern is called.
    io_nodes, repetition : int
        Which run it is.
    bytes : int
        All that it moved.
    time_s : float
        How long that took; of an application, the sum over its steps.
    bandwidth_mib_s : float
        The one over the other.
    started : str
        When, ISO 8601.
    command : str
        The program and what it was told; of a benchmark, the IOR command line that means it.
    """

    name: str
    io_nodes: int
    repetition: int
    bytes: int
    time_s: float
    bandwidth_mib_s: float
    started: str
    command: str


@dataclass(frozen=True)
class BenchmarkRun(Run):
    """A row of `benchmarks.csv`.

    Attributes
    ----------
    operation : str
        "read" or "write".
    tasks, nodes : int
        Processes and compute nodes.
    engine : str
        The program that ran it.
    """

    operation: str
    tasks: int
    nodes: int
    engine: str


@dataclass(frozen=True)
class Benchmark:
    """A run of a benchmark as it is read.

    Attributes
    ----------
    name : str
        What its pattern is called.
    measurement : Measurement
        What was run, and what that reached.
    """

    name: str
    measurement: Measurement


@dataclass(frozen=True)
class DataSet:
    """What a folder holds, but for its tables.

    Attributes
    ----------
    folder : Path
        Where it is.
    provenance : Provenance
        Where it is from.
    benchmarks : tuple of Benchmark
        All runs of benchmarks.
    applications : mapping of str to tuple of Rerun
        All runs of each application.
    commands : mapping of str to str
        What ran each application, as the first of its rows says; empty where that says nothing.
    phases : mapping of Log to tuple of Phase
        Of every log, in the order of `provenance.logs`.
    """

    folder: Path
    provenance: Provenance
    benchmarks: tuple[Benchmark, ...]
    applications: Mapping[str, tuple[Rerun, ...]]
    commands: Mapping[str, str]
    phases: Mapping[Log, tuple[Phase, ...]]

    @property
    def jobs(self) -> dict[str, tuple[Phase, ...]]:
        """What the prediction of each application rests on: the phases of its first log."""
        jobs: dict[str, tuple[Phase, ...]] = {}
        for log in self.provenance.logs:
            jobs.setdefault(log.application, self.phases[log])
        return jobs


def shipped() -> list[Path]:
    """The folders of the data sets that come with the project.

    Where it is installed, that is the one which the service demonstrates with.
    """
    return sorted(path.parent for path in DATA.glob(f"*/{PROVENANCE}")) or [TESTBED]


def read(folder: Path) -> DataSet:
    """Read a data set and check that its files agree.

    Raises
    ------
    InputError
        Naming the file, and the line or key, that cannot be used.
    """
    provenance = read_provenance(folder / PROVENANCE)
    reruns: dict[str, list[Rerun]] = {}
    for rerun in read_reruns(folder / APPLICATIONS):
        reruns.setdefault(rerun.application, []).append(rerun)
    _check_logs(folder, provenance, reruns)
    with LogReader() as reader:
        phases = {
            log: tuple(extract_phases(reader.read(folder / LOGS / log.file)))
            for log in provenance.logs
        }
    return DataSet(
        folder=folder,
        provenance=provenance,
        benchmarks=_read_benchmarks(folder / BENCHMARKS, provenance),
        applications={name: tuple(runs) for name, runs in reruns.items()},
        commands=_commands(folder / APPLICATIONS),
        phases=phases,
    )


def write(
    folder: Path,
    provenance: Provenance,
    benchmarks: Iterable[BenchmarkRun],
    applications: Iterable[Run],
) -> DataSet:
    """Write a data set around its logs, which are in the folder already.

    Returns
    -------
    DataSet
        As it is read again.

    Raises
    ------
    InputError
        When it cannot be written, or makes no data set.
    """
    write_file(folder / PROVENANCE, provenance.model_dump_json(indent=1) + "\n")
    write_file(folder / BENCHMARKS, _csv(BenchmarkRun, benchmarks))
    write_file(folder / APPLICATIONS, _csv(Run, applications))
    return read(folder)


def _csv(kind: type[Run], runs: Iterable[Run]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(kind)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(run) for run in runs)
    return text.getvalue()


def _check_logs(folder: Path, provenance: Provenance, applications: Iterable[str]) -> None:
    """Refuse logs of nothing that ran, and applications without one."""
    where = str(folder / PROVENANCE)
    known, logged = set(applications), {log.application for log in provenance.logs}
    for name in sorted(known - logged):
        raise InputError(f"no log of {name!r} is listed, which {APPLICATIONS} has", where=where)
    for name in sorted(logged - known):
        raise InputError(f"a log is of {name!r}, which {APPLICATIONS} does not have", where=where)
    files = [log.file for log in provenance.logs]
    for file in files:
        if files.count(file) > 1:
            raise InputError(f"the log {file!r} is listed twice", where=where)


def _commands(path: Path) -> dict[str, str]:
    commands: dict[str, str] = {}
    for row in _rows(read_text(path), path):
        name = row.get("application") or row.get("name") or ""
        commands.setdefault(name.strip(), row.get("command") or "")
    return commands


def _read_benchmarks(path: Path, provenance: Provenance) -> tuple[Benchmark, ...]:
    """Read the runs; what is missing from their rows is told."""
    text = read_text(path)
    rows = _rows(text, path)
    columns = set(rows[0]) if rows else set()
    source = Source(
        where=str(path),
        text=text,
        tasks=None if "tasks" in columns else provenance.tasks,
        nodes=None if "nodes" in columns else provenance.nodes,
    )
    _, measurements = read_measurements(source)
    if "name" not in columns:
        raise InputError("column 'name' is missing", where=str(path))
    benchmarks = tuple(
        Benchmark(row["name"], measurement)
        for row, measurement in zip(rows, measurements, strict=True)
    )
    _check_names(benchmarks, str(path))
    return benchmarks


def _rows(text: str, path: Path) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        return list(reader)
    except csv.Error as error:
        # The line that it cannot read is one that DictReader does not count.
        where = f"{path}:{reader.reader.line_num}"
        raise InputError(f"this is no CSV: {error}", where=where) from error


def _check_names(benchmarks: Iterable[Benchmark], where: str) -> None:
    """Refuse a pattern with two names, and a name of two patterns."""
    names: dict[IorConfig, str] = {}
    configs: dict[str, IorConfig] = {}
    for one in benchmarks:
        config = one.measurement.config
        name = names.setdefault(config, one.name)
        if name != one.name:
            raise InputError(f"{name!r} and {one.name!r} are the same pattern", where=where)
        other = configs.setdefault(name, config)
        if other != config:
            commands = (each.command_line(launcher=True) for each in (other, config))
            raise InputError(f"{name!r} is two patterns, `{'` and `'.join(commands)}`", where=where)
