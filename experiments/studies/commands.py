"""`ioncast experiment single|periodic|hacc|applications`: the case studies, end to end."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from benchdb.campaigns.commands import engine_option
from benchdb.options import format_option
from experiments.applications.running import find_darshan
from experiments.platform import signals
from experiments.platform.description import BUNDLED, Description, read_description
from experiments.platform.emulator import Emulated, down, find, up
from experiments.studies.study import Study
from predictor.validation_tables import to_json, to_text

_REPETITIONS, _SEED = 5, 1
# Of less, opening the files would be measured.
_SMALLEST_SCALE = 0.001
_REPORT, _TOML = "report.html", ".toml"


def study_command(study: Study) -> click.Command:
    """Make the command of a study."""

    @click.command(
        study.name,
        help=_help(study),
        epilog=f"""\b
Examples:
  ioncast experiment {study.name}
  ioncast experiment {study.name} --scale {study.scale / 2:g} --repetitions 3 --output quick
  ioncast experiment {study.name} --platform mine.toml --engine fio
""",
    )
    @click.option(
        "--scale",
        type=click.FloatRange(_SMALLEST_SCALE, 1),
        default=study.scale,
        show_default=True,
        help="Share of the bytes that each process moves at full size.",
    )
    @click.option(
        "--repetitions",
        type=click.IntRange(1, 1000),
        default=_REPETITIONS,
        show_default=True,
        help="Runs of each benchmark and application with each number of I/O nodes.",
    )
    @click.option(
        "--seed",
        type=click.IntRange(0, 2**32 - 1),
        default=_SEED,
        show_default=True,
        help="Of the random order of the runs.",
    )
    @click.option(
        "--output",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="A new folder for the results.  [default: named after study and platform]",
    )
    @click.option(
        "--platform",
        "place",
        metavar="NAME|FILE.toml",
        default=str(BUNDLED),
        help="A platform that is up, or the description of one to bring up for the study."
        "  [default: the one that comes with ioncast]",
    )
    @engine_option
    @click.option(
        "--darshan",
        metavar="LIB.so",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Darshan's runtime library, for the logs; by default the one of `darshan-config`."
        " Without any, the applications' own counters are written as logs.",
    )
    @format_option
    def command(
        scale: float,
        repetitions: int,
        seed: int,
        output: Path | None,
        place: str,
        engine: str | None,
        darshan: Path | None,
        output_format: str,
    ) -> None:
        # They need libraries that take longer to import than other commands take.
        from experiments.evaluation import evaluate  # noqa: PLC0415
        from experiments.published import publish  # noqa: PLC0415
        from experiments.studies.report import write_html  # noqa: PLC0415
        from experiments.studies.run import Settings, check_new, run_study  # noqa: PLC0415
        from experiments.tables import tables_of  # noqa: PLC0415

        settings = Settings(
            scale=scale,
            repetitions=repetitions,
            seed=seed,
            engine=engine,
            darshan=darshan or find_darshan(),
            command=shlex.join(["ioncast", *sys.argv[1:]]),
        )
        description = read_description(place) if place.endswith(_TOML) else None
        folder = output or Path(f"{study.name}-{description.name if description else place}")
        check_new(folder)
        with _brought_up(description) if description else nullcontext(find(place)) as emulated:
            try:
                data = run_study(study, emulated, folder, settings)
            except BaseException:
                if folder.exists():
                    click.echo(f"ioncast: {folder} is incomplete: remove it", err=True)
                raise
        publish(folder, tables_of(data))
        evaluation = evaluate(data)
        write_html(folder / _REPORT, study.title, data, evaluation)
        for note in data.provenance.notes:
            click.echo(f"ioncast: warning: {note}", err=True)
        results = list(evaluation.validated.values())
        if output_format == "json":
            click.echo(json.dumps({"folder": str(folder), **to_json(results)}, indent=1))
            return
        click.echo(to_text(results))
        click.echo(f"\nmeasurements, logs and tables are in {folder}; read {folder / _REPORT}")

    return command


@contextmanager
def _brought_up(description: Description) -> Iterator[Emulated]:
    """A platform that goes with the study, however that ends."""
    with signals.raised():
        emulated = up(description)
        try:
            yield emulated
        finally:
            with signals.ignored():
                down(description.name)


def _help(study: Study) -> str:
    return f"""{study.summary}

    Each application runs once without I/O nodes, for its Darshan log. Then its phases'
    benchmarks and the application itself run with all numbers of I/O nodes, in random order,
    on a platform of real daemons and shaped links on this machine (root only). What the
    benchmarks predict is held against the runs, beside what Inria RR-9366 reports. DIR is a
    data set that `ioncast experiment check` takes; report.html in it is to be read."""
