"""Names of programs."""

from __future__ import annotations

import pytest

from ioncast_base.files import program_of


@pytest.mark.parametrize(
    ("executable", "program"),
    [("/opt/bin/app", "app"), ("app", "app"), ("./app", "app"), ("/opt/app/", "app"), ("/", "")],
)
def test_a_program_is_the_executable_without_its_folder(executable: str, program: str) -> None:
    assert program_of(executable) == program
