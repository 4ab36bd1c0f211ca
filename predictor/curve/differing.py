"""Warnings about benchmarks that do other I/O than the phases that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ioncast_base.wording import counted
from predictor.matching.configurations import Difference, MatchedPhase
from predictor.model.system_model import SystemModel
from summario.naming import phases_named, shortened

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


def differing(matched: Sequence[MatchedPhase], knowledge: SystemModel) -> Iterator[str]:
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
    return shortened([_NAMES[one.name] for one in differences])


def _impossible(matched: Sequence[MatchedPhase]) -> Mapping[str, tuple[Difference, list[int]]]:
    """The IOR lines of parts whose kind was measured with another fsync only, with their phases."""
    found: dict[str, tuple[Difference, list[int]]] = {}
    for item in matched:
        for _, match in item.parts:
            if match.kind == "unknown" and match.differences:
                line = match.wanted.command_line(launcher=True)
                _, phases = found.setdefault(line, (match.differences[0], []))
                if item.index not in phases:
                    phases.append(item.index)
    return found


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
        return (
            f"the collective calls were buffered ({one.wanted}); the database does not tell"
            " whether those of the benchmark were"
        )
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
