"""Requests and answers of operations on the benchmark database."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from benchdb.measurements.cells import OUTLIER_RULE
from benchdb.measurements.coverage import STALE_AFTER_S
from benchdb.measurements.importers import UNKNOWN_FSYNC
from benchdb.measurements.listing import MeasuredOn
from ioncast.service.web.http.fields import TEXT, Bandwidth, RanWith, SystemName
from ioncast.service.web.http.given import RequestModel
from ioncast.service.web.http.lists import Page, PageOfSystem, PageQuery
from ioncast_base.kinds import Fsync
from ioncast_base.quantities import Bytes, Count, Id, IoNodes

_MOST_ROWS = 10_000
_MOST_CURVES = 500
_MOST_CELLS = 1_000
_MOST_CONFIGURATIONS = 500
_MOST_POINTS = 64

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
_Fsync = Annotated[
    Fsync | None,
    Field(description="When it calls fsync: never, at the end, after each write; null if unknown."),
]
_Tasks = Annotated[Count, Field(description="Processes; they replace those of the command line.")]
_Nodes = Annotated[
    Count, Field(description="Compute nodes; they replace those of the command line.")
]
_Line = Annotated[str, Field(max_length=1000, pattern=r"^[^\x00\r\n]*$")]
_Engine = Annotated[
    _Line, Field(max_length=40, description="The program behind the measurement; by default ior.")
]
_StaleAfter = Annotated[
    float,
    Field(
        gt=0,
        le=1e10,
        description="A cell is stale when its newest repetition is older, in seconds.",
    ),
]


class NewSystem(RequestModel):
    """A new system."""

    name: SystemName


class NewChange(RequestModel):
    """A change of a machine."""

    system: SystemName
    since: Annotated[_Line, Field(min_length=1, max_length=40)] = Field(
        description="When the machine changed: a date or a time, ISO 8601; without a zone in UTC.",
        examples=["2026-11-20"],
    )
    why: str = Field(
        min_length=1,
        max_length=500,
        pattern=TEXT,
        description="The change in words.",
        examples=["new file system"],
    )


class ChangeItem(BaseModel):
    """A change of a machine: measurements and outcomes from before it do not count."""

    system: str
    since: str
    why: str
    noted_at: str


class ChangeQuery(RequestModel):
    """The system whose change is taken back."""

    system: SystemName


class UntriedItem(BaseModel):
    """An application, and a number of I/O nodes that it never ran with and that may be better."""

    id: int = Field(description="The id of the application.")
    program: str
    user: str
    io_nodes: int
    chosen: int = Field(description="The number that its jobs get instead.")
    loss: float = Field(description="The share of the bandwidth that one run is expected to lose.")
    gain: float = Field(
        description="The share by which later runs are expected to be faster, if one run is known."
    )


class SystemItem(BaseModel):
    """A system with its imports and its change."""

    name: str
    imports: int = Field(description="The number of imported files.")
    newest: str | None = Field(description="The time of the newest import.")
    change: ChangeItem | None = Field(description="The last change of the machine that is noted.")
    untried: int = Field(
        description="The number of applications that never ran with a number of I/O nodes that may"
        " be better. 0 if the service tries such numbers itself (`explore`)."
    )
    largest_untried: list[UntriedItem] = Field(
        description="At most ten of them, the largest gains first. Not in pages."
    )


class SystemPage(Page[SystemItem]):
    """Systems by name."""


class SystemQuery(PageQuery):
    """A part of the list of systems."""

    after: str | None = Field(  # type: ignore[assignment]
        None, max_length=200, pattern=TEXT, description="The last system of the page before."
    )


class NewConfiguration(RequestModel):
    """A configuration: an IOR run without its number of I/O nodes."""

    command: Command
    tasks: _Tasks | None = None
    nodes: _Nodes | None = None


class DescribedConfiguration(BaseModel):
    """A configuration in an answer."""

    command: str = Field(description="The configuration's IOR command line.")
    tasks: int | None
    nodes: int | None
    fsync: _Fsync


class ConfigurationItem(DescribedConfiguration):
    """A configuration with its measurements by system."""

    id: int
    measured: list[MeasuredOn]


class ConfigurationPage(Page[ConfigurationItem]):
    """Configurations in the order of their ids."""


class ConfigurationQuery(PageQuery):
    """A part of the list of configurations."""

    system: SystemName | None = Field(
        None, description="Only configurations and measurements of this system."
    )


class NewMeasurement(NewConfiguration):
    """A repetition of a configuration with a number of I/O nodes."""

    io_nodes: RanWith
    bandwidth_mib_s: Bandwidth
    bytes: Bytes | None = Field(None, description="Bytes that the run moved.")
    time_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="The time of the slowest process."
    )
    started: Annotated[_Line, Field(max_length=40)] | None = Field(
        None, description="The start of the run in ISO 8601."
    )
    engine: _Engine | None = None
    engine_version: Annotated[_Line, Field(max_length=40)] | None = None
    note: _Line | None = None


class NewMeasurements(RequestModel):
    """Measurements of a system."""

    system: SystemName
    measurements: list[NewMeasurement] = Field(min_length=1, max_length=_MOST_ROWS)


class MeasurementFile(RequestModel):
    """Facts about measurements that their file does not contain."""

    system: SystemName
    io_nodes: RanWith | None = Field(
        None,
        description="I/O nodes of these runs, for files that do not name them (IOR's outputs).",
    )
    tasks: Count | None = Field(None, description="Processes; they replace those of the file.")
    nodes: Count | None = Field(None, description="Compute nodes; they replace those of the file.")
    command: Command | None = Field(
        None, description="The IOR command line, for files that do not contain it."
    )
    replace: bool = Field(False, description="Correct an earlier import of the same file.")


class MeasurementsAnswer(BaseModel):
    """The result of an import."""

    stored: bool = Field(description="False if the system has the measurements already.")
    format: str = Field(description="The name of the file's format.")
    measurements: int
    configurations: int


class MeasurementItem(DescribedConfiguration):
    """A measurement."""

    id: int
    configuration_id: int
    io_nodes: int
    repetition: int = Field(description="The number of the repetition in its cell, from 0.")
    bandwidth_mib_s: float
    bytes: int | None
    time_s: float | None
    started: str | None
    engine: str
    engine_version: str | None
    used: bool = Field(description="False if the file sets the measurement apart.")
    note: str | None
    campaign: str | None
    before_change: bool = Field(
        description="Whether it is from before the newest change of the system, and does not count."
    )


class MeasurementPage(Page[MeasurementItem]):
    """Measurements by configuration, I/O nodes, engine and repetition."""


class MeasuredQuery(PageOfSystem):
    """A part of the list of a system's measurements or curves."""

    configuration: Id | None = Field(None, description="Only measurements of this configuration.")


