"""All checks, with their words, and the checks of a site."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from math import isfinite
from typing import Any

import numpy as np

from ioncast.insights.checks import (
    alignment,
    mpiio_calls,
    order,
    repeated,
    small_requests,
    traffic,
)
from ioncast.insights.checks.processes import (
    aggregation,
    imbalance,
    metadata_time,
    relevance,
    slow_files,
    stragglers,
    striping,
    unequal_ranks,
)
from ioncast.insights.checks.sentences import in_words
from ioncast.insights.checks.stakes import (
    causes_of,
    importance_of,
    seconds_at_stake,
    share_of_run,
    verdict_of,
)
from ioncast.insights.checks.values import (
    LEVELS,
    Advice,
    Applied,
    Case,
    Check,
    Checked,
    Find,
    Finding,
    Sentence,
    Thresholds,
    Unknown,
)
from ioncast_base.visible_text import visible

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENTRY_POINTS = "ioncast.checks"
_FINDERS: Mapping[str, Find] = {
    **traffic.FINDERS,
    **small_requests.FINDERS,
    **alignment.FINDERS,
    **repeated.FINDERS,
    **order.FINDERS,
    **mpiio_calls.FINDERS,
    **unequal_ranks.FINDERS,
    **imbalance.FINDERS,
    **metadata_time.FINDERS,
    **stragglers.FINDERS,
    **aggregation.FINDERS,
    **striping.FINDERS,
    **relevance.FINDERS,
    **slow_files.FINDERS,
}
_MAIN = "main"


@dataclass(frozen=True)
class SiteChecks:
    """The checks that other packages offer, and a sentence for each one that cannot be used."""

    checks: tuple[Check, ...]
    warnings: tuple[str, ...]


@cache
def own_checks() -> tuple[Check, ...]:
    """List ioncast's own checks in the order of their codes."""
    texts = _read("texts.toml")
    return tuple(_check(code, texts[code]) for code in sorted(_FINDERS))


@cache
def all_advice() -> Mapping[str, Advice]:
    """Read all advice, by key."""
    return {
        key: Advice(
            key,
            text["sentence"],
            text.get("snippets", {}),
            tuple(text.get("only", ())),
            tuple(text.get("needs", ())),
        )
        for key, text in _read("advice.toml").items()
    }


@cache
def site_checks() -> SiteChecks:
    """Load the checks that other packages offer as entry points of the group `ENTRY_POINTS`."""
    taken = {check.code for check in own_checks()}
    checks, warnings = [], []
    for point in sorted(entry_points(group=ENTRY_POINTS)):
        loaded = _loaded(point)
        if isinstance(loaded, str):
            warnings.append(f"check {visible(point.name)} of the site is left out: {loaded}")
        elif loaded.code in taken:
            warnings.append(
                f"check {visible(point.name)} of the site is left out: the code"
                f" {visible(loaded.code)} is taken; give it another code"
            )
        else:
            taken.add(loaded.code)
            checks.append(loaded)
    return SiteChecks(tuple(checks), tuple(warnings))


def all_checks() -> tuple[Check, ...]:
    """List ioncast's own checks and those of the site."""
    return (*own_checks(), *site_checks().checks)


def run_checks(case: Case, checks: Sequence[Check] | None = None) -> Checked:
    """Evaluate checks, by default all; a check of the site that fails becomes a warning."""
    own = {check.code for check in own_checks()}
    applied: list[Applied] = []
    unknown: dict[str, str] = {}
    warnings: list[str] = []
    for check in all_checks() if checks is None else checks:
        evaluate = _evaluated if check.code in own else _evaluated_safely
        result = evaluate(check, case)
        if isinstance(result, Unknown):
            unknown[check.code] = result.reason
        elif isinstance(result, str):
            warnings.append(result)
        elif result is not None:
            applied.append(result)
    others = sorted(
        (each for each in applied if each.importance == "none"),
        key=lambda each: (LEVELS.index(each.finding.level), each.check.code),
    )
    return Checked(
        verdict_of(case, applied),
        causes_of(case, applied),
        tuple(others),
        unknown,
        tuple(warnings),
    )


