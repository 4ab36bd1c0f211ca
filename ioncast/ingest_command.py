"""`ioncast ingest`: put the facts of a centre's logs into a store."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ioncast_base.command_options import WholeNumber, complain, formats, warn
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.wording import counted, duration, size
from ioncast_base.workers import usable_cores

if TYPE_CHECKING:
    from ioncast.warehouse.bundles import IngestOptions, Written
    from ioncast.warehouse.ingest import IngestCost
    from ioncast.warehouse.inputs import LogFile


@click.command(
    epilog="""\b
Examples:
  ioncast ingest /logs/2026/11 --system tetra --store /srv/ioncast-store
  ioncast ingest /logs --system tetra --store store --dry-run
  find /logs -name '*.darshan' -mtime -1 | ioncast ingest - --system tetra --store store
  ioncast ingest /logs --system tetra --store /gpfs/store --spark spark://head:7077
"""
)
@click.argument("logs", metavar="DIR|GLOB|LIST...", nargs=-1, required=True)
@click.option("--system", required=True, metavar="NAME", help="The system that wrote the logs.")
@click.option(
    *("--store", "store_path"), required=True, metavar="DIR", help="The store; it is made if new."
)
@click.option(
    "--spark", "master", metavar="MASTER", help="Let Spark do the work, such as local[4]."
)
@click.option("--requests", is_flag=True, help="Also store each request of DXT traces.")
@click.option("--retry", is_flag=True, help="Try logs again that could not be read before.")
@click.option(
    "--memory", "memory_mib", type=WholeNumber(512), help="The most memory of a process, in MiB."
)
@click.option("--dry-run", is_flag=True, help="Print the time and the disk that it needs.")
@formats("table", "json", help_text="Print a sentence for people or JSON.", has_tables=False)
def ingest(
    logs: tuple[str, ...],
    system: str,
    store_path: str,
    master: str | None,
    requests: bool,
    retry: bool,
    memory_mib: int | None,
    dry_run: bool,
    output_format: str,
) -> None:
    """Put the facts of Darshan logs into a store, on all cores or with Spark.

    DIR is searched for logs and tar files of logs, also below. LIST is a file *.txt with a path in
    each line, or - for standard input. Logs that the store knows by path, size and time are not
    read again, so the same command goes on after an interruption.

    A log that cannot be read is a row of the table failed. The store's folder can be read by its
    group, and who reads it sees the jobs of all users.
    """
    try:
        from ioncast.warehouse.bundles import IngestOptions  # noqa: PLC0415
        from ioncast.warehouse.ingest import estimated, new_logs, open_store  # noqa: PLC0415
        from ioncast.warehouse.inputs import find_logs  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            f"a store needs {error.name}", remedy="pip install 'ioncast[warehouse]'"
        ) from error
    begin = time.monotonic()
    options = IngestOptions(open_store(store_path), system, requests)
    found = list(find_logs(logs))
    errors = [each for each in found if isinstance(each, IoncastError)]
    for each in errors:
        complain(str(each))
    files = [each for each in found if not isinstance(each, IoncastError)]
    new = new_logs(files, options, retry=retry)
    if dry_run:
        _print_estimate(estimated(new, options), len(files) - len(new), output_format)
    else:
        written = _written(new, options, master, memory_mib)
        _print_written(written, len(files) - len(new), time.monotonic() - begin, output_format)
    if errors:
        sys.exit(2)


def _written(
    new: Sequence[LogFile], options: IngestOptions, master: str | None, memory_mib: int | None
) -> list[Written]:
    if master is not None:
        from ioncast.warehouse.spark import ingest_with_spark, spark_session  # noqa: PLC0415

        with spark_session(master) as session:
            return ingest_with_spark(session, new, options, memory_mib)
    from ioncast.warehouse.ingest import ingest as ingest_here  # noqa: PLC0415

    written = []
    with ExitStack() as stack:
        bar = stack.enter_context(
            click.progressbar(
                length=sum(file.size_bytes for file in new),
                label="reading logs",
                file=sys.stderr,
                hidden=not (new and sys.stderr.isatty()),
            )
        )
        for bundle, line in ingest_here(new, options, usable_cores(), memory_mib):
            written.append(line)
            bar.update(sum(file.size_bytes for file in bundle))
    return written


def _print_written(
    written: Sequence[Written], known: int, seconds: float, output_format: str
) -> None:
    numbers = {
        "known": known,
        "logs": sum(bundle.logs for bundle in written),
        "copies": sum(bundle.copies for bundle in written),
        "failed": sum(bundle.failed for bundle in written),
        "bundles": len(written),
        "stored_bytes": sum(bundle.stored_bytes for bundle in written),
        "seconds": round(seconds, 3),
    }
    if output_format == "json":
        click.echo(json.dumps(numbers, indent=2))
        return
    bundles = counted(len(written), "bundle")
    click.echo(
        f"{counted(int(numbers['logs']), 'new log')} in {bundles} of"
        f" {size(int(numbers['stored_bytes']))}, {known:,} known before,"
        f" {numbers['copies']:,} are copies, {numbers['failed']:,} cannot be read"
    )
    if numbers["failed"]:
        asking = "`ioncast sql STORE --text 'select path, reason from failed'`"
        warn(f"some files cannot be read; {asking} tells which, and why")


def _print_estimate(estimate: IngestCost, known: int, output_format: str) -> None:
    if output_format == "json":
        click.echo(json.dumps({"known": known, **asdict(estimate)}, indent=2))
        return
    if not estimate.logs:
        click.echo(f"no new logs, {known:,} known before")
        return
    workers = usable_cores()
    click.echo(
        f"{counted(estimate.logs, 'new log')}, {known:,} known before: about"
        f" {_about(estimate.seconds / workers, estimate.seconds_margin / workers, duration)} with"
        f" {counted(workers, 'process')}, and"
        f" {_about(estimate.stored_bytes, estimate.stored_bytes_margin, size)} of disk"
        " (with intervals of 80 %)"
    )


def _about(value: float, margin: float, in_words: Callable[[float], str]) -> str:
    return f"{in_words(value)} ({in_words(max(value - margin, 0))} to {in_words(value + margin)})"
