"""The findings of a run as a record, which every output and the database of the service use."""

from __future__ import annotations

from typing import Any

from ioncast.insights.checks.values import Advice, Applied, Checked
from ioncast.insights.facts.libraries import libraries_of
from ioncast.insights.facts.values import Facts


def to_record(name: str, checked: Checked, facts: Facts) -> dict[str, Any]:
    """Convert the findings of a run to an object for JSON.

    Parameters
    ----------
    name : str
        The log's name.
    checked : Checked
        The results of `run_checks`.
    facts : Facts
        The run.
    """
    libraries = libraries_of(facts)
    return {
        "log": name,
        "job": facts.run.job_id,
        "processes": facts.run.processes,
        "libraries": list(libraries),
        "findings": [_finding(applied, libraries) for applied in checked.findings],
        "unknown": dict(checked.unknown),
        "warnings": [*facts.warnings, *checked.warnings],
    }


def _finding(applied: Applied, libraries: tuple[str, ...]) -> dict[str, Any]:
    check, finding = applied.check, applied.finding
    return {
        "code": check.code,
        "level": finding.level,
        "title": check.title,
        "sentence": applied.sentence,
        "source": check.source,
        "numbers": dict(finding.numbers),
        "thresholds": dict(finding.thresholds),
        "files": [
            {"path": file.path, "number": file.number, "share": file.share, "words": words}
            for file, words in zip(finding.files, applied.file_words, strict=True)
        ],
        "ranks": list(finding.ranks),
        "advice": [
            advice_record(advice, libraries)
            for advice in applied.advice
            if not advice.only or set(advice.only) & set(libraries)
        ],
    }


def advice_record(advice: Advice, libraries: tuple[str, ...]) -> dict[str, Any]:
    """Convert advice; the snippets for libraries that the run uses come first."""
    snippets = advice.snippets
    order = dict.fromkeys((*libraries, *snippets))
    return {
        "key": advice.key,
        "sentence": advice.sentence,
        "snippets": {library: snippets[library] for library in order if library in snippets},
    }
