"""The rules of the extraction and of safe reading, with a made-up log for each rule."""

import bisect
import math
import struct
import tracemalloc
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.applications.darshan_writer import Dxt, Heatmap, Record, Segment, write_log
from ioncast_base.errors import DamagedLogError
from summario.phases.extract import extract, extract_phases
from summario.phases.settings import ExtractionSettings
from summario.phases.tables import from_record, to_record, to_text
from summario.phases.values import Phase
from summario.reading.header import MAX_HEADER_BYTES, parse_header
from summario.reading.log import DarshanLog, read_log

PROJECT = Path(__file__).parents[3]
KIB, MIB = 1 << 10, 1 << 20
NPROCS = 4

BINS = {
    100: "0_100",
    KIB: "100_1K",
    10 * KIB: "1K_10K",
    100 * KIB: "10K_100K",
    MIB: "100K_1M",
    4 * MIB: "1M_4M",
}


def size_bin(size: int) -> str:
    """Name the bin of Darshan's histograms for a size up to 4 MiB."""
    edges = list(BINS)
    return BINS[edges[bisect.bisect_left(edges, size)]]


def times(api: str, operation: str, start: float, end: float, seconds: float) -> dict[str, float]:
    return {
        f"{api}_F_{operation}_START_TIMESTAMP": start,
        f"{api}_F_{operation}_END_TIMESTAMP": end,
        f"{api}_F_{operation}_TIME": seconds,
    }


def posix(
    path: str,
    start: float,
    end: float,
    *,
    rank: int = 0,
    requests: int = 10,
    size: int = MIB,
    consecutive: int | None = None,
    seconds: float = 0.25,
    operation: str = "WRITE",
) -> Record:
    """Make requests of one size to one file; by default all but the first are consecutive."""
    order = requests - 1 if consecutive is None else consecutive
    counters = {
        f"POSIX_{operation}S": requests,
        "POSIX_BYTES_" + ("WRITTEN" if operation == "WRITE" else "READ"): requests * size,
        f"POSIX_CONSEC_{operation}S": order,
        f"POSIX_SEQ_{operation}S": order,
        "POSIX_ACCESS1_ACCESS": size,
        "POSIX_ACCESS1_COUNT": requests,
        f"POSIX_SIZE_{operation}_{size_bin(size)}": requests,
    }
    return Record("POSIX", path, rank, counters, times("POSIX", operation, start, end, seconds))


def mpiio(path: str, start: float = 0, end: float = 1, **writes: int) -> Record:
    """Make writes of 1 MiB by rank 0, of the kinds `COLL`, `INDEP`, `SPLIT` and `NB`."""
    counters = {f"MPIIO_{kind}_WRITES": count for kind, count in writes.items()}
    counters["MPIIO_BYTES_WRITTEN"] = sum(writes.values()) * MIB
    return Record("MPI-IO", path, 0, counters, times("MPIIO", "WRITE", start, end, 0.25))


def stdio(path: str, *, requests: int = 10, size: int = MIB, seeks: int = 0) -> Record:
    counters = {
        "STDIO_WRITES": requests,
        "STDIO_BYTES_WRITTEN": requests * size,
        "STDIO_SEEKS": seeks,
    }
    return Record("STDIO", path, 0, counters, times("STDIO", "WRITE", 0, 1, 0.25))


def heatmap(*mib_per_second: int, bin_seconds: float = 1) -> Heatmap:
    written = [mib * MIB for mib in mib_per_second]
    return Heatmap("POSIX", 0, bin_seconds, written, [0] * len(written))


def log_of(
    folder: Path, records: Sequence[Record], nprocs: int = NPROCS, **contents: object
) -> DarshanLog:
    return read_log(write_log(folder / "a.darshan", nprocs=nprocs, records=records, **contents))


