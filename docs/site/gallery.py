"""The gallery: pages that ioncast's commands make from the data of the repository."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from ioncast.cli import cli

PROJECT = Path(__file__).resolve().parents[2]
DATA = "experiments/data"
LOGS = f"{DATA}/testbed/logs"
IMPORT = f"bench import {DATA}/testbed/benchmarks.csv --system testbed --tasks 16 --nodes 8"
BACKGROUND, PAIRS = f"{DATA}/background", f"{DATA}/interference/logs"
# In the text the name of a folder; the commands that run have another place for it.
STORE = "store"
HEAD = f"""\
# Gallery

Pages that ioncast's commands write. Each is made from the logs and measurements in this repository
when the site is built, by the command above it. Commands with `--system testbed` need the
benchmarks of the testbed first:

    ioncast {IMPORT}
"""


@dataclass(frozen=True)
class Report:
    """A page of the gallery.

    Parameters
    ----------
    name
        Name of the file.
    title
        Its question.
    meaning
        One sentence on the answer.
    command
        The words after `ioncast`; the name of the file follows.
    before
        Commands that it needs before.
    """

    name: str
    title: str
    meaning: str
    command: str
    before: tuple[str, ...] = ()


REPORTS = (
    Report(
        "check.html",
        "Why is my I/O slow?",
        "The causes of a run's slow I/O, by the time that each could save, with advice and code.",
        f"check {LOGS}/multiphase-ionodes0.darshan --html",
    ),
    Report(
        "timeline.html",
        "Which ranks read and wrote when?",
        "Every request of a traced run. The keys + and - zoom.",
        f"timeline {LOGS}/multiphase-ionodes4-dxt.darshan --html",
    ),
    Report(
        "characterize.html",
        "What did two runs do to storage?",
        "Tables of a run without I/O nodes and of one with four, with differences marked.",
        f"characterize {LOGS}/hacc-io-ionodes0.darshan {LOGS}/hacc-io-ionodes4.darshan --html",
    ),
    Report(
        "diagnosis.html",
        "Was it my run, or the system?",
        "A slow run beside other runs of its program, and the I/O node that another job kept busy.",
        f"diagnose 30991 --store {STORE} --placement {BACKGROUND}/placement.csv --html",
        before=(
            f"ingest {BACKGROUND}/logs --system emulated --requests --store {STORE}",
            f"servers import {BACKGROUND}/samples.csv --system emulated --store {STORE}",
        ),
    ),
    Report(
        "interference.html",
        "Which job disturbed mine?",
        "Two jobs that shared an I/O node, beside their runs alone, and the move that avoids it.",
        f"interference {PAIRS}/checkpoint-together.darshan {PAIRS}/output-together.darshan"
        f" --alone {PAIRS}/checkpoint-alone.darshan --alone {PAIRS}/output-alone.darshan"
        f" --placement {DATA}/interference/placement-together.csv --html",
    ),
    Report(
        "predict.html",
        "How many I/O nodes should it get?",
        "The predicted bandwidth with each number of I/O nodes, with its interval.",
        f"predict {LOGS}/hacc-io-ionodes0.darshan --system testbed --nodes 8 --plot",
    ),
    Report(
        "advise.html",
        "What would following the advice save?",
        "Seconds of a run that each piece of advice would save, from the same benchmarks.",
        f"advise {LOGS}/multiphase-ionodes0.darshan --system testbed --nodes 8 --html",
    ),
    Report(
        "coverage.html",
        "What has been measured?",
        "Measurements of each configuration with each number of I/O nodes, and their spread.",
        "bench coverage --system testbed --html",
    ),
    Report(
        "validate.html",
        "How right were the predictions?",
        "Predictions of three applications beside their measured reruns and the noise floor.",
        f"validate {DATA}/testbed/applications.csv --system testbed --nodes 8"
        f" --log hacc-io={LOGS}/hacc-io-ionodes0.darshan"
        f" --log multiphase={LOGS}/multiphase-ionodes0.darshan"
        f" --log periodic={LOGS}/periodic-ionodes0.darshan --html",
    ),
    Report(
        "survey.html",
        "What does all I/O of a machine look like?",
        "Users, programs, file sizes and adoption of MPI-IO, here of the runs of the experiments.",
        f"survey {DATA} --html",
    ),
)


def gallery_files() -> dict[str, str]:
    """The gallery's page and its reports, by their paths on the site."""
    with tempfile.TemporaryDirectory() as folder:
        database = {"IONCAST_DB": f"{folder}/gallery.sqlite"}
        _run(IMPORT, database)
        made = {each.name: _made(each, Path(folder), database) for each in REPORTS}
    page = "\n".join([HEAD, *map(_section, REPORTS)])
    return {"gallery/README.md": page} | {f"gallery/{name}": text for name, text in made.items()}


def _made(report: Report, folder: Path, database: dict[str, str]) -> str:
    """The text of a report's page."""
    for command in (*report.before, f"{report.command} {folder / report.name}"):
        _run(command.replace(f"--store {STORE}", f"--store {folder / STORE}"), database)
    return (folder / report.name).read_text(encoding="utf-8")


def _run(command: str, database: dict[str, str]) -> None:
    """Run a command of ioncast in the project's folder; its output appears only if it fails."""
    os.chdir(PROJECT)
    result = CliRunner(env=database).invoke(cli, command.split())
    if result.exit_code != 0:
        raise RuntimeError(f"ioncast {command}\n{result.output}") from result.exception


def _section(report: Report) -> str:
    """The part of the gallery's page about one report."""
    commands = "\n".join(
        f"    ioncast {each}" for each in (*report.before, f"{report.command} {report.name}")
    )
    return f"""\
## {report.title}

{report.meaning} [Open the page]({report.name})

{commands}

<div class="report">
<iframe src="{report.name}" title="{report.title}" loading="lazy"></iframe>
</div>
"""
