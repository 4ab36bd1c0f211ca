"""Mistakes of users are errors of one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ioncast

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
HACC = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
OTHER = TESTBED / "logs" / "periodic-ionodes0.darshan"


def edited(**cells: Any) -> pd.DataFrame:
    frame = ioncast.phases(HACC).frame
    return frame.assign(**{name: [value] for name, value in cells.items()})


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a missing log": (lambda: ioncast.phases("missing.darshan"), r"missing\.darshan: No such file"),
    "a number as a log": (lambda: ioncast.check(5), "a log cannot be a int"),
    "no log": (lambda: ioncast.characterize([]), "no log is given"),
    "a folder without logs": (lambda: ioncast.phases(PROJECT / "docs"), "has no Darshan logs"),
    "a pattern without logs": (lambda: ioncast.phases("nothing/*"), "no log matches"),
    "two runs": (lambda: ioncast.match([HACC, OTHER]), "their job ids are"),
    "an unknown check": (lambda: ioncast.check(HACC, ignore=["X99"]), "ignore: .*no check 'X99'"),
    "other settings": (lambda: ioncast.check(HACC, settings_file="no.toml"), r"no\.toml: "),
    "a colour": (lambda: ioncast.timeline(HACC, colour="red"), "colour: 'red' is not one of"),
    "ranks": (lambda: ioncast.timeline(HACC, ranks="a-b"), "ranks: 'a-b' is no range"),
    "no trace": (lambda: ioncast.timeline(HACC, files="*"), "only a trace"),
    "an unknown query": (lambda: ioncast.sql(HACC, "programms"), "no query 'programms'"),
    "two queries": (lambda: ioncast.sql(HACC, "programs", text="select 1"), "only one"),
    "a limit": (lambda: ioncast.sql(HACC, "programs", limit="many"), "limit: 'many'"),
    "a text": (lambda: ioncast.sql(HACC, text="select nothing from jobs"), "nothing"),
    "a missing log in SQL": (lambda: ioncast.sql("missing.darshan", "programs"), "missing"),
    "a figure of SQL": (lambda: ioncast.sql(HACC, "programs").plot(), "has no figure"),
    "no store": (lambda: ioncast.diagnose(1, store=PROJECT), "is not a store"),
    "a plan as a run": (lambda: ioncast.advise(edited(), "testbed"), "do not have the counters"),
    "no results": (lambda: ioncast.import_results("no.csv", "testbed"), r"no\.csv: "),
    "a system's name": (lambda: ioncast.import_results("no.csv", " "), "system"),
    "a missing column": (
        lambda: ioncast.match(edited().drop(columns="bytes")),
        "the frame of phases: column 'bytes' is missing",
    ),
    "an unknown api": (lambda: ioncast.match(edited(api="NFS")), "row 0: .*'NFS' is not one of"),
    "a size of 0": (lambda: ioncast.match(edited(request_bytes=0)), "row 0: request_bytes is 0"),
    "half a request": (lambda: ioncast.match(edited(requests=0.5)), "requests is 0.5"),
    "text for bytes": (lambda: ioncast.match(edited(bytes="many")), "bytes is many"),
    "no bytes": (lambda: ioncast.match(edited(bytes=0)), "without bytes"),
    "cells that contradict": (
        lambda: ioncast.match(edited(requests=10, request_bytes=10)),
        "requests × request_bytes is not bytes",
    ),
    "settings for a plan": (
        lambda: ioncast.match(edited(), settings=ioncast.ExtractionSettings(layer="posix")),
        "settings are for logs",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_of_one_line(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, said = MISTAKES[mistake]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ioncast.IoncastError) as raised:
        call()
    text = str(raised.value)
    assert re.search(said, text), text
    assert "\n" not in text
    assert "--" not in text or "--list" in text


def test_errors_are_one_line_and_name_parameters_as_python_does(
    database: Path, tmp_path: Path
) -> None:
    with pytest.raises(ioncast.IoncastError, match=r"^[^\n]*missing\.darshan[^\n]*$"):
        ioncast.phases(tmp_path / "missing.darshan")
    with pytest.raises(ioncast.IoncastError, match="testbed"):
        ioncast.predict(HACC, "tesbed", db=database)
    with pytest.raises(ioncast.IoncastError, match="tesbed"):
        ioncast.curves("tesbed", db=database)
    with pytest.raises(ioncast.IoncastError, match="the frame of reruns"):
        ioncast.validate(pd.DataFrame({"io_nodes": [1]}), {}, "testbed", db=database)
    with pytest.raises(ioncast.IoncastError):
        ioncast.curves("testbed", db=tmp_path / "nowhere.sqlite")
    assert not (tmp_path / "nowhere.sqlite").exists()
    with pytest.raises(ioncast.IoncastError, match="ran_with: phases of a frame are no run"):
        ioncast.predict(edited(), "testbed", ran_with=4, db=database)
    with pytest.raises(ioncast.IoncastError, match="io_nodes: -1"):
        ioncast.predict(HACC, "testbed", io_nodes=[-1], db=database)
