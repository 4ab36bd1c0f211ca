"""`ioncast match --verify`: runs the proposed benchmarks on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from ioncast_base import signals
from predictor.verification.options import VerifySettings
from predictor.verification.verifying import Verified, facts_of_runs, verify
from predictor.verification.verifying_machine import find_machine
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Phase
from summario.runs.logs_of_run import Run


def verified_here(
    run: Run,
    phases: Sequence[Phase],
    extraction: ExtractionSettings,
    nodes: int | None,
    settings: VerifySettings,
) -> list[Verified]:
    """Verify the benchmarks of a run's phases on this machine.

    Parameters
    ----------
    run, phases, extraction, nodes
        As for `verify`.
    settings : VerifySettings
        The user's settings.

    Raises
    ------
    IoncastError
        If a program, the library or the folder is missing, no benchmark can run, or a run fails.
    """
    machine = find_machine(settings.platform, settings.work_dir, settings.darshan_lib)
    measure = partial(
        facts_of_runs,
        machine=machine,
        time_limit_s=settings.time_limit_s,
        report=lambda sentence: click.echo(f"ioncast: {sentence}", err=True),
    )
    with signals.raised():
        return verify(
            run, phases, extraction, nodes=nodes, measure=measure, hindrances=machine.hindrances
        )
