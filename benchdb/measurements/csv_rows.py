"""Reads the rows and cells of CSV files; an error names the line."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from benchdb.measurements.progress import Progress, silently
from ioncast_base.errors import InputError

Row = Mapping[str, str]
_T = TypeVar("_T")


def read_rows(
    text: str,
    read: Callable[[Row], _T],
    *,
    where: str,
    delimiter: str = ",",
    progress: Progress = silently,
) -> list[_T]:
    """Read each row of a CSV."""
    rows = []
    for number, row in progress(_rows(text, delimiter, where)):
        try:
            rows.append(read(row))
        except KeyError as error:
            raise InputError(f"column {error} is missing", where=where, line=number) from error
        except InputError as error:
            raise InputError(error.what, where=where, line=number, remedy=error.remedy) from error
        except (ValueError, TypeError, ArithmeticError) as error:
            raise InputError(str(error), where=where, line=number) from error
    return rows


def first_line(text: str) -> str:
    """The first line of a text, without blanks around it."""
    # `splitlines` would copy a large file.
    end = text.find("\n")
    return text[: end if end >= 0 else None].strip()


def columns_of(text: str) -> set[str]:
    """The names of the columns in the header of a CSV with commas."""
    return {name.strip().strip('"').strip() for name in first_line(text).split(",")}


def text_cell(row: Row, column: str) -> str | None:
    """A text, or None if the cell is empty; equal texts share one object in memory."""
    value = row.get(column)
    return sys.intern(value) if value else None


def checked_operation(value: str) -> str:
    """Return an operation if it is ``read`` or ``write``."""
    if value not in ("read", "write"):
        raise InputError(f"operation is {value!r}, not read or write")
    return value


def number_cell(row: Row, column: str) -> float:
    """A number."""
    try:
        return float(row[column])
    except ValueError as error:
        raise _not_valid("a number", row, column) from error


def count_cell(row: Row, column: str) -> int:
    """A whole number that is not negative."""
    try:
        count = int(row[column])
    except ValueError as error:
        raise _not_valid("a whole number", row, column) from error
    if count < 0:
        raise InputError(f"{column} is {count}, below 0")
    return count


def positive_cell(row: Row, column: str) -> int:
    """A whole number above 0."""
    count = count_cell(row, column)
    if count == 0:
        raise InputError(f"{column} is 0")
    return count


def flag_cell(row: Row, column: str) -> bool:
    """A flag: 0, 1, false or true."""
    flags = {"0": False, "1": True, "false": False, "true": True}
    value = row[column].lower()
    if value not in flags:
        raise _not_valid("a flag (0 or 1)", row, column)
    return flags[value]


def _rows(text: str, delimiter: str, where: str) -> Iterator[tuple[int, Row]]:
    """Yield each row with the number of its line; a row has as many cells as the header."""
    reader = csv.reader(
        _physical_lines(text), delimiter=delimiter, strict=True, skipinitialspace=True
    )
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in filter(None, header):
            if header.count(name) > 1:
                raise InputError(
                    f"two columns are named {name!r}",
                    where=where,
                    line=1,
                    remedy="rename or remove one",
                )
        for cells in reader:
            if cells and len(cells) != len(header):
                raise InputError(
                    "the line has more or fewer cells than the header",
                    where=where,
                    line=reader.line_num,
                )
            if cells:
                yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(
            f"this is not valid CSV: {error}", where=where, line=reader.line_num
        ) from error


def _physical_lines(text: str) -> Iterator[str]:
    """The lines of a text; `io.StringIO` would take four bytes for each character."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _not_valid(kind: str, row: Row, column: str) -> InputError:
    return InputError(f"{column} is {row[column][:40]!r}, not {kind}")
