"""TOML files as checked values; an error names the line of the first problem."""

from __future__ import annotations

import difflib
import json
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from ioncast_base.errors import InputError, Remedy

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Key = str | int
_LONGEST_SHOWN = 60
# Lines. The time to find a value without end grows with the square of this number.
_LONGEST_SEARCHED = 200
_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_AT_THE_END = " (at end of document)"
_ENDLESS = ("a text in quotes does not end", "end it with the same quotes")
_PLAIN = {
    "Cannot overwrite a value": ("a key is given twice", "leave one of the two out"),
    "Invalid value": (
        "a value is incomplete or not TOML",
        'texts and sizes are in quotes, like "64k"',
    ),
    **dict.fromkeys(("Illegal character '\\n'", 'Expected "\'"'), _ENDLESS),
    **dict.fromkeys(("Unterminated string", "Expected \"'''\""), _ENDLESS),
    "Expected newline or end of document after a statement": (
        "a value is followed by something else",
        'texts and sizes are in quotes, like "64k", and each key has a line of its own',
    ),
}
_WORDS = {
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list in brackets",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "too_short": "must not be empty",
    "string_too_short": "must not be empty",
    "string_too_long": "must not be longer than {max_length} characters",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    # Of requests, which are checked by the same types.
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "int_from_float": "must be a whole number",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "too_long": "must have at most {max_length} entries",
    "finite_number": "must be a finite number",
    "string_pattern_mismatch": "must match {pattern}",
}

_EMPTY = ("too_short", "string_too_short")


class TomlTable(BaseModel):
    """A table of a TOML file; other keys than its fields and values of another type are errors."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


_Model = TypeVar("_Model", bound=TomlTable)
_Value = TypeVar("_Value")


class _RefusedError(ValueError):
    """An `InputError` inside pydantic, which collects only errors that are a ValueError."""

    def __init__(self, error: InputError) -> None:
        self.error = error
        super().__init__(str(error))


def read_by(parse: Callable[[str], _Value]) -> BeforeValidator:
    """Read a field from a text with a function that raises InputError, such as `parse_size`."""

    def validate(value: object) -> _Value:
        if not isinstance(value, str):
            raise _RefusedError(InputError(f"must be a text in quotes, not {_shown(value)}"))
        return refusing(parse)(value)

    return BeforeValidator(validate)


def refusing(check: Callable[[Any], _Value]) -> Callable[[Any], _Value]:
    """Turn a function that raises InputError into a validator for pydantic."""

    def validate(value: Any) -> _Value:
        try:
            return check(value)
        except InputError as error:
            raise _RefusedError(error) from error

    return validate


def one_line(text: str) -> str:
    """Reject a text that is not one line of visible characters."""
    if text != text.strip() or not text.isprintable():
        raise InputError(
            "must be one line of visible characters without blanks at its ends, not"
            f" {text[:_LONGEST_SHOWN]!r}"
        )
    return text


def distinct(values: tuple[_Value, ...]) -> tuple[_Value, ...]:
    """Reject a list that contains a value twice."""
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise InputError(f"{json.dumps(twice)} is listed twice")
    return values


Line = Annotated[str, Field(min_length=1), AfterValidator(refusing(one_line))]
Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(refusing(one_line))]


def read_text(path: Path) -> str:
    """Read a file that a user named, as UTF-8."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("this is a folder or a device, not a file", where=str(path))
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("this is not text in UTF-8", where=str(path)) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", where=str(path)) from error


def read_toml(path: Path, model: type[_Model]) -> _Model:
    """Read a TOML file and check it; the error names the line of the first problem.

    If a key is missing, the error shows the description and an example of its field.
    """
    return parse_toml(read_text(path), model, where=str(path))


def parse_toml(text: str, model: type[_Model], *, where: str) -> _Model:
    """Check the text of a TOML file as `read_toml` does; `where` is the file's name."""
    text = text.replace("\r\n", "\n")
    try:
        data = tomllib.loads(text if text.endswith("\n") else f"{text}\n")
    except (ValueError, RecursionError) as error:
        raise _syntax_error(text, error, where) from error
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _first_problem(error, model, data, text, where) from error


