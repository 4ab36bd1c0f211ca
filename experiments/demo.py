"""The demonstration (`make demo`): predictions from shipped measurements, beside reruns.

It fills a new database with benchmarks of an emulated I/O-forwarding layer, reads the Darshan log
of a HACC-IO run, predicts the bandwidth of the application with 0 to 8 I/O nodes, and compares the
predictions of three applications with measured reruns. In the end it says what it got wrong.
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
from ioncast_base.wording import in_digits
from predictor.commands import command_line
from predictor.curve.asking import PredictionRequest, ask
from predictor.curve.plots import write_html
from predictor.validation.against_reruns import mean_of_cells
from predictor.validation.reruns import cells, read_reruns
from predictor.validation.result_tables import Validated
from predictor.validation.several_applications import validate_applications
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
        logs = {name: TESTBED / "logs" / f"{name}-ionodes0.darshan" for name in APPLICATIONS}
        options = " ".join(f"--log {name}={_shown(log)}" for name, log in logs.items())
        path = TESTBED / "applications.csv"
        run(f"validate {_shown(path)} {options} --system testbed --nodes {NODES}", database)
        reruns = read_reruns(path)
        jobs = {name: extract(read_log(log)) for name, log in logs.items()}
        asking = command_line(database)
        results, _ = validate_applications(asking, reruns, jobs, system="testbed", nodes=NODES)
        click.echo("The decision for each application, beside the means of its reruns:\n")
        click.echo("\n".join(map(verdict, results)))
        request = PredictionRequest("testbed", nodes=NODES)
        prediction = ask(asking, request, jobs[APPLICATIONS[0]])
    own = [rerun for rerun in reruns if rerun.application == APPLICATIONS[0]]
    plot.parent.mkdir(parents=True, exist_ok=True)
    write_html(prediction, plot, cells(own))
    click.echo(f"\nPlot: {plot}")
    command = _shown(Path(sys.executable).with_name("ioncast"))
    click.echo(f"Next: {command} --help")
    click.echo(f"The web pages: {command} serve --demo, then open http://127.0.0.1:8420/")


def verdict(result: Validated) -> str:
    """Say whether an application's decision is the best measured one, and where its curve errs."""
    measured = mean_of_cells(result.reruns)

    def beside(io_nodes: int) -> str:
        expected = result.expected.get(io_nodes)
        predicted = f"{in_digits(expected.mean)} MiB/s" if expected else "not"
        return f"{predicted} predicted, {in_digits(measured[io_nodes])} MiB/s measured"

    name, comparison = result.application, result.prediction
    fastest, decided, best = result.choices.values()
    if fastest is None or decided is None or best is None:
        return f"{name}: no rerun has a prediction."
    [regret], [regret_of_fastest] = comparison.regrets_within_tolerance, comparison.regrets
    lines = [f"{name}: the decision is {decided} I/O nodes ({beside(decided)})."]
    if regret > 0:
        faster = f"{best} I/O nodes were faster ({beside(best)})"
        lines.append(f"Wrong: {faster}, so the regret is {regret:.1%}.")
    else:
        lines.append("Right: no other number was faster.")
    if fastest != decided:
        highest = f"The highest prediction is for {fastest} I/O nodes ({beside(fastest)})"
        lines.append(f"{highest}; the regret with them is {regret_of_fastest:.1%}.")
    errors = {n: error for n, (error,) in comparison.cell_errors.items()}
    worst = max(errors, key=errors.__getitem__)
    lines.append(f"The largest error, {errors[worst]:.1%}, is at {worst} ({beside(worst)}).")
    return "\n  ".join(lines)


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
