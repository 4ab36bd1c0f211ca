"""The same application: its earlier runs, which of them do the same I/O, and how they scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING, NamedTuple

from ioncast_base.files import program_of
from ioncast_base.kinds import Kind

if TYPE_CHECKING:
    # The process that answers schedulers recognises applications, and starts faster without NumPy.
    from summario.phases.values import Part, Phase

# The weight of a run is this share of the weight of the next newer one.
_FADING = 0.8
# Two runs are alike if at least this share of their bytes is of the same kinds of I/O, ...
_COMMON_SHARE = 0.8
# ... if their bytes differ by at most this factor, ...
_MOST_FACTOR = 2.0
# ... and if their request sizes, on which bandwidth depends as well, differ by at most this factor.
_MOST_FACTOR_OF_REQUESTS = 4.0


# A kind of I/O, and whether fsync follows each write: such writes are many times slower.
_KindAndFsync = tuple[Kind, bool]


class Identity(NamedTuple):
    """One way to recognise an application by executable, user and job name; None does not count.

    `executable` is an absolute path or the program's name. `key` has the three values, as the key
    of prepared answers; `says` follows "earlier runs of".
    """

    executable: str | None
    user: str | None
    name: str | None
    key: str
    says: str


def identities(executable: str | None, user: str | None, name: str | None) -> list[Identity]:
    """List the identities of a job, the most telling first.

    An answer is prepared for every identity of a run, and looked up by every identity of a job.

    Parameters
    ----------
    executable : str or None
        A path or a program's name. A relative path counts as the program's name, because jobs
        start in different folders.

    Examples
    --------
    >>> [found.says for found in identities("/opt/bin/hacc_io", "ada", None)]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['the same executable and user', 'the same program and user',
     'the same executable, by anybody', 'the same program, by anybody']
    >>> [found.key for found in identities("./hacc_io", None, "night")]
    ['7 0 hacc_io']
    """
    return list(each_identity(executable, user, name))


def each_identity(executable: str | None, user: str | None, name: str | None) -> Iterator[Identity]:
    """Yield the same one by one, because the first ones answer most questions."""
    for which, says in _identities(executable, user, name):
        yield Identity(*which, _key(*which), says)


def _key(executable: str | None, user: str | None, name: str | None) -> str:
    # Each answer to a scheduler makes up to seven keys. JSON would take ten times as long. The
    # lengths tell where one text ends and the next begins.
    executable, user, name = executable or "", user or "", name or ""
    return f"{len(executable)} {len(user)} {executable}{user}{name}"


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
    """Runs that do the same I/O: indices, the newest first, and their share of all weights."""

    runs: tuple[int, ...]
    share: float


def weights(count: int) -> list[float]:
    """Weigh `count` runs, the newest first: each has 0.8 of the weight of the next newer one."""
    return [_FADING**age for age in range(count)]


def variants(runs: Sequence[Sequence[Phase]]) -> list[Variant]:
    """Group runs that do the same I/O; runs with different I/O must not be averaged.

    A run joins the first variant whose newest run is like it. Two runs are alike if at least 0.8 of
    their bytes are of the same kinds of I/O, one moves at most twice the bytes of the other, and
    the requests of one are at most four times as large as those of the other (geometric mean,
    weighted by bytes). The newest run comes first in `runs`, and all have about as many processes.
    The result begins with the variant with the most weight; of equal ones with the newest.
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


def _bytes_of_kinds(phases: Sequence[Phase]) -> Counter[_KindAndFsync]:
    moved: Counter[_KindAndFsync] = Counter()
    for phase in phases:
        moved[phase.kind, phase.fsync == "each"] += phase.bytes
    return moved


def _typical_request(phases: Sequence[Phase]) -> float:
    """Bytes of a request: the geometric mean, weighted by bytes."""
    parts = [part for phase in phases for part in phase.parts]
    moved = sum(part.bytes for part in parts)
    return exp(sum(part.bytes / moved * log(part.request_bytes) for part in parts))


def _alike(one: Counter[_KindAndFsync], other: Counter[_KindAndFsync]) -> bool:
    mine, theirs = one.total(), other.total()
    if not mine or not theirs:
        return mine == theirs
    common = sum(min(one[kind] / mine, other[kind] / theirs) for kind in one)
    return common >= _COMMON_SHARE and max(mine, theirs) <= _MOST_FACTOR * min(mine, theirs)


def scaled(phases: Sequence[Phase], processes: int) -> list[Phase]:
    """Scale the phases of a run to another number of processes, at the same bytes per process.

    Phases of one process among several stay as they are. In all others the processes, requests and
    bytes grow in proportion. So does the number of files, unless all processes share them. Request
    sizes and times stay.
    """
    before = max((phase.nprocs or phase.processes for phase in phases), default=1)
    return [_scaled(phase, before, processes) for phase in phases]


def _scaled(phase: Phase, before: int, after: int) -> Phase:
    if phase.processes == 1 < before:
        return replace(phase, nprocs=after)

    def grown(count: int) -> int:
        return max(round(count * after / before), 1)

    parts = tuple(_grown(part, grown(part.requests)) for part in phase.parts)
    # Requests of 0 bytes are in no part.
    empty = phase.requests - sum(part.requests for part in phase.parts)
    processes = min(grown(phase.processes), after)
    by_all = phase.file_access == "shared" and phase.mode_processes >= phase.processes
    return replace(
        phase,
        rank=phase.rank if processes == 1 else None,
        nprocs=after,
        processes=processes,
        bytes=sum(part.bytes for part in parts) or grown(phase.bytes),
        requests=sum(part.requests for part in parts) + round(empty * after / before),
        parts=parts,
        n_files=phase.n_files if by_all else grown(phase.n_files),
        mode_processes=min(grown(phase.mode_processes) if by_all else phase.mode_processes, after),
    )


def _grown(part: Part, requests: int) -> Part:
    # Integers, because a float is not exact beyond 2**53 bytes.
    moved = (2 * part.bytes * requests + part.requests) // (2 * part.requests)
    return replace(part, requests=requests, bytes=max(moved, 1))
