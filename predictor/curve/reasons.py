"""Reasons of a decision as values, and the clause in plain English that is made from them."""

from __future__ import annotations

from dataclasses import dataclass

from ioncast_base.wording import in_digits, in_words

# A larger share would be rounded to 100 %, but it is less than the best.
_NEARLY_ALL = 0.995


@dataclass(frozen=True)
class Unavailable:
    """A number of I/O nodes that would be better than the chosen one, but is not available.

    Attributes
    ----------
    gain : float
        Its expected bandwidth over that of the chosen number, minus 1.
    """

    io_nodes: int
    gain: float
    available: int


@dataclass(frozen=True)
class Chosen:
    """A number of I/O nodes was chosen from a curve.

    Attributes
    ----------
    bandwidth_mib_s : float
        Its expected bandwidth, in MiB/s.
    best_mib_s : float
        Its expected bandwidth, in MiB/s.
    is_limited : bool
        Whether the curve has more numbers, which were not compared because so many I/O nodes
        are not available.
    """

    io_nodes: int
    bandwidth_mib_s: float
    best_io_nodes: int
    best_mib_s: float
    compared: int
    is_limited: bool
    unavailable: Unavailable | None


@dataclass(frozen=True)
class Unsure:
    """The number that a curve would choose is not likely enough to be near the best.

    `probability` is that of reaching `share_of_best`. `run_with` is the number of I/O nodes of the
    run that would tell most; None if no run would tell, because jobs of this name do different I/O.
    """

    io_nodes: int
    share_of_best: float
    probability: float
    run_with: int | None
    is_enough: bool


@dataclass(frozen=True)
class Defaulted:
    """Nothing was chosen from a curve: the site's default holds, if it has one.

    `available` is the most I/O nodes that the job may get, where that is less than the default.
    """

    cause: str | Unsure
    default: int | None
    available: int | None


def cause_in_words(cause: str | Unsure) -> str:
    """Say why nothing was chosen and what would help, as a clause.

    Examples
    --------
    >>> cause_in_words(Unsure(4, 0.9, 0.381, run_with=8, is_enough=True))
    ... # doctest: +NORMALIZE_WHITESPACE
    '4 I/O nodes would reach 90% of the best bandwidth with a probability of only 38% (run once with
     8 I/O nodes, and the next job may be decided)'
    """
    if isinstance(cause, str):
        return cause
    return (
        f"{in_words(cause.io_nodes)} would reach {cause.share_of_best:.0%} of the best bandwidth"
        f" with a probability of only {cause.probability:.0%} ({_help(cause)})"
    )


def _help(cause: Unsure) -> str:
    """Say what would help to decide the next job."""
    if cause.run_with is None:
        return "give jobs with different I/O different names"
    if cause.is_enough:
        return f"run once with {in_words(cause.run_with)}, and the next job may be decided"
    return f"several runs would help, the first with {in_words(cause.run_with)}"


def clause(reason: Chosen | Defaulted) -> str:
    """Say a reason in plain English, as a clause without a full stop."""
    if isinstance(reason, Defaulted):
        return _defaulted(reason)
    if reason.unavailable is None:
        return without_limit(reason)
    return without_limit(reason) + limit(reason.unavailable.available)


def without_limit(reason: Chosen) -> str:
    """Say a reason up to the number of available I/O nodes, which `limit` adds.

    Examples
    --------
    >>> better = Unavailable(io_nodes=8, gain=0.3, available=4)
    >>> without_limit(Chosen(4, 100.0, 4, 100.0, 3, True, better)) + limit(4)
    ... # doctest: +NORMALIZE_WHITESPACE
    '4 I/O nodes give the highest expected bandwidth available, 100 MiB/s;
     8 would give 30% more, but at most 4 are available'
    """
    if reason.unavailable is None:
        alone = reason.compared == 1
        among = " available" if reason.is_limited else ""
        return _quality(reason) + (f"; nothing else{among} is known" if alone else "")
    gain = reason.unavailable.gain
    more = f"{gain:.0%}" if gain >= 0.01 else "less than 1%"
    return f"{_quality(reason)}; {reason.unavailable.io_nodes} would give {more} more, but "


def limit(available: int) -> str:
    """Say how many I/O nodes a job may get at most."""
    if available == 0:
        return "no I/O node is available"
    return f"at most {available} {'is' if available == 1 else 'are'} available"


def nothing_known(available: int | None) -> str:
    """Say that no bandwidth is known, at all or with as many I/O nodes as are `available`."""
    if available is None:
        return "nothing is known about this job"
    with_these = in_words(0) if available == 0 else f"at most {in_words(available)}"
    return f"no bandwidth is known with {with_these}"


def trial_in_words(io_nodes: int, chosen: int, loss: float) -> str:
    """Say why another number of I/O nodes than the chosen one is tried.

    Examples
    --------
    >>> trial_in_words(2, 8, 0.031)
    '2 I/O nodes are tried, because they may be better than 8; 3% less is expected'
    """
    them = "they" if io_nodes > 1 else "it"
    tried = f"{in_words(io_nodes)} {'are' if io_nodes > 1 else 'is'} tried"
    less = f"{loss:.0%} less" if loss >= 0.005 else "about as much"
    other = str(chosen) if chosen else in_words(0)
    return f"{tried}, because {them} may be better than {other}; {less} is expected"


def _quality(reason: Chosen) -> str:
    """Say how good the chosen number is among those that were compared."""
    gives = f"{in_words(reason.io_nodes)} {'give' if reason.io_nodes > 1 else 'gives'}"
    bandwidth = f"{in_digits(reason.bandwidth_mib_s)} MiB/s"
    if reason.compared == 1:
        return f"{gives} {bandwidth}"
    among = " available" if reason.is_limited else ""
    if reason.best_io_nodes == reason.io_nodes:
        return f"{gives} the highest expected bandwidth{among}, {bandwidth}"
    ratio = reason.bandwidth_mib_s / reason.best_mib_s
    share = f"{ratio:.0%}" if ratio < _NEARLY_ALL else "nearly 100%"
    best = f"{in_digits(reason.best_mib_s)} MiB/s with {in_words(reason.best_io_nodes)}"
    return f"{gives} {bandwidth}, {share} of the best{among} ({best})"


def _defaulted(reason: Defaulted) -> str:
    cause = cause_in_words(reason.cause)
    if reason.default is None:
        return f"{cause}, and the site has no default"
    if reason.available is None:
        return f"the site's default, because {cause}"
    limited = f"{reason.default}, but {limit(reason.available)}"
    return f"the site's default ({limited}), because {cause}"
