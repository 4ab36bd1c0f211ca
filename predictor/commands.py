"""`ioncast match` and `ioncast predict`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
from tabulate import tabulate

from benchdb.measurements.storing import measured_systems
from benchdb.store.database import default_location, reading, without_password
from ioncast_base.command_options import database_option, format_option
from ioncast_base.errors import DatabaseError, InputError, UnknownNameError
from ioncast_base.limits import MOST_PREDICTED_IO_NODES
from ioncast_base.wording import counted
from ior_configs import IorConfig
from predictor.composition.explanation import explain
from predictor.composition.prediction import Policy, Prediction, predict, to_json
from predictor.matching.basis import Basis, read_basis
from predictor.matching.configurations import Match, configuration
from predictor.model.stored import keep
from predictor.model.system_model import Knowledge
from summario.phases import tables
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import read_log

# Python refuses to read numbers of thousands of digits.
_DIGITS = 10

nodes_option = click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Compute nodes of the job; a log does not know them.",
)


def parse_io_nodes(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    """Parse a list of numbers of I/O nodes such as 0,1,2,4,8."""
    if value is None:
        return None
    numbers = [number.strip() for number in value.split(",")]
    if not all(number.isascii() and number.isdecimal() for number in numbers):
        raise click.BadParameter(f"{value!r} is not a list of numbers such as 0,1,2,4,8")
    if any(len(number) > _DIGITS or int(number) > MOST_PREDICTED_IO_NODES for number in numbers):
        raise click.BadParameter(
            f"more than {MOST_PREDICTED_IO_NODES} I/O nodes cannot be predicted"
        )
    return tuple(sorted({int(number) for number in numbers}))


@click.command(
    "match",
    epilog="""\b
Examples:
  ioncast match app.darshan --nodes 16
  ioncast match phases.csv --format json
""",
)
@click.argument("source", metavar="LOG|PHASES.csv", type=click.Path())
@nodes_option
@format_option
def match(source: str, nodes: int | None, output_format: str) -> None:
    """Print the IOR run that does what each phase does, ready to paste.

    A phase of mixed request sizes has one line per size. A run that reads needs its file:
    run the same line with -w -k first.
    """
    phases, warnings = read_phases(source)
    for warning in warnings:
        click.echo(f"ioncast: warning: {warning}", err=True)
    rows = [
        {
            "phase": index,
            "type": phase.operation,
            "api": phase.api,
            "spatiality": phase.spatiality,
            "requests": f"{part.requests} × {tables.size(part.request_bytes)}",
            "nodes": nodes,
            "ior": configuration(phase, part, nodes).command_line(launcher=True),
        }
        for index, phase in enumerate(phases)
        for part in phase.parts
    ]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    elif rows:
        shown = [{k: v for k, v in row.items() if v is not None} for row in rows]
        click.echo(tabulate(shown, headers="keys", disable_numparse=True))
    else:
        click.echo("no I/O phases")


@click.command(
    "predict",
    epilog="""\b
Examples:
  ioncast predict app.darshan --system mysite --nodes 16
  ioncast predict phases.csv --system mysite --io-nodes 0,4,8 --format json
  ioncast predict app.darshan --system mysite --plot curve.html
  ioncast predict app.darshan --system mysite --engine fio
  ioncast predict app.darshan --system mysite --ran-with 4 --available 6 --explain
