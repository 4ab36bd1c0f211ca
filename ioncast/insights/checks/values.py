"""`Check`, the `Case` that it looks at, and its results: `Finding` and `Unknown`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, get_args

from ioncast.insights.facts.aggregating_ranks import Aggregators, aggregators_of
from ioncast.insights.facts.collective_calls import Collectives, collectives_of
from ioncast.insights.facts.file_times import FileTimes, file_times_of
from ioncast.insights.facts.process_times import ProcessTimes, process_times_of
from ioncast.insights.facts.rank_totals import RankFacts, ranks_of
from ioncast.insights.facts.slowest_ranks import SharedFiles, shared_files_of
from ioncast.insights.facts.values import Facts, Floats
from ioncast_base.kinds import Api
from summario.requests.trace_phases import TracePhases, trace_phases

Level = Literal["HIGH", "WARN", "OK", "INFO"]
LEVELS: tuple[Level, ...] = get_args(Level)
# "unknown": the finding may cost time, but the log does not tell how much. "none": it costs none.
Importance = Literal["major", "minor", "unknown", "negligible", "none"]
IMPORTANCES: tuple[Importance, ...] = get_args(Importance)
# A reader looks at the worst files and processes, and a run may have a million.
MOST_FILES = 20
MOST_RANKS = 100
_TRACED: tuple[Api, ...] = ("MPIIO", "POSIX")


@dataclass(frozen=True)
class Thresholds:
    """The numbers that checks compare with, each a key of the settings file.

    Attributes
    ----------
    least_count : int
        A finding of P05, P06, P11, P13, P15, P16, M02 and M03 needs more requests of its kind.
    stdio_share : float
        S01: the share of all bytes that STDIO moves.
    difference_share : float
        P01 to P04: the difference of reads and writes, as a share of both.
    small_share : float
        P05, P06, P15, P16: the share of requests below 1 MiB. M02, M03, I07: with a smaller share
        in each file the finding is only a fact.
    unaligned_share : float
        P07, P08: the share of requests that are not aligned.
    repeated_factor : float
        P09, P10: bytes that are read or written, as a multiple of the file's size.
    random_share : float
        P11, P13: the share of random requests.
    ordered_share : float
        P12, P14: the share of requests that are not random.
    independent_share : float
        M02, M03: the share of reads, or of writes, among the independent calls of a file that is
        named.
    metadata_seconds : float
        P17: the metadata time of a process.
    metadata_share : float
        I02: the share of metadata time in the I/O time.
    slowest_bytes_share : float
        P18: the difference between the bytes of the slowest and of the fastest process, as a share
        of the file's bytes.
    slowest_time_share : float
        P19: the difference between their times, as a share of the time of all processes.
    slowest_seconds : float
        P19: the difference between their times.
    rank_bytes_share : float
        P21, P22: the difference between the most and the fewest bytes of a process, as a share of
        the most.
    missing_share : float
        D01, D02: the share of the bytes whose process a source need not tell.
    rank_0_factor : float
        D01: the factor by which rank 0 does more than the next process.
    rank_0_bytes : int
        D01, D02: rank 0, or the process, moves more bytes than these. P18: a file has more.
    mean_share : float
        D02: the share of the mean by which the largest value of a metric exceeds it.
    deviations : float
        D02: the number of standard deviations by which a process exceeds the mean.
    straggler_share : float
        D03: the share of a trace phase by which a straggler ends later than the median process.
    time_distance_seconds : float
        D03, I05: a longer pause always ends a trace phase.
    shortest_pause_seconds : float
        D03, I05: a shorter pause never ends a trace phase.
    most_trace_phases : int
        I05: so many trace phases, or fewer, are never too many.
    aggregator_share : float
        M08, M09, M10: the share of a file's bytes that an aggregator moves, at least.
    collective_share : float
        M08, M09, M10: the share of the bytes of POSIX that collective calls cause.
    alike_share : float
        I07: the share of the collective calls that are POSIX requests of the same process and size.
    one_stripe_bytes : int
        I03: the size of a file that needs more than one stripe.
    ost_share_good : float
        I04: from this share of the file system's OSTs on, their use is good.
    ost_share_bad : float
        I04: below this share of the OSTs, their use is bad.
    osts : int
        I04: the OSTs of the file system, for logs that do not tell it; 0: not known.
    io_time_share : float
        I06: the share of I/O time in the run time.
    slow_process_factor : float
        I08: the time of a process, as a multiple of the median.
    ost_correlation : float
        I09: Pearson's r between the bandwidth of files and their share on an OST is smaller.
    ost_probability : float
        I09: the probability of such a correlation by chance, on any of the OSTs, is smaller.
    major_share, minor_share : float
        From this share of the run time on, the time at stake makes a finding major, or minor.
    fail_on_levels : bool
        Whether `--fail-on` may also name a published level, high or warn.
    """

    least_count: int = 1000
    stdio_share: float = 0.1
    difference_share: float = 0.1
    small_share: float = 0.1
    unaligned_share: float = 0.1
    repeated_factor: float = 1.1
    random_share: float = 0.2
    ordered_share: float = 0.8
    independent_share: float = 0.5
    metadata_seconds: float = 30.0
    metadata_share: float = 0.23
    slowest_bytes_share: float = 0.15
    slowest_time_share: float = 0.15
    slowest_seconds: float = 1.0
    rank_bytes_share: float = 0.3
    missing_share: float = 0.1
    rank_0_factor: float = 1.15
    rank_0_bytes: int = 1 << 20
    mean_share: float = 0.15
    deviations: float = 1.0
    straggler_share: float = 0.15
    time_distance_seconds: float = 1.0
    shortest_pause_seconds: float = 0.1
    most_trace_phases: int = 100
    aggregator_share: float = 0.01
    collective_share: float = 0.9
    alike_share: float = 0.9
    one_stripe_bytes: int = 1 << 30
    ost_share_good: float = 0.5
    ost_share_bad: float = 0.1
    osts: int = 0
    io_time_share: float = 0.01
    slow_process_factor: float = 2.0
    ost_correlation: float = -0.5
    ost_probability: float = 0.01
    major_share: float = 0.1
    minor_share: float = 0.01
    fail_on_levels: bool = False


@dataclass(frozen=True)
class IoNodesOfRun:
    """The I/O nodes that a job had, and those that ioncast's decision gives it, with bandwidths."""

    io_nodes: int
    decided: int
    expected_mib_s: float
    decided_mib_s: float