def bytes_of(phases: Iterable[Phase]) -> list[tuple[str, int]]:
    return [(phase.api, phase.bytes // MIB) for phase in phases]


# Order


@pytest.mark.parametrize(
    ("opens", "expected"),
    [
        ({"POSIX_OPENS": 10}, "contiguous"),
        ({"POSIX_OPENS": 1}, "random"),
        # fileno and dup open nothing, but Darshan counts them as opens.
        ({"POSIX_OPENS": 10, "POSIX_FILENOS": 5, "POSIX_DUPS": 4}, "random"),
        # More opens than requests, as of a file that is read too.
        ({"POSIX_OPENS": 1000}, "contiguous"),
    ],
    ids=str,
)
def test_the_first_request_after_each_open_has_no_order(
    tmp_path: Path, opens: dict[str, int], expected: str
) -> None:
    record = posix("/a", 0, 1, requests=10, consecutive=0)
    record = replace(record, counters={**record.counters, **opens})
    [phase] = extract_phases(log_of(tmp_path, [record]))
    assert phase.spatiality == expected


# Counters of IOR 4.0 with Darshan 3.5 for `mpiexec -n 4 ior -w -r -z -t 256k`, of each operation.
SHUFFLED = {
    # -b 768k: three requests of each process. Two runs, because a third of the shuffles goes ahead.
    "3 requests": (12, 0, 6, 8, 4, 3 << 20),
    "3 requests, mostly ahead": (12, 1, 7, 8, 4, 3 << 20),
    "3 requests, three times": (36, 3, 27, 24, 20, 3 << 20),
    # -b 2m: eight requests.
    "8 requests": (32, 0, 17, 8, 4, 8 << 20),
}
# -b 256k -s 8 without -z.
STRIDED = (32, 0, 31, 8, 4, 8 << 20)


def written_and_read(
    requests: int, consecutive: int, sequential: int, opens: int, switches: int, extent: int
) -> Record:
    """Make the record of a file that all processes write and then read in the same order."""
    size = 256 * KIB
    counters = {"POSIX_OPENS": opens, "POSIX_RW_SWITCHES": switches}
    for operation, noun in (("WRITE", "WRITTEN"), ("READ", "READ")):
        counters |= {
            f"POSIX_{operation}S": requests,
            f"POSIX_BYTES_{noun}": requests * size,
            f"POSIX_MAX_BYTE_{noun}": extent - 1,
            f"POSIX_CONSEC_{operation}S": consecutive,
            f"POSIX_SEQ_{operation}S": sequential,
            f"POSIX_SIZE_{operation}_100K_1M": requests,
        }
    counters |= {"POSIX_ACCESS1_ACCESS": size, "POSIX_ACCESS1_COUNT": 2 * requests}
    seconds = times("POSIX", "WRITE", 0, 1, 0.25) | times("POSIX", "READ", 1, 2, 0.25)
    return Record("POSIX", "/a", -1, counters, seconds)


@pytest.mark.parametrize("counters", SHUFFLED.values(), ids=SHUFFLED)
def test_few_shuffled_requests_are_random_also_if_the_file_is_read_too(
    tmp_path: Path, counters: tuple[int, ...]
) -> None:
    phases = extract_phases(log_of(tmp_path, [written_and_read(*counters)]))
    assert [phase.spatiality for phase in phases] == ["random", "random"]


def test_strided_requests_stay_sequential_if_the_file_is_read_too(tmp_path: Path) -> None:
    phases = extract_phases(log_of(tmp_path, [written_and_read(*STRIDED)]))
    assert [phase.spatiality for phase in phases] == ["sequential", "sequential"]


def test_opens_of_the_other_operation_are_no_first_accesses(tmp_path: Path) -> None:
    """One process writes three requests in one open, not in order, and reads in another one."""
    counters = {"POSIX_OPENS": 2, "POSIX_READS": 1, "POSIX_BYTES_READ": 8, "POSIX_RW_SWITCHES": 1}
    record = posix("/a", 0, 1, requests=3, consecutive=1)
    record = replace(record, counters={**record.counters, **counters})
    phases = extract_phases(log_of(tmp_path, [record]))
    assert {phase.operation: phase.spatiality for phase in phases}["write"] == "random"


def test_opens_that_both_operations_share_are_first_accesses_of_both(tmp_path: Path) -> None:
    """One process reads and writes once in each of 10 opens, so the operation changes 19 times."""
    counters = {"POSIX_OPENS": 10, "POSIX_READS": 10, "POSIX_BYTES_READ": 10}
    record = posix("/a", 0, 1, requests=10, consecutive=0)
    record = replace(record, counters={**record.counters, **counters, "POSIX_RW_SWITCHES": 19})
    phases = extract_phases(log_of(tmp_path, [record]))
    assert [phase.spatiality for phase in phases] == ["contiguous", "contiguous"]


# Requests and bytes


def without_requests(path: str, rank: int = 0) -> Record:
    """Bytes and sequential reads, but no number of reads, as in ../shared/cases."""
    record = posix(path, 0, 1, rank=rank, operation="READ")
    return replace(record, counters={**record.counters, "POSIX_READS": 0})


def test_bytes_without_a_number_of_requests_have_unknown_requests(tmp_path: Path) -> None:
    found = extract(log_of(tmp_path, [without_requests("/a"), posix("/b", 0, 1)]))
    read, write = sorted(found.phases, key=lambda phase: phase.operation)
    assert (read.bytes, read.requests, read.parts) == (10 * MIB, 0, ())
    assert (write.bytes, write.requests) == (10 * MIB, 10)
    assert found.warnings == (
        "the log does not tell in how many requests 10 MiB were moved, so no benchmark stands for"
        " them",
    )
    assert to_record(read)["requests"] is None
    assert from_record(to_record(read)) == read
    assert "unknown" in to_text([read])


def test_files_with_known_requests_keep_them_beside_others(tmp_path: Path) -> None:
    """Also within one file: then the requests of all its ranks are not known."""
    records = [
        without_requests("/a"),
        posix("/b", 0, 1, operation="READ"),
        without_requests("/c", rank=0),
        posix("/c", 0, 1, rank=1, operation="READ"),
    ]
    phases = extract_phases(log_of(tmp_path, records))
    assert sorted((phase.file_access, phase.bytes // MIB, phase.requests) for phase in phases) == [
        ("shared", 20, 0),
        ("unique", 10, 0),
        ("unique", 10, 10),
    ]


def test_phases_without_bytes_are_not_listed(tmp_path: Path) -> None:
    found = extract(log_of(tmp_path, [posix("/a", 0, 1, size=0), posix("/b", 5, 6)]))
    assert bytes_of(found.phases) == [("POSIX", 10)]
    assert found.warnings == ()


# One layer only


def test_a_file_used_through_stdio_hides_its_posix_records(tmp_path: Path) -> None:
    log = log_of(tmp_path, [stdio("/a", requests=10), posix("/a", 0, 1, requests=20)])
    assert bytes_of(extract_phases(log)) == [("STDIO", 10)]
    assert bytes_of(extract_phases(log, ExtractionSettings(layer="posix"))) == [("POSIX", 20)]


def test_one_file_through_stdio_leaves_the_posix_records_of_others(tmp_path: Path) -> None:
    log = log_of(tmp_path, [stdio("/a", requests=10), posix("/b", 0, 1, requests=20)])
    assert sorted(bytes_of(extract_phases(log))) == [("POSIX", 20), ("STDIO", 10)]


@pytest.mark.parametrize("below", [posix("/a", 0, 1, requests=20), stdio("/a", requests=20)])
def test_a_file_used_through_mpiio_hides_every_other_layer(tmp_path: Path, below: Record) -> None:
    log = log_of(tmp_path, [mpiio("/a", COLL=10), below])
    assert bytes_of(extract_phases(log)) == [("MPIIO", 10)]


# Merged files. By default times are binary fractions, whose sums are exact.


@pytest.mark.parametrize(("start", "phases"), [(1.5, 1), (1.5 + 2**-20, 2)])
def test_phases_merge_up_to_the_time_distance_and_not_beyond(
    tmp_path: Path, start: float, phases: int
) -> None:
    log = log_of(tmp_path, [posix("/a", 0, 0.5), posix("/b", start, 2)])
    assert len(extract_phases(log, ExtractionSettings(time_distance=1))) == phases


@pytest.mark.parametrize(("start", "phases"), [(1.5, 1), (1.5 + 2**-20, 2)])
def test_a_phase_of_another_kind_in_between_changes_nothing(
    tmp_path: Path, start: float, phases: int
) -> None:
    between = posix("/r", 0.625, 1.25, operation="READ")
    log = log_of(tmp_path, [posix("/a", 0, 0.5), between, posix("/b", start, 2)])
    found = extract_phases(log, ExtractionSettings(time_distance=1))
    assert [phase.operation for phase in found].count("read") == 1
    assert [phase.operation for phase in found].count("write") == phases


@pytest.mark.parametrize(
    ("end", "longest"), [(7.21, 67.31), (3.14, 188.83), (7.03, 300.7), (21.02, 1000.1)]
)
def test_rounding_does_not_split_files_at_exactly_the_time_distance(
    tmp_path: Path, end: float, longest: float
) -> None:
    # These times are not binary fractions: a common offset, added to all, would split some files.
    other = posix("/r", 0, longest, operation="READ")
    log = log_of(tmp_path, [other, posix("/a", 0, end), posix("/b", end + 1, end + 2)])
    [write] = [phase for phase in extract_phases(log) if phase.operation == "write"]
    assert write.n_files == 2


def test_a_long_phase_of_another_kind_does_not_bridge_two(tmp_path: Path) -> None:
    around = posix("/r", 0, 8, operation="READ")
    log = log_of(tmp_path, [around, posix("/a", 0, 0.5), posix("/b", 4, 5)])
    assert [p.operation for p in extract_phases(log)].count("write") == 2


def test_the_group_ends_with_the_latest_of_its_members(tmp_path: Path) -> None:
    log = log_of(tmp_path, [posix("/a", 0, 4), posix("/b", 1, 2), posix("/c", 5, 6)])
    [phase] = extract_phases(log, ExtractionSettings(time_distance=1))
    assert (phase.n_files, phase.start_seconds, phase.end_seconds) == (3, 0, 6)


def test_a_processs_times_in_shared_files_and_in_its_own_add_up(tmp_path: Path) -> None:
    # Rank -1 has the sum over all ranks, which is 2 s for each. The slowest rank of /b adds 3 s.
    everyone = posix("/a", 0, 2, rank=-1, requests=40, seconds=2.0 * NPROCS)
    some = [posix("/b", 2, 5, rank=0, seconds=3), posix("/b", 2, 5, rank=1, seconds=1)]
    [phase] = extract_phases(log_of(tmp_path, [everyone, *some]))
    assert phase.io_time_seconds == pytest.approx(5)


def test_a_file_with_a_record_of_all_and_one_of_a_rank_has_no_more_processes_than_the_job(
    tmp_path: Path,
) -> None:
    records = [
        posix("/a", 0, 1, rank=-1, requests=40, seconds=1.0 * NPROCS),
        posix("/a", 0, 1, rank=2, seconds=0.25),
    ]
    [phase] = extract_phases(log_of(tmp_path, records))
    assert phase.io_time_seconds == pytest.approx(1)
    assert (phase.mode_processes, phase.processes, phase.ranks) == (NPROCS, NPROCS, "all")
    assert (phase.requests, phase.bytes, phase.n_files) == (50, 50 * MIB, 1)


# Spatiality


@pytest.mark.parametrize(
    ("writes", "spatiality"),
    [
        ({"COLL": 100}, "collective"),
        ({"COLL": 80, "INDEP": 20}, "collective"),
        ({"COLL": 79, "INDEP": 21}, "unknown"),
        ({"COLL": 70, "INDEP": 30}, "unknown"),
        ({"INDEP": 100}, "unknown"),
        ({"SPLIT": 100}, "collective"),
        ({"COLL": 40, "SPLIT": 40, "INDEP": 20}, "collective"),
        ({"NB": 100}, "unknown"),
        ({"COLL": 70, "NB": 30}, "unknown"),
    ],
)
def test_mpiio_is_collective_from_a_share_of_one_minus_the_threshold_on(
    tmp_path: Path, writes: dict[str, int], spatiality: str
) -> None:
    [phase] = extract_phases(
        log_of(tmp_path, [mpiio("/a", **writes)]), ExtractionSettings(threshold=0.2)
    )
    assert (phase.spatiality, phase.requests) == (spatiality, 100)


def test_with_a_higher_threshold_a_smaller_collective_share_is_enough(tmp_path: Path) -> None:
    log = log_of(tmp_path, [mpiio("/a", COLL=70, INDEP=30)])
    assert [
        phase.spatiality for phase in extract_phases(log, ExtractionSettings(threshold=0.4))
    ] == ["collective"]


@pytest.mark.parametrize(
    ("seeks", "spatiality"), [(0, "contiguous"), (10, "contiguous"), (11, "random"), (50, "random")]
)
def test_seeks_break_the_order_of_a_stdio_stream(
    tmp_path: Path, seeks: int, spatiality: str
) -> None:
    # 50 of 51 requests could be consecutive; 40 of them are enough for a contiguous phase.
    [phase] = extract_phases(log_of(tmp_path, [stdio("/a", requests=51, seeks=seeks)]))
    assert phase.spatiality == spatiality


# DXT

PAUSED = [(i * MIB, MIB, at, at + 0.02) for i, at in enumerate([*([0.0] * 20), *([9.5] * 20)])]
"""40 requests of 1 MiB: 20 at the start, and 20 after 9.5 s."""


def traced(
    folder: Path, segments: Sequence[Segment], module: str = "DXT_POSIX", **contents: object
) -> DarshanLog:
    """Make a log of 40 requests of 1 MiB in 10 s, with these segments in the trace."""
    used = (
        mpiio("/a", 0, 10, INDEP=40) if module == "DXT_MPIIO" else posix("/a", 0, 10, requests=40)
    )
    return log_of(folder, [used], dxt=[Dxt(module, "/a", 0, "host", writes=segments)], **contents)


def with_first(*changed: Segment) -> list[Segment]:
    return [*changed, *PAUSED[len(changed) :]]


def in_two(phases: Iterable[Phase]) -> bool:
    return [(p.requests, p.bytes) for p in phases] == [(20, 20 * MIB)] * 2


def test_a_trace_of_all_requests_shows_the_pause(tmp_path: Path) -> None:
    first, second = found = extract_phases(traced(tmp_path, PAUSED))
    assert in_two(found)
    assert (first.start_seconds, second.start_seconds) == (0, 9.5)


@pytest.mark.parametrize(
    "segments",
    [
        pytest.param([(0, 2 * MIB, 0.0, 0.02), *PAUSED[2:]], id="a request is missing"),
        pytest.param([*PAUSED, (0, 0, 9.6, 9.7)], id="a request too many"),
        pytest.param(PAUSED[:30], id="requests and bytes are missing"),
        pytest.param(with_first((0, MIB - 1, 0.0, 0.02)), id="a byte is missing"),
        pytest.param(with_first((0, MIB + 1, 0.0, 0.02)), id="a byte too many"),
        pytest.param(
            with_first((0, -MIB, 0.0, 0.02), (0, 3 * MIB, 0.0, 0.02)), id="a negative length"
        ),
        pytest.param(with_first((0, MIB, math.nan, 0.02)), id="no start"),
        pytest.param(with_first((0, MIB, 0.0, math.nan)), id="no end"),
        pytest.param(with_first((0, MIB, 0.02, 0.0)), id="the end before the start"),
        pytest.param(with_first((0, MIB, -math.inf, 0.0)), id="an infinite time"),
    ],
)
def test_a_trace_that_contradicts_the_counters_is_not_used(
    tmp_path: Path, segments: list[Segment]
) -> None:
    [phase] = extract_phases(traced(tmp_path, segments))
    assert (phase.requests, phase.bytes) == (40, 40 * MIB)
    assert (phase.start_seconds, phase.end_seconds) == (0, 10)
    assert [(part.requests, part.request_bytes) for part in phase.parts] == [(40, MIB)]


def test_a_trace_that_darshan_marked_partial_is_not_used(tmp_path: Path) -> None:
    [phase] = extract_phases(traced(tmp_path, PAUSED, partial_modules=["DXT_POSIX"]))
    assert (phase.requests, phase.bytes) == (40, 40 * MIB)


@pytest.mark.parametrize(
    ("module", "version", "has_thread"),
    [
        ("DXT_POSIX", 1, False),
        ("DXT_POSIX", 2, True),
        ("DXT_MPIIO", 2, False),
        ("DXT_MPIIO", 3, True),
    ],
)
def test_traces_of_all_versions_are_read(
    tmp_path: Path, module: str, version: int, has_thread: bool
) -> None:
    log = traced(tmp_path, PAUSED, module)
    head = log.traces[module][: -32 * len(PAUSED)]
    thread = struct.pack("<Q", 7) if has_thread else b""
    segments = b"".join(struct.pack("<qqdd", *segment) + thread for segment in PAUSED)
    versions = log.header.module_versions | {module: version}
    log = replace(
        log,
        traces=log.traces | {module: head + segments},
        header=replace(log.header, module_versions=versions),
    )
    assert in_two(extract_phases(log))


# HEATMAP


@pytest.mark.parametrize(
    "bins",
    [
        pytest.param((0, 0, 0, 10, 10, 10, 10), id="before the start"),
        pytest.param((5, 0, 0, 10, 10, 10, 10), id="up to the start, after another file"),
        pytest.param((0, 0, 0, 10, 10, 10, 10, 0, 0, 0), id="after the end"),
        pytest.param((0, 0, 0, 10, 10, 10, 10, 0, 0, 5), id="from the end to another file"),
    ],
)
def test_a_pause_outside_a_files_time_does_not_split_it(tmp_path: Path, bins: tuple[int]) -> None:
    log = log_of(tmp_path, [posix("/a", 2.5, 7.5, requests=40)], heatmaps=[heatmap(*bins)])
    [phase] = extract_phases(log)
    assert (phase.requests, phase.bytes) == (40, 40 * MIB)
    assert (phase.start_seconds, phase.end_seconds) == (2.5, 7.5)


@pytest.mark.parametrize(
    ("busy", "its_phase"),
    [
        ([posix("/b", 4, 5, requests=100)], [("POSIX", 100)]),
        ([posix("/b", 4.25, 4.75, requests=100, consecutive=0)], [("POSIX", 100)]),
        ([posix("/proc/b", 4, 5, requests=100)], []),
        ([posix("/b", 4, 5, requests=100), mpiio("/b", 4, 5, INDEP=100)], [("MPIIO", 100)]),
    ],
    ids=["a file", "a file of another kind", "a system file", "below MPI-IO"],
)
def test_bytes_of_other_files_do_not_count_for_the_file_with_a_pause(
    tmp_path: Path, busy: list[Record], its_phase: list[tuple[str, int]]
) -> None:
    paused = posix("/a", 0, 10, requests=40)
    bins = heatmap(20, 0, 0, 0, 100, 0, 0, 0, 0, 20)
    first, *between, last = extract_phases(log_of(tmp_path, [paused, *busy], heatmaps=[bins]))
    assert [(p.requests, p.bytes) for p in (first, last)] == [(20, 20 * MIB)] * 2
    assert bytes_of(between) == its_phase
    assert first.end_seconds <= 1
    assert last.start_seconds >= 9


def test_bins_wider_than_the_time_distance_hide_pauses_and_the_user_is_told(tmp_path: Path) -> None:
    records = [posix(path, 0, 30, requests=40) for path in ("/a", "/b")]
    records.append(posix("/c", 0, 0.5))
    log = log_of(tmp_path, records, heatmaps=[heatmap(30, 30, 30, 20, bin_seconds=12.8)])
    assert extract(log).warnings == (
        "pauses shorter than 12.8 s cannot be seen in 2 files, although the time distance is 1 s:"
        " Darshan's heat map of this run has bins of 12.8 s, and no DXT trace has all requests of"
        " these files",
    )
    assert extract(log, ExtractionSettings(time_distance=12.8)).warnings == ()


def test_a_damaged_heat_map_is_told_where_pauses_may_be_missing(tmp_path: Path) -> None:
    damaged = [heatmap(20, 20, bin_seconds=0)]
    long = log_of(tmp_path, [posix("/a", 0, 30, requests=40)], heatmaps=damaged)
    assert extract(long).warnings == (
        "the HEATMAP data are damaged and not used, so pauses may be missing",
    )
    short = log_of(tmp_path, [posix("/a", 0, 0.9, requests=40)], heatmaps=damaged)
    assert extract(short).warnings == ()


@pytest.mark.parametrize(
    ("record", "bin_seconds"),
    [
        pytest.param(posix("/a", 0, 30, requests=40), 1, id="narrow bins"),
        pytest.param(posix("/a", 0, 30, requests=1), 12.8, id="one request"),
        pytest.param(posix("/a", 0, 0.9, requests=40), 12.8, id="a short file"),
        pytest.param(mpiio("/a", 0, 30, INDEP=10), 12.8, id="another api"),
    ],
)
def test_bins_that_hide_no_pause_are_not_spoken_of(
    tmp_path: Path, record: Record, bin_seconds: float
) -> None:
    log = log_of(tmp_path, [record], heatmaps=[heatmap(10, 10, 10, 10, bin_seconds=bin_seconds)])
    assert extract(log).warnings == ()


def test_a_trace_of_all_requests_shows_what_wide_bins_hide(tmp_path: Path) -> None:
    wide = [heatmap(20, 20, bin_seconds=6.4)]
    assert extract(traced(tmp_path, PAUSED, heatmaps=wide)).warnings == ()
    [said] = extract(traced(tmp_path, PAUSED[:30], heatmaps=wide)).warnings
    assert said.startswith("pauses shorter than 6.4 s cannot be seen in 1 file,")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("darshan-logs/e3sm_io_heatmaps_and_dxt/e3sm_io_heatmap_only", ["6.4 s cannot be seen"]),
        ("runs/logs/reopen-same-5x", []),
        ("runs/logs/reopen-same-5x-dxt", []),
    ],
)
def test_wide_bins_of_real_logs_are_told(name: str, said: list[str], shared_data: Path) -> None:
    warnings = extract(read_log(shared_data / f"{name}.darshan")).warnings
    assert [any(each in warning for each in said) for warning in warnings] == [True] * len(said)


def test_a_file_with_fewer_requests_than_windows_is_not_split(tmp_path: Path) -> None:
    few = posix("/a", 0, 10, requests=2, consecutive=0)
    many = posix("/b", 0, 10, requests=400)
    bins = heatmap(200, 0, 0, 0, 1, 0, 0, 0, 0, 201)
    found = extract_phases(log_of(tmp_path, [few, many], heatmaps=[bins]))
    [random] = [phase for phase in found if phase.spatiality == "random"]
    assert (random.requests, random.bytes, random.end_seconds) == (2, 2 * MIB, 10)
    assert sum(phase.bytes for phase in found) == 402 * MIB


def test_a_random_file_of_few_requests_per_process_stays_random_in_pieces(tmp_path: Path) -> None:
    # In four pieces with 16 processes each request would be the first of its process.
    record = posix("/a", 0, 10, rank=-1, requests=60, consecutive=0)
    bins = heatmap(15, 0, 0, 15, 0, 0, 15, 0, 0, 15)
    found = extract_phases(log_of(tmp_path, [record], 16, heatmaps=[bins]))
    assert [phase.requests for phase in found] == [15] * 4
    assert {phase.spatiality for phase in found} == {"random"}


# Sizes and bytes


def test_a_size_of_only_one_operation_does_not_count_for_the_other(tmp_path: Path) -> None:
    counters = {
        "POSIX_READS": 120,
        "POSIX_BYTES_READ": 60 * 80 * KIB,
        "POSIX_WRITES": 1,
        "POSIX_BYTES_WRITTEN": MIB,
        "POSIX_ACCESS1_ACCESS": 64 * KIB,
        "POSIX_ACCESS1_COUNT": 60,
        "POSIX_ACCESS2_ACCESS": 16 * KIB,
        "POSIX_ACCESS2_COUNT": 60,
        "POSIX_ACCESS3_ACCESS": MIB,
        "POSIX_ACCESS3_COUNT": 1,
        "POSIX_SIZE_READ_10K_100K": 120,
        "POSIX_SIZE_WRITE_100K_1M": 1,
    }
    assert parts_of(tmp_path, counters) == {
        "read": [(60, 64 * KIB), (60, 16 * KIB)],
        "write": [(1, MIB)],
    }


def test_the_count_of_a_size_of_both_operations_is_shared_by_the_histograms(tmp_path: Path) -> None:
    counters = {
        "POSIX_READS": 50,
        "POSIX_BYTES_READ": 30 * MIB + 20 * 4 * MIB,
        "POSIX_WRITES": 15,
        "POSIX_BYTES_WRITTEN": 10 * MIB + 5 * 4 * KIB,
        "POSIX_ACCESS1_ACCESS": MIB,
        "POSIX_ACCESS1_COUNT": 40,
        "POSIX_ACCESS2_ACCESS": 4 * MIB,
        "POSIX_ACCESS2_COUNT": 20,
        "POSIX_ACCESS3_ACCESS": 4 * KIB,
        "POSIX_ACCESS3_COUNT": 5,
        "POSIX_SIZE_READ_100K_1M": 30,
        "POSIX_SIZE_WRITE_100K_1M": 10,
        "POSIX_SIZE_READ_1M_4M": 20,
        "POSIX_SIZE_WRITE_1K_10K": 5,
    }
    assert parts_of(tmp_path, counters) == {
        "read": [(20, 4 * MIB), (30, MIB)],
        "write": [(10, MIB), (5, 4 * KIB)],
    }


def parts_of(folder: Path, counters: dict[str, int]) -> dict[str, list[tuple[int, float]]]:
    """Requests and request sizes of a file's read phase and write phase."""
    seconds = times("POSIX", "READ", 0, 1, 0.25) | times("POSIX", "WRITE", 0, 1, 0.25)
    found = extract_phases(log_of(folder, [Record("POSIX", "/a", 0, counters, seconds)]))
    assert len(found) == 2
    return {p.operation: [(part.requests, part.request_bytes) for part in p.parts] for p in found}


# System files


@pytest.mark.parametrize(
    "path",
    [
        "/sys/devices/system/cpu/online",
        "/dev/urandom",
        "/etc/nsswitch.conf",
        "/proc/self/maps",
        "/usr/lib/libm.so",
        "/usr/lib/libm.so.6",
        "/usr/lib/libhdf5.so.200.1.0",
        "/home/me/__pycache__/model.cpython-312.pyc",
        "/home/me/venv/pyvenv.cfg",
        "/home/me/venv/lib/python3.11/site-packages/distutils-precedence.pth",
        "/home/me/venv/lib/python3.11/site-packages/numpy-2.1.dist-info/entry_points.txt",
        "/usr/lib64/python3.9/encodings/__init__.py",
        "/opt/conda/lib/python3.12/string.py",
        "/local/ompi.sn176.1000/jf.0/12/test.out_cid-0-1.sm",
        "/local/openmpi-sessions-root@lab01_0/1/2/aborted",
        "/scratch/job/vader_segment.sm",
        "<STDIN>",
        "<STDOUT>",
        "<STDERR>",
    ],
)
def test_system_files_are_left_out_by_default(tmp_path: Path, path: str) -> None:
    log = log_of(tmp_path, [stdio(path) if path.startswith("<") else posix(path, 0, 1)])
    assert extract_phases(log) == []
    assert [phase.bytes for phase in extract_phases(log, ExtractionSettings(all_files=True))] == [
        10 * MIB
    ]


@pytest.mark.parametrize(
    ("name", "record_id"),
    [
        ("<STDIN>", 14734109647742566553),
        ("<STDOUT>", 15920181672442173319),
        ("<STDERR>", 7238257241479193519),
    ],
)
@pytest.mark.parametrize("names", [(), ("1234567890",)], ids=["no name", "another name"])
def test_standard_streams_are_left_out_by_their_ids_where_names_are_anonymised(
    tmp_path: Path, name: str, record_id: int, names: tuple[str, ...]
) -> None:
    """All logs of ../shared/data/darshan-logs have these ids beside these names."""
    log = log_of(tmp_path, [stdio("/a"), posix("/b", 0, 1)])
    records = log.records["STDIO"]
    words = records.words.copy()
    words[:, 0] = np.array([record_id], np.uint64).view(np.int64)
    log = replace(
        log,
        records={**log.records, "STDIO": replace(records, words=words)},
        names={**log.names, **dict(zip([record_id], names, strict=False))},
    )
    assert bytes_of(extract_phases(log)) == [("POSIX", 10)]
    everything = ExtractionSettings(all_files=True)
    assert sorted(bytes_of(extract_phases(log, everything))) == [("POSIX", 10), ("STDIO", 10)]


@pytest.mark.parametrize(
    "path",
    [
        "/scratch/etc/a",
        "/system/a",
        "/scratch/a.so.gz",
        "/scratch/a.sorted",
        "/scratch/so",
        "/scratch/python3.11/data",
        "/scratch/my-packages/a",
        "/scratch/a.path",
        "/scratch/ompi/a",
    ],
)
def test_files_with_names_like_those_of_the_system_are_kept(tmp_path: Path, path: str) -> None:
    assert len(extract_phases(log_of(tmp_path, [posix(path, 0, 1)]))) == 1


# Impossible records


@pytest.mark.parametrize("rank", [NPROCS, NPROCS + 1, 1 << 40, -2])
def test_a_rank_outside_the_job_is_an_error(tmp_path: Path, rank: int) -> None:
    with pytest.raises(DamagedLogError, match="rank outside the job's 4 processes"):
        log_of(tmp_path, [posix("/a", 0, 1, rank=rank)])


def test_the_last_rank_of_the_job_is_not_an_error(tmp_path: Path) -> None:
    [phase] = extract_phases(log_of(tmp_path, [posix("/a", 0, 1, rank=NPROCS - 1)]))
    assert phase.rank == NPROCS - 1


@pytest.mark.parametrize("ranks", [[0], [0, 1]], ids=["one rank", "two ranks"])
@pytest.mark.parametrize(
    "counters",
    [
        {"POSIX_BYTES_WRITTEN": 1 << 62},
        {"POSIX_BYTES_WRITTEN": -1},
        {"POSIX_WRITES": 1 << 62},
        {"POSIX_WRITES": -1},
    ],
    ids=str,
)
def test_impossible_counters_are_one_clear_error(
    tmp_path: Path, ranks: list[int], counters: dict[str, int]
) -> None:
    records = [posix("/a", 0, 1, rank=rank) for rank in ranks]
    changed = [replace(record, counters={**record.counters, **counters}) for record in records]
    assert_refused(log_of(tmp_path, changed))


@pytest.mark.parametrize("name", ["START_TIMESTAMP", "END_TIMESTAMP", "TIME"])
@pytest.mark.parametrize("value", [1e300, -1e300, math.nan, math.inf])
def test_impossible_times_are_one_clear_error(tmp_path: Path, name: str, value: float) -> None:
    assert_time_refused(tmp_path, name, value)


def test_a_negative_io_time_is_one_clear_error(tmp_path: Path) -> None:
    assert_time_refused(tmp_path, "TIME", -0.5)


def assert_time_refused(tmp_path: Path, name: str, value: float) -> None:
    record = posix("/a", 0, 1)
    fcounters = {**record.fcounters, f"POSIX_F_WRITE_{name}": value}
    assert_refused(log_of(tmp_path, [replace(record, fcounters=fcounters)]))


def assert_refused(log: DarshanLog) -> None:
    with pytest.raises(DamagedLogError) as caught:
        extract_phases(log)
    assert "impossible" in str(caught.value)
    assert log.path in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "counters", [{"MPIIO_BYTES_WRITTEN": -512 * MIB}, {"MPIIO_COLL_WRITES": -1}], ids=str
)
def test_a_file_with_an_impossible_mpiio_record_counts_by_its_posix_records(
    tmp_path: Path, counters: dict[str, int]
) -> None:
    bad = mpiio("/bad", COLL=10)
    records = [
        replace(bad, counters={**bad.counters, **counters}),
        replace(mpiio("/bad", COLL=3), rank=1),
        posix("/bad", 0, 1, requests=20),
        mpiio("/good", COLL=5),
        posix("/good", 0, 1, requests=7),
    ]
    log = log_of(tmp_path, records)
    found = extract(log)
    assert sorted(bytes_of(found.phases)) == [("MPIIO", 5), ("POSIX", 20)]
    assert all(phase.partial for phase in found.phases)
    [warning] = found.warnings
    assert "MPI-IO records of 1 file are not used" in warning
    assert "POSIX records" in warning


