"""The demonstration (`make demo`): predictions from shipped measurements, beside reruns.

It fills a new database with benchmarks of an emulated I/O-forwarding layer, reads the Darshan log
of a HACC-IO run, predicts the bandwidth of the application with 0 to 8 I/O nodes, and compares the
predictions of three applications with measured reruns.
"""

from __future__ import annotations

import contextlib
import shlex
import sys
import tempfile
from pathlib import Path

import click

from experiments.shipped import TESTBED
from ioncast.cli import cli
from predictor.commands import command_line
from predictor.curve.asking import PredictionRequest, ask
from predictor.curve.plots import write_html
from predictor.validation.reruns import cells, read_reruns
from summario.phases.extract import extract
from summario.reading.log import read_log

LOG = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
APPLICATIONS = "hacc-io", "multiphase", "periodic"
NODES = 8
TASKS = 16


def main(plot: Path) -> None:
    """Run the demonstration, and write its plot to a file."""
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "demo.sqlite")
        click.echo("Benchmarks of the system, measured with 0, 1, 2, 4 and 8 I/O nodes:")
        benchmarks = _shown(TESTBED / "benchmarks.csv")
        run(
            f"bench import {benchmarks} --system testbed --tasks {TASKS} --nodes {NODES}",
            database,
        )
        click.echo("The I/O phases of an earlier run, from its Darshan log:")
        run(f"phases {_shown(LOG)}")
        click.echo("The IOR runs that do the same:")
        run(f"match {_shown(LOG)} --nodes {NODES}")
        click.echo("The predicted bandwidth with each number of I/O nodes:")
        run(f"predict {_shown(LOG)} --system testbed --nodes {NODES}", database)
        click.echo("The predictions for three applications, beside measured reruns:")
        logs = " ".join(
            f"--log {name}={_shown(TESTBED / 'logs' / f'{name}-ionodes0.darshan')}"
            for name in APPLICATIONS
        )
        reruns = TESTBED / "applications.csv"
        run(f"validate {_shown(reruns)} {logs} --system testbed --nodes {NODES}", database)
        found = extract(read_log(LOG))
        prediction = ask(command_line(database), PredictionRequest("testbed", nodes=NODES), found)
    own = [rerun for rerun in read_reruns(reruns) if rerun.application == APPLICATIONS[0]]
    plot.parent.mkdir(parents=True, exist_ok=True)
    write_html(prediction, plot, cells(own))
    click.echo(f"\nPlot: {plot}")
    command = _shown(Path(sys.executable).with_name("ioncast"))
    click.echo(f"Next: {command} --help")
    click.echo(f"The web pages: {command} serve --demo, then open http://127.0.0.1:8420/")


def run(command: str, database: str | None = None) -> None:
    """Print an ioncast command, run it, and print its output."""
    click.secho(f"\n$ ioncast {command}", bold=True)
    extra = ["--db", database] if database else []
    # Warnings keep their place among the output, also in a file.
    try:
        with contextlib.redirect_stderr(sys.stdout):
            cli.main([*shlex.split(command), *extra], prog_name="ioncast", standalone_mode=False)
    except SystemExit as done:
        if done.code:
            raise
    click.echo()


def _shown(path: Path) -> str:
    """The path as a user in the current folder would type it."""
    here = Path.cwd()
    return shlex.quote(str(path.relative_to(here) if path.is_relative_to(here) else path))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/hacc-io.html"))