@dataclass(frozen=True)
class Case:
    """All that a check may look at; several checks look at the properties, so they are kept."""

    facts: Facts
    thresholds: Thresholds = field(default_factory=Thresholds)
    allocation: IoNodesOfRun | None = None

    @cached_property
    def times(self) -> ProcessTimes:
        """The time that I/O takes of the slowest process, by file."""
        return process_times_of(self.facts)

    @cached_property
    def file_times(self) -> FileTimes:
        """The time of all processes together, by file."""
        return file_times_of(self.facts, self.shared_files)

    @cached_property
    def ranks(self) -> RankFacts | None:
        """Requests, bytes and time of each process; None if the log does not tell them."""
        return ranks_of(self.facts, self.thresholds.missing_share)

    @cached_property
    def shared_files(self) -> SharedFiles:
        """The slowest and the fastest process of each shared file."""
        return shared_files_of(self.facts)

    @cached_property
    def collectives(self) -> Collectives:
        """The files with collective calls."""
        return collectives_of(self.facts, self.thresholds.alike_share)

    @cached_property
    def aggregators(self) -> Aggregators | None:
        """The aggregators of collective calls; None if the log does not tell them."""
        return aggregators_of(
            self.facts,
            self.collectives,
            least_share=self.thresholds.aggregator_share,
            collective_share=self.thresholds.collective_share,
        )

    @cached_property
    def trace_phases(self) -> Mapping[Api, TracePhases]:
        """The trace phases of MPI-IO and of POSIX; empty without a trace."""
        if self.facts.trace is None:
            return {}
        return {
            api: trace_phases(
                self.facts.trace,
                api,
                time_distance=self.thresholds.time_distance_seconds,
                shortest_pause=self.thresholds.shortest_pause_seconds,
                straggler_share=self.thresholds.straggler_share,
            )
            for api in _TRACED
        }