def test_an_impossible_mpiio_record_without_posix_records_is_an_error(tmp_path: Path) -> None:
    bad = mpiio("/bad", COLL=10)
    bad = replace(bad, counters={**bad.counters, "MPIIO_BYTES_WRITTEN": -1})
    assert_refused(log_of(tmp_path, [bad, posix("/good", 0, 1)]))


def test_posix_records_of_another_operation_replace_no_mpiio_record(tmp_path: Path) -> None:
    """Otherwise 10 MiB of writes would be missing."""
    bad = mpiio("/bad", COLL=10)
    bad = replace(bad, counters={**bad.counters, "MPIIO_BYTES_WRITTEN": -1})
    assert_refused(log_of(tmp_path, [bad, posix("/bad", 0, 1, operation="READ")]))


def test_an_impossible_number_of_one_operation_leaves_the_other_one(tmp_path: Path) -> None:
    bad = mpiio("/bad", COLL=10)
    bad = replace(bad, counters={**bad.counters, "MPIIO_COLL_READS": -1})
    found = extract(log_of(tmp_path, [bad, posix("/bad", 0, 1, operation="READ")]))
    assert bytes_of(found.phases) == [("MPIIO", 10)]
    assert found.phases[0].partial
    assert "a MPI-IO record with an impossible number of reads is left out" in found.warnings[0]


