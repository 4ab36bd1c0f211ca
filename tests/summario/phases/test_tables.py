"""Phases as CSV, JSON and text, and read back."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from summario.phases import tables
from summario.phases.extract import extract_phases
from summario.phases.values import Part, Phase
from summario.reading.log import read_log

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.darshan"))
SUMMARIO = "job,start,end,type,rank,bytes,time,api,requests,spatiality,files,n_files,mode_processes"
# RR-9366, Table 5.
PERIODIC_A = (
    "PERIODIC-A,10.031531,24.02671,write,all,3221225472,11.1388105416667,POSIX,6144,"
    "sequential,shared,1,24"
)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_csv_keeps_everything(path: Path, tmp_path: Path) -> None:
    phases = extract_phases(read_log(path))
    file = tmp_path / "phases.csv"
    file.write_text(tables.to_csv(phases))
    assert phases
    assert tables.read_csv(file) == phases


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_json_keeps_everything(path: Path) -> None:
    phases = extract_phases(read_log(path))
    assert [tables.from_record(each) for each in json.loads(tables.to_json(phases))] == phases


def test_json_and_text_say_which_phases_repeat() -> None:
    # The program opens a file five times, 4 s apart.
    phases = extract_phases(read_log(FIXTURES[0].with_name("reopen-same-5x.darshan")))
    records = json.loads(tables.to_json(phases))
    assert [record["period"]["times"] for record in records] == [5] * 5
    assert records[0]["period"]["seconds"] == pytest.approx(4.0, abs=0.11)
    assert records[0]["period"]["pause_seconds"] == pytest.approx(4.0, abs=0.11)
    assert tables.to_text(phases).endswith("\n\nphases 0 to 4: the same I/O every 4 s, 5 times")


def test_json_and_text_say_nothing_of_phases_that_do_not_repeat() -> None:
    phases = extract_phases(read_log(FIXTURES[0].with_name("multiphase.darshan")))
    assert [record["period"] for record in json.loads(tables.to_json(phases))] == [None] * 3
    assert "the same I/O" not in tables.to_text(phases)


counts = st.integers(1, 1 << 40)


@given(
    st.lists(st.builds(Part, requests=counts, bytes=st.integers(1, 1 << 60)), max_size=5),
    st.integers() | st.text(),
)
def test_json_keeps_the_parts_and_the_name_of_a_job(parts: list[Part], job: int | str) -> None:
    if sum(part.bytes for part in parts) < 1 << 63:
        before = replace(phase(tuple(parts)), job=job)
        assert tables.from_record(json.loads(json.dumps(tables.to_record(before)))) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes": -1}, "negative"),
        ({"bytes": 1.5}, "not a count"),
        ({"bytes": 7}, "do not add up"),
        ({"start": None}, "float"),
        ({"end": float("inf")}, "not a finite number"),
        ({"type": "seek"}, "'seek' is not one of read, write"),
        ({"api": "HDF5"}, "not one of"),
        ({"job": []}, "the job is neither"),
        ({"fsync": "always"}, "'always' is not one of none, end, each"),
        ({"api": "MPIIO", "order": "collective"}, "'collective' is not one of contiguous"),
        ({"aggregators": -1}, "negative"),
        ({"elapsed": float("nan")}, "not a finite number"),
        ({"parts": None}, "not iterable"),
        ({"parts": 3}, "not iterable"),
        ({"parts": [None]}, "subscriptable"),
        ({"parts": [{"requests": 1}]}, "'bytes' is missing"),
        ({"parts": [{"requests": 0, "bytes": 5}]}, "has no requests"),
    ],
)
def test_json_that_is_not_a_phase_is_rejected(change: dict[str, object], message: str) -> None:
    record = tables.to_record(phase((Part(1, 5),)))
    with pytest.raises(InputError, match=message):
        tables.from_record({**record, **change})


def test_a_field_that_json_lacks_is_named() -> None:
    record = tables.to_record(phase((Part(1, 5),)))
    del record["api"]
    with pytest.raises(InputError, match="not a phase: 'api' is missing"):
        tables.from_record(record)


KNOWN = {"fsync": "end", "order": "sequential", "aggregators": 4, "elapsed_seconds": 1.5}
SHARES = {"largest_process_bytes": 3, "largest_node_bytes": 5, "nodes": 1}


@pytest.mark.parametrize("known", [KNOWN, {"fsync": "none"}, {"elapsed_seconds": 0.0}, SHARES])
def test_csv_and_json_keep_what_is_known_of_a_phase(known: dict[str, Any], tmp_path: Path) -> None:
    before = replace(phase((Part(1, 5),)), api="MPIIO", spatiality="collective", **known)
    file = tmp_path / "phases.csv"
    file.write_text(tables.to_csv([before]))
    assert tables.read_csv(file) == [before]
    assert tables.from_record(json.loads(tables.to_json([before]))[0]) == before


@pytest.mark.parametrize(
    ("api", "spatiality", "order"),
    [
        ("POSIX", "random", "random"),
        ("STDIO", "sequential", "sequential"),
        ("MPIIO", "unknown", None),
        ("MPIIO", "collective", None),
    ],
)
def test_a_record_of_an_older_version_has_only_the_order_of_posix_and_stdio(
    api: str, spatiality: str, order: str | None
) -> None:
    later = ("fsync", "order", "aggregators", "elapsed")
    record = tables.to_record(phase((Part(1, 5),))) | {"api": api, "spatiality": spatiality}
    read = tables.from_record({name: record[name] for name in record if name not in later})
    assert (read.fsync, read.order, read.aggregators, read.elapsed_seconds) == (
        None,
        order,
        None,
        None,
    )


def test_the_newest_columns_come_last() -> None:
    header = tables.to_csv([]).splitlines()[0]
    assert header.endswith(
        ",elapsed,largest_process,largest_node,nodes,block_requests,amplification"
    )


@given(st.lists(st.builds(Part, requests=counts, bytes=counts), min_size=1, max_size=5))
def test_csv_keeps_the_bytes_of_parts(parts: list[Part]) -> None:
    text = tables.to_csv([phase(tuple(parts))])
    [row] = csv.DictReader(io.StringIO(text))
    assert tables.parts_of_text(row["parts"], 0, 0) == tuple(parts)


def phase(parts: tuple[Part, ...]) -> Phase:
    return Phase(
        job=1,
        start_seconds=0.0,
        end_seconds=1.0,
        operation="write",
        rank=None,
        processes=4,
        nprocs=4,
        bytes=sum(part.bytes for part in parts),
        io_time_seconds=1.0,
        api="POSIX",
        requests=sum(part.requests for part in parts),
        spatiality="contiguous",
        file_access="shared",
        n_files=1,
        mode_processes=4,
        parts=parts,
    )


def test_csv_starts_with_summarios_columns() -> None:
    header = tables.to_csv([]).splitlines()[0]
    assert header.startswith(SUMMARIO)


def test_json_has_the_same_names_and_the_parts() -> None:
    [record] = json.loads(tables.to_json([phase((Part(2, 16), Part(1, 4)))]))
    assert list(record)[:13] == SUMMARIO.split(",")
    assert record["rank"] == "all"
    assert record["parts"] == [
        {"request_bytes": 8, "requests": 2, "bytes": 16},
        {"request_bytes": 4, "requests": 1, "bytes": 4},
    ]


def test_a_table_of_summarios_own_columns_is_read(tmp_path: Path) -> None:
    file = tmp_path / "summario.csv"
    file.write_text(f"{SUMMARIO}\n{PERIODIC_A}\n")
    [found] = tables.read_csv(file)
    assert found.job == "PERIODIC-A"
    assert found.processes == found.mode_processes == 24
    assert found.parts == (Part(6144, 3221225472),)


@pytest.mark.parametrize(
    ("content", "clause"),
    [
        ("", "column 'job' is missing"),
        ("a,b\n1,2\n", "column 'job' is missing"),
        (f"{SUMMARIO}\n1,2,3\n", "line 2 is not a phase"),
        (f"{SUMMARIO}\n{PERIODIC_A.replace('6144', 'many')}\n", "line 2 is not a phase"),
        (f"{SUMMARIO}\n{PERIODIC_A.replace('write', 'append')}\n", "'append' is not one of"),
        (f"{SUMMARIO}\n{PERIODIC_A.replace('6144', '-1')}\n", "negative"),
        (f"{SUMMARIO},processes\n{PERIODIC_A},-4\n", "negative"),
    ],
)
def test_a_wrong_table_of_phases_is_one_clear_line(
    tmp_path: Path, content: str, clause: str
) -> None:
    file = tmp_path / "phases.csv"
    file.write_text(content)
    with pytest.raises(InputError) as raised:
        tables.read_csv(file)
    assert str(file) in str(raised.value)
    assert clause in str(raised.value)
    assert "\n" not in str(raised.value)


def test_without_phases_the_text_says_so() -> None:
    assert tables.to_text([]) == "no I/O phases"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("write-block-cb2", {"order": "contiguous", "aggregators": "2"}),
        ("write-independent-random", {"order": "random"}),
        ("write-independent-strided-view", {"order": "unknown"}),
        ("fsync-posix-one-Y", {"fsync": "each"}),
        ("fsync-mpi-e", {"order": "contiguous", "fsync": "end"}),
    ],
)
def test_the_table_shows_further_columns_only_where_they_say_something_new(
    name: str, shown: dict[str, str]
) -> None:
    path = Path(__file__).parents[1] / "fixtures" / "ior" / f"{name}.darshan"
    head, _, row = tables.to_text(extract_phases(read_log(path))).splitlines()
    cells = dict(zip(re.split(r"\s{2,}", head), re.split(r"\s{2,}", row), strict=True))
    assert {n: cells[n] for n in ("order", "aggregators", "fsync") if n in cells} == shown
