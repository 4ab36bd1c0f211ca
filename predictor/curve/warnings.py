"""Warnings about a prediction: its limits, and benchmarks that do other I/O than its phases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchdb.measurements.curves import Curve
from ioncast_base.wording import bandwidth, counted, each_in_words, in_digits, in_words, size
from predictor.matching.configurations import Difference, MatchedPhase, metadata_warnings
from predictor.model.plausible import IMPLAUSIBLE_FACTOR
from predictor.model.system_model import SystemModel
from summario.naming import phases_named, shortened

# A benchmark with a higher fidelity has no warning.
_FAITHFUL = 0.9

# A warning names benchmarks with a size that is this many times larger or smaller than wanted.
_FAR = 4.0


# Of a curve that is the mean of all benchmarks, corrected by earlier runs.
RESTS_ON_RUNS = (
    "nothing in the database resembles the run, so the curve is the mean of all benchmarks,"
    " corrected by earlier runs; `ioncast match` lists what to measure"
)
# Differences of parts with a smaller share of the bytes have no warning.
_SMALLEST_SHARE = 0.01

_FSYNC_OF_PHASE = {
    None: "it is not known whether fsync is called",
    "none": "no fsync is called",
    "end": "fsync is called at the end",
}
_FSYNC_OF_BENCHMARK = {
    None: "it is not known whether the benchmark calls it",
    "none": "the benchmark calls none",
    "end": "the benchmark calls it at the end (-e)",
}
_NAMES = {
    "fsync": "fsync",
    "order": "order of requests",
    "conditions": "conditions",
    "block": "blocks of requests",
    "collective buffering": "collective buffering",
}


def limit_warnings(
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
    warnings += _of_earlier(matched, knowledge)
    warnings += difference_warnings(matched, knowledge)
    warnings += _unlike(matched)
    warnings += _of_files(matched, knowledge)
    warnings += _by_phase(matched, total)
    return warnings


def _of_earlier(matched: Sequence[MatchedPhase], knowledge: SystemModel) -> Iterator[str]:
    """Name the phases whose nearest benchmark is from before a change of the system."""
    indices = [
        item.index
        for item in matched
        if any(found.curve and found.curve.before_change for _, found in item.parts)
    ]
    if indices and knowledge.model:
        newer = counted(knowledge.model.measurements, "newer measurement")
        yield (
            f"{phases_named(indices)}: the nearest benchmark is from before the change of the"
            f" system; the model has learned the effect of the change from {newer}"
        )


def _of_files(matched: Sequence[MatchedPhase], knowledge: SystemModel) -> Iterator[str]:
    """Name the phases whose metadata calls are predicted from mdtest, and warn of the others."""
    rated = {item.index: item.main.file_time for item in matched if item.main.file_time}
    for index, rates in rated.items():
        size_of_files = size(rates.bytes_per_file) if rates.bytes_per_file else "nothing"
        yield (
            f"phase {index}: metadata: {counted(rates.files, 'file')}, from mdtest"
            f" ({rates.operation}, {counted(rates.tasks, 'process')}, {size_of_files} in each file)"
        )
    others = {item.index: item.phase for item in matched if item.index not in rated}
    flags = metadata_warnings(others)
    yield from flags
    measured = {rate.io_nodes for rate in knowledge.file_rates if rate.used}
    missing = sorted(set(knowledge.measured_io_nodes) - measured)
    if flags and measured and missing:
        yield f"mdtest did not measure {each_in_words(missing)}, so its rates are not used"


def _by_phase(matched: Sequence[MatchedPhase], total: int) -> list[str]:
    """Warn of single phases; phases with the same limit share a sentence."""
    phases: dict[str, list[int]] = {}
    for item in matched:
        for limit in _limits_of(item, total):
            phases.setdefault(limit, []).append(item.index)
    return [f"{phases_named(set(indices))}{limit}" for limit, indices in phases.items()]


def _limits_of(item: MatchedPhase, total: int) -> Iterator[str]:
    """Yield the limits of a phase; each continues a sentence that begins with its number."""
    if item.phase.partial:
        yield f": the log lacks some {item.phase.api} records"
    if item.phase.api == "STDIO":
        yield ": IOR has no stdio engine, so POSIX stands in for it"
    if (item.phase.file_access, item.phase.spatiality) == ("unique", "sequential"):
        yield ": IOR cannot skip within a process's own file, so a contiguous benchmark stands in"
    if any(found.curve and found.curve.config.tasks is None for _, found in item.parts):
        yield ": the number of processes of the benchmark is unknown"
    for part, found in item.parts:
        far = {name: ratio for name, ratio in found.ratios.items() if not 1 / _FAR <= ratio <= _FAR}
        if far and part.bytes >= _SMALLEST_SHARE * total:
            listed = ", ".join(f"{in_digits(by, 2)} × the {name}" for name, by in far.items())
            requests = f"{counted(part.requests, 'request')} of {size(part.request_bytes)}"
            yield f", {requests}: the nearest benchmark is far off, with {listed}"


def implausible_warnings(runs: Sequence[tuple[int, float, float]]) -> Iterator[str]:
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


def difference_warnings(matched: Sequence[MatchedPhase], knowledge: SystemModel) -> Iterator[str]:
    """Warn of benchmarks that stand in although they differ, and of those that cannot.

    Phases with the same difference share a sentence. Differences of parts with less than 1 % of
    the bytes are left out.
    """
    total = sum(part.bytes for item in matched for part, _ in item.parts)
    moved: dict[tuple[Difference, bool], dict[int, int]] = {}
    for item in matched:
        for part, found in item.parts:
            doubted = knowledge.unlearned(found)
            for one in found.differences if found.curve else ():
                by_phase = moved.setdefault((one, one not in doubted), {})
                by_phase[item.index] = by_phase.get(item.index, 0) + part.bytes
    for (one, is_learned), by_phase in moved.items():
        if sum(by_phase.values()) >= _SMALLEST_SHARE * total:
            yield f"{phases_named(by_phase)}: {_clauses(one)}; {_consequence(one, is_learned)}"
    for line, (why, phases) in _impossible(matched).items():
        yield f"{phases_named(phases)}: {_hindrance(why)}; this run would measure it: {line}"


def names_of(differences: Iterable[Difference]) -> str:
    """Name the properties that differ."""
    return shortened([_NAMES[difference.name] for difference in differences])


def _impossible(matched: Sequence[MatchedPhase]) -> Mapping[str, tuple[Difference, list[int]]]:
    """The IOR lines of parts whose kind was measured with another fsync only, with their phases."""
    impossible: dict[str, tuple[Difference, list[int]]] = {}
    for item in matched:
        for _, match in item.parts:
            if match.kind == "unknown" and match.differences:
                line = match.wanted.command_line(launcher=True)
                _, phases = impossible.setdefault(line, (match.differences[0], []))
                if item.index not in phases:
                    phases.append(item.index)
    return impossible


def _hindrance(why: Difference) -> str:
    """Say why no benchmark of a kind stands for a phase."""
    if why.wanted == "each":
        return "fsync follows each write, and no benchmark of this kind does that (-Y)"
    return "all benchmarks of this kind call fsync after each write (-Y), and the phase does not"


def _clauses(one: Difference) -> str:
    """Say what the phase does and what its benchmark does."""
    if one.name == "conditions":
        return f"the benchmark ran with {one.measured or 'no conditions'}"
    if one.name == "fsync":
        return f"{_FSYNC_OF_PHASE[one.wanted]}, {_FSYNC_OF_BENCHMARK[one.measured]}"
    if one.name == "block":
        ours, theirs = map(_blocks, (one.wanted, one.measured))
        return f"a process has {ours} without gaps, one of the benchmark has {theirs}"
    if one.name == "collective buffering":
        ours = f"were buffered ({one.wanted})" if one.wanted else "were not buffered by hints"
        theirs = (
            f"those of the benchmark had {one.measured}"
            if one.measured
            else "the database does not tell whether those of the benchmark were"
        )
        return f"the collective calls {ours}; {theirs}"
    order = one.wanted or "unknown"
    return f"the order of requests is {order}, the benchmark has {one.measured} ones"


def _blocks(requests: str | None) -> str:
    """Name the requests of a block, which follow one another."""
    return (
        "all requests"
        if requests == "all"
        else f"blocks of {counted(int(requests or 1), 'request')}"
    )


def _consequence(one: Difference, is_learned: bool) -> str:
    if is_learned:
        return "the model has learned from other benchmarks how much that changes"
    if None in (one.wanted, one.measured):
        return "so the interval is wider"
    return "nothing nearer of this kind was measured, so the interval is wider"
