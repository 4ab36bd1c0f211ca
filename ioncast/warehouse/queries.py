"""Named queries: files with a title, parameters and their meaning, and one text for all engines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first, listed

_FOLDER = Path(__file__).parent / "queries"
_TITLE = re.compile(r"-- title: (.+)")
_PARAMETER = re.compile(
    r"-- (?P<name>[a-z_]+): (?P<kind>integer|number|text)(?: = (?P<usual>[^;]+))?; (?P<meaning>.+)"
)
# Texts, names and comments of SQL, and casts, in which a colon begins no parameter.
_USED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|::|:([a-z_]+)")
_KINDS = {"integer": int, "number": float, "text": str}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a query: `kind` is integer, number or text; without `usual` it is needed."""

    name: str
    kind: str
    usual: str | None
    meaning: str

    def value(self, text: str) -> Any:
        """Read a value that somebody gave."""
        try:
            return _KINDS[self.kind](text)
        except ValueError as error:
            what = f"{self.name}: {visible(text)!r} is no {self.kind}"
            raise InputError(what, remedy=self.meaning) from error


@dataclass(frozen=True)
class Query:
    """A query; `parameters` are those that its file describes."""

    name: str
    title: str
    text: str
    parameters: tuple[Parameter, ...]

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
        values = {}
        for name, parameter in known.items():
            text = given.get(name, parameter.usual)
            if text is None:
                what = f"the query {self.name} needs {name}"
                raise InputError(what, remedy=f"say {name}=VALUE: {parameter.meaning}")
            values[name] = parameter.value(text)
        return values


def queries() -> list[Query]:
    """List the named queries by name."""
    return [_read(path) for path in sorted(_FOLDER.glob("*.sql"))]


def query_of(name: str) -> Query:
    """Find a named query; UnknownNameError with similar names for any other one."""
    known = {query.name: query for query in queries()}
    if name not in known:
        similar = listed(alike_first(name, list(known))[:3])
        raise UnknownNameError(
            f"there is no query {visible(name)!r}", remedy=f"there are {similar} and others: --list"
        )
    return known[name]


def text_query(text: str) -> Query:
    """Make a query of a text that its user wrote; its parameters are texts."""
    names = dict.fromkeys(found[1] for found in _USED.finditer(text) if found[1])
    return Query("text", "", text, tuple(Parameter(name, "text", None, "a text") for name in names))


def in_duckdb(text: str) -> str:
    """Write parameters as DuckDB does."""
    return _USED.sub(lambda found: f"${found[1]}" if found[1] else found[0], text)


def _read(path: Path) -> Query:
    text = path.read_text(encoding="utf-8")
    lines: Sequence[str] = [line for line in text.splitlines() if line.startswith("--")]
    title = _TITLE.fullmatch(lines[0])
    found = [_PARAMETER.fullmatch(line) for line in lines[1:]]
    assert title is not None  # noqa: S101
    assert all(found)  # noqa: S101
    parameters = tuple(Parameter(**each.groupdict()) for each in found if each)
    return Query(path.stem, title[1], text, parameters)
