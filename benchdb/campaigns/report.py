"""The report of a campaign: a row and a curve for each configuration."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchdb.campaigns.collecting import result_of
from benchdb.campaigns.folder import CampaignFolder
from benchdb.measurements.cells import spread
from ioncast_base.errors import InputError
from ioncast_base.pages.figures import Figure, Line, Panel, Points, Series, categories, from_zero
from ioncast_base.pages.page import drawn, heading, paragraph, write_page
from ioncast_base.wording import bandwidth, in_digits
from ior_configs import IorConfig


@dataclass(frozen=True)
class ReportRow:
    """A configuration with its measurements so far."""

    configuration: str
    nodes: int | None
    bandwidths_mib_s: dict[int, list[float]]
    failed: dict[int, int]

    def cells(self) -> dict[str, str]:
        """The row as text: mean, spread and number of runs for each number of I/O nodes."""
        columns = {
            str(n): _cell(values, self.failed[n]) for n, values in self.bandwidths_mib_s.items()
        }
        return {"configuration": self.configuration, "nodes": str(self.nodes), **columns}


def rows_of(folder: CampaignFolder) -> list[ReportRow]:
    """A row for each configuration, in the order of the campaign file."""
    rows: dict[IorConfig, ReportRow] = {}
    for run in folder.runs:
        config, n = run.cell.config, run.cell.io_nodes
        row = rows.setdefault(
            config, ReportRow(config.command_line(launcher=True), config.nodes, {}, {})
        )
        values = row.bandwidths_mib_s.setdefault(n, [])
        row.failed.setdefault(n, 0)
        result = result_of(folder, run)
        if result and result.bandwidth_mib_s is not None:
            values.append(result.bandwidth_mib_s)
        elif result:
            row.failed[n] += 1
    return list(rows.values())


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
    measured = {n: values for n, values in row.bandwidths_mib_s.items() if values}
    # Numbers of I/O nodes stand at equal distances, also those without a measurement.
    places = {n: place for place, n in enumerate(row.bandwidths_mib_s)}
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
            hints=[bandwidth(value) for _, value in runs],
        ),
    ]
    return Figure([Panel(categories(names, "I/O nodes"), from_zero(series, "MiB/s"), series, 200)])


def _title(row: ReportRow) -> str:
    launcher, _, options = row.configuration.partition(" ior ")
    tasks = launcher.rpartition(" ")[2]
    return f"{options} ({tasks} on {row.nodes})"


def _cell(values: Sequence[float], failed: int) -> str:
    text = "-"
    if values:
        varies = spread(values)
        text = in_digits(statistics.fmean(values), 4)
        text += f" ±{varies:.0%}" if varies is not None else ""
        text += f" ({len(values)})"
    return f"{text}, {failed} failed" if failed else text


_LEGEND = (
    "Bandwidth by number of I/O nodes: each run is a point, and the line is their mean. The title"
    " of each plot has the IOR options, the number of processes and the number of compute nodes."
)
