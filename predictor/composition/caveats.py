"""What limits a prediction, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchdb.measurements.curves import Curve
from predictor.matching.configurations import MatchedPhase
from predictor.model.system_model import Knowledge
from summario.phases.tables import size

# A benchmark this many times off in a feature is a poor stand-in, and said to be.
_FAR = 4.0


def limits(
    matched: Sequence[MatchedPhase],
    knowledge: Knowledge,
    nodes: int | None,
    asked: Sequence[int],
    ran_with: int | None,
) -> list[str]:
    """Say what limits a prediction, a sentence each.

    Parameters
    ----------
    matched : sequence of MatchedPhase
        What it is composed of.
    knowledge : Knowledge
        What it rests on.
    nodes : int or None
        Compute nodes of the job.
    asked : sequence of int
        The numbers of I/O nodes that were to be predicted.
    ran_with : int or None
        What the earlier run had.
    """
    warnings = []
    curves = [found.curve for item in matched for _, found in item.parts if found.curve]
    total = sum(part.bytes for item in matched for part, _ in item.parts)
    unknown = sum(
        part.bytes for item in matched for part, found in item.parts if found.kind == "unknown"
    )
    if unknown:
        warnings.append(
            f"{unknown / total:.1%} of the bytes are in phases that nothing in the database"
            " resembles; the curve is without them"
        )
    warnings += _of_io_nodes(curves, knowledge, asked, ran_with)
    if nodes is None and any(curve.config.nodes for curve in curves):
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


def _of_io_nodes(
    curves: Sequence[Curve], knowledge: Knowledge, asked: Sequence[int], ran_with: int | None
) -> Iterator[str]:
    """Which numbers of I/O nodes were not measured, and what is made of them."""
    if not curves:
        return
    unreached = [n for n in asked if knowledge.model and not knowledge.reaches(n)]
    if unreached:
        what = "with direct access" if unreached == [0] else "through I/O nodes"
        yield f"nothing was measured {what}, so {_listed(unreached)} I/O nodes are left out"
    missing = [
        n
        for n in asked
        if n not in unreached and any(n not in curve.bandwidths_mib_s for curve in curves)
    ]
    if missing:
        filled = "; the model fills in" if knowledge.model else ""
        yield f"not every matched benchmark was measured with {_listed(missing)} I/O nodes{filled}"
    measured = knowledge.range_of_io_nodes
    beyond = [n for n in missing if n not in measured]
    if knowledge.model and beyond:
        range_ = " to ".join(map(str, sorted({measured[0], measured[-1]})))
        yield (
            f"nothing was measured with other than {range_} I/O nodes, so what is said of"
            f" {_listed(beyond)} is a guess, and nothing is decided on it"
        )
    if any(ran_with not in (None, *curve.bandwidths_mib_s) for curve in curves):
        known = knowledge.model and ran_with is not None and knowledge.reaches(ran_with)
        outcome = "; the model fills in" if known else ", so what it got is left out"
        yield (
            f"not every matched benchmark was measured with the {ran_with} I/O nodes that the"
            f" earlier run had{outcome}"
        )


def _listed(io_nodes: Sequence[int]) -> str:
    return ", ".join(map(str, io_nodes))
