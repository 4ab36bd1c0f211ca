"""The characterisation of a run that its figures are drawn from."""

from __future__ import annotations

from typing import Any

from ioncast.insights.checks.values import MOST_FILES, Case
from ioncast.insights.facts.file_times import file_times_of
from ioncast.insights.figures.files_record import files_record, layer_times_record
from ioncast.insights.figures.ranks_record import ranks_record
from ioncast.insights.tables import characterising


def characterised_case(case: Case) -> dict[str, Any]:
    """Describe the run with its most important files, its time by layer, and its processes."""
    facts = case.facts
    times = file_times_of(facts, case.shared_files)
    return {
        **characterising.to_record(characterising.characterised(facts)),
        "file_count": len(facts.files),
        "files": files_record(facts.files, times, MOST_FILES),
        "layer_times": layer_times_record(facts.files, times),
        "ranks": ranks_record(facts, case.ranks, case.thresholds.missing_share),
    }
