"""Every promise of docs/promises.toml has a test that makes its fault."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[1]
PROMISES = tomllib.loads((PROJECT / "docs/promises.toml").read_text(encoding="utf-8"))
ROWS = [row for rows in PROMISES.values() for row in rows]


def names_in(path: Path) -> set[str]:
    """The names of the tests that pytest collects from a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
    return {name for name in functions if name.startswith("test_")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["fault"][:60])
def test_a_promise_has_tests_that_exist(row: dict[str, Any]) -> None:
    assert row["tests"]
    for name in row["tests"]:
        file, test = name.split("::")
        assert Path(file).name.startswith("test_")
        assert test in names_in(PROJECT / file), name


def test_the_tables_in_the_documents_are_current() -> None:
    program = [sys.executable, PROJECT / "docs/make_promises.py", "--check"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
