"""Functions on the facts of many logs: answers in SQL, and diagnoses of slow runs."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable
from contextlib import ExitStack
from os import fspath

import pandas as pd

from benchdb.store.database import default_location
from ioncast.asked_data import asked_data, needed_store, store_at
from ioncast.diagnose_command import diagnosed_runs, runs_of_store, slow_runs, slowest
from ioncast.diagnosis import diagnosis_texts as texts
from ioncast.placement_file import read_placement
from ioncast.python.given_logs import Logs, Path, paths_of
from ioncast.python.of_systems import location_of
from ioncast.python.results import Result, below_each_other, interface
from ioncast.show.diagnosis import compared_figures
from ioncast.sql_command import QUERIES_VARIABLE
from ioncast.warehouse.queries import query_of, text_query
from ioncast_base.errors import InputError
from ioncast_base.wording import counted


@interface
def sql(
    data: Logs,
    query: str | None = None,
    *,
    text: str | None = None,
    queries: Path | None = None,
    **values: object,
) -> Result:
    """Ask about the facts of logs in SQL, as `ioncast sql` does.

    Parameters
    ----------
    data : str, path, DarshanReport or sequence of them
        Logs, folders and patterns of logs; or a store that `ioncast ingest` filled. The log of a
        report is read as a whole.
    query : str, optional
        The name of a query; `ioncast sql --list` lists them.
    text : str, optional
        A text in SQL, in place of a named query. docs/insights.md describes the tables.
    queries : str or path, optional
        A folder of named queries of your own; by default that in IONCAST_QUERIES.
    **values : object
        The values of the query's parameters, such as `limit=5`.

    Returns
    -------
    Result
        The rows of the answer. `details` is the same as a `pyarrow.Table`.

    Raises
    ------
    IoncastError
        When a log cannot be read, the query is unknown or fails, or a value is of another kind.

    Examples
    --------
    >>> import ioncast
    >>> text = "select api, sum(writes) as writes from files group by api"
    >>> log = "experiments/data/testbed/logs/hacc-io-ionodes0.darshan"
    >>> ioncast.sql(log, text=text).frame.to_dict("records")
    [{'api': 'POSIX', 'writes': 160}]
    """
    if (query is None) == (text is None):
        raise InputError("a query is needed, and only one", remedy="give its name, or text")
    given = queries or os.environ.get(QUERIES_VARIABLE)
    folder = None if given is None else pathlib.Path(fspath(given))
    asked = text_query(text) if query is None else query_of(query, folder)  # type: ignore[arg-type]
    parameters = asked.values({name: str(value) for name, value in values.items()})
    paths = paths_of(data)
    store = store_at(paths[0]) if len(paths) == 1 else None
    with asked_data(paths, store, None, tell=_silently) as opened:
        _check_read(opened.failed, paths)
        answer = opened.ask(asked, parameters)
    return Result(
        asked.title or "Answer",
        answer.to_pandas(),
        answer,
        warnings=_unread(opened.failed),
        draw="an answer in SQL has no figure",
    )


@interface
def diagnose(
    run: Path | int | None = None,
    *,
    store: Path,
    system: str | None = None,
    db: Path | None = None,
    io_nodes: int | None = None,
    placement: Path | None = None,
) -> Result:
    """Tell whether a run was slow, and by which cause, as `ioncast diagnose` does.

    Parameters
    ----------
    run : str, path or int, optional
        A log, or the number of a job of the store; by default all slow runs of the store.
    store : str or path
        A store that `ioncast ingest` filled: the history.
    system : str, optional
        The system of the log, or only its jobs in the store.
    db : str or path, optional
        Benchmarks that predict a run with a short history, see `curves`.
    io_nodes : int, optional
        The number of I/O nodes of the run, for such a prediction.
    placement : str or path, optional
        A CSV with the I/O node of each compute node; docs/servers.md describes it.

    Returns
    -------
    Result
        A row for each run: the verdict, the slowdown, and the seconds lost by each cause. `details`
        has the `Diagnosis` of each run. The figure shows the slowest run beside the other jobs.

    Raises
    ------
    IoncastError
        When the store or the log cannot be read, or the store does not have the job.
    """
    if run is None and io_nodes is not None:
        raise InputError("a prediction is of a run", where="io_nodes", remedy="give the run")
    nodes = {} if placement is None else read_placement(pathlib.Path(fspath(placement)))
    folder = needed_store(fspath(store))
    with ExitStack() as stack:
        data = stack.enter_context(asked_data((), folder, None))
        rows = runs_of_store(data, str(folder), system)
        if run is None:
            found, history = slow_runs(data, rows, nodes)
            slow, known = len(found), history.compared_runs
            said = [f"{slow:,} of {counted(known, 'run')} with a usual bandwidth are slow."]
        else:
            name = str(run) if isinstance(run, int) else fspath(run)
            location = None if io_nodes is None else location_of(db) or str(default_location())
            found, history, own = diagnosed_runs(
                *(stack, name, data, rows),
                system=system,
                nodes=nodes,
                location=location,
                io_nodes=io_nodes,
                tell=_silently,
            )
            _check_read(own.failed, [name])
            said = [texts.text_of(each) for each in found]
    worst = slowest(found) if found else None
    return Result(
        f"Diagnosis of {counted(len(found), 'run')}",
        pd.DataFrame(map(texts.row_of, found), columns=list(texts.ROW_COLUMNS)),
        tuple(found),
        tuple(said),
        draw="no run is slow"
        if worst is None
        else lambda: below_each_other(compared_figures(worst, history.compared_with(worst.log))),
    )


def _silently(_: str) -> None:
    """Print nothing: the result has a warning."""


def _check_read(failed: Iterable[tuple[str, str]], paths: Iterable[str]) -> None:
    """Raise an error for a log that is named itself and cannot be read."""
    reasons = dict(failed)
    for path in paths:
        if path in reasons:
            raise InputError(reasons[path], where=path)


def _unread(failed: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{path}: {reason}" for path, reason in failed)
