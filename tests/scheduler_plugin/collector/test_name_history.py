"""The hooks' history of names: what is read from it, whatever it contains."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from scheduler_plugin.collector.name_history import NameHistory
from tests.support.examples import examples


def history(folder: Path, *texts: bytes) -> NameHistory:
    for name, text in zip(("history", "history.old"), texts, strict=False):
        (folder / name).write_bytes(text)
    found = NameHistory(str(folder))
    found.refresh()
    return found


def test_a_job_has_the_names_that_it_got_last_in_the_time(tmp_path: Path) -> None:
    new = b"\n7 300 io5 end\n"
    old = b"\n7 100 io1,io2 end\n\n8 100 io3 end\n\n7 200 io4 end\n"
    found = history(tmp_path, new, old)
    for times, names in {
        (0, 150): ("io1", "io2"),
        (150, 250): ("io4",),
        (200, 200): ("io4",),
        (0, math.inf): ("io5",),
        (301, math.inf): (),
    }.items():
        assert found.names_of(7, *times) == names
    assert found.names_of(9, 0, math.inf) == ()


def test_a_history_that_is_missing_is_empty(tmp_path: Path) -> None:
    assert history(tmp_path / "none").names_of(7, 0, math.inf) == ()


def test_names_that_were_added_are_read_by_the_next_look(tmp_path: Path) -> None:
    found = history(tmp_path, b"7 100 io1 end\n")
    with (tmp_path / "history").open("ab") as file:
        file.write(b"8 100 io2 end\n")
    assert found.names_of(8, 0, math.inf) == ()
    found.refresh()
    assert found.names_of(8, 0, math.inf) == ("io2",)


@settings(max_examples=examples(100), deadline=None)
@example(b"7 100 io1")
@example(b"7 100 io1,io2 en")
@example(b"7 100 io1,io1 end")
@example(b"7 100 " + b"i" * 65 + b" end")
@example(b"7 100 " + b",".join(b"%d" % n for n in range(257)) + b" end")
@example(b"7 1e2 io1 end")
@example(b"7 " + b"9" * 5000 + b" io1 end")
@example(b"7 100 <b>,io1 end")
@example(b"7 100 \xff end")
@given(st.binary(max_size=60))
def test_a_line_that_is_not_whole_or_names_no_io_nodes_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, line: bytes
) -> None:
    found = history(tmp_path_factory.mktemp("jobs"), line + b"\n8 100 io3 end\n")
    assert found.names_of(7, 0, math.inf) == ()
    assert found.names_of(8, 0, math.inf) == ("io3",)


def test_of_a_huge_history_the_end_is_read(tmp_path: Path) -> None:
    found = history(tmp_path, b"7 100 io1 end\n" + bytes(5 << 20) + b"\n8 100 io2 end\n")
    assert (found.names_of(7, 0, 200), found.names_of(8, 0, 200)) == ((), ("io2",))


def test_a_pipe_in_its_place_is_an_error_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history")
    with pytest.raises(InputError, match="not a regular file"):
        NameHistory(str(tmp_path)).refresh()
