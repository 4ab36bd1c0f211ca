"""Claims about predictions: what each protocol should reach, as PASS or MISS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from judging import Estimate, Score
from measuring import Claim
from protocols import MODEL, PAST, WITHOUT, at, without

# By protocol and way, and those of ioncast by protocol, grouping and group.
Scores = Mapping[str, Mapping[str, Score]]
Groups = Mapping[str, Mapping[str, Mapping[str, Score]]]

# The largest error of cells and regret of the best that each protocol may have.
LIMITS: dict[str, tuple[float | None, float | None]] = {
    "halves": (0.16, 0.040),
    "folds": (0.12, 0.020),
    "processes": (0.17, 0.025),
    "per-node": (0.17, 0.025),
    "requests": (0.35, 0.027),
    "santos-dumont": (0.25, None),
    "testbed": (0.07, None),
    "studies": (0.07, None),
}
# The smallest and the largest coverage.
COVERAGE = {
    **dict.fromkeys(("halves", "folds", "processes", "per-node", "requests"), (0.75, 0.85)),
    **dict.fromkeys(("testbed", "studies"), (0.75, 0.90)),
}
P95, GROUP_COVERAGE, DECISION_REGRET, EDGE_REGRET = 0.15, (0.75, 0.86), 0.02, 0.03


def claims(scores: Scores, groups: Groups) -> Iterator[Claim]:
    """The claims about the protocols that were run."""
    for protocol, by_way in scores.items():
        yield from _of_protocol(protocol, by_way)
    if "folds" in scores:
        found = scores["folds"][MODEL].regret_p95
        yield at_most("folds: 95th percentile of regret", found, P95)
        yield from _of_groups("folds", groups["folds"])


def _of_protocol(protocol: str, by_way: Mapping[str, Score]) -> Iterator[Claim]:
    error, regret = LIMITS.get(protocol, (None, None))
    if error is not None:
        yield at_most(f"{protocol}: error of cells", by_way[MODEL].cell_error, error)
    if regret is not None:
        yield at_most(f"{protocol}: regret", by_way[MODEL].regret, regret)
    if protocol == "numbers":
        yield at_most("numbers: regret without 1 I/O node", by_way[without(1)].regret, EDGE_REGRET)
    if protocol in COVERAGE:
        yield covers(protocol, value(by_way[MODEL].coverage), COVERAGE[protocol])
    if protocol in ("testbed", "studies"):
        found = by_way[MODEL].decision_regret
        yield at_most(f"{protocol}: regret of decisions", found, DECISION_REGRET)
    for limit, past in ((0.5, "requests"), (1.02, "folds")):
        if protocol == past:
            yield from _of_the_past(protocol, by_way, limit)
    if protocol in ("known-applications", "new-applications"):
        yield from _of_applications(protocol, by_way)


def _of_groups(protocol: str, groups: Mapping[str, Mapping[str, Score]]) -> Iterator[Claim]:
    """Coverage of each group with enough patterns."""
    for grouping, by_group in groups.items():
        for group, found in by_group.items():
            if found.is_enough:
                what = f"{protocol}, {grouping} {group}"
                yield covers(what, value(found.coverage), GROUP_COVERAGE)


def _of_the_past(protocol: str, by_way: Mapping[str, Score], limit: float) -> Iterator[Claim]:
    """One earlier run: errors on the other cells with it and without it."""
    for n in (1, 2, 8):
        with_run, without = (value(by_way[at(way, n)].cell_error) for way in (PAST, WITHOUT))
        nodes = f"{n} I/O node{'s' * (n > 1)}"
        yield Claim(
            f"{protocol}: with one run at {nodes} at most {limit:g} × the error",
            f"{with_run / without:.3f} × ({without:.3f} → {with_run:.3f})",
            with_run <= limit * without,
        )


def _of_applications(protocol: str, by_way: Mapping[str, Score]) -> Iterator[Claim]:
    """Applications: with several phases no worse than with one."""
    one, *more = by_way.values()
    error = fmean(value(found.cell_error) for found in more)
    yield Claim(
        f"{protocol}: error of cells with 2 to 6 phases, at most as with one",
        f"{error:.4f} ({value(one.cell_error):.4f})",
        error <= value(one.cell_error),
    )
    covered = fmean(value(found.coverage) for found in by_way.values())
    yield covers(f"{protocol}, 1 to 6 phases", covered, (0.75, 0.85))


def at_most(what: str, found: Estimate | None, limit: float) -> Claim:
    measured = value(found)
    return Claim(f"{what}, at most {limit:.3g}", f"{measured:.4f}", measured <= limit)


def covers(what: str, coverage: float, limits: tuple[float, float]) -> Claim:
    least, most = limits
    return Claim(
        f"{what}: p10 to p90 hold {100 * least:.0f} to {100 * most:.0f} % of the runs",
        f"{coverage:.1%}",
        least <= coverage <= most,
    )


def value(found: Estimate | None) -> float:
    return 0.0 if found is None else found.value
