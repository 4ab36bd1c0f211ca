"""The report of a campaign: a row and a curve for each configuration."""

from __future__ import annotations

import html
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from benchdb.campaigns.collecting import result_of
from benchdb.campaigns.folder import CampaignFolder
from benchdb.measurements.cells import spread
from ioncast_base.errors import InputError
from ioncast_base.offline_pages import laid_out, paragraph, write_page
from ioncast_base.wording import in_digits
from ior_configs import IorConfig

_PLOT_HEIGHT = 260
_LINE, _POINT = "#1f77b4", "#d95f02"


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
    write_page(path, title=title, parts=[*map(paragraph, texts), curves_figure(rows)])


def curves_figure(rows: Sequence[ReportRow]) -> Figure:
    """A plot for each configuration: a line for the mean, and a point for each run."""
    figure = make_subplots(
        rows=len(rows),
        cols=1,
        subplot_titles=[_title(row) for row in rows],
        vertical_spacing=min(0.35 / max(len(rows), 1), 0.1),
    )
    for index, row in enumerate(rows, start=1):
        measured = {n: values for n, values in row.bandwidths_mib_s.items() if values}
        # Numbers of I/O nodes stand at equal distances, also those without a measurement.
        positions = {n: place for place, n in enumerate(row.bandwidths_mib_s)}
        figure.add_scatter(
            x=[positions[n] for n in measured],
            y=[statistics.fmean(values) for values in measured.values()],
            mode="lines",
            line={"color": _LINE},
            name="mean",
            hovertemplate="mean %{y:.4g} MiB/s<extra></extra>",
            row=index,
            col=1,
        )
        figure.add_scatter(
            x=[positions[n] for n, values in measured.items() for _ in values],
            y=[value for values in measured.values() for value in values],
            mode="markers",
            marker={"color": _POINT, "size": 8},
            name="runs",
            hovertemplate="%{y:.4g} MiB/s<extra></extra>",
            row=index,
            col=1,
        )
        figure.update_xaxes(
            range=[-0.5, len(positions) - 0.5],
            tickvals=list(positions.values()),
            ticktext=[
                f"{n}, {row.failed[n]} failed" if row.failed[n] else str(n) for n in positions
            ],
            row=index,
            col=1,
        )
    figure.update_yaxes(title="MiB/s", rangemode="tozero")
    figure.update_xaxes(title="I/O nodes", row=len(rows), col=1)
    figure.update_annotations(font_size=11, x=0, xanchor="left")
    return laid_out(figure, height=_PLOT_HEIGHT * len(rows) + 80, showlegend=False)


def _title(row: ReportRow) -> str:
    launcher, _, options = row.configuration.partition(" ior ")
    tasks = launcher.rpartition(" ")[2]
    return html.escape(f"{options} ({tasks} on {row.nodes})")


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
