"""Sizes of the house: lines of code, of docstrings and of tests, words, functions, names, settings.

    python benchmarks/house.py [--json FILE] [FOLDER]

It measures the project in FOLDER, by default this one. A line of code has a token; docstrings,
comments and blank lines do not count. Sizes are the result of a simpler house, and not its aim.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import pkgutil
import re
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
from measuring import ROOT

PACKAGES = (
    *("benchdb", "ioncast", "ioncast_base", "ior_configs"),
    *("predictor", "scheduler_plugin", "summario"),
)
# The service without its tables and its monitoring, and all other modules that write pages.
SHOWN = ("ioncast/service", "ioncast/show", "ioncast_base/pages")
NOT_SHOWN = ("ioncast/service/store", "ioncast/service/monitoring")
WRITERS = (
    "ioncast/insights/comparison/tables_page.py",
    "ioncast/insights/comparison/table_figures.py",
    "ioncast/insights/findings/findings_page.py",
    "predictor/curve/plots.py",
    "predictor/curve/drawing.py",
    "predictor/what_if/advice_page.py",
    "predictor/what_if/advice_drawing.py",
    "predictor/validation/report_page.py",
    "benchdb/measurements/coverage_page.py",
    "benchdb/campaigns/report.py",
    "experiments/scheduling/page.py",
    "experiments/studies/report.py",
)
# A part of a document between these marks, that a program writes.
GENERATED = re.compile(r"<!-- [^\n]*: made by make tables -->.*?<!-- end", re.DOTALL)
_LAYOUT = {
    *(tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}


def main() -> None:
    arguments = parse_arguments()
    sizes = measure(arguments.folder)
    for name, size in sizes.items():
        print(f"{size:>10,}  {name}" if isinstance(size, int) else f"{size:>10}  {name}")
    if arguments.json:
        arguments.json.write_text(json.dumps(sizes, indent=1), "utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the sizes of the house.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the sizes there too")
    return parser.parse_args()


def measure(folder: Path) -> dict[str, int | float]:
    files = [path for package in PACKAGES for path in sorted((folder / package).rglob("*.py"))]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    docstrings = {path: docstring_lines(tree) for path, tree in trees.items()}
    functions = [length(node) for tree in trees.values() for node in functions_of(tree)]
    widths = [
        len(line)
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    experiments = sorted((folder / "experiments").rglob("*.py"))
    tests = sorted((folder / "tests").rglob("*.py"))
    commands, settings = commands_and_settings(folder)
    return {
        "code lines in the seven packages": sum(
            len(code_lines(path) - docstrings[path]) for path in files
        ),
        "docstring lines": sum(map(len, docstrings.values())),
        "code lines of experiments": sum(
            len(code_lines(path) - docstring_lines(ast.parse(path.read_text(encoding="utf-8"))))
            for path in experiments
        ),
        "code lines of the service and of all that writes pages": sum(
            len(code_lines(path) - docstring_lines(ast.parse(path.read_text(encoding="utf-8"))))
            for path in writers_of_pages(folder)
        ),
        "lines of tests": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tests),
        "words of Markdown, without generated ones": sum(map(words, markdown(folder))),
        "modules": len(files),
        "functions": len(functions),
        "lines of the longest function": max(functions),
        "lines of the median function": statistics.median(functions),
        "characters of the median line": statistics.median(widths),
        "class names with several meanings": len(repeated_classes(trees)),
        "commands": commands,
        "settings": settings,
    }


def writers_of_pages(folder: Path) -> set[Path]:
    found = {path for name in SHOWN for path in (folder / name).rglob("*.py")}
    found -= {path for name in NOT_SHOWN for path in (folder / name).rglob("*.py")}
    return found | {folder / name for name in WRITERS if (folder / name).exists()}


def code_lines(path: Path) -> set[int]:
    """The lines with a token, docstrings among them."""
    found: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in _LAYOUT:
                found.update(range(token.start[0], token.end[0] + 1))
    return found


def docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(first := node.body[0], ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def repeated_classes(trees: dict[Path, ast.Module]) -> dict[str, int]:
    """Public class names that stand in several modules."""
    counts: Counter[str] = Counter()
    for tree in trees.values():
        names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        counts.update(name for name in names if not name.startswith("_"))
    return {name: number for name, number in counts.items() if number > 1}


def markdown(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.md")):
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not is_hidden:
            yield GENERATED.sub("", path.read_text(encoding="utf-8"))


def words(text: str) -> int:
    return len(text.split())


def commands_and_settings(folder: Path) -> tuple[int, int]:
    """Count the commands that do something, and the keys of all files of settings."""
    sys.path.insert(0, str(folder))
    from ioncast.cli import cli  # noqa: PLC0415
    from ioncast_base.toml_files import TomlTable  # noqa: PLC0415

    for package in (*PACKAGES, "experiments"):
        for module in pkgutil.walk_packages([str(folder / package)], f"{package}."):
            if "migrations" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    fields: defaultdict[str, set[str]] = defaultdict(set)
    tables = list(TomlTable.__subclasses__())
    for table in tables:
        tables += table.__subclasses__()
        fields[f"{table.__module__}.{table.__name__}"] |= set(table.model_fields)
    return count_commands(cli), sum(map(len, fields.values()))


def count_commands(command: click.Command) -> int:
    if not isinstance(command, click.Group):
        return 1
    context = click.Context(command)
    found = [command.get_command(context, name) for name in command.list_commands(context)]
    return sum(count_commands(each) for each in found if each is not None)


if __name__ == "__main__":
    main()
