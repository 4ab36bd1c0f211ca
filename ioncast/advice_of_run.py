"""Advice for a run: its checks tell what to try, and the benchmarks tell what it would save."""

from __future__ import annotations

import numpy as np

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.repeated import distinct_bytes
from ioncast.insights.checks.values import Case, Checked, Thresholds
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.facts.values import Facts
from ioncast_base.kinds import APIS, FILE_ACCESSES, OPERATIONS, Operation
from predictor.curve.asking import PredictionContext, PredictionRequest
from predictor.what_if.advising import Advised, advise
from predictor.what_if.attempts import FilesOfKind, Hints
from summario.phases.extract import extract_run
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.reading.log import PHASE_MODULES
from summario.runs.logs_of_run import Run

# The modules to read the logs of a run with.
ADVICE_MODULES = tuple(dict.fromkeys((*FACT_MODULES, *PHASE_MODULES)))


def advise_run(
    frontend: PredictionContext,
    asked: PredictionRequest,
    run: Run,
    *,
    extraction: ExtractionSettings = DEFAULTS,
    thresholds: Thresholds | None = None,
    buffer_bytes: int | None = None,
) -> Advised:
    """Check a run, and predict what following the advice of its checks would save."""
    limits = thresholds or Thresholds()
    hints = hints_of_run(run, limits, all_files=extraction.all_files, nodes=asked.nodes)
    return advise(frontend, asked, extract_run(run, extraction), hints, buffer_bytes=buffer_bytes)


def hints_of_run(
    run: Run, thresholds: Thresholds, *, all_files: bool = False, nodes: int | None = None
) -> Hints:
    """Check a run, and make the results into hints for what to try.

    Parameters
    ----------
    run : Run
        The run, whose logs were read with `ADVICE_MODULES`.
    thresholds : Thresholds
        The thresholds of the checks.
    all_files : bool
        Also count files of the system.
    nodes : int, optional
        The number of compute nodes; by default the one that the logs name.

    Raises
    ------
    InputError
        If a record has impossible numbers.
    """
    facts = facts_of(run, all_files=all_files, nodes=nodes)
    return hints_of(facts, run_checks(Case(facts, thresholds)), thresholds)


def hints_of(facts: Facts, checked: Checked, thresholds: Thresholds) -> Hints:
    """Make the results of checks into hints for what to try."""
    codes = frozenset(
        applied.check.code for applied in checked.findings if applied.finding.level != "INFO"
    )
    kept = {
        files: share
        for operation in OPERATIONS
        for files, share in _kept(facts, operation, thresholds.repeated_factor).items()
    }
    return Hints(codes, kept)


def _kept(facts: Facts, operation: Operation, limit: float) -> dict[FilesOfKind, float]:
    """The share of the bytes that is left if the files with repeated bytes move each one once."""
    files = facts.files
    moved = (files.bytes_read if operation == "read" else files.bytes_written).astype(float)
    distinct = distinct_bytes(facts, operation)
    is_repeated = (distinct > 0) & (moved > limit * distinct)
    once = np.where(is_repeated, distinct, moved)
    is_shared = files.processes > 1
    found = {}
    for number, api in enumerate(APIS):
        for file_access in FILE_ACCESSES:
            rows = (files.api == number) & (is_shared == (file_access == "shared"))
            if total := moved[rows].sum():
                share = float(once[rows].sum() / total)
                found[FilesOfKind(operation, api, file_access)] = share
    return found
