"""Runs of applications that the machine does not interrupt."""

from __future__ import annotations

from pathlib import Path

from experiments.applications.running import Platform, Run, run_application
from experiments.applications.spec import Application

_ATTEMPTS = 5
# A pause of more than a second ends a phase.
_PAUSE_S = 1.0


def run_at_once(application: Application, platform: Platform, io_nodes: int, log: Path) -> Run:
    """Run an application until no step was so slow that the log would show two phases for it."""
    for _ in range(_ATTEMPTS):
        run = run_application(application, platform, io_nodes, log=log)
        if all(step.time_s < _PAUSE_S for step in run.steps):
            break
    return run
