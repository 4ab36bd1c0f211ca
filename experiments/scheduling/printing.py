"""The measures of policies as text, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Literal, get_args

from experiments.scheduling.comparison import PoliciesCompared
from experiments.scheduling.measures import Measures
from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted, in_digits

Format = Literal["text", "csv", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)


def printed(compared: PoliciesCompared, output_format: Format) -> str:
    """Print the measures of all policies in one of `FORMATS`, without a final newline."""
    if output_format == "json":
        return _json(compared)
    if output_format == "csv":
        return _csv(compared.measures)
    rows = table_rows(compared.measures)
    return text_table(rows, right=rows[0])


def table_rows(measures: Sequence[Measures]) -> list[dict[str, str]]:
    """Make one row for each policy; the names of the columns hold the units."""
    return [
        {
            "policy": one.policy,
            "global MiB/s": f"{one.bandwidth_mib_s:,.1f}",
            "I/O s": in_digits(one.io_mean_s),
            "p90": in_digits(one.io_p90_s),
            "waiting h": in_digits(one.waiting_mean_s / 3600),
            "p90 ": in_digits(one.waiting_p90_s / 3600),
            "turnaround h": in_digits(one.turnaround_mean_s / 3600),
            "slowdown": in_digits(one.slowdown_mean),
            "held up": f"{one.held_up_share:.1%}",
            "makespan h": in_digits(one.makespan_s / 3600),
            "nodes used": f"{one.nodes_used:.1%}",
            "pool used": f"{one.pool_used:.1%}",
        }
        for one in measures
    ]


def described(compared: PoliciesCompared) -> str:
    """Describe in words which queue was replayed, with which curves, shares of I/O and seed."""
    settings = compared.settings
    queue = settings.queue or f"A synthetic queue (load {settings.load:g})"
    least, most = settings.io_share
    return (
        f"{queue} with {counted(len(compared.work), 'job')};"
        f" curves of {settings.system or 'the shipped testbed'};"
        f" share of I/O {least:.0%} to {most:.0%}; seed {settings.seed}"
    )


def _json(compared: PoliciesCompared) -> str:
    record = {
        **asdict(compared.settings),
        "policies": [asdict(one) for one in compared.measures],
        "curves": [{"name": curve.name, "mib_s": curve.mib_s} for curve in compared.work.curves],
    }
    return json.dumps(record, indent=1)


def _csv(measures: Sequence[Measures]) -> str:
    rows = [asdict(one) for one in measures]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")
