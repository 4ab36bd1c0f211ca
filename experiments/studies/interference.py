"""Two applications on one I/O node, beside their runs alone and apart.

With two I/O nodes, both applications use one of them; with four, they share none. Their compute
nodes stay the same. `ioncast interference` judges the logs of each pair.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.standing import CampaignProgress
from experiments.applications.running import Run, run_application
from experiments.applications.spec import Application, Step
from experiments.datasets import LOGS, csv_of
from experiments.platform.description import read_description
from experiments.platform.emulated import Emulated
from experiments.provenance import PROVENANCE
from experiments.published import PrintedTable, publish
from experiments.studies.conducting import brought_up
from experiments.studies.interference_tables import (
    ALONE,
    APART,
    NAME,
    RUNS,
    TOGETHER,
    VERDICTS,
    InterferenceRun,
    Verdict,
    interference_tables,
)
from experiments.studies.own_platform import (
    ask_ioncast,
    darshan_for_traces,
    provenance_of,
    run_together,
)
from experiments.studies.settings import check_new
from ioncast_base import signals
from ioncast_base.files import write_file

# Number of I/O nodes of a run.
_IO_NODES = {ALONE: 2, TOGETHER: 2, APART: 4}
_KIB, _MIB = 1 << 10, 1 << 20
# A link of a compute node lets 12 MB/s pass, so either takes about 6 s alone.
CHECKPOINT = Application(
    "checkpoint", 4, 2, (Step("state", "write", "unique", "contiguous", ((4 * _MIB, 9),)),)
)
OUTPUT = Application(
    "output", 6, 3, (Step("field", "write", "unique", "contiguous", ((512 * _KIB, 72),)),)
)
# The first compute node of each by the I/O node that they share; the output uses both I/O nodes.
_FIRST_NODES = {0: {CHECKPOINT: 0, OUTPUT: 2}, 1: {CHECKPOINT: 6, OUTPUT: 3}}


def conduct(folder: Path, repetitions: int, seed: int, command: str) -> tuple[PrintedTable, ...]:
    """Bring the platform up, measure, and write a data set with its tables.

    Raises
    ------
    InputError
        If the folder exists, or the runs cannot be traced.
    IoncastError
        If a run fails. The data set then has the repetitions before it.
    """
    darshan = darshan_for_traces()
    check_new(folder)
    with signals.raised(), brought_up(read_description()) as emulated:
        (folder / LOGS).mkdir(parents=True)
        both = (CHECKPOINT, OUTPUT)
        logs = [(_log(one, arm), one, n) for arm, n in _IO_NODES.items() for one in both]
        provenance = provenance_of(emulated, NAME, both, seed=seed, command=command, logs=logs)
        write_file(folder / PROVENANCE, provenance.model_dump_json(indent=1) + "\n")
        measure(emulated, folder, darshan, repetitions, seed)
    tables = interference_tables(folder)
    publish(folder, tables)
    return tables


def measure(emulated: Emulated, folder: Path, darshan: Path, repetitions: int, seed: int) -> None:
    """Run both applications alone, together and apart, and write runs, verdicts and logs.

    The I/O node that they share and the order of the runs of each repetition are random. Only the
    logs of the first repetition are kept.

    Raises
    ------
    IoncastError
        If a run fails.
    """
    chance = random.Random(seed)  # noqa: S311
    both = CHECKPOINT, OUTPUT
    arms = (ALONE, both[:1]), (ALONE, both[1:]), (TOGETHER, both), (APART, both)
    runs: list[InterferenceRun] = []
    verdicts: list[Verdict] = []
    placements = {arm: folder / f"placement-{arm}.csv" for arm in (TOGETHER, APART)}
    for arm, file in placements.items():
        io_nodes = dict.fromkeys(emulated.description.all_compute_nodes, _IO_NODES[arm])
        write_placement(emulated, file, io_nodes)
    with reporting("repetitions: ") as report:
        for repetition in range(1, repetitions + 1):
            shared = chance.choice(tuple(_FIRST_NODES))
            with TemporaryDirectory(prefix="ioncast-") as temporary:
                logs = folder / LOGS if repetition == 1 else Path(temporary)
                for order, (arm, chosen) in enumerate(chance.sample(arms, len(arms)), start=1):
                    load1 = round(os.getloadavg()[0], 2)
                    for run in _side_by_side(emulated, logs, darshan, arm, chosen, shared):
                        row = repetition, order, arm, run.application, run.io_nodes
                        seconds = round(run.time_s, 3)
                        runs.append(InterferenceRun(*row, seconds, run.started, load1))
                for arm, truth in ((TOGETHER, shared), (APART, None)):
                    verdicts += verdicts_of(logs, placements[arm], repetition, arm, truth)
            write_file(folder / RUNS, csv_of(InterferenceRun, runs))
            write_file(folder / VERDICTS, csv_of(Verdict, verdicts))
            report(CampaignProgress(repetitions, repetition, 0))


def verdicts_of(
    logs: Path, placement: Path, repetition: int, arm: str, shared: int | None
) -> Iterator[Verdict]:
    """Ask `ioncast interference` about the logs of a pair that ran side by side.

    Raises
    ------
    IoncastError
        If it gives no answer.
    """
    pair = [logs / _log(one, arm) for one in (CHECKPOINT, OUTPUT)]
    alone = [f"--alone={logs / _log(one, ALONE)}" for one in (CHECKPOINT, OUTPUT)]
    words = [*pair, *alone, f"--placement={placement}", "--format=json"]
    found = json.loads(ask_ioncast("interference", *map(str, words)))
    names = {run["log"]: Path(run["path"]).name.split("-")[0] for run in found["runs"]}
    named = found["bottlenecks"][0]["number"] if found["bottlenecks"] else None
    moved = names[found["moves"][0]["log"]] if found["moves"] else None
    uses = {(use["log"], json.dumps(use["server"])): use for use in found["uses"]}
    lost = {each["log"]: each["blamed_seconds"] for each in found["disturbances"] if each["blame"]}
    for run in found["runs"]:
        use = uses.get((run["log"], json.dumps(run["slowest"])))
        yield Verdict(
            *(repetition, arm, names[run["log"]], shared, named, round(run["slowdown"], 4)),
            common_share=round(use["common_bytes"] / use["bytes"], 4) if use else None,
            blamed_seconds=round(lost[run["log"]], 3) if run["log"] in lost else None,
            moved=moved,
        )


def _side_by_side(
    emulated: Emulated,
    logs: Path,
    darshan: Path,
    arm: str,
    applications: Sequence[Application],
    shared: int,
) -> list[Run]:
    """Run applications, which begin their I/O together."""

    def run_at(application: Application, start: threading.Barrier) -> Run:
        return run_application(
            application,
            replace(emulated, first_node=_FIRST_NODES[shared][application]),
            _IO_NODES[arm],
            log=logs / _log(application, arm),
            darshan=darshan,
            start=start,
        )

    return run_together(applications, run_at)


def write_placement(emulated: Emulated, file: Path, io_nodes: Mapping[int, int]) -> None:
    """Write the I/O node of each compute node, as `ioncast interference --placement` reads it.

    `io_nodes` has the number of I/O nodes of the run on each compute node.
    """
    known = emulated.description
    lines = [f"{emulated.name}-cn{c},{known.io_node(n, c)}" for c, n in io_nodes.items()]
    write_file(file, "\n".join([*lines, ""]))


def _log(application: Application, arm: str) -> str:
    return f"{application.name}-{arm}.darshan"