def line_of(text: str, keys: Sequence[Key]) -> int:
    """Find the line, from 1, where the value at a path of keys and list positions begins.

    If the end of the path does not exist, the part that exists counts. Entries of a value that
    stands in one statement have the line of that statement, and a table that of its header.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    existing = _existing(_parse(lines) or {}, keys)
    if not existing:
        return 1
    # The statement with the value is the first one after which the text contains the value.
    statements = list(_statements(lines, longest=len(lines)))
    position = bisect_left(
        statements,
        True,
        key=lambda statement: _existing(_parse(lines[: statement[1]]) or {}, existing) == existing,
    )
    return statements[position][0] + 1


def _statements(lines: Sequence[str], *, longest: int) -> Iterator[tuple[int, int]]:
    """Yield the first line of each statement, from 0, and the line after its last.

    Stop before the first statement that is not complete within `longest` lines.
    """
    start = 0
    while start < len(lines):
        ends = range(start + 1, min(start + longest, len(lines)) + 1)
        end = next((end for end in ends if _parse(lines[start:end]) is not None), None)
        if end is None:
            return
        yield start, end
        start = end


def _parse(lines: Sequence[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join([*lines, ""]))
    except (ValueError, RecursionError):
        return None


def _existing(data: Any, keys: Sequence[Key]) -> Sequence[Key]:
    """Cut `keys` where they lead to nothing in `data`."""
    for depth, key in enumerate(keys):
        is_there = key in data if isinstance(data, dict) else _has_entry(data, key)
        if not is_there:
            return keys[:depth]
        data = data[key]
    return keys


def _has_entry(data: object, key: Key) -> bool:
    return isinstance(data, list) and isinstance(key, int) and key < len(data)


def _syntax_error(text: str, error: Exception, where: str) -> InputError:
    if isinstance(error, RecursionError):
        return InputError("this is nested too deeply", where=where)
    if not isinstance(error, tomllib.TOMLDecodeError):
        return InputError("a number has too many digits", where=where, line=_unfinished(text))
    message, line = str(error), _LINE.search(str(error))
    number = int(line[1]) if line else _unfinished(text)
    clause = message.removesuffix(line[0] if line else _AT_THE_END)
    what, remedy = _PLAIN.get(
        clause, (f"this is not TOML: {clause[:1].lower()}{clause[1:]}", "see https://toml.io")
    )
    return InputError(what, where=where, line=number, remedy=remedy)


def _unfinished(text: str) -> int:
    """Find the first line of the statement that does not end."""
    lines = text.split("\n")
    ends = [end for _, end in _statements(lines, longest=_LONGEST_SEARCHED)]
    return min(max(ends, default=0) + 1, len(lines))


def in_plain_words(problem: Any) -> str:
    """Word one of pydantic's problems as a demand, such as "must be a whole number"."""
    if problem["type"] == "value_error":
        # One of our checks raised it. Pydantic's message begins with "Value error, ".
        return str(problem["ctx"]["error"])
    words = _WORDS.get(problem["type"])
    # Pydantic's own message may contain braces, so do not format it.
    return str(problem["msg"]) if words is None else words.format(**problem.get("ctx", {}))


def _first_problem(
    error: ValidationError, model: type[TomlTable], data: dict[str, Any], text: str, where: str
) -> InputError:
    """Put the first of pydantic's problems in plain words."""
    problems = error.errors(include_url=False)
    # An unknown key comes first: it is often a misspelling of the missing key.
    problem = min(problems, key=lambda each: each["type"] != "extra_forbidden")
    keys = problem["loc"]
    what, remedy = _explained(problem, model, _name(keys, data))
    return InputError(what, where=where, line=line_of(text, keys), remedy=remedy)


def _explained(problem: Any, model: type[TomlTable], name: str) -> tuple[str, str | Remedy | None]:
    kind, keys, context = problem["type"], problem["loc"], problem.get("ctx", {})
    if kind == "missing":
        return f"key {name} is missing", _how_to_add(_table(model, keys[:-1]), keys[-1])
    if kind == "extra_forbidden":
        return f"key {name} is unknown", _known_keys(_table(model, keys[:-1]), keys[-1])
    raised = context.get("error")
    if isinstance(raised, _RefusedError):
        is_table = isinstance(problem["input"], dict)
        what = raised.error.what if is_table else f"key {name}: {raised.error.what}"
        return what, raised.error.remedy
    if kind == "tuple_type" and isinstance(problem["input"], dict):
        return f"key {name}: must be a list of tables", f"write its header as [[{name[1:-1]}]]"
    words = in_plain_words(problem)
    instead = "" if kind in _EMPTY else f", not {_shown(problem['input'])}"
    return f"key {name}: {words}{instead}", None


def _name(keys: Sequence[Key], data: dict[str, Any]) -> str:
    """Write a key as a user would, with the position in a list of values in words."""
    name = ".".join(key for key in keys if isinstance(key, str))
    is_entry = keys and isinstance(keys[-1], int) and _existing(data, keys) == keys
    return f"`{name}`, entry {int(keys[-1]) + 1}" if is_entry else f"`{name}`"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _table(model: type[TomlTable], keys: Sequence[Key]) -> type[TomlTable]:
    """Find the model of the table that `keys` lead to."""
    rest = iter(keys)
    for key in rest:
        if isinstance(key, str):
            annotation = model.model_fields[key].annotation
            model = next(_tables_in(annotation))
            if get_origin(annotation) is dict:
                # The next key is a name from the file, not a field.
                next(rest, None)
    return model


def _tables_in(annotation: Any) -> Iterator[type[TomlTable]]:
    parts = get_args(annotation)
    # On Python 3.10 tuple[...] counts as a type.
    if not parts and isinstance(annotation, type) and issubclass(annotation, TomlTable):
        yield annotation
    for part in parts:
        yield from _tables_in(part)


def _how_to_add(model: type[TomlTable], key: Key) -> str:
    field = model.model_fields[str(key)]
    example = json.dumps((field.examples or ["…"])[0])
    return f"add it, such as `{key} = {example}`: {field.description}"


def _known_keys(model: type[TomlTable], key: Key) -> str:
    known = list(model.model_fields)
    nearest = difflib.get_close_matches(str(key), known, n=1)
    return f"did you mean `{nearest[0]}`?" if nearest else f"the keys here are {', '.join(known)}"
