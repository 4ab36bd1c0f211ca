"""Show a prediction as tables for people, and as plain values of JSON for programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted, size
from predictor.curve.decision import decision_record
from predictor.curve.own_run import own_run_record
from predictor.curve.prediction import EarlierRun, Prediction
from predictor.matching.configurations import Match
from summario.phases.tables import to_record, whole


def to_text(prediction: Prediction, emphasised: Callable[[str], str] = str) -> str:
    """Show a prediction to people: its own run, matches, curve, decision.

    `emphasised` marks the choices.
    """
    shows_fidelity = any(
        found.fidelity is not None for matched in prediction.phases for _, found in matched.parts
    )
    matches = [
        {
            "phase": matched.index,
            "type": matched.phase.operation,
            "size": size(part.bytes),
            "match": found.kind,
            "distance": "" if found.distance is None else f"{found.distance:.2f}",
            **_fidelity(found, is_shown=shows_fidelity),
            "benchmark": _benchmark(found),
        }
        for matched in prediction.phases
        for part, found in matched.parts
    ]
    points = [
        {
            "I/O nodes": point.io_nodes,
            "MiB/s": f"{point.bandwidth_mib_s.mean:.1f}",
            "p10": f"{point.bandwidth_mib_s.p10:.1f}",
            "median": f"{point.bandwidth_mib_s.median:.1f}",
            "p90": f"{point.bandwidth_mib_s.p90:.1f}",
            "time s": f"{point.time_s:.2f}",
            "basis": point.basis,
        }
        for point in prediction.curve
    ]
    blocks = [
        text_table(rows, optional=["size", "type", "distance"])
        for rows in (matches, points)
        if rows
    ]
    best, decision = prediction.best, prediction.decision
    nodes = prediction.nodes
    lines = [nodes.in_words] if nodes and nodes.in_words else []
    chosen = _choice("best", best.io_nodes)
    lines.append(f"{emphasised(chosen) if chosen else 'no prediction'} ({best.why})")
    decided = _choice("decision", decision.io_nodes)
    # Without a prediction there is no decision for the same reason, so say it once.
    if decided or best.io_nodes is not None:
        lines.append(f"{emphasised(decided) if decided else 'no decision'} ({decision.why})")
    own = [prediction.own_run.in_words] if prediction.own_run else []
    return "\n\n".join([*own, *blocks, "\n".join(lines)])


def _choice(name: str, io_nodes: int | None) -> str | None:
    if io_nodes is None:
        return None
    return f"{name}: {counted(io_nodes, 'I/O node')}"


def _fidelity(found: Match, *, is_shown: bool) -> dict[str, str]:
    """The column of the fidelity, which only predictions with a verified part have."""
    if not is_shown:
        return {}
    return {"fidelity": "" if found.fidelity is None else f"{found.fidelity:.2f}"}


def _benchmark(found: Match) -> str:
    if found.curve is None:
        return f"not measured: {found.wanted.command_line(launcher=True)}"
    return found.curve.config.command_line(launcher=True)


def _earlier_run(run: EarlierRun | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {"io_nodes": run.io_nodes, "bandwidth_mib_s": run.bandwidth_mib_s}


def to_json(prediction: Prediction) -> dict[str, Any]:
    """Turn a prediction into plain values for JSON."""
    return {
        "system": prediction.system,
        "job": prediction.job,
        "nodes": prediction.nodes and prediction.nodes.number,
        "nodes_source": prediction.nodes and prediction.nodes.source,
        "curve": [asdict(point) for point in prediction.curve],
        "best": asdict(prediction.best),
        "decision": decision_record(prediction.decision),
        "own_run": own_run_record(prediction.own_run),
        "earlier_run": _earlier_run(prediction.earlier),
        "phases": [
            {
                "phase": {
                    name: value
                    for name, value in to_record(matched.phase).items()
                    if name != "parts"
                },
                "parts": [
                    {
                        "request_bytes": whole(part.request_bytes),
                        "requests": part.requests,
                        "bytes": part.bytes,
                        "match": match_record(found),
                        "time_s": times,
                    }
                    for (part, found), times in zip(
                        matched.parts, matched.parts_time_s, strict=True
                    )
                ],
                "time_s": matched.time_s,
                "match": match_record(matched.main),
            }
            for matched in prediction.phases
        ],
        "warnings": list(prediction.warnings),
    }


def match_record(found: Match) -> dict[str, Any]:
    """Turn a match into plain values for JSON; `config` is the benchmark's IOR line."""
    return {
        "kind": found.kind,
        "config": found.curve.config.command_line(launcher=True) if found.curve else None,
        "distance": found.distance,
        "wanted": found.wanted.command_line(launcher=True),
        "configuration_id": found.curve.id if found.curve else None,
        "ratios": found.ratios,
        "differences": [asdict(difference) for difference in found.differences],
        "fidelity": found.fidelity,
    }
