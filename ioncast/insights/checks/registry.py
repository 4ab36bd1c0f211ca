"""All checks, with their words, and the checks of a site."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any

from ioncast.insights.checks import small_requests
from ioncast.insights.checks.values import (
    LEVELS,
    Applied,
    Case,
    Check,
    Checked,
    Finding,
    Sentence,
    Unknown,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ENTRY_POINTS = "ioncast.checks"
_FINDERS = {**small_requests.FINDERS}
_MAIN = "main"


@cache
def own_checks() -> tuple[Check, ...]:
    """List ioncast's own checks in the order of their codes."""
    texts = tomllib.loads(files(__package__).joinpath("texts.toml").read_text(encoding="utf-8"))
    return tuple(_check(code, texts[code]) for code in sorted(_FINDERS))


def site_checks() -> tuple[Check, ...]:
    """Load the checks that other packages offer as entry points of the group `ENTRY_POINTS`."""
    return tuple(point.load() for point in entry_points(group=ENTRY_POINTS))


def run_checks(case: Case, checks: Iterable[Check] | None = None) -> Checked:
    """Evaluate checks, by default ioncast's own and those of the site."""
    found: list[Applied] = []
    unknown: dict[str, str] = {}
    for check in checks if checks is not None else (*own_checks(), *site_checks()):
        result = check.find(case)
        if isinstance(result, Unknown):
            unknown[check.code] = result.reason
        elif result is not None and not _is_premature(case, result):
            found.append(Applied(check, result))
    return Checked(_sorted(found), unknown)


def _is_premature(case: Case, finding: Finding) -> bool:
    """Whether the log is incomplete, so that nothing can be called good."""
    return finding.level == "OK" and case.facts.is_incomplete


def _sorted(found: Sequence[Applied]) -> tuple[Applied, ...]:
    return tuple(
        sorted(
            found,
            key=lambda each: (
                each.check.code != "I06",
                LEVELS.index(each.finding.level),
                each.check.code,
            ),
        )
    )


def _check(code: str, text: dict[str, Any]) -> Check:
    sentences = {
        "" if variant == _MAIN else variant: Sentence(template, tuple(text.get("advice", ())))
        for variant, template in text["sentences"].items()
    }
    return Check(code, text["title"], text["source"], sentences, _FINDERS[code])
