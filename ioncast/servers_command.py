"""`ioncast servers`: put samples of servers' logs into a store."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import click

from ioncast_base.command_options import CommandGroup, formats
from ioncast_base.errors import InputError
from ioncast_base.times import in_utc
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, listed

if TYPE_CHECKING:
    from ioncast.diagnosis.server_logs.storing import Imported


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast servers import lmt.sqlite3 --system tetra --store store --tz Europe/Paris
""",
)
def servers() -> None:
    """Put samples of servers' logs into a store."""


@servers.command(
    "import",
    epilog="""\b
Examples:
  ioncast servers import 2026-11-*.hdf5 --system tetra --store /srv/ioncast-store
  ioncast servers import lmt.sqlite3 --system tetra --store store --tz Europe/Paris
  ioncast servers import job_stats-*.txt --system tetra --store store
""",
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--system", required=True, metavar="NAME", help="The system that uses the servers.")
@click.option(
    *("--store", "store_path"), required=True, metavar="DIR", help="The store; it is made if new."
)
@click.option(
    *("--tz", "zone"), metavar="ZONE", help="The zone of local times, such as Europe/Paris."
)
@formats("table", "json", help_text="Print sentences for people or JSON.", has_tables=False)
def import_(
    files: tuple[Path, ...], system: str, store_path: str, zone: str | None, output_format: str
) -> None:
    """Put samples of servers' logs into a store, beside the logs of jobs.

    FILE is an HDF5 file of TOKIO (also H5LMT), LMT's tables as SQLite, the output of `lctl
    get_param` for job_stats, Prometheus text or the JSON of query_range from a Lustre exporter, or
    a CSV; its content tells which. Snapshots of counters (job_stats, Prometheus text) of several
    times belong in one command. A file that the store has changes nothing.
    """
    try:
        from ioncast.diagnosis.server_logs.sample_rows import ImportSettings  # noqa: PLC0415
        from ioncast.diagnosis.server_logs.storing import import_samples  # noqa: PLC0415
        from ioncast.warehouse.ingest import open_store  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"a store needs {error.name}", remedy="pip install 'ioncast[warehouse]'"
        ) from error
    steps = 1_000
    with click.progressbar(
        length=steps, label="reading samples", file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:

        def show(share: float) -> None:
            # Another file begins at 0 again.
            bar.update(round(min(share, 1.0) * steps) - bar.pos)

        settings = ImportSettings(_zone(zone), show)
        imported = list(import_samples(files, open_store(store_path), system, settings))
    _print(imported, output_format)


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        what = f"{visible(name)!r} is not a time zone"
        raise InputError(what, where="--tz", remedy="write Europe/Paris or UTC") from error


def _print(imported: Sequence[Imported], output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps([asdict(each) for each in imported], indent=2))
        return
    for each in imported:
        files = visible(each.files[0])
        if len(each.files) > 1:
            files += f" and {counted(len(each.files) - 1, 'more file')}"
        if each.is_known:
            click.echo(f"{files}: known before")
            continue
        first, last = (
            in_utc(datetime.fromtimestamp((time or 0) // 1_000_000, timezone.utc))[:19]
            for time in (each.first_us, each.last_us)
        )
        samples = counted(each.samples, "sample")
        kinds = listed(each.kinds)
        click.echo(f"{files}: {samples} of {kinds} from {first} to {last} UTC ({each.format})")
