"""Which earlier runs are of the same application, which of them are alike, and how they scale."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import NamedTuple

from benchdb.history.applications import program_of
from ioncast_base.kinds import Kind
from summario.phases.values import Part, Phase

# A run counts so much of what the next newer one does.
_FADING = 0.8
# Runs are alike from this share of their bytes in common kinds of I/O on, and up to this
# factor between their bytes.
_COMMON_SHARE = 0.8
_MOST_FACTOR = 2.0
# And up to this factor between the sizes of their requests, on which curves depend as much.
_MOST_FACTOR_OF_REQUESTS = 4.0


class Identity(NamedTuple):
    """Something that runs of one application have in common.

    Attributes
    ----------
    executable : str or None
        An absolute path, or the program's name; None where it does not count.
    user, name : str or None
        The user and the job's name; None where they do not count.
    key : str
        All of it as one text, different for different identities.
    says : str
        What it is, to be said after "earlier runs of".
    """

    executable: str | None
    user: str | None
    name: str | None
    key: str
    says: str


def identities(executable: str | None, user: str | None, name: str | None) -> list[Identity]:
    """What a job shares with earlier runs of its application, the most telling first.

    Runs are stored under all their identities, and a job is looked for under all of its own.

    Parameters
    ----------
    executable : str or None
        A path or a program's name. Of a relative path only the program's name counts,
        because jobs start in different folders.
    user, name : str or None
        The user and the job's name.

    Examples
    --------
    >>> [found.says for found in identities("/opt/bin/hacc_io", "ada", None)]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['the same executable and user', 'the same program and user',
     'the same executable, by anybody', 'the same program, by anybody']
    >>> [found.key for found in identities("./hacc_io", None, "night")]
    ['["hacc_io", null, null]']
    """
    return list(each_identity(executable, user, name))


def each_identity(executable: str | None, user: str | None, name: str | None) -> Iterator[Identity]:
    """Those of `identities` one after the other: most questions are answered by the first ones."""
    for which, says in _identities(executable, user, name):
        yield Identity(*which, json.dumps(which), says)


_Which = tuple[str | None, str | None, str | None]


def _identities(
    executable: str | None, user: str | None, name: str | None
) -> Iterator[tuple[_Which, str]]:
    known = []
    if executable and (program := program_of(executable)):
        if executable.startswith("/"):
            known.append((executable, "the same executable"))
        known.append((program, "the same program"))
    for one, says in known if user else ():
        if name:
            yield (one, user, name), f"{says}, user and job name"
        yield (one, user, None), f"{says} and user"
    for one, says in known:
        yield (one, None, None), f"{says}, by anybody"
    if user and name:
        yield (None, user, name), "the same user and job name"


@dataclass(frozen=True)
class Variant:
    """Runs that do the same I/O.

    Attributes
    ----------
    runs : tuple of int
        Their places in the list, the newest first.
    share : float
        Their share of the weights of all runs.
    """

    runs: tuple[int, ...]
    share: float


def weights(count: int) -> list[float]:
    """How much each of so many runs counts, the newest first: 0.8 of the next newer one."""
    return [_FADING**age for age in range(count)]


def variants(runs: Sequence[Sequence[Phase]]) -> list[Variant]:
    """Keep runs apart that do differing I/O, which must not be averaged.

    Parameters
    ----------
    runs : sequence of sequence of Phase
        The phases of each run, of about as many processes; the newest first.

    Returns
    -------
    list of Variant
        The one of most weight first; of equals the one with the newest run. A run belongs to
        the first variant whose newest run it is like: at least 0.8 of the bytes are of the
        same kinds, neither moves more than twice
        the bytes of the other, nor are its requests more than four times as large (geometric
        mean over the bytes).
    """
    kinds = [_bytes_of_kinds(phases) for phases in runs]
    sizes = [_typical_request(phases) for phases in runs]

    def alike_to(one: int, other: int) -> bool:
        apart = max(sizes[one], sizes[other]) / min(sizes[one], sizes[other])
        return apart <= _MOST_FACTOR_OF_REQUESTS and _alike(kinds[one], kinds[other])

    found: list[list[int]] = []
    for place in range(len(runs)):
        alike = (members for members in found if alike_to(place, members[0]))
        members = next(alike, None)
        if members is None:
            found.append([place])
        else:
            members.append(place)
    weight = weights(len(runs))
    total = sum(weight)
    shares = [Variant(tuple(members), sum(weight[i] for i in members) / total) for members in found]
    return sorted(shares, key=lambda variant: -variant.share)


def _bytes_of_kinds(phases: Sequence[Phase]) -> Counter[Kind]:
    moved: Counter[Kind] = Counter()
    for phase in phases:
        moved[phase.kind] += phase.bytes
    return moved


def _typical_request(phases: Sequence[Phase]) -> float:
    """The bytes of a request: the geometric mean, each weighted by what it moves."""
    parts = [part for phase in phases for part in phase.parts]
    moved = sum(part.bytes for part in parts)
    return exp(sum(part.bytes / moved * log(part.request_bytes) for part in parts))


def _alike(one: Counter[Kind], other: Counter[Kind]) -> bool:
    mine, theirs = one.total(), other.total()
    if not mine or not theirs:
        return mine == theirs
    common = sum(min(one[kind] / mine, other[kind] / theirs) for kind in one)
    return common >= _COMMON_SHARE and max(mine, theirs) <= _MOST_FACTOR * min(mine, theirs)


def scaled(phases: Sequence[Phase], processes: int) -> list[Phase]:
    """Phases as the same program would have them with other processes, each with as much to do.

    Phases of one process among several stay as they are. Of all others the processes grow in
    proportion, and with them requests and bytes; so does the number of files, but for files
    that all processes share, which grow themselves. Sizes of requests and times stay.

    Parameters
    ----------
    phases : sequence of Phase
        Of one run.
    processes : int
        The number of processes asked for.
    """
    before = max((phase.nprocs or phase.processes for phase in phases), default=1)
    return [_scaled(phase, before, processes) for phase in phases]


def _scaled(phase: Phase, before: int, after: int) -> Phase:
    if phase.processes == 1 < before:
        return replace(phase, nprocs=after)

    def grown(count: int) -> int:
        return max(round(count * after / before), 1)

    parts = tuple(_grown(part, grown(part.requests)) for part in phase.parts)
    # Some requests move nothing, and are in no part.
    empty = phase.requests - sum(part.requests for part in phase.parts)
    processes = min(grown(phase.processes), after)
    by_all = phase.file_access == "shared" and phase.mode_processes >= phase.processes
    return replace(
        phase,
        rank=phase.rank if processes == 1 else None,
        nprocs=after,
        processes=processes,
        bytes=sum(part.bytes for part in parts),
        requests=sum(part.requests for part in parts) + round(empty * after / before),
        parts=parts,
        n_files=phase.n_files if by_all else grown(phase.n_files),
        mode_processes=min(grown(phase.mode_processes) if by_all else phase.mode_processes, after),
    )


def _grown(part: Part, requests: int) -> Part:
    # In integers: of many bytes a float would lose some.
    moved = (2 * part.bytes * requests + part.requests) // (2 * part.requests)
    return Part(requests, max(moved, 1))