class CurveCell(BaseModel):
    """The repetitions with one number of I/O nodes."""

    io_nodes: int
    bandwidths_mib_s: list[float] = Field(description="In MiB/s, in the order of repetitions.")


class CurveItem(DescribedConfiguration):
    """A measured curve of one engine."""

    configuration_id: int
    engine: str
    stonewalled: bool = Field(
        description="Whether a time limit ended runs before they moved all bytes."
    )
    cells: list[CurveCell]


class NewCell(RequestModel):
    """The repetitions with one number of I/O nodes."""

    io_nodes: RanWith
    bandwidths_mib_s: list[Bandwidth] = Field(min_length=1, max_length=_MOST_ROWS)


class NewCurve(NewConfiguration):
    """A curve of a configuration, for example from a report or a paper."""

    fsync: Fsync | None = Field(
        None, description="When it calls fsync: as the command says if left out; null if not known."
    )
    engine: _Engine | None = None
    cells: list[NewCell] = Field(min_length=1, max_length=_MOST_CELLS)

    def rows(self) -> list[dict[str, Any]]:
        """Return a measurement for each repetition."""
        told = self.model_dump(exclude={"cells"}, exclude_none=True)
        if "fsync" in self.model_fields_set:
            told["fsync"] = self.fsync or UNKNOWN_FSYNC
        return [
            {**told, "io_nodes": cell.io_nodes, "bandwidth_mib_s": bandwidth_mib_s}
            for cell in self.cells
            for bandwidth_mib_s in cell.bandwidths_mib_s
        ]


