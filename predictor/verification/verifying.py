"""Verifies the benchmarks of a run's phases: runs each, and compares its log with the phase."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ioncast_base.errors import InputError, IoncastError
from ior_configs import IorConfig
from predictor.matching.configurations import configuration
from predictor.verification.facts import PhaseFacts, facts_of
from predictor.verification.fidelity import Fidelity, compare
from predictor.verification.traced_run import traced
from predictor.verification.verifying_machine import VerifyingMachine
from summario.phases.extract import extract_run
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Part, Phase
from summario.runs.logs_of_run import Run, run_of

# A slow file system may pause longer than a phase does, so no pause splits the run of a benchmark.
_OF_BENCHMARKS = ExtractionSettings(time_distance=1e9)


@dataclass(frozen=True)
class Verified:
    """A part of a phase with its benchmark.

    Attributes
    ----------
    fidelity : Fidelity or None
        The comparison; None if this machine cannot run the benchmark.
    hindrances : tuple of str
        The reasons why it cannot, as clauses.
    """

    phase: int
    part: Part
    config: IorConfig
    fidelity: Fidelity | None
    hindrances: tuple[str, ...] = ()

    @property
    def value(self) -> float | None:
        """The fidelity as a number."""
        return self.fidelity.value if self.fidelity else None


def verify(
    run: Run,
    phases: Sequence[Phase],
    settings: ExtractionSettings,
    *,
    nodes: int | None,
    measure: Callable[[Sequence[IorConfig]], Iterable[PhaseFacts]],
    hindrances: Callable[[IorConfig], Sequence[str]],
) -> list[Verified]:
    """Compare each part of the phases with the run of its benchmark.

    Parts with the same benchmark share its run. Nothing runs before it is known which benchmarks
    can run.
    """
    parts = [
        (index, part, configuration(phase, part, nodes), facts.of_part(part))
        for index, (phase, facts) in enumerate(
            zip(phases, facts_of(run, phases, settings), strict=True)
        )
        for part in phase.parts
    ]
    if not parts:
        return []
    hindered = {config: tuple(hindrances(config)) for _, _, config, _ in parts}
    if all(hindered.values()):
        [_, _, config, _] = parts[0]
        raise InputError(
            f"this machine cannot run it: {hindered[config][0]}",
            where=config.command_line(launcher=True),
            remedy="verify on a machine that can, or choose another folder with --work-dir",
        )
    possible = [config for config, reasons in hindered.items() if not reasons]
    measured = dict(zip(possible, measure(possible), strict=True))
    return [
        Verified(
            index,
            part,
            config,
            compare(facts, measured[config]) if config in measured else None,
            hindered[config],
        )
        for index, part, config, facts in parts
    ]


def facts_of_runs(
    configs: Sequence[IorConfig],
    machine: VerifyingMachine,
    time_limit_s: float,
    report: Callable[[str], None],
) -> Iterator[PhaseFacts]:
    """Run benchmarks under Darshan, one after the other, and yield the facts of their logs."""
    machine.check(configs, report)
    for number, config in enumerate(configs, 1):
        line = config.command_line(launcher=True)
        report(f"run {number} of {len(configs)} under Darshan: {line}")
        yield facts_of_benchmark(run_of([traced(config, machine, time_limit_s)]), config)


def facts_of_benchmark(run: Run, config: IorConfig) -> PhaseFacts:
    """Look up the facts of the only phase of a benchmark's run."""
    phases = extract_run(run, _OF_BENCHMARKS).phases
    # IOR also writes its results, with STDIO.
    own = [
        phase for phase in phases if (phase.operation, phase.api) == (config.operation, config.api)
    ]
    if not own:
        raise IoncastError(
            f"the log of the run has no {config.operation} with {config.api}",
            where=config.command_line(launcher=True),
            remedy="check that Darshan's library has the modules of IOR's api",
        )
    largest = max(own, key=lambda phase: phase.bytes)
    [facts] = facts_of(run, [largest], _OF_BENCHMARKS)
    return facts
