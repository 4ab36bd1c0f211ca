"""The task that makes insights into a run from the logs that a client sent.

It is a task of its own, apart from `read_trace`: if it fails, or takes too much time or memory, the
run joins the history all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchdb.history.run_insights import NewInsights
from ioncast.advice_of_run import hints_of
from ioncast.insights.checks import record
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import MOST_FILES, Case, Thresholds
from ioncast.insights.facts.file_times import file_times_of
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.figures.files_record import files_record, layer_times_record
from ioncast.insights.figures.ranks_record import ranks_record
from ioncast.insights.tables.characterising import characterised, to_record
from ioncast.service.sandbox.insight_documents import written
from ioncast.service.sandbox.uploaded_logs import Upload, run_of_uploads
from predictor.what_if.attempts import Hints
from summario.runs.logs_of_run import Run


def read_insights(
    uploads: Sequence[Upload], nodes: int | None, thresholds: Thresholds
) -> NewInsights:
    """Characterise a run, and evaluate all checks.

    I01 is left out: it compares the I/O nodes of the run with a decision, which may be another one
    when somebody reads the findings.

    Parameters
    ----------
    uploads : sequence of Upload
        The logs of the run.
    nodes : int, optional
        The number of compute nodes; by default the one that the logs name.
    thresholds : Thresholds
        The site's thresholds.

    Raises
    ------
    InputError
        When a file is not a Darshan log, is damaged, or has too many parts.
    """
    made, _ = insights_of_run(run_of_uploads(uploads, FACT_MODULES), nodes, thresholds)
    return made


def insights_of_run(
    run: Run, nodes: int | None, thresholds: Thresholds
) -> tuple[NewInsights, Hints]:
    """Make the insights into a run, and hints for advice on it."""
    facts = facts_of(run, nodes=nodes)
    case = Case(facts, thresholds)
    checked = run_checks(case)
    hints = hints_of(facts, checked, thresholds)
    checks = record.to_record(run.name, checked, facts)
    return written(characterised_case(case), checks, hints), hints


def characterised_case(case: Case) -> dict[str, Any]:
    """Describe the run with its most important files, its time by layer, and its processes."""
    facts = case.facts
    times = file_times_of(facts, case.shared_files)
    return {
        **to_record(characterised(facts)),
        "file_count": len(facts.files),
        "files": files_record(facts.files, times, MOST_FILES),
        "layer_times": layer_times_record(facts.files, times),
        "ranks": ranks_record(facts, case.ranks, case.thresholds.missing_share),
    }