""",
)
@click.argument("source", metavar="LOG|PHASES.csv", type=click.Path())
@click.option("--system", required=True, help="The system to predict for.")
@nodes_option
@click.option(
    "--io-nodes",
    callback=parse_io_nodes,
    metavar="N,N,...",
    help="Numbers of I/O nodes to predict; by default those that benchmarks of the job's kinds"
    " of I/O were measured with.",
)
@click.option(
    "--engine",
    help="The program whose benchmarks to predict from, such as ior or fio; by default IOR, or"
    " the one that measured most configurations. Different ones are never mixed.",
)
@click.option(
    "--ran-with",
    type=click.IntRange(0, MOST_PREDICTED_IO_NODES),
    metavar="N",
    help="I/O nodes that the run in the log had, if you know it: what it got then corrects the"
    " prediction, the more the less was measured of its kind.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=Policy.tolerance,
    show_default=True,
    help="Share of the best bandwidth that a decision may give up for fewer I/O nodes.",
)
@click.option(
    "--available",
    type=click.IntRange(min=0),
    metavar="N",
    help="Decide for at most so many I/O nodes.",
)
@click.option(
    "--default",
    type=click.IntRange(min=0),
    metavar="N",
    help="The site's default: decide for so many where nothing is known of the job.",
)
@click.option(
    "--explain", "explained", is_flag=True, help="Say in words what the decision rests on."
)
@format_option
@click.option("--plot", metavar="FILE.html", type=click.Path(), help="Draw the curve.")
@database_option
def predict_command(
    source: str,
    system: str,
    nodes: int | None,
    io_nodes: tuple[int, ...] | None,
    engine: str | None,
    ran_with: int | None,
    tolerance: float,
    available: int | None,
    default: int | None,
    explained: bool,
    output_format: str,
    plot: str | None,
    location: str | None,
) -> None:
    """Predict a job's bandwidth with each number of I/O nodes, and decide for one.

    From the Darshan log of an earlier run of the same application, or from its phases as
    `ioncast phases --format csv` prints them. Four of five runs should lie between p10 and
    p90; docs/predicting.md says what else is printed.
    """
    phases, warnings = read_phases(source)
    wanted = [configuration(phase, part, nodes) for phase in phases for part in phase.parts]
    knowledge, limits = knowledge_of(location, system, wanted, engine)
    with at(source):
        prediction = predict(
            phases,
            knowledge,
            system=system,
            nodes=nodes,
            io_nodes=io_nodes,
            ran_with=ran_with,
            policy=Policy(tolerance=tolerance, available=available, default=default),
        )
    prediction = replace(prediction, warnings=(*warnings, *limits, *prediction.warnings))
    if plot is not None:
        # Plotly takes longer to import than a prediction takes.
        from predictor.composition.plots import write_html  # noqa: PLC0415

        write_html(prediction, plot)
    if output_format == "json":
        record = to_json(prediction)
        if explained:
            record["explanation"] = explain(prediction)
        click.echo(json.dumps(record, indent=1))
        return
    click.echo(to_text(prediction))
    if explained:
        click.echo("\n" + "\n".join(explain(prediction)))
    for warning in prediction.warnings:
        click.echo(f"ioncast: warning: {warning}", err=True)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Let errors that name no place name this one."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.what, where=error.where or where, line=error.line, remedy=error.remedy
        ) from error


def knowledge_of(
    location: str | None,
    system: str,
    wanted: Sequence[IorConfig],
    engine: str | None = None,
) -> tuple[Knowledge, tuple[str, ...]]:
    """What predictions on a system rest on, with warnings; that there is none is an error."""
    basis, warnings = basis_of(location, system, wanted, engine)
    if basis.engine not in basis.engines:
        with reading(location) as connection:
            names = ", ".join(basis.engines or measured_systems(connection))
        how = f" with {engine!r}" if basis.engines else ""
        raise UnknownNameError(
            f"nothing in the database was measured on {system!r}{how}",
            where=without_password(location or str(default_location())),
            remedy=f"known are {names}" if names else "see `ioncast bench import --help`",
        )
    return basis.knowledge, (*_left_out(basis), *warnings)


def basis_of(
    location: str | None, system: str, wanted: Iterable[IorConfig], engine: str | None
) -> tuple[Basis, tuple[str, ...]]:
    """What is known of a system, with warnings; a model that had to be fitted is stored."""
    with reading(location) as connection:
        basis = read_basis(connection, system, wanted, engine, before_fitting=say_fitting)
    if basis.fitted is not None:
        try:
            keep(location, basis.fitted)
        except DatabaseError as error:
            return basis, (f"the model is fitted each time, because it cannot be kept: {error}",)
    return basis, ()


def say_fitting(configurations: int) -> None:
    """Say what takes a while."""
    told = counted(configurations, "configuration")
    click.echo(f"ioncast: fitting a model to {told}", err=True)


def _left_out(basis: Basis) -> tuple[str, ...]:
    others = ", ".join(name for name in basis.engines if name != basis.engine)
    if not others:
        return ()
    return (
        f"the prediction rests on what {basis.engine} measured; {others} measured on this"
        " system too and cannot be mixed with it (choose with --engine)",
    )


def read_phases(source: str) -> tuple[list[Phase], tuple[str, ...]]:
    """Phases and warnings from a CSV of phases, by its suffix, or a Darshan log."""
    if Path(source).suffix.lower() == ".csv":
        return tables.read_csv(source), ()
    log = read_log(source)
    return extract_phases(log), log.warnings


def to_text(prediction: Prediction) -> str:
    """A prediction for people: matches, curve, decision."""
    matches = [
        {
            "phase": matched.index,
            "type": matched.phase.operation,
            "size": tables.size(part.bytes),
            "match": found.kind,
            "distance": "" if found.distance is None else f"{found.distance:.2f}",
            "benchmark": _benchmark(found),
        }
        for matched in prediction.phases
        for part, found in matched.parts
    ]
    points = [
        {
            "I/O nodes": point.io_nodes,
            "MiB/s": f"{point.bandwidth_mib_s.mean:.1f}",
            "p10": f"{point.bandwidth_mib_s.p10:.1f}",
            "median": f"{point.bandwidth_mib_s.median:.1f}",
            "p90": f"{point.bandwidth_mib_s.p90:.1f}",
            "time s": f"{point.time_s:.2f}",
            "basis": point.basis,
        }
        for point in prediction.curve
    ]
    blocks = [
        tabulate(rows, headers="keys", disable_numparse=True) for rows in (matches, points) if rows
    ]
    best, decision = prediction.best, prediction.decision
    lines = [f"{_choice('best', best.io_nodes) or 'no prediction'} ({best.why})"]
    decided = _choice("decision", decision.io_nodes)
    # That nothing is predicted says already why nothing is decided.
    if decided or best.io_nodes is not None:
        lines.append(f"{decided or 'no decision'} ({decision.why})")
    return "\n\n".join([*blocks, "\n".join(lines)])


def _choice(name: str, io_nodes: int | None) -> str | None:
    if io_nodes is None:
        return None
    return f"{name}: {counted(io_nodes, 'I/O node')}"


def _benchmark(found: Match) -> str:
    if found.curve is None:
        return f"none; missing: {found.wanted.command_line(launcher=True)}"
    return found.curve.config.command_line(launcher=True)
