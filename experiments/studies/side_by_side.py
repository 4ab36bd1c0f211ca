"""Our results beside those of RR-9366, as rows for pages and CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.evaluation import NEAREST_MEANS, Composed
from experiments.studies.rr9366 import HACC_IO, TABLE_9_MIB_S, reported
from predictor.validation.against_reruns import scores
from predictor.validation.reruns import Rerun
from predictor.validation.result_tables import FLOOR, PREDICTION, Validated
from summario.phases.tables import to_record
from summario.phases.values import Phase

REPORT = "RR-9366"
_HERE = "here"
# Columns of Tables 2, 5 and 7.
_PHASE = (
    *("start", "end", "time", "type", "bytes", "api", "requests"),
    *("spatiality", "files", "n_files", "mode_processes"),
)


def phase_rows(application: str, phases: Sequence[Phase]) -> list[dict[str, Any]]:
    """Make a row of RR-9366's phase of an application, and a row for each of our phases.

    Parameters
    ----------
    application : str
        Name of the application in the data set.
    phases : sequence of Phase
        Phases of its run.

    Returns
    -------
    list of dict
        `of` names the origin of a row; times are in seconds.
    """
    rows = []
    if known := reported(application):
        name = REPORT if known.n_phases == 1 else f"{REPORT}, first of {known.n_phases}"
        rows.append(_phase_row(name, vars(known.phase)))
    for number, phase in enumerate(phases, start=1):
        name = _HERE if len(phases) == 1 else f"{_HERE}, {number}"
        rows.append(_phase_row(name, to_record(phase)))
    return rows


def rerun_error_rows(result: Validated, composed: Composed) -> list[dict[str, str]]:
    """Make rows of the errors |Bw - Ba| / Ba of reruns Ba: those of RR-9366, then ours.

    Parameters
    ----------
    result : Validated
        The prediction held against its reruns.
    composed : Composed
        The composition from the means of the nearest benchmarks, as in the report.

    Returns
    -------
    list of dict
        `of` names the origin of a row. Numbers have two decimals, like the report's.
    """
    known = reported(result.application)
    rows = [
        _errors(f"{REPORT}, {one.benchmark}", "", one.minimum, one.mean, one.median, one.maximum)
        for one in (known.errors if known else ())
    ]
    for name, found in (
        (NEAREST_MEANS, composed.comparison),
        (PREDICTION, result.prediction),
        (FLOOR, result.floor),
    ):
        if runs := scores(found).runs:
            count, *values = runs.count, runs.minimum, runs.mean, runs.median, runs.maximum
            rows.append(_errors(f"{_HERE}, {name}", str(count), *values))
    return rows


def direct_runs(
    application: str, command: str, reruns: Iterable[Rerun], benchmark: Sequence[float]
) -> dict[str, Sequence[float]]:
    """Collect the runs of HACC-IO and its benchmark with direct access, as in Table 9.

    Parameters
    ----------
    application, command : str
        Name of the application in the data set, and the command that ran it.
    reruns : iterable of Rerun
        Its reruns, with any number of I/O nodes.
    benchmark : sequence of float
        MiB/s of the benchmarks in its place, one value for each repetition.

    Returns
    -------
    dict of str to sequence of float
        MiB/s of each run, by origin; empty for other applications than HACC-IO.
    """
    if reported(application) is not HACC_IO:
        return {}
    return {
        **{f"{REPORT}, {name}": values for name, values in TABLE_9_MIB_S.items()},
        f"{_HERE}, {command or application}": [
            run.bandwidth_mib_s for run in reruns if run.io_nodes == 0
        ],
        f"{_HERE}, benchmarks": benchmark,
    }


def _phase_row(of: str, record: Mapping[str, Any]) -> dict[str, Any]:
    return {"of": of, **{column: record[column] for column in _PHASE}}


def _errors(of: str, runs: str, *values: float) -> dict[str, str]:
    names = ("min", "mean", "median", "max")
    statistics = {name: f"{value:.2f}" for name, value in zip(names, values, strict=True)}
    return {"of": of, "runs": runs, **statistics}
