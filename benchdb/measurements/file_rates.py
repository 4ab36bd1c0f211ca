"""Rates of files by number of I/O nodes, as mdtest measures them: files per second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from sqlalchemy import Connection, bindparam, func, insert, select

from benchdb.store.accepted_values import check_count, check_text
from benchdb.store.schema import file_rates, imports, longest, systems
from benchdb.store.system_changes import deciding_time, is_before
from ioncast_base.errors import InputError
from ioncast_base.limits import LARGEST_BYTES

FileOperation = Literal["create", "stat", "read", "remove"]
FILE_OPERATIONS: tuple[FileOperation, ...] = get_args(FileOperation)

_SLOWEST_PER_S, _FASTEST_PER_S = 1e-9, 1e15
_TEXT_LENGTHS = {
    name: longest(file_rates.c[name])
    for name in ("started", "engine_version", "command", "note", "campaign")
}


@dataclass(frozen=True)
class FileRate:
    """The rate of one run of mdtest, of all its processes together.

    Attributes
    ----------
    operation : str
        "create" (open, write, close), "stat", "read" (open, read, close) or "remove".
    files_per_s : float
        Files per second, from 1e-9 to 1e15.
    files_per_process : int or None
        None if a stone wall ended the run and its output does not tell.
    unique_directory : bool
        Whether each process has a directory of its own (-u).
    bytes_per_file : int
        Bytes that a "create" writes into each file (-w) or a "read" reads from it (-e); the size
        of the files for the other operations.
    used : bool
        False for a run that predictions cannot use; `note` says why.
    """

    operation: FileOperation
    io_nodes: int
    files_per_s: float
    tasks: int
    nodes: int | None
    files_per_process: int | None
    unique_directory: bool
    bytes_per_file: int
    started: str | None = None
    engine_version: str | None = None
    command: str | None = None
    used: bool = True
    note: str | None = None
    campaign: str | None = None

    def __post_init__(self) -> None:
        if not _SLOWEST_PER_S <= self.files_per_s <= _FASTEST_PER_S:
            raise InputError(f"a rate of {self.files_per_s} files/s is not from 1e-9 to 1e15")
        check_count("I/O nodes", self.io_nodes)
        check_count("tasks", self.tasks, least=1)
        check_count("nodes", self.nodes, least=1)
        check_count("files of a process", self.files_per_process, least=1)
        if not 0 <= self.bytes_per_file <= LARGEST_BYTES:
            raise InputError(f"{self.bytes_per_file} bytes in a file, not up to {LARGEST_BYTES}")
        for name, most in _TEXT_LENGTHS.items():
            check_text(name, getattr(self, name), most)


_COLUMNS = tuple(file_rates.c[field.name] for field in fields(FileRate))
_OF_SYSTEM = (
    select(*_COLUMNS, imports.c.imported_at)
    .join_from(file_rates, imports)
    .where(file_rates.c.system_id == bindparam("of_system"))
    .order_by(file_rates.c.id)
)
_SYSTEM_ID = select(systems.c.id).where(systems.c.name == bindparam("system"))


def insert_rates(
    connection: Connection, system_id: int, import_id: int, rates: Sequence[FileRate]
) -> None:
    """Store the rates of an import."""
    keys = {"system_id": system_id, "import_id": import_id}
    if rates:
        connection.execute(insert(file_rates), [keys | asdict(rate) for rate in rates])


def rates_of_system(
    connection: Connection, system: str, *, before_change: bool = False
) -> list[FileRate]:
    """The rates of a system that count, in the order of their import, also those set apart.

    With `before_change` they are those from before the system's newest change.
    """
    system_id = connection.scalar(_SYSTEM_ID, {"system": system})
    if system_id is None:
        return []
    since = deciding_time(connection, system_id)
    rows = connection.execute(_OF_SYSTEM, {"of_system": system_id})
    return [
        rate
        for *values, imported_at in rows
        if is_before(since, (rate := FileRate(*values)).started, imported_at) == before_change
    ]


def count_rates(connection: Connection) -> int:
    """The number of rates in the database."""
    return int(connection.scalars(select(func.count()).select_from(file_rates)).one())


def rates_of_import(connection: Connection, import_id: int) -> list[FileRate]:
    """The rates of an import."""
    rows = connection.execute(select(*_COLUMNS).where(file_rates.c.import_id == import_id))
    return [FileRate(*row) for row in rows]


def cells_of_rates(rates: Iterable[FileRate]) -> Counter[tuple[Any, ...]]:
    """The number of rates by all that identifies them beside their measured values."""
    return Counter(
        (rate.operation, rate.io_nodes, rate.tasks, rate.nodes, rate.files_per_process)
        for rate in rates
    )


def cells_of_stored_rates(connection: Connection, import_id: int) -> Counter[tuple[Any, ...]]:
    """Count the rates of an import as `cells_of_rates` does."""
    return cells_of_rates(rates_of_import(connection, import_id))