@pytest.mark.promise("watch-log-unusual")
@pytest.mark.parametrize("name", ["neg-stderr", "neg-stdout-reduced"])
def test_impossible_numbers_of_standard_streams_change_nothing(name: str) -> None:
    folder = PROJECT / "tests/summario/fixtures/cases"
    control, found = (extract(read_log(folder / f"{each}.darshan")) for each in ("ok", name))
    assert [replace(phase, log="") for phase in found.phases] == [
        replace(phase, log="") for phase in control.phases
    ]
    assert found.warnings == ()


@pytest.mark.promise("watch-log-unusual")
def test_a_small_read_with_an_impossible_time_is_left_out_with_a_warning() -> None:
    folder = PROJECT / "tests/summario/fixtures/cases"
    control, found = (
        extract(read_log(folder / f"{each}.darshan")) for each in ("ok", "nan-posix-small")
    )
    [phase], [expected] = found.phases, control.phases
    assert phase == replace(expected, log=phase.log, partial=True)
    assert found.warnings == (
        "a POSIX record with an impossible read time is left out, so 100 bytes of 1 GiB are"
        " missing",
    )


def test_with_all_files_a_standard_stream_may_be_left_out_too() -> None:
    folder = PROJECT / "tests/summario/fixtures/cases"
    log = read_log(folder / "neg-stderr.darshan")
    found = extract(log, ExtractionSettings(all_files=True))
    assert [phase.bytes for phase in found.phases] == [1 << 30]
    assert "a STDIO record with an impossible write time is left out" in found.warnings[0]


