"""Small hostile logs end soon, with one line, little memory and all of their bytes."""

from __future__ import annotations

import bz2
import gzip
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from experiments.applications.darshan_writer import Dxt, record_id
from ioncast_base.errors import DamagedLogError, InputError
from ioncast_base.limits import LARGEST_COUNT
from summario.phases.extract import extract
from summario.reading.inflate import inflate_together
from summario.reading.layouts import layout_of
from summario.reading.log import read_log
from tests.support.log_bytes import dxt_bytes, write_modules

POSIX_VERSION = 4
_POSIX = layout_of("POSIX", POSIX_VERSION)
assert _POSIX is not None
WORDS, COLUMNS = _POSIX.words, _POSIX.columns
# Behind the head of the header: place and length of the names, then those of each module.
NAMES_PLACE, POSIX_PLACE = 32, 48 + 16


def posix_records(
    ranks: int = 1, path: str = "/a", counters: Mapping[str, float] | None = None
) -> bytes:
    """Records of one file, one for each rank: a request of 1 byte between 0 and 1 s."""
    table = np.zeros((ranks, WORDS), "<i8")
    table[:, 0] = np.uint64(record_id(path)).view(np.int64)
    table[:, 1] = np.arange(ranks)
    written = {"POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": 1, "POSIX_F_WRITE_END_TIMESTAMP": 1.0}
    for name, value in (written | dict(counters or {})).items():
        if "_F_" in name:
            table.view("<f8")[:, COLUMNS[name]] = value
        else:
            table[:, COLUMNS[name]] = int(value)
    return table.tobytes()


def log_of(folder: Path, records: bytes, *, nprocs: int = 1, names: tuple[str, ...] = ()) -> Path:
    modules = {"POSIX": (POSIX_VERSION, records)}
    return write_modules(folder / "hostile.darshan", modules, nprocs=nprocs, names=names)


def with_names(path: Path, data: bytes | None) -> Path:
    """Exchange the names of a log with the module POSIX alone; None leaves them out."""
    log = bytearray(path.read_bytes())
    (at, length), region = struct.unpack_from("<2Q", log, NAMES_PLACE), b""
    if data is not None:
        region = zlib.compress(data)
    log[at : at + length] = region
    place = (at, len(region)) if region else (2**64 - 1, 0)
    struct.pack_into("<2Q", log, NAMES_PLACE, *place)
    struct.pack_into("<Q", log, POSIX_PLACE, at + len(region))
    path.write_bytes(log)
    return path


