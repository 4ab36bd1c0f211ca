from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from predictor.curve.composing import observed_mib_s
from predictor.validation.reruns import (
    Rerun,
    cells,
    read_reruns,
    start_times_s,
)
from summario.phases.values import Phase

PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
MIB = 1 << 20
HEADER = "application,io_nodes,repetition,bandwidth_mib_s\n"

MakePhase = Callable[..., Phase]
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str) -> Path:
        path = tmp_path / "reruns.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return put


def test_a_table_is_read_as_it_stands(write: Write) -> None:
    path = write(HEADER + "hacc,0,0,44.5\nhacc,4,0,70\nhacc,0,1,44.7\n")
    reruns = read_reruns(path)
    assert reruns == [
        Rerun("hacc", 0, 0, 44.5),
        Rerun("hacc", 4, 0, 70.0),
        Rerun("hacc", 0, 1, 44.7),
    ]
    assert cells(reruns) == {0: (44.5, 44.7), 4: (70.0,)}
    assert start_times_s(reruns) is None


def test_the_bandwidth_of_each_phase_is_read_if_the_table_has_it(write: Write) -> None:
    header = "application,io_nodes,bandwidth_mib_s,phases_mib_s\n"
    first, second = read_reruns(write(header + "app,0,20,15;30\napp,0,21,\n"))
    assert (first.phases_mib_s, second.phases_mib_s) == ((15.0, 30.0), ())


@pytest.mark.parametrize("cell", ["15;", "15;fast", "nan", "0;1", "15,30"])
def test_a_bandwidth_of_a_phase_that_is_not_one_is_an_error_with_its_line(
    write: Write, cell: str
) -> None:
    header = "application,io_nodes,bandwidth_mib_s,phases_mib_s\n"
    with pytest.raises(InputError, match=r"reruns\.csv:2: phases_mib_s is ") as caught:
        read_reruns(write(f'{header}app,0,20,"{cell}"\n'))
    assert "\n" not in str(caught.value)


def test_the_testbeds_table_is_read_with_its_times() -> None:
    reruns = read_reruns(TESTBED / "applications.csv")
    with (TESTBED / "applications.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(r.application, r.io_nodes, r.repetition, r.bandwidth_mib_s) for r in reruns] == [
        (row["name"], int(row["io_nodes"]), int(row["repetition"]), float(row["bandwidth_mib_s"]))
        for row in rows
    ]
    assert reruns[0].started == datetime(2026, 11, 21, 4, 15, 2, tzinfo=timezone.utc)
    hacc = [rerun for rerun in reruns if rerun.application == "hacc-io"]
    times = start_times_s(hacc)
    assert times is not None
    assert {n: len(values) for n, values in times.items()} == {
        n: len(values) for n, values in cells(hacc).items()
    }


def test_repetitions_are_counted_where_they_have_no_number(write: Write) -> None:
    path = write("\ufeffname,io_nodes,bandwidth_mib_s,mood\na,0,1,good\na,4,2,\nb,0,3,\na,0,4,\n\n")
    found = [(rerun.application, rerun.io_nodes, rerun.repetition) for rerun in read_reruns(path)]
    assert found == [("a", 0, 0), ("a", 4, 0), ("b", 0, 0), ("a", 0, 1)]


def test_the_bandwidth_of_a_run_is_its_bytes_over_the_time_of_its_phases(
    a_phase: MakePhase,
) -> None:
    phases = [
        a_phase((64, 64 * MIB), io_time_seconds=2.0),
        a_phase((64, 192 * MIB), io_time_seconds=6.0, start_seconds=100.0, end_seconds=110.0),
    ]
    assert observed_mib_s(phases) == 32.0
    with pytest.raises(ValueError, match="no bytes"):
        observed_mib_s([])


def test_reruns_can_be_logs(write: Write, tmp_path: Path) -> None:
    # The run moved 442 MiB from the first open at 0.112 s to the last close at 9.953 s.
    shutil.copy(TESTBED / "logs" / "hacc-io-ionodes0.darshan", tmp_path / "a.darshan")
    [rerun, other] = read_reruns(
        write("application,io_nodes,log,bandwidth_mib_s\nhacc,0,a.darshan,\nhacc,0,,50\n")
    )
    assert rerun.bandwidth_mib_s == pytest.approx(442 / (9.953 - 0.112), rel=1e-3)
    assert rerun.started is not None
    assert rerun.started.year == 2026
    assert (other.repetition, other.bandwidth_mib_s, other.started) == (1, 50.0, None)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "column 'application' or 'name' is missing"),
        ("application,io_nodes\n", 1, "column 'bandwidth_mib_s' or 'log' is missing"),
        ("application,bandwidth_mib_s\n", 1, "column 'io_nodes' is missing"),
        ("application,io_nodes,io_nodes,log\n", 1, "two columns are named 'io_nodes'"),
        (HEADER + "a,0,0,1\na,0,1\n", 3, "more or fewer cells"),
        (HEADER + "a,0,0,1,2\n", 2, "more or fewer cells"),
        (HEADER + "a,0,0,fast\n", 2, "bandwidth_mib_s is 'fast'"),
        (HEADER + "a,0,0,\n", 2, "neither bandwidth_mib_s nor log"),
        (HEADER + "a,0,0,0\n", 2, "bandwidth_mib_s is '0'"),
        (HEADER + "a,0,0,-3\n", 2, "bandwidth_mib_s is '-3'"),
        (HEADER + "a,0,0,nan\n", 2, "bandwidth_mib_s is 'nan'"),
        (HEADER + "a,0,0,inf\n", 2, "bandwidth_mib_s is 'inf'"),
        (HEADER + "a,-1,0,1\n", 2, "io_nodes is '-1'"),
        (HEADER + "a,two,0,1\n", 2, "io_nodes is 'two'"),
        (HEADER + "a,99999999999,0,1\n", 2, "io_nodes is '99999999999'"),
        (HEADER + "a,0,x,1\n", 2, "repetition is 'x'"),
        (HEADER + ",0,0,1\n", 2, "not the name"),
        (HEADER + "a\x1b[0m,0,0,1\n", 2, "not the name"),
        (HEADER + "a,0,0,1\nb,0,0,1\na,0,0,2\n", 4, "is already in line 2"),
        (HEADER + 'a,0,0,"1\n', 2, "this is not valid CSV"),
        ("application,io_nodes,log\na,0,none.darshan\n", 2, "No such file"),
        ("application,io_nodes,log\na,0,reruns.csv\n", 2, "reruns.csv"),
        ("application,io_nodes,log\na,0,\n", 2, "neither bandwidth_mib_s nor log"),
        ("application,io_nodes,bandwidth_mib_s,started\na,0,1,soon\n", 2, "started is 'soon'"),
    ],
)
def test_an_unusable_rerun_is_an_error_with_its_place(
    write: Write, text: str, line: int, what: str
) -> None:
    path = write(text)
    with pytest.raises(InputError) as caught:
        read_reruns(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert what in message
    assert "\n" not in message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, write: Write) -> None:
    with pytest.raises(InputError, match=r"none\.csv: No such file"):
        read_reruns(tmp_path / "none.csv")
    with pytest.raises(InputError, match="there are no reruns"):
        read_reruns(write(HEADER))
    (tmp_path / "latin.csv").write_bytes(HEADER.encode() + b"caf\xe9,0,0,1\n")
    with pytest.raises(InputError, match=r"latin\.csv:2: the file is not a CSV in UTF-8"):
        read_reruns(tmp_path / "latin.csv")
