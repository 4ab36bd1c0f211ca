"""Servers' logs become the same samples, whatever their format, and are stored once."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.diagnosis.server_logs.counters import Reading, differences
from ioncast.diagnosis.server_logs.importers import format_of
from ioncast.diagnosis.server_logs.sample_rows import ImportSettings, server_name
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import text_query
from ioncast_base.errors import InputError
from tests.support.command import run_ioncast
from tests.support.examples import examples

PACIFIC = ZoneInfo("America/Los_Angeles")
# 2018-01-28 00:00:00 there.
MIDNIGHT = 1_517_126_400
US = 1_000_000
# Bytes of OST0000, and of all OSTs. Both `connectors.lmtdb` with `timeseries_deltas`, and
# `connectors.hdf5` with the HDF5 and H5LMT files, give them in pytokio 0.13.0.
PYTOKIO_SUMS = (
    ("read_bytes", 989_085_696, 6_347_173_888),
    ("written_bytes", 12_835_898_398, 119_037_925_429),
)
Row = dict[str, Any]


def rows_of(*paths: Path, zone: ZoneInfo | None = None) -> list[Row]:
    tables = format_of(paths[0]).read(paths, ImportSettings(zone))
    return [row for table in tables for row in table.to_pylist()]


def keyed(rows: list[Row], kind: str) -> dict[tuple[Any, ...], Row]:
    return {
        (row["server"], row["time_start_us"], row["time_end_us"]): row
        for row in rows
        if row["kind"] == kind
    }


def error_of(call: Callable[[], object]) -> str:
    with pytest.raises(InputError) as raised:
        call()
    text = str(raised.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("name", "kind", "number"),
    [
        ("snx11025-OST000a", "OST", "10"),
        ("OST0010_UUID", "OST", "16"),
        ("scratch-MDT0001", "MDT", "1"),
        ("007", "OST", "7"),
        ("snx11025n003", "MDS", "snx11025n003"),
    ],
)
def test_numbers_in_names_of_lustre_are_hexadecimal(name: str, kind: str, number: str) -> None:
    assert server_name(name, kind, "file")[1:] == (kind, number)


@pytest.mark.slow
def test_three_formats_of_the_same_five_minutes_give_the_same_rows(shared_data: Path) -> None:
    pytest.importorskip("h5py")
    folder = shared_data / "servers" / "pytokio"
    paths = [folder / f"snx11025_2018-01-28.{end}" for end in ("sqlite3", "hdf5", "h5lmt")]
    lmt, today, old = (rows_of(path, zone=PACIFIC) for path in paths)
    assert len(keyed(lmt, "OST")) == 24 * 60
    assert keyed(lmt, "OST") == keyed(today, "OST") == keyed(old, "OST")
    # Of processors, TOKIO's file of today lacks the last load, and H5LMT the MDS.
    for kind, rows in (("OSS", 24 * 61), ("MDS", 61)):
        of_lmt, of_today = keyed(lmt, kind), keyed(today, kind)
        assert len(of_lmt) == rows
        assert of_lmt.keys() >= of_today.keys()
    assert keyed(lmt, "OSS") == keyed(old, "OSS")


def test_values_are_those_of_pytokios_readers(shared_data: Path) -> None:
    path = shared_data / "servers" / "pytokio" / "snx11025_2018-01-28.sqlite3"
    osts = keyed(rows_of(path, zone=PACIFIC), "OST").values()
    for column, first, total in PYTOKIO_SUMS:
        assert sum(row[column] for row in osts if row["server"] == "0") == first
        assert sum(row[column] for row in osts) == total
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        # The same from the counters themselves.
        [(least, most)] = database.execute(
            "select min(WRITE_BYTES), max(WRITE_BYTES) from OST_DATA where OST_ID = 1"
        )
    assert sum(row["written_bytes"] for row in osts if row["server"] == "0") == most - least


def test_local_times_of_lmt_end_their_intervals(shared_data: Path) -> None:
    path = shared_data / "servers" / "pytokio" / "snx11025_2018-01-28.sqlite3"
    starts = {row["time_start_us"] for row in rows_of(path, zone=PACIFIC) if row["kind"] == "OST"}
    assert min(starts) == MIDNIGHT * US
    assert "--tz" in error_of(lambda: rows_of(path))


def test_a_counter_that_restarts_gives_no_sample(shared_data: Path) -> None:
    """The OST fails at 07:35:45, answers with 0 from 07:38:40 on, and counts anew at 07:40:20."""
    path = shared_data / "servers" / "pytokio" / "lmtdb-reset.sqlite3"
    rows = [row for row in rows_of(path, zone=PACIFIC) if row["kind"] == "OST"]
    ends = [row["time_end_us"] // US for row in rows]
    assert [end - 1_524_062_115 for end in ends] == [5, 10, 15, 20, 25, 30, 310, 315, 320]
    assert rows[0]["read_bytes"] == 438210628444160 - 438210627739648
    assert rows[-1]["written_bytes"] == 796777736 - 774221064


def job_stats(time: float | None, jobs: dict[str, int], target: str = "fs-OST000b") -> str:
    lines = [] if time is None else [f"{time:.0f}"]
    lines += [f"obdfilter.{target}.job_stats=", "job_stats:"]
    for job, written in jobs.items():
        lines += [
            f"- job_id:          {job}",
            f"  snapshot_time:   {0 if time is None else time:.3f} secs.nsecs",
            "  read_bytes:  { samples: 0, unit: bytes, min: 0, max: 0, sum: 0, sumsq: 0 }",
            "  write_bytes: { samples: 7, unit: bytes, min: 1, max: 9, sum: "
            f"{written}, sumsq: 0, hist: {{ 32K: 1 }} }}",
            "  punch: { samples: 85, unit: usecs, min: 1, max: 2, sum: 5, sumsq: 3 }",
        ]
    return "\n".join(lines) + "\n"


def test_job_stats_are_differences_of_two_times(tmp_path: Path) -> None:
    files = []
    for number, jobs in enumerate(
        ({'"SLURM_JOB10:0:n1"': 100, "chmod.3021723": 50}, {'"SLURM_JOB10:0:n1"': 160, "new": 30})
    ):
        files.append(tmp_path / f"{number}.txt")
        files[-1].write_text(job_stats(1_700_000_000 + 60 * number, jobs))
    # 60 bytes of a job, 30 of a new one; the third one's entry has expired.
    for order in (files, files[::-1]):
        [row] = rows_of(*order)
        assert (row["written_bytes"], row["read_bytes"]) == (90, 0)
        assert (row["kind"], row["server"], row["file_system"]) == ("OST", "11", "fs")
        times = row["time_start_us"] // US, row["time_end_us"] // US
        assert times == (1_700_000_000, 1_700_000_060)
    assert "give files of several times" in error_of(lambda: rows_of(files[0]))


def test_a_job_whose_counters_restart_has_moved_an_unknown_number_of_bytes(tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    texts = [job_stats(1_700_000_000 + 60 * n, {"a": v}) for n, v in enumerate((100, 20, 50))]
    file.write_text("".join(texts))
    first, second = rows_of(file)
    assert (first["written_bytes"], second["written_bytes"]) == (None, 30)


def test_genuine_job_stats_have_the_sums_of_their_jobs(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "servers" / "lustre" / "lctl-job_stats-2.14.txt").read_text()
    empty = "obdfilter.es01a-OST0001.job_stats=\njob_stats:\n"
    file = tmp_path / "two.txt"
    file.write_text(f"1723102000\n{empty}1723114700\n{text}")
    [row] = rows_of(file)
    # Of the lines `write_bytes` in the file, as awk adds them up.
    written = sum(
        int(line.split("sum:")[1].split(",")[0])
        for line in text.splitlines()
        if line.lstrip().startswith("write_bytes:")
    )
    assert (row["server"], row["file_system"]) == ("1", "es01a")
    assert row["written_bytes"] == written > 11_000_000_000


def test_snapshots_since_boot_need_the_time_of_their_collector(tmp_path: Path) -> None:
    file = tmp_path / "217.txt"
    old = job_stats(None, {"a": 1}).replace("snapshot_time:   0.000", "snapshot_time: 1896247.78")
    file.write_text(old + old)
    assert "date +%s" in error_of(lambda: rows_of(file))
    file.write_text(f"1700000000\n{old}1700000005\n{old.replace('sum: 1,', 'sum: 9,')}")
    assert [row["written_bytes"] for row in rows_of(file)] == [8]


def test_job_stats_without_a_target_are_an_error(shared_data: Path) -> None:
    file = shared_data / "servers" / "lustre" / "job_stats-2017-OST0000.txt"
    assert "lctl get_param" in error_of(lambda: rows_of(file))


def exposition(time: int, written: int) -> str:
    labels = 'component="ost",operation="write",target="fs-OST000b"'
    return (
        f"# HELP lustre_write_bytes_total bytes\nlustre_write_bytes_total{{{labels}}} {written}"
        f' {time * 1000}\nlustre_job_write_bytes_total{{component="ost",jobid="a",'
        f'target="fs-OST000b"}} {written / 2} {time * 1000}\n'
    )


def test_prometheus_text_and_query_range_give_the_same_rows(tmp_path: Path) -> None:
    text, answer = tmp_path / "scrapes.txt", tmp_path / "answer.json"
    counters = [(1_700_000_000, 100), (1_700_000_015, 400), (1_700_000_030, 410)]
    text.write_text("".join(exposition(*each) for each in counters))
    metric = {
        "__name__": "lustre_write_bytes_total",
        "component": "ost",
        "target": "fs-OST000b",
        "instance": "oss1:9100",
    }
    values = [[time, str(value)] for time, value in counters]
    result = [{"metric": metric, "values": values}]
    content = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    answer.write_text(json.dumps(content))
    rows = rows_of(text)
    # Counters of the target count, and not those of its jobs as well.
    assert [row["written_bytes"] for row in rows] == [300, 10]
    assert rows_of(answer) == rows
    content["data"]["result"][0]["metric"].pop("__name__")
    answer.write_text(json.dumps(content))
    assert "not its rate" in error_of(lambda: rows_of(answer))


def test_genuine_prometheus_text_has_no_time(shared_data: Path, tmp_path: Path) -> None:
    file = shared_data / "servers" / "lustre" / "prometheus-jobstats.txt"
    assert "nobody knows the time" in error_of(lambda: rows_of(file))
    both = tmp_path / "both.txt"
    both.write_text("".join(f"{1_700_000_000 + 15 * n}\n{file.read_text()}\n" for n in range(2)))
    rows = rows_of(both)
    assert {(row["kind"], row["server"], row["file_system"]) for row in rows} == {
        ("MDT", "0", "es01a"),
        ("MDT", "0", "es02a"),
    }
    assert {row["operations"] for row in rows} == {0}


def test_a_csv_has_unix_times_or_iso_times(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(
        "system,kind,server,time_start,time_end,read_bytes,written_bytes,operations,cpu_percent\n"
        "tetra,OST,10,1700000000,1700000005,5,6,,\n"
        "tetra,OSS,oss1,2023-11-14T22:13:20Z,2023-11-14 22:13:25+00:00,,,,97.5\n"
        "tetra,FS,scratch,2023-11-14 14:13:20,2023-11-14 14:13:25,7,8,9,\n"
    )
    rows = rows_of(file, zone=PACIFIC)
    assert len({(row["time_start_us"], row["time_end_us"]) for row in rows}) == 1
    assert [row["kind"] for row in rows] == ["OST", "OSS", "FS"]
    assert (rows[0]["server"], rows[0]["written_bytes"], rows[0]["operations"]) == ("10", 6, None)
    assert rows[1]["cpu_percent"] == 97.5
    assert "--tz" in error_of(lambda: rows_of(file))


HEADER = "kind,server,time_start,time_end,read_bytes\n"
SCRAPED = 'lustre_write_bytes_total{component="ost",target="a-OST0000"} 5 %d\n'


def query_range(values: list[Any], **labels: Any) -> bytes:
    """Write an answer with a series of a job's writes."""
    metric = {
        "__name__": "lustre_job_write_bytes_total",
        "component": "ost",
        "target": "fs-OST000b",
        **labels,
    }
    return json.dumps({"data": {"result": [{"metric": metric, "values": values}]}}).encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no log of servers"),
        (b"\x00" * 100, "no log of servers"),
        (HEADER.encode() + b"OST,1,5,10,1\n", "2001"),
        (HEADER.encode() + b"OST,1,1700000005,1700000000,1\n", "ends before it starts"),
        (HEADER.encode() + b"OST,1,nan,1700000000,1\n", "not a number"),
        (HEADER.encode() + b"OST,1,1e300,1700000000,1\n", "not a number"),
        (HEADER.encode() + b"DISK,1,1700000000,1700000005,1\n", ":2: kind"),
        (HEADER.encode() + b"OST,1,1700000000\n", ":2:"),
        (HEADER.encode() + b'OST,"1\n', ":2:"),
        (HEADER.encode() + b"x" * (2 << 20), "1 MiB"),
        (b"kind,time_start,shoe\n", "no others"),
        (b"SQLite format 3\x00" + b"\x00" * 1000, "tables of LMT"),
        (b'{"data": {"result": [{"metric": 5}]}}', "query_range"),
        (b'{"data": ' + b"[" * 100_000, "query_range"),
        (b'lustre_write_bytes_total{component="ost",target="a-OST0000"} x 1\n', "not a number"),
        (b"time_start," + b"x" * 200_000 + b"\n", ":1:"),
        (query_range([[1_700_000_000, "1"], ["1e400", "2"]]), "query_range"),
        (query_range([["1e400", "1"]]).replace(b'"1e400"', b"1e400"), "query_range"),
        (query_range([[1_700_000_000, "1"], [1e300, "2"]]), "2001"),
        (query_range([[1_700_000_000, "1"]], jobid=["a"]), "label jobid is not text"),
        (query_range([[1_700_000_000, "1"]], operation={}), "label operation is not text"),
        ((SCRAPED % 1_700_000_000_000 + SCRAPED % 9_999_999_999_999_999).encode(), "2001"),
    ],
)
def test_damaged_files_are_one_clear_line(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert said in error_of(lambda: rows_of(file, zone=PACIFIC))


def test_impossible_values_are_missing(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    lines = [
        f"OST,{number},1700000000,1700000005,{value},3"
        for number, value in enumerate(("nan", "inf", "-1", "1e300", ""))
    ]
    file.write_text(HEADER.strip() + ",written_bytes\n" + "\n".join(lines) + "\n")
    assert [(row["read_bytes"], row["written_bytes"]) for row in rows_of(file)] == [(None, 3)] * 5


def test_damaged_hdf5_and_databases_are_one_clear_line(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    dice = random.Random(1)
    for path in sorted((shared_data / "servers" / "pytokio").glob("snx11025*")):
        content = path.read_bytes()
        for _ in range(examples(40)):
            damaged = bytearray(content[: dice.randrange(512, len(content))])
            for _ in range(dice.randrange(20)):
                damaged[dice.randrange(16, len(damaged))] = dice.randrange(256)
            file = tmp_path / "damaged"
            file.write_bytes(damaged)
            try:
                rows_of(file, zone=PACIFIC)
            except InputError as error:
                assert "\n" not in str(error)


def hdf5(path: Path, cells: Any, name: str = "writebytes") -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        times = 1_700_000_000 + 5 * np.arange(len(cells))
        file["datatargets/timestamps"] = times
        file[f"datatargets/{name}"] = np.array(cells, np.float64)
        columns = [b"fs-OST%04x" % number for number in range(len(cells[0]))]
        file[f"datatargets/{name}"].attrs["columns"] = columns
    return path


def test_bytes_after_missing_rows_of_tokio_are_those_of_the_gap(tmp_path: Path) -> None:
    """Minus zero is missing, zero is a value; a gap at the beginning has no known length."""
    rows = rows_of(hdf5(tmp_path / "a.h5", [[-0.0, 4], [8, -0.0], [0.0, -0.0], [1, 30]]))
    second = [round(row["time_start_us"] / US) - 1_700_000_000 for row in rows]
    found = [
        (row["server"], start, row["written_bytes"])
        for row, start in zip(rows, second, strict=True)
    ]
    assert sorted(found) == [("0", 10, 0), ("0", 15, 1), ("1", 0, 4), ("1", 5, 30)]
    assert {row["time_end_us"] // US - 1_700_000_000 for row in rows} == {5, 15, 20}


def test_rates_of_tokio_are_bytes_of_a_step(tmp_path: Path) -> None:
    rows = rows_of(hdf5(tmp_path / "a.h5", [[2.0], [3.0]], "writerates"))
    assert [row["written_bytes"] for row in rows] == [10, 15]


@given(
    st.lists(st.integers(0, 1000) | st.none(), min_size=1, max_size=30),
    st.integers(0, 30),
)
@settings(max_examples=examples(200))
def test_differences_add_up_to_the_counter(steps: list[int | None], cut: int) -> None:
    """Missing samples, and a counter in two pieces, lose nothing as long as nothing restarts."""
    counter = np.cumsum([step or 0 for step in steps], dtype=float) + 1
    counter[[step is None for step in steps]] = np.nan
    times = np.arange(len(steps)) * 5
    first, last = differences(times[:cut], counter[:cut])
    second, _ = differences(times[cut:], counter[cut:], last)
    known = counter[~np.isnan(counter)]
    values = np.concatenate((first.values, second.values))
    starts = np.concatenate((first.start_us, second.start_us))
    assert np.nansum(values) == (known[-1] - known[0] if len(known) else 0)
    has_value = ~np.isnan(values)
    # Intervals follow one another.
    assert (starts[has_value][1:] == times[has_value][:-1]).all()


def test_differences_go_on_from_a_reading() -> None:
    column, last = differences(np.array([10]), np.array([7.0]), Reading(5, 3.0))
    assert (column.values.tolist(), column.start_us.tolist(), last) == (
        [4.0],
        [5],
        Reading(10, 7.0),
    )


def stored(store: Path) -> list[Row]:
    text = "select * from server_samples order by kind, server, time_start_us, time_end_us"
    with asking(store) as ask:
        answer: pa.Table = ask(text_query(text), {})
        return answer.to_pylist()


def csv_of(path: Path, written: int, server: str = "1") -> Path:
    path.write_text(HEADER + f"OST,{server},1700000000,1700000005,{written}\n")
    return path


@pytest.mark.slow
def test_the_same_file_twice_and_the_same_rows_elsewhere_change_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first, second = csv_of(tmp_path / "a.csv", 7), tmp_path / "b.csv"
    second.write_text(first.read_text() + "OST,1,1700000005,1700000010,8\n")
    words = ("servers", "import", "--system", "tetra", "--store", store, "--format", "json")
    done = run_ioncast(*words, first)
    assert done.returncode == 0, done.stderr
    [imported] = json.loads(done.stdout)
    assert (imported["samples"], imported["kinds"], imported["format"]) == (1, ["OST"], "CSV")
    files = sorted(store.rglob("*"))
    [again] = json.loads(run_ioncast(*words, first).stdout)
    assert again["is_known"]
    assert sorted(store.rglob("*")) == files
    run_ioncast(*words, second)
    assert [(row["system"], row["read_bytes"]) for row in stored(store)] == [
        ("tetra", 7),
        ("tetra", 8),
    ]
    info = json.loads(run_ioncast("store", "info", store, "--format", "json").stdout)
    [samples] = info["samples"]
    assert (samples["system"], samples["kind"], samples["servers"]) == ("tetra", "OST", 1)
    assert samples["last_us"] == 1_700_000_010 * US


def test_a_second_file_system_of_a_system_is_rejected(tmp_path: Path) -> None:
    store = tmp_path / "store"
    files = [csv_of(tmp_path / f"{fs}.csv", 1, f"{fs}-OST0001") for fs in ("home", "scratch")]
    words = ("servers", "import", "--system", "tetra", "--store", store)
    assert run_ioncast(*words, files[0]).returncode == 0
    done = run_ioncast(*words, files[1])
    assert done.returncode == 2
    assert "home and scratch are two file systems" in done.stderr
    assert [row["file_system"] for row in stored(store)] == ["home"]


@pytest.mark.slow
def test_samples_of_earlier_months_are_removed(tmp_path: Path) -> None:
    store, file = tmp_path / "store", tmp_path / "two.csv"
    file.write_text(csv_of(file, 7).read_text() + "OST,1,1702000000,1702000005,8\n")
    words = ("servers", "import", "--system", "tetra", "--store", store, file)
    run_ioncast(*words)
    done = run_ioncast("store", "remove", store, "--before", "2023-12", "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 sample of servers" in done.stdout
    assert [row["read_bytes"] for row in stored(store)] == [8]
    # Another import stores them again, because the store lacks them.
    run_ioncast(*words)
    assert [row["read_bytes"] for row in stored(store)] == [7, 8]


def answer_of(path: Path, direction: str, first: int) -> Path:
    metric = {
        "__name__": f"lustre_{direction}_bytes_total",
        "component": "ost",
        "target": "fs-OST000b",
    }
    values = [[1_700_000_000 + first + 10 * n, str(100 * n)] for n in range(4)]
    path.write_text(json.dumps({"data": {"result": [{"metric": metric, "values": values}]}}))
    return path


def test_writes_at_other_times_than_the_reads_are_rejected(tmp_path: Path) -> None:
    """Each row has one direction; if rows overlapped, the time of the server would count twice."""
    store = tmp_path / "store"
    words = ("servers", "import", "--system", "tetra", "--store", store)
    reads = answer_of(tmp_path / "reads.json", "read", 0)
    assert run_ioncast(*words, reads).returncode == 0
    late = answer_of(tmp_path / "late.json", "write", 5)
    done = run_ioncast(*words, late)
    assert done.returncode == 2
    assert "OST 11" in done.stderr
    assert "lustre_(read|write)_bytes_total" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [row["written_bytes"] for row in stored(store)] == [None] * 3
    # Another system's servers are others, and the same times make the same rows.
    another = ("servers", "import", "--system", "another", "--store", store)
    assert run_ioncast(*another, late).returncode == 0
    same = answer_of(tmp_path / "same.json", "write", 0)
    assert run_ioncast(*words, same).returncode == 0
    rows = [row for row in stored(store) if row["system"] == "tetra"]
    assert [(row["read_bytes"], row["written_bytes"]) for row in rows] == [(100, 100)] * 3


def test_reads_that_overlap_writes_in_a_csv_are_rejected(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(
        HEADER.strip() + ",written_bytes\n"
        "OST,1,1700000000,1700000010,5,\n"
        "OST,1,1700000010,1700000020,5,\n"
        "OST,1,1700000000,1700000020,,5\n"
    )
    store = tmp_path / "store"
    done = run_ioncast("servers", "import", "--system", "tetra", "--store", store, file)
    assert (done.returncode, "reads and writes of OST 1" in done.stderr) == (2, True)
    assert not list(store.glob("bundle=*"))
    file.write_text(
        HEADER.strip() + ",written_bytes\n"
        "OST,1,1700000000,1700000010,5,\n"
        "OST,1,1700000010,1700000020,,5\n"
        "OST,1,1700000010,1700000020,5,\n"
        "OST,2,1700000000,1700000020,,5\n"
    )
    assert (
        run_ioncast("servers", "import", "--system", "tetra", "--store", store, file).returncode
        == 0
    )


def test_an_unknown_zone_is_one_line(tmp_path: Path) -> None:
    file = csv_of(tmp_path / "a.csv", 7)
    words = ("--system", "tetra", "--store", tmp_path / "store", "--tz", "Mars/Base")
    done = run_ioncast("servers", "import", file, *words)
    assert (done.returncode, "not a time zone" in done.stderr) == (2, True)


@pytest.mark.parametrize("lines", ["", "OST,1,1700000000,1700000005,-3\n"])
def test_a_file_without_samples_is_one_line(tmp_path: Path, lines: str) -> None:
    file, store = tmp_path / "samples.csv", tmp_path / "store"
    file.write_text(HEADER + lines)
    done = run_ioncast("servers", "import", "--system", "tetra", "--store", store, file)
    assert done.returncode == 2
    assert "this has no samples of servers" in done.stderr
    assert "Traceback" not in done.stderr
