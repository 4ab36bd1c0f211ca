"""The web pages, which also work without scripts."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, cast

from flask import Response, redirect, request, session, url_for
from pydantic import ValidationError
from sqlalchemy import Connection

from benchdb.measurements.cells import OUTLIER_RULE, bimodal, outliers, spread
from benchdb.measurements.coverage import (
    ENOUGH,
    STALE_AFTER_DAYS,
    STALE_AFTER_S,
    Cell,
    CoverageRow,
    blocks,
    coverage,
    summarise,
)
from benchdb.measurements.curves import Curve, curves_of_ids
from benchdb.measurements.listing import configurations_after, measured_ids
from benchdb.store.database import transaction
from benchdb.store.system_changes import change_of, changes, is_measured
from benchdb.store.systems import measured_systems, require_system, system_names
from ioncast.insights.comparison.comparing import TOLERANCE
from ioncast.service.context import service
from ioncast.service.monitoring.decision_errors import COUNTED
from ioncast.service.monitoring.explained_jobs import ANOTHER_NUMBER
from ioncast.service.monitoring.monthly_errors import monthly_errors
from ioncast.service.monitoring.slow_io_nodes import SLOW_IO_NODES, WINDOW
from ioncast.service.store.applications import applications as stored_applications
from ioncast.service.store.credentials import digest
from ioncast.service.store.decisions import decisions, decisions_per_hour
from ioncast.service.store.last_signs import last_signs
from ioncast.service.store.outcomes import newest_outcomes, systems_with_outcomes
from ioncast.service.store.queue_reports import hours_of_queues, newest_queue_reports
from ioncast.service.web.api.benchmarks import untried_of
from ioncast.service.web.api.jobs import explained_job
from ioncast.service.web.http import openapi, sessions
from ioncast.service.web.http.access import (
    limit_client,
    reject_other_origins,
    role_of,
)
from ioncast.service.web.http.uploads import uploaded
from ioncast.service.web.pages import store_pages, worth  # noqa: F401 - they add their pages
from ioncast.service.web.pages.accuracy_view import (
    accuracy,
    errors_by_application,
    errors_by_io_nodes,
    glance,
    ratios,
    regrets_by_application,
)
from ioncast.service.web.pages.application import read_application
from ioncast.service.web.pages.application_list import largest_by_io_time, read_list
from ioncast.service.web.pages.compared_runs import NAMES, read_comparison
from ioncast.service.web.pages.frame import local, page, pages, problem_of, wants_page
from ioncast.service.web.pages.kept import result_shown
from ioncast.service.web.pages.reference import described
from ioncast.service.web.results.keeping import offer_to_keep
from ioncast.service.web.results.result import UploadForm, result_of_uploads
from ioncast.show.figures import decisions_figure, queue_figure, repetitions_figure
from ioncast.show.small_curve import Interval, SmallCurve, small_curve
from ioncast_base.errors import IoncastError, UnknownNameError
from ioncast_base.toml_files import in_plain_words

_DECISIONS, _CONFIGURATIONS, _APPLICATIONS = 8, 25, 5
# Days that the overview can show, and those that it shows if none are chosen.
_RANGES, _USUAL_RANGE = (1, 3, 7, 30), 3

# Watches report every five minutes.
_REPORTED = timedelta(minutes=15)

_LABELS = {
    "system": "System",
    "nodes": "Compute nodes",
    "ran_with": "I/O nodes of this run",
    "available": "Available I/O nodes",
    "log": "Darshan log",
}


@pages.get("/")
def overview() -> Response:
    """Show the newest decisions and their errors."""
    now = datetime.now(timezone.utc)
    of = service()
    asked = request.args.get("days", type=int)
    days = asked if asked in _RANGES else _USUAL_RANGE
    since = now - timedelta(days=days)
    with transaction(of.database) as connection:
        counts = decisions_per_hour(connection, since)
        signs = last_signs(connection)
        hours = hours_of_queues(connection, since)
        reported = newest_queue_reports(connection, now - timedelta(days=_RANGES[-1]))
        newest = decisions(connection, limit=_DECISIONS)
        systems = system_names(connection)
        untried = [(name, *untried_of(connection, name)) for name in systems]
        has_runs = bool(stored_applications(connection, limit=1))
        largest = largest_by_io_time(connection, _APPLICATIONS)
        without_basis = [
            change
            for name, change in changes(connection).items()
            if not is_measured(connection, name)
        ]
    per_day = _per_day(counts)
    return page(
        "overview.html",
        figure=decisions_figure(counts, since, now) if counts else None,
        by_source=sum((sources for _, sources in reversed(per_day)), Counter()),
        per_day=per_day,
        days=days,
        ranges=_RANGES,
        signs=signs,
        queues=[
            (name, queue_figure(means, since, now), *reported[name])
            for name, means in hours.items()
            if name in reported
        ],
        reported=[
            (name, at, datetime.fromisoformat(at) > now - _REPORTED, report.arbiter_works)
            for name, (at, report) in reported.items()
        ],
        newest=newest,
        systems=systems,
        has_runs=has_runs,
        largest=largest,
        known=glance(_errors_by_system()),
        drift=sorted(_counted("drift", []), key=lambda each: not each["drifted"]),
        coverage=_coverage(systems),
        missing=_counted("missing kinds", []),
        entries=len(of.prepared.entries),
        gains=_counted("gains", []),
        shifts=_counted("shifts", []),
        slow_io_nodes=_counted(SLOW_IO_NODES, []),
        slow_window=WINDOW.days,
        without_basis=without_basis,
        untried=[each for each in untried if each[1]],
        pauses=sorted(of.prepared.pauses.items()),
        enough=ENOUGH,
    )


@pages.get("/applications")
def applications() -> Response:
    """List applications, newest first, or as the request wants them."""
    return page("applications.html", shown=read_list())


@pages.get("/applications/<int:application_id>")
def application(application_id: int) -> Response:
    """Show an application: the I/O of a run, the expected bandwidth, and the reasons."""
    limit_client(service(), request)
    before, run = (request.args.get(name, type=int) for name in ("before", "run"))
    found = read_application(application_id, run_id=run, before=before)
    return page("application.html", found=found, is_first=before is None)


@pages.get("/applications/<int:application_id>/compare")
def comparison(application_id: int) -> Response:
    """Show two runs of an application side by side."""
    run, other = (request.args.get(name, type=int) for name in ("run", "with"))
    shown = read_comparison(application_id, run, other)
    return page("comparison.html", shown=shown, names=NAMES, tolerance=TOLERANCE)


@pages.get("/jobs")
def jobs() -> Response:
    """Ask for the id of a job."""
    job_id = request.args.get("job", "").strip()
    if job_id:
        system = request.args.get("system") or None
        return cast("Response", redirect(url_for("pages.job", job_id=job_id, system=system), 303))
    with transaction(service().database) as connection:
        systems = system_names(connection)
    return page("jobs.html", systems=systems, another_number=ANOTHER_NUMBER)


@pages.get("/jobs/<path:job_id>")
def job(job_id: str) -> Response:
    """Show why a job got its number of I/O nodes."""
    shown = explained_job(job_id, request.args.get("system") or None)
    return page("job.html", shown=shown)


@pages.get("/benchmarks")
def benchmarks() -> Response:
    """Show the coverage of a system's benchmarks."""
    now = datetime.now(timezone.utc)
    with transaction(service().database) as connection:
        systems = system_names(connection)
        system = _chosen(connection, measured_systems(connection) or systems)
        ids = measured_ids(connection, system, _after(), _CONFIGURATIONS + 1) if system else []
        rows = coverage(
            connection,
            system,
            now=now,
            stale_after_s=STALE_AFTER_S,
            ids=ids[:_CONFIGURATIONS],
        )
        change = change_of(connection, system) if system else None
    return page(
        "benchmarks.html",
        systems=systems,
        system=system,
        blocks=[
            (engine, [_drawn(row) for row in found], summarise(found))
            for _, engine, found in blocks(rows)
        ],
        change=change,
        is_first=not _after(),
        following=ids[_CONFIGURATIONS - 1] if len(ids) > _CONFIGURATIONS else None,
        rule=OUTLIER_RULE,
        stale_after_days=STALE_AFTER_DAYS,
    )


