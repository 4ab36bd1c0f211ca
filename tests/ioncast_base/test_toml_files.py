from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, Strict

from ioncast_base.errors import InputError
from ioncast_base.toml_files import TomlTable, line_of, parse_toml, read_toml


class Port(TomlTable):
    number: Annotated[int, Field(gt=0)] = Field(description="of the port", examples=[80])


class Server(TomlTable):
    name: Annotated[str, Field(min_length=1)] = Field(description="its name", examples=["a"])
    weights: Annotated[tuple[int, ...], Strict(False)] = ()
    main: Port | None = None
    ports: Annotated[tuple[Port, ...], Strict(False)] = ()


GOOD = """\
name = "a"
weights = [
    1,
    2,
]

# The main one
[main]
number = 80

[[ports]]
number = 81

[[ports]]
number = 82
"""


def error_of(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_toml(text, Server, where="s.toml")
    return str(caught.value)


def test_a_good_file_is_read() -> None:
    server = parse_toml(GOOD, Server, where="s.toml")
    assert server.weights == (1, 2)
    assert [port.number for port in server.ports] == [81, 82]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('name = "a"\n', "", "s.toml:1: key `name` is missing; add it, such as `name ="),
        ("number = 80\n", "", "s.toml:8: key `main.number` is missing"),
        ("number = 82\n", "", "s.toml:14: key `ports.number` is missing"),
        ('name = "a"', 'nam = "a"', "s.toml:1: key `nam` is unknown; did you mean `name`?"),
        ("number = 80", "number = 80\nq = 1", "s.toml:10: key `main.q` is unknown; the keys here"),
        ('"a"', "3", "s.toml:1: key `name`: must be a text in quotes, not 3"),
        ('"a"', '""', "s.toml:1: key `name`: must not be empty"),
        ("number = 81", 'number = "81"', "s.toml:12: key `ports.number`: must be a whole number"),
        ("number = 82", "number = 0", "s.toml:15: key `ports.number`: must be greater than 0"),
        ("number = 82", "number = true", "s.toml:15: key `ports.number`: must be a whole number"),
        ("number = 82", "number = nan", "s.toml:15: key `ports.number`: must be a whole number"),
        ("    2,", "    2.5,", "s.toml:2: key `weights`, entry 2: must be a whole number, not 2.5"),
        ("[main]\nnumber = 80", "main = 80", "s.toml:8: key `main`: must be a table, not 80"),
        ("[[ports]]\nnumber = 81\n", "", None),
        (GOOD[GOOD.index("\n[[ports]]") :], "[ports]\n", "s.toml:10: key `ports`: must be a list"),
    ],
)
def test_an_error_of_a_value_names_its_line(old: str, new: str, expected: str | None) -> None:
    assert old in GOOD
    changed = GOOD.replace(old, new, 1)
    if expected is None:
        parse_toml(changed, Server, where="s.toml")
    else:
        assert error_of(changed).startswith(expected)
        assert error_of(changed.replace("\n", "\r\n")).startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('name = "a"\nname = "b"\n', "s.toml:2: a key is given twice"),
        ('name = "a"\nname = "b"', "s.toml:2: a key is given twice"),
        ("a = 1\nname = 64k\n", "s.toml:2: a value is followed by something else; texts and"),
        ("a = 1\nname = 'x\nb = 1\n", "s.toml:2: a text in quotes does not end"),
        ('a = 1\nname = """x\nb = 1\n', "s.toml:2: a text in quotes does not end"),
        ("a = 1\nweights = [1,\n2,\n", "s.toml:2: a value is incomplete or not TOML"),
        ("a = 1\n[main\n", "s.toml:2: this is not TOML"),
        ("hello", "s.toml:1: this is not TOML"),
        ("\x00\x01", "s.toml:1: this is not TOML"),
        ("a = " + "[" * 100_000, "s.toml: this is nested too deeply"),
        ("", "s.toml:1: key `name` is missing"),
    ],
)
def test_an_error_of_syntax_names_its_line(text: str, expected: str) -> None:
    assert error_of(text).startswith(expected)


def test_an_endless_number_is_too_long() -> None:
    if sys.version_info >= (3, 11):
        assert error_of("a = 1\nb = " + "9" * 5000) == "s.toml:2: a number has too many digits"


def test_a_binary_file_is_rejected(tmp_path: Path) -> None:
    binary = tmp_path / "x.toml"
    binary.write_bytes(b"\x7fELF\xff\xfe\x00")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_toml(binary, Server)


@pytest.mark.parametrize("name", ["missing.toml", ".", "x" * 5000, "a\0b"])
def test_a_missing_or_special_file_is_one_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        read_toml(tmp_path / name, Server)
    assert str(caught.value).count("\n") == 0
    assert caught.value.where is not None


def test_a_device_is_not_read_for_ever() -> None:
    with pytest.raises(InputError, match="not a file"):
        read_toml(Path("/dev/zero"), Server)


KEYS = st.text("abcdefg", min_size=1, max_size=3)
SCALARS = st.one_of(
    st.integers(-100, 100),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8),
    st.booleans(),
)
VALUES = st.one_of(SCALARS, st.lists(st.integers(0, 9), max_size=4))
NOISE = st.lists(st.sampled_from(["", "# a comment", "# [x]", "   "]), max_size=2)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[tuple[str | int, ...], int]]:
    """Draw a document, and the line of each of its keys."""
    lines: list[str] = []
    written: dict[tuple[str | int, ...], int] = {}

    def write(*new: str) -> int:
        lines.extend(draw(NOISE))
        lines.extend(new)
        return len(lines) - len(new) + 1

    def write_keys(prefix: tuple[str | int, ...]) -> None:
        for key, value in draw(st.dictionaries(KEYS, VALUES, max_size=3)).items():
            is_spread = isinstance(value, list) and draw(st.booleans())
            inner = [f"  {each}, # ]" for each in value] if is_spread else []
            text = [f"{key} = [", *inner, "]"] if is_spread else [f"{key} = {json.dumps(value)}"]
            written[(*prefix, key)] = write(*text)

    write_keys(())
    for table in draw(st.lists(KEYS.map("T{}".format), unique=True, max_size=3)):
        if draw(st.booleans()):
            written[(table,)] = write(f"[{table}]")
            write_keys((table,))
            continue
        for position in range(draw(st.integers(1, 3))):
            line = write(f"[[{table}]]")
            written[(table, position)] = line
            written.setdefault((table,), line)
            write_keys((table, position))
    return "\n".join(lines), written


@given(documents())
def test_the_line_of_a_key_is_where_it_was_written(
    document: tuple[str, dict[tuple[str | int, ...], int]],
) -> None:
    text, written = document
    assert {keys: line_of(text, keys) for keys in written} == written


@given(documents())
def test_a_missing_key_has_the_line_of_its_table(
    document: tuple[str, dict[tuple[str | int, ...], int]],
) -> None:
    text, written = document
    assert line_of(text, ["missing"]) == 1
    for keys, line in written.items():
        assert line_of(text, [*keys, "missing"]) == line
