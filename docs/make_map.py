"""Writes docs/map.md: every room, folder and module, with the first line of its docstring.

`make map` runs it. Rooms and their order are those of the table in docs/design.md.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
MAP = PROJECT / "docs/map.md"

INTRODUCTION = """\
# Map

Every module with the first line of its docstring. [design.md](design.md) explains how the rooms
work together, and its table [Where to find](design.md#where-to-find) leads from a rule to its code.
`make map` writes this file: change the docstrings instead, and run it again.
"""

# Folders without Python have no docstring of their own.
FOLDERS = {
    "benchmarks/causes": "Logs whose first cause of slow I/O is known, and a program of some.",
    "benchmarks": "Programs that measure speed and accuracy, side by side with alternatives.",
    "ioncast/service/web/pages/static": "Scripts and style of the pages.",
    "scheduler_plugin/hooks": "Programs that Slurm starts around a job and for its tasks.",
    "scheduler_plugin/lua": "The plugin inside slurmctld.",
    "tests/support": "Helpers of several tests. The other folders of tests/ mirror the rooms.",
}
BESIDE_THE_ROOMS = ("benchmarks", "tests/support")
# The sign that begins a comment in each language; None: a block between /* and */.
COMMENTS = {".lua": "--", ".sh": "#", ".c": None, ".js": None}


def rooms() -> list[tuple[str, str]]:
    """Each room of docs/design.md, without those inside others, and its description."""
    design = (PROJECT / "docs/design.md").read_text(encoding="utf-8")
    table = design.split("## The house\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)/` \| (.*?) \|", table, re.MULTILINE)


def first_comment(text: str, sign: str | None) -> str:
    """The first sentence of a file's first comment, on one line."""
    if sign is None:
        block = text.split("/*", 1)[1].split("*/", 1)[0]
        lines = [line.strip(" *") for line in block.strip().splitlines()]
    else:
        lines = []
        for line in text.splitlines():
            if not line.startswith(sign):
                break
            if not line.startswith("#!"):
                lines.append(line.removeprefix(sign).strip())
    return re.split(r"(?<=[.?!])\s", " ".join(lines) + " ", maxsplit=1)[0].strip()


def first_line(path: Path) -> str:
    """The line that says what a module is for; empty where it has none."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return first_comment(text, COMMENTS[path.suffix])


def modules(folder: Path) -> list[Path]:
    """The modules and scripts that lie in a folder itself, by name."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in {".py", *COMMENTS}
        and path.name != "__init__.py"
        and not path.name.startswith("test_")
    )


def subfolders(folder: Path, description: str) -> list[Path]:
    """Folders with modules, first those that the description of their room names, in its order."""
    named = re.findall(r"`(\w+)/`", description)
    found = (
        path
        for path in folder.iterdir()
        if path.is_dir() and ((path / "__init__.py").exists() or modules(path))
    )
    return sorted(
        found,
        key=lambda path: (
            named.index(path.name) if path.name in named else len(named),
            path.name,
        ),
    )


def link(path: Path) -> str:
    """A link from docs/ to a file or folder of the project."""
    slash = "/" if path.is_dir() else ""
    return f"../{path.relative_to(PROJECT).as_posix()}{slash}"


def section(folder: Path, description: str = "", level: int = 2) -> Iterator[str]:
    """The lines of the map about a folder and the folders in it."""
    name = folder.relative_to(PROJECT).as_posix()
    init = folder / "__init__.py"
    if not init.exists() and name not in FOLDERS:
        sys.exit(f"{name}/ has no docstring: add a sentence to FOLDERS in docs/make_map.py")
    sentence = first_line(init) if init.exists() else FOLDERS[name]
    yield f"\n{'#' * level} [{name}/]({link(folder)})\n\n{sentence}\n"
    listed = [f"- [{path.name}]({link(path)}): {first_line(path)}" for path in modules(folder)]
    if listed:
        yield "\n" + "\n".join(listed) + "\n"
    for inner in subfolders(folder, description):
        yield from section(inner, level=min(level + 1, 4))


def make_map() -> str:
    """The text of docs/map.md for the modules as they are."""
    lines = [INTRODUCTION]
    for name, description in rooms():
        lines.extend(section(PROJECT / name, description))
    for name in BESIDE_THE_ROOMS:
        lines.extend(section(PROJECT / name))
    return "".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if MAP.read_text(encoding="utf-8") != make_map():
            sys.exit("docs/map.md is not current (or has a conflict): run `make map`")
    else:
        MAP.write_text(make_map(), encoding="utf-8")
