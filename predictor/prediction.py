"""The prediction: how an application's I/O will run with each number of I/O nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchdb.curves import Curve
from ioncast_errors import InputError
from predictor.composition import Point, compose
from predictor.matching import Match, match
from summario.phases import Part, Phase
from summario.tables import size, to_record, whole

# A benchmark this many times off in a feature is a poor stand-in, and said to be.
_FAR = 4.0


@dataclass(frozen=True)
class MatchedPhase:
    """A phase, its number in the job, and the benchmark that each of its parts matched."""

    index: int
    phase: Phase
    parts: tuple[tuple[Part, Match], ...]

    @property
    def main(self) -> Match:
        """The match of the part with most bytes."""
        return max(self.parts, key=lambda pair: pair[0].bytes)[1]


@dataclass(frozen=True)
class Best:
    """The number of I/O nodes with the highest expected bandwidth; None without a basis."""

    io_nodes: int | None
    bandwidth_mib_s: float | None
    why: str


@dataclass(frozen=True)
class Prediction:
    """What is expected of an application on a system.

    Attributes
    ----------
    system : str
        The system.
    job : int or str or None
        The run whose phases it rests on.
    curve : tuple of Point
        By number of I/O nodes; empty where nothing is known.
    best : Best
        The decision drawn from it.
    phases : tuple of MatchedPhase
        What each phase was matched to.
    warnings : tuple of str
        What limits the prediction.
    """

    system: str
    job: int | str | None
    curve: tuple[Point, ...]
    best: Best
    phases: tuple[MatchedPhase, ...]
    warnings: tuple[str, ...]


def predict(
    phases: Sequence[Phase],
    curves: Sequence[Curve],
    *,
    system: str,
    nodes: int | None = None,
    io_nodes: Sequence[int] | None = None,
) -> Prediction:
    """Predict an application's bandwidth with each number of I/O nodes.

    Parameters
    ----------
    phases : sequence of Phase
        Of one earlier run.
    curves : sequence of Curve
        What one engine measured on the system, or at least the nearest to what the phases do
        (see `basis.read_basis`).
    system : str
        The system's name.
    nodes : int, optional
        Compute nodes of the job.
    io_nodes : sequence of int, optional
        Which points to predict; by default all that every matched benchmark has.

    Raises
    ------
    InputError
        When the phases are of several jobs, or the curves of several engines.
    """
    jobs = {phase.job for phase in phases}
    if len(jobs) > 1:
        raise InputError(f"the phases are of {len(jobs)} jobs", remedy="predict one job at a time")
    engines = sorted({curve.engine for curve in curves})
    if len(engines) > 1:
        raise InputError(
            f"the curves are of several engines: {', '.join(engines)}",
            remedy="predict from one engine's curves",
        )
    matched = tuple(
        MatchedPhase(
            index, phase, tuple((part, match(phase, part, curves, nodes)) for part in phase.parts)
        )
        for index, phase in enumerate(phases)
        if phase.parts
    )
    parts = [pair for matched_phase in matched for pair in matched_phase.parts]
    work = [
        (part.bytes, found.curve.bandwidths_mib_s)
        for part, found in parts
        if found.curve and part.bytes
    ]
    cells = [set(repetitions) for _, repetitions in work]
    common = set.intersection(*cells) if cells else set()
    asked = io_nodes or sorted(set().union(*cells))
    curve = tuple(compose(work, [n for n in asked if n in common]))
    return Prediction(
        system=system,
        job=jobs.pop() if jobs else None,
        curve=curve,
        best=_best(
            curve,
            asked,
            moved=sum(part.bytes for part, _ in parts),
            known=sum(moved for moved, _ in work),
        ),
        phases=matched,
        warnings=tuple(_warnings(matched, nodes, [n for n in asked if n not in common])),
    )


def to_json(prediction: Prediction) -> dict[str, Any]:
    """The prediction as plain values for JSON."""
    return {
        "system": prediction.system,
        "job": prediction.job,
        "curve": [asdict(point) for point in prediction.curve],
        "best": asdict(prediction.best),
        "phases": [
            {
                "phase": {
                    name: value
                    for name, value in to_record(matched.phase).items()
                    if name != "parts"
                },
                "parts": [
                    {
                        "request_bytes": whole(part.request_bytes),
                        "requests": part.requests,
                        "bytes": part.bytes,
                        "match": match_record(found),
                    }
                    for part, found in matched.parts
                ],
                "match": match_record(matched.main),
            }
            for matched in prediction.phases
        ],
        "warnings": list(prediction.warnings),
    }


def match_record(found: Match) -> dict[str, Any]:
    """A match as plain values for JSON; `config` is the benchmark's IOR line."""
    return {
        "kind": found.kind,
        "config": found.curve.config.command_line(launcher=True) if found.curve else None,
        "distance": found.distance,
        "wanted": found.wanted.command_line(launcher=True),
        "configuration_id": found.curve.id if found.curve else None,
        "ratios": found.ratios,
    }