def _at_most_storable(curves: list[NewCurve]) -> list[NewCurve]:
    found = sum(len(cell.bandwidths_mib_s) for curve in curves for cell in curve.cells)
    if found > _MOST_ROWS:
        raise ValueError(f"the curves have {found} bandwidths; at most {_MOST_ROWS} are accepted")
    return curves


class NewCurves(RequestModel):
    """Curves of a system."""

    system: SystemName
    curves: Annotated[
        list[NewCurve],
        Field(
            min_length=1,
            max_length=_MOST_CURVES,
            description=f"Curves with at most {_MOST_ROWS:,} bandwidths together.",
        ),
        AfterValidator(_at_most_storable),
    ]


class CurvePage(Page[CurveItem]):
    """Curves by configuration; `limit` counts configurations."""


class CellItem(BaseModel):
    """A configuration with one number of I/O nodes."""

    io_nodes: int
    repetitions: int = Field(description="Measurements in use.")
    set_apart: int = Field(description="Measurements that are kept and not used.")
    before_change: int = Field(
        description="Measurements from before the newest change of the system, which do not count."
    )
    missing: bool
    mean_mib_s: float | None
    median_mib_s: float | None
    spread: float | None = Field(description="The coefficient of variation.")
    outliers_mib_s: list[float]
    bimodal: bool
    newest: datetime | None = Field(
        description="The time when the newest repetition was measured, or else imported."
    )
    stale: bool


class CoverageItem(DescribedConfiguration):
    """The cells of one configuration, of one engine."""

    configuration_id: int
    engine: str
    cells: list[CellItem] = Field(
        description="A cell for each number of I/O nodes on the page; some may be missing."
    )


class CoveragePage(Page[CoverageItem]):
    """Coverage by configuration; `limit` counts configurations."""

    outlier_rule: str = OUTLIER_RULE
    stale_after_s: float


class CoverageQuery(PageOfSystem):
    """A part of a system's coverage."""

    stale_after_s: _StaleAfter = STALE_AFTER_S


class CoverageAsked(RequestModel):
    """A question for the cells of configurations with numbers of I/O nodes."""

    system: SystemName
    configurations: list[NewConfiguration] = Field(
        min_length=1,
        max_length=_MOST_CONFIGURATIONS,
        description="Configurations; the database may lack them.",
    )
    io_nodes: list[IoNodes] = Field(
        min_length=1,
        max_length=_MOST_POINTS,
        description="The numbers of I/O nodes that are wanted.",
        examples=[[0, 1, 2, 4, 8]],
    )
    stale_after_s: _StaleAfter = STALE_AFTER_S


class WantedItem(DescribedConfiguration):
    """The cells of a configuration that was asked for, of one engine."""

    configuration_id: int | None = Field(
        description="Null if the database lacks the configuration."
    )
    engine: str | None = Field(description="Null if nothing was measured on the system.")
    cells: list[CellItem] = Field(
        description="A cell for each number of I/O nodes in the request; some may be missing."
    )


class CoverageAnswer(BaseModel):
    """Coverage of configurations."""

    items: list[WantedItem] = Field(
        description="In the order of the request: an item for each engine that measured the"
        " configuration, or one without an engine. Not in pages."
    )
    outlier_rule: str = OUTLIER_RULE
    stale_after_s: float
