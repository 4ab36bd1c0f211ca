"""The benchmark database: systems, configurations, measurements, curves, coverage."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Annotated, Any

from flask import Blueprint, request
from pydantic import BaseModel, Field
from sqlalchemy import Connection

from benchdb import listing
from benchdb.cells import OUTLIER_RULE
from benchdb.coverage import Cell, CoverageRow, coverage
from benchdb.curves import Curve, curves_of_ids
from benchdb.measurements import system_id_of, system_names
from benchdb.store import transaction
from ioncast_errors import UnknownNameError
from ior_configs import IorConfig
from predictor.service.api import Given, operation
from predictor.service.context import service
from predictor.service.fields import (
    TEXT,
    Bandwidth,
    Count,
    Id,
    Page,
    PageOfSystem,
    PageQuery,
    RanWith,
    SystemName,
    cut,
)
from predictor.service.jobs import Imported, import_measurements, store_rows
from predictor.service.uploads import place, uploaded

benchmarks = Blueprint("benchmarks", __name__)

_MOST_ROWS = 10_000
_YEAR_S = 365 * 86_400

Command = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4000,
        pattern=TEXT,
        description="An IOR command line of one operation.",
        examples=["mpiexec -n 16 ior -a POSIX -w -F -b 24m -t 24m"],
    ),
]
_Tasks = Annotated[Count, Field(description="Processes, instead of the command line's.")]
_Nodes = Annotated[Count, Field(description="Compute nodes, instead of the command line's.")]
_Line = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00\r\n]*$")]


class NewSystem(Given):
    """A system."""

    name: SystemName


class SystemItem(BaseModel):
    """A system, and what came from it."""

    name: str
    imports: int = Field(description="How many files of measurements.")
    newest: str | None = Field(description="When the last one was imported.")


class SystemPage(Page[SystemItem]):
    """Systems by name."""


class SystemQuery(PageQuery):
    """Which systems."""

    after: str | None = Field(  # type: ignore[assignment]
        None, max_length=200, pattern=TEXT, description="The last system of the page before."
    )


class NewConfiguration(Given):
    """A configuration: an IOR run without its number of I/O nodes."""

    command: Command
    tasks: _Tasks | None = None
    nodes: _Nodes | None = None


class MeasuredOn(BaseModel):
    """What one engine measured on one system."""

    system: str
    engine: str
    io_nodes: list[int] = Field(description="Numbers of I/O nodes with measurements in use.")
    repetitions: int = Field(description="Measurements in use.")
    set_apart: int = Field(description="Measurements that are kept and not used.")


class ConfigurationItem(BaseModel):
    """A configuration, and where it was measured."""

    id: int
    command: str = Field(description="The IOR command line.")
    tasks: int | None
    nodes: int | None
    measured: list[MeasuredOn]


class ConfigurationPage(Page[ConfigurationItem]):
    """Configurations in the order of their ids."""


class ConfigurationQuery(PageQuery):
    """Which configurations."""

    system: SystemName | None = Field(
        None, description="Only what was measured on this system, and what was measured there."
    )


class NewMeasurement(Given):
    """A repetition of a configuration with a number of I/O nodes."""

    command: Command
    tasks: _Tasks | None = None
    nodes: _Nodes | None = None
    io_nodes: RanWith
    bandwidth_mib_s: Bandwidth
    bytes: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = Field(
        None, description="Bytes that were moved."
    )
    time_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="The time of the slowest process."
    )
    started: Annotated[_Line, Field(max_length=40)] | None = Field(
        None, description="When, ISO 8601."
    )
    engine: Annotated[_Line, Field(max_length=40)] | None = Field(
        None, description="The program that measured; by default ior."
    )
    engine_version: Annotated[_Line, Field(max_length=40)] | None = None
    note: _Line | None = None


class NewMeasurements(Given):
    """Measurements of a system."""

    system: SystemName
    measurements: list[NewMeasurement] = Field(min_length=1, max_length=_MOST_ROWS)


class MeasurementFile(Given):
    """What a file of measurements does not say."""

    system: SystemName
    io_nodes: RanWith | None = Field(
        None, description="I/O nodes of these runs, where the file does not say (IOR's outputs)."
    )
    tasks: Count | None = Field(None, description="Processes, instead of the file's.")
    nodes: Count | None = Field(None, description="Compute nodes, instead of the file's.")
    command: Command | None = Field(
        None, description="The IOR command line, for files that do not hold it."
    )
    replace: bool = Field(False, description="Correct an earlier import of the same file.")


class MeasurementsAnswer(BaseModel):
    """What became of measurements."""

    stored: bool = Field(description="False if the system has them already.")
    format: str = Field(description="The name of the file's format.")
    measurements: int
    configurations: int


class MeasurementItem(BaseModel):
    """A measurement."""

    id: int
    configuration_id: int
    command: str = Field(description="The configuration's IOR command line.")
    tasks: int | None
    nodes: int | None
    io_nodes: int
    repetition: int = Field(description="Its number in its cell, from 0.")
    bandwidth_mib_s: float
    bytes: int | None
    time_s: float | None
    started: str | None
    engine: str
    engine_version: str | None
    used: bool = Field(description="False where its file sets it apart.")
    note: str | None
    campaign: str | None


class MeasurementPage(Page[MeasurementItem]):
    """Measurements by configuration, I/O nodes, engine and repetition."""


class MeasurementQuery(PageOfSystem):
    """Which measurements."""

    configuration: Id | None = Field(None, description="Only this configuration's.")


class CurveCell(BaseModel):
    """The repetitions with a number of I/O nodes."""

    io_nodes: int
    bandwidths_mib_s: list[float] = Field(description="In the order they were stored.")


class CurveItem(BaseModel):
    """A measured curve of one engine."""

    configuration_id: int
    command: str = Field(description="The configuration's IOR command line.")
    tasks: int | None
    nodes: int | None
    engine: str
    stonewalled: bool = Field(description="Runs moved other bytes than they were asked to.")
    cells: list[CurveCell]


class CurvePage(Page[CurveItem]):
    """Curves by configuration; `limit` counts configurations."""


class CurveQuery(PageOfSystem):
    """Which curves."""

    configuration: Id | None = Field(None, description="Only this configuration's.")


class CellItem(BaseModel):
    """A configuration with one number of I/O nodes."""

    io_nodes: int
    repetitions: int = Field(description="Measurements in use.")
    set_apart: int = Field(description="Measurements that are kept and not used.")
    missing: bool
    mean_mib_s: float | None
    median_mib_s: float | None
    spread: float | None = Field(description="Coefficient of variation.")
    outliers_mib_s: list[float]
    bimodal: bool
    newest: datetime | None = Field(description="When the newest one was measured or imported.")
    stale: bool


class CoverageItem(BaseModel):
    """The cells of one configuration, of one engine."""

    configuration_id: int
    command: str = Field(description="The configuration's IOR command line.")
    tasks: int | None
    nodes: int | None
    engine: str
    cells: list[CellItem] = Field(
        description="One for each number of I/O nodes seen on the page, the missing as well."
    )


class CoveragePage(Page[CoverageItem]):
    """Coverage by configuration; `limit` counts configurations."""

    outlier_rule: str = OUTLIER_RULE
    stale_after_s: float


class CoverageQuery(PageOfSystem):
    """Which cells."""

    stale_after_s: Annotated[float, Field(gt=0, le=1e10)] = Field(
        _YEAR_S, description="How old a cell's newest repetition may be."
    )


@benchmarks.get("/v1/systems")
@operation("Which systems are there?", query=SystemQuery, answers={200: SystemPage}, also=(503,))
def list_systems(query: SystemQuery) -> SystemPage:
    """List systems by name."""
    with transaction(service().database) as connection:
        rows = listing.systems_after(connection, query.after or "", query.limit + 1)
    shown, following = cut(rows, query.limit, lambda row: row.name)
    return SystemPage(items=[SystemItem(**vars(row)) for row in shown], next=following)


@benchmarks.post("/v1/systems")
@operation(
    "Name a system",
    role="admin",
    body=NewSystem,
    answers={200: SystemItem, 201: SystemItem},
    also=(503,),
)
def put_system(body: NewSystem) -> tuple[SystemItem, int]:
    """Make a system known before anything is measured on it. 200 if it is known."""
    with transaction(service().database, write=True) as connection:
        known = body.name in system_names(connection)
        system_id_of(connection, body.name)
        found = listing.system(connection, body.name)
    return SystemItem(**vars(found)), 200 if known else 201


@benchmarks.get("/v1/configurations")
@operation(
    "Which configurations are there?",
    query=ConfigurationQuery,
    answers={200: ConfigurationPage},
    also=(404, 503),
)
def list_configurations(query: ConfigurationQuery) -> ConfigurationPage:
    """List configurations and where each was measured, in the order of their ids."""
    with transaction(service().database) as connection:
        rows = listing.configurations_after(
            connection, system=query.system, after=query.after or 0, limit=query.limit + 1
        )
    shown, following = cut(rows, query.limit, lambda row: row.id)
    return ConfigurationPage(items=[_configuration(row) for row in shown], next=following)


@benchmarks.post("/v1/configurations")
@operation(
    "Name a configuration",
    role="admin",
    body=NewConfiguration,
    answers={200: ConfigurationItem, 201: ConfigurationItem},
    also=(503,),
)
def put_configuration(body: NewConfiguration) -> tuple[ConfigurationItem, int]:
    """Make a configuration known before it is measured. 200 if it is known."""
    config = IorConfig.from_command_line(body.command)
    config = replace(
        config.for_operation(config.operation),
        tasks=body.tasks or config.tasks,
        nodes=body.nodes or config.nodes,
    )
    with transaction(service().database, write=True) as connection:
        found, new = listing.configuration_of(connection, config)
    return _configuration(found), 201 if new else 200


@benchmarks.get("/v1/measurements")
@operation(
    "What was measured?",
    query=MeasurementQuery,
    answers={200: MeasurementPage},
    also=(404, 503),
)
def list_measurements(query: MeasurementQuery) -> MeasurementPage:
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
    body=NewMeasurements,
    form=MeasurementFile,
    files={"file": "In any format that `ioncast bench import` knows."},
    answers={200: MeasurementsAnswer, 201: MeasurementsAnswer},
    also=(413, 503),
)
def put_measurements(
    body: NewMeasurements | None, form: MeasurementFile | None
) -> tuple[MeasurementsAnswer, int]:
    """Store all of what is sent, or nothing. The same content twice changes nothing (200)."""
    run = service().children.run
    if body is not None:
        rows = [row.model_dump(exclude_none=True) for row in body.measurements]
        sent = request.get_data()
        return _stored(run(store_rows, place(), "measurements", sent, body.system, rows))
    assert form is not None  # noqa: S101
    with uploaded("file") as upload:
        return _stored(run(import_measurements, place(), upload, **form.model_dump()))


@benchmarks.get("/v1/curves")
@operation(
    "What bandwidth was measured with each number of I/O nodes?",
    query=CurveQuery,
    answers={200: CurvePage},
    also=(404, 503),
)
def list_curves(query: CurveQuery) -> CurvePage:
    """List a system's curves with every repetition in use, by configuration."""
    with transaction(service().database) as connection:
        ids = _ids(connection, query, query.configuration)
        shown, following = cut(ids, query.limit, int)
        rows = curves_of_ids(connection, query.system, shown)
    return CurvePage(items=[_curve(row) for row in rows], next=following)


