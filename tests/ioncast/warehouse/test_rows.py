"""The rows of all tables, against planted logs, genuine logs and PyDarshan's numbers."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.applications.darshan_writer import Dxt, Record, write_log
from ioncast.warehouse.rows import tables_of
from ioncast.warehouse.schema import SCHEMAS
from summario.reading.sources import find_sources
from tests.support.traced import traced_log

FIXTURES = Path(__file__).resolve().parents[2] / "summario" / "fixtures"
KIB, MIB = 1 << 10, 1 << 20
# PyDarshan's collector of garbage waits for ever for its library.
_STATS = """
import gc, json, sys; gc.disable(); from darshan.cli import file_stats, job_stats
for path in sys.argv[1:]:
    for module in ("POSIX", "MPI-IO"):
        for stats in (job_stats, file_stats):
            table = stats.process_logfile(path, module, None, None)
            for row in json.loads(table.to_json(orient="records", double_precision=15)):
                print(json.dumps([path, module.replace("-", ""), row]))
"""


def rows_of(*logs: Path | str) -> dict[str, list[dict[str, Any]]]:
    tables = tables_of(find_sources([str(log) for log in logs]), system="here")
    for name, table in tables.items():
        assert table.schema == SCHEMAS[name]
    return {name: table.to_pylist() for name, table in tables.items()}


def planted(folder: Path) -> Path:
    """Two ranks write a file each: 300 requests of 4 KiB, and 5 of 1 MiB."""
    records, traces = [], []
    for rank, (size, count, bins) in enumerate(((4 * KIB, 300, "1K_10K"), (MIB, 5, "100K_1M"))):
        counters = {
            "POSIX_OPENS": 1,
            "POSIX_WRITES": count,
            "POSIX_BYTES_WRITTEN": count * size,
            "POSIX_MAX_BYTE_WRITTEN": count * size - 1,
            "POSIX_ACCESS1_ACCESS": size,
            "POSIX_ACCESS1_COUNT": count,
            f"POSIX_SIZE_WRITE_{bins}": count,
        }
        times = {
            "POSIX_F_WRITE_START_TIMESTAMP": 1.0,
            "POSIX_F_WRITE_END_TIMESTAMP": 3.0,
            "POSIX_F_WRITE_TIME": 2.0 + rank,
            "POSIX_F_META_TIME": 0.5,
        }
        file = f"/data/{rank}"
        records.append(Record("POSIX", file, rank, counters, times))
        requests = [
            (n * size, size, 1.0 + n / count, 1.0 + (n + 0.5) / count) for n in range(count)
        ]
        traces.append(Dxt("DXT_POSIX", file, rank, f"n{rank}", requests))
    return write_log(
        folder / "app.darshan", nprocs=2, records=records, dxt=traces, exe="/opt/bin/solver -x"
    )


def test_a_planted_log_has_its_numbers_in_all_tables(tmp_path: Path) -> None:
    log = planted(tmp_path)
    rows = rows_of(log)
    digest = hashlib.sha256(log.read_bytes()).hexdigest()
    assert {row["log"] for name in ("jobs", "files", "phases") for row in rows[name]} == {digest}
    [job] = rows["jobs"]
    assert (job["program"], job["processes"], job["system"]) == ("solver", 2, "here")
    assert job["compute_nodes"] == 2
    assert (job["path"], job["size_bytes"]) == (str(log), log.stat().st_size)
    assert (job["written_bytes"], job["read_bytes"]) == (300 * 4 * KIB + 5 * MIB, 0)
    # Of all processes together, as the counters have them.
    assert (job["io_seconds"], job["metadata_seconds"], job["files"]) == (5.0, 1.0, 2)
    assert (job["uses_mpiio"], job["uses_collective"], job["has_requests"]) == (False, False, True)
    files = {row["path"]: row for row in rows["files"]}
    assert [files[path]["writes"] for path in ("/data/0", "/data/1")] == [300, 5]
    assert files["/data/1"]["write_seconds"] == 3.0
    assert files["/data/1"]["size_bytes"] == 5 * MIB
    assert (files["/data/0"]["shared"], files["/data/0"]["file_system"]) == (False, "ext4")
    assert files["/data/0"]["stripe_count"] is None
    # Requests of exactly 1 MiB are in a bin of smaller ones, and not small.
    sizes = {
        (row["operation"], row["bin"]): row for row in rows["request_sizes"] if row["requests"]
    }
    assert {key: (row["requests"], row["small"]) for key, row in sizes.items()} == {
        ("write", "1K_10K"): (300, 300),
        ("write", "100K_1M"): (5, 0),
    }
    assert len(rows["requests"]) == 305
    assert [row["id"] for row in rows["requests"]] == list(range(305))
    assert {row["node"] for row in rows["requests"] if row["rank"] == 1} == {"n1"}
    assert sum(row["length_bytes"] for row in rows["requests"]) == job["written_bytes"]
    assert {row["call"] for row in rows["requests"]} == {None}
    assert sum(row["bytes"] for row in rows["phases"]) == job["written_bytes"]
    assert not rows["failed"]


def test_a_file_is_on_the_file_system_with_the_longest_matching_mount_point(tmp_path: Path) -> None:
    paths = ("/etcetera/a", "/data/a", "/data/fast/a", "/data/faster", "/data/fast")
    log = write_log(
        tmp_path / "mounts.darshan",
        nprocs=1,
        records=[Record("POSIX", path, 0, {"POSIX_OPENS": 1}, {}) for path in (*paths, "relative")],
        mounts=[("/data", "nfs4"), ("/", "ext4"), ("/data/fast", "lustre")],
    )
    found = {row["path"]: row["file_system"] for row in rows_of(log)["files"]}
    expected = ("ext4", "nfs4", "lustre", "nfs4", "lustre")
    assert found == {**dict(zip(paths, expected, strict=True)), "relative": None}


def test_a_log_that_cannot_be_read_is_a_row_of_its_own(tmp_path: Path) -> None:
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(b"no log")
    rows = rows_of(bad, tmp_path / "missing.darshan", planted(tmp_path))
    assert len(rows["jobs"]) == 1
    first, second = rows["failed"]
    assert (first["path"], first["size_bytes"]) == (str(bad), 6)
    assert second["path"].endswith("missing.darshan")
    assert all(row["reason"] for row in rows["failed"])


def test_hostile_names_and_numbers_hide_no_other_log(tmp_path: Path) -> None:
    counters = {"POSIX_READS": 1, "POSIX_BYTES_READ": 10}
    record = Record("POSIX", "/data/\n'; drop table files", 0, counters, {})
    exe = "/bin/a'; drop table jobs"
    # A name that is not UTF-8.
    names = tmp_path / os.fsdecode(b"names\xff.darshan")
    write_log(tmp_path / "names.darshan", nprocs=1, exe=exe, records=[record]).rename(names)
    large = {"POSIX_READS": 1, "POSIX_BYTES_READ": (1 << 60) - 1}
    numbers = write_log(
        tmp_path / "numbers.darshan",
        nprocs=1,
        records=[Record("POSIX", f"/data/{n}", 0, large, {}) for n in range(20)],
    )
    rows = rows_of(names, numbers, planted(tmp_path))
    assert len(rows["jobs"]) + len(rows["failed"]) == 3
    paths = {row["path"] for row in rows["jobs"]}
    assert paths >= {str(tmp_path / "names?.darshan"), str(tmp_path / "app.darshan")}
    assert record.path in {row["path"] for row in rows["files"]}
    assert all(row["read_bytes"] >= 0 for row in rows["jobs"])


def test_unknown_values_are_null(shared_data: Path, tmp_path: Path) -> None:
    # The trace names the compute nodes of two of three processes.
    [job] = rows_of(traced_log(tmp_path / "traced.darshan", ["n1", "n2"], nprocs=3))["jobs"]
    assert job["compute_nodes"] is None
    rows = rows_of(shared_data / "darshan-logs/empty_log/empty_log.darshan")
    [job] = rows["jobs"]
    assert (job["bandwidth_mib_s"], job["read_bytes"], job["files"]) == (None, 0, 0)
    assert not rows["phases"]


def test_stripes_and_servers_are_those_of_the_layout(shared_data: Path) -> None:
    rows = rows_of(shared_data / "darshan-logs/ior_hdf5_lustre_dxt/ior_hdf5_example.darshan")
    of_lustre = [row for row in rows["files"] if row["stripe_count"] is not None]
    assert {(row["stripe_count"], row["stripe_size"]) for row in of_lustre} == {(1, MIB)}
    # Both layers moved the same bytes of the only file that is on Lustre.
    servers = {row["api"]: row for row in rows["file_servers"]}
    assert servers.keys() == {"POSIX", "MPIIO"}
    requests = [row for row in rows["requests"] if row["file"] == servers["POSIX"]["file"]]
    for api, row in servers.items():
        assert row["bytes"] == sum(each["length_bytes"] for each in requests if each["api"] == api)
    [on_ost] = rows["file_osts"]
    assert (on_ost["file"], on_ost["server"], on_ost["share"]) == (requests[0]["file"], 106, 1.0)
    # The period of a file is that of its requests; Darshan's counters and DXT differ by little.
    [file] = [row for row in of_lustre if row["api"] == "POSIX"]
    writes = [each for each in requests if (each["api"], each["operation"]) == ("POSIX", "write")]
    first, last = file["first_write_seconds"], file["last_write_seconds"]
    assert first == pytest.approx(min(each["start_seconds"] for each in writes), abs=1e-3)
    assert last == pytest.approx(max(each["end_seconds"] for each in writes), abs=1e-3)
    # The file has one stripe, so each request of POSIX is whole on its server.
    of_posix = {each["id"]: each for each in requests if each["api"] == "POSIX"}
    assert {each["id"] for each in rows["request_servers"]} == of_posix.keys()
    for each in rows["request_servers"]:
        request = of_posix[each["id"]]
        assert (each["server_kind"], each["server"]) == ("OST", 106)
        assert each["bytes"] == request["length_bytes"]
        assert each["start_seconds"] == request["start_seconds"]
        assert (each["end_seconds"], each["own_times"]) == (request["end_seconds"], False)


def test_requests_have_their_calls_and_their_io_nodes(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan",
        nprocs=2,
        records=[
            Record(module, "/data/file", rank, counters, {})
            for rank in range(2)
            for module, counters in (
                ("MPI-IO", {"MPIIO_COLL_WRITES": 1, "MPIIO_BYTES_WRITTEN": 2 * MIB}),
                ("POSIX", {"POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": 4 * MIB}),
            )
        ],
        dxt=[
            Dxt("DXT_POSIX", "/data/file", 0, "n0", [(0, 4 * MIB, 1.5, 2.5)]),
            Dxt("DXT_POSIX", "/data/file", 1, "n1", [(0, 1, 7.0, 8.0)]),
            Dxt("DXT_MPIIO", "/data/file", 0, "n0", [(0, 2 * MIB, 1.0, 3.0)]),
            Dxt("DXT_MPIIO", "/data/file", 1, "n1", [(2 * MIB, 2 * MIB, 1.1, 3.0)]),
        ],
    )
    tables = tables_of(find_sources([str(log)]), io_nodes={"n0": 5, "n2": 6})
    columns = ("id", "rank", "call", "call_number", "instance", "fragment")
    assert [tuple(row[name] for name in columns) for row in tables["requests"].to_pylist()] == [
        (0, 0, 2, 0, 0, 0),
        (1, 1, None, None, None, None),
        (2, 0, 2, 0, 0, None),
        (3, 1, 3, 0, 0, None),
    ]
    [row] = tables["request_servers"].to_pylist()
    assert row.pop("log") == tables["jobs"]["log"][0].as_py()
    assert row == {
        "id": 0,
        "server_kind": "ION",
        "server": 5,
        "bytes": 4 * MIB,
        "start_seconds": 1.5,
        "end_seconds": 2.5,
        "own_times": False,
    }
    without = tables_of(find_sources([str(log)]), requests=False)
    assert (len(without["requests"]), len(without["request_servers"])) == (0, 0)


@pytest.mark.parametrize(
    "log", ["reopen-same-5x-dxt.darshan", "ior/write-segments-cb2-dxt.darshan"]
)
def test_counters_are_those_that_pydarshan_reads(log: str) -> None:
    darshan = pytest.importorskip("darshan")
    report = darshan.DarshanReport(str(FIXTURES / log), read_all=True)
    rows = rows_of(FIXTURES / log)
    for module, api, reads, writes in (
        ("POSIX", "POSIX", ("POSIX_READS",), ("POSIX_WRITES",)),
        (
            *("MPI-IO", "MPIIO"),
            ("MPIIO_INDEP_READS", "MPIIO_COLL_READS", "MPIIO_SPLIT_READS", "MPIIO_NB_READS"),
            ("MPIIO_INDEP_WRITES", "MPIIO_COLL_WRITES", "MPIIO_SPLIT_WRITES", "MPIIO_NB_WRITES"),
        ),
    ):
        if module not in report.records:
            continue
        counters = report.records[module].to_df()["counters"]
        of_api = [row for row in rows["files"] if row["api"] == api]
        for column, names in (
            ("reads", reads),
            ("writes", writes),
            ("read_bytes", (f"{api}_BYTES_READ",)),
            ("written_bytes", (f"{api}_BYTES_WRITTEN",)),
        ):
            expected = int(counters[list(names)].to_numpy().sum())
            assert sum(row[column] for row in of_api) == expected, (api, column)
        for operation in ("READ", "WRITE"):
            infix = "_AGG" if api == "MPIIO" else ""
            bins = [name for name in counters if name.startswith(f"{api}_SIZE_{operation}{infix}_")]
            found = [
                row["requests"]
                for row in rows["request_sizes"]
                if (row["api"], row["operation"]) == (api, operation.lower())
            ]
            assert found == [int(each) for each in counters[bins].sum() if each]


def test_opens_are_counted_as_for_phases_also_collective_ones(tmp_path: Path) -> None:
    """Darshan counts MPI-IO's collective opens apart, and dup and fileno as opens of POSIX."""
    mpiio = {"MPIIO_INDEP_OPENS": 2, "MPIIO_COLL_OPENS": 4, "MPIIO_COLL_WRITES": 4}
    posix = {"POSIX_OPENS": 9, "POSIX_FILENOS": 2, "POSIX_DUPS": 1, "POSIX_WRITES": 4}
    moved = {"MPIIO_BYTES_WRITTEN": 4 * MIB}, {"POSIX_BYTES_WRITTEN": 4 * MIB}
    records = [
        Record("MPI-IO", "/data/file", -1, mpiio | moved[0], {"MPIIO_F_WRITE_END_TIMESTAMP": 1.0}),
        Record("POSIX", "/data/file", -1, posix | moved[1], {"POSIX_F_WRITE_END_TIMESTAMP": 1.0}),
    ]
    rows = rows_of(write_log(tmp_path / "app.darshan", nprocs=4, records=records))
    assert {row["api"]: row["opens"] for row in rows["files"]} == {"MPIIO": 6, "POSIX": 6}


