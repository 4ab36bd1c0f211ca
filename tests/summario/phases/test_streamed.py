"""Records as CSV, whose texts may come from a hostile log."""

from __future__ import annotations

import csv
import io

import pytest

from summario.phases.streamed import stream_csv

HOSTILE = [
    "/s/\x1b[2J\x07",
    "/s/\n\nHIGH  P05",
    "/s/\u202egpj.exe",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
]


@pytest.mark.parametrize("path", HOSTILE)
def test_a_hostile_name_cannot_change_the_terminal_nor_run_in_a_spreadsheet(path: str) -> None:
    text = "".join(stream_csv(["log", "bytes"], [[{"log": path, "bytes": -1}]]))
    assert text.replace("\n", "").isprintable()
    _, [name, size] = csv.reader(io.StringIO(text))
    assert name[0] not in "=+-@"
    assert size == "-1"


def test_genuine_names_stay_as_they_are() -> None:
    text = "".join(stream_csv(["log"], [[{"log": "/scratch/Ergebnis der Läufe,1.h5"}]]))
    assert text == 'log\n"/scratch/Ergebnis der Läufe,1.h5"\n'
