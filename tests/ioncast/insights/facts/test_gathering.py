"""Facts of a run: files, layers and requests, as Darshan's documentation defines the counters."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Record, record_id, write_log
from ioncast.insights.facts.gathering import COUNTED_MODULES, FACT_MODULES, facts_of
from ioncast.insights.facts.values import Facts, Ints, share, total
from ioncast_base.errors import DamagedLogError
from ioncast_base.kinds import APIS
from summario.reading.header import Header
from summario.reading.job import DarshanJob
from summario.reading.layouts import layout_of, newest_version
from summario.reading.log import DarshanLog, read_log
from summario.reading.records import Records
from summario.runs.logs_of_run import Run, run_of
from tests.support.examples import examples

FIXTURES = Path(__file__).parents[3] / "summario" / "fixtures"
MIB = 1 << 20


def facts(path: Path, *, nprocs: int = 4, all_files: bool = False, records: list[Record]) -> Facts:
    write_log(path / "app.darshan", nprocs=nprocs, records=records)
    return facts_of(
        run_of([read_log(path / "app.darshan", modules=FACT_MODULES)]), all_files=all_files
    )


def posix(path: str, rank: int, **counters: int) -> Record:
    return Record("POSIX", path, rank, {f"POSIX_{name}": n for name, n in counters.items()})


def mpiio(path: str, rank: int, **counters: int) -> Record:
    return Record("MPI-IO", path, rank, {f"MPIIO_{name}": n for name, n in counters.items()})


def stdio(path: str, rank: int, **counters: int) -> Record:
    return Record("STDIO", path, rank, {f"STDIO_{name}": n for name, n in counters.items()})


def by_path(found: Facts, values: Ints) -> dict[str, int]:
    """The POSIX record of each file has one of the values."""
    paths = [found.files.path[file] for file in found.layers["POSIX"].file]
    return dict(zip(paths, values.tolist(), strict=True))


def test_a_file_has_its_bytes_once_at_the_highest_layer_that_used_it(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        records=[
            posix("/a", -1, WRITES=8, BYTES_WRITTEN=8000, MAX_BYTE_WRITTEN=7999),
            mpiio("/a", -1, COLL_WRITES=4, BYTES_WRITTEN=6000),
            posix("/b", 0, READS=1, BYTES_READ=10, MAX_BYTE_READ=99),
            stdio("/c", 1, WRITES=2, BYTES_WRITTEN=7, MAX_BYTE_WRITTEN=6),
            posix("/c", 1, WRITES=1, BYTES_WRITTEN=7, MAX_BYTE_WRITTEN=6),
        ],
    )
    files = found.files
    assert {
        path: (APIS[api], bytes_, processes, extent)
        for path, api, bytes_, processes, extent in zip(
            files.path,
            files.api,
            files.bytes.tolist(),
            files.processes.tolist(),
            files.extent_bytes.tolist(),
            strict=True,
        )
    } == {"/a": ("MPIIO", 6000, 4, 8000), "/b": ("POSIX", 10, 1, 100), "/c": ("STDIO", 7, 1, 7)}


def test_a_file_that_mpiio_only_opened_belongs_to_the_layer_that_moved_its_bytes(
    tmp_path: Path,
) -> None:
    found = facts(
        tmp_path,
        records=[mpiio("/a", -1, COLL_OPENS=4), posix("/a", -1, WRITES=8, BYTES_WRITTEN=8000)],
    )
    assert [APIS[api] for api in found.files.api] == ["POSIX"]
    assert found.files.bytes_written.tolist() == [8000]


def test_a_file_without_a_name_has_its_number(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan",
        nprocs=1,
        records=[posix(path, 0, WRITES=1, BYTES_WRITTEN=1) for path in ("/a", "/b", "/c")],
        names=["/c", "/a", "/unused"],
    )
    paths = facts_of(run_of([read_log(log)])).files.path
    assert sorted(paths) == ["/a", "/c", f"file {record_id('/b')}"]
    assert [record_id(path) if path in ("/a", "/c") else int(path[5:]) for path in paths] == sorted(
        map(record_id, ("/a", "/b", "/c"))
    )


def test_files_of_the_system_count_only_when_asked_for(tmp_path: Path) -> None:
    records = [
        posix("/data/a", 0, WRITES=1, BYTES_WRITTEN=5),
        posix("/etc/passwd", 0, READS=1, BYTES_READ=7),
        stdio("<STDOUT>", 0, WRITES=3, BYTES_WRITTEN=9),
    ]
    assert facts(tmp_path, records=records).files.path == ("/data/a",)
    everything = facts(tmp_path, records=records, all_files=True)
    assert set(everything.files.path) == {"/data/a", "/etc/passwd", "<STDOUT>"}


def test_a_request_of_exactly_one_mib_is_not_small(tmp_path: Path) -> None:
    """Its bin, 100 KiB to 1 MiB, also holds smaller ones."""
    found = facts(
        tmp_path,
        records=[
            posix(
                "/a",
                0,
                WRITES=100,
                BYTES_WRITTEN=90 * MIB,
                SIZE_WRITE_100K_1M=100,
                ACCESS1_ACCESS=MIB,
                ACCESS1_COUNT=80,
                ACCESS2_ACCESS=200_000,
                ACCESS2_COUNT=20,
            ),
            # Reads and writes have one count of each size: half of the 1-MiB ones are reads.
            posix(
                "/b",
                0,
                WRITES=10,
                READS=10,
                BYTES_WRITTEN=10 * MIB,
                BYTES_READ=10 * MIB,
                SIZE_WRITE_100K_1M=10,
                SIZE_READ_100K_1M=10,
                ACCESS1_ACCESS=MIB,
                ACCESS1_COUNT=20,
            ),
            posix("/c", 0, READS=5, BYTES_READ=500, SIZE_READ_0_100=5),
        ],
    )
    layer = found.layers["POSIX"]
    order = [found.files.path[file] for file in layer.file]
    assert dict(zip(order, layer.writes.small.tolist(), strict=True)) == {
        "/a": 20,
        "/b": 0,
        "/c": 0,
    }
    assert dict(zip(order, layer.reads.small.tolist(), strict=True)) == {"/a": 0, "/b": 0, "/c": 5}


def test_first_accesses_are_never_random(tmp_path: Path) -> None:
    """One request of each of 4 processes can be neither; each further open allows one more."""
    found = facts(
        tmp_path,
        records=[
            posix("/one-each", -1, OPENS=4, WRITES=4, BYTES_WRITTEN=4),
            posix("/jumps", -1, OPENS=4, WRITES=100, SEQ_WRITES=30, BYTES_WRITTEN=100),
            posix("/reopened", 2, OPENS=10, WRITES=12, SEQ_WRITES=1, BYTES_WRITTEN=12),
            # Darshan counts fileno() and dup() as opens, but they begin nothing anew.
            posix("/dup", 2, OPENS=10, FILENOS=4, DUPS=5, WRITES=12, BYTES_WRITTEN=12),
        ],
    )
    layer = found.layers["POSIX"]
    assert by_path(found, layer.writes.random) == {
        "/one-each": 0,
        "/jumps": 100 - 30 - 4,
        "/reopened": 12 - 1 - 10,
        "/dup": 12 - 1,
    }


def test_impossible_mpiio_records_leave_their_files_to_posix(tmp_path: Path) -> None:
    found = facts(
        tmp_path,
        records=[
            mpiio("/a", -1, COLL_WRITES=4, BYTES_WRITTEN=-(2**31)),
            posix("/a", -1, WRITES=4, BYTES_WRITTEN=2**31),
            mpiio("/b", -1, COLL_WRITES=4, BYTES_WRITTEN=400),
            posix("/b", -1, WRITES=4, BYTES_WRITTEN=400),
        ],
    )
    apis = {path: APIS[api] for path, api in zip(found.files.path, found.files.api, strict=True)}
    assert apis == {"/a": "POSIX", "/b": "MPIIO"}
    [warning] = found.warnings
    assert "the MPI-IO records of 1 file are not used" in warning


def test_an_operation_with_an_impossible_time_does_not_count(tmp_path: Path) -> None:
    """The other operation of the record does, and so do other records."""
    bad = posix("/a", 0, READS=5, BYTES_READ=5, WRITES=4, BYTES_WRITTEN=4000)
    bad = replace(bad, fcounters={"POSIX_F_READ_TIME": -1.0})
    found = facts(tmp_path, records=[bad, posix("/a", 1, READS=5, BYTES_READ=50)])
    assert (total(found.files.bytes_read), total(found.files.bytes_written)) == (50, 4000)
    assert found.layers["POSIX"].reads.requests.tolist() == [0, 5]
    assert found.warnings == (
        "a POSIX record with an impossible read time is left out, so 5 bytes of 3.96 KiB are"
        " missing",
    )


def test_processes_of_a_run_with_several_logs_keep_their_ranks_apart() -> None:
    logs = [
        read_log(FIXTURES / f"programs/fork-workers-{number}.darshan", modules=FACT_MODULES)
        for number in range(4)
    ]
    found = facts_of(run_of(logs))
    assert found.run.processes == sum(log.job.nprocs for log in logs)
    # Each worker writes a file of its own, and its log calls it rank 0.
    assert len(set(found.layers["POSIX"].rank.tolist())) == 4
    assert total(found.files.bytes) == 3_001_002


def test_counters_that_a_log_of_the_run_lacks_are_0(tmp_path: Path) -> None:
    """Version 3 of the POSIX module has no DUPS; the logs of a run may have several versions."""
    logs = [
        _log_of({"POSIX": _records(version, DUPS=2, OPENS=5)}, start=float(version))
        for version in (3, 4)
    ]
    layer = facts_of(Run(tuple(logs))).layers["POSIX"]
    assert layer.count("OPENS").tolist() == [5, 5]
    assert layer.count("DUPS").tolist() == [0, 2]


def test_the_version_of_darshan_is_that_of_its_library() -> None:
    log = read_log(FIXTURES / "single-a.darshan", modules=COUNTED_MODULES)
    assert facts_of(run_of([log])).run.darshan == "3.5.0"


def test_without_traces_and_layouts_nothing_is_made_up() -> None:
    log = read_log(FIXTURES / "single-a.darshan", modules=COUNTED_MODULES)
    found = facts_of(run_of([log]))
    assert (found.trace, found.lustre, found.nodes, found.heatmaps) == (None, None, None, {})
    assert facts_of(run_of([log]), nodes=2).nodes is not None


def test_a_log_with_a_trace_has_the_requests_of_the_files() -> None:
    log = read_log(FIXTURES / "reopen-same-5x-dxt.darshan", modules=FACT_MODULES)
    found = facts_of(run_of([log]))
    assert found.trace is not None and found.nodes is not None
    assert len(found.trace) == total(found.layers["POSIX"].writes.requests) == 480
    assert (found.nodes.number, found.nodes.are_all) == (1, True)


def test_sums_of_huge_counts_are_exact() -> None:
    assert total(np.full(64, 2**60)) == 2**66
    assert total(np.zeros(0, np.int64)) == 0
    assert (share(1, 4), share(1, 0)) == (0.25, None)


WORDS = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_no_counter_can_break_the_facts(data: st.DataObject) -> None:
    """Bytes and requests that no run has are errors; all other numbers are only facts."""
    modules = {module: _random_records(data, module) for module in ("POSIX", "MPI-IO", "STDIO")}
    log = _log_of(modules, start=0.0)
    try:
        found = facts_of(Run((log,)))
    except DamagedLogError:
        return
    assert (found.files.bytes >= 0).all() and (found.files.extent_bytes >= 0).all()
    for layer in found.layers.values():
        for requests in (layer.reads, layer.writes):
            assert (requests.random >= 0).all()
            assert np.isfinite(requests.seconds).all()
        assert np.isfinite(layer.metadata_seconds).all()


def _random_records(data: st.DataObject, module: str) -> Records:
    made = _empty_records(module, newest_version(module), rows=data.draw(st.integers(1, 3)))
    made.words[:, 0] = data.draw(
        st.lists(st.integers(1, 3), min_size=len(made.words), max_size=len(made.words))
    )
    for row in range(len(made.words)):
        made.words[row, 1] = data.draw(st.integers(-1, 3))
        for column in data.draw(st.lists(st.integers(2, made.words.shape[1] - 1), max_size=6)):
            made.words[row, column] = data.draw(WORDS | st.integers(0, 100))
    return made


def _empty_records(module: str, version: int, rows: int = 1) -> Records:
    layout = layout_of(module, version)
    assert layout is not None
    return Records(module, np.zeros((rows, layout.words), np.int64), layout.columns, partial=False)


def _records(version: int, **counters: int) -> Records:
    made = _empty_records("POSIX", version)
    made.words[0, 0] = 77
    for name, number in {**counters, "WRITES": 1, "BYTES_WRITTEN": 1}.items():
        if (column := made.columns.get(f"POSIX_{name}")) is not None:
            made.words[0, column] = number
    return made


def _log_of(records: dict[str, Records], start: float) -> DarshanLog:
    template = read_log(FIXTURES / "single-a.darshan", modules=())
    job = DarshanJob(id=1, uid=1, nprocs=4, start_seconds=start, end_seconds=9.0, executable="a")
    header: Header = template.header
    return DarshanLog("a.darshan", job, records, {}, {77: "/data/a"}, header, ())


def test_a_float_that_is_not_a_number_counts_as_0() -> None:
    [bits] = struct.unpack("<q", struct.pack("<d", float("nan")))
    layer = facts_of(Run((_log_of({"POSIX": _records(4, F_META_TIME=bits)}, 0.0),))).layers["POSIX"]
    assert layer.metadata_seconds.tolist() == [0.0]


@pytest.mark.parametrize("module", ["POSIX", "MPI-IO", "STDIO"])
def test_records_without_rows_make_no_layer(module: str) -> None:
    empty = _empty_records(module, newest_version(module), rows=0)
    assert facts_of(Run((_log_of({module: empty}, 0.0),))).layers == {}