IMPOSSIBLE = [
    ("POSIX_WRITES", -1),
    ("POSIX_BYTES_WRITTEN", -1),
    ("POSIX_BYTES_WRITTEN", 1 << 62),
    ("POSIX_F_WRITE_TIME", -0.5),
    ("POSIX_F_WRITE_TIME", math.nan),
    ("POSIX_F_WRITE_START_TIMESTAMP", math.inf),
    ("POSIX_F_WRITE_END_TIMESTAMP", -1e300),
]


def with_counter(record: Record, name: str, value: float) -> Record:
    if "_F_" in name:
        return replace(record, fcounters={**record.fcounters, name: value})
    return replace(record, counters={**record.counters, name: int(value)})


@pytest.mark.promise("watch-log-unusual")
@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_a_record_with_an_impossible_number_is_left_out_of_many(
    tmp_path: Path, name: str, value: float
) -> None:
    good = [posix(f"/{rank}", 0, 1, rank=rank) for rank in range(3)]
    log = log_of(tmp_path, [*good, with_counter(posix("/3", 0, 1, rank=3), name, value)])
    found = extract(log)
    assert bytes_of(found.phases) == [("POSIX", 30)]
    assert found.phases[0].partial
    [warning] = found.warnings
    assert "a POSIX record with an impossible" in warning
    assert "10 MiB of 40 MiB are missing" in warning


