"""`ioncast survey`: describe the I/O of all jobs of a site."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ioncast.asked_data import asked_data, needed_store
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.survey import (
    CSV_COLUMNS,
    Ask,
    Survey,
    by_name,
    survey_of,
    survey_queries,
    to_json,
    to_rows,
    with_coverage,
)
from ioncast.warehouse.survey_texts import to_text
from ioncast_base.command_options import formats, warn
from ioncast_base.errors import InputError
from summario.phases.streamed import stream_csv

if TYPE_CHECKING:
    from benchdb.campaigns.platform_file import Platform
    from summario.phases.values import Extraction


@click.command(
    epilog="""\b
Examples:
  ioncast survey --store /srv/ioncast-store --html survey.html
  ioncast survey /logs --month 2026-01-2026-03
  ioncast survey '/logs/2026/*/*.darshan' --system mysite --format json
  ioncast survey /logs/2026 --system mysite --db bench.sqlite --html survey.html
  ioncast survey /logs/2026 --system mysite --db bench.sqlite \\
      --platform mysite.toml --campaign needed.toml
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, type=click.Path())
@click.option("--store", metavar="DIR", help="Ask a store of `ioncast ingest` instead of logs.")
@click.option("--spark", "master", metavar="MASTER", help="Let Spark answer, such as local[4].")
@click.option("--system", help="The system of these logs, or only its logs in a store.")
@click.option(
    "--month",
    metavar="FROM-TO",
    help="Only jobs that started in these months (UTC), such as 2026-01-2026-03, or in one.",
)
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Also write a page.")
@click.option(
    "--db",
    "location",
    metavar="FILE|URL",
    help="The benchmark database: also tell which of the I/O it can predict. Needs --system.",
)
@click.option(
    "--campaign",
    metavar="FILE.toml",
    type=click.Path(path_type=Path),
    help="Write the patterns that the database lacks as a campaign, as `ioncast campaign plan`"
    " does. Needs --db and --platform.",
)
@click.option(
    "--platform",
    "platform_file",
    metavar="FILE.toml",
    type=click.Path(),
    help="The platform file of --campaign; see docs/platform.md.",
)
@formats("table", "json", "csv", help_text="Print tables for people, JSON or CSV.")
def survey(
    logs: tuple[str, ...],
    store: str | None,
    master: str | None,
    system: str | None,
    month: str | None,
    page: str | None,
    location: str | None,
    campaign: Path | None,
    platform_file: str | None,
    output_format: str,
) -> None:
    """Describe the I/O of all jobs: users, programs, files, MPI-IO, slow runs.

    LOG is a file, a folder or a quoted pattern. Each number is the answer of a query that
    `ioncast sql --list` names. A log that cannot be read is a line on standard error, and counts as
    unusable; the exit code is then 2.
    """
    if bool(logs) == bool(store):
        raise InputError("a survey needs logs or a store", remedy="give LOG, or --store DIR")
    if location is not None and system is None:
        raise InputError("the measurements are of a system", where="--db", remedy="give --system")
    if (campaign is None) != (platform_file is None) or (campaign is not None and not location):
        what = "a campaign needs measurements and a platform"
        raise InputError(what, remedy="give --campaign, --platform, --db and --system")
    # Reading may take hours, so these errors come first.
    platform = None if platform_file is None else _platform(platform_file, system)
    if month is not None:
        query_of("totals").values({"month": month})
    queries = [*survey_queries(), *([] if location is None else [query_of("phases")])]
    folder = None if store is None else needed_store(store)
    with asked_data(logs, folder, master, system, queries=queries) as data:
        ask = by_name(data.ask)
        found = survey_of(ask, system=system, month=month)
        if location is not None and system is not None:
            jobs = _jobs(ask, system, month)
            found = _with_predictions(
                found, jobs, system, location, may_be_empty=campaign is not None
            )
            if campaign is not None and platform is not None:
                _write_campaign(campaign, jobs, location, platform)
    if output_format == "json":
        click.echo(json.dumps(to_json(found), indent=1))
    elif output_format == "csv":
        for text in stream_csv(CSV_COLUMNS, [to_rows(found)]):
            click.echo(text, nl=False)
    else:
        click.echo(to_text(found))
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.show.survey import write_survey  # noqa: PLC0415

        write_survey(page, found)
    if data.failed:
        sys.exit(InputError.exit_code)


def _jobs(ask: Ask, system: str, month: str | None) -> list[Extraction]:
    from ioncast.warehouse.coverage import jobs_of  # noqa: PLC0415

    months = {} if month is None else {"month": month}
    return list(jobs_of(ask("phases", {"system": system, **months})))


def _with_predictions(
    survey: Survey, jobs: list[Extraction], system: str, location: str, *, may_be_empty: bool
) -> Survey:
    """Match the I/O of jobs with the measurements of a system."""
    # The predictor takes much longer to import than a few logs take to read.
    from ioncast.warehouse.coverage import configurations_of, coverage_of  # noqa: PLC0415
    from predictor.commands import command_line  # noqa: PLC0415
    from predictor.curve.asking import read_knowledge  # noqa: PLC0415

    wanted = configurations_of(jobs)
    knowledge, _, warnings = read_knowledge(
        command_line(location), system, wanted, may_be_empty=may_be_empty
    )
    for warning in warnings:
        warn(warning)
    coverage = coverage_of(jobs, knowledge.match)
    return with_coverage(survey, coverage.predicted, coverage.missing)


def _platform(platform_file: str, system: str | None) -> Platform:
    """Read a platform file, which must be that of the system."""
    from benchdb.campaigns.platform_file import read_platform  # noqa: PLC0415

    platform = read_platform(platform_file)
    if platform.system != system:
        what = f"the platform is {platform.system!r}, the survey is of {system!r}"
        raise InputError(what, where=platform_file, remedy="give its --system")
    return platform


def _write_campaign(path: Path, jobs: list[Extraction], location: str, platform: Platform) -> None:
    """Write the campaign that the jobs need on a platform."""
    from benchdb.campaigns.prerequisites import find_engine  # noqa: PLC0415
    from predictor.planning.plan_command import plan_on  # noqa: PLC0415
    from predictor.planning.plans import needed_campaign, wanted_on, write_campaign  # noqa: PLC0415

    engine, _ = find_engine(platform, None)
    wanted = wanted_on(platform, jobs)
    plan = plan_on(platform, needed_campaign(platform, None), engine, wanted, location)
    write_campaign(path, plan)
