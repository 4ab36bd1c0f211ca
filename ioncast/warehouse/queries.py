"""Named queries: files with a title, parameters and their meaning, and one text for all engines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from errno import ENOTDIR
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first, listed

_FOLDER = Path(__file__).parent / "queries"
_TITLE = re.compile(r"-- title: (.+)")
_PARAMETER = re.compile(
    r"-- (?P<name>[a-z_]+): (?P<kind>[A-Za-z]+(?:\|[A-Za-z]+)*)(?P<range> range)?"
    r"(?: = (?P<usual>[^;]+))?; (?P<meaning>.+)"
)
_PART = re.compile(r"-- part: ([a-z]+)")
# Texts, names and comments of SQL, and casts, in which a colon begins no parameter.
_USED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|::|:([a-z_]+)")
# Stands for no value: such a parameter, or both ends of a range, are null.
_OPEN = "-"
_ENDS = {"integer": r"-?\d+", "number": r"-?[\d.]+", "month": r"\d{4}-\d\d"}
_NOUNS = {"integer": "a whole number", "number": "a number", "month": "a month such as 2026-01"}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query; without `usual` it is needed.

    `kind` is integer, number, text, month, or the words to choose from, with | between them. A
    parameter that is usually "-" may be null. A range sets NAME_from and NAME_to.
    """

    name: str
    kind: str
    is_range: bool
    usual: str | None
    meaning: str

    def values(self, text: str) -> dict[str, Any]:
        """Read what somebody gave into values by name; InputError if it is of another kind."""
        is_open = text == self.usual == _OPEN
        if not self.is_range:
            return {self.name: None if is_open else self._value(text)}
        low, high = (None, None) if is_open else self._ends(text)
        return {f"{self.name}_from": low, f"{self.name}_to": high}

    def _value(self, text: str) -> Any:
        try:
            if self.kind in ("integer", "number"):
                return int(text) if self.kind == "integer" else float(text)
        except ValueError as error:
            raise self._error(text) from error
        is_month = self.kind == "month" and re.fullmatch(_ENDS["month"], text, re.ASCII)
        if is_month or self.kind == "text" or text in self.kind.split("|"):
            return text
        raise self._error(text)

    def _ends(self, text: str) -> tuple[Any, Any]:
        end = _ENDS[self.kind]
        found = re.fullmatch(f"({end})(?:-({end}))?", text, re.ASCII)
        if not found:
            raise self._error(text)
        low, high = self._value(found[1]), self._value(found[2] or found[1])
        if low > high:
            raise InputError(f"{self.name}: {text} ends before it begins", remedy=self.meaning)
        return low, high

    def _error(self, text: str) -> InputError:
        noun = _NOUNS.get(self.kind) or f"one of {listed(self.kind.split('|'))}"
        of_range = ", or two with - between them" if self.is_range else ""
        what = f"{self.name}: {visible(text)!r} is not {noun}{of_range}"
        return InputError(what, remedy=self.meaning)


@dataclass(frozen=True)
class Query:
    """A query; `parameters` are those that its file and its parts describe.

    `parts` names the files of the folder `parts` whose tables the text uses.
    """

    name: str
    title: str
    text: str
    parameters: tuple[Parameter, ...]
    parts: tuple[str, ...] = ()

    def values(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Complete the values that somebody gave, by name.

        Raises
        ------
        InputError
            If one is missing, of another kind, or of no parameter.
        """
        known = {each.name: each for each in self.parameters}
        for name in given:
            if name not in known:
                what = f"the query {self.name} has no parameter {visible(name)!r}"
                remedy = f"it has {listed(list(known))}" if known else "it has none"
                raise InputError(what, remedy=remedy)
        values: dict[str, Any] = {}
        for name, parameter in known.items():
            text = given.get(name, parameter.usual)
            if text is None:
                what = f"the query {self.name} needs {name}"
                raise InputError(what, remedy=f"say {name}=VALUE: {parameter.meaning}")
            values |= parameter.values(text)
        return values


def queries(folder: Path | None = None) -> list[Query]:
    """List the named queries by name; those of a site's folder come in the place of ours.

    Raises
    ------
    InputError
        If a file of the folder cannot be read, or its first lines do not describe a query.
    """
    try:
        if folder and not folder.is_dir():
            raise NotADirectoryError(ENOTDIR, "this is not a folder", str(folder))
        own = {path.stem: _read(path) for path in folder.glob("*.sql")} if folder else {}
        found = {**_shipped(), **own}
    except (OSError, UnicodeDecodeError) as error:
        where = getattr(error, "filename", None) or str(folder)
        raise InputError(getattr(error, "strerror", None) or str(error), where=where) from error
    return [found[name] for name in sorted(found)]


@cache
def _shipped() -> Mapping[str, Query]:
    """Read the shipped queries once: it takes as long as to answer a small one."""
    return {path.stem: _read(path) for path in _FOLDER.glob("*.sql")}


def query_of(name: str, folder: Path | None = None) -> Query:
    """Find a named query; UnknownNameError with similar names for any other one."""
    known = {query.name: query for query in queries(folder)}
    if name not in known:
        raise UnknownNameError(
            f"there is no query {visible(name)!r}",
            remedy=f"there are {alike_first(name, known)}: --list",
        )
    return known[name]


def text_query(text: str) -> Query:
    """Make a query of a text that its user wrote; its parameters are texts."""
    names = dict.fromkeys(found[1] for found in _USED.finditer(text) if found[1])
    parameters = (
        Parameter(name, "text", is_range=False, usual=None, meaning="a text") for name in names
    )
    return Query("text", "", text, tuple(parameters))


def in_duckdb(text: str) -> str:
    """Write parameters as DuckDB does."""
    return _USED.sub(lambda found: f"${found[1]}" if found[1] else found[0], text)


def _read(path: Path) -> Query:
    text = path.read_text(encoding="utf-8")
    first, *others = [*takewhile(lambda line: line.startswith("--"), text.splitlines())] or [""]
    title = _TITLE.fullmatch(first)
    if title is None:
        raise _undescribed(path, first, "-- title: A sentence")
    parameters: list[Parameter] = []
    parts = []
    for line in others:
        if part := _PART.fullmatch(line):
            of_part = _FOLDER / "parts" / f"{part[1]}.sql"
            if not of_part.exists():
                raise _undescribed(path, line, "-- part: jobs")
            parts.append(_read(of_part))
            parameters += parts[-1].parameters
            continue
        found = _PARAMETER.fullmatch(line)
        if found is None:
            raise _undescribed(path, line, "-- limit: integer = 20; the most rows")
        is_range = bool(found["range"])
        parameters.append(
            Parameter(found["name"], found["kind"], is_range, found["usual"], found["meaning"])
        )
    if parts:
        text = "with " + ",".join(part.text for part in parts) + text
    names = tuple(part.name for part in parts)
    return Query(path.stem, title[1], text, tuple(parameters), names)


def _undescribed(path: Path, line: str, example: str) -> InputError:
    return InputError(
        f"{visible(line)!r} does not describe a query or a parameter",
        where=str(path),
        remedy=f"write a line such as {example!r}",
    )
