"""Reads and writes data sets: measured results in a folder, with their provenance.

A data set is a folder with

- `provenance.json`: system, programs and settings of the measurements (see
  `experiments.provenance`),
- `benchmarks.csv`: a row for each run of a benchmark, for `ioncast bench import`,
- `file_rates.csv`: rates of files by mdtest, if the study measured them, for `ioncast bench
  import`,
- `applications.csv`: a row for each run of an application, for `ioncast validate`,
- `logs/`: Darshan logs of the applications,
- `tables/`: tables made from these (see `experiments.published_tables`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement
from experiments.provenance import PROVENANCE, Log, Provenance, read_provenance
from experiments.shipped import DATA
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ioncast_base.toml_files import read_text
from ior_configs import IorConfig
from predictor.validation.reruns import Rerun, read_reruns
from summario.phases.extract import extract_phases
from summario.phases.pauses import has_trace
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Phase
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of

BENCHMARKS, APPLICATIONS = "benchmarks.csv", "applications.csv"
FILE_RATES = "file_rates.csv"
LOGS, TABLES = "logs", "tables"


@dataclass(frozen=True)
class Run:
    """A run of a program: the columns that both CSV files have.

    Attributes
    ----------
    name : str
        Name of the application, or of the benchmark's pattern.
    io_nodes, repetition : int
        Number of I/O nodes, and number of the run with so many.
    bytes : int
        Bytes of all processes.
    time_s : float
        Seconds that the I/O took; for an application the sum over its steps.
    bandwidth_mib_s : float
        Bytes over time.
    started : str
        Time of the start, ISO 8601.
    command : str
        The program with its arguments; for a benchmark the IOR command line of its
        configuration.
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
class ApplicationRun(Run):
    """A row of `applications.csv`, with the bandwidth of each phase.

    Attributes
    ----------
    phases_mib_s : tuple of float
        MiB/s of each phase of the run, in their order; written as numbers with `;` between them.
    """

    phases_mib_s: tuple[float, ...]


@dataclass(frozen=True)
class BenchmarkRun(Run):
    """A row of `benchmarks.csv`.

    Attributes
    ----------
    operation : str
        "read" or "write".
    tasks, nodes : int
        Number of processes and of compute nodes.
    engine : str
        The program that ran the benchmark.
    """

    operation: str
    tasks: int
    nodes: int
    engine: str


@dataclass(frozen=True)
class Benchmark:
    """A row of `benchmarks.csv` that was read.

    Attributes
    ----------
    name : str
        Name of the pattern.
    measurement : Measurement
        The configuration and its bandwidth.
    """

    name: str
    measurement: Measurement


@dataclass(frozen=True)
class DataSet:
    """A data set without its tables.

    Attributes
    ----------
    folder : Path
        Folder of the data set.
    provenance : Provenance
        The system, the programs and the settings of the measurements.
    benchmarks : tuple of Benchmark
        All runs of benchmarks.
    applications : mapping of str to tuple of Rerun
        All runs of each application.
    commands : mapping of str to str
        The command in the first row of each application; empty if the row has none.
    phases : mapping of Log to tuple of Phase
        The phases of each log, in the order of `provenance.logs`.
    rates : tuple of FileRate
        All rates of files.
    """

    folder: Path
    provenance: Provenance
    benchmarks: tuple[Benchmark, ...]
    applications: Mapping[str, tuple[Rerun, ...]]
    commands: Mapping[str, str]
    phases: Mapping[Log, tuple[Phase, ...]]
    rates: tuple[FileRate, ...] = ()

    @property
    def jobs(self) -> dict[str, tuple[Phase, ...]]:
        """The phases of each application's first log, from which it is predicted."""
        jobs: dict[str, tuple[Phase, ...]] = {}
        for log in self.provenance.logs:
            jobs.setdefault(log.application, self.phases[log])
        return jobs


def shipped() -> list[Path]:
    """Folders of the data sets that come with ioncast."""
    return sorted(path.parent for path in DATA.glob(f"*/{PROVENANCE}"))


def read(folder: Path) -> DataSet:
    """Read a data set and check that its files agree.

    Raises
    ------
    InputError
        Naming the file, and the line or key, that is wrong.
    """
    provenance = read_provenance(folder / PROVENANCE)
    reruns: dict[str, list[Rerun]] = {}
    for rerun in read_reruns(folder / APPLICATIONS):
        reruns.setdefault(rerun.application, []).append(rerun)
    _check_logs(folder, provenance, reruns)
    phases = {log: tuple(phases_of_log(folder / LOGS / log.file)) for log in provenance.logs}
    return DataSet(
        folder=folder,
        provenance=provenance,
        benchmarks=read_benchmarks(folder / BENCHMARKS, provenance),
        applications={name: tuple(runs) for name, runs in reruns.items()},
        commands=_commands(folder / APPLICATIONS),
        phases=phases,
        rates=_read_rates(folder / FILE_RATES),
    )


