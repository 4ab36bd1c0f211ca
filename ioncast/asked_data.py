"""The data that commands ask: a store, or logs that are read for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ioncast_base.command_options import complain
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from summario.reading.sources import find_sources

if TYPE_CHECKING:
    from ioncast.warehouse.engine import Ask
    from ioncast.warehouse.queries import Query


@dataclass(frozen=True)
class AskedData:
    """A function that answers queries; the path of each log that cannot be read, and the reason."""

    ask: Ask
    failed: tuple[tuple[str, str], ...] = ()


@contextmanager
def asked_data(
    logs: Sequence[str],
    store: Path | None,
    master: str | None,
    system: str | None = None,
    *,
    queries: Sequence[Query] = (),
    findings: bool = True,
    io_nodes: Mapping[str, int] | None = None,
    tell: Callable[[str], object] = complain,
) -> Iterator[AskedData]:
    """Open a store, with DuckDB or with Spark, or else read logs, of a system if it is given.

    `tell` gets a line about each log that cannot be read. If only some `queries` are asked,
    DuckDB is faster when it knows them. Without `findings` the table of this name is empty, and
    logs are read faster. `io_nodes` has the number of the I/O node of each compute node of logs.
    """
    if master is not None and store is None:
        raise InputError("Spark asks a store", where="--spark", remedy="`ioncast ingest` makes one")
    try:
        from ioncast.warehouse.copies import unique_tables_of  # noqa: PLC0415
        from ioncast.warehouse.engine import asking  # noqa: PLC0415
    except ImportError as error:
        what = f"this needs {error.name}"
        raise InputError(what, remedy="pip install 'ioncast[warehouse]'") from error
    with ExitStack() as stack:
        if store is None:
            tables = unique_tables_of(
                find_sources(logs), system=system, findings=findings, io_nodes=io_nodes
            )
            rows = tables["failed"].to_pylist()
            failed = tuple((str(row["path"]), str(row["reason"])) for row in rows)
            for path, reason in failed:
                tell(f"{visible(path)}: {reason}")
            yield AskedData(stack.enter_context(asking(tables)), failed)
        elif master is None:
            yield AskedData(stack.enter_context(asking(store, queries=queries)))
        else:
            from ioncast.warehouse.spark import asking_spark, spark_session  # noqa: PLC0415

            session = stack.enter_context(spark_session(master))
            yield AskedData(stack.enter_context(asking_spark(session, store)))


def store_at(path: str) -> Path | None:
    """Return the folder of a store; None for any other folder."""
    folder = Path(path).absolute()
    return folder if next(folder.glob("bundle=*"), None) is not None else None


def needed_store(path: str) -> Path:
    """Return the folder of a store; InputError for any other folder."""
    found = store_at(path)
    if found is None:
        raise InputError(
            "this folder is not a store", where=path, remedy="`ioncast ingest` makes one"
        )
    return found
