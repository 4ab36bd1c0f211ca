"""Every promise of docs/promises.toml has tests that make its fault: those with its marker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = Path(__file__).resolve().parents[1]
PROMISES = tomllib.loads((PROJECT / "docs/promises.toml").read_text(encoding="utf-8"))
PROMISED = [row["id"] for rows in PROMISES.values() for row in rows]


def marked() -> set[str]:
    """The promises of the markers of all tests."""
    marker = re.compile(r'(?m)^@pytest\.mark\.promise\("([\w-]+)"\)$')
    files = sorted((PROJECT / "tests").rglob("test_*.py"))
    return {name for file in files for name in marker.findall(file.read_text(encoding="utf-8"))}


def test_each_promise_has_a_test_and_each_marker_a_promise() -> None:
    assert len(set(PROMISED)) == len(PROMISED)
    assert marked() == set(PROMISED)


def test_the_tables_in_the_documents_are_current() -> None:
    program = [sys.executable, PROJECT / "docs/make_promises.py", "--check"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(done.stderr.strip(), pytrace=False)
