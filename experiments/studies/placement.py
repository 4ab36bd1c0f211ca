"""The I/O nodes of jobs: a slow one among them, and jobs that share I/O nodes.

In a series, each job uses two of eight I/O nodes at random; the link of one of them has a quarter
of its rate. In a queue, eight jobs share four I/O nodes, two jobs each: placed as the arbiter
places jobs, or at random.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.standing import CampaignProgress
from experiments.applications.running import Run, run_application
from experiments.applications.spec import Application, Step
from experiments.datasets import csv_of
from experiments.platform.description import read_description
from experiments.platform.emulated import Emulated, exec_command
from experiments.platform.network import Node, at_rate, io_node
from experiments.platform.programs import run as run_program
from experiments.provenance import PROVENANCE
from experiments.published import PrintedTable, publish
from experiments.studies.conducting import brought_up
from experiments.studies.own_platform import (
    provenance_of,
    run_together,
)
from experiments.studies.placement_tables import (
    JOBS,
    NAME,
    PLACED,
    QUEUE,
    RANDOM,
    QueueJob,
    SeriesJob,
    placement_tables,
)
from experiments.studies.settings import check_new
from ioncast_base import signals
from ioncast_base.files import write_file
from ioncast_base.kinds import FileAccess
from scheduler_plugin.arbiter.placement import PlacedJob, Sharing, placed

PLATFORM = Path(__file__).with_name("placement.toml")
# A quarter of the rate of the platform's I/O nodes.
_SLOW_RATE = "50mbit"
# Jobs of a series.
_JOBS = 40
_KIB, _MIB = 1 << 10, 1 << 20


def _application(
    name: str, nodes: int, file_access: FileAccess, request: int, count: int
) -> Application:
    step = Step("data", "write", file_access, "contiguous", ((request, count),))
    return Application(name, nodes, nodes, (step,))


# Four compute nodes send 50 MB/s, as much as two I/O nodes forward: about a second alone.
SERIES = (
    _application("checkpoint", 4, "unique", 4 * _MIB, 3),
    _application("output", 4, "unique", 512 * _KIB, 24),
    _application("field", 4, "shared", _MIB, 12),
)
# Two compute nodes send as much as an I/O node forwards; the small jobs end early.
LARGE = tuple(_application(f"large{n}", 2, "unique", 4 * _MIB, 6) for n in range(4))
SMALL = tuple(_application(f"small{n}", 1, "unique", 512 * _KIB, 8) for n in range(4))
_SHARED = ("io0", "io1", "io2", "io3")


@dataclass(frozen=True)
class OnNodes(Emulated):
    """A platform whose runs use named nodes.

    Attributes
    ----------
    on, through : tuple of str
        Compute nodes and I/O nodes of a run.
    """

    on: tuple[str, ...] = ()
    through: tuple[str, ...] = ()

    def rank_command(
        self,
        program: Sequence[str],
        *,
        io_nodes: int,
        tasks: int | None = None,
        nodes: int | None = None,
        mpi: bool = False,
    ) -> list[str]:
        """Write the command that runs a program on the named nodes."""
        options = [f"--on={','.join(self.on)}", f"--through={','.join(self.through)}"]
        options += [f"--tasks={tasks}"] if tasks else []
        return [*exec_command(self.name), *options, *(["--mpi"] if mpi else []), "--", *program]


def conduct(
    folder: Path, series: int, rounds: int, seed: int, command: str
) -> tuple[PrintedTable, ...]:
    """Bring the platform up, measure, and write a data set with its tables.

    Parameters
    ----------
    series : int
        Number of series with a slow I/O node, and of series without one.
    rounds : int
        Number of rounds of the queue.

    Raises
    ------
    InputError
        If the folder exists.
    IoncastError
        If a run fails. The data set then has the runs before it.
    """
    check_new(folder)
    description = read_description(PLATFORM)
    with signals.raised(), brought_up(description) as emulated:
        folder.mkdir(parents=True)
        provenance = provenance_of(emulated, NAME, SERIES[:1], seed=seed, command=command)
        write_file(folder / PROVENANCE, provenance.model_dump_json(indent=1) + "\n")
        measure_series(emulated, folder, series, seed)
        measure_queue(emulated, folder, rounds, seed)
    tables = placement_tables(folder)
    publish(folder, tables)
    return tables


def measure_series(
    emulated: Emulated, folder: Path, series: int, seed: int, *, jobs: int = _JOBS
) -> None:
    """Run series of jobs with a slow I/O node, and others without one, and write `jobs.csv`.

    Raises
    ------
    IoncastError
        If a run fails.
    """
    chance = random.Random(seed)  # noqa: S311
    names = [f"io{number}" for number in emulated.description.all_io_nodes]
    rows: list[SeriesJob] = []
    with reporting("jobs: ") as report:
        for place, slow in enumerate((*chance.choices(names, k=series), *[None] * series), 1):
            with slowed(emulated, slow):
                for number in range(1, jobs + 1):
                    application = SERIES[number % len(SERIES)]
                    through = tuple(chance.sample(names, 2))
                    run, load1 = run_on(emulated, application, _cn(chance, 4), through)
                    row = place, number, slow, application.name, " ".join(through), run.bytes
                    rows.append(SeriesJob(*row, round(run.time_s, 3), run.started, load1))
                    write_file(folder / JOBS, csv_of(SeriesJob, rows))
                    report(CampaignProgress(2 * series * jobs, len(rows), 0))


def measure_queue(emulated: Emulated, folder: Path, rounds: int, seed: int) -> None:
    """Run a queue with both arms in each round, in random order, and write `queue.csv`.

    Raises
    ------
    IoncastError
        If a run fails.
    """
    chance = random.Random(seed)  # noqa: S311
    applications = [*LARGE, *SMALL]
    on = dict(zip(applications, _compute_nodes(applications), strict=True))
    expected = {
        one: run_on(emulated, one, on[one], _SHARED[:1])[0].bandwidth_mib_s for one in applications
    }
    sharing = Sharing(_SHARED, 2)
    jobs = [PlacedJob(number, 1, expected[one]) for number, one in enumerate(applications)]
    rows: list[QueueJob] = []

    def run_at(
        place: tuple[Application, tuple[str, ...], tuple[str, ...]], start: threading.Barrier
    ) -> Run:
        return run_on(emulated, *place, start)[0]

    with reporting("rounds: ") as report:
        for number in range(1, rounds + 1):
            for order, arm in enumerate(chance.sample((PLACED, RANDOM), 2), start=1):
                order_of_jobs = chance.sample(jobs, len(jobs))
                chosen = (
                    placed(order_of_jobs, sharing)
                    if arm == PLACED
                    else dict(
                        zip(
                            (job.id for job in order_of_jobs),
                            [(name,) for name in _SHARED * 2],
                            strict=True,
                        )
                    )
                )
                load1 = round(os.getloadavg()[0], 2)
                places = [(one, on[one], chosen[place]) for place, one in enumerate(applications)]
                runs = run_together(places, run_at)
                for (one, _, through), run in zip(places, runs, strict=True):
                    row = number, order, arm, one.name, " ".join(through)
                    numbers = round(expected[one], 3), run.bytes, round(run.time_s, 3)
                    rows.append(QueueJob(*row, *numbers, run.started, load1))
            write_file(folder / QUEUE, csv_of(QueueJob, rows))
            report(CampaignProgress(rounds, number, 0))


def run_on(
    emulated: Emulated,
    application: Application,
    on: tuple[str, ...],
    through: tuple[str, ...],
    start: threading.Barrier | None = None,
) -> tuple[Run, float]:
    """Run an application on named nodes; return the run and the machine's load before it."""
    load1 = round(os.getloadavg()[0], 2)
    platform = OnNodes(emulated.description, on=on, through=through)
    return run_application(application, platform, len(through), start=start), load1


def _compute_nodes(applications: Sequence[Application]) -> Iterator[tuple[str, ...]]:
    """Give each application compute nodes of its own."""
    first = 0
    for one in applications:
        yield tuple(f"cn{node}" for node in range(first, first + one.nodes))
        first += one.nodes


def _cn(chance: random.Random, count: int) -> tuple[str, ...]:
    first = chance.randrange(3) * count
    return tuple(f"cn{node}" for node in range(first, first + count))


@contextmanager
def slowed(emulated: Emulated, name: str | None) -> Iterator[None]:
    """Give an I/O node's link a quarter of its rate."""
    if name is None:
        yield
        return
    node = io_node(emulated.description, int(name.removeprefix("io")))
    _set_rate(emulated, node, _SLOW_RATE)
    try:
        yield
    finally:
        _set_rate(emulated, node, emulated.description.links.io_nodes)


def _set_rate(emulated: Emulated, node: Node, rate: str) -> None:
    for batch in at_rate(emulated.description, node, rate):
        run_program(*batch.command, told=batch.text, member=emulated.name)
