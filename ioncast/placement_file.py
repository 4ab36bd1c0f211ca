"""Placement files: the I/O node of each compute node."""

from __future__ import annotations

import csv
from pathlib import Path

import click

from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

_MOST_IO_NODES = 1_000_000

placement_option = click.option(
    "--placement",
    metavar="FILE.csv",
    type=click.Path(path_type=Path),
    help="Lines NODE,NUMBER: the I/O node of each compute node of the logs.",
)


def read_placement(path: Path) -> dict[str, int]:
    """Read the number of the I/O node of each compute node; InputError if a line is not so."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            places = {node.strip(): int(number) for node, number in csv.reader(file)}
    except OSError as error:
        where = visible(str(path))
        raise InputError(error.strerror or str(error), where=where) from error
    except (ValueError, csv.Error) as error:
        raise _wrong_line(path) from error
    if not all(0 <= number < _MOST_IO_NODES for number in places.values()):
        raise _wrong_line(path)
    return places


def _wrong_line(path: Path) -> InputError:
    what = "each line must be NODE,NUMBER"
    return InputError(what, where=visible(str(path)), remedy="write n12,0")
