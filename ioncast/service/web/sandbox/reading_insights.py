"""The task that reads the logs of a run for the history: its phases, and insights into it.

If the insights fail, or take too much time or memory, the run joins the history all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ioncast.advice_of_run import ADVICE_MODULES, hints_of
from ioncast.insights.checks import record
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case, Checked, Thresholds
from ioncast.insights.facts.gathering import facts_of
from ioncast.insights.figures.drawn_case import characterised_case
from ioncast.named_requests import named_requests, requests_of
from ioncast.service.store.run_insights import NewInsights
from ioncast.service.web.sandbox.insight_documents import written
from ioncast.service.web.sandbox.tasks import TraceContent, trace_content
from ioncast.service.web.sandbox.uploaded_logs import Upload, run_of_uploads
from ioncast.timelines.timeline import MOST_CAUSES, timeline_of, to_record
from predictor.what_if.attempts import Hints
from summario.runs.hosts import job_nodes
from summario.runs.logs_of_run import Run

# A time line of both layers has at most 300 KiB with so many spans of each operation.
_MOST_SPANS, _MOST_PHASES = 800, 100


def read_logs(
    uploads: Sequence[Upload], nodes: int | None, thresholds: Thresholds
) -> Iterator[TraceContent | NewInsights]:
    """Read the logs of a run once; yield what the history stores, and insights, as parts.

    Raises
    ------
    InputError
        When a file is not a Darshan log, is damaged, or costs too much to read, or when the logs
        are not of one run. The error names the files as the client does.
    """
    run = run_of_uploads(uploads, ADVICE_MODULES)
    content = trace_content(run)
    yield content
    of_job = job_nodes(nodes, content.nodes)
    made, _ = insights_of_run(run, of_job and of_job.number, thresholds)
    yield made


def insights_of_run(
    run: Run, nodes: int | None, thresholds: Thresholds
) -> tuple[NewInsights, Hints]:
    """Characterise a run, evaluate all checks, and make hints for advice.

    I01 is left out: it compares the I/O nodes of the run with a decision, which may be another one
    when somebody reads the findings.
    """
    facts = facts_of(run, nodes=nodes)
    case = Case(facts, thresholds)
    checked = run_checks(case)
    hints = hints_of(facts, checked, thresholds)
    checks = record.to_record(run.name, checked, facts)
    characterisation = characterised_case(case) | {"timeline": timeline_record(run, case, checked)}
    return written(characterisation, checks, hints), hints


def timeline_record(run: Run, case: Case, checked: Checked) -> dict[str, Any] | None:
    """Describe the time line of a run; None if the logs have neither a trace nor a heat map."""
    found = requests_of(run, case)
    if found is None or not len(found.operations):
        return None
    named = {}
    if found.bin_seconds is None:
        named = named_requests(checked, found.operations, run, MOST_CAUSES)
    drawn = timeline_of(
        found,
        lustre=case.facts.lustre,
        causes=named,
        phases=case.trace_phases if found.operations is case.facts.trace else None,
        most=_MOST_SPANS,
        most_phases=_MOST_PHASES,
    )
    return to_record(drawn) | {"are_alike": bool(case.collectives.ran_alone.any())}
