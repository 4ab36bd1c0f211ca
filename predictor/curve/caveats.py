"""Warnings about the limits of a prediction, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchdb.measurements.curves import Curve
from ioncast_base.wording import bandwidth, counted, each_in_words, in_digits, in_words, size
from predictor.curve.differing import differing
from predictor.matching.configurations import MatchedPhase, metadata_warnings
from predictor.model.plausible import IMPLAUSIBLE_FACTOR
from predictor.model.system_model import SystemModel

# A benchmark with a higher fidelity has no warning.
_FAITHFUL = 0.9

# A warning names benchmarks with a size that is this many times larger or smaller than wanted.
_FAR = 4.0


# Of a curve that is the mean of all benchmarks, corrected by earlier runs.
RESTS_ON_RUNS = (
    "nothing in the database resembles the run, so the curve is the mean of all benchmarks,"
    " corrected by earlier runs; `ioncast match` lists what to measure"
)


def limits(
    matched: Sequence[MatchedPhase],
    knowledge: SystemModel,
    nodes: int | None,
    asked: Sequence[int],
    ran_with: int | None,
) -> list[str]:
    """List the limits of a prediction, a sentence each."""
    warnings = []
    curves = [found.curve for item in matched for _, found in item.parts if found.curve]
    total = sum(part.bytes for item in matched for part, _ in item.parts)
    unknown = sum(
        part.bytes for item in matched for part, found in item.parts if found.kind == "unknown"
    )
    if unknown:
        warnings.append(
            f"{unknown / total:.1%} of the bytes are in phases that nothing in the database"
            " resembles; the curve leaves them out"
        )
    warnings += _of_io_nodes(curves, knowledge, asked, ran_with)
    if nodes is None and any(curve.config.nodes for curve in curves):
        warnings.append(
            "the number of compute nodes is unknown, so benchmarks on any number of them match;"
            " give it, if you know it"
        )
    warnings += differing(matched, knowledge)
    warnings += _unlike(matched)
    warnings += metadata_warnings({item.index: item.phase for item in matched})
    for item in matched:
        index = item.index
        if item.phase.partial:
            warnings.append(f"phase {index}: the log lacks some of its {item.phase.api} records")
        if item.phase.api == "STDIO":
            warnings.append(f"phase {index}: IOR has no stdio engine, so POSIX stands in for it")
        if (item.phase.file_access, item.phase.spatiality) == ("unique", "sequential"):
            warnings.append(
                f"phase {index}: IOR cannot skip within a process's own file, so a contiguous"
                " benchmark stands in"
            )
        if any(found.curve and found.curve.config.tasks is None for _, found in item.parts):
            warnings.append(f"phase {index}: the number of processes of its benchmark is unknown")
        for part, found in item.parts:
            far = {
                name: ratio for name, ratio in found.ratios.items() if not 1 / _FAR <= ratio <= _FAR
            }
            if far and part.bytes >= 0.01 * total:
                listed = ", ".join(f"{in_digits(by, 2)} × the {name}" for name, by in far.items())
                requests = f"{counted(part.requests, 'request')} of {size(part.request_bytes)}"
                warnings.append(
                    f"phase {index}, {requests}: the nearest benchmark is far off, with {listed}"
                )
    return warnings


def too_fast(runs: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    """Warn of implausible bandwidths, which do not correct a prediction; name the highest."""
    if not runs:
        return
    io_nodes, got_mib_s, p90_mib_s = max(runs, key=lambda run: run[1] / run[2])
    others = f" (and {counted(len(runs) - 1, 'other')})" if len(runs) > 1 else ""
    yield (
        f"an earlier run{others} does not correct the prediction, because its bandwidth is"
        f" implausible: {bandwidth(got_mib_s)} with {in_words(io_nodes)}, more than"
        f" {IMPLAUSIBLE_FACTOR:g} times the {bandwidth(p90_mib_s)} that only one run in ten should"
        " exceed; its log may be of another machine, or its data stayed in a cache"
    )


def _of_io_nodes(
    curves: Sequence[Curve], knowledge: SystemModel, asked: Sequence[int], ran_with: int | None
) -> Iterator[str]:
    """Name the numbers of I/O nodes that were not measured, and say how they are predicted."""
    if not curves:
        return
    unreached = [n for n in asked if knowledge.model and not knowledge.reaches(n)]
    if unreached:
        what = "with direct access" if unreached == [0] else "through I/O nodes"
        yield f"nothing was measured {what}, so the curve leaves out {each_in_words(unreached)}"
    missing = [
        n
        for n in asked
        if n not in unreached and any(n not in curve.bandwidths_mib_s for curve in curves)
    ]
    if missing:
        filled = "; the model fills in" if knowledge.model else ""
        yield f"not every matched benchmark was measured with {each_in_words(missing)}{filled}"
    beyond = [n for n in missing if not knowledge.decides_on(n)]
    if knowledge.model and beyond:
        yield (
            f"only {_measured(knowledge)} were measured, so the bandwidth with {_listed(beyond)} is"
            " a guess, and no decision chooses it"
        )
    if ran_with is not None and any(ran_with not in curve.bandwidths_mib_s for curve in curves):
        known = knowledge.model and knowledge.reaches(ran_with)
        outcome = "; the model fills in" if known else ", so its bandwidth is not used"
        yield (
            f"not every matched benchmark was measured with {in_words(ran_with)},"
            f" the number that the earlier run had{outcome}"
        )


def _measured(knowledge: SystemModel) -> str:
    """Name direct access, if it was measured, and the range of I/O nodes."""
    forwarded = knowledge.range_of_io_nodes
    ends = " to ".join(map(str, sorted({*forwarded[:1], *forwarded[-1:]})))
    named = [in_words(0)] if knowledge.decides_on(0) else []
    return " and ".join([*named, f"{ends} I/O nodes"] if ends else named)


def _listed(io_nodes: Sequence[int]) -> str:
    return ", ".join(map(str, io_nodes))


def _unlike(matched: Sequence[MatchedPhase]) -> Iterator[str]:
    """Warn of phases whose IOR run was seen to do other I/O."""
    for item in matched:
        known = [found.fidelity for _, found in item.parts if found.fidelity is not None]
        if known and min(known) < _FAITHFUL:
            yield (
                f"phase {item.index}: the run of its IOR line has a fidelity of {min(known):.2f}"
                " (`ioncast match --verify`), so the interval is wider"
            )
