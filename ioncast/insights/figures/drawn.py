"""`Drawn`: a figure with a sentence about it and its numbers; helpers that all figures share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from ioncast_base.limits import MOST_BYTES
from ioncast_base.pages.figures import Figure
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits

Document = Mapping[str, Any]

READ, WRITE, METADATA = "var(--kind-0)", "var(--kind-1)", "var(--kind-3)"
NO_NUMBER = "–"
# As many characters fit above a bar on the screen of a telephone.
LONGEST_NAME = 44
_LARGEST_PERCENT = 0.995


class Column(NamedTuple):
    """A column of numbers or, with `is_text`, of texts."""

    name: str
    is_text: bool = False


@dataclass(frozen=True)
class Drawn:
    """A figure (None if the log has only numbers) and its numbers.

    `key` is its name in addresses of a page, `said` a sentence that says what it shows, and
    `findings` has codes of findings about the same numbers. The first column names the row.
    """

    key: str
    title: str
    said: str
    figure: Figure | None
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    findings: tuple[str, ...] = ()
    is_wide: bool = False


class Values(dict[tuple[str, str], Any]):
    """The values of a table by layer and characteristic."""

    def number(self, layer: str, characteristic: str) -> float:
        """Look up a number; 0 if the table does not have it."""
        return number(self.get((layer, characteristic)))

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers, in the order of the table."""
        return tuple(dict.fromkeys(layer for layer, _ in self))


def values_of(run: Document, table: str) -> Values:
    """Look up the values of a table of a characterisation."""
    return Values(
        {
            (row[0], row[1]): row[2]
            for record in run["tables"]
            if record["name"] == table
            for row in record["rows"]
        }
    )


def number(value: Any) -> float:
    """Convert a value to a number that figures can show: 0 for all that no run has."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return min(value, MOST_BYTES) if is_number and isfinite(value) and value > 0 else 0


def percent(part: float, whole: float) -> str:
    """Write a share; 100% and 0% are only said of all and nothing.

    Examples
    --------
    >>> percent(12287, 12288), percent(1, 1), percent(1, 3000), percent(71, 100)
    ('more than 99%', '100%', 'less than 1%', '71%')
    """
    share = part / whole if whole else 0.0
    if 0 < share < 1 - _LARGEST_PERCENT:
        return "less than 1%"
    if _LARGEST_PERCENT <= share < 1:
        return "more than 99%"
    return f"{share:.0%}"


def in_seconds(value: float) -> str:
    """Write seconds with their unit."""
    return f"{in_digits(value)} s"


def short_name(text: str) -> str:
    """Write a path in a figure, without its middle if it is long."""
    name = visible(text)
    if len(name) > LONGEST_NAME:
        end = LONGEST_NAME * 2 // 3
        name = f"{name[: LONGEST_NAME - end - 1]}…{name[-end:]}"
    return name
