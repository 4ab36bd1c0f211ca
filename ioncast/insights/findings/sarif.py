"""Findings of runs as OASIS SARIF 2.1.0, the format in which development platforms show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from ioncast.insights.checks.values import Check, Importance, Level, Thresholds
from ioncast.insights.findings.text import Record
from ioncast_base.wording import sentence

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
# SARIF's level of a problem.
_PROBLEMS: dict[Importance, str] = {
    "major": "error",
    "minor": "warning",
    "unknown": "note",
    "negligible": "note",
}
# The kind of a result that is no problem. SARIF gives it no level.
_KINDS: dict[Level, str] = {"OK": "pass", "INFO": "informational"}
# SARIF's kind for a check that lacks data.
_OPEN = ("open", "none")


def to_sarif(
    records: Iterable[Record],
    checks: Sequence[Check],
    thresholds: Thresholds,
    errors: Sequence[str] = (),
) -> dict[str, Any]:
    """Convert runs, as `ioncast.insights.checks.record.to_record` makes them, to SARIF in JSON."""
    records = list(records)
    driver = {
        "name": "ioncast",
        "version": version("ioncast"),
        "rules": [_rule(check, thresholds) for check in checks],
    }
    invocation = {
        "executionSuccessful": not errors,
        "toolExecutionNotifications": [
            *(_notification("error", error) for error in errors),
            *(
                _notification("warning", warning, record["log"])
                for record in records
                for warning in record["warnings"]
            ),
        ],
    }
    rules = {check.code: index for index, check in enumerate(checks)}
    results = [result for record in records for result in _results(record, rules)]
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(check: Check, thresholds: Thresholds) -> dict[str, Any]:
    condition = check.condition_with(thresholds)
    advice = {
        each.key: each.sentence for words in check.sentences.values() for each in words.advice
    }
    help_lines = [f"It is found if {condition}.", *(f"{each}." for each in advice.values())]
    # The importance, and so the level, of a harmful finding depends on the run.
    level = "none" if check.levels[0] in _KINDS else _PROBLEMS["major"]
    return {
        "id": check.code,
        "name": check.title.title().replace(" ", "").replace("-", ""),
        "shortDescription": {"text": check.title},
        "fullDescription": {"text": sentence(condition)},
        "help": {"text": "\n\n".join([*help_lines, f"Source: {check.source}."])},
        "defaultConfiguration": {"level": level},
        "properties": {"levels": list(check.levels), "source": check.source},
    }


def _results(record: Record, rules: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for finding in record["findings"]:
        yield _result(record, finding, rules)
    for code, reason in record["unknown"].items():
        yield _base(record, code, rules, _OPEN, reason)


def _result(record: Record, finding: Record, rules: Mapping[str, int]) -> dict[str, Any]:
    importance = finding["importance"]
    kind = (
        (_KINDS[finding["level"]], "none")
        if importance == "none"
        else ("fail", _PROBLEMS[importance])
    )
    result = _base(record, finding["code"], rules, kind, finding["sentence"])
    if finding["files"]:
        # The application's files are not sources, so they are logical locations.
        result["locations"][0]["logicalLocations"] = [
            {"fullyQualifiedName": file["path"], "kind": "resource"} for file in finding["files"]
        ]
    result["properties"] |= {
        name: finding[name]
        for name in (
            "importance",
            "cause",
            "seconds_at_stake",
            "share_of_run",
            "is_estimate",
            "level",
            "numbers",
            "thresholds",
            "ranks",
        )
    }
    return result


def _base(
    record: Record, code: str, rules: Mapping[str, int], kind: tuple[str, str], text: str
) -> dict[str, Any]:
    return {
        "ruleId": code,
        "ruleIndex": rules[code],
        "kind": kind[0],
        "level": kind[1],
        "message": {"text": sentence(text)},
        "locations": [_location(record["log"])],
        "properties": {"job": record["job"], "processes": record["processes"]},
    }


def _notification(level: str, text: str, log: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"level": level, "message": {"text": text}}
    return found if log is None else {**found, "locations": [_location(log)]}


def _location(log: str) -> dict[str, Any]:
    uri = quote(log.encode(errors="surrogateescape"))
    return {"physicalLocation": {"artifactLocation": {"uri": uri}}}