@pytest.mark.slow
def test_bytes_files_and_times_are_those_of_pydarshans_job_and_file_stats(
    shared_data: Path,
) -> None:
    """A rank of these runs has at most one file of its own, so the slowest rank's time is known."""
    if importlib.util.find_spec("darshan") is None:
        pytest.skip("PyDarshan has no wheel for this Python")
    names = (
        *("rank0-only", "mixed-sizes", "periodic-a", "wr-shared", "random-write"),
        *("mpiio-indep-strided", "mpiio-coll-strided-cb1", "hacc-posix-fpp-8x100k"),
        *("partial-ranks-0-7-of-24", "two-shared-10s"),
    )
    logs = [str(shared_data / "runs" / "logs" / f"{name}.darshan") for name in names]
    done = subprocess.run([sys.executable, "-c", _STATS, *logs], capture_output=True, check=True)
    rows = rows_of(*logs)
    paths = {job["log"]: job["path"] for job in rows["jobs"]}
    compared = 0
    for path, api, stats in map(json.loads, done.stdout.splitlines()):
        files = [row for row in rows["files"] if (paths[row["log"]], row["api"]) == (path, api)]
        if "file" in stats:
            files = [row for row in files if row["path"] == stats["file"]]
            for ours, theirs in (("read_bytes", "bytes_read"), ("written_bytes", "bytes_written")):
                assert sum(row[ours] for row in files) == stats[theirs]
            for name in ("reads", "writes"):
                assert sum(row[name] for row in files) == stats[name]
        else:
            assert len(files) == stats["total_files"]
        moved = sum(row["read_bytes"] + row["written_bytes"] for row in files)
        assert moved == stats["total_bytes"]
        if all(row["is_highest"] for row in files):
            seconds = _by_slowest(files)
            assert seconds == pytest.approx(stats["time_by_slowest"], rel=1e-6)
            assert moved / seconds == pytest.approx(stats["perf_by_slowest"], rel=1e-6)
            compared += 1
    assert compared > 2 * len(names)


