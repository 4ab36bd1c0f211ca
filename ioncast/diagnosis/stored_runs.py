"""Runs of a store, diagnosed by the runs of their program alone: cheaper than by all runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ioncast.diagnosis.diagnosing import Diagnosis, History
from ioncast.diagnosis.server_evidence import evidence_of_store
from ioncast.warehouse.engine import Ask
from ioncast.warehouse.queries import query_of

_VARIANT = {"system": "system", "program": "program", "processes": "processes", "user": "user_id"}
# A program without MPI has a log for each process, and a store has all of them or none.
_MOST_SOUGHT = 5


def diagnosis_of_logs(ask: Ask, logs: Sequence[str]) -> Diagnosis | None:
    """Diagnose the log of a run that lost most time; None if the store has no log of the run.

    Only runs of its program are read, so the weather, which decides nothing, is left out.

    Parameters
    ----------
    ask : callable
        Asks a store.
    logs : sequence of str
        SHA-256 of each log of a run.
    """
    query = query_of("variant-runs")

    def rows_of(**given: Any) -> Any:
        texts = {name: str(value) for name, value in given.items() if value is not None}
        return ask(query, query.values(texts))

    row = next((row for log in logs[:_MOST_SOUGHT] for row in rows_of(log=log).to_pylist()), None)
    if row is None:
        return None
    if row["program"] is None or row["processes"] is None:
        # Such a run has no variant, so nothing is comparable.
        return History(rows_of(log=row["log"]), has_weather=False).diagnose(row["log"])
    rows = rows_of(**{name: row[column] for name, column in _VARIANT.items()})
    history = History(rows, has_weather=False)
    stored = set(rows["log"].to_pylist()).intersection(logs)
    found = [history.diagnose(log) for log in sorted(stored)]
    worst = max(found, key=lambda each: each.facts.lost_seconds or 0.0)
    if not worst.facts.is_slow:
        return worst
    evidence = evidence_of_store(ask, worst.start_us)
    return history.diagnose(worst.log, ask_run=ask, ask_others=ask, evidence=evidence)


def outcome_scatters(ask: Ask, program: str, logs: Collection[str]) -> dict[str, float]:
    """Find how much evidence from servers widens the noise of runs of a program as outcomes.

    Parameters
    ----------
    ask : callable
        Asks a store.
    program : str
        The base name of the executable.
    logs : collection of str
        SHA-256 of logs.

    Returns
    -------
    dict of str to float
        By log `Judgement.outcome_scatter`; 0 for a run that is not slow. Logs that the store lacks
        are left out.
    """
    query = query_of("variant-runs")
    rows = ask(query, query.values({"program": program}))
    found = dict.fromkeys(set(rows["log"].to_pylist()).intersection(logs), 0.0)
    if not found:
        return {}
    history = History(rows, has_weather=False)
    evidence = evidence_of_store(ask)
    for log in history.slow_logs:
        if log in found:
            slow = history.diagnose(log, ask_run=ask, ask_others=ask, evidence=evidence)
            found[log] = slow.judgement.outcome_scatter(slow.facts.slowdown or 1.0)
    return found