def _best(curve: tuple[Point, ...], asked: Sequence[int], moved: int, known: int) -> Best:
    """Decide; `moved` bytes were matched, `known` of them to a benchmark."""
    if not moved:
        return Best(None, None, "the run did no I/O")
    if not known:
        return Best(None, None, "nothing in the database resembles any phase")
    if not curve:
        listed = ", ".join(map(str, asked))
        return Best(None, None, f"the matched benchmarks have none of {listed} I/O nodes in common")
    # Of equals (but for rounding) the fewest: the curve may come in any order.
    highest = max(point.bandwidth_mib_s.mean for point in curve)
    ranked = sorted(
        curve,
        key=lambda point: (-round(point.bandwidth_mib_s.mean / highest, 9), point.io_nodes),
    )
    top = ranked[0]
    why = f"highest expected bandwidth, {top.bandwidth_mib_s.mean:.4g} MiB/s"
    if len(ranked) > 1:
        second = ranked[1]
        gain = top.bandwidth_mib_s.mean / second.bandwidth_mib_s.mean - 1
        why += f", {gain:.0%} more than with {second.io_nodes}"
    else:
        why = f"the only number of I/O nodes known, {top.bandwidth_mib_s.mean:.4g} MiB/s"
    if known < moved:
        why += f"; for {known / moved:.0%} of the bytes"
    return Best(top.io_nodes, top.bandwidth_mib_s.mean, why)


def _warnings(
    matched: tuple[MatchedPhase, ...], nodes: int | None, missing: Sequence[int]
) -> list[str]:
    warnings = []
    total = sum(part.bytes for item in matched for part, _ in item.parts)
    unknown = sum(
        part.bytes for item in matched for part, found in item.parts if found.kind == "unknown"
    )
    if unknown:
        warnings.append(
            f"{unknown / total:.1%} of the bytes are in phases that nothing in the database"
            " resembles; the curve is without them"
        )
    if missing and any(found.curve for item in matched for _, found in item.parts):
        listed = ", ".join(map(str, missing))
        warnings.append(f"not every matched benchmark was measured with {listed} I/O nodes")
    if nodes is None and any(
        found.curve and found.curve.config.nodes for item in matched for _, found in item.parts
    ):
        warnings.append("the job's number of nodes is not given, so it was not matched")
    for item in matched:
        index = item.index
        if item.phase.partial:
            warnings.append(f"phase {index}: Darshan left {item.phase.api} records out")
        if item.phase.api == "STDIO":
            warnings.append(f"phase {index}: IOR has no stdio engine, POSIX stands in for it")
        if (item.phase.file_access, item.phase.spatiality) == ("unique", "sequential"):
            warnings.append(
                f"phase {index}: IOR cannot skip within a process's own file, a contiguous"
                " benchmark stands in"
            )
        if any(found.curve and found.curve.config.tasks is None for _, found in item.parts):
            warnings.append(f"phase {index}: of its benchmark the number of processes is unknown")
        for part, found in item.parts:
            far = {
                name: ratio for name, ratio in found.ratios.items() if not 1 / _FAR <= ratio <= _FAR
            }
            if far and part.bytes >= 0.01 * total:
                listed = ", ".join(f"{name} × {ratio:.2g}" for name, ratio in far.items())
                requests = f"{part.requests} requests of {size(part.request_bytes)}"
                warnings.append(
                    f"phase {index}, {requests}: the nearest benchmark is far off ({listed})"
                )
    return warnings