@contextmanager
def at_most(peak_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < peak_bytes
    finally:
        tracemalloc.stop()


# Streams


@pytest.mark.usefixtures("either_zlib")
@pytest.mark.parametrize("compress", [zlib.compress, bz2.compress])
def test_processes_without_records_write_empty_streams(compress: Callable[[bytes], bytes]) -> None:
    method = 1 if compress is bz2.compress else 0
    for contents in ([b"abc", b""], [b"", b"abc", b"", b"defgh", b"", b""], [b""], [b"", b""]):
        region = b"".join(map(compress, contents))
        assert inflate_together(region, method, 99).tobytes() == b"".join(contents)


@pytest.mark.slow
@pytest.mark.usefixtures("either_zlib")
def test_a_small_file_cannot_take_gigabytes(tmp_path: Path) -> None:
    path = log_of(tmp_path, bytes(300 << 20))
    assert path.stat().st_size < 400_000
    with pytest.raises(DamagedLogError, match="holds more bytes than can be read"):
        read_log(path)


def test_a_file_that_gzip_compressed_twice_is_rejected_before_it_is_inflated(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.darshan.gz"
    path.write_bytes(gzip.compress(b"\x1f\x8b" + bytes(64 << 20)))
    with at_most(16 << 20), pytest.raises(InputError, match="not a Darshan log"):
        read_log(path)


# Names


def test_names_without_an_end_are_found_in_one_pass(tmp_path: Path) -> None:
    # A megabyte would take hours if each byte were tried as the begin of a name.
    path = with_names(log_of(tmp_path, posix_records()), b"x" * (1 << 20))
    with pytest.raises(DamagedLogError, match="names"):
        read_log(path)


@pytest.mark.slow
@pytest.mark.usefixtures("either_zlib")
def test_a_name_of_zeros_needs_no_more_memory_than_others(tmp_path: Path) -> None:
    """Format 3.00 has the length of each name."""
    zeros = 64 << 20
    job = zlib.compress(struct.pack("<5q", 1000, 1_700_000_000, 1_700_000_100, 1, 1) + bytes(1025))
    names = zlib.compress(struct.pack("<QI", 7, zeros) + bytes(zeros))
    head = struct.Struct("<8sqB3xI34Q16I")
    place = (head.size + len(job), len(names))
    log = head.pack(b"3.00", 6567223, 0, 0, *place, *[0] * 32, *[0] * 16) + job + names
    path = tmp_path / "zeros.darshan"
    path.write_bytes(log)
    with at_most(4 * zeros):
        assert read_log(path).names == {7: ""}


def test_the_place_of_no_names_means_nothing(tmp_path: Path) -> None:
    log = read_log(with_names(log_of(tmp_path, posix_records()), None))
    assert log.names == {}
    assert len(log.records["POSIX"].words) == 1


# Numbers


@pytest.mark.parametrize("nprocs", [-1, 0, LARGEST_COUNT + 1, 1 << 62, (1 << 63) - 1])
def test_no_job_has_so_many_processes(tmp_path: Path, nprocs: int) -> None:
    """MPI counts ranks in 32 bits; larger numbers would overflow when they are added up."""
    with pytest.raises(DamagedLogError, match=f"counts {nprocs} processes"):
        read_log(log_of(tmp_path, posix_records(), nprocs=nprocs))


def test_two_reduced_records_of_a_file_are_not_more_than_all_processes(tmp_path: Path) -> None:
    reduced = bytearray(posix_records())
    struct.pack_into("<q", reduced, 8, -1)
    path = log_of(tmp_path, bytes(4 * reduced), nprocs=LARGEST_COUNT)
    [phase] = extract(read_log(path)).phases
    assert (phase.processes, phase.mode_processes) == (LARGEST_COUNT, LARGEST_COUNT)
    assert (phase.bytes, phase.requests) == (4, 4)


# Pauses


def test_a_file_with_too_many_processes_and_pauses_is_not_split(tmp_path: Path) -> None:
    """3,000 pieces of 3,000 processes each would be nine million processes."""
    ranks = 3000
    traces = [
        Dxt("DXT_POSIX", "/a", rank, "host", writes=[(0, 1, 9.0 * rank, 9.0 * rank)])
        for rank in range(ranks)
    ]
    records = posix_records(ranks, counters={"POSIX_F_WRITE_END_TIMESTAMP": 9.0 * ranks})
    modules = {"POSIX": (POSIX_VERSION, records), "DXT_POSIX": (1, dxt_bytes(traces))}
    path = write_modules(tmp_path / "pauses.darshan", modules, nprocs=ranks)
    with at_most(64 << 20):
        found = extract(read_log(path))
    [phase], [warning] = found.phases, found.warnings
    assert (phase.bytes, phase.requests, phase.processes) == (ranks, ranks, ranks)
    assert warning.startswith("1 file with too many pauses")


def test_a_file_with_as_many_pauses_and_one_process_is_split(tmp_path: Path) -> None:
    pauses = 3000
    trace = Dxt(
        "DXT_POSIX", "/a", 0, "host", writes=[(0, 1, 9.0 * at, 9.0 * at) for at in range(pauses)]
    )
    counters = {
        "POSIX_WRITES": pauses,
        "POSIX_BYTES_WRITTEN": pauses,
        "POSIX_F_WRITE_END_TIMESTAMP": 9.0 * pauses,
    }
    modules = {
        "POSIX": (POSIX_VERSION, posix_records(counters=counters)),
        "DXT_POSIX": (1, dxt_bytes([trace])),
    }
    path = write_modules(tmp_path / "pauses.darshan", modules, nprocs=1)
    phases = extract(read_log(path)).phases
    assert [(phase.bytes, phase.requests) for phase in phases] == [(1, 1)] * pauses
