"""Writes the tables of promises in docs/service.md and docs/slurm.md from docs/promises.toml.

`make tables` runs it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DOCS = Path(__file__).resolve().parent
# The columns of each table: their headings, and their keys in the file.
COLUMNS = {
    "service": {"missing": "fault", "decisions": "decisions", "everything else": "else"},
    "slurm": {"event": "fault", "I/O nodes of jobs": "io_nodes"},
    "hooks": {"event": "fault", "jobs": "jobs"},
    "watch": {"event": "fault", "logs": "logs"},
}
# The tables of each document.
TABLES = {"service": ("service",), "slurm": ("slurm", "hooks", "watch")}


def table(rows: Sequence[Mapping[str, str]], columns: Mapping[str, str]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---' for _ in columns)} |"
    for row in rows:
        yield f"| {' | '.join(row[key] for key in columns.values())} |"


def page(name: str) -> str:
    """A document with its tables made again."""
    promises = tomllib.loads((DOCS / "promises.toml").read_text(encoding="utf-8"))
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for each in TABLES[name]:
        begin, end = f"<!-- promises ({each}): made by make tables -->\n", f"<!-- end ({each}) -->"
        before, after = text.split(begin)[0], text.split(end)[1]
        lines = "\n".join([*table(promises[each], COLUMNS[each]), ""])
        text = f"{before}{begin}{lines}{end}{after}"
    return text


def main() -> None:
    """Write the documents, or check that they are current."""
    for name in TABLES:
        path, text = DOCS / f"{name}.md", page(name)
        if sys.argv[1:] != ["--check"]:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not current (or has a conflict): run `make tables`")


if __name__ == "__main__":
    main()
