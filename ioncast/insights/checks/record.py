"""The findings of a run as a record, which every output and the database of the service use."""

from __future__ import annotations

from typing import Any

from ioncast.insights.checks.advice_conditions import fits
from ioncast.insights.checks.values import Advice, Applied, Checked, CheckedCause, Verdict
from ioncast.insights.facts.libraries import libraries_of
from ioncast.insights.facts.values import Facts, share


def to_record(name: str, checked: Checked, facts: Facts) -> dict[str, Any]:
    """Convert the results of `run_checks` to an object for JSON."""
    libraries = libraries_of(facts)
    return {
        "log": name,
        "job": facts.run.job_id,
        "processes": facts.run.processes,
        "libraries": list(libraries),
        "verdict": _verdict(checked.verdict),
        "causes": [_cause(cause) for cause in checked.causes],
        "findings": [_finding(applied, facts, libraries) for applied in checked.findings],
        "unknown": dict(checked.unknown),
        "warnings": [*facts.warnings, *checked.warnings],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    io_seconds, run_seconds = verdict.io_seconds, verdict.run_seconds
    return {
        "run_seconds": run_seconds,
        "io_seconds": io_seconds,
        "read_seconds": verdict.read_seconds,
        "write_seconds": verdict.write_seconds,
        "metadata_seconds": verdict.metadata_seconds,
        "is_mean": verdict.is_mean,
        "bytes": verdict.bytes,
        "io_share_of_run": share(io_seconds, run_seconds),
        "seconds_at_stake": verdict.at_stake_seconds,
        "share_of_run": share(verdict.at_stake_seconds, run_seconds),
        "major_share": verdict.major_share,
        "minor_share": verdict.minor_share,
    }


def _cause(cause: CheckedCause) -> dict[str, Any]:
    return {
        "cause": cause.name,
        "importance": cause.importance,
        "seconds_at_stake": cause.seconds_at_stake,
        "share_of_run": cause.share_of_run,
        "is_estimate": cause.is_estimate,
        "codes": [finding.check.code for finding in cause.findings],
    }


def _finding(applied: Applied, facts: Facts, libraries: tuple[str, ...]) -> dict[str, Any]:
    check, finding = applied.check, applied.finding
    return {
        "code": check.code,
        "cause": (check.cause or check.title) if applied.importance != "none" else None,
        "importance": applied.importance,
        "seconds_at_stake": applied.seconds_at_stake,
        "share_of_run": applied.share_of_run,
        "is_estimate": finding.is_estimate,
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
            if fits(advice, facts, libraries)
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
