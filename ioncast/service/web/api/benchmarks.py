"""The benchmark database: systems, configurations, measurements, curves, coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from flask import Blueprint, Response, request
from sqlalchemy import Connection

from benchdb.measurements import listing
from benchdb.measurements.coverage import CoverageRow, WantedRow, coverage, coverage_of_configs
from benchdb.measurements.curves import Curve, curves_of_ids
from benchdb.measurements.file_imports import StoredFile
from benchdb.measurements.importers import ImportOptions
from benchdb.store.database import transaction
from benchdb.store.system_changes import SystemChange, change_of, changes, note_change, undo_change
from benchdb.store.systems import system_id_of, system_names
from ioncast.service.context import service
from ioncast.service.store.applications import application
from ioncast.service.web.api.benchmark_values import (
    ChangeItem,
    ChangeQuery,
    ConfigurationItem,
    ConfigurationPage,
    ConfigurationQuery,
    CoverageAnswer,
    CoverageAsked,
    CoverageItem,
    CoveragePage,
    CoverageQuery,
    CurveItem,
    CurvePage,
    DescribedConfiguration,
    MeasuredQuery,
    MeasurementFile,
    MeasurementItem,
    MeasurementPage,
    MeasurementsAnswer,
    NewChange,
    NewConfiguration,
    NewCurves,
    NewMeasurements,
    NewSystem,
    SystemItem,
    SystemPage,
    SystemQuery,
    UntriedItem,
    WantedItem,
)
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import JSON, checked_json
from ioncast.service.web.http.lists import PageOfSystem, cut
from ioncast.service.web.http.uploads import place, uploaded
from ioncast.service.web.http.writers import log_write, writing
from ioncast.service.web.sandbox.tasks import Place, import_measurements, store_rows
from ioncast_base.errors import InputError, UnknownNameError
from ior_configs import IorConfig

_Item = TypeVar("_Item", bound=DescribedConfiguration)

benchmarks = Blueprint("benchmarks", __name__)


@benchmarks.get("/v1/systems")
@operation("Which systems are there?")
def list_systems(query: SystemQuery) -> SystemPage:
    """List systems by name."""
    with transaction(service().database) as connection:
        rows = listing.systems_after(connection, query.after or "", query.limit + 1)
        noted = changes(connection)
        shown, following = cut(rows, query.limit, lambda row: row.name)
        items = [_system(connection, row, noted.get(row.name)) for row in shown]
    return SystemPage(items=items, next=following)


@benchmarks.post("/v1/systems")
@operation("Add a system", role="admin")
def put_system(body: NewSystem) -> tuple[SystemItem, int]:
    """Add a system before anything is measured on it. 200 if the system exists already."""
    with transaction(service().database, write=True) as connection:
        known = body.name in system_names(connection)
        system_id_of(connection, body.name)
        found = listing.system(connection, body.name)
        item = _system(connection, found, change_of(connection, body.name))
    return item, 200 if known else 201


@benchmarks.post("/v1/changes")
@operation("Note that a machine has changed", role="admin", answers={201: ChangeItem}, also=(404,))
def put_change(body: NewChange) -> tuple[ChangeItem, int]:
    """Measurements and outcomes from before no longer decide; they stay stored and visible.

    The change replaces the one that was noted before.
    """
    with writing() as (connection, note):
        found = note_change(connection, body.system, since=body.since, why=body.why)
        note("change", f"since {found.day}: {found.why}", body.system)
    return ChangeItem(**vars(found)), 201


@benchmarks.delete("/v1/changes")
@operation("Take the change of a machine back", role="admin", answers={204: None}, also=(404,))
def delete_change(query: ChangeQuery) -> Response:
    """Let all measurements and outcomes count as if the change had never been noted."""
    with writing() as (connection, note):
        undone = undo_change(connection, query.system)
        note("change", f"undone: since {undone.day}: {undone.why}", query.system)
    return Response(status=204)


@benchmarks.get("/v1/configurations")
@operation("Which configurations are there?", also=(404,))
def list_configurations(query: ConfigurationQuery) -> ConfigurationPage:
    """List configurations with their measurements by system, in the order of ids."""
    with transaction(service().database) as connection:
        rows = listing.configurations_after(
            connection, system=query.system, after=query.after or 0, limit=query.limit + 1
        )
    shown, following = cut(rows, query.limit, lambda row: row.id)
    return ConfigurationPage(items=[_configuration(row) for row in shown], next=following)


@benchmarks.post("/v1/configurations")
@operation("Add a configuration", role="admin")
def put_configuration(body: NewConfiguration) -> tuple[ConfigurationItem, int]:
    """Add a configuration before it is measured. 200 if the configuration exists already."""
    config = _config(body)
    with transaction(service().database, write=True) as connection:
        found, new = listing.configuration_of(connection, config)
    return _configuration(found), 201 if new else 200


@benchmarks.get("/v1/measurements")
@operation("What was measured?", also=(404,))
def list_measurements(query: MeasuredQuery) -> MeasurementPage:
    """List a system's measurements by configuration, I/O nodes, engine and repetition."""
    with transaction(service().database) as connection:
        rows = listing.measurements_after(
            connection,
            query.system,
            configuration_id=query.configuration,
            after=query.after,
            limit=query.limit + 1,
        )
    shown, following = cut(rows, query.limit, lambda row: row.id)
    return MeasurementPage(items=[_measurement(row) for row in shown], next=following)


