"""Changes of I/O that advice proposes: from a phase to the phase of a program that follows it.

A phase that advice does not concern is returned itself. Times stay those of the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import ceil

from ioncast_base.kinds import SMALL_REQUEST_BYTES
from predictor.matching.configurations import tasks
from summario.phases.values import Part, Phase


def larger(phase: Phase, request_bytes: int) -> Phase:
    """Move the bytes of small requests in requests of a size.

    Parameters
    ----------
    request_bytes : int
        The size. Requests are smaller if a process moves fewer bytes to a file.
    """
    small = [part for part in phase.parts if part.request_bytes < SMALL_REQUEST_BYTES]
    moved = sum(part.bytes for part in small)
    requests = max(round(moved / request_bytes), _fewest_requests(phase))
    if not moved or requests >= sum(part.requests for part in small):
        return phase
    large = [part for part in phase.parts if part.request_bytes >= SMALL_REQUEST_BYTES]
    # The larger requests cover the small ones of a block.
    alike = replace(phase, block_requests=None)
    return _with_parts(alike, _of_different_sizes([*large, Part(requests, moved)]))


def of_size(phase: Phase, request_bytes: float, moved: int) -> Phase:
    """Move a number of bytes, at least 1, in requests of one size.

    Parameters
    ----------
    request_bytes : float
        The size. Requests are smaller if a process moves fewer bytes to a file.
    """
    requests = min(max(round(moved / request_bytes), _fewest_requests(phase)), moved)
    return _with_parts(replace(phase, block_requests=None), [Part(requests, moved)])


def scaled(phase: Phase, factor: float) -> Phase:
    """Move more or fewer bytes in requests of the same sizes."""
    return _with_parts(phase, [_scaled_part(part, factor) for part in phase.parts])


def collective(phase: Phase) -> Phase:
    """Move the bytes of a shared file in collective calls of MPI-IO, in the same order."""
    if phase.file_access != "shared" or phase.spatiality == "collective" or tasks(phase) < 2:
        return phase
    return replace(phase, api="MPIIO", spatiality="collective")


def one_file(phase: Phase) -> Phase:
    """Let the processes that have a file each share one; each has a block of it."""
    processes = tasks(phase)
    if phase.file_access != "unique" or processes < 2:
        return phase
    files = max(phase.n_files // processes, 1)
    return replace(
        phase,
        file_access="shared",
        n_files=files,
        mode_processes=processes,
        block_requests=None,
    )


def own_files(phase: Phase) -> Phase:
    """Give a file of its own to each process of a shared one; its requests follow each other."""
    processes = tasks(phase)
    if phase.file_access != "shared" or processes < 2:
        return phase
    of_mpiio = "unknown" if phase.api == "MPIIO" else phase.spatiality
    unique = replace(
        phase,
        file_access="unique",
        n_files=phase.n_files * processes,
        mode_processes=1,
        spatiality=of_mpiio,
    )
    return _in_order(unique) if phase.order == "sequential" else unique


def contiguous(phase: Phase) -> Phase:
    """Move the bytes of random requests in contiguous ones."""
    return _in_order(phase) if "random" in {phase.order, phase.spatiality} else phase


def without_repeats(phase: Phase, kept: float) -> Phase:
    """Move only a share of the bytes, from 0 to 1, in requests of the same sizes."""
    if kept >= 1:
        return phase
    return scaled(phase, kept)


def _in_order(phase: Phase) -> Phase:
    spatiality = phase.spatiality if phase.api == "MPIIO" else "contiguous"
    return replace(phase, spatiality=spatiality, order="contiguous", block_requests=None)


def _fewest_requests(phase: Phase) -> int:
    """The requests of a phase in which each process makes one request for each of its files."""
    return phase.n_files * max(phase.mode_processes, 1)


def _scaled_part(part: Part, factor: float) -> Part:
    requests = max(ceil(part.requests * factor), 1)
    return Part(requests, round(part.bytes * (requests / part.requests)))


def _of_different_sizes(parts: Iterable[Part]) -> list[Part]:
    """Join parts with the same request size."""
    found: dict[float, Part] = {}
    for part in parts:
        same = found.get(part.request_bytes, Part(0, 0))
        found[part.request_bytes] = Part(same.requests + part.requests, same.bytes + part.bytes)
    return sorted(found.values(), key=lambda part: -part.bytes)


def _with_parts(phase: Phase, parts: Iterable[Part]) -> Phase:
    made = tuple(parts)
    moved = sum(part.bytes for part in made)
    kept = moved / phase.bytes if phase.bytes else 1.0
    return replace(
        phase,
        parts=made,
        bytes=moved,
        requests=sum(part.requests for part in made),
        largest_process_bytes=_scaled(phase.largest_process_bytes, kept),
        largest_node_bytes=_scaled(phase.largest_node_bytes, kept),
    )


def _scaled(count: int | None, kept: float) -> int | None:
    return None if count is None else max(round(count * kept), 1)