@dataclass(frozen=True)
class FileShare:
    """A file of a finding, with its count, and its share of all counts (0 to 1) if it has one."""

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
    numbers, thresholds : mapping of str to number (or str)
        The values that the check's sentence (`variant`, empty for the main one) names, and those
        that they were compared with.
    files, ranks : tuple of FileShare, tuple of int
        Those concerned, the worst first, at most `MOST_FILES` and `MOST_RANKS`. The number of all
        files is `numbers["files"]`.
    at_stake : ndarray of shape (3, files) or None
        The seconds that the finding can cost at most, as in `ProcessTimes`, or an estimate if
        `is_estimate`; None if the log does not tell them, or if the finding costs no time.
    """

    level: Level
    numbers: Mapping[str, float | str] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    files: tuple[FileShare, ...] = ()
    ranks: tuple[int, ...] = ()
    variant: str = ""
    at_stake: Floats | None = field(default=None, compare=False)
    is_estimate: bool = False


@dataclass(frozen=True)
class Unknown:
    """The result of a check that cannot be evaluated, with the data that it lacks."""

    reason: str


Result: TypeAlias = Finding | Unknown | None
Find: TypeAlias = Callable[[Case], Result]


@dataclass(frozen=True)
class Advice:
    """A thing to do; `key` is its name, the same for all checks that give this advice.

    `snippets` are code or commands by library: mpiio, hdf5, pnetcdf, netcdf, adios, posix, lustre.
    The run must use a library of `only`, if that is not empty, and fulfil the conditions `needs`,
    names of `ioncast.insights.checks.advice_conditions.CONDITIONS`.
    """

    key: str
    sentence: str
    snippets: Mapping[str, str] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sentence:
    """The words of a finding, a template for `sentences.in_words`, and the advice that fits."""

    template: str
    advice: tuple[Advice, ...] = ()


@dataclass(frozen=True)
class Check:
    """A check, whose `code` is such as "P06"; those of a site begin with another letter than ours.

    Attributes
    ----------
    levels : tuple of str
        The levels that its findings may have, the worst first.
    condition, source : str
        A template of `str.format` with names of thresholds; the paper or tool that describes it.
    sentences : mapping of str to Sentence
        By `Finding.variant`; the main one has the empty name.
    find : callable
        Returns a finding, the reason why there can be none, or None if it does not apply.
    file_words : str
        The template for a file of a finding, with `number` and `share`.
    cause : str
        The cause of slow I/O that it looks for, shared with other checks; by default its title.
    """

    code: str
    title: str
    levels: tuple[Level, ...]
    condition: str
    source: str
    sentences: Mapping[str, Sentence]
    find: Find
    file_words: str = "{number:,} ({share:.2%})"
    cause: str = ""

    def condition_with(self, thresholds: Thresholds) -> str:
        """Write the condition with numbers; a bad template raises LookupError or ValueError."""
        return self.condition.format_map(vars(thresholds))


@dataclass(frozen=True)
class Applied:
    """A check and its finding, with both in words.

    `seconds_at_stake`, a `share_of_run` (0 to 1), are the most that it can cost; None: not known.
    """

    check: Check
    finding: Finding
    sentence: str
    file_words: tuple[str, ...]
    seconds_at_stake: float | None
    share_of_run: float | None
    importance: Importance

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The advice that fits the finding, for a run that uses any library."""
        return self.check.sentences[self.finding.variant].advice


@dataclass(frozen=True)
class CheckedCause:
    """A cause of slow I/O, its findings by importance, and the time that all can cost at most."""

    name: str
    findings: tuple[Applied, ...]
    seconds_at_stake: float | None
    share_of_run: float | None
    importance: Importance

    @property
    def is_estimate(self) -> bool:
        """Whether the seconds are an estimate instead of an upper bound."""
        return any(finding.finding.is_estimate for finding in self.findings)


@dataclass(frozen=True)
class Verdict:
    """How much of the run time I/O takes, and how much of it could be saved.

    `run_seconds` is 0 if the log does not tell it. The I/O times are of the slowest process, or
    means (`is_mean`); the bytes are of all. Time of several findings counts once in
    `at_stake_seconds`. From these shares of the run time on a cause is major, or minor.
    """

    run_seconds: float
    read_seconds: float
    write_seconds: float
    metadata_seconds: float
    is_mean: bool
    bytes: int
    at_stake_seconds: float
    major_share: float
    minor_share: float

    @property
    def io_seconds(self) -> float:
        """The time in I/O and metadata."""
        return self.read_seconds + self.write_seconds + self.metadata_seconds


@dataclass(frozen=True)
class Checked:
    """The results of all checks of one run.

    `causes` are by importance, then by the seconds at stake; `others` are findings that cost no
    time. `unknown` has the reason, by code, of each check that could not be evaluated.
    """

    verdict: Verdict
    causes: tuple[CheckedCause, ...]
    others: tuple[Applied, ...]
    unknown: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Applied, ...]:
        """All findings: those of the causes, and then the others."""
        return (*(finding for cause in self.causes for finding in cause.findings), *self.others)
