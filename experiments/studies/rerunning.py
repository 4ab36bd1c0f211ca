"""Runs applications with all numbers of I/O nodes, in random order."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchdb.campaigns.progress_lines import reporting
from benchdb.campaigns.standing import Progress
from experiments import datasets
from experiments.applications.launching import Platform
from experiments.applications.running import Run, run_application
from experiments.applications.spec import Application
from experiments.studies.settings import Settings, own_program
from ioncast_base.errors import IoncastError


def rerun(
    applications: Sequence[Application],
    platform: Platform,
    numbers: Sequence[int],
    settings: Settings,
) -> tuple[list[datasets.Run], dict[str, list[str]]]:
    """Run applications with all numbers of I/O nodes, in random order.

    Parameters
    ----------
    applications : sequence of Application
        The applications.
    platform : Platform
        The platform; it is up.
    numbers : sequence of int
        The numbers of I/O nodes.
    settings : Settings
        The settings of the study.

    Returns
    -------
    list of datasets.Run
        The runs that succeeded.
    dict of str to list of str
        The errors of the runs that failed, by application.

    Raises
    ------
    IoncastError
        If all runs failed.
    """
    plan = [
        (application, io_nodes, repetition)
        for application in applications
        for io_nodes in numbers
        for repetition in range(1, settings.repetitions + 1)
    ]
    random.Random(settings.seed).shuffle(plan)  # noqa: S311
    rows: list[datasets.Run] = []
    failed: dict[str, list[str]] = {}
    with reporting("reruns: ") as report:
        for number, (application, io_nodes, repetition) in enumerate(plan, start=1):
            own = own_program(application)
            try:
                run = run_application(application, platform, io_nodes, hacc_io_program=own)
            except IoncastError as error:
                failed.setdefault(application.name, []).append(str(error))
            else:
                rows.append(_row(application, run, repetition, own))
            report(Progress(len(plan), done=len(rows), failed=number - len(rows)))
    if not rows:
        reasons = (f"{name}: {errors[0]}" for name, errors in failed.items())
        raise IoncastError(f"every rerun failed: {'; '.join(reasons)}")
    return rows, failed


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


def _row(application: Application, run: Run, repetition: int, program: Path | None) -> datasets.Run:
    return datasets.Run(
        name=application.name,
        io_nodes=run.io_nodes,
        repetition=repetition,
        bytes=run.bytes,
        time_s=run.time_s,
        bandwidth_mib_s=run.bandwidth_mib_s,
        started=run.started,
        command=program.name if program else f"bundled {application.name}",
    )
