"""The job of a run: who ran which program, when, on which file systems, with which Darshan."""

from __future__ import annotations

from typing import Any

from ioncast.insights.facts.values import Facts


def job_record(facts: Facts) -> dict[str, Any]:
    """Convert the job to a record; times are seconds since the epoch, `nodes` may be None."""
    run, nodes = facts.run, facts.nodes
    return {
        "id": run.job_id,
        "uid": run.uid,
        "command": run.command,
        "processes": run.processes,
        "nodes": nodes.number if nodes else None,
        "start": run.start_seconds,
        "end": run.end_seconds,
        "run_seconds": run.run_seconds,
        "darshan": run.darshan,
        "modules": [
            {"name": module.name, "version": module.version, "partial": module.is_partial}
            for module in run.modules
        ],
        "mounts": [{"path": path, "type": type_} for path, type_ in run.mounts],
    }
