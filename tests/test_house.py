"""The house keeps the rules of CONTRIBUTING.md: what a room may import, and what it must not."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
CONTRIBUTING = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    """Read the names in each cell of the table of rooms."""
    table = CONTRIBUTING.split("## Rooms\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in table.splitlines() if re.match(r"\| \[?`", line)]
    return [
        [" ".join(re.findall(r"`([\w./]+)`", cell)) for cell in line.strip("|").split("|")]
        for line in lines
    ]


def in_dots(room: str) -> str:
    return room.strip("/").replace("/", ".")


RULES = {in_dots(room): (owns.split(), libraries.split()) for room, owns, libraries in rows()}
ROOMS = [room for room in RULES if "." not in room]


def modules(room: str) -> list[Path]:
    return sorted((PROJECT / room.replace(".", "/")).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}: relative import"
            yield node.module


def is_within(name: str, places: list[str]) -> bool:
    return any(f"{name}.".startswith(f"{in_dots(place)}.") for place in places)


@pytest.mark.parametrize("room", RULES)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    allowed, refused = RULES[room]
    for path in modules(room):
        for name in imported(path):
            ours = is_within(name, ROOMS)
            assert not ours or is_within(name, [*allowed, room]), f"{path} imports {name}"
            assert not is_within(name, refused), f"{path} imports {name}"


def test_every_room_has_its_rule() -> None:
    folders = {path.parent.name for path in PROJECT.glob("*/__init__.py")}
    assert folders == set(ROOMS)


def test_every_folder_has_a_docstring() -> None:
    for path in [path for room in ROOMS for path in modules(room) if path.name == "__init__.py"]:
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_importing_the_roof_loads_no_library() -> None:
    program = (
        "import ioncast, sys; print(*{'numpy', 'click', 'flask', 'sqlalchemy'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    assert done.stdout == "\n"