@pytest.mark.promise("watch-log-unusual")
@pytest.mark.parametrize(("name", "value"), IMPOSSIBLE)
def test_impossible_records_of_most_of_the_bytes_are_an_error(
    tmp_path: Path, name: str, value: float
) -> None:
    large = with_counter(posix("/large", 0, 1, requests=100), name, value)
    assert_refused(log_of(tmp_path, [large, posix("/small", 0, 1)]))


def test_an_impossible_record_below_mpiio_only_makes_unknown_what_it_would_tell(
    tmp_path: Path,
) -> None:
    below = with_counter(posix("/a", 0, 1), "POSIX_F_WRITE_TIME", math.nan)
    found = extract(log_of(tmp_path, [mpiio("/a", COLL=10), below]))
    [phase] = found.phases
    assert (phase.api, phase.bytes, phase.partial) == ("MPIIO", 10 * MIB, True)
    assert (phase.order, phase.fsync) == (None, None)
    assert found.warnings == ("a POSIX record with an impossible write time is left out",)


def test_an_impossible_record_of_a_layer_that_is_not_asked_for_does_not_count(
    tmp_path: Path,
) -> None:
    bad = with_counter(posix("/b", 0, 1, requests=100), "POSIX_F_WRITE_TIME", math.nan)
    log = log_of(tmp_path, [mpiio("/a", COLL=10), bad])
    assert bytes_of(extract_phases(log, ExtractionSettings(layer="mpiio"))) == [("MPIIO", 10)]


