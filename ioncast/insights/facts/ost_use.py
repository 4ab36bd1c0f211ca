"""The servers (OSTs) on Lustre over which a run spread its files."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioncast.insights.facts.values import Facts, Floats, Ints
from summario.lustre_components import LustreComponents
from summario.lustre_servers import bytes_of_servers, first_mirrors


@dataclass(frozen=True)
class OstUse:
    """OSTs with bytes of the files, up to their highest offsets; all OSTs, None if not known."""

    used: int
    osts: int | None
    files: int


def ost_use(facts: Facts) -> OstUse | None:
    """Count the OSTs that hold the files; None if the log tells no OST.

    Of several file systems (by their number of OSTs) the one with most moved bytes counts.
    """
    if facts.lustre is None or not len(facts.lustre):
        return None
    file = _files(facts, facts.lustre)
    moved = facts.files.bytes[file].astype(np.float64)
    systems, place = np.unique(facts.lustre.osts, return_inverse=True)
    system = systems[np.argmax(np.bincount(place, moved))]
    chosen = facts.lustre.take(facts.lustre.osts == system)
    files = np.unique(_files(facts, chosen))
    extents = facts.files.extent_bytes[files]
    held = bytes_of_servers(chosen, facts.files.id[files], np.zeros_like(extents), extents)
    used = np.unique(held.ost)
    count = int(np.count_nonzero(used >= 0))
    total = int(system) if system > 0 else None
    return OstUse(count, total, len(files)) if count else None


@dataclass(frozen=True)
class OstPieces:
    """For each file on each OST: the row in `Facts.files`, and the share of its bytes (0 to 1)."""

    file: Ints
    ost: Ints
    part: Floats


def pieces_on_osts(facts: Facts) -> OstPieces | None:
    """Divide the files among OSTs; None if the log tells no OST."""
    if facts.lustre is None or not len(facts.lustre):
        return None
    files = np.unique(_files(facts, facts.lustre))
    extents = facts.files.extent_bytes[files]
    held = bytes_of_servers(facts.lustre, facts.files.id[files], np.zeros_like(extents), extents)
    known = held.ost >= 0
    if not known.any():
        return None
    segment = held.segment[known]
    return OstPieces(files[segment], held.ost[known], held.bytes[known] / extents[segment])


def files_on_one_stripe(facts: Facts) -> Ints:
    """List the files whose bytes are all in components of one stripe."""
    nothing = np.zeros(0, np.int64)
    if facts.lustre is None or not len(facts.lustre):
        return nothing
    layout = first_mirrors(facts.lustre)
    file = _files(facts, layout)
    in_use = layout.extent_start < facts.files.extent_bytes[file]
    layout, file = layout.take(in_use), file[in_use]
    if not len(file):
        return nothing
    first = np.flatnonzero(np.diff(file, prepend=-1))
    most = np.maximum.reduceat(layout.stripe_count, first)
    found: Ints = file[first][most == 1]
    return found


def _files(facts: Facts, layout: LustreComponents) -> Ints:
    """Find the row in `Facts.files` of each component."""
    found: Ints = np.searchsorted(facts.files.id, layout.file_id)
    return found
