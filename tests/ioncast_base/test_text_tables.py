"""Tables fit the terminal, and lose nothing anywhere else."""

from __future__ import annotations

import sys

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.command_options import wide_option
from ioncast_base.text_tables import text_table

ROWS = [
    {"phase": 0, "kind": "write POSIX contiguous", "requests": 64, "log": "/scratch/" + "x" * 60},
    {"phase": 1, "kind": "read POSIX contiguous", "requests": 9, "log": "/scratch/y"},
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    return monkeypatch


def test_a_pipe_gets_all_columns_in_one_line_each() -> None:
    assert text_table(ROWS, right=["requests"], optional=["kind", "requests"]).splitlines() == [
        f"phase  kind                    requests  log{' ' * 66}".rstrip(),
        f"-----  ----------------------  --------  {'-' * 69}",
        f"0      write POSIX contiguous        64  /scratch/{'x' * 60}",
        "1      read POSIX contiguous          9  /scratch/y",
    ]


def test_rows_may_lack_columns_of_others() -> None:
    assert text_table([{"id": 1, "0": "5"}, {"id": 2, "4": "7"}], missing="-").splitlines() == [
        "id  0  4",
        "--  -  -",
        "1   5  -",
        "2   -  7",
    ]


def test_the_last_optional_columns_go_first(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "109")
    head, *_, note = text_table(ROWS, optional=["kind", "requests"]).splitlines()
    assert head.split() == ["phase", "kind", "log"]
    assert note == "(--wide also shows: requests)"


def test_a_column_is_wrapped_if_nothing_else_helps(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "40")
    lines = text_table(ROWS, optional=["kind", "requests"]).splitlines()
    assert max(map(len, lines)) <= 40
    path = "".join(line[7:].strip() for line in lines[2:5])
    assert path == f"/scratch/{'x' * 60}"


def test_a_command_to_paste_is_never_wrapped(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "40")
    table = text_table(
        [{"phase": 0, "ior": "ior -a POSIX -w -e -b 64k -t 64k -s 32 -F"}], whole="ior"
    )
    assert table.splitlines()[-1].endswith("  ior -a POSIX -w -e -b 64k -t 64k -s 32 -F")


def test_the_option_shows_all_columns_on_a_terminal(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "40")

    @click.command()
    @wide_option
    def command() -> None:
        terminal.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        click.echo(text_table(ROWS, optional=["kind", "requests"]))

    narrow, wide = (CliRunner().invoke(command, words).output for words in ([], ["--wide"]))
    assert max(map(len, narrow.splitlines())) <= 40
    assert wide.splitlines()[0].split() == list(ROWS[0])


@given(
    st.lists(st.tuples(st.integers(), st.text("ab /", max_size=90), st.text("c-", max_size=50))),
    st.integers(50, 120),
)
def test_every_table_fits_and_keeps_its_first_column(
    cells: list[tuple[int, str, str]], columns: int
) -> None:
    rows = [{"id": number, "path": path, "more": more} for number, path, more in cells]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        patch.setenv("COLUMNS", str(columns))
        lines = text_table(rows, optional=["more"]).splitlines()
    assert max(map(len, lines), default=0) <= columns
    told = "\n".join(lines)
    assert all(str(row["id"]) in told for row in rows)
