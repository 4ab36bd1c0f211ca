"""Every command, option and setting is documented, and the documents show real output."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import click
import pytest

from ioncast.cli import cli
from tests.support.command import run_ioncast

PROJECT = Path(__file__).resolve().parents[1]
DEMO = (PROJECT / "docs/demo.md").read_text(encoding="utf-8")
TUTORIAL = (PROJECT / "docs/tutorial.md").read_text(encoding="utf-8")
SHOWN = [
    PROJECT / "README.md",
    *sorted(PROJECT.glob("docs/*.md")),
    *sorted(PROJECT.glob("experiments/**/README.md")),
]
DOCUMENTS = "".join(path.read_text(encoding="utf-8") for path in SHOWN)


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


def shown_commands(text: str) -> Iterator[list[str]]:
    """The words after `ioncast` of each command in the code of a document."""
    text = re.sub(r"\\\n\s*", " ", text)
    fences = r"(?ms)^ *```(\w*)\n(.*?)^ *```"
    fenced = [code for language, code in re.findall(fences, text) if language in {"", "sh", "text"}]
    indented = re.findall(r"(?m)^    .*", re.sub(fences, "", text))
    for line in "\n".join([*fenced, *indented]).splitlines():
        if match := re.match(r" *(?:\$ )?(?:sudo )?ioncast (.*)", line):
            lexer = shlex.shlex(match[1], posix=True, punctuation_chars="|&;<>")
            lexer.whitespace_split = True
            yield list(takewhile(lambda word: not set(word) <= set("|&;<>"), lexer))


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_the_commands_of_a_document_have_their_options(path: Path) -> None:
    for line in shown_commands(path.read_text(encoding="utf-8")):
        command: click.Command = cli
        context, words = click.Context(cli), line
        while isinstance(command, click.Group) and words and words[0][0] != "-":
            below = command.get_command(context, words[0])
            assert below is not None, line
            command, context, words = below, click.Context(below, context), words[1:]
        command.make_parser(context).parse_args(list(words))


@pytest.mark.slow
def test_the_tutorial_shows_its_output(tmp_path: Path) -> None:
    (tmp_path / "experiments").symlink_to(PROJECT / "experiments")
    environment = {"IONCAST_DB": str(tmp_path / "tutorial.sqlite")}
    shown = re.findall(r"(?ms)^```text\n\$ ioncast (.*?)\n(.*?)^```", TUTORIAL)
    # The time line prints nothing.
    shown += [(line, "") for line in re.findall(r"(?m)^ioncast (timeline .*)", TUTORIAL)]
    assert len(shown) == 5
    for line, text in shown:
        result = run_ioncast(*shlex.split(line), folder=tmp_path, environment=environment)
        assert result.returncode == 0
        said = result.stderr.splitlines()
        assert set(said) <= set(text.splitlines())
        printed = "\n".join(each for each in text.splitlines() if each not in said)
        words, numbers = words_and_numbers(printed)
        words_printed, numbers_printed = words_and_numbers(result.stdout.strip())
        assert words_printed == words
        # As in the demonstration, fits end in slightly other numbers elsewhere.
        assert numbers_printed == pytest.approx(numbers, rel=0.02, abs=0.2)
    assert {"curve.html", "timeline.html"} <= {path.name for path in tmp_path.iterdir()}


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
