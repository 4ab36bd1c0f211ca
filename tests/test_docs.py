"""Every command, option and setting is documented, and the documents show real output."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ioncast.cli import cli

PROJECT = Path(__file__).resolve().parents[1]
DEMO = (PROJECT / "docs/demo.md").read_text(encoding="utf-8")
DOCUMENTS = "".join(
    path.read_text(encoding="utf-8")
    for path in (
        PROJECT / "README.md",
        *sorted(PROJECT.glob("docs/*.md")),
        *PROJECT.glob("experiments/**/README.md"),
    )
)


def commands(group: click.Group, prefix: str = "ioncast") -> dict[str, click.Command]:
    """Collect all commands by their full names, without groups."""
    found: dict[str, click.Command] = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        full = f"{prefix} {name}"
        found |= commands(command, full) if isinstance(command, click.Group) else {full: command}
    return found


COMMANDS = commands(cli)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_documents_name_every_command(name: str) -> None:
    assert re.search(rf"(?:`|\n| ){name}\b", DOCUMENTS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_for_each_option_and_examples(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert command.epilog is not None
    assert name in command.epilog
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_the_documents_name_every_environment_variable() -> None:
    variables = {
        parameter.envvar
        for command in COMMANDS.values()
        for parameter in command.params
        if parameter.envvar
    }
    assert variables
    for variable in variables:
        assert variable in DOCUMENTS


def words_and_numbers(text: str) -> tuple[list[str], list[float]]:
    """Split a text into words, without white space and lines of tables, and numbers."""
    pieces = re.split(r"(\d+(?:\.\d+)?)", re.sub(r"\s+|-{3,}", " ", text))
    return ["".join(words.split()) for words in pieces[::2]], list(map(float, pieces[1::2]))


@pytest.mark.slow
def test_the_document_of_the_demonstration_shows_its_output(tmp_path: Path) -> None:
    parts = DEMO.split("```text\n")[1:]
    demo = subprocess.run(
        [sys.executable, "-m", "experiments.demo", str(tmp_path / "curve.html")],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    for part in parts:
        shown = part.split("```", 1)[0]
        printed = demo.stdout[demo.stdout.index(shown[: shown.index("\n")]) :]
        words, numbers = words_and_numbers(shown)
        words_printed, numbers_printed = words_and_numbers(printed)
        assert words_printed[: len(words) - 1] == words[:-1]
        # Other processors and libraries round differently, so a fit ends in slightly other numbers.
        assert numbers_printed[: len(numbers)] == pytest.approx(numbers, rel=0.02, abs=0.2)
    assert "<polyline" in (tmp_path / "curve.html").read_text(encoding="utf-8")
