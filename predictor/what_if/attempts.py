"""The pieces of advice that are tried for a run: those of its checks, and another file access."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from ioncast_base.kinds import OPERATIONS, SMALL_REQUEST_BYTES, Operation
from ior_configs import IorConfig
from predictor.matching.configurations import configuration
from predictor.what_if.changes import (
    collective,
    contiguous,
    larger,
    one_file,
    own_files,
    without_repeats,
)
from summario.phases.values import Phase

Key = Literal["larger", "collective", "contiguous", "once", "one_file", "own_files", "asynchronous"]
KEYS: tuple[Key, ...] = get_args(Key)
NAMES: Mapping[Key, str] = {
    "larger": "larger requests",
    "collective": "collective MPI-IO calls",
    "contiguous": "contiguous requests",
    "once": "each byte moved once",
    "one_file": "one file for all processes",
    "own_files": "a file for each process",
    "asynchronous": "asynchronous I/O",
}
# No check asks for another file access: either may be faster.
_ALWAYS: tuple[Key, ...] = ("one_file", "own_files")
_CODES: Mapping[str, tuple[Key, Operation]] = {
    "P05": ("larger", "read"),
    "P06": ("larger", "write"),
    "M02": ("collective", "read"),
    "P15": ("collective", "read"),
    "M03": ("collective", "write"),
    "P16": ("collective", "write"),
    "P11": ("contiguous", "read"),
    "P13": ("contiguous", "write"),
    "P09": ("once", "read"),
    "P10": ("once", "write"),
    "M06": ("asynchronous", "read"),
    "M07": ("asynchronous", "write"),
}
# The size of larger requests is chosen last, because it depends on the kind of I/O.
_TOGETHER: tuple[tuple[Key, Key], ...] = (("collective", "larger"), ("contiguous", "larger"))

Change = Callable[[Phase], Phase]
RequestSizes = Callable[[IorConfig], Sequence[int]]


class FilesOfKind(NamedTuple):
    """The files of one operation, api and file access."""

    operation: str
    api: str
    file_access: str


@dataclass(frozen=True)
class Hints:
    """The results of the checks of a run.

    Attributes
    ----------
    kept : mapping of FilesOfKind to float
        The share of the bytes that would be left if each byte moved once; 1 for all others.
    """

    codes: frozenset[str]
    kept: Mapping[FilesOfKind, float] = field(default_factory=dict)

    def codes_of(self, key: Key) -> tuple[str, ...]:
        """The codes that ask for a piece of advice."""
        return tuple(code for code, (own, _) in _CODES.items() if own == key and code in self.codes)

    def operations_of(self, key: Key) -> frozenset[Operation]:
        """The operations that a piece of advice concerns."""
        if key in _ALWAYS:
            return frozenset(OPERATIONS)
        return frozenset(_CODES[code][1] for code in self.codes_of(key))


@dataclass(frozen=True)
class Attempt:
    """A piece of advice, or two together, and the phases of the program that follows it.

    Attributes
    ----------
    phases : tuple of Phase
        All phases of the run; those that the advice does not concern are unchanged.
    """

    keys: tuple[Key, ...]
    codes: tuple[str, ...]
    phases: tuple[Phase, ...]


def attempts_of(
    phases: Sequence[Phase],
    hints: Hints,
    request_sizes: RequestSizes,
    *,
    buffer_bytes: int | None = None,
) -> list[Attempt]:
    """Change the phases of a run as its checks advise.

    Advice that changes no phase is left out, and so are two pieces together that change no more
    than one of them.
    """
    changes = dict(_changes(hints, request_sizes, buffer_bytes))
    found: dict[tuple[Phase, ...], Attempt] = {}
    ways: list[tuple[Key, ...]] = [(key,) for key in changes]
    ways += [pair for pair in _TOGETHER if changes.keys() >= set(pair)]
    for keys in ways:
        changed = tuple(phases)
        for key in keys:
            changed = tuple(map(changes[key], changed))
        codes = tuple(code for key in keys for code in hints.codes_of(key))
        if changed != tuple(phases):
            found.setdefault(changed, Attempt(keys, codes, changed))
    return list(found.values())


def _changes(
    hints: Hints, request_sizes: RequestSizes, buffer_bytes: int | None
) -> Iterator[tuple[Key, Change]]:
    """Yield the change of each piece of advice that concerns an operation."""

    def enlarged(phase: Phase) -> Phase:
        size = buffer_bytes or _next_size(phase, request_sizes)
        return larger(phase, size)

    def once(phase: Phase) -> Phase:
        files = FilesOfKind(phase.operation, phase.api, phase.file_access)
        return without_repeats(phase, hints.kept.get(files, 1.0))

    changes: Mapping[Key, Change] = {
        "larger": enlarged,
        "collective": collective,
        "contiguous": contiguous,
        "once": once,
        "one_file": one_file,
        "own_files": own_files,
    }
    for key, change in changes.items():
        operations = hints.operations_of(key)
        if operations:
            yield key, _only(operations, change)


def _only(operations: Collection[Operation], change: Change) -> Change:
    return lambda phase: change(phase) if phase.operation in operations else phase


def _next_size(phase: Phase, request_sizes: RequestSizes) -> int:
    """The smallest measured request size of the phase's kind that is not small."""
    if not phase.parts:
        return SMALL_REQUEST_BYTES
    sizes = request_sizes(configuration(phase, phase.parts[0]))
    return min((size for size in sizes if size >= SMALL_REQUEST_BYTES), default=SMALL_REQUEST_BYTES)
