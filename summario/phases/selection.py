"""Leaving out phases that move few of the bytes."""

from __future__ import annotations

from collections.abc import Sequence

from ioncast_base.wording import counted, in_digits, size
from summario.phases.values import Extraction, Phase


def without_small(phases: Sequence[Phase], min_share: float) -> Extraction:
    """Leave out phases whose share of all bytes is smaller than `min_share`, with a warning."""
    moved = sum(phase.bytes for phase in phases)
    kept = tuple(phase for phase in phases if phase.bytes >= min_share * moved)
    if len(kept) == len(phases):
        return Extraction(kept)
    lost = moved - sum(phase.bytes for phase in kept)
    left_out = counted(len(phases) - len(kept), "phase")
    return Extraction(
        kept,
        (
            f"phases with less than {in_digits(min_share)} of the bytes each are left out:"
            f" {left_out} with {size(lost)} of {size(moved)}",
        ),
    )