def _by_slowest(files: list[dict[str, Any]]) -> float:
    """Add up shared files, which run one after another, and the slowest file of one process."""
    names = ("read_seconds", "write_seconds", "metadata_seconds")
    own = [sum(row[name] for name in names) for row in files if not row["shared"]]
    shared: float = sum(row["slowest_seconds"] for row in files if row["shared"])
    return shared + max(own, default=0.0)


def test_the_bytes_of_a_file_count_at_one_api(shared_data: Path) -> None:
    rows = rows_of(shared_data / "runs" / "logs")
    for job in rows["jobs"]:
        highest = [row for row in rows["files"] if row["log"] == job["log"] and row["is_highest"]]
        assert len({row["file"] for row in highest}) == len(highest) == job["files"]
        for name in ("read_bytes", "written_bytes"):
            assert sum(row[name] for row in highest) == job[name]


def test_files_without_a_trace_lie_on_the_servers_of_their_layout() -> None:
    """PyDarshan's log has 2,048 files with one stripe each on 24 OSTs, and 85 of them on OST 14."""
    darshan = pytest.importorskip("darshan", reason="PyDarshan has no wheel for this Python")
    log = Path(darshan.__file__).parent / "examples/example_logs/sample-badost.darshan"
    rows = rows_of(log)
    assert not rows["requests"]
    servers = rows["file_servers"]
    assert len(servers) == 2048
    assert sum(row["server"] == 14 for row in servers) == 85
    written = {row["file"]: row["written_bytes"] for row in rows["files"]}
    assert all(row["bytes"] == written[row["file"]] for row in servers)
