"""`ioncast match --verify`: runs the proposed benchmarks, and stores how far they agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

import click

from benchdb.measurements.storing import pattern_of
from benchdb.store.database import transaction_on
from benchdb.store.fidelities import NewFidelity, store_fidelities
from benchdb.store.systems import require_system
from ioncast_base import signals
from ioncast_base.visible_text import visible
from predictor.verification.options import VerifySettings
from predictor.verification.verification_formats import aspects_of
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
    """Verify the benchmarks of a run's phases on this machine, and store the fidelities if asked.

    Raises
    ------
    IoncastError
        If a program, the library, the folder or the system is missing, no benchmark can run, or a
        run fails. Nothing is stored then.
    """
    if settings.system is not None:
        with transaction_on(settings.location) as connection:
            require_system(connection, settings.system)
    machine = find_machine(settings.platform, settings.work_dir, settings.darshan_lib)
    measure = partial(
        facts_of_runs,
        machine=machine,
        time_limit_s=settings.time_limit_s,
        report=lambda sentence: click.echo(f"ioncast: {sentence}", err=True),
    )
    with signals.raised():
        verified = verify(
            run, phases, extraction, nodes=nodes, measure=measure, hindrances=machine.hindrances
        )
    if settings.system is not None:
        with transaction_on(settings.location, write=True) as connection:
            store_fidelities(connection, settings.system, _new(verified, run.name))
    return verified


def _new(verified: Sequence[Verified], log: str) -> list[NewFidelity]:
    return [
        NewFidelity(
            pattern=pattern_of(each.config),
            fidelity=each.fidelity.value,
            # File names need not be UTF-8, but texts of databases must.
            log=visible(log),
            phase=each.phase,
            aspects=json.dumps(aspects_of(each)),
        )
        for each in verified
        if each.fidelity
    ]
