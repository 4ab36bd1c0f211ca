"""The tables of a store as views, in SQL that DuckDB and Spark read: each log once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from ioncast.warehouse.schema import EXTRACTOR
from ioncast_base.errors import InputError


class UnreadableStoreError(InputError):
    """A store that cannot be read, or that a newer ioncast wrote."""


# Tables raw_… have the rows of all bundles. If several bundles have a log, one bundle's rows count.
# To rank all logs would take 3 times as long.
LOSING = """
select log, bundle from (
    select log, bundle, row_number() over (
        partition by log order by has_requests desc, extractor desc, bundle) as place
    from raw_jobs
    where log in (select log from raw_jobs group by log having count(*) > 1)
) as ranked
where place > 1
"""
FAILED = """
select path, max(system) as system, size_bytes, modified_ns, max(reason) as reason,
    max(extractor) as extractor
from raw_failed
where not exists (
    select 1 from raw_jobs where raw_jobs.path = raw_failed.path
        and raw_jobs.size_bytes = raw_failed.size_bytes
        and raw_jobs.modified_ns = raw_failed.modified_ns)
group by path, size_bytes, modified_ns
"""


# Two formats, or two files, may have the same interval of a server: it counts once.
SAMPLES = """
select system, max(file_system) as file_system, kind, server, time_start_us, time_end_us,
    max(read_bytes) as read_bytes, max(written_bytes) as written_bytes,
    max(operations) as operations, max(cpu_percent) as cpu_percent
from raw_server_samples
group by system, kind, server, time_start_us, time_end_us
"""


def view_of(table: str, names: Sequence[str], *, are_twice: bool) -> str:
    """Write the query of a table's view with these columns.

    `are_twice` tells whether `losing` has any rows.
    """
    if table == "failed":
        return FAILED
    if table == "server_samples":
        return SAMPLES
    columns = ", ".join(names)
    if table == "copies":
        return f"select distinct {columns} from raw_copies"
    text = f"select {columns} from raw_{table}"
    if are_twice:
        text += (
            f" where not exists (select 1 from losing where losing.log = raw_{table}.log"
            f" and losing.bundle = raw_{table}.bundle)"
        )
    return text


def files_of(store: Path, table: str) -> str | None:
    """The pattern of a table's files; None if no bundle has it."""
    pattern = f"bundle=*/{table}.parquet"
    return f"{store}/{pattern}" if next(store.glob(pattern), None) else None


def check_extractor(newest: int | None, store: Path) -> None:
    """Reject a store with rows of a newer ioncast, which may mean something else."""
    if newest is not None and newest > EXTRACTOR:
        raise UnreadableStoreError(
            f"a newer ioncast wrote this store (extractor {newest}, this one has {EXTRACTOR})",
            where=str(store),
            remedy="install that ioncast",
        )


def without_decimals(answer: pa.Table) -> pa.Table:
    """Make integers and floats of decimals, as which engines give sums of integers and means."""
    types = [
        field.type
        if not pa.types.is_decimal(field.type)
        else pa.int64()
        if field.type.scale == 0
        else pa.float64()
        for field in answer.schema
    ]
    return answer.cast(pa.schema(list(zip(answer.column_names, types, strict=True))))
