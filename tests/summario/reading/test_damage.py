"""Damaged, truncated and hostile logs give an error, never a crash or fewer bytes."""

import gzip
import math
import random
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioncast_base.errors import DamagedLogError, InputError
from summario.lustre_components import lustre_components_of
from summario.lustre_servers import bytes_of_servers
from summario.phases.extract import extract_phases
from summario.phases.settings import ExtractionSettings
from summario.reading.header import MODULES, parse_header
from summario.reading.heatmap import heatmaps_of
from summario.reading.inflate import inflate
from summario.reading.log import read_log
from summario.reading.operations import operations_of
from summario.runs.hosts import count_nodes
from tests.support.examples import examples
from tests.support.log_bytes import Component, lustre_bytes_1, lustre_bytes_2, write_modules

pytestmark = pytest.mark.slow

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.darshan"))
OLD = ("mpi-io-test-x86_64-3.1.3", "mpi-io-test-ppc64-3.0.0", "mpi-io-test-x86_64-3.4.0")
HEADER_BYTES = 1328

positions = st.floats(0, 1, exclude_max=True)


@lru_cache
def intact(path: Path) -> tuple[bytes, int]:
    return path.read_bytes(), total_bytes(path)


def total_bytes(path: Path) -> int:
    phases = extract_phases(read_log(path), ExtractionSettings(layer="all", all_files=True))
    return sum(phase.bytes for phase in phases)


def truncate(data: bytearray, at: int, _random: random.Random) -> None:
    del data[at:]


def flip(data: bytearray, at: int, random_: random.Random) -> None:
    data[at] ^= 1 << random_.randrange(8)


def flip_in_header(data: bytearray, at: int, random_: random.Random) -> None:
    for _ in range(random_.randint(1, 3)):
        data[random_.randrange(min(HEADER_BYTES, len(data)))] = random_.randrange(256)


def blank(data: bytearray, at: int, random_: random.Random) -> None:
    length = min(random_.randint(1, 400), len(data) - at)
    data[at : at + length] = bytes(length)


def repeat(data: bytearray, at: int, random_: random.Random) -> None:
    data[at:at] = data[at : at + random_.randint(1, 200)]


