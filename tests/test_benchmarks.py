"""Programs of benchmarks/ import what others of them have: nothing else runs them all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
PROGRAMS = sorted(FOLDER.glob("*.py"))


def names_in(tree: ast.Module) -> set[str]:
    """Names that a module defines or imports, also under a condition."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {each.asname or each.name for each in node.names}
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_imports_from_others(program: Path) -> None:
    modules = {path.stem: path for path in PROGRAMS}
    for node in ast.walk(ast.parse(program.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            theirs = names_in(ast.parse(modules[node.module].read_text(encoding="utf-8")))
            assert {each.name for each in node.names} <= theirs, node.module
