"""Safe reading of a Darshan log to one array of records for each module.

libdarshan-util reads the records in a child process that may crash. This module compares the
records with the header (see `summario.reading.header`) and checks their ranks and sizes. So a
damaged log is an error and never a shorter list.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import BusyError, DamagedLogError, InputError
from ioncast_base.fork_server import Asked, ForkServer
from summario.reading.header import (
    MAX_HEADER_BYTES,
    MODULES,
    Header,
    Job,
    check_regions,
    parse_header,
    parse_job,
    parse_names,
)

RECORD_MODULES = ("POSIX", "MPI-IO", "STDIO")
TRACE_MODULES = ("HEATMAP", "DXT_POSIX", "DXT_MPIIO")
_RECORD_VERSIONS = {"POSIX": 4, "MPI-IO": 3, "STDIO": 2}
_SHARED = -1


@dataclass(frozen=True)
class Limits:
    """Limits of reading one log: bytes of memory, which also limit the records, and seconds."""

    max_bytes: int = 2 << 30
    max_seconds: int = 300


@dataclass(frozen=True)
class Records:
    """All records of one module.

    Attributes
    ----------
    module : str
        Darshan's name of the module.
    words : ndarray of int64, shape (records, 2 + counters)
        Record id, rank and all counters of the log, in native byte order. A word of a
        floating-point counter has the bits of the number.
    columns : dict of str to int
        The column in `words` of each counter, by name.
    partial : bool
        Darshan's own flag: the module ran out of memory and left out records.
    """

    module: str
    words: NDArray[np.int64]
    columns: dict[str, int]
    partial: bool

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The record ids, which are hashes of the files' paths."""
        return self.words[:, 0].view(np.uint64)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The ranks; -1 stands for a record that is reduced over all ranks."""
        return self.words[:, 1]

    def integers(self, *names: str) -> NDArray[np.int64]:
        """Read several counters, shape (records, names)."""
        return self.words[:, [self.columns[name] for name in names]]

    def integer(self, name: str) -> NDArray[np.int64]:
        """Read a counter, shape (records,); zeros if the log's version does not have it."""
        column = self.columns.get(name)
        return np.zeros(len(self.words), np.int64) if column is None else self.words[:, column]

    def real(self, name: str) -> NDArray[np.float64]:
        """Read a floating-point counter in seconds, shape (records,)."""
        return np.ascontiguousarray(self.words[:, self.columns[name]]).view(np.float64)


@dataclass(frozen=True)
class DarshanLog:
    """A Darshan log, read and checked.

    Attributes
    ----------
    path : str
        The file.
    job : Job
        The job record.
    records : dict of str to Records
        The records by module, for the modules of `RECORD_MODULES` that the log has.
    traces : dict of str to bytes
        Raw HEATMAP and DXT data by module, if the log has them and they can be read.
    names : dict of int to str
        The path of each record id; some ids have no path.
    header : Header
        The header of the file.
    warnings : tuple of str
        Sentences about partial modules and unreadable traces.
    """

    path: str
    job: Job
    records: dict[str, Records]
    traces: dict[str, bytes]
    names: dict[int, str]
    header: Header
    warnings: tuple[str, ...]


class LogReader:
    """Reads any number of Darshan logs, also from several threads.

    It keeps the process that forks a reader for each log (see `summario.reading._child`), so only
    the first log waits for the start of that process. It is a context manager.

    Parameters
    ----------
    limits : Limits, optional
        Limits of reading one log.

    Examples
    --------
    >>> with LogReader() as reader:
    ...     log = reader.read("tests/summario/fixtures/single-a.darshan")
    >>> log.job.nprocs, sorted(log.records)
    (32, ['POSIX'])
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._forks = ForkServer(_server_command)

    def __enter__(self) -> LogReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the next log starts another."""
        self._forks.close()

    def read(self, path: str | Path) -> DarshanLog:
        """Read a Darshan 3.x log.

        Raises
        ------
        InputError
            When the file cannot be opened or is not a Darshan log.
        DamagedLogError
            When its contents contradict its header.
        """
        where = str(path)
        try:
            if stat.S_ISFIFO(Path(path).stat().st_mode):
                raise InputError("a pipe, not a file", where=where, remedy="give a .darshan file")
            with Path(path).open("rb") as file:
                return self._read(file, where, may_retry=True)
        except OSError as error:
            raise InputError(error.strerror or str(error), where=where) from error

    def _read(self, file: IO[bytes], where: str, *, may_retry: bool) -> DarshanLog:
        file_bytes = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = parse_header(file.read(MAX_HEADER_BYTES), where)
        check_regions(header, file_bytes, where)
        wanted = [name for name in (*RECORD_MODULES, *TRACE_MODULES) if name in header.modules]
        with tempfile.TemporaryFile() as output:
            asked = self._ask(where, wanted, output)
            with asked.reply:
                # Names need no library: they are decoded while the child copies the records.
                job, names = self._read_job_and_names(file, header, file_bytes, where)
                answer = asked.reply.read()
            if not answer and may_retry and asked.is_cut():
                self._forks.forget(asked.server)
                return self._read(file, where, may_retry=False)
            report = json.loads(answer or '{"refused": "the Darshan library died of it"}')
            if "refused" in report:
                raise DamagedLogError(
                    f"the log cannot be read: {report['refused']}",
                    where=where,
                    remedy="fetch it again, or use the log of another run",
                )
            if "failed" in report:
                raise BusyError(
                    f"the records cannot be copied: {report['failed']}",
                    where=tempfile.gettempdir(),
                    remedy="make room there, or set TMPDIR",
                )
            return _collect(where, header, job, names, report, output)

    def _read_job_and_names(
        self, file: IO[bytes], header: Header, file_bytes: int, where: str
    ) -> tuple[Job, dict[int, str]]:
        regions = header.regions()
        file.seek(header.size)
        job_end = regions[0].offset if regions else file_bytes
        job = parse_job(header, file.read(job_end - header.size), where)
        file.seek(header.names.offset)
        region = file.read(header.names.length)
        return job, parse_names(header, region, where)

    def _ask(self, log: str, modules: list[str], output: IO[bytes]) -> Asked:
        request = {
            "log": str(Path(log).absolute()),
            "modules": {name: MODULES.index(name) for name in modules},
            "max_bytes": self.limits.max_bytes,
            "max_seconds": self.limits.max_seconds,
        }
        return self._forks.ask(request, output.fileno())


