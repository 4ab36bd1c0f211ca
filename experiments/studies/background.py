"""An application with and without background load on one of its I/O nodes.

The I/O nodes' received bytes are sampled each second. `ioncast diagnose` judges each run by the
logs and these samples.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.standing import CampaignProgress
from experiments.applications.running import Run, run_application
from experiments.applications.spec import Application, Step
from experiments.datasets import LOGS, csv_of
from experiments.platform.description import read_description
from experiments.platform.emulated import Emulated
from experiments.provenance import PROVENANCE
from experiments.published import PrintedTable, publish
from experiments.studies.background_tables import (
    ALONE,
    DIAGNOSES,
    IO_NODES,
    LOADED,
    NAME,
    DiagnosedRun,
    background_tables,
)
from experiments.studies.conducting import brought_up
from experiments.studies.interference import write_placement
from experiments.studies.own_platform import (
    ask_ioncast,
    darshan_for_traces,
    provenance_of,
    run_together,
)
from experiments.studies.settings import check_new
from ioncast_base import signals
from ioncast_base.files import write_file

SAMPLES, PLACEMENT = "samples.csv", "placement.csv"
_MIB = 1 << 20
# Each of four compute nodes sends 12 MB/s, so that this takes about 6 s alone.
APPLICATION = Application(
    "solver", 8, 4, (Step("state", "write", "unique", "contiguous", ((4 * _MIB, 9),)),)
)
# More processes, so that it is not of the application's history; it lasts longer than a run.
BACKGROUND = Application(
    "background", 12, 4, (Step("dump", "write", "unique", "contiguous", ((4 * _MIB, 11),)),)
)
# With one I/O node, the background load uses the first one of the application.
_LOADED_IO_NODE, _BACKGROUND_IO_NODES, _FIRST_NODE = 0, 1, 4
# With four I/O nodes the application uses two of them, with eight another compute node each.
_ARMS = tuple((ALONE, n) for n in IO_NODES)
_LOADED_ARM = (LOADED, IO_NODES[0])
_SAMPLED_IO_NODES = (0, 1)
_STEP_S = 1.0
# A diagnosis compares a run with 20 windows of the same length without the application.
IDLE_S = 600.0


class RunOfArm(NamedTuple):
    """A run before its diagnosis; `log` is a name in the folder of the logs."""

    order: int
    arm: str
    io_nodes: int
    log: str
    started: float
    load1: float


def conduct(folder: Path, repetitions: int, seed: int, command: str) -> tuple[PrintedTable, ...]:
    """Bring the platform up, measure, and write a data set with its tables.

    Raises
    ------
    InputError
        If the folder exists, or the runs cannot be traced.
    IoncastError
        If a run fails.
    """
    darshan = darshan_for_traces()
    check_new(folder)
    with signals.raised(), brought_up(read_description()) as emulated:
        (folder / LOGS).mkdir(parents=True)
        runs = measure(emulated, folder, darshan, repetitions, seed)
    logs = [(run.log, APPLICATION, run.io_nodes) for run in runs]
    logs += [
        (_background_log(run), BACKGROUND, _BACKGROUND_IO_NODES)
        for run in runs
        if run.arm == LOADED
    ]
    provenance = provenance_of(emulated, NAME, [APPLICATION], seed=seed, command=command, logs=logs)
    write_file(folder / PROVENANCE, provenance.model_dump_json(indent=1) + "\n")
    write_file(folder / DIAGNOSES, csv_of(DiagnosedRun, diagnosed(folder, runs)))
    tables = background_tables(folder)
    publish(folder, tables)
    return tables


def measure(
    emulated: Emulated,
    folder: Path,
    darshan: Path,
    repetitions: int,
    seed: int,
    *,
    idle_s: float = IDLE_S,
) -> list[RunOfArm]:
    """Run the application in random order; write logs, samples and the placement.

    Raises
    ------
    IoncastError
        If a run fails.
    """
    chance = random.Random(seed)  # noqa: S311
    arms = [*_ARMS * repetitions, *[_LOADED_ARM] * max(repetitions // 3, 1)]
    chance.shuffle(arms)
    nodes = {
        node: _LOADED_ARM[1] if node < _FIRST_NODE else _BACKGROUND_IO_NODES
        for node in emulated.description.all_compute_nodes
    }
    write_placement(emulated, folder / PLACEMENT, nodes)
    runs: list[RunOfArm] = []
    with sampled(emulated, folder / SAMPLES), reporting("runs: ") as report:
        time.sleep(idle_s)
        for order, (arm, io_nodes) in enumerate(arms, start=1):
            log = f"{order:02d}-{APPLICATION.name}-{arm}.darshan"
            run = RunOfArm(order, arm, io_nodes, log, time.time(), round(os.getloadavg()[0], 2))
            _run(emulated, folder / LOGS, darshan, run)
            runs.append(run)
            report(CampaignProgress(len(arms), order, 0))
    return runs


@contextmanager
def sampled(emulated: Emulated, file: Path) -> Iterator[None]:
    """Sample the I/O nodes each second, and write what they received for `ioncast servers import`.

    The programs of the study only write. So an I/O node receives what they write, and short
    answers of the storage servers.
    """
    is_done = threading.Event()
    times: list[tuple[float, list[int]]] = []

    def sample() -> None:
        while True:
            times.append((time.time(), [_received(emulated, n) for n in _SAMPLED_IO_NODES]))
            if is_done.wait(_STEP_S):
                return

    with ThreadPoolExecutor(1) as thread:
        sampling = thread.submit(sample)
        try:
            yield
        finally:
            # The last run needs samples after its end.
            time.sleep(3 * _STEP_S)
            is_done.set()
    sampling.result()
    with file.open("w", encoding="utf-8", newline="") as output:
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(("kind", "server", "time_start", "time_end", "written_bytes"))
        for (start, before), (end, after) in pairwise(times):
            for number, first, last in zip(_SAMPLED_IO_NODES, before, after, strict=True):
                writer.writerow(("ION", number, f"{start:.3f}", f"{end:.3f}", last - first))


def diagnosed(folder: Path, runs: Sequence[RunOfArm]) -> Iterator[DiagnosedRun]:
    """Ask `ioncast diagnose` about each run, by the logs and the samples of a data set.

    Raises
    ------
    IoncastError
        If it gives no answer.
    """
    with TemporaryDirectory(prefix="ioncast-") as temporary:
        store = f"--store={temporary}/store"
        ask_ioncast("ingest", str(folder / LOGS), "--system=testbed", "--requests", store)
        ask_ioncast("servers", "import", str(folder / SAMPLES), "--system=testbed", store)
        files = (folder / LOGS).iterdir()
        names = {hashlib.sha256(file.read_bytes()).hexdigest(): file.name for file in files}
        placement = f"--placement={folder / PLACEMENT}"
        for run in runs:
            log = str(folder / LOGS / run.log)
            words = ["diagnose", log, store, "--system=testbed", placement, "--format=json"]
            [answer] = json.loads(ask_ioncast(*words))
            yield _diagnosed(run, answer, names)


def _diagnosed(run: RunOfArm, answer: dict[str, Any], logs: dict[str, str]) -> DiagnosedRun:
    busy = [each for each in answer["servers"] if each["answer"] == "busy"]
    longest = max(busy, key=lambda each: float(each["seconds"]), default=None)
    by = {logs[log] for each in busy for log in each["by"]}
    shares = [part["share"] for part in answer["parts"] if part["cause"] == "system"]
    return DiagnosedRun(
        *run,
        bandwidth_mib_s=round(answer["bandwidth_mib_s"], 3),
        slowdown=round(answer["slowdown"], 4),
        loaded=_LOADED_IO_NODE if run.arm == LOADED else None,
        verdict=answer["verdict"],
        system_share=round(sum(shares), 4),
        named=longest["server"] if longest and answer["verdict"] == "system" else None,
        by_background=by == {_background_log(run)},
        outcome_scatter=round(answer["outcome_scatter"], 4),
    )


def _run(emulated: Emulated, logs: Path, darshan: Path, run: RunOfArm) -> None:
    """Run the application, and with load the background, which begins its I/O with it."""
    programs = [(APPLICATION, emulated, run.io_nodes, run.log)]
    if run.arm == LOADED:
        beside = replace(emulated, first_node=_FIRST_NODE)
        programs.append((BACKGROUND, beside, _BACKGROUND_IO_NODES, _background_log(run)))

    def run_at(program: tuple[Application, Emulated, int, str], start: threading.Barrier) -> Run:
        application, platform, io_nodes, log = program
        return run_application(
            application, platform, io_nodes, log=logs / log, darshan=darshan, start=start
        )

    run_together(programs, run_at)


def _received(emulated: Emulated, io_node: int) -> int:
    """Read the bytes that the link of an I/O node has received so far."""
    link = ["ip", "-n", f"{emulated.name}-io{io_node}", "-s", "-json", "link", "show", "e0"]
    done = subprocess.run(link, capture_output=True, text=True, check=True)  # noqa: S603
    return int(json.loads(done.stdout)[0]["stats64"]["rx"]["bytes"])


def _background_log(run: RunOfArm) -> str:
    return f"{run.order:02d}-{BACKGROUND.name}.darshan"