@pages.get("/benchmarks/<int:configuration_id>")
def benchmark(configuration_id: int) -> Response:
    """Show every repetition of a benchmark."""
    with transaction(service().database) as connection:
        found = configurations_after(connection, after=configuration_id - 1, limit=1)
        if not found or found[0].id != configuration_id:
            raise UnknownNameError(f"no configuration {configuration_id} in the database")
        systems = list(dict.fromkeys(where.system for where in found[0].measured))
        system = _chosen(connection, systems)
        ids = [configuration_id] if system else []
        curves = curves_of_ids(connection, system or "", ids)
        older = curves_of_ids(connection, system or "", ids, before_change=True)
        change = change_of(connection, system or "")
    return page(
        "benchmark.html",
        id=configuration_id,
        config=found[0].config,
        line=found[0].config.command_line(launcher=True),
        systems=systems,
        system=system,
        measured=[where for where in found[0].measured if where.system == system],
        curves=[(curve.engine, _cells(curve)) for curve in curves],
        older=[(curve.engine, _cells(curve)) for curve in older],
        change=change,
        figure=repetitions_figure(curves) if curves else None,
        rule=OUTLIER_RULE,
    )


@pages.get("/validation")
def validation() -> Response:
    """Show the errors of predictions for a system so far."""
    with transaction(service().database) as connection:
        systems = system_names(connection)
        system = _chosen(connection, systems_with_outcomes(connection))
        newest = newest_outcomes(connection, COUNTED, system) if system else []
        change = change_of(connection, system) if system else None
    known = accuracy(newest)
    compared = known.compared
    return page(
        "validation.html",
        known=known,
        change=change,
        systems=systems,
        system=system,
        by_system=_errors_by_system(),
        most=COUNTED,
        by_io_nodes=errors_by_io_nodes(compared) if compared else None,
        by_application=errors_by_application(compared) if compared else None,
        regrets=regrets_by_application(known.found.judged),
        ratios=ratios(compared) if compared else None,
        months=monthly_errors((*compared, *known.found.before_change)),
    )


