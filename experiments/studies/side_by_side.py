"""What was found here beside what RR-9366 reports of the same, in rows for pages and for CSV."""

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
    """The phases of an application below the one that RR-9366 has of it.

    Parameters
    ----------
    application : str
        Its name in the data set.
    phases : sequence of Phase
        Of its run.

    Returns
    -------
    list of dict
        `of` says whose a row is; times are in seconds.
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
    """|Bw - Ba| / Ba of each rerun Ba: what RR-9366 reports, and what was found here.

    Parameters
    ----------
    result : Validated
        The prediction.
    composed : Composed
        The benchmarks' means, as the report takes them.

    Returns
    -------
    list of dict
        `of` says whose a row is; as many decimals as the report has.
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
    """Runs without I/O nodes, as Table 9 has them of HACC-IO and its benchmark.

    Parameters
    ----------
    application, command : str
        Its name in the data set, and what ran it.
    reruns : iterable of Rerun
        With any number of I/O nodes.
    benchmark : sequence of float
        MiB/s of the benchmarks in its place, one value for each repetition.

    Returns
    -------
    dict of str to sequence of float
        Whose runs they are, and what each reached in MiB/s; nothing of other applications.
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