@benchmarks.post("/v1/measurements")
@operation(
    "Store measurements",
    role="admin",
    files={"file": "A file in any format that `ioncast bench import` reads."},
)
def put_measurements(
    body: NewMeasurements | None, form: MeasurementFile | None
) -> tuple[MeasurementsAnswer, int]:
    """Store all measurements of a request, or none.

    200 if the system has the same content already; nothing changes then.
    """
    if body is not None:
        rows = [
            (f"measurements.{index}", row.model_dump())
            for index, row in enumerate(body.measurements)
        ]
        return _stored_rows("measurements", body.system, rows)
    assert form is not None  # noqa: S101
    [upload] = uploaded("file")
    told = ImportOptions(**form.model_dump(exclude={"replace"}))
    run = service().children.run
    found = run(import_measurements, place(), upload, told, replace=form.replace)
    return _stored(found, upload.name, form.system)


@benchmarks.get("/v1/curves")
@operation("What bandwidth was measured with each number of I/O nodes?", also=(404,))
def list_curves(query: MeasuredQuery) -> CurvePage:
    """List a system's curves with every repetition in use, by configuration."""
    with transaction(service().database) as connection:
        ids = _ids(connection, query, query.configuration)
        shown, following = cut(ids, query.limit, int)
        rows = curves_of_ids(connection, query.system, shown)
    return CurvePage(items=[_curve(row) for row in rows], next=following)


@benchmarks.post("/v1/curves")
@operation("Store curves", role="admin")
def put_curves(body: NewCurves) -> tuple[MeasurementsAnswer, int]:
    """Store each bandwidth as a measurement: all of a request, or none.

    200 if the system has the same content already; nothing changes then.
    """
    rows = [
        (f"curves.{index}", row) for index, curve in enumerate(body.curves) for row in curve.rows()
    ]
    return _stored_rows("curves", body.system, rows)


@benchmarks.get("/v1/coverage")
@operation("How often, how evenly and when was each cell measured?", also=(404,))
def list_coverage(query: CoverageQuery) -> CoveragePage:
    """List the cells of a system by configuration."""
    with transaction(service().database) as connection:
        ids = _ids(connection, query, None)
        shown, following = cut(ids, query.limit, int)
        rows = coverage(
            connection,
            query.system,
            now=datetime.now(timezone.utc),
            stale_after_s=query.stale_after_s,
            ids=shown,
        )
    by_id = sorted(rows, key=lambda row: (row.id, row.engine))
    return CoveragePage(
        items=[_covered_item(CoverageItem, row) for row in by_id],
        next=following,
        stale_after_s=query.stale_after_s,
    )


@benchmarks.post("/v1/coverage")
@operation(
    "Which cells of these configurations are missing?",
    body=CoverageAsked,
    answers={200: CoverageAnswer},
    also=(404,),
)
def cover(body: bytes) -> Response:
    """List the cells of configurations, measured or not; nothing is stored."""
    return Response(service().children.run(_covered, place(), body), mimetype=JSON)


