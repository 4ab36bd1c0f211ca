"""`ioncast experiment single|periodic|hacc|applications|resume`: the case studies, end to end."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchdb.campaigns.commands import engine_option
from experiments.platform.description import BUNDLED
from experiments.studies.study import Study
from ioncast_base.command_options import Number, WholeNumber, report_format_option, warn
from predictor.validation.result_tables import to_json, to_markdown, to_text

if TYPE_CHECKING:
    from experiments.datasets import DataSet
    from experiments.evaluation import Evaluation

_REPETITIONS, _SEED = 5, 1
# With fewer bytes, a run would mostly measure the opening of files.
_SMALLEST_SCALE = 0.001
_OPTIONS = (
    click.option(
        "--repetitions",
        type=WholeNumber(1, 1000),
        default=_REPETITIONS,
        show_default=True,
        help="Runs of each benchmark and application with each number of I/O nodes.",
    ),
    click.option(
        "--seed",
        type=WholeNumber(0, 2**32 - 1),
        default=_SEED,
        show_default=True,
        help="Seed of the random order of all runs.",
    ),
    click.option(
        "--output",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="A new folder for the results.  [default: STUDY-PLATFORM]",
    ),
    click.option(
        "--platform",
        "place",
        metavar="NAME|FILE.toml",
        default=str(BUNDLED),
        help="The name of a platform that is up, or the description of one to bring up for the"
        " study.  [default: the description that comes with ioncast]",
    ),
    engine_option,
    click.option(
        "--darshan",
        metavar="LIB.so",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Darshan's runtime library, for the logs; by default that of `darshan-config`, if"
        " mpi4py is installed. Without a library, logs are written from the applications' own"
        " counters.",
    ),
    report_format_option,
)


def study_command(study: Study) -> click.Command:
    """Make the command of a study."""
    scale = click.option(
        "--scale",
        type=Number(_SMALLEST_SCALE, 1),
        default=study.scale,
        show_default=True,
        help="Share of the bytes that each process moves at full size.",
    )
    run = partial(_run, study)
    for option in reversed((scale, *_OPTIONS)):
        run = option(run)
    return click.command(study.name, help=_help(study), epilog=_epilog(study))(run)


@click.command(
    epilog="""\b
Examples:
  ioncast experiment resume periodic-testbed
  ioncast experiment resume periodic-testbed --format json
""",
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@report_format_option
def resume(folder: Path, output_format: str) -> None:
    """Continue the study in DIR after Ctrl-C or a crash.

    The runs that have not ended, and those that failed, run in the order in which the study
    began. The settings and the platform are those of the study. If the platform is not up, it is
    brought up for the study.
    """
    from experiments.studies import conducting  # noqa: PLC0415

    _show(*conducting.resume(folder), output_format)


def _run(
    study: Study,
    *,
    output: Path | None,
    place: str,
    output_format: str,
    **settings: Any,
) -> None:
    # These import numpy and SQLAlchemy, which take longer than other commands need altogether.
    from experiments.studies.conducting import conduct  # noqa: PLC0415
    from experiments.studies.settings import Settings  # noqa: PLC0415

    command = shlex.join(["ioncast", *sys.argv[1:]])
    data, evaluation = conduct(study, place, output, Settings(**settings, command=command))
    _show(data, evaluation, output_format)


def _show(data: DataSet, evaluation: Evaluation, output_format: str) -> None:
    """Print warnings, then the result as text or JSON."""
    from experiments.studies.conducting import REPORT  # noqa: PLC0415  # it has been loaded

    for note in data.provenance.notes:
        warn(note)
    results = list(evaluation.validated.values())
    if output_format == "json":
        click.echo(json.dumps({"folder": str(data.folder), **to_json(results)}, indent=1))
        return
    click.echo(to_markdown(results) if output_format == "markdown" else to_text(results))
    report = data.folder / REPORT
    click.echo(f"\nmeasurements, logs and tables are in {data.folder}; read {report}")


def _help(study: Study) -> str:
    return f"""{study.summary}

    The study runs on an emulated platform of real daemons and shaped links on this machine
    (root only). Each application runs once with the fewest I/O nodes of the platform, 0 by
    default, for its Darshan log. Then the benchmarks of its phases and the application itself
    run with all numbers of I/O nodes, all together in one random order. The predictions from the
    benchmarks are compared with the runs, beside the results of Inria RR-9366.

    DIR gets a data set, which `ioncast experiment check` can check. Read report.html in it.
    If the study is stopped, `ioncast experiment resume DIR` continues it."""


def _epilog(study: Study) -> str:
    return f"""\b
Examples:
  ioncast experiment {study.name}
  ioncast experiment {study.name} --scale {study.scale / 2:g} --repetitions 3 --output quick
  ioncast experiment {study.name} --platform mine.toml --engine fio
"""
