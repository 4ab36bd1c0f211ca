"""A store's upkeep: its numbers, and the removal of logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ioncast.warehouse.bundles import bundle_name, new_bundle, remove_bundle
from ioncast.warehouse.engine import asking, open_bundles
from ioncast.warehouse.queries import text_query
from ioncast.warehouse.schema import SCHEMAS
from ioncast_base.errors import InputError

_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")
_SYSTEMS = """
select system, count(*) as logs, count(distinct user_id) as users, min(month) as first_month,
    max(month) as last_month, sum(cast(read_bytes + written_bytes as double)) as moved_bytes,
    sum(case when has_requests then 1 else 0 end) as with_requests
from jobs group by system order by system nulls last
"""
# A row in two bundles has the same times and server in both.
_SAMPLES = """
select system, kind, max(file_system) as file_system, count(distinct server) as servers,
    min(time_start_us) as first_us, max(time_end_us) as last_us
from raw_server_samples group by system, kind order by system nulls last, kind nulls last
"""
_COUNTS = "select (select count(*) from failed) as failed, (select count(*) from copies) as copies"


@dataclass(frozen=True)
class Removal:
    """The logs of a store that are to be removed: their SHA-256 by bundle.

    `samples` has the number of samples of servers by bundle that end until `before_us`.
    """

    store: Path
    logs: Mapping[str, frozenset[str]]
    samples: Mapping[str, int]
    before_us: int


def info_of(store: Path) -> dict[str, Any]:
    """Count what a store has: bundles, their bytes, and what each system has."""
    with asking(store) as ask:
        systems = ask(text_query(_SYSTEMS), {}).to_pylist()
        samples = ask(text_query(_SAMPLES), {}).to_pylist()
        [counts] = ask(text_query(_COUNTS), {}).to_pylist()
    bundles = list(store.glob("bundle=*"))
    rows = sum(pq.ParquetFile(bundle / "jobs.parquet").metadata.num_rows for bundle in bundles)
    return {
        "systems": systems,
        "samples": samples,
        **counts,
        "twice": rows - sum(system["logs"] for system in systems),
        "bundles": len(bundles),
        "stored_bytes": sum(path.stat().st_size for path in store.glob("bundle=*/*")),
    }


def removal_of(store: Path, *, before: str | None, user: int | None) -> Removal:
    """Find the logs of the months before one, or of a user, in all bundles.

    Samples of servers of the months before one are found too.

    Raises
    ------
    InputError
        If the month is not a month.
    """
    if before is not None and not _MONTH.fullmatch(before):
        raise InputError(f"{before!r} is not a month", where="--before", remedy="write 2026-01")
    before_us = 0
    if before is not None:
        start = datetime.strptime(before, "%Y-%m").replace(tzinfo=timezone.utc)
        before_us = round(start.timestamp() * 1e6)
    found: dict[str, set[str]] = {}
    with duckdb.connect(":memory:") as database:
        open_bundles(database, store)
        rows = database.execute(
            "select bundle, log from raw_jobs where month < $before or user_id = $user",
            {"before": before, "user": user},
        ).fetchall()
        counts = database.execute(
            "select bundle, count(*) from raw_server_samples where time_end_us <= $before_us"
            " group by bundle",
            {"before_us": before_us},
        ).fetchall()
    for bundle, log in rows:
        found.setdefault(f"bundle={bundle}", set()).add(log)
    logs = {name: frozenset(logs) for name, logs in found.items()}
    samples = {f"bundle={bundle}": count for bundle, count in counts}
    return Removal(store, logs, samples, before_us)


def remove_logs(removal: Removal) -> None:
    """Write bundles again without some logs and samples, and remove the old ones.

    If it is interrupted, a log may be in its old bundle still: remove again.
    """
    for name, logs in removal.logs.items():
        _without(removal.store / name, logs)
    for name in removal.samples:
        _without_samples(removal.store / name, removal.before_us)


def _without(bundle: Path, logs: frozenset[str]) -> None:
    removed = pa.array(sorted(logs), pa.string())
    system, requests = "", False
    with new_bundle(bundle.parent) as new:
        for table, schema in SCHEMAS.items():
            with pq.ParquetFile(bundle / f"{table}.parquet") as file:
                for group in range(file.num_row_groups):
                    rows = file.read_row_group(group)
                    if table == "jobs":
                        system = rows["system"][0].as_py()
                        requests |= pc.any(rows["has_requests"]).as_py()
                    if "log" in schema.names:
                        rows = rows.filter(pc.invert(pc.is_in(rows["log"], removed)))
                    new.write({table: rows.cast(schema)})
        new.finished(system, requests=requests)
    remove_bundle(bundle)


def _without_samples(bundle: Path, before_us: int) -> None:
    """Keep the samples that end later; a bundle has either logs or samples."""
    kept = 0
    with new_bundle(bundle.parent) as new:
        with pq.ParquetFile(bundle / "server_samples.parquet") as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group)
                rows = rows.filter(pc.greater(rows["time_end_us"], before_us))
                kept += len(rows)
                new.write({"server_samples": rows.cast(SCHEMAS["server_samples"])})
        # The name differs from that of the whole file, so an import would store it again.
        new.finished_as(bundle_name([bundle.name, str(before_us)]), is_needed=kept > 0)
    remove_bundle(bundle)
