"""The task that makes insights into a run from the logs that a client sent.

It is a task of its own, apart from `read_trace`: if it fails, or takes too much time or memory, the
run joins the history all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchdb.history.run_insights import NewInsights
from ioncast.advice_of_run import hints_of
from ioncast.insights.checks import record
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import MOST_FILES, Case, Thresholds
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.facts.values import Facts, Files
from ioncast.insights.tables.characterising import characterised, to_record
from ioncast.service.sandbox.insight_documents import written
from ioncast.service.sandbox.uploaded_logs import Upload, run_of_uploads
from ioncast_base.kinds import APIS


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
    run = run_of_uploads(uploads, FACT_MODULES)
    facts = facts_of(run, nodes=nodes)
    checked = run_checks(Case(facts, thresholds))
    return written(
        _characterised(facts),
        record.to_record(run.name, checked, facts),
        hints_of(facts, checked, thresholds),
    )


def _characterised(facts: Facts) -> dict[str, Any]:
    """Describe the run, and of its files those that moved most bytes."""
    largest = {"file_count": len(facts.files), "files": list(_largest(facts.files))}
    return {**to_record(characterised(facts)), **largest}


def _largest(files: Files) -> Iterator[dict[str, Any]]:
    for row in np.argsort(-files.bytes, kind="stable")[:MOST_FILES].tolist():
        yield {
            "path": files.path[row],
            "layer": APIS[files.api[row]],
            "processes": int(files.processes[row]),
            "bytes_read": int(files.bytes_read[row]),
            "bytes_written": int(files.bytes_written[row]),
            "extent_bytes": int(files.extent_bytes[row]),
        }