def test_an_impossible_time_of_reads_does_not_move_metadata_time_to_the_writes(
    tmp_path: Path,
) -> None:
    times_of_file = {"POSIX_F_META_TIME": 0.5, "POSIX_F_READ_TIME": -0.2}
    record = posix("/a", 0, 1)
    record = replace(
        record,
        counters={**record.counters, "POSIX_READS": 1, "POSIX_BYTES_READ": 8},
        fcounters={**record.fcounters, **times_of_file},
    )
    [phase] = extract_phases(log_of(tmp_path, [record]))
    assert phase.metadata_seconds == 0.5


def test_an_impossible_record_of_both_layers_is_an_error(tmp_path: Path) -> None:
    records = [mpiio("/bad", COLL=10), posix("/bad", 0, 1)]
    names = ("MPIIO_BYTES_WRITTEN", "POSIX_BYTES_WRITTEN")
    bad = [
        replace(record, counters={**record.counters, name: -1})
        for record, name in zip(records, names, strict=True)
    ]
    assert_refused(log_of(tmp_path, bad))


# The reader


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "small.darshan", nprocs=NPROCS, records=[posix("/a", 0, 1)])


def with_names(log: Path, names: bytes) -> bytes:
    """Replace the region of the names in a log, and correct the map in its header."""
    data = bytearray(log.read_bytes())
    old = parse_header(bytes(data[:MAX_HEADER_BYTES]), str(log)).names
    data[old.offset : old.offset + old.length] = names
    struct.pack_into("<Q", data, 40, len(names))
    # From byte 48 on, the map has pairs of offset and length.
    for entry in range(48, 48 + 64 * 16, 16):
        offset, length = struct.unpack_from("<QQ", data, entry)
        if length:
            struct.pack_into("<Q", data, entry, offset + len(names) - old.length)
    return bytes(data)


def test_replaced_names_are_read(small_log: Path) -> None:
    record = struct.pack("<Q", 5) + b"/other\0"
    small_log.write_bytes(with_names(small_log, zlib.compress(record)))
    log = read_log(small_log)
    assert log.names == {5: "/other"}
    assert [phase.bytes for phase in extract_phases(log)] == [10 * MIB]


@pytest.mark.usefixtures("either_zlib")
@pytest.mark.slow
def test_a_decompression_bomb_as_names_is_rejected_before_it_is_split(small_log: Path) -> None:
    # 198 MiB of zeros: each nine of them are a valid record with an id and an empty name.
    packer = zlib.compressobj(1)
    packed = [packer.compress(bytes(9 * MIB)) for _ in range(22)]
    small_log.write_bytes(with_names(small_log, b"".join([*packed, packer.flush()])))
    tracemalloc.start()
    try:
        with pytest.raises(DamagedLogError, match="file names"):
            read_log(small_log)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The zeros are decompressed and joined. Their 20 million names would take thousands of MiB.
    assert peak_bytes < 1000 * MIB
