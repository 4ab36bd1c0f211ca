"""Diagnoses in words: the verdict, and the lines of evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ioncast.diagnosis.diagnosing import Diagnosis
from ioncast.diagnosis.level import Weather
from ioncast.diagnosis.server_evidence import ServerEvidence
from ioncast.diagnosis.slow_servers import SlowServer
from ioncast.diagnosis.stripes import Stripes
from ioncast.diagnosis.verdict import IoTimes, RunFacts, UsualBandwidth
from ioncast.warehouse.survey_texts import cell
from ioncast_base.visible_text import visible
from ioncast_base.wording import bandwidth, counted, duration, in_digits, listed, sentence, size

_VERDICTS = {
    "normal": "The bandwidth is normal.",
    "configuration": "The configuration explains the slow run.",
    "application": "The application itself explains the slow run.",
    "system": "The system explains the slow run: others kept its servers busy.",
}
_SECONDS = 1e6


def title(diagnosis: Diagnosis) -> str:
    """Name the run."""
    job = "a job without id" if diagnosis.job_id is None else f"job {diagnosis.job_id}"
    program = visible(diagnosis.program or "an unknown program")
    processes = (
        "" if diagnosis.processes is None else f", {counted(diagnosis.processes, 'process')}"
    )
    return f"{program}, {job}{processes}"


def verdict_text(diagnosis: Diagnosis) -> str:
    """Say the verdict."""
    judgement = diagnosis.judgement
    if judgement.verdict == "unknown":
        return (
            sentence(f"the cause is unknown: {judgement.reason}")
            if judgement.parts
            else (sentence(f"it is unknown whether the run is slow ({judgement.reason})"))
        )
    return _VERDICTS[judgement.verdict]


def evidence_lines(diagnosis: Diagnosis, *, names_others: bool = True) -> list[str]:
    """List the evidence of a verdict; logs of other jobs are counted if they are not named."""
    facts = diagnosis.facts
    lines: list[str] = []
    if facts.usual is not None and facts.bandwidth_mib_s is not None:
        lines += _slowdown(facts, facts.usual, facts.bandwidth_mib_s)
    if facts.weather is not None:
        lines += _weather(facts.weather, facts.at_level)
    if facts.is_slow:
        lines += _times(facts.times)
        lines += _twins(facts)
    if facts.stripes is not None and (facts.is_slow or facts.stripes.are_wrong is None):
        lines.append(_stripes(facts.stripes))
    if facts.is_slow:
        lines += _delays(facts)
        lines += [_server(each, names_others=names_others) for each in facts.servers]
        lines += _parts(diagnosis)
    return lines


def to_record(diagnosis: Diagnosis) -> dict[str, Any]:
    """Write a diagnosis as values of JSON."""
    facts, judgement = diagnosis.facts, diagnosis.judgement
    names = ("log", "path", "system", "program", "job_id", "processes", "start_us")
    slowdown = facts.slowdown
    return {
        **{name: getattr(diagnosis, name) for name in names},
        "verdict": judgement.verdict,
        "reason": judgement.reason,
        "is_slow": facts.is_slow,
        "bandwidth_mib_s": facts.bandwidth_mib_s,
        "io_seconds": facts.io_seconds,
        "slowdown": slowdown,
        "lost_seconds": facts.lost_seconds,
        "usual": facts.usual and asdict(facts.usual),
        "at_level": facts.at_level and asdict(facts.at_level),
        "weather": facts.weather and asdict(facts.weather),
        "class": facts.times.slow_class if facts.is_slow else None,
        "metadata_share": facts.times.metadata_share,
        "times": asdict(facts.times),
        "twins": asdict(facts.twins),
        "stripes": facts.stripes and asdict(facts.stripes),
        "parts": [asdict(part) for part in judgement.parts],
        "servers": [asdict(each) for each in facts.servers],
        "outcome_scatter": judgement.outcome_scatter(slowdown) if slowdown else 0.0,
        "evidence": evidence_lines(diagnosis),
    }


_CAUSES = ("configuration", "trailing writes", "stragglers", "system", "unknown")
ROW_COLUMNS = (
    *("program", "job_id", "start_us", "verdict", "reason", "slowdown", "lost_seconds", "class"),
    *(f"{cause.replace(' ', '_')}_seconds" for cause in _CAUSES),
    "log",
)


def row_of(diagnosis: Diagnosis) -> dict[str, Any]:
    """Write a diagnosis as a row of a table, with `ROW_COLUMNS`."""
    facts, judgement = diagnosis.facts, diagnosis.judgement
    seconds = dict.fromkeys(_CAUSES, 0.0)
    for part in judgement.parts:
        seconds[part.cause] += part.seconds
    values = (
        *(diagnosis.program, diagnosis.job_id, diagnosis.start_us),
        *(judgement.verdict, judgement.reason, facts.slowdown, facts.lost_seconds),
        facts.times.slow_class if facts.is_slow else None,
        *seconds.values(),
        diagnosis.log,
    )
    return dict(zip(ROW_COLUMNS, values, strict=True))


def server_text(server: SlowServer) -> str:
    """Say how slow a server is."""
    name = {"ION": "I/O node"}.get(server.kind, server.kind)
    of_system = "" if server.system is None else f" of {visible(server.system)}"
    return (
        f"{name} {server.server}{of_system}: {server.here} {server.units} are"
        f" {in_digits(server.ratio)} times as slow as {server.elsewhere} elsewhere"
        f" (p = {server.p:.2g})"
    )


def _slowdown(facts: RunFacts, usual: UsualBandwidth, got_mib_s: float) -> Iterator[str]:
    between = f"{bandwidth(usual.low_mib_s)} to {bandwidth(usual.high_mib_s)}"
    if usual.basis == "prediction":
        basis = f"benchmarks predict {bandwidth(usual.mib_s)} (p10 to p90: {between})"
    else:
        days = (cell("start_us", at)[:10] for at in (usual.first_us, usual.last_us) if at)
        when = " to ".join(dict.fromkeys(days))
        basis = (
            f"the median of {usual.jobs} other jobs{' from ' if when else ''}{when} is"
            f" {bandwidth(usual.mib_s)} (90% are from {between})"
        )
    slowdown, lost = facts.slowdown or 1.0, facts.lost_seconds or 0.0
    yield f"The run got {bandwidth(got_mib_s)}; {basis}."
    if facts.is_slow:
        yield f"It took {in_digits(slowdown)} times the usual time, and lost {duration(lost)}."


def _weather(weather: Weather, at_level: UsualBandwidth | None) -> Iterator[str]:
    yield (
        f"Of other jobs, {weather.slow_jobs_of_day} of {weather.jobs_of_day} were slow within a day"
        f" of this run, and {weather.slow_jobs_of_week} of {weather.jobs_of_week} within a week."
    )
    if at_level is not None:
        yield (
            f"Runs of that week got {weather.level:.0%} of their usual bandwidth. Then"
            f" {bandwidth(at_level.mib_s)} would be expected, from {bandwidth(at_level.low_mib_s)}"
            f" to {bandwidth(at_level.high_mib_s)}."
        )


def _times(times: IoTimes) -> Iterator[str]:
    named = (("metadata", times.metadata_ratio), ("data", times.data_ratio))
    known = [
        f"{name} took {in_digits(ratio)} times as long as usual" for name, ratio in named if ratio
    ]
    if known:
        slow = times.slow_class
        yield (
            f"{sentence(listed(known))[:-1]}, so the run is slow in {slow}."
            if (slow != "neither")
            else sentence(listed(known))
        )
    if times.metadata_share is not None and times.usual_metadata_share is not None:
        yield (
            f"Metadata took {times.metadata_share:.0%} of the I/O time, usually"
            f" {times.usual_metadata_share:.0%}."
        )


def _twins(facts: RunFacts) -> Iterator[str]:
    twins = facts.twins
    if facts.usual is not None and facts.usual.basis == "history":
        jobs = counted(twins.jobs, "other job")
        yield f"Of {jobs} with the same stripes, {twins.normal_jobs} were normal."
    if twins.slow_beside_prediction is not None:
        yield (
            f"Beside the prediction, {twins.slow_beside_prediction} of them took at least twice the"
            " time."
        )


def _stripes(stripes: Stripes) -> str:
    layout = f"{counted(stripes.count, 'OST')} with stripes of {size(stripes.size_bytes)}"
    best = "" if stripes.best_count is None else f"; jobs with {stripes.best_count} were fastest"
    said = "" if stripes.are_wrong is None else f": {stripes.are_wrong} OSTs"
    return f"The largest file is on {layout}{said}{best}."


def _delays(facts: RunFacts) -> Iterator[str]:
    delays, usual = facts.delays, facts.usual_delays
    if delays is None:
        yield "The run is not traced, so trailing writes and stragglers are unknown."
        return
    beside = "no other traced job tells what is usual" if usual is None else ""
    if delays.trailing_seconds:
        known = beside or f"usually {duration(usual.trailing_seconds if usual else 0)}"
        yield (
            f"{counted(delays.trailing_requests, 'small write')} came after the main phase and took"
            f" {duration(delays.trailing_seconds)} ({known})."
        )
    if delays.straggler_seconds:
        ranks = listed([str(rank) for rank in delays.ranks])
        known = beside or f"usually {duration(usual.straggler_seconds if usual else 0)}"
        yield (
            f"The others waited {duration(delays.straggler_seconds)} for the same late processes,"
            f" ranks {ranks} ({known})."
        )


def _server(evidence: ServerEvidence, *, names_others: bool) -> str:
    what = f"{sentence(evidence.operation)[:-1]}s of {visible(evidence.file)} at"
    what += f" {cell('start_us', evidence.start_us)} UTC, {duration(evidence.seconds)}"
    if ahead_s := evidence.clock_ahead_seconds:
        what += f" (the servers' clock was {duration(abs(ahead_s))}"
        what += f" {'ahead' if ahead_s > 0 else 'behind'})"
    if evidence.answer == "unknown":
        return f"{what}: unknown, {evidence.reason}."
    noun = "I/O node" if evidence.server_kind == "ION" else "server"
    server = "its servers" if evidence.server is None else f"{noun} {evidence.server}"
    said = f"{what}: {server} {'was' if evidence.server is not None else 'were'} {evidence.answer}"
    if evidence.others_mib_s is not None and evidence.usual_mib_s is not None:
        said += f", others moved {bandwidth(evidence.others_mib_s)}"
        said += f" (95% of the time at most {bandwidth(evidence.usual_mib_s)})"
    if not evidence.by:
        return f"{said}."
    logs = len(evidence.by)
    by = (
        listed([visible(each) for each in evidence.by])
        if names_others
        else (f"{counted(logs, 'log')} of other jobs")
    )
    return f"{said}; by {by}."


def _parts(diagnosis: Diagnosis) -> Iterator[str]:
    texts = [
        f"{part.cause}{f' ({part.reason})' if part.reason else ''} {duration(part.seconds)}"
        f" ({part.share:.0%})"
        for part in diagnosis.judgement.parts
    ]
    if texts:
        yield f"Of the lost time: {listed(texts)}."


def text_of(diagnosis: Diagnosis) -> str:
    """Write a diagnosis as lines."""
    lines: Sequence[str] = evidence_lines(diagnosis)
    return "\n".join(
        [f"{title(diagnosis)}: {verdict_text(diagnosis)}", *(f"  {one}" for one in lines)]
    )
