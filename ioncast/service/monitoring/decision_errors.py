"""Compare decisions with the outcomes of their jobs: errors so far, and drift."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Annotated, Any

from pydantic import Field

from ioncast.service.monitoring.control_chart import control_chart, moving_averages
from ioncast.service.store.decisions import DecisionRow
from ioncast.service.store.outcomes import JoinedOutcome
from predictor.model.plausible import IMPLAUSIBLE_FACTOR, is_implausible_beside
from predictor.validation.against_reruns import Errors, Expected, error, errors, mean_of_cells

# Only this many of a system's newest outcomes count, because older ones tell little about the
# present decisions.
COUNTED = 1000
# The name of the kind of I/O if no run is known.
UNKNOWN = "unknown"
# Distance from p10 to p90 of a normal distribution, in standard deviations.
_TENTH_TO_NINETIETH = 2.563
# Smallest standard deviation of a prediction's logarithm, for intervals without width.
_LEAST_DEVIATION = 0.01
# Number of newest outcomes in the ratio of a drift.
_NEWEST = 10
_WORST = 10
# Of the field `implausible` of answers.
IMPLAUSIBLE = (
    f"Whether the bandwidth is more than {IMPLAUSIBLE_FACTOR:g} times the p90 that was expected, as"
    " of a log of another machine or of a run from a cache. It corrects no prediction."
)
_TWO = 2


@dataclass(frozen=True)
class Judged:
    """A decision, compared with the outcome of its job.

    The pattern is the kind of I/O that moves most of the job's bytes, or `UNKNOWN`. The regret is
    1 - mean with the number decided on / highest mean, over all outcomes of the application with as
    many processes and at most as many I/O nodes as were available, without implausible ones. It
    needs outcomes with that number and with at least one other number.
    """

    outcome_id: int
    decision_id: str
    system: str
    job_id: str
    started: Annotated[
        str | None, Field(description="When this run of the job started; null if it is unknown.")
    ]
    application_id: int | None
    executable: str | None
    user: str | None
    pattern: str
    source: str
    decided: Annotated[int | None, Field(description="The number of I/O nodes that was decided.")]
    io_nodes: Annotated[int, Field(description="The number of I/O nodes that the job had.")]
    observed_mib_s: float
    expected: Annotated[
        Expected | None,
        Field(description="Expected with the job's I/O nodes, in MiB/s: mean, p10 and p90."),
    ]
    error: Annotated[float | None, Field(description="|expected - observed| / observed.")]
    inside: Annotated[bool | None, Field(description="Whether the outcome is between p10 and p90.")]
    implausible: Annotated[bool, Field(description=IMPLAUSIBLE)]
    regret: float | None
    reported_at: str


@dataclass(frozen=True)
class ErrorSummary:
    """Numbers about some decisions; null if nothing could be compared."""

    system: str
    name: Annotated[
        str,
        Field(description="The system, the application (`EXECUTABLE of USER`) or the source."),
    ]
    application_id: int | None
    decisions: Annotated[int, Field(description="The number of decisions with an outcome.")]
    errors: Annotated[Errors | None, Field(description="The relative errors.")]
    coverage: Annotated[
        float | None,
        Field(description="The share of outcomes between p10 and p90; 0.8 is intended."),
    ]
    regret: Annotated[float | None, Field(description="The mean share of bandwidth that was lost.")]


@dataclass(frozen=True)
class ErrorsSoFar:
    """The errors of decisions so far, of the outcomes that count; the ten worst, the largest first.

    `before_change` are from before the newest change of their system. `outcomes` also counts those
    without a decision.
    """

    outcomes: int
    judged: tuple[Judged, ...]
    before_change: tuple[Judged, ...]
    systems: tuple[ErrorSummary, ...]
    applications: tuple[ErrorSummary, ...]
    sources: tuple[ErrorSummary, ...]
    worst: tuple[Judged, ...]


@dataclass(frozen=True)
class Drift:
    """Whether outcomes of a kind of I/O on a system still agree with expectations.

    `ewma` averages (ln observed - ln expected) / sigma. `ratio` is a geometric mean. `since` is the
    time of the outcome that brought the average beyond the limit.
    """

    system: str
    pattern: Annotated[
        str | None, Field(description="The kind of I/O; null for all kinds together.")
    ]
    count: Annotated[int, Field(description="The number of outcomes with an expectation.")]
    ewma: Annotated[
        float, Field(description="The moving average of errors, in standard deviations.")
    ]
    limit: Annotated[
        float,
        Field(description="The average stays within this limit, up or down, if nothing changed."),
    ]
    drifted: bool
    ratio: Annotated[float, Field(description="Observed / expected over the last ten outcomes.")]
    since: str | None


def errors_so_far(rows: Sequence[JoinedOutcome]) -> ErrorsSoFar:
    """Compare decisions with the outcomes of their jobs, in the order in which they were reported.

    They are the last `COUNTED` of each system, and count unless their system has changed since.
    """
    known = [row for row in rows if not row.is_before_change]
    judged = judge(known)
    off = [each for each in judged if each.error is not None]
    return ErrorsSoFar(
        outcomes=len(known),
        judged=tuple(judged),
        before_change=tuple(judge([row for row in rows if row.is_before_change])),
        systems=_summaries(judged, lambda each: (each.system, each.system, None)),
        applications=_summaries(
            [each for each in judged if each.application_id is not None],
            lambda each: (each.system, f"{each.executable} of {each.user}", each.application_id),
        ),
        sources=_summaries(judged, lambda each: (each.system, each.source, None)),
        worst=tuple(sorted(off, key=lambda each: -(each.error or 0))[:_WORST]),
    )


def judge(rows: Sequence[JoinedOutcome]) -> list[Judged]:
    """Compare each decision with its outcome; outcomes without a decision count for the regrets."""
    measured = measured_bandwidths(rows)
    return [
        _judge(row, row.decision, measured.get(application_and_size(row), {}))
        for row in rows
        if row.decision is not None
    ]


def drift(rows: Iterable[JoinedOutcome]) -> tuple[Drift, ...]:
    """Watch each kind of I/O on each system for a lasting change, each system as a whole first.

    Outcomes are the last `COUNTED` of each system, in the order in which they were reported. They
    count if their decision has a prediction for the job's number of I/O nodes. A prediction from
    before a noted change of the system says nothing about the present ones. `control_chart` says
    how often there is a false alarm.
    """
    series: dict[tuple[str, str | None], list[tuple[JoinedOutcome, Expected]]] = defaultdict(list)
    for row in rows:
        expected = prediction_of(row)
        if expected:
            for pattern in (None, row.pattern or UNKNOWN):
                series[row.outcome.system, pattern].append((row, expected))
    order = sorted(series, key=lambda key: (key[0], key[1] is not None, key[1] or ""))
    return tuple(_drift(*key, series[key]) for key in order)


def prediction_of(row: JoinedOutcome) -> Expected | None:
    """The present predictor's expectation of an outcome.

    None without a decision and a prediction for the job's number of I/O nodes, or if the system
    has changed since.
    """
    if row.decision is None or row.is_before_change or row.is_decided_before_change:
        return None
    return _expected(row.decision, row.outcome.io_nodes)


def average_ratios(judged: Iterable[Judged]) -> list[float]:
    """Average observed / expected, with the same moving average as the drift alarm.

    The alarm averages bounded standard deviations. Here each ratio counts in full, so that a line
    through the averages follows the ratios. The outcomes are of one kind of I/O on one system, the
    newest last; those without a prediction do not count.
    """
    residuals = (
        _residual(each.observed_mib_s, each.expected)
        for each in judged
        if each.expected is not None
    )
    return [math.exp(average) for average in moving_averages(residuals)]


def errors_to_json(found: ErrorsSoFar) -> dict[str, Any]:
    """Turn errors into plain values for JSON; of single decisions only the worst."""
    return {
        "outcomes": found.outcomes,
        "decisions": len(found.judged),
        "systems": [asdict(system) for system in found.systems],
        "applications": [asdict(application) for application in found.applications],
        "sources": [asdict(source) for source in found.sources],
        "worst": [asdict(each) for each in found.worst],
    }


_Like = tuple[int | None, int | None]


def application_and_size(row: JoinedOutcome) -> _Like:
    """The application and the number of processes: bandwidths of the same ones are comparable."""
    return None if row.application is None else row.application.id, row.tasks


def measured_bandwidths(rows: Iterable[JoinedOutcome]) -> dict[_Like, dict[int, list[float]]]:
    """Collect the bandwidths of each application and size by number of I/O nodes."""
    found: dict[_Like, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if None not in application_and_size(row) and not _is_implausible(row):
            found[application_and_size(row)][row.outcome.io_nodes].append(
                row.outcome.bandwidth_mib_s
            )
    return found


def _judge(
    row: JoinedOutcome, decision: DecisionRow, measured: Mapping[int, Sequence[float]]
) -> Judged:
    outcome, application = row.outcome, row.application
    observed = outcome.bandwidth_mib_s
    expected = _expected(decision, outcome.io_nodes)
    return Judged(
        outcome_id=outcome.id,
        decision_id=decision.id,
        system=outcome.system,
        job_id=outcome.job_id,
        started=outcome.started,
        application_id=application.id if application else None,
        executable=application.executable if application else decision.executable,
        user=application.user if application else decision.user,
        pattern=row.pattern or UNKNOWN,
        source=decision.source,
        decided=decision.io_nodes,
        io_nodes=outcome.io_nodes,
        observed_mib_s=observed,
        expected=expected,
        error=error(expected.mean, observed) if expected else None,
        inside=expected.p10 <= observed <= expected.p90 if expected else None,
        implausible=_is_implausible(row),
        regret=_regret(decision, measured),
        reported_at=outcome.reported_at,
    )


def _is_implausible(row: JoinedOutcome) -> bool:
    outcome, curve = row.outcome, row.decision.curve if row.decision else ()
    return is_implausible_beside(outcome.bandwidth_mib_s, outcome.io_nodes, curve)


def _expected(decision: DecisionRow, io_nodes: int) -> Expected | None:
    """The decision's prediction with a number of I/O nodes."""
    curve = {n: Expected(*bandwidths) for n, *bandwidths in decision.curve}
    return curve.get(io_nodes)


