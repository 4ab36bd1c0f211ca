"""Writes the published tables of a data set, and finds differences to tables made again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from pathlib import Path

from experiments.datasets import TABLES
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ioncast_base.toml_files import read_text


@dataclass(frozen=True)
class PrintedTable:
    """A table whose cells are texts.

    Attributes
    ----------
    name : str
        Name of its file, without `.csv`.
    rows : tuple of mapping of str to str
        Rows with the same columns; at least one.
    keys : tuple of str
        Columns that identify a row.
    estimated : bool
        Whether it rests on a fitted model, so that its last digits may change with the version
        of a library. Other tables follow from the measurements alone.
    """

    name: str
    rows: tuple[Mapping[str, str], ...]
    keys: tuple[str, ...]
    estimated: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.rows[0])

    def named(self, row: Mapping[str, str]) -> str:
        """Values of the keys in a row, such as "hacc-io, 4"."""
        return ", ".join(row[key] for key in self.keys)


@dataclass(frozen=True)
class Difference:
    """A difference between a published table and the new one.

    Attributes
    ----------
    table, row, column : str
        Place of the difference; row or column is empty if the whole table or row differs.
    published, recomputed : str
        The published value, and the value that the measurements give.
    """

    table: str
    row: str
    column: str
    published: str
    recomputed: str


@dataclass(frozen=True)
class Comparison:
    """Published tables compared with new ones.

    Attributes
    ----------
    cells : int
        Number of compared cells.
    rounded : int
        Number of estimated cells that are off by one in the last digit.
    differences : tuple of Difference
        All other differences.
    """

    cells: int
    rounded: int
    differences: tuple[Difference, ...]


def publish(folder: Path, tables: Iterable[PrintedTable]) -> None:
    """Write the tables of a data set, and remove all other tables in its folder of tables.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    tables : iterable of PrintedTable
        All its tables.

    Raises
    ------
    InputError
        If a table cannot be written.
    """
    place = folder / TABLES
    try:
        place.mkdir(exist_ok=True)
        written = {_write(place, table) for table in tables}
        for other in set(place.glob("*.csv")) - written:
            other.unlink()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(place)) from error


def compare(folder: Path, tables: Iterable[PrintedTable]) -> Comparison:
    """Compare the published tables of a data set with new ones.

    Parameters
    ----------
    folder : Path
        Folder of the data set.
    tables : iterable of PrintedTable
        The tables that its measurements give.

    Raises
    ------
    InputError
        If a published table cannot be read.
    """
    made = {table.name: table for table in tables}
    found = {path.stem for path in (folder / TABLES).glob("*.csv")}
    differences = [
        Difference(name, "", "", "a table", "none") for name in sorted(found - set(made))
    ]
    cells = rounded = 0
    for name, table in made.items():
        if name not in found:
            differences.append(Difference(name, "", "", "none", "a table"))
            continue
        columns, rows = _read(folder / TABLES / f"{name}.csv")
        cells += len(table.rows) * len(table.columns)
        if columns != table.columns:
            texts = (", ".join(names) for names in (columns, table.columns))
            differences.append(Difference(name, "header", "", *texts))
            continue
        for difference in _differences(table, rows):
            if table.estimated and _is_rounding(difference):
                rounded += 1
            else:
                differences.append(difference)
    return Comparison(cells, rounded, tuple(differences))


def _write(place: Path, table: PrintedTable) -> Path:
    text = io.StringIO()
    writer = csv.DictWriter(text, table.columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.rows)
    path = place / f"{table.name}.csv"
    write_file(path, text.getvalue())
    return path


def _read(path: Path) -> tuple[tuple[str, ...], list[dict[str, str]]]:
    """Read columns and rows of a published table."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        columns = tuple(next(reader, []))
        return columns, [dict(zip(columns, row, strict=True)) for row in reader]
    except (csv.Error, ValueError) as error:
        what = str(error) if isinstance(error, csv.Error) else "a row is not as long as the header"
        where = f"{path}:{max(reader.line_num, 1)}"
        raise InputError(f"this is not a CSV file: {what}", where=where) from error


def _differences(table: PrintedTable, published: list[dict[str, str]]) -> Iterator[Difference]:
    """Compare rows with the same columns, in their order."""
    for old, new in zip_longest(published, table.rows):
        if old is None:
            yield Difference(table.name, table.named(new), "", "none", "a row")
        elif new is None:
            yield Difference(table.name, table.named(old), "", "a row", "none")
        else:
            for column in table.columns:
                if old[column] != new[column]:
                    row = table.named(new)
                    yield Difference(table.name, row, column, old[column], new[column])


def _is_rounding(difference: Difference) -> bool:
    """Whether two numbers with equally many decimals differ by one in the last decimal."""
    try:
        old, new = Decimal(difference.published), Decimal(difference.recomputed)
    except InvalidOperation:
        return False
    if not (old.is_finite() and new.is_finite()):
        return False
    place = new.as_tuple().exponent
    assert isinstance(place, int)  # noqa: S101
    return (
        place < 0
        and place == old.as_tuple().exponent
        and abs(old - new) <= Decimal(1).scaleb(place)
    )