# This runs in a separate process, because anybody may send hundreds of commands, which take long
# to read.
def _covered(database: Place, text: bytes) -> bytes:
    asked = checked_json(CoverageAsked, text)
    configs = [_config_at(index, each) for index, each in enumerate(asked.configurations)]
    with database.transaction() as connection:
        rows = coverage_of_configs(
            connection,
            asked.system,
            configs,
            io_nodes=asked.io_nodes,
            now=datetime.now(timezone.utc),
            stale_after_s=asked.stale_after_s,
        )
    items = [_covered_item(WantedItem, row) for row in rows]
    answer = CoverageAnswer(items=items, stale_after_s=asked.stale_after_s)
    return answer.model_dump_json().encode()


def _config_at(index: int, given: NewConfiguration) -> IorConfig:
    try:
        return _config(given)
    except InputError as error:
        error.where = f"configurations.{index}"
        raise


def _config(given: NewConfiguration) -> IorConfig:
    config = IorConfig.from_command_line(given.command)
    return replace(
        config.for_operation(config.operation),
        tasks=given.tasks or config.tasks,
        nodes=given.nodes or config.nodes,
    )


def _ids(connection: Connection, query: PageOfSystem, one: int | None) -> list[int]:
    """The ids of a page's configurations and the next one, or only the id that is asked for."""
    after, most = (query.after or 0, query.limit + 1) if one is None else (one - 1, 1)
    found = listing.measured_ids(connection, query.system, after, most)
    if one is not None and found != [one]:
        raise UnknownNameError(f"configuration {one} was not measured on {query.system!r}")
    return found


def _system(
    connection: Connection, row: listing.SystemSummary, noted: SystemChange | None
) -> SystemItem:
    change = ChangeItem(**vars(noted)) if noted else None
    number, largest = untried_of(connection, row.name)
    return SystemItem(**vars(row), change=change, untried=number, largest_untried=largest)


def untried_of(connection: Connection, system: str) -> tuple[int, list[UntriedItem]]:
    """Count the applications of a system with a number to try, and name the largest gains."""
    summary = service().prepared.summaries.get("untried")
    found = summary.value.get(system) if summary else None
    if found is None:
        return 0, []
    largest = []
    for untried in found["largest"]:
        with suppress(UnknownNameError):
            known = application(connection, untried["id"]).application
            largest.append(UntriedItem(program=known.program, user=known.user, **untried))
    # Applications of which nothing is left may still be counted among many.
    return (found["number"] if found["number"] > len(found["largest"]) else len(largest)), largest


def _stored_rows(
    name: str, system: str, rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[MeasurementsAnswer, int]:
    """Store measurements that the request has as JSON."""
    sent, run = request.get_data(), service().children.run
    return _stored(run(store_rows, place(), name, sent, system, rows), name, system)


def _stored(file: StoredFile, name: str, system: str) -> tuple[MeasurementsAnswer, int]:
    is_new = file.stored.measurements > 0
    if is_new or file.replaced:
        log_write("measurements", name, system)
    answer = MeasurementsAnswer(
        stored=is_new,
        format=file.file_format,
        measurements=file.found.measurements,
        configurations=file.found.configurations,
    )
    return answer, 201 if is_new else 200


def _item(model: type[_Item], config: IorConfig, values: Mapping[str, Any]) -> _Item:
    """Make an answer with the description of a configuration."""
    named = {
        "command": config.command_line(),
        "tasks": config.tasks,
        "nodes": config.nodes,
        "fsync": config.fsync,
    }
    return model.model_validate({**values, **named}, from_attributes=True)


def _configuration(row: listing.StoredConfiguration) -> ConfigurationItem:
    return _item(ConfigurationItem, row.config, vars(row))


def _measurement(row: listing.StoredMeasurement) -> MeasurementItem:
    values = asdict(row.measurement) | vars(row)
    return _item(MeasurementItem, row.measurement.config, values)


def _curve(row: Curve) -> CurveItem:
    cells = [
        {"io_nodes": n, "bandwidths_mib_s": values}
        for n, values in sorted(row.bandwidths_mib_s.items())
    ]
    return _item(CurveItem, row.config, vars(row) | {"configuration_id": row.id, "cells": cells})


def _covered_item(model: type[_Item], row: CoverageRow | WantedRow) -> _Item:
    return _item(model, row.config, vars(row) | {"configuration_id": row.id})
