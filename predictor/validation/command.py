"""`ioncast validate`: compare predictions with reruns."""

from __future__ import annotations

import json
from collections.abc import Mapping

import click

from ioncast_base.command_options import database_option, report_format_option, warn
from predictor.asked_options import nodes_option
from predictor.commands import command_line
from predictor.curve.asking import read_phases
from predictor.validation.one_application import choose_applications
from predictor.validation.reruns import by_application, read_reruns
from predictor.validation.result_tables import to_json, to_markdown, to_text
from predictor.validation.several_applications import validate_applications
from summario.extraction_options import extraction_options
from summario.phases.settings import ExtractionSettings


def parse_logs(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse the values of --log: APPLICATION=LOG, once for each application."""
    logs: dict[str, str] = {}
    for value in values:
        application, equals, log = value.partition("=")
        if not (equals and application.strip() and log):
            raise click.BadParameter(f"{value!r} is not APPLICATION=LOG, such as hacc-io=a.darshan")
        if application.strip() in logs:
            raise click.BadParameter(f"{application.strip()!r} has two logs")
        logs[application.strip()] = log
    return logs


@click.command(
    "validate",
    epilog="""\b
Examples:
  ioncast validate reruns.csv --system mysite --log hacc-io=hacc.darshan --nodes 16
  ioncast validate reruns.csv --system mysite --log a=a.darshan --log b=b.csv --html report.html
  ioncast validate reruns.csv --system mysite --log a=a.darshan --only a
  ioncast validate reruns.csv --system mysite --log a=a.darshan --explain-error
  ioncast validate reruns.csv --system mysite --log a=a.darshan --format markdown > results.md
  ioncast validate reruns.csv --system mysite --log a=a.darshan --time-distance 5
""",
)
@click.argument("reruns_csv", metavar="RERUNS.csv", type=click.Path())
@click.option("--system", required=True, help="The system that the reruns ran on.")
@click.option(
    "--log",
    "logs",
    required=True,
    multiple=True,
    callback=parse_logs,
    metavar="APPLICATION=LOG|PHASES.csv",
    help="The earlier run from which to predict an application; once for each application.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="APPLICATION",
    help="Validate only this application; once for each.  [default: all in RERUNS.csv]",
)
@nodes_option
@extraction_options
@click.option("--engine", help="The program whose benchmarks to use, such as ior or fio.")
@click.option("--explain-error", "explained", is_flag=True, help="Split the error by its sources.")
@report_format_option
@click.option("--html", metavar="FILE.html", type=click.Path(), help="Also write a report.")
@database_option
def validate(
    reruns_csv: str,
    system: str,
    logs: Mapping[str, str],
    only: tuple[str, ...],
    nodes: int | None,
    extraction: ExtractionSettings,
    engine: str | None,
    explained: bool,
    output_format: str,
    html: str | None,
    location: str | None,
) -> None:
    """Compare predictions with measured reruns.

    RERUNS.csv has the columns application, io_nodes, repetition and bandwidth_mib_s. Instead of
    bandwidth_mib_s it may have log, the path of the rerun's Darshan log. The column started, the
    time when the rerun began, is optional. Each error is shown with its noise floor: the error if
    the application's own repetitions predict each other. docs/validation.md explains the input
    and the output.
    """
    warnings: list[str] = []

    def choose(applications: list[str]) -> list[str]:
        chosen, limits = choose_applications(applications, logs, only, reruns_csv)
        warnings.extend(limits)
        return chosen

    reruns = read_reruns(reruns_csv, extraction, choose)
    results, said = validate_applications(
        command_line(location),
        reruns,
        {
            application: read_phases([logs[application]], extraction)
            for application in by_application(reruns)
        },
        system=system,
        nodes=nodes,
        engine=engine,
        explained=explained,
    )
    warnings += said
    if html is not None:
        # Only the page needs Jinja.
        from predictor.validation.report_page import write_html  # noqa: PLC0415

        write_html(results, html, system=system, warnings=warnings)
    if output_format == "json":
        record = {"system": system, "nodes": nodes, **to_json(results), "warnings": warnings}
        if extraction.changed:
            record["extraction"] = extraction.changed
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(to_markdown(results) if output_format == "markdown" else to_text(results))
    for warning in warnings:
        warn(warning)
