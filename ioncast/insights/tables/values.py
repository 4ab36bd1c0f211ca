"""`Table`, `Line` and `Characteristic`: what a characterisation consists of, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Unit = Literal["", "bytes", "seconds", "times", "rank", "bytes²", "seconds²"]
Column: TypeAlias = NDArray[Any] | Sequence[Any]
Value: TypeAlias = int | float | str | None
COLUMNS = ("layer", "characteristic", "value", "unit", "share", "of", "note")


class Characteristic(NamedTuple):
    """A characteristic of one group of files, with the columns `COLUMNS`.

    `layer` is an api or a library's module ("H5D"), empty for all. `share` (0 to 1) is of the thing
    that `of` names. `note` restricts the value, or says why it is not known (None).
    """

    layer: str
    characteristic: str
    value: Value
    unit: Unit
    share: float | None
    of: str
    note: str

    @property
    def key(self) -> tuple[str, str]:
        """The layer and the characteristic, which no other row of the table has."""
        return self.layer, self.characteristic

    @property
    def tells_something(self) -> bool:
        """Whether the row has a value other than 0, or the reason why it has none."""
        # 0 is a rank like any other.
        return bool(self.value) or self.unit == "rank" or (self.value is None and bool(self.note))


@dataclass(frozen=True)
class Line:
    """A characteristic of every group of files.

    A value is None or not finite if it is not known. Values are shares of `wholes`. `{}` in `name`
    stands for the number of `labels`. Groups without the characteristic are not `present`. If
    `is_rare`, people need not see a 0.
    """

    layer: str
    name: str
    values: Column
    unit: Unit = ""
    wholes: Column | None = None
    of: str = ""
    notes: Column | str = ""
    labels: Column | None = None
    present: Column | None = None
    is_rare: bool = False

    def row(self, group: int) -> Characteristic | None:
        """Make the row of a group; None if the group does not have the characteristic."""
        if self.present is not None and not self.present[group]:
            return None
        value = _plain(self.values[group])
        return Characteristic(
            self.layer,
            self.name if self.labels is None else self.name.format(f"{self.labels[group]:,}"),
            value,
            self.unit,
            None if self.wholes is None else _share(value, self.wholes[group]),
            self.of,
            self.notes if isinstance(self.notes, str) else str(self.notes[group]),
        )

    def tells_something(self) -> bool:
        """Tell whether any group has a value other than 0."""
        return self.unit == "rank" or bool(np.any(np.not_equal(self.values, 0)))

    def as_lists(self) -> Line:
        """Replace arrays by lists, whose elements are read ten times as fast."""
        columns = ("values", "wholes", "notes", "labels", "present")
        return replace(
            self,
            **{
                name: column.tolist()
                for name in columns
                if isinstance(column := getattr(self, name), np.ndarray)
            },
        )


@dataclass(frozen=True)
class Table:
    """Characteristics that belong together."""

    name: str
    title: str
    lines: tuple[Line, ...]

    def rows(self, group: int = 0, *, zeros: bool = True) -> Iterator[Characteristic]:
        """Yield the rows of a group of files; without `zeros`, only those that tell something."""
        for line in self.lines:
            row = line.row(group)
            if row is not None and (zeros or row.tells_something):
                yield row

    def rare(self) -> frozenset[tuple[str, str]]:
        """The keys of the characteristics that people need not see where they are 0."""
        return frozenset((line.layer, line.name) for line in self.lines if line.is_rare)

    def as_lists(self) -> Table:
        """Replace the arrays of all lines by lists, and leave out lines of zeros."""
        lines = (line.as_lists() for line in self.lines if line.tells_something())
        return replace(self, lines=tuple(lines))


def _plain(value: Any) -> Value:
    """Convert a number of numpy; None for numbers that are not finite."""
    plain: Value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not isfinite(plain) else plain


def _share(value: Value, whole: Any) -> float | None:
    whole = _plain(whole)
    if not whole or not isinstance(value, int | float):
        return None
    return float(value / whole)


def known(values: NDArray[Any], is_known: NDArray[np.bool_]) -> NDArray[Any]:
    """Replace counts that are not known by None."""
    found = values.astype(object)
    found[~is_known] = None
    return found


def quotient(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """Divide; not a number where there is nothing to divide by."""
    found = np.full(len(part), np.nan)
    is_possible = whole != 0
    found[is_possible] = part[is_possible] / whole[is_possible]
    return found