def _server_command(descriptor: int) -> list[str | Path]:
    program = Path(__file__).with_name("_child.py")
    return [sys.executable, "-I", "-S", program, _library_path(), str(descriptor)]


def read_log(path: str | Path, limits: Limits | None = None) -> DarshanLog:
    """Read one Darshan log; a `LogReader` is faster for several."""
    with LogReader(limits) as reader:
        return reader.read(path)


def _collect(
    where: str,
    header: Header,
    job: Job,
    names: dict[int, str],
    report: dict[str, Any],
    output: IO[bytes],
) -> DarshanLog:
    """Make a checked log from the report and the output of the child process."""
    output.seek(0, os.SEEK_END)
    blob: memoryview | bytes = b""
    if output.tell():
        blob = memoryview(mmap.mmap(output.fileno(), 0, access=mmap.ACCESS_READ))
    warnings = [
        f"Darshan marked the {module} data as partial: it ran out of memory and left records out"
        for module in sorted(header.partial_modules & set(RECORD_MODULES))
    ]
    records, traces = {}, {}
    for module, extent in report["modules"].items():
        if extent is None:
            if module in RECORD_MODULES:
                raise _unreadable(f"{module} records", where)
            warnings.append(f"the {module} data cannot be read and is not used")
            continue
        data = blob[extent[0] : extent[0] + extent[1]]
        if module in RECORD_MODULES:
            records[module] = _parse_records(
                module, data, report["counters"][module], header, job.nprocs, where
            )
        else:
            traces[module] = bytes(data)
    return DarshanLog(
        path=where,
        job=job,
        records=records,
        traces=traces,
        names=names,
        header=header,
        warnings=tuple(warnings),
    )


def _parse_records(
    module: str,
    data: memoryview | bytes,
    counters: list[str],
    header: Header,
    nprocs: int,
    where: str,
) -> Records:
    version = header.module_versions[module]
    columns = _record_layout(module, version, counters, where)
    width = 2 + len(columns)
    if len(data) == 0 or len(data) % (8 * width):
        raise _unreadable(f"{module} records", where)
    words = np.frombuffer(data, f"{header.byte_order}i8").reshape(-1, width)
    records = Records(
        module=module,
        words=words.astype(np.int64, copy=False),
        columns={name: 2 + index for index, name in enumerate(columns)},
        partial=module in header.partial_modules,
    )
    ranks = records.ranks
    if ranks.min() < _SHARED or ranks.max() >= nprocs:
        raise DamagedLogError(
            f"a {module} record has a rank outside the job's {nprocs} processes",
            where=where,
            remedy="fetch the log again",
        )
    return records


def _record_layout(module: str, version: int, counters: list[str], where: str) -> list[str]:
    """List the counters of a record of an older module version, in their order.

    `counters` are those of the current version. The changes are taken from the conversions in
    darshan-posix-logutils.c, darshan-mpiio-logutils.c and darshan-stdio-logutils.c.
    """
    current = _RECORD_VERSIONS[module]
    if not 1 <= version <= current:
        raise InputError(
            f"{module} records have format {version}, this reader knows 1 to {current}",
            where=where,
            remedy="install a newer darshan package",
        )
    dropped: set[str] = set()
    added: list[str] = []
    late_timestamps = {f"{module.replace('-', '')}_F_{name}" for name in _LATE_TIMESTAMPS}
    if module == "POSIX":
        if version < 4:
            dropped |= {"POSIX_FILENOS", "POSIX_DUPS", "POSIX_RENAMED_FROM"}
            dropped |= {"POSIX_RENAME_SOURCES", "POSIX_RENAME_TARGETS"}
        if version < 3:
            dropped |= late_timestamps
        if version == 1:
            added = ["POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FSEEKS"]
    elif module == "MPI-IO" and version < 3:
        dropped = late_timestamps
    elif module == "STDIO" and version == 1:
        dropped = {"STDIO_FDOPENS"}
    layout = [name for name in counters if name not in dropped]
    if added:
        layout[layout.index("POSIX_FSYNCS") : layout.index("POSIX_FSYNCS")] = added
    return layout


_LATE_TIMESTAMPS = ("CLOSE_START_TIMESTAMP", "OPEN_END_TIMESTAMP")


def _library_path() -> str:
    """Find the shared library of the darshan wheel without importing darshan."""
    package = importlib.util.find_spec("darshan")
    if package is not None and package.origin is not None:
        folder = Path(package.origin).parent
        for libraries in (folder.with_name("darshan.libs"), folder / ".dylibs"):
            # A glob takes a folder that cannot be read, for lack of memory, for an empty one.
            for library in sorted(libraries.iterdir()) if libraries.is_dir() else ():
                if library.name.startswith("libdarshan-util"):
                    return str(library)
    raise InputError(
        "the Darshan library is not installed", remedy="run `pip install 'darshan>=3.4'`"
    )


def _unreadable(what: str, where: str) -> DamagedLogError:
    return DamagedLogError(
        f"the {what} are not what the header promises",
        where=where,
        remedy="fetch the log again, or use the log of another run",
    )
