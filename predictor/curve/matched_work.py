"""The phases of a run with the benchmarks and estimates of their parts, ready to compose."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from zlib import crc32

import numpy as np

from predictor.curve.composing import Composition, PartWork, compose
from predictor.curve.estimates import Estimate, as_expected, as_measured, with_files
from predictor.curve.overlap import timeline_of
from predictor.matching.configurations import Match, MatchKey, configuration
from predictor.matching.configurations import tasks as processes_of
from predictor.matching.file_times import FileTime, file_time
from predictor.matching.uneven import limits_of
from predictor.model.system_model import SystemModel
from summario.phases.values import Part, Phase

# The covariances of more configurations would not fit into memory.
_CONFIGURATIONS_AT_ONCE = 50
_SEED = 9366
# Besides the kind and the bytes, the fields of a phase that decide its prediction.
_PATTERN = (
    "parts",
    "processes",
    "nprocs",
    "n_files",
    "mode_processes",
    "fsync",
    "order",
    "block_requests",
    "aggregators",
    "amplification",
    "largest_process_bytes",
    "largest_node_bytes",
    "nodes",
)


@dataclass(frozen=True)
class MatchedInput:
    """A phase, its index in the job, and the matches of its parts."""

    index: int
    phase: Phase
    parts: tuple[tuple[Part, Match], ...]


def tasks_of(
    phases: Sequence[Phase], knowledge: SystemModel, nodes: int | None
) -> tuple[MatchedInput, ...]:
    """Match the parts of phases; phases without parts are left out."""
    match = cache(knowledge.match)
    tasks = []
    for index, phase in enumerate(phases):
        limits = limits_of(phase, nodes, knowledge.curves)
        rates = file_time(
            phase, knowledge.file_rates, processes_of(phase), knowledge.measured_io_nodes
        )
        found = [
            (part, match(configuration(phase, part, nodes)).for_phase(phase))
            for part in phase.parts
        ]
        if found:
            parts = tuple(
                (part, replace(one, limits_mib_s=limits, file_time=_rates_for(one, rates)))
                for part, one in found
            )
            tasks.append(MatchedInput(index, phase, parts))
    return tuple(tasks)


def _rates_for(match: Match, rates: FileTime | None) -> FileTime | None:
    """The rates for a part of a phase.

    The run of IOR with the same sizes opens and closes a file itself. But it has one file for each
    process, so runs of mdtest with many such files are nearer to the phase.
    """
    opens_itself = match.is_mostly_metadata and rates is not None and not rates.is_whole
    return None if opens_itself else rates


def in_order(tasks: Iterable[MatchedInput]) -> tuple[MatchedInput, ...]:
    """Sort by the pattern of I/O, then by time.

    The draws of a phase and its rounding must depend neither on its place in a list nor on its
    times, which differ between runs of the same I/O. Of one kind, the phases with most bytes come
    first: then a phase that is added takes the draws of a smaller one, and never makes an
    application faster.
    """
    return tuple(sorted(tasks, key=lambda task: _order(task.phase)))


def matches_of(tasks: Iterable[MatchedInput]) -> list[Match]:
    """List the different matches of tasks."""
    return list({found.key: found for task in tasks for _, found in task.parts}.values())


def estimates_of(
    matches: Sequence[Match], knowledge: SystemModel, io_nodes: Sequence[int]
) -> dict[MatchKey, Estimate]:
    """Estimate each match by its key; empty if there are no numbers of I/O nodes."""
    if not io_nodes:
        return {}
    even = _even_estimates(matches, knowledge, io_nodes)
    limits = {match.key: dict(match.limits_mib_s) for match in matches if match.limits_mib_s}
    rates = {match.key: match.file_time for match in matches}
    limited = {key: _limited(one, limits.get(key, {}), io_nodes) for key, one in even.items()}
    return {key: with_files(one, rates[key], io_nodes) for key, one in limited.items()}


def _limited(estimate: Estimate, limits: Mapping[int, float], io_nodes: Sequence[int]) -> Estimate:
    """Lower an estimate to the limits of an uneven phase, in MiB/s by number of I/O nodes."""
    if not limits:
        return estimate
    most = np.array([limits.get(n, np.inf) for n in io_nodes])
    return estimate.scaled(np.minimum(1.0, most / estimate.typical_mib_s))


def _even_estimates(
    matches: Sequence[Match], knowledge: SystemModel, io_nodes: Sequence[int]
) -> dict[MatchKey, Estimate]:
    """Estimate matches as if their bytes lay evenly over processes and compute nodes."""
    if knowledge.model is None:
        random = np.random.default_rng(_SEED)
        return {
            found.key: as_measured(found.curve.bandwidths_mib_s, io_nodes, random)
            for found in matches
            if found.curve
        }
    estimates: dict[MatchKey, Estimate] = {}
    for start in range(0, len(matches), _CONFIGURATIONS_AT_ONCE):
        batch = matches[start : start + _CONFIGURATIONS_AT_ONCE]
        # The same seed for each batch, so that the doubts of different batches are correlated too.
        found = as_expected(
            knowledge.expect(batch, io_nodes),
            knowledge.model.tails,
            [match.repetitions for match in batch],
            io_nodes,
            np.random.default_rng(_SEED),
        )
        estimates |= {match.key: one for match, one in zip(batch, found, strict=True)}
    return estimates


def composition_of(
    tasks: Sequence[MatchedInput], estimates: Mapping[MatchKey, Estimate], io_nodes: Sequence[int]
) -> Composition | None:
    """Compose the estimated parts of the phases; None if no part has an estimate."""
    seen: Counter[str] = Counter()
    work = []
    for i, task in enumerate(tasks):
        for j, (part, found) in enumerate(task.parts):
            if part.bytes and found.key in estimates:
                name = f"{_text(task.phase.kind)} {j}"
                # Another text would change the interval of every prediction.
                seed = crc32(f"{name} {seen[name]}".encode())
                seen[name] += 1
                work.append(PartWork(i, part.bytes, estimates[found.key], seed))
    timeline = timeline_of([task.phase for task in tasks])
    return compose(work, io_nodes, timeline) if work else None


def _order(phase: Phase) -> tuple[str, int, str, float, float, str]:
    """Make the key to sort phases by; only equal phases have the same one."""
    pattern = {name: getattr(phase, name) for name in _PATTERN}
    times = phase.start_seconds, phase.end_seconds
    return _text(phase.kind), -phase.bytes, _text(pattern), *times, _text(phase)


def _text(value: object) -> str:
    """Write all fields of a value as one text."""
    return json.dumps(value, default=vars, ensure_ascii=False)