@benchmarks.get("/v1/coverage")
@operation(
    "What was measured how often, how evenly and when?",
    query=CoverageQuery,
    answers={200: CoveragePage},
    also=(404, 503),
)
def list_coverage(query: CoverageQuery) -> CoveragePage:
    """List the cells of a system, by configuration."""
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
        items=[_coverage(row) for row in by_id],
        next=following,
        stale_after_s=query.stale_after_s,
    )


def _ids(connection: Connection, query: PageOfSystem, one: int | None) -> list[int]:
    """The configurations of a page and the one after it, or one of them."""
    after, most = (query.after or 0, query.limit + 1) if one is None else (one - 1, 1)
    found = listing.measured_ids(connection, query.system, after, most)
    if one is not None and found != [one]:
        raise UnknownNameError(f"nothing was measured on {query.system!r} of configuration {one}")
    return found


def _stored(found: Imported) -> tuple[MeasurementsAnswer, int]:
    answer = MeasurementsAnswer(
        stored=found.stored,
        format=found.file_format,
        measurements=found.measurements,
        configurations=found.configurations,
    )
    return answer, 201 if found.stored else 200


def _named(config: IorConfig) -> dict[str, Any]:
    """How a configuration is shown."""
    return {"command": config.command_line(), "tasks": config.tasks, "nodes": config.nodes}