def _evaluated(check: Check, case: Case) -> Applied | Unknown | None:
    result = check.find(case)
    if not isinstance(result, Finding):
        return result
    if result.level == "OK" and case.facts.is_incomplete:
        # Records are missing, so nothing can be called good.
        return None
    seconds = seconds_at_stake(result)
    return Applied(
        check,
        result,
        sentence=in_words(check.sentences[result.variant].template, result.numbers),
        file_words=tuple(
            in_words(check.file_words, {"number": file.number, "share": file.share})
            for file in result.files
        ),
        seconds_at_stake=seconds,
        share_of_run=share_of_run(case, seconds),
        importance=importance_of(case, result.level, seconds),
    )


def _evaluated_safely(check: Check, case: Case) -> Applied | Unknown | str | None:
    """Evaluate a check of the site, which may fail in any way; a text tells how."""
    try:
        result = _evaluated(check, case)
        if isinstance(result, Applied):
            _check_finding(check, result.finding)
            _check_time(case, result.finding)
        elif result is not None and not isinstance(result, Unknown):
            raise TypeError(f"it returned {type(result).__name__}, not Finding, Unknown or None")
    except Exception as error:
        return f"check {visible(check.code)} of the site failed: {_reason(error)}"
    return result


def _check_finding(check: Check, finding: Finding) -> None:
    """Raise an error for a finding that cannot be sorted, or not written as JSON."""
    if finding.level not in check.levels:
        raise ValueError(f"{finding.level!r} is not one of its levels, {', '.join(check.levels)}")
    of_files = {f"of {file.path}": file.number for file in finding.files}
    for name, number in {**finding.numbers, **of_files}.items():
        if type(number) not in (int, float, str):
            raise TypeError(
                f"the number {name!r} is of type {type(number).__name__};"
                " it must be int, float or str"
            )
        if isinstance(number, float) and not isfinite(number):
            raise ValueError(f"the number {name!r} is not finite")


def _check_time(case: Case, finding: Finding) -> None:
    """Raise an error for seconds at stake that cannot be added up with others."""
    seconds, shape = finding.at_stake, case.times.seconds.shape
    if seconds is None:
        return
    if np.shape(seconds) != shape:
        raise ValueError(f"at_stake has the shape {np.shape(seconds)}, not {shape}")
    if not (np.isfinite(seconds) & (np.asarray(seconds) >= 0)).all():
        raise ValueError("at_stake has numbers that are negative or not finite")


def _loaded(point: EntryPoint) -> Check | str:
    try:
        check = point.load()
    except Exception as error:
        return _reason(error)
    if not isinstance(check, Check):
        return f"{visible(point.value)} is not a Check"
    try:
        check.condition_with(Thresholds())
    except Exception as error:
        return f"its condition cannot be written: {_reason(error)}"
    return check


def _reason(error: Exception) -> str:
    return visible(f"{type(error).__name__}: {error}".removesuffix(": "))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def _check(code: str, text: Mapping[str, Any]) -> Check:
    return Check(
        code=code,
        title=text["title"],
        levels=tuple(text["levels"]),
        condition=text["condition"],
        source=text["source"],
        sentences=_sentences(text["sentences"], text.get("advice", [])),
        find=_FINDERS[code],
        cause=text.get("cause", ""),
        **({"file_words": text["file"]} if "file" in text else {}),
    )


def _sentences(
    templates: Mapping[str, str], advice: Mapping[str, Sequence[str]] | Sequence[str]
) -> dict[str, Sentence]:
    """Join templates and advice; a variant without one of them has that of the main one."""
    keys = advice if isinstance(advice, Mapping) else {_MAIN: advice}
    return {
        "" if variant == _MAIN else variant: Sentence(
            templates.get(variant, templates[_MAIN]),
            tuple(all_advice()[key] for key in keys.get(variant, keys[_MAIN])),
        )
        for variant in (*templates, *keys)
    }
