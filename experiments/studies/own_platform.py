"""Parts of the studies that bring up a platform of their own and ask ioncast about their runs."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from experiments.applications.installed import has_mpi4py
from experiments.applications.running import Run
from experiments.applications.spec import Application
from experiments.platform.emulated import Emulated
from experiments.provenance import Log, Provenance, printable
from experiments.studies.machine import this_machine, versions
from ioncast_base.darshan_runtime import find_darshan
from ioncast_base.errors import InputError, IoncastError

_T = TypeVar("_T")


def darshan_for_traces() -> Path:
    """Find Darshan's runtime; InputError without it or without mpi4py."""
    darshan = find_darshan()
    if darshan is None or not has_mpi4py():
        raise InputError(
            "traces need Darshan's runtime and mpi4py",
            remedy="install both for this machine's MPI; DARSHAN_RUNTIME_DIR names the runtime",
        )
    return darshan


def run_together(places: Sequence[_T], run_at: Callable[[_T, threading.Barrier], Run]) -> list[Run]:
    """Run applications, which begin their I/O together at a barrier."""
    start = threading.Barrier(len(places))
    with ThreadPoolExecutor(len(places)) as threads:
        return list(threads.map(lambda place: run_at(place, start), places))


def ask_ioncast(*words: str) -> str:
    """Run an ioncast command, and return its standard output; IoncastError if it fails."""
    program = [sys.executable, "-m", "ioncast", *words]
    done = subprocess.run(program, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise IoncastError(done.stderr.strip(), where=words[0])
    return done.stdout


def provenance_of(
    emulated: Emulated,
    study: str,
    applications: Sequence[Application],
    *,
    seed: int,
    command: str,
    logs: Iterable[tuple[str, Application, int]] = (),
) -> Provenance:
    """Tell where a data set is from.

    Parameters
    ----------
    applications : sequence of Application
        The applications that run at the same time.
    logs : iterable of (str, Application, int)
        The names of the logs that are kept, with application and number of I/O nodes.
    """
    return Provenance(
        study=study,
        command=printable(command),
        date=datetime.now(timezone.utc).date().isoformat(),
        seeds=(seed,),
        scale=None,
        system=emulated.description.name,
        tasks=sum(each.tasks for each in applications),
        nodes=sum(each.nodes for each in applications),
        engine=None,
        platform=emulated.description.model_dump(mode="json"),
        machine=this_machine(),
        versions=versions(),
        logs=tuple(
            Log(file=file, application=each.name, io_nodes=io_nodes, source="Darshan's runtime")
            for file, each, io_nodes in logs
        ),
    )