@pytest.mark.usefixtures("either_zlib")
@pytest.mark.parametrize("mutate", [truncate, flip, flip_in_header, blank, repeat])
@settings(
    max_examples=examples(2000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(which=st.integers(0, 1000), where=positions, seed=st.integers(0, 1 << 30))
def test_a_damaged_log_is_an_error_or_whole(
    mutate: object, tmp_path: Path, shared_data: Path, which: int, where: float, seed: int
) -> None:
    logs = [*FIXTURES, *(shared_data / f"darshan-logs/release_logs/{n}.darshan" for n in OLD)]
    original, expected = intact(logs[which % len(logs)])
    data = bytearray(original)
    mutate(data, int(where * len(data)), random.Random(seed))
    path = tmp_path / "damaged.darshan"
    path.write_bytes(data)
    try:
        found = total_bytes(path)
    except InputError as error:
        assert "\n" not in str(error)
        assert str(path) in str(error)
    else:
        assert found == expected


EXTREME = (-(1 << 63), -1, 0, 1, 1 << 31, 1 << 60, (1 << 63) - 1, 0x7FF8 << 48, 0x7FF0 << 48)


@lru_cache
def contents(path: Path) -> tuple[int, tuple[str, ...], dict[str, tuple[int, bytes]]]:
    """Read the number of processes, the names, and each module's version and data."""
    blob = path.read_bytes()
    header = parse_header(blob, str(path))
    modules = {
        name: (
            header.module_versions[name],
            b"".join(inflate(blob[place.offset :][: place.length], 0, 1 << 30)),
        )
        for name, place in header.modules.items()
    }
    log = read_log(path)
    return log.job.nprocs, tuple(log.names.values()), modules


def overwrite_words(data: bytearray, random_: random.Random) -> None:
    for _ in range(random_.randint(1, 8)):
        word = random_.randrange(len(data) // 8) * 8
        struct.pack_into("<q", data, word, random_.choice([*EXTREME, random_.getrandbits(63)]))


def cut(data: bytearray, random_: random.Random) -> None:
    del data[random_.randrange(len(data)) :]


def repeat_words(data: bytearray, random_: random.Random) -> None:
    start = random_.randrange(len(data) // 8) * 8
    data[start:start] = data[start : start + 8 * random_.randint(1, 200)]


def lustre_data(version: int, names: Sequence[str]) -> bytes:
    """Lay out every file of a log over two components, the later one over four OSTs."""
    components = [Component(1 << 20, (7,), 0, 1 << 20), Component(1 << 16, (3, 1, 4, 2), 1 << 20)]
    return b"".join(
        lustre_bytes_1(name, -1, 1 << 16, (3, 1, 4, 2))
        if version == 1
        else lustre_bytes_2(name, -1, components)
        for name in names
    )


@pytest.mark.parametrize("change", [overwrite_words, cut, repeat_words])
@settings(
    max_examples=examples(2000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(which=st.integers(0, 1000), seed=st.integers(0, 1 << 30))
def test_hostile_records_behind_right_checksums_never_crash(
    change: object, tmp_path: Path, which: int, seed: int
) -> None:
    random_ = random.Random(seed)
    nprocs, names, modules = contents(FIXTURES[which % len(FIXTURES)])
    lustre = 1 + seed % 2
    modules = {**modules, "LUSTRE": (lustre, lustre_data(lustre, names))}
    hostile = dict(modules)
    for name in random_.sample(sorted(modules), random_.randint(1, len(modules))):
        version, data = modules[name]
        changed = bytearray(data)
        change(changed, random_)
        hostile[name] = (version, bytes(changed))
    path = write_modules(tmp_path / "hostile.darshan", hostile, nprocs=nprocs, names=names)
    try:
        log = read_log(path, modules=MODULES)
        requests = operations_of(log)
        servers = bytes_of_servers(
            lustre_components_of(log), requests.file_id, requests.offset, requests.length
        )
        heatmaps_of(log)
        count_nodes([log])
        phases = extract_phases(log, ExtractionSettings(layer="all", all_files=True))
    except InputError as error:
        assert "\n" not in str(error)
        assert str(path) in str(error)
    else:
        assert (servers.bytes > 0).all()
        assert all(
            sum(part.bytes for part in phase.parts) == (phase.bytes if phase.requests else 0)
            for phase in phases
        )
        assert all(phase.bytes > 0 and phase.requests >= 0 for phase in phases)
        assert all(math.isfinite(phase.io_time_seconds) for phase in phases)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_truncated_log_says_so(tmp_path: Path, share: float) -> None:
    data = FIXTURES[0].read_bytes()
    path = tmp_path / "short.darshan"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError, match=r"truncated|not a Darshan log"):
        read_log(path)


def test_a_log_that_loses_its_last_module_with_its_map_is_damaged(tmp_path: Path) -> None:
    data = bytearray((Path(__file__).parents[1] / "fixtures/multiphase.darshan").read_bytes())
    # The map has (offset, length) pairs from byte 48 on; POSIX is the second one.
    offset, length = struct.unpack_from("<QQ", data, 48 + 16)
    struct.pack_into("<QQ", data, 48 + 16, offset, 0)
    path = tmp_path / "without-posix.darshan"
    path.write_bytes(data)
    assert length > 0
    with pytest.raises(DamagedLogError, match="gaps or overlaps"):
        read_log(path)


def test_modules_without_a_map_are_not_read_as_the_job_record(tmp_path: Path) -> None:
    data = bytearray((Path(__file__).parents[1] / "fixtures/multiphase.darshan").read_bytes())
    # Without the map of the names and of POSIX, their bytes look like a part of the job record.
    data[32 : 48 + 2 * 16] = bytes(48)
    path = tmp_path / "without-maps.darshan"
    path.write_bytes(data)
    with pytest.raises(DamagedLogError, match="gaps or overlaps"):
        read_log(path)


@pytest.mark.usefixtures("either_zlib")
def test_damage_to_the_heatmap_alone_costs_a_warning_only(tmp_path: Path) -> None:
    data = bytearray((Path(__file__).parents[1] / "fixtures/reopen-same-5x.darshan").read_bytes())
    offset, length = struct.unpack_from("<QQ", data, 48 + 16 * 15)
    data[offset : offset + length] = bytes(length)
    path = tmp_path / "no-heatmap.darshan"
    path.write_bytes(data)
    log = read_log(path)
    assert any("HEATMAP" in warning for warning in log.warnings)
    assert sum(phase.bytes for phase in extract_phases(log)) == 251658240


@pytest.mark.parametrize("content", [b"", b"hello\n", bytes(4096), b"3.41\0\0\0\0" + bytes(8)])
def test_other_files_are_not_called_logs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.darshan"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a Darshan log"):
        read_log(path)


@pytest.mark.parametrize(
    ("begin", "version"),
    [
        # The first bytes of logs in darshan-test/2.x/example-output of Darshan's repository.
        (bytes.fromhex("312e323100000000") + bytes.fromhex("00000000000010b7"), "1"),
        (bytes.fromhex("322e303200000000") + bytes.fromhex("0000000000643537"), "2"),
        (bytes.fromhex("322e303600000000") + bytes.fromhex("3735640000000000"), "2"),
    ],
)
@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_logs_of_darshan_1_and_2_are_named_and_nobody_is_told_to_convert_them(
    tmp_path: Path, begin: bytes, version: str, packed: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "old.darshan"
    path.write_bytes(packed(begin + bytes(4096)))
    with pytest.raises(InputError, match=f"Darshan {version} wrote this log") as caught:
        read_log(path)
    assert "run the program with Darshan 3" in str(caught.value)
    assert "darshan-convert" not in str(caught.value)


def test_a_log_of_a_later_format_needs_a_newer_ioncast(tmp_path: Path) -> None:
    path = tmp_path / "later.darshan"
    path.write_bytes(FIXTURES[0].read_bytes().replace(b"3.41", b"3.99", 1))
    with pytest.raises(InputError, match=r"format '3.99' is not one of .*a newer ioncast"):
        read_log(path)


def test_a_log_compressed_another_way_is_named(tmp_path: Path) -> None:
    data = bytearray(FIXTURES[0].read_bytes())
    data[16] = 3
    path = tmp_path / "unknown.darshan"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"method 3, .*darshan-convert"):
        read_log(path)


def test_the_unfinished_log_of_a_killed_job_is_named(tmp_path: Path) -> None:
    data = bytearray(FIXTURES[0].read_bytes())
    data[16] = 2
    path = tmp_path / "unfinished.darshan"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"killed job .*darshan-merge"):
        read_log(path)


def test_records_of_a_modified_darshan_are_named_by_their_size(shared_data: Path) -> None:
    logs = sorted((shared_data / "io500-traces").glob("mdworkbench*.darshan"))
    assert len(logs) == 3
    for path in logs:
        with pytest.raises(DamagedLogError, match=r"POSIX records of 720 bytes; .* 704 bytes"):
            read_log(path)


@pytest.mark.usefixtures("either_zlib")
@pytest.mark.parametrize("max_bytes", [1000, 12 << 10])
def test_limits_end_a_log_that_costs_too_much(max_bytes: int) -> None:
    path = Path(__file__).parents[1] / "fixtures/multiphase.darshan"
    with pytest.raises(DamagedLogError, match="holds more bytes than"):
        read_log(path, max_bytes)


def test_a_missing_log_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_log(tmp_path / "missing.darshan")
    with pytest.raises(InputError, match="directory"):
        read_log(tmp_path)
