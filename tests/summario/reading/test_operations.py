"""The table of traced requests, compared with what was written and with PyDarshan."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Dxt, DxtModule, Segment, record_id
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.wording import counted
from summario.reading.log import DarshanLog, read_log
from summario.reading.operations import Operations, operations_of
from summario.reading.pydarshan import import_pydarshan
from tests.support.log_bytes import dxt_bytes, write_modules

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "programs"
Row = tuple[str, str, int, int, int, int, float, float, str]

POSIX = [
    Dxt("DXT_POSIX", "/a", 0, "n1", [(0, 10, 0.0, 0.5), (10, 20, 0.5, 1.5)], [(0, 30, 2.0, 2.25)]),
    Dxt("DXT_POSIX", "/b", 1, "n2", [], [(4096, 4096, 1.0, 1.0)]),
    Dxt("DXT_POSIX", "/a", 1, "n2", [(1 << 40, 1 << 20, 1e-6, 3.5)]),
]
MPIIO = [
    Dxt("DXT_MPIIO", "/a", 2, "n3", [(0, 60, 0.25, 4.0)], [(7, 0, 5.0, 5.0)]),
    Dxt("DXT_MPIIO", "/a", 0, "n1", [(60, 60, 0.25, 4.125)]),
]


@pytest.fixture(scope="module")
def darshan() -> Any:
    return import_pydarshan("this test")


def pydarshans_table(darshan: Any, path: Path) -> list[Row]:
    report = darshan.DarshanReport(str(path), read_all=False)
    modules = [name for name in ("DXT_POSIX", "DXT_MPIIO") if name in report.modules]
    for module in modules:
        report.mod_read_all_dxt_records(module, dtype="numpy")
    return [
        row
        for module in modules
        for record in report.records[module]
        for row in pydarshans_rows(module.removeprefix("DXT_"), record)
    ]


def pydarshans_rows(api: str, record: Any) -> Iterator[Row]:
    for operation in ("write", "read"):
        for segment in record[f"{operation}_segments"]:
            values = (segment[name] for name in ("offset", "length", "start_time", "end_time"))
            yield (api, operation, record["id"], record["rank"], *values, record["hostname"])


def rows_of(operations: Operations) -> list[Row]:
    return [
        (APIS[api], OPERATIONS[operation], *rest, operations.hosts[host])
        for api, operation, *rest, host in zip(
            operations.api.tolist(),
            operations.operation.tolist(),
            operations.file_id.tolist(),
            operations.rank.tolist(),
            operations.offset.tolist(),
            operations.length.tolist(),
            operations.start_seconds.tolist(),
            operations.end_seconds.tolist(),
            operations.host.tolist(),
            strict=True,
        )
    ]


def written_rows(records: Iterable[Dxt], *, offsets: bool = True) -> Iterator[Row]:
    for record in records:
        api = record.module.removeprefix("DXT_")
        for operation, segments in (("write", record.writes), ("read", record.reads)):
            for offset, *rest in segments:
                place = (record_id(record.path), record.rank, offset if offsets else -1)
                yield (api, operation, *place, *rest, record.hostname)


def log_with(
    folder: Path, posix: Sequence[Dxt] = (), mpiio: Sequence[Dxt] = (), **contents: Any
) -> DarshanLog:
    modules = {}
    if posix:
        modules["DXT_POSIX"] = (1, dxt_bytes(posix))
    if mpiio:
        modules["DXT_MPIIO"] = (2, dxt_bytes(mpiio))
    return read_log(write_modules(folder / "log.darshan", modules, nprocs=3, **contents))


@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize("posix_version", [1, 2])
@pytest.mark.parametrize("mpiio_version", [1, 2, 3])
def test_requests_of_both_apis_are_read_in_every_version_and_byte_order(
    tmp_path: Path, byte_order: str, posix_version: int, mpiio_version: int
) -> None:
    posix = dxt_bytes(POSIX, byte_order=byte_order, threads=posix_version == 2)
    mpiio = dxt_bytes(MPIIO, byte_order=byte_order, threads=mpiio_version == 3)
    modules = {"DXT_POSIX": (posix_version, posix), "DXT_MPIIO": (mpiio_version, mpiio)}
    path = write_modules(tmp_path / "log.darshan", modules, nprocs=3, byte_order=byte_order)
    operations = operations_of(read_log(path))
    # Version 1 of DXT_MPIIO did not know offsets.
    expected = [*written_rows(POSIX), *written_rows(MPIIO, offsets=mpiio_version > 1)]
    assert rows_of(operations) == expected
    assert operations.warnings == ()
    assert operations.length.dtype.isnative
    assert operations.start_seconds.dtype.isnative


@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize("mpiio_version", [1, 2])
def test_pydarshan_reads_the_written_logs_alike(
    tmp_path: Path, darshan: Any, byte_order: str, mpiio_version: int
) -> None:
    """PyDarshan 3.5 knows version 1 of DXT_POSIX and versions 1 and 2 of DXT_MPIIO."""
    modules = {
        "DXT_POSIX": (1, dxt_bytes(POSIX, byte_order=byte_order)),
        "DXT_MPIIO": (mpiio_version, dxt_bytes(MPIIO, byte_order=byte_order)),
    }
    path = write_modules(
        tmp_path / "log.darshan", modules, nprocs=3, byte_order=byte_order, names=["/a", "/b"]
    )
    assert pydarshans_table(darshan, path) == rows_of(operations_of(read_log(path)))


times = st.floats(0, 1e6)
segments = st.builds(
    lambda offset, length, first, second: (offset, length, min(first, second), max(first, second)),
    st.integers(0, 1 << 62),
    st.integers(0, 1 << 40),
    times,
    times,
)


def dxt_records(module: DxtModule) -> st.SearchStrategy[list[Dxt]]:
    return st.lists(
        st.builds(
            Dxt,
            st.just(module),
            st.sampled_from(["/a", "/b", "/c"]),
            st.integers(0, 2),
            st.sampled_from(["n1", "n2", "compute-0003.example"]),
            st.lists(segments, max_size=4),
            st.lists(segments, max_size=4),
        ),
        max_size=6,
    )


@given(dxt_records("DXT_POSIX"), dxt_records("DXT_MPIIO"))
def test_every_request_is_read_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, posix: list[Dxt], mpiio: list[Dxt]
) -> None:
    log = log_with(tmp_path_factory.mktemp("log"), posix, mpiio)
    assert rows_of(operations_of(log)) == [*written_rows(posix), *written_rows(mpiio)]


def test_requests_to_some_files_are_read_alone(tmp_path: Path) -> None:
    log = log_with(tmp_path, POSIX, MPIIO)
    only_b = np.array([record_id("/b"), record_id("/of another log")], np.uint64)
    assert rows_of(operations_of(log, only_b)) == list(written_rows([POSIX[1]]))


def test_rows_are_selected_by_mask_index_and_slice(tmp_path: Path) -> None:
    operations = operations_of(log_with(tmp_path, POSIX, MPIIO))
    rows = rows_of(operations)
    assert rows_of(operations.take(operations.rank == 2)) == [row for row in rows if row[3] == 2]
    assert rows_of(operations.take(np.array([3, 1]))) == [rows[3], rows[1]]
    assert rows_of(operations.take(slice(1, 3))) == rows[1:3]


def test_a_log_without_traces_has_no_rows(shared_data: Path) -> None:
    operations = operations_of(read_log(shared_data / "runs/logs/single-a.darshan"))
    assert (len(operations), operations.hosts, operations.warnings) == (0, (), ())


@pytest.mark.slow
def test_requests_of_every_shared_log_are_pydarshans(shared_data: Path, darshan: Any) -> None:
    compared = 0
    for path in sorted(shared_data.rglob("*.darshan")):
        # These are of a modified Darshan, whose records have sizes of their own.
        if path.name.startswith("mdworkbench"):
            continue
        expected = pydarshans_table(darshan, path)
        if expected:
            assert rows_of(operations_of(read_log(path))) == expected, path
            compared += 1
    assert compared >= 40


# Damage


@pytest.mark.parametrize(
    "impossible",
    [
        (0, -1, 1.0, 2.0),
        (0, -(1 << 63), 1.0, 2.0),
        (0, 1, 2.0, 1.0),
        (0, 1, float("nan"), 2.0),
        (0, 1, 1.0, float("nan")),
        (0, 1, float("-inf"), 2.0),
        (0, 1, 1.0, float("inf")),
        (0, 1, 1.0, 1e300),
    ],
)
def test_an_impossible_request_is_left_out_with_a_warning(
    tmp_path: Path, impossible: Segment
) -> None:
    good = (0, 4, 1.0, 2.0)
    record = Dxt("DXT_POSIX", "/a", 0, "n1", [good, impossible], [good])
    operations = operations_of(log_with(tmp_path, [record]))
    assert rows_of(operations) == list(written_rows([replace(record, writes=[good])]))
    assert operations.warnings == (
        "1 DXT_POSIX request of 3 left out: a negative length or impossible times",
    )


@pytest.mark.parametrize("offset", [-1, -(1 << 63), (1 << 63) - 1])
def test_an_impossible_offset_is_unknown(tmp_path: Path, offset: int) -> None:
    record = Dxt("DXT_POSIX", "/a", 0, "n1", [(offset, 4, 1.0, 2.0)])
    assert operations_of(log_with(tmp_path, [record])).offset.tolist() == [-1]


def test_lengths_whose_sum_no_run_moves_are_left_out_together(tmp_path: Path) -> None:
    record = Dxt("DXT_POSIX", "/a", 0, "n1", [(0, 1 << 60, 1.0, 2.0), (0, 1 << 62, 1.0, 2.0)])
    operations = operations_of(log_with(tmp_path, [record], MPIIO))
    assert rows_of(operations) == list(written_rows(MPIIO))
    assert len(operations.warnings) == 1


@pytest.mark.parametrize("rank", [-1, 3, 1 << 62])
def test_a_record_of_an_impossible_rank_is_not_used(tmp_path: Path, rank: int) -> None:
    operations = operations_of(log_with(tmp_path, [replace(POSIX[0], rank=rank), *POSIX[1:]]))
    assert rows_of(operations) == list(written_rows(POSIX[1:]))
    assert operations.warnings == (
        "1 DXT_POSIX record left out: the rank is outside the job's 3 processes",
    )


def test_data_that_end_within_a_record_are_used_up_to_it(tmp_path: Path) -> None:
    whole = dxt_bytes(POSIX)
    last = len(dxt_bytes(POSIX[2:]))
    for lost in (1, 31, 32, last - 105, last - 104, last - 1):
        modules = {"DXT_POSIX": (1, whole[:-lost])}
        operations = operations_of(read_log(write_modules(tmp_path / "log", modules, nprocs=3)))
        assert rows_of(operations) == list(written_rows(POSIX[:2]))
        assert operations.warnings == (
            "the DXT_POSIX data break off after 2 records; the rest"
            f" ({counted(last - lost, 'byte')}) is left out",
        )


@pytest.mark.parametrize(
    ("writes", "reads"),
    [(-1, 1), (1, -1), (1 << 62, 1 << 62), (1 << 61, 0), (-(1 << 63), -(1 << 63)), (2, 0)],
)
def test_impossible_counts_end_the_data(tmp_path: Path, writes: int, reads: int) -> None:
    data = bytearray(dxt_bytes(POSIX))
    last = len(data) - len(dxt_bytes(POSIX[2:]))
    struct.pack_into("<2q", data, last + 88, writes, reads)
    modules = {"DXT_POSIX": (1, bytes(data))}
    operations = operations_of(read_log(write_modules(tmp_path / "log", modules, nprocs=3)))
    assert rows_of(operations) == list(written_rows(POSIX[:2]))
    assert len(operations.warnings) == 1


@pytest.mark.parametrize(("module", "version"), [("DXT_POSIX", 3), ("DXT_MPIIO", 4)])
def test_an_unknown_version_is_not_used(tmp_path: Path, module: str, version: int) -> None:
    modules = {module: (version, dxt_bytes(POSIX))}
    operations = operations_of(read_log(write_modules(tmp_path / "log", modules, nprocs=3)))
    assert len(operations) == 0
    [warning] = operations.warnings
    assert f"format {version}" in warning


def test_darshans_partial_flag_is_a_warning(shared_data: Path) -> None:
    """The README beside the log: more operations than fit in the memory of DXT."""
    log = read_log(shared_data / "darshan-logs/partial_data_dxt/partial_data_dxt.darshan")
    operations = operations_of(log)
    assert len(operations) == 65_536 + 65_529
    assert [warning.split(" data as ")[0] for warning in operations.warnings] == [
        "Darshan marked the DXT_POSIX",
        "Darshan marked the DXT_MPIIO",
    ]


@given(st.binary(max_size=400), st.sampled_from([1, 2]), st.sampled_from("<>"))
def test_any_bytes_give_rows_that_a_run_can_have(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, version: int, byte_order: str
) -> None:
    data = dxt_bytes(POSIX, byte_order=byte_order, threads=version == 2) + noise
    log = read_log(
        write_modules(
            tmp_path_factory.mktemp("log") / "log",
            {"DXT_POSIX": (version, data)},
            nprocs=3,
            byte_order=byte_order,
        )
    )
    operations = operations_of(log)
    assert rows_of(operations)[:5] == list(written_rows(POSIX))
    assert (operations.length >= 0).all()
    assert (operations.start_seconds <= operations.end_seconds).all()
    assert ((operations.rank >= 0) & (operations.rank < 3)).all()


# Genuine logs with DXT_POSIX 2 and DXT_MPIIO 3, which PyDarshan does not read; the offsets follow
# from the programs in fixtures/programs/README.md.


def offsets_of(name: str, api: str, operation: str, path: str) -> dict[int, list[int]]:
    """The offsets of one file by rank, in the order of their times, in units of the length."""
    log = read_log(PROGRAMS / f"{name}.darshan")
    table = operations_of(log)
    [file_id] = [id_ for id_, full_path in log.names.items() if full_path.endswith(path)]
    table = table.take(
        (table.api == APIS.index(api))
        & (table.operation == OPERATIONS.index(operation))
        & (table.file_id == np.uint64(file_id))
    )
    table = table.take(np.argsort(table.start_seconds, kind="stable"))
    return {
        int(rank): (table.offset // table.length)[table.rank == rank].tolist()
        for rank in np.unique(table.rank)
    }


def test_offsets_of_a_program_without_mpi_are_in_its_order() -> None:
    written = offsets_of("write-then-read-dxt", "POSIX", "write", "phases.dat")
    assert written == {0: list(range(16))}
    # Reads of 4 KiB at multiples of 64 KiB.
    read = offsets_of("write-then-read-dxt", "POSIX", "read", "phases.dat")
    assert read == {0: [16 * block for block in (7, 2, 5, 0, 6, 1, 4, 3)]}


def test_requests_of_all_threads_are_there() -> None:
    written = offsets_of("threads-dxt", "POSIX", "write", "threads.dat")
    assert sorted(written[0]) == list(range(15))


@pytest.mark.parametrize(
    ("api", "path", "first", "step", "requests"),
    [
        ("POSIX", "posix-shared", 1, 4, 8),
        ("MPIIO", "mpiio-independent", 4, 1, 4),
        ("MPIIO", "mpiio-collective", 1, 4, 4),
    ],
)
def test_offsets_of_each_rank_are_those_of_the_program(
    api: str, path: str, first: int, step: int, requests: int
) -> None:
    assert offsets_of("mpi-mix-dxt", api, "write", path) == {
        rank: [rank * first + step * number for number in range(requests)] for rank in range(4)
    }
