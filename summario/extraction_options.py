"""The options of the extraction, which all commands that read logs share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import reduce, wraps
from typing import Any

import click

from ioncast_base.command_options import Number
from summario.phases.settings import DEFAULTS, LAYERS, SOURCES, ExtractionSettings
from summario.runs.joining import JOINS

Command = Callable[..., None]

_OPTIONS = (
    click.option(
        "--threshold",
        type=Number(0, 1),
        default=DEFAULTS.threshold,
        show_default=True,
        help="Share of requests that may be out of order.",
    ),
    click.option(
        "--time-distance",
        type=Number(min=0),
        default=DEFAULTS.time_distance,
        show_default=True,
        help="A longer time without I/O, in seconds, ends a phase.",
    ),
    click.option(
        "--layer",
        type=click.Choice(LAYERS),
        default=DEFAULTS.layer,
        show_default=True,
        help="Calls to count: those of each file's highest layer, of one layer, or of all.",
    ),
    click.option("--all-files", is_flag=True, help="Also count system files and standard streams."),
    click.option(
        "--min-share",
        type=Number(0, 1, max_open=True),
        default=DEFAULTS.min_share,
        show_default=True,
        help="Leave out phases with a smaller share of the bytes, such as 0.01.",
    ),
    click.option(
        "--phases",
        type=click.Choice(SOURCES),
        default=DEFAULTS.phases,
        show_default=True,
        help="Source of order, sizes and shares of requests: Darshan's counters, or its DXT trace.",
    ),
)


def join_option(effect: str, default: str | None = None) -> Callable[[Command], Command]:
    """Make the option that says which logs are one run; `effect` says what happens to them."""
    return click.option(
        "--join",
        type=click.Choice(JOINS),
        default=default,
        show_default=default is not None,
        help=f"{effect}: those of a job that overlap in time (steps), or all of a job (job).",
    )


def extraction_options(command: Command) -> Command:
    """Add the options of the extraction to a command, which gets them as `extraction`."""

    @wraps(command)
    def with_settings(**options: Any) -> None:
        given = {field.name: options.pop(field.name) for field in fields(ExtractionSettings)}
        command(**options, extraction=ExtractionSettings(**given))

    return reduce(lambda made, option: option(made), reversed(_OPTIONS), with_settings)
