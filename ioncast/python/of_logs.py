"""Functions on the logs of runs: phases, checks, tables, time lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial
from os import fspath
from typing import Any

import pandas as pd

from ioncast.checks_command import SETTINGS_VARIABLE, check_run, thresholds_of, without_checks
from ioncast.insights.checks.registry import all_checks, site_checks
from ioncast.insights.checks.values import Case, Thresholds
from ioncast.insights.comparison.aligned_text import MOST_SIDE_BY_SIDE
from ioncast.insights.comparison.comparing import TOLERANCE, compare
from ioncast.insights.comparison.for_programs import CSV_COLUMNS, table_rows
from ioncast.insights.comparison.in_words import difference_texts, short_names
from ioncast.insights.comparison.table_figures import size_figures, time_figures
from ioncast.insights.facts.gathering import COUNTED_MODULES, FACT_MODULES, facts_of
from ioncast.insights.figures.all_figures import figures_of
from ioncast.insights.figures.drawn_case import characterised_case
from ioncast.insights.findings.rows import COLUMNS as FINDING_COLUMNS
from ioncast.insights.findings.rows import to_rows
from ioncast.insights.findings.text import verdict_in_words
from ioncast.insights.findings.worst_runs import RunsSeen, at_stake_text
from ioncast.insights.tables.characterising import Characterisation, characterised
from ioncast.python.given_logs import (
    FromRuns,
    Logs,
    Path,
    extraction_of,
    from_runs,
    named_logs,
    paths_of,
    run_of_logs,
    warned,
)
from ioncast.python.phase_frames import frame_of_phases
from ioncast.python.results import Result, below_each_other, interface
from ioncast.show.figures import timelines_figure
from ioncast.timeline_of_run import (
    DRAWN_MODULES,
    TRACE_IT,
    WITHOUT,
    TimelineView,
    ranks_of_text,
    requests_in_view,
    timeline_in_view,
    title_of_run,
)
from ioncast.timelines.colours import COLOURINGS, Colouring
from ioncast.timelines.figure import SPAN_COLUMNS, span_rows, timeline_figure
from ioncast.timelines.timeline import MOST_CAUSES
from ioncast_base.errors import InputError
from ioncast_base.pages.figures import Figure
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, sentence
from summario.phases.extract import extract_run
from summario.phases.periods import find_periods
from summario.phases.periods import in_words as periods_in_words
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.tables import to_record
from summario.phases.values import Extraction
from summario.reading.log import PHASE_MODULES
from summario.runs.given_run import is_csv
from summario.runs.hosts import HOST_MODULES
from summario.runs.joining import Join
from summario.runs.logs_of_run import Run


@interface
def phases(
    logs: Logs, *, join: Join | None = "steps", settings: ExtractionSettings = DEFAULTS
) -> Result:
    """Extract the I/O phases of runs, as `ioncast phases` does.

    Parameters
    ----------
    logs : str, path, DarshanReport or sequence of them
        Darshan logs, also in gzip; folders and patterns of logs; reports of PyDarshan; or a CSV of
        phases. Logs of one run are joined.
    join : {"steps", "job"} or None
        The rule for logs of one run: those of a job that overlap in time, or all of a job. None
        joins no logs.
    settings : ExtractionSettings
        The rules for phases.

    Returns
    -------
    Result
        A row for each phase with the attributes of `summario.phases.values.Phase`, and with
        `request_bytes`, the mean size of its requests. Times are seconds since the start of the
        job. Missing values are not known. `match` and `predict` take the frame, also when it was
        edited. `details` has the `Extraction` of each run.

    Raises
    ------
    IoncastError
        When a log cannot be read.

    Warns
    -----
    UserWarning
        For each limit of a log, and each log of a folder that cannot be read.

    Examples
    --------
    >>> import ioncast
    >>> found = ioncast.phases("experiments/data/testbed/logs/hacc-io-ionodes0.darshan").frame
    >>> found[["operation", "api", "bytes", "n_files"]].to_dict("records")
    [{'operation': 'write', 'api': 'POSIX', 'bytes': 463453184, 'n_files': 16}]
    """
    if _is_csv(logs):
        runs = FromRuns([(paths_of(logs)[0], extraction_of(logs, "steps", settings))], ())
    else:
        # The hosts are for `match` and `predict`, which count the compute nodes.
        modules = (*PHASE_MODULES, *HOST_MODULES)
        runs = from_runs(logs, join, partial(extract_run, settings=settings), modules)
    extractions: list[Extraction] = [extraction for _, extraction in runs.named]
    found = [phase for extraction in extractions for phase in extraction.phases]
    return Result(
        f"Phases of {counted(len(extractions), 'run')}",
        frame_of_phases(found),
        tuple(extractions),
        tuple(map(periods_in_words, find_periods(found))) if len(extractions) == 1 else (),
        warned(runs, lambda extraction: extraction.warnings),
        partial(phases_figure, runs.named),
    )


def phases_figure(named: Sequence[tuple[str, Extraction]]) -> Figure:
    """Draw the phases of runs below each other, by the names of the runs."""
    _check_number(named)
    found = {name: list(map(to_record, each.phases)) for name, each in named_logs(named)}
    if not any(found.values()):
        raise InputError("there are no I/O phases")
    return timelines_figure(found)


@interface
def check(
    logs: Logs,
    *,
    join: Join | None = "steps",
    settings_file: Path | None = None,
    ignore: Iterable[str] = (),
    nodes: int | None = None,
    all_files: bool = False,
) -> Result:
    """Tell why the I/O of runs is slow, as `ioncast check` does.

    Parameters
    ----------
    logs, join
        As for `phases`.
    settings_file : str or path, optional
        A TOML file with other thresholds; by default that in IONCAST_CHECKS.
    ignore : iterable of str
        Codes of checks to leave out, such as "M01".
    nodes : int, optional
        Compute nodes of the job; by default those that the log names.
    all_files : bool
        Also count system files and standard streams.

    Returns
    -------
    Result
        A row for each finding: its cause, importance, and the seconds and the share of the run time
        that it can cost at most. The level UNKNOWN is a check that lacks data. `details` has the
        record of each run that `ioncast check --format json` prints.

    Raises
    ------
    IoncastError
        When a log or the settings cannot be read, or a code is unknown.

    Examples
    --------
    >>> import ioncast
    >>> found = ioncast.check("experiments/data/testbed/logs/multiphase-ionodes0.darshan").frame
    >>> found.loc[found["importance"] == "major", ["code", "cause"]].to_dict("records")
    [{'code': 'M01', 'cause': 'no MPI-IO'}]
    """
    thresholds = site_thresholds(settings_file)
    checks = without_checks(ignore, all_checks(), "ignore")
    options: dict[str, Any] = {"all_files": all_files, "nodes": nodes}
    run_checks = partial(check_run, thresholds=thresholds, checks=checks, **options)
    runs = from_runs(logs, join, run_checks, FACT_MODULES)
    records = tuple(record for _, record in runs.named)
    rows = [row for record in records for row in to_rows(record)]
    return Result(
        f"Findings about {counted(len(runs.named), 'run')}",
        pd.DataFrame(rows, columns=list(FINDING_COLUMNS)),
        records,
        (_at_stake(records),),
        (*site_checks().warnings, *warned(runs, lambda record: record["warnings"])),
        partial(_checks_figure, logs, join, runs.named, thresholds, options),
    )


def site_thresholds(settings_file: Path | None) -> Thresholds:
    """Read the thresholds of a file, or of that in IONCAST_CHECKS."""
    given = settings_file or os.environ.get(SETTINGS_VARIABLE)
    return thresholds_of(None if given is None else fspath(given))


def _at_stake(records: Sequence[dict[str, Any]]) -> str:
    """Say how much of a run is I/O, or how many core-hours of several could be saved."""
    if len(records) == 1:
        return verdict_in_words(records[0]["verdict"])
    seen = RunsSeen()
    for record in records:
        seen.add(record)
    return sentence(at_stake_text(seen))


def _checks_figure(
    logs: Logs,
    join: Join | None,
    named: Sequence[tuple[str, dict[str, Any]]],
    thresholds: Thresholds,
    options: dict[str, Any],
) -> Figure:
    """Draw the sizes, layers, files and ranks that the findings of a run are about."""
    if len(named) > 1:
        raise InputError("the figure is that of one run", remedy="give one run")

    def characterisation(run: Run) -> dict[str, Any]:
        return characterised_case(Case(facts_of(run, **options), thresholds))

    [(_, document)] = from_runs(logs, join, characterisation, FACT_MODULES).named
    [(_, record)] = named
    return below_each_other(
        (drawn.title, drawn.figure)
        for drawn in figures_of(document, record)
        if drawn.figure is not None
    )


@interface
def characterize(
    logs: Logs,
    *,
    join: Join | None = "steps",
    only: Sequence[str] = (),
    tolerance: float = TOLERANCE,
    all_files: bool = False,
) -> Result:
    """Make tables of what runs do to storage, as `ioncast characterize` does.

    Parameters
    ----------
    logs, join
        As for `phases`.
    only : sequence of str
        Count only files whose path or name matches a pattern, such as "*.h5".
    tolerance : float
        The share by which a value may differ from the first run's.
    all_files : bool
        Also count system files and standard streams.

    Returns
    -------
    Result
        A row for each characteristic of each run, with the ratio to the first run's value and
        whether it differs. `details` has the `Characterisation` of each run.

    Raises
    ------
    IoncastError
        When a log cannot be read.

    Examples
    --------
    >>> import ioncast
    >>> rows = ioncast.characterize("experiments/data/testbed/logs/hacc-io-ionodes0.darshan").frame
    >>> operations = rows[rows["table"] == "operations"].set_index("characteristic")["value"]
    >>> operations["reads"], operations["writes"]
    (0, 160)
    """
    patterns = [only] if isinstance(only, str) else only
    result_of = partial(_characterised, all_files=all_files, patterns=tuple(patterns))
    runs = from_runs(logs, join, result_of, COUNTED_MODULES)
    found: list[Characterisation] = [one for _, one in runs.named]
    # A log by itself is not compared.
    first = found[0] if len(found) > 1 else None
    rows = [row for one in found for row in table_rows(first, one, tolerance)]
    columns = [name for name in CSV_COLUMNS if name != "file"]
    said = []
    if 1 < len(found) <= MOST_SIDE_BY_SIDE:
        said = difference_texts(compare(found, tolerance), short_names(found))
    return Result(
        f"I/O of {counted(len(found), 'run')}",
        pd.DataFrame(rows, columns=columns),
        tuple(found),
        tuple(said),
        warned(runs, lambda one: one.warnings),
        partial(_characteristics_figure, found, tolerance),
    )


def _characterised(run: Run, *, all_files: bool, patterns: tuple[str, ...]) -> Characterisation:
    return characterised(facts_of(run, all_files=all_files), patterns=patterns)


def _characteristics_figure(runs: Sequence[Characterisation], tolerance: float) -> Figure:
    _check_number(runs)
    names = short_names(runs)
    tables = {table.name: table for table in compare(runs, tolerance)}
    times = (("", figure) for figure in time_figures(tables["time"], names))
    return below_each_other([*size_figures(tables["histograms"], names), *times])


@interface
def timeline(
    logs: Logs,
    *,
    join: Join = "steps",
    colour: Colouring = COLOURINGS[0],
    offsets: bool = False,
    ranks: str | None = None,
    files: str | None = None,
    from_s: float | None = None,
    until_s: float | None = None,
    all_files: bool = False,
) -> Result:
    """Draw which ranks of a run read and wrote when, as `ioncast timeline` does.

    Parameters
    ----------
    logs, join
        As for `phases`, but of one run.
    colour : str
        The meaning of colours: "operation", "size", "order", "host" or "server".
    offsets : bool
        Draw the file with most bytes by offset.
    ranks : str, optional
        Only these ranks, such as "0-63" or "0,8,16-23".
    files : str, optional
        Only files with such a path, such as "*.h5".
    from_s, until_s : float, optional
        Only from this second on, and only until this one.
    all_files : bool
        Also count system files and standard streams.

    Returns
    -------
    Result
        A row for each drawn span; without a trace or a heat map, for each phase. `details` is the
        `TimelineOfRun`, or the `Extraction`.

    Raises
    ------
    IoncastError
        When a log cannot be read, has nothing of this kind, or is of several runs.

    Examples
    --------
    >>> import ioncast
    >>> log = "experiments/data/testbed/logs/hacc-io-ionodes4-dxt.darshan"
    >>> spans = ioncast.timeline(log).frame
    >>> sorted(set(spans["operation"]))
    ['write']
    """
    if colour not in COLOURINGS:
        what = f"{visible(str(colour))!r} is not one of {', '.join(COLOURINGS)}"
        raise InputError(what, where="colour")
    selected = None if ranks is None else ranks_of_text(ranks, "ranks")
    view = TimelineView(selected, files, from_s, until_s, all_files, colour, offsets)
    run = run_of_logs(logs, join, "and times of requests", DRAWN_MODULES)
    case = Case(facts_of(run, all_files=all_files))
    warnings = [*run.warnings]
    requests = requests_in_view(run, view, case, warnings.append)
    if requests is None:
        if view.selects:
            raise InputError(WITHOUT, where=visible(run.name), remedy=TRACE_IT)
        extraction = extract_run(run)
        return Result(
            title_of_run(run),
            frame_of_phases(extraction.phases),
            extraction,
            (f"The phases of the run, because {WITHOUT}. To see requests, {TRACE_IT}.",),
            tuple(dict.fromkeys((*warnings, *extraction.warnings))),
            partial(phases_figure, [("", extraction)]),
        )
    drawn = timeline_in_view(run, requests, view, case, MOST_CAUSES)
    return Result(
        title_of_run(run),
        pd.DataFrame(list(span_rows(drawn)), columns=list(SPAN_COLUMNS)),
        drawn,
        (),
        tuple(warnings),
        partial(timeline_figure, {"": drawn}),
    )


def _is_csv(logs: Logs) -> bool:
    return isinstance(logs, (str, os.PathLike)) and is_csv([os.fspath(logs)])


def _check_number(runs: Sequence[object]) -> None:
    if len(runs) > MOST_SIDE_BY_SIDE:
        raise InputError(
            f"a figure has at most {MOST_SIDE_BY_SIDE} runs, not {len(runs)}", remedy="give fewer"
        )