@pages.get("/predict")
def predict() -> Response:
    """Show the drop zone."""
    return _predict_page()


@pages.post("/predict")
def predict_log() -> Response:
    """Predict from an uploaded log, which is not stored."""
    limit_client(service(), request)
    given = {name: value for name, value in request.form.items() if value}
    if not request.files.get("log"):
        return _predict_page(422, "Choose a Darshan log first.")
    try:
        form = UploadForm.model_validate(given)
    except ValidationError as error:
        return _predict_page(422, _told(error))
    try:
        result = result_of_uploads(uploaded("log"), form)
    except IoncastError as error:
        if not wants_page():
            raise
        return _predict_page(error.http_status, problem_of(error).get("detail"))
    return page(
        "uploaded_run.html", result=result, shown=result_shown(result), offer=offer_to_keep(result)
    )


@pages.get("/docs")
def docs() -> Response:
    """Show the HTTP interface."""
    is_open = service().settings.reading == "open"
    document = json.loads(openapi.document_text())
    groups = described(document, request.host_url.rstrip("/"), is_open=is_open)
    return page("docs.html", groups=groups, version=document["info"]["version"], is_open=is_open)


@pages.get("/login")
def login() -> Response:
    """Ask for a token."""
    return page("login.html", following=local(request.args.get("next")))


@pages.post("/login")
def enter() -> Response:
    """Begin a session with a valid token."""
    reject_other_origins(request)
    limit_client(service(), request)
    following, token = local(request.form.get("next")), request.form.get("token", "").strip()
    try:
        role_of(service(), digest(token), request.remote_addr)
    except IoncastError as error:
        told = problem_of(error)
        return page("login.html", told["status"], following=following, problem=told["detail"])
    sessions.begin(digest(token))
    return cast("Response", redirect(following, 303))


@pages.post("/logout")
def logout() -> Response:
    """End the session of this browser."""
    reject_other_origins(request)
    session.clear()
    return cast("Response", redirect(url_for("pages.login"), 303))


def _chosen(connection: Connection, systems: Sequence[str]) -> str | None:
    """The system in the request, or else the first of `systems`."""
    asked = request.args.get("system")
    return require_system(connection, asked) if asked else next(iter(systems), None)


def _after() -> int:
    """Id of the last item of the page before; 0 for the first page."""
    return max(request.args.get("after", 0, type=int), 0)


def _coverage(systems: Sequence[str]) -> list[tuple[str, dict[str, int] | None]]:
    """The coverage of each system; None until the keeper has counted it."""
    counted = {each["system"]: each for each in _counted("coverage", [])}
    return [(name, counted.get(name)) for name in systems]


def _errors_by_system() -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", _counted("validation", {"systems": []})["systems"])


def _counted(name: str, otherwise: Any) -> Any:
    """The keeper's last summary of this name, or `otherwise` until there is one."""
    summary = service().prepared.summaries.get(name)
    return summary.value if summary else otherwise


def _per_day(counts: Sequence[tuple[str, str, int]]) -> list[tuple[str, Counter[str]]]:
    """The numbers of the figure by day and source; a table by hour would be too long."""
    days: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for hour, source, number in counts:
        days[hour[: len("2026-11-21")]][source] += number
    return sorted(days.items(), reverse=True)


def _drawn(row: CoverageRow) -> tuple[CoverageRow, Cell | None, SmallCurve]:
    """A row with its best cell, of equal ones that with fewest I/O nodes, and its small curve."""
    measured = [cell for cell in row.cells if cell.mean_mib_s]
    best = max(measured, key=lambda cell: (cell.mean_mib_s or 0, -cell.io_nodes), default=None)
    means = {
        cell.io_nodes: None if cell.mean_mib_s is None else Interval(cell.mean_mib_s)
        for cell in row.cells
    }
    return row, best, small_curve(means, best.io_nodes if best else None, "Best")


def _cells(curve: Curve) -> list[dict[str, Any]]:
    """The cells of a curve as rows of a table."""
    return [
        {
            "io_nodes": n,
            "values": list(zip(values, outliers(values), strict=True)),
            "spread": spread(values),
            "is_bimodal": bimodal(values),
        }
        for n, values in sorted(curve.bandwidths_mib_s.items())
    ]


def _predict_page(status: int = 200, problem: str | None = None) -> Response:
    with transaction(service().database) as connection:
        systems = system_names(connection)
    return page(
        "predict.html",
        status,
        systems=systems,
        problem=problem,
        given=request.form,
        most_mib=service().settings.max_upload_mib,
    )


def _told(error: ValidationError) -> str:
    """The first mistake in a form, with the label of its field."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = str(first["loc"][0])
    return f"{_LABELS.get(name, name)}: {in_plain_words(first)}"
