"""Show advice as a table for people, and as plain values of JSON for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted
from predictor.curve.decision import decision_record
from predictor.curve.own_run import own_run_record
from predictor.curve.prediction import Prediction
from predictor.what_if.advice_words import (
    LEGEND,
    conclusion,
    name_of,
    rows,
    sentence,
    to_measure,
    today_in_words,
)
from predictor.what_if.advising import Advised

_MOST_LINES = 6


def to_text(advised: Advised, emphasised: Callable[[str], str] = str) -> str:
    """Show advice to people: today, a table of what is known, and the benchmarks that lack."""
    blocks = [today_in_words(advised.today)]
    if known := list(rows(advised)):
        table = text_table(known, optional=["MiB/s now", "I/O nodes", "rests on", "checks"])
        blocks += [table, "\n".join(LEGEND)]
    blocks.append(emphasised(conclusion(advised)))
    if lines := to_measure(advised):
        listed = [f"  {line}\n    for {', '.join(names)}" for line, names in lines.items()]
        more = len(listed) - _MOST_LINES
        rest = [f"  and {counted(more, 'other')}, which --format json lists"] if more > 0 else []
        blocks.append("\n".join(["not known, measure this:", *listed[:_MOST_LINES], *rest]))
    return "\n\n".join(blocks)


def to_json(advised: Advised) -> dict[str, Any]:
    """Turn advice into plain values for JSON."""
    today = advised.today
    return {
        "system": today.system,
        "job": today.job,
        "nodes": today.nodes and today.nodes.number,
        "nodes_source": today.nodes and today.nodes.source,
        "today": _prediction_record(today),
        "own_run": own_run_record(today.own_run),
        "advice": [
            {
                "keys": list(advice.keys),
                "name": name_of(advice),
                "codes": list(advice.codes),
                "verdict": advice.verdict,
                "sentence": sentence(today, advice),
                "matched": advice.matched,
                "saved_seconds": asdict(advice.saved_seconds) if advice.saved_seconds else None,
                "saved_by_io_nodes": [
                    {"io_nodes": n, **asdict(span)} for n, span in advice.saved_by_io_nodes.items()
                ],
                "then": _prediction_record(advice.then) if advice.then else None,
                "measure": [
                    {
                        "configuration": config.command_line(launcher=True),
                        "tasks": config.tasks,
                        "nodes": config.nodes,
                    }
                    for config in advice.unmeasured
                ],
            }
            for advice in advised.advice
        ],
        "warnings": list(today.warnings),
    }


def _prediction_record(prediction: Prediction) -> dict[str, Any]:
    return {
        "curve": [asdict(point) for point in prediction.curve],
        "decision": decision_record(prediction.decision),
    }
