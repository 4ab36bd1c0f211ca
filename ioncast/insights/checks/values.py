"""`Check`, the `Case` that it looks at, and its results: `Finding` and `Unknown`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from ioncast.insights.facts.values import Facts

Level = Literal["HIGH", "WARN", "OK", "INFO"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Thresholds:
    """The numbers that checks compare with, each a key of the settings file.

    Attributes
    ----------
    least_count : int
        So few requests, or fewer, never make a finding about small or random ones, or about
        independent ones of MPI-IO.
    small_share : float
        P05, P06, P15, P16: the share of small requests.
    """

    least_count: int = 1000
    small_share: float = 0.1


@dataclass(frozen=True)
class Allocation:
    """The I/O nodes that a job had, and those that it would get; made outside of this room.

    Attributes
    ----------
    io_nodes : int
        The I/O nodes that the job had.
    decided : int
        The I/O nodes that ioncast's decision gives it.
    expected_mib_s, decided_mib_s : float
        The expected bandwidth with each.
    """

    io_nodes: int
    decided: int
    expected_mib_s: float
    decided_mib_s: float


@dataclass(frozen=True)
class Case:
    """All that a check may look at."""

    facts: Facts
    thresholds: Thresholds = field(default_factory=Thresholds)
    allocation: Allocation | None = None


@dataclass(frozen=True)
class FileShare:
    """A file of a finding, with its count and its share of all files' counts (0 to 1)."""

    path: str
    number: float
    share: float | None = None


@dataclass(frozen=True)
class Finding:
    """The result of a check that applies.

    Attributes
    ----------
    level : str
        HIGH: very likely harmful. WARN: may be harmful. OK: good practice. INFO: a fact.
    numbers : mapping of str to number or str
        The values that the check's sentence names.
    thresholds : mapping of str to number
        The values that they were compared with, by the name in `Thresholds`.
    files : tuple of FileShare
        The files that are concerned, the worst first.
    ranks : tuple of int
        The processes that are concerned, the worst first.
    variant : str
        The name of the check's sentence that fits; empty for the main one.
    """

    level: Level
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    files: tuple[FileShare, ...] = ()
    ranks: tuple[int, ...] = ()
    variant: str = ""


@dataclass(frozen=True)
class Unknown:
    """The result of a check that cannot be evaluated, with the data that it lacks."""

    reason: str


Result: TypeAlias = Finding | Unknown | None
Find: TypeAlias = Callable[[Case], Result]


@dataclass(frozen=True)
class Sentence:
    """A template for `str.format` with a finding's numbers, and the keys of its advice."""

    template: str
    advice: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """A check.

    Attributes
    ----------
    code : str
        Such as "P06"; those of a site begin with another letter than ours.
    title : str
        The thing that it looks for, in a few words.
    source : str
        The paper or the tool that describes it.
    sentences : mapping of str to Sentence
        By `Finding.variant`; the main one has the empty name.
    find : callable
        Returns a finding, the reason why there can be none, or None if it does not apply.
    """

    code: str
    title: str
    source: str
    sentences: Mapping[str, Sentence]
    find: Find


@dataclass(frozen=True)
class Applied:
    """A check and its finding."""

    check: Check
    finding: Finding


@dataclass(frozen=True)
class Checked:
    """The results of all checks of one run.

    Attributes
    ----------
    findings : tuple of Applied
        "Too little I/O to matter" first, then by level and code.
    unknown : mapping of str to str
        For each check that could not be evaluated the reason, by code.
    """

    findings: tuple[Applied, ...]
    unknown: Mapping[str, str]
