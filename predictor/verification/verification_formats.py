"""Verified benchmarks in words, and as fields of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ioncast_base.wording import size

if TYPE_CHECKING:
    from predictor.verification.verifying import Verified


def fidelity_of_phase(parts: Sequence[Verified]) -> float | None:
    """The mean of the fidelities of a phase's parts by their bytes; None if one is not known."""
    if not all(part.fidelity for part in parts):
        return None
    moved = sum(part.part.bytes for part in parts)
    return sum(part.part.bytes * part.fidelity.value for part in parts if part.fidelity) / moved


def with_column(
    rows: Sequence[Mapping[str, Any]], verified: Sequence[Verified]
) -> list[dict[str, Any]]:
    """Put the fidelity of each part before the last column of its row."""
    if not verified:
        return list(map(dict, rows))
    return [
        dict([*first, ("fidelity", _shown(each.value)), last])
        for (*first, last), each in zip((row.items() for row in rows), verified, strict=True)
    ]


def with_fields(
    rows: Sequence[Mapping[str, Any]], verified: Sequence[Verified]
) -> list[dict[str, Any]]:
    """Add what is known of each part to its row, as plain values."""
    if not verified:
        return list(map(dict, rows))
    fields = [_fields(part, parts) for _, parts in _by_phase(verified) for part in parts]
    return [{**row, **more} for row, more in zip(rows, fields, strict=True)]


def in_words(verified: Sequence[Verified]) -> Iterator[str]:
    """Say for each phase what its benchmarks do otherwise, with a line for each difference."""
    for index, parts in _by_phase(verified):
        lines = [f"phase {index}: fidelity {_shown(fidelity_of_phase(parts))}"]
        for part in parts:
            sentences = part.fidelity.differences if part.fidelity else []
            not_run = [f"this machine cannot run it: {why}" for why in part.hindrances]
            requests = f"{part.part.requests} × {size(part.part.request_bytes)}"
            place = f"{requests}: " if len(parts) > 1 else ""
            lines += [f"  {place}{sentence}" for sentence in (*sentences, *not_run)]
        yield "\n".join(lines)


def _fields(each: Verified, parts: Sequence[Verified]) -> dict[str, Any]:
    return {
        "fidelity": each.value,
        "phase_fidelity": fidelity_of_phase(parts),
        "differences": each.fidelity.differences if each.fidelity else [],
        "cannot_run": list(each.hindrances),
        "aspects": aspects_of(each),
    }


def aspects_of(each: Verified) -> list[dict[str, Any]]:
    """List the compared properties of a part as plain values."""
    return [
        {
            "name": aspect.name,
            "phase": aspect.phase,
            "benchmark": aspect.benchmark,
            "agreement": aspect.agreement,
        }
        for aspect in (each.fidelity.aspects if each.fidelity else ())
    ]


def _by_phase(verified: Sequence[Verified]) -> Iterator[tuple[int, list[Verified]]]:
    for index, parts in groupby(verified, key=lambda each: each.phase):
        yield index, list(parts)


def _shown(fidelity: float | None) -> str:
    return "unknown" if fidelity is None else f"{fidelity:.2f}"
