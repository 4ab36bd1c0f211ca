"""`ioncast why`: why a job got its number of I/O nodes, as the service tells it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import click

from ioncast_base.command_options import emphasised, in_colour, table_format_option
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.text_tables import text_table
from ioncast_base.times import instant
from ioncast_base.visible_text import visible
from ioncast_base.wording import bandwidth, in_digits, in_words
from scheduler_plugin.service_client import Ioncast, ServiceRefusedError

_ADDRESS = "http://127.0.0.1:8420"
# A user waits for this command. The service waits for its database for 5 s (`patience_s`).
_TIMEOUT_S = 20.0
_UNAUTHORISED, _NOT_FOUND = 401, 404


@click.command(
    "why",
    epilog="""\b
Examples:
  ioncast why 4711
  ioncast why 4711 --system mysite --address http://ioncast.example.org:8420
  ioncast why ioncast:18ab3f0c5d7e9a10c2b4d6e8f0a1b2c3
  ioncast why 4711 --line
  ioncast why 4711 --format json
""",
)
@click.argument("job_id", metavar="JOBID")
@click.option("--system", help="Show only this system; ids of jobs come again on others.")
@click.option(
    "--address",
    envvar="IONCAST_ADDRESS",
    show_envvar=True,
    default=_ADDRESS,
    show_default=True,
    metavar="URL|unix:/PATH",
    help="Where the service is. If its reading is closed, put a token into IONCAST_TOKEN.",
)
@click.option("--line", is_flag=True, help="Print the newest run on one line, as after `seff`.")
@table_format_option
def why(job_id: str, system: str | None, address: str, line: bool, output_format: str) -> None:
    """Say why a job got its number of I/O nodes, what bandwidth it got, and whether it was slow.

    JOBID is the scheduler's id of the job. Before the job has ended, give its mark instead:
    `scontrol show job` shows AdminComment=ioncast:ID. The command asks the service, because users
    cannot read the database.
    """
    if not job_id:
        raise InputError("the job's id is empty", remedy="give an id such as 4711")
    with Ioncast(address, _token, _TIMEOUT_S) as service:
        try:
            found = service.job(job_id, system)
        except ServiceRefusedError as error:
            raise _explained(error) from error
    if output_format == "json":
        click.echo(json.dumps(found, indent=2))
    elif line:
        click.echo(_line(found["items"][0]))
    else:
        click.echo("\n".join(_lines(found)), color=in_colour())


def _token() -> str:
    return os.environ.get("IONCAST_TOKEN", "")


def _explained(error: ServiceRefusedError) -> Exception:
    """The service's own words for an unknown job; what to do without a valid token."""
    if error.status == _NOT_FOUND:
        return UnknownNameError(error.detail)
    if error.status == _UNAUTHORISED:
        return InputError(error.what, where=error.where, remedy="set IONCAST_TOKEN to a token")
    return error


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """Write the answer of the service for people; texts of users cannot change the terminal."""
    for item in found["items"]:
        yield _heading(item)
        yield emphasised(visible(item["headline"]))
        yield from (f"  - {visible(sentence)}" for sentence in item["sentences"])
        yield from _verdict(item.get("diagnosis"))
        decision = item["decision"]
        if decision and decision["curve"]:
            yield ""
            yield _table(item)
        yield ""
    if found["more"]:
        yield "Older runs and decisions of this id are not shown; --system shows one system."
        yield ""
    yield visible(found["another_number"])


def _verdict(diagnosis: dict[str, Any] | None) -> Iterator[str]:
    """Write whether the run was slow, and its evidence."""
    if diagnosis is not None:
        yield f"  - {visible(diagnosis['headline'])}"
        yield from (f"    - {visible(sentence)}" for sentence in diagnosis["evidence"])


def _line(item: dict[str, Any]) -> str:
    """Write a run on one line: the I/O nodes, both bandwidths, and the verdict."""
    decision, outcome, diagnosis = (item.get(key) for key in ("decision", "outcome", "diagnosis"))
    parts = [visible(item["headline"])]
    if outcome and not item["implausible"]:
        ran_with = in_words(outcome["io_nodes"])
        parts.append(f"{bandwidth(outcome['bandwidth_mib_s'])} with {ran_with}")
    if decision and decision["expected_mib_s"] is not None:
        parts.append(f"{bandwidth(decision['expected_mib_s'])} predicted")
    if diagnosis is not None:
        parts.append(visible(diagnosis["headline"]))
    return f"ioncast: {'; '.join(parts)}"


def _heading(item: dict[str, Any]) -> str:
    job = "A job" if item["job_id"] is None else f"Job {visible(item['job_id'])}"
    moment = instant(item["time"])
    when = moment.strftime("%Y-%m-%d %H:%M UTC") if moment else "unknown time"
    application = item["application"]
    what = ""
    if application:
        what = f": {visible(application['program'])} of {visible(application['user'])}"
    return f"{job} on {visible(item['system'])}, {when}{what}"


def _table(item: dict[str, Any]) -> str:
    decision, outcome = item["decision"], item["outcome"] or {}
    rows = [
        {
            "I/O nodes": n,
            "predicted MiB/s": in_digits(mean),
            "p10 to p90": f"{in_digits(p10)} to {in_digits(p90)}",
            "measured MiB/s": in_digits(outcome["bandwidth_mib_s"])
            if outcome.get("io_nodes") == n
            else "",
            "": "decision" if n == decision["io_nodes"] else "",
        }
        for n, mean, p10, p90 in sorted(decision["curve"])
    ]
    numbers = ["I/O nodes", "predicted MiB/s", "p10 to p90", "measured MiB/s"]
    return text_table(rows, right=numbers)