def phases_of_log(path: Path) -> list[Phase]:
    """Extract the phases of a log, from its trace if it has one."""
    log = read_log(path)
    source = "dxt" if has_trace(run_of([log])) else "counters"
    return extract_phases(log, ExtractionSettings(phases=source))


def write(
    folder: Path,
    provenance: Provenance,
    benchmarks: Iterable[BenchmarkRun],
    applications: Iterable[ApplicationRun],
    rates: Sequence[FileRate] = (),
) -> DataSet:
    """Write a data set into a folder that holds its logs already.

    Returns
    -------
    DataSet
        The data set, read again from the folder.

    Raises
    ------
    InputError
        If a file cannot be written, or the files do not agree.
    """
    write_file(folder / PROVENANCE, provenance.model_dump_json(indent=1) + "\n")
    write_file(folder / BENCHMARKS, csv_of(BenchmarkRun, benchmarks))
    write_file(folder / APPLICATIONS, csv_of(ApplicationRun, applications))
    if rates:
        write_file(folder / FILE_RATES, csv_of(FileRate, rates))
    return read(folder)


def csv_of(kind: type[Any], rows: Iterable[Any]) -> str:
    """Write dataclasses of a kind as CSV, with the names of their fields."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [field.name for field in fields(kind)], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in asdict(row).items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return ";".join(map(str, value)) if isinstance(value, tuple) else value


def _check_logs(folder: Path, provenance: Provenance, applications: Iterable[str]) -> None:
    """Check that every application has a log, and that every log is of an application."""
    where = str(folder / PROVENANCE)
    known, logged = set(applications), {log.application for log in provenance.logs}
    for name in sorted(known - logged):
        raise InputError(f"{name!r} is in {APPLICATIONS} but has no log", where=where)
    for name in sorted(logged - known):
        raise InputError(f"{name!r} has a log but is not in {APPLICATIONS}", where=where)
    files = [log.file for log in provenance.logs]
    for file in files:
        if files.count(file) > 1:
            raise InputError(f"the log {file!r} is listed twice", where=where)


def _commands(path: Path) -> dict[str, str]:
    commands: dict[str, str] = {}
    for row in csv_rows(read_text(path), path):
        name = row.get("application") or row.get("name") or ""
        commands.setdefault(name.strip(), row.get("command") or "")
    return commands


def read_benchmarks(path: Path, provenance: Provenance) -> tuple[Benchmark, ...]:
    """Read a `benchmarks.csv`; without columns `tasks` and `nodes`, take both from the provenance.

    Raises
    ------
    InputError
        Naming the line or the column that is wrong.
    """
    text = read_text(path)
    rows = csv_rows(text, path)
    columns = set(rows[0]) if rows else set()
    options = ImportOptions(
        tasks=None if "tasks" in columns else provenance.tasks,
        nodes=None if "nodes" in columns else provenance.nodes,
    )
    _, measurements = read_measurements(ResultFile(str(path), text), options)
    if "name" not in columns:
        raise InputError("column 'name' is missing", where=str(path))
    bandwidths = [row for row in measurements if isinstance(row, Measurement)]
    benchmarks = tuple(
        Benchmark(row["name"], measurement)
        for row, measurement in zip(rows, bandwidths, strict=True)
    )
    _check_names(benchmarks, str(path))
    return benchmarks


def _read_rates(path: Path) -> tuple[FileRate, ...]:
    """Read the rates of files; a data set without the file has none."""
    if not path.exists():
        return ()
    _, rows = read_measurements(ResultFile(str(path), read_text(path)))
    return tuple(row for row in rows if isinstance(row, FileRate))


def csv_rows(text: str, path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file; InputError if it is damaged."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        return list(reader)
    except csv.Error as error:
        # DictReader does not count a line that it cannot read, but its reader does.
        where = f"{path}:{reader.reader.line_num}"
        raise InputError(f"this is not a CSV file: {error}", where=where) from error


def _check_names(benchmarks: Iterable[Benchmark], where: str) -> None:
    """Check that each pattern has one name, and each name one pattern."""
    names: dict[IorConfig, str] = {}
    configs: dict[str, IorConfig] = {}
    for one in benchmarks:
        config = one.measurement.config
        name = names.setdefault(config, one.name)
        if name != one.name:
            raise InputError(
                f"{name!r} and {one.name!r} are names of the same pattern", where=where
            )
        other = configs.setdefault(name, config)
        if other != config:
            commands = (each.command_line(launcher=True) for each in (other, config))
            raise InputError(
                f"{name!r} is the name of two patterns, `{'` and `'.join(commands)}`", where=where
            )