def _configuration(row: listing.StoredConfiguration) -> ConfigurationItem:
    measured = [MeasuredOn.model_validate(one, from_attributes=True) for one in row.measured]
    return ConfigurationItem(id=row.id, **_named(row.config), measured=measured)


def _measurement(row: listing.StoredMeasurement) -> MeasurementItem:
    one = row.measurement
    return MeasurementItem(
        id=row.id,
        configuration_id=row.configuration_id,
        **_named(one.config),
        io_nodes=one.io_nodes,
        repetition=row.repetition,
        bandwidth_mib_s=one.bandwidth_mib_s,
        bytes=one.bytes,
        time_s=one.time_s,
        started=one.started,
        engine=one.engine,
        engine_version=one.engine_version,
        used=one.used,
        note=one.note,
        campaign=one.campaign,
    )


def _curve(row: Curve) -> CurveItem:
    return CurveItem(
        configuration_id=row.id,
        **_named(row.config),
        engine=row.engine,
        stonewalled=row.stonewalled,
        cells=[
            CurveCell(io_nodes=n, bandwidths_mib_s=list(values))
            for n, values in sorted(row.bandwidths_mib_s.items())
        ],
    )


def _coverage(row: CoverageRow) -> CoverageItem:
    return CoverageItem(
        configuration_id=row.id,
        **_named(row.config),
        engine=row.engine,
        cells=[_cell(cell) for cell in row.cells],
    )


def _cell(cell: Cell) -> CellItem:
    return CellItem.model_validate(cell, from_attributes=True)
