"""Scores as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from judging import DEFAULTS, FEWEST_PATTERNS, Estimate, Score
from measuring import Claim
from protocols import MODEL, NEAREST

# The protocols in the short table.
HELD_BACK = {
    "halves": "half of each configuration's repetitions",
    "folds": "a tenth of the configurations",
    "processes": "all configurations of one process count",
    "per-node": "all configurations of one number of processes per node",
    "requests": "all configurations of one request size",
    "small": "all but 20 configurations, with priors from the same machine",
}


def table(title: str, by_way: Mapping[str, Score]) -> Iterator[str]:
    """Scores as a Markdown table."""
    yield f"\n{title}\n"
    yield (
        "| way | predictions | error, cells | error, runs | regret | 95th percentile | best hit"
        " | regret of the decision | 95th percentile | coverage |"
    )
    yield "| --- " + "| ---: " * 9 + "|"
    for way, found in by_way.items():
        some = f"{found.forecasts:,}"
        asked = some if found.forecasts == found.asked else f"{some} of {found.asked:,}"
        figures = (
            decimals(found.cell_error),
            decimals(found.run_error),
            decimals(found.regret, 4),
            decimals(found.regret_p95),
            percent(found.hit, 0),
            decimals(found.decision_regret, 4),
            decimals(found.decision_regret_p95),
            percent(found.coverage),
        )
        yield f"| {way} | {asked} | {' | '.join(figures)} |"


def table_of_defaults(by_way: Mapping[str, Score]) -> Iterator[str]:
    """Regrets of the answers to sites with a default, which counts where nothing is decided."""
    judged = {way: found for way, found in by_way.items() if any(found.abstentions.values())}
    if not judged:
        return
    yield (
        "\n| way | regret, always decided "
        + "".join(f"| regret, default {n} | its share " for n in DEFAULTS)
        + "|"
    )
    yield "| --- | ---: " + "| ---: " * 2 * len(DEFAULTS) + "|"
    for way, found in judged.items():
        figures = [
            text
            for n in DEFAULTS
            for text in (decimals(found.site_regrets[n], 4), percent(found.abstentions[n]))
        ]
        yield f"| {way} | {' | '.join([decimals(found.decision_regret, 4), *figures])} |"


def table_of_groups(groups: Mapping[str, Mapping[str, Score]]) -> Iterator[str]:
    """Scores of ioncast by grouping and group as a Markdown table; empty without groups."""
    if not groups:
        return
    yield (
        "\n| ioncast, by | group | patterns | runs | error, cells | regret"
        " | regret of the decision | coverage |"
    )
    yield "| --- | --- " + "| ---: " * 6 + "|"
    few = f"fewer than {FEWEST_PATTERNS} patterns: too few"
    for grouping, by_group in groups.items():
        for group, found in by_group.items():
            figures = (
                decimals(found.cell_error),
                decimals(found.regret, 4),
                decimals(found.decision_regret, 4),
                percent(found.coverage) if found.is_enough else few,
            )
            counts = f"{found.patterns} | {found.runs:,}"
            yield f"| {grouping} | {group} | {counts} | {' | '.join(figures)} |"


def for_readme(scores: Mapping[str, Mapping[str, Score]]) -> Iterator[str]:
    """A short table, with the nearest benchmark in brackets; empty without its rows."""
    rows = {HELD_BACK[key]: by_way for key, by_way in scores.items() if key in HELD_BACK}
    if not rows:
        return
    yield "\nIn short\n\n| held back | mean error | regret | runs within p10 to p90 |"
    yield "| --- | ---: | ---: | ---: |"
    for held_back, by_way in rows.items():
        own, nearest = by_way[MODEL], by_way[NEAREST]
        error, regret = (
            f"{100 * mine.value:.{digits}f} % ({100 * theirs.value:.{digits}f} %)"
            for mine, theirs, digits in (
                (own.cell_error, nearest.cell_error, 0),
                (own.regret, nearest.regret, 1),
            )
            if mine and theirs
        )
        covered = f"{100 * own.coverage.value:.0f} %" if own.coverage else ""
        yield f"| {held_back} | {error} | {regret} | {covered} |"


def table_of_claims(claims: Iterable[Claim]) -> Iterator[str]:
    yield "\n| claim | measured | |\n| --- | --- | --- |"
    for claim in claims:
        yield f"| {claim.text} | {claim.measured} | {'PASS' if claim.holds else 'MISS'} |"


def decimals(found: Estimate | None, digits: int = 3) -> str:
    return "–" if found is None else _with_interval(found, lambda one: f"{one:.{digits}f}")


def percent(found: Estimate | None, digits: int = 1) -> str:
    return "–" if found is None else _with_interval(found, lambda one: f"{one:.{digits}%}")


def _with_interval(found: Estimate, text: Callable[[float], str]) -> str:
    if found.low is None or found.high is None:
        return text(found.value)
    return f"{text(found.value)} ({text(found.low)}–{text(found.high)})"
