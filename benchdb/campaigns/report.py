"""The report of a campaign: a row and a curve for each configuration, for mdtest four of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchdb.campaigns.collecting import RunResult, result_of
from benchdb.campaigns.folder import CampaignFolder
from benchdb.measurements.cells import spread
from benchdb.measurements.file_rates import FILE_OPERATIONS
from ioncast_base.errors import InputError
from ioncast_base.pages.figures import Figure, Line, Panel, Points, Series, categories, from_zero
from ioncast_base.pages.page import drawn, heading, paragraph, write_page
from ioncast_base.wording import in_digits
from ior_configs import IorConfig, MdtestConfig

BANDWIDTH = "bandwidth"


@dataclass(frozen=True)
class ReportRow:
    """A configuration with its measurements so far.

    `measured` is "bandwidth", or the operation of mdtest. `values` are MiB/s or files per second by
    number of I/O nodes.
    """

    configuration: str
    nodes: int | None
    measured: str
    values: dict[int, list[float]]
    failed: dict[int, int]

    @property
    def unit(self) -> str:
        """The unit of the values."""
        return "MiB/s" if self.measured == BANDWIDTH else "files/s"

    def cells(self) -> dict[str, str]:
        """The row as text: mean, spread and number of runs for each number of I/O nodes."""
        operation = {} if self.measured == BANDWIDTH else {"operation": self.measured}
        columns = {str(n): _cell(values, self.failed[n]) for n, values in self.values.items()}
        return {
            "configuration": self.configuration,
            **operation,
            "nodes": str(self.nodes),
            **columns,
        }

    def to_record(self) -> dict[str, Any]:
        """The row as plain values for JSON."""
        named = {
            "configuration": self.configuration,
            "nodes": self.nodes,
            "failed": self.failed,
        }
        if self.measured == BANDWIDTH:
            return {**named, "bandwidths_mib_s": self.values}
        return {**named, "operation": self.measured, "files_per_s": self.values}


def rows_of(folder: CampaignFolder) -> list[ReportRow]:
    """A row for each configuration, in the order of the campaign file; for mdtest four rows."""
    rows: dict[tuple[IorConfig | MdtestConfig, str], ReportRow] = {}
    for run in folder.runs:
        config, n = run.cell.config, run.cell.io_nodes
        result = result_of(folder, run)
        is_files = isinstance(config, MdtestConfig)
        for measured in FILE_OPERATIONS if is_files else (BANDWIDTH,):
            row = rows.setdefault(
                (config, measured),
                ReportRow(config.command_line(launcher=True), config.nodes, measured, {}, {}),
            )
            values = row.values.setdefault(n, [])
            row.failed.setdefault(n, 0)
            value = _value(result, measured)
            if value is not None:
                values.append(value)
            elif result:
                row.failed[n] += 1
    return list(rows.values())


def _value(result: RunResult | None, measured: str) -> float | None:
    if result is None:
        return None
    if measured == BANDWIDTH:
        return result.bandwidth_mib_s
    return (result.files_per_s or {}).get(measured)


def write_html(
    folder: CampaignFolder, rows: Sequence[ReportRow], path: str | Path, count: str
) -> None:
    """Write the curves as one HTML page that needs no other files."""
    if not rows:
        raise InputError(
            "the platform cannot run any configuration of the campaign", where=str(folder.path)
        )
    title = f"{folder.campaign.name} on {folder.platform.system}, measured with {folder.engine}"
    texts = (folder.campaign.description, count, _LEGEND)
    figures = (
        part
        for row in rows
        for part in (heading(_title(row), 3), drawn(curve_figure(row), _title(row)))
    )
    write_page(path, title=title, parts=[*map(paragraph, texts), *figures])


def curve_figure(row: ReportRow) -> Figure:
    """A line for the mean, and a point for each run."""
    measured = {n: values for n, values in row.values.items() if values}
    # Numbers of I/O nodes stand at equal distances, also those without a measurement.
    places = {n: place for place, n in enumerate(row.values)}
    names = [f"{n}, {row.failed[n]} failed" if row.failed[n] else str(n) for n in places]
    runs = [(places[n], value) for n, values in measured.items() for value in values]
    series: list[Series] = [
        Line(
            "mean",
            "var(--line)",
            [places[n] for n in measured],
            [statistics.fmean(values) for values in measured.values()],
        ),
        Points(
            "runs",
            "var(--runs)",
            [place for place, _ in runs],
            [value for _, value in runs],
            hints=[f"{in_digits(value, 4)} {row.unit}" for _, value in runs],
        ),
    ]
    return Figure([Panel(categories(names, "I/O nodes"), from_zero(series, row.unit), series, 200)])


def _title(row: ReportRow) -> str:
    program = "ior" if row.measured == BANDWIDTH else "mdtest"
    launcher, _, options = row.configuration.partition(f" {program} ")
    tasks = launcher.rpartition(" ")[2]
    operation = "" if row.measured == BANDWIDTH else f"{row.measured}: mdtest "
    return f"{operation}{options} ({tasks} on {row.nodes})"


def _cell(values: Sequence[float], failed: int) -> str:
    text = "-"
    if values:
        varies = spread(values)
        text = in_digits(statistics.fmean(values), 4)
        text += f" ±{varies:.0%}" if varies is not None else ""
        text += f" ({len(values)})"
    return f"{text}, {failed} failed" if failed else text


_LEGEND = (
    "Bandwidth, or files per second, by number of I/O nodes: each run is a point, and the line is"
    " their mean. The title of each plot has the options of the benchmark, the number of processes"
    " and the number of compute nodes."
)
