"""Runs an application again with a number of I/O nodes, and keeps the result in a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from experiments.applications.launching import Platform
from experiments.applications.running import run_application
from experiments.applications.spec import Application
from experiments.datasets import ApplicationRun
from experiments.studies.settings import own_program
from ioncast_base.files import write_file


@dataclass(frozen=True)
class Planned:
    """One run of an application that a study needs.

    Attributes
    ----------
    application : Application
        The application.
    io_nodes, repetition : int
        Number of I/O nodes, and number of the run with so many; the first is 1.
    file : Path
        The file of its result.
    """

    application: Application
    io_nodes: int
    repetition: int
    file: Path

    @property
    def result(self) -> ApplicationRun | None:
        """The result; None if the run has not succeeded yet."""
        try:
            record = json.loads(self.file.read_text(encoding="utf-8"))
            return ApplicationRun(**{**record, "phases_mib_s": tuple(record["phases_mib_s"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None


def plan_reruns(
    applications: Sequence[Application], numbers: Sequence[int], repetitions: int, folder: Path
) -> list[Planned]:
    """List the runs of applications with all numbers of I/O nodes.

    Parameters
    ----------
    applications : sequence of Application
        The applications.
    numbers : sequence of int
        The numbers of I/O nodes.
    repetitions : int
        Runs of each application with each number.
    folder : Path
        Folder of the results.
    """
    return [
        Planned(
            application,
            io_nodes,
            repetition,
            folder / f"{application.name}-n{io_nodes}-r{repetition}.json",
        )
        for application in applications
        for io_nodes in numbers
        for repetition in range(1, repetitions + 1)
    ]


def rerun(planned: Planned, platform: Platform) -> None:
    """Run an application, unless it has succeeded already.

    Raises
    ------
    IoncastError
        If the run fails.
    """
    if planned.result is not None:
        return
    application = planned.application
    program = own_program(application)
    run = run_application(application, platform, planned.io_nodes, hacc_io_program=program)
    result = ApplicationRun(
        name=application.name,
        io_nodes=run.io_nodes,
        repetition=planned.repetition,
        bytes=run.bytes,
        time_s=run.time_s,
        bandwidth_mib_s=run.bandwidth_mib_s,
        started=run.started,
        command=program.name if program else f"bundled {application.name}",
        phases_mib_s=tuple(step.bandwidth_mib_s for step in run.steps),
    )
    write_file(planned.file, json.dumps(asdict(result)))


def failure_notes(failed: Mapping[str, Sequence[str]], measured: set[str]) -> Iterator[str]:
    """Say which reruns failed.

    Parameters
    ----------
    failed : mapping of str to sequence of str
        The errors, by application.
    measured : set of str
        The applications of which a rerun succeeded.
    """
    for name, errors in failed.items():
        if name in measured:
            yield from (f"a rerun failed: {error}" for error in errors)
        else:
            yield f"{name} was left out: every rerun failed: {errors[0]}"
