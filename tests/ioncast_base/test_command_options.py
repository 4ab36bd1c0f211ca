"""Types of options, and the form of a group's help."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from ioncast.cli import cli
from ioncast_base.command_options import CommandGroup, Number, WholeNumber
from tests.test_docs import commands


def groups(group: click.Group, prefix: str = "ioncast") -> dict[str, click.Group]:
    """Collect a group and all groups in it by their full names."""
    found = {prefix: group}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            found |= groups(command, f"{prefix} {name}")
    return found


GROUPS = groups(cli)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (WholeNumber(min=1), "eight", "'eight' is not a valid whole number."),
        (WholeNumber(min=1), "1.5", "'1.5' is not a valid whole number."),
        (WholeNumber(min=1), "0", "0 is not in the range x>=1."),
        (Number(0, 1), "much", "'much' is not a valid number."),
        (Number(0, 1), "nan", "'nan' is not a valid number."),
    ],
)
def test_an_error_says_in_plain_words_what_a_value_is_not(
    kind: click.ParamType, text: str, message: str
) -> None:
    with pytest.raises(click.BadParameter) as error:
        kind.convert(text, None, None)
    assert error.value.message == message


@pytest.mark.parametrize("name", commands(cli))
def test_no_help_names_a_type_of_click(name: str) -> None:
    arguments = [*name.split()[1:], "--help"]
    shown = CliRunner().invoke(cli, arguments).output
    assert "RANGE" not in shown
    assert "INTEGER" not in shown


@pytest.mark.parametrize("name", GROUPS)
def test_the_help_of_a_group_has_whole_sentences(name: str) -> None:
    shown = CliRunner().invoke(cli, [*name.split()[1:], "--help"]).output
    assert isinstance(GROUPS[name], CommandGroup)
    assert "..." not in shown.split("Commands:", 1)[1].split("Example", 1)[0]