def _regret(decision: DecisionRow, measured: Mapping[int, Sequence[float]]) -> float | None:
    """Compute the regret; None unless the application also ran with another number."""
    most = decision.available
    means = mean_of_cells({n: runs for n, runs in measured.items() if most is None or n <= most})
    if decision.io_nodes not in means or len(means) < _TWO:
        return None
    return 1 - means[decision.io_nodes] / max(means.values())


def _summaries(
    judged: Iterable[Judged], key: Callable[[Judged], tuple[str, str, int | None]]
) -> tuple[ErrorSummary, ...]:
    groups: dict[tuple[str, str, int | None], list[Judged]] = defaultdict(list)
    for each in judged:
        groups[key(each)].append(each)
    return tuple(_summary(*name, groups[name]) for name in sorted(groups))


def _summary(
    system: str, name: str, application_id: int | None, judged: Sequence[Judged]
) -> ErrorSummary:
    return ErrorSummary(
        system=system,
        name=name,
        application_id=application_id,
        decisions=len(judged),
        errors=errors(each.error for each in judged if each.error is not None),
        coverage=mean_of_known(each.inside for each in judged),
        regret=mean_of_known(each.regret for each in judged),
    )


def mean_of_known(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None without any."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _drift(
    system: str, pattern: str | None, series: Sequence[tuple[JoinedOutcome, Expected]]
) -> Drift:
    residuals = [_residual(row.outcome.bandwidth_mib_s, expected) for row, expected in series]
    chart = control_chart(
        [standardised(row.outcome.bandwidth_mib_s, expected) for row, expected in series]
    )
    return Drift(
        system=system,
        pattern=pattern,
        count=len(series),
        ewma=chart.average,
        limit=chart.limit,
        drifted=chart.since is not None,
        ratio=math.exp(fmean(residuals[-_NEWEST:])),
        since=None if chart.since is None else series[chart.since][0].outcome.reported_at,
    )


def standardised(observed_mib_s: float, expected: Expected) -> float:
    """How far a run is from its prediction, in standard deviations of the logarithm."""
    return _residual(observed_mib_s, expected) / _deviation(expected)


def _residual(observed_mib_s: float, expected: Expected) -> float:
    return math.log(observed_mib_s / expected.mean)


def _deviation(expected: Expected) -> float:
    """Standard deviation of the logarithm of a run's bandwidth, from the predicted interval."""
    return max(math.log(expected.p90 / expected.p10) / _TENTH_TO_NINETIETH, _LEAST_DEVIATION)
