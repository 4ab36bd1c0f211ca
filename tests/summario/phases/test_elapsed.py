"""The time that phases took: times that IOR printed, and a made-up log for each rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Heatmap, Record, write_log
from ior_configs.outputs import read_outputs
from summario.phases.extract import extract, extract_phases
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Phase
from summario.reading.log import DarshanLog, read_log
from summario.reading.records import Records

MIB = 1 << 20
FIXTURES = Path(__file__).parents[1] / "fixtures/ior_times"
TESTBED = Path(__file__).parents[3] / "experiments/data/testbed"
# Within this share of the time that IOR printed.
CLOSE = 0.05


def ior_seconds(output: Path) -> dict[str, float]:
    """The time of each operation that IOR printed, of all repetitions together."""
    seconds: dict[str, float] = {}
    for result in read_outputs(output.read_text(), where=output.name):
        assert result.time_s is not None
        seconds[result.operation] = seconds.get(result.operation, 0) + result.time_s
    return seconds


def elapsed_seconds(log: Path) -> dict[str, float]:
    found: dict[str, float] = {}
    for phase in extract_phases(read_log(log)):
        assert phase.elapsed_seconds is not None
        found[phase.operation] = found.get(phase.operation, 0) + phase.elapsed_seconds
    return found


# Genuine runs


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("wr-e-reps", id="three repetitions write and read the same file, with -e"),
        pytest.param("each-reps", id="three repetitions with -Y"),
        pytest.param("mpi-e", id="independent MPI-IO with -e"),
        pytest.param("mpiio-coll-strided", id="collective MPI-IO"),
    ],
)
def test_elapsed_is_the_time_that_ior_printed(name: str) -> None:
    printed = ior_seconds(FIXTURES / f"{name}.txt")
    found = elapsed_seconds(FIXTURES / f"{name}.darshan")
    assert found["write"] == pytest.approx(printed["write"], rel=CLOSE)


def test_short_runs_of_mpi_io_contain_the_opens_of_writes_and_reads() -> None:
    """IOR opened the file for 0.22 s before it wrote, and again before it read."""
    printed = ior_seconds(FIXTURES / "mpi-short.txt")
    assert elapsed_seconds(FIXTURES / "mpi-short.darshan") == pytest.approx(printed, rel=0.15)


def test_every_shared_run_of_more_than_a_second_has_the_time_that_ior_printed(
    shared_data: Path,
) -> None:
    compared = 0
    for output in [
        *sorted((shared_data / "runs/ior_json").glob("*.json")),
        *sorted((shared_data / "runs/ior_text").glob("*-dxt.txt")),
        *sorted((shared_data / "live").glob("[f-p]*.txt")),
    ]:
        folder = output.parent if output.parent.name == "live" else shared_data / "runs/logs"
        found = elapsed_seconds(folder / f"{output.stem}.darshan")
        for operation, seconds in ior_seconds(output).items():
            if seconds > 1:
                compared += 1
                assert found[operation] == pytest.approx(seconds, rel=CLOSE), output.name
    assert compared >= 10


@pytest.mark.parametrize("log", sorted((TESTBED / "logs").glob("*.darshan")), ids=lambda p: p.stem)
def test_applications_have_the_sum_of_last_closes_minus_first_opens(log: Path) -> None:
    """Every phase of these applications has files of its own, so the counters hold the truth."""
    read = read_log(log)
    records = read.records["POSIX"]
    opened = records.real("POSIX_F_OPEN_START_TIMESTAMP")
    closed = records.real("POSIX_F_CLOSE_END_TIMESTAMP")
    phases = extract_phases(read)
    assert len(phases) == {"hacc-io": 1, "multiphase": 3, "periodic": 4}[log.stem.split("-ion")[0]]
    for phase in phases:
        own = (opened <= phase.end_seconds) & (closed >= phase.start_seconds)
        assert own.sum() == phase.n_files
        assert phase.elapsed_seconds == pytest.approx(closed[own].max() - opened[own].min())


# Rules


def record(
    path: str = "/a",
    *,
    api: str = "POSIX",
    rank: int = 0,
    write: tuple[float, float] | None = None,
    read: tuple[float, float] | None = None,
    opened: tuple[float, float] = (0, 0),
    closed: tuple[float, float] = (0, 0),
    seconds: float | None = None,
    metadata: float = 0,
    slowest: float = 0,
) -> Record:
    """Move 8 MiB by 8 requests; the calls take the whole time, or as many seconds as given."""
    calls = "INDEP_" if api == "MPIIO" else ""
    counters, times = {}, {f"{api}_F_META_TIME": metadata, f"{api}_F_SLOWEST_RANK_TIME": slowest}
    for call, moved, span in (("WRITE", "WRITTEN", write), ("READ", "READ", read)):
        if span is not None:
            counters |= {f"{api}_{calls}{call}S": 8, f"{api}_BYTES_{moved}": 8 * MIB}
            times[f"{api}_F_{call}_TIME"] = span[1] - span[0] if seconds is None else seconds
            times |= dict(zip(edges(api, call), span, strict=True))
    times |= dict(zip([*edges(api, "OPEN"), *edges(api, "CLOSE")], opened + closed, strict=True))
    return Record("MPI-IO" if api == "MPIIO" else api, path, rank, counters, times)


def edges(api: str, call: str) -> list[str]:
    return [f"{api}_F_{call}_{side}_TIMESTAMP" for side in ("START", "END")]


def log_of(folder: Path, *records: Record, nprocs: int = 4, **contents: object) -> DarshanLog:
    return read_log(write_log(folder / "a.darshan", nprocs=nprocs, records=records, **contents))


def elapsed_of(folder: Path, *records: Record, **contents: object) -> dict[str, list[float | None]]:
    """The elapsed seconds of the phases of each operation, by start."""
    found: dict[str, list[float | None]] = {}
    for phase in extract_phases(log_of(folder, *records, **contents)):
        elapsed = None if phase.elapsed_seconds is None else round(phase.elapsed_seconds, 6)
        found.setdefault(phase.operation, []).append(elapsed)
    return found


def posix_heatmap(*mib_in_bin: int, bin_seconds: float = 0.5) -> Heatmap:
    written = [mib * MIB for mib in mib_in_bin]
    return Heatmap("POSIX", 0, bin_seconds, written, [0] * len(written))


@pytest.mark.parametrize("api", ["POSIX", "STDIO", "MPIIO"])
def test_opens_and_closes_count(tmp_path: Path, api: str) -> None:
    file = record(api=api, write=(2, 4), opened=(1.5, 1.75), closed=(4.25, 4.5))
    assert elapsed_of(tmp_path, file) == {"write": [3.0]}


def test_files_count_from_the_first_open_to_the_last_close(tmp_path: Path) -> None:
    files = [
        record("/a", rank=0, write=(2, 4), opened=(1.5, 1.75), closed=(4, 4.25)),
        record("/b", rank=1, write=(3, 5), opened=(2.5, 2.75), closed=(5, 5.5)),
        record("/c", rank=2, write=(2, 3)),
    ]
    heat = posix_heatmap(*[1] * 12)
    assert elapsed_of(tmp_path, *files, heatmaps=[heat]) == {"write": [4.0]}


def test_a_pause_after_the_open_and_before_the_close_is_left_out(tmp_path: Path) -> None:
    file = record(write=(100, 104), opened=(1, 1.25), closed=(900, 900.5))
    assert elapsed_of(tmp_path, file) == {"write": [4.0]}


def test_fsync_before_the_close_is_not_a_pause(tmp_path: Path) -> None:
    """Darshan counts fsync in the time of writes, but not in the end of the last write."""
    file = record(write=(2, 4), opened=(2, 2), closed=(24, 24.5), seconds=21.5)
    assert elapsed_of(tmp_path, file) == {"write": [22.5]}
    # Beside a real pause only the time of the calls counts.
    file = record(write=(2, 4), opened=(2, 2), closed=(100, 100.5), seconds=21.5)
    assert elapsed_of(tmp_path, file) == {"write": [21.5]}


def test_a_slow_open_is_not_a_pause(tmp_path: Path) -> None:
    file = record(write=(8, 10), opened=(2, 8), closed=(10, 10), metadata=6)
    assert elapsed_of(tmp_path, file) == {"write": [8.0]}


def test_the_slowest_process_of_a_reduced_record_tells_how_long_fsync_takes(tmp_path: Path) -> None:
    file = record(rank=-1, write=(2, 4), opened=(2, 2), closed=(24, 24), seconds=22, slowest=22)
    assert elapsed_of(tmp_path, file) == {"write": [22.0]}


def test_a_write_ends_at_the_first_close_and_a_read_begins_at_the_last_open(tmp_path: Path) -> None:
    file = record(write=(2, 4), read=(8, 9), opened=(1.5, 7.5), closed=(4.5, 9.5))
    assert elapsed_of(tmp_path, file) == {"write": [3.0], "read": [2.0]}
    # The read comes first.
    file = record(read=(2, 4), write=(8, 9), opened=(1.5, 7.5), closed=(4.5, 9.5))
    assert elapsed_of(tmp_path, file) == {"read": [3.0], "write": [2.0]}


def test_one_open_for_a_write_and_a_read_belongs_to_the_first(tmp_path: Path) -> None:
    file = record(write=(2, 4), read=(8, 9), opened=(1.5, 1.75), closed=(9.5, 9.5))
    assert elapsed_of(tmp_path, file) == {"write": [2.5], "read": [1.5]}


def test_posix_tells_when_mpiio_opens_and_closes(tmp_path: Path) -> None:
    """MPI_File_open and MPI_File_close wait for processes that come later."""
    above = record(
        api="MPIIO", rank=-1, write=(10, 14), seconds=16, opened=(9.75, 9.9), closed=(14, 14.5)
    )
    below = [
        record(rank=rank, write=(10.5, 13), opened=(9.5 + rank, 9.9), closed=(14.5, 14.5))
        for rank in (0, 1)
    ]
    assert elapsed_of(tmp_path, above, *below) == {"write": [5.0]}
    assert elapsed_of(tmp_path, above) == {"write": [4.75]}


def test_pieces_of_a_file_count_without_the_pauses(tmp_path: Path) -> None:
    file = record(write=(0.5, 11), opened=(0.25, 0.5), closed=(11, 11.25), seconds=3)
    heat = posix_heatmap(0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1)
    assert elapsed_of(tmp_path, file, heatmaps=[heat]) == {"write": [1.75, 1.5, 1.75]}


def test_a_half_used_bin_counts_half(tmp_path: Path) -> None:
    file = record(write=(0, 10), seconds=3)
    heat = posix_heatmap(4, 4, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 4, 4, 4, 4)
    assert elapsed_of(tmp_path, file, heatmaps=[heat]) == {"write": [1.625, 2.75]}


def test_calls_that_no_piece_shows_are_fsync_of_all_pieces(tmp_path: Path) -> None:
    file = record(write=(0.5, 21), seconds=8.5, closed=(40, 40))
    heat = posix_heatmap(0, 1, 1, 1, *[0] * 16, 1, 1, 1, *[0] * 16, 1, 1, 1)
    found = elapsed_of(tmp_path, file, heatmaps=[heat])["write"]
    assert sum(seconds or 0 for seconds in found) == pytest.approx(8.5, abs=1e-5)


def test_a_piece_of_two_bins_takes_as_long_as_its_calls(tmp_path: Path) -> None:
    file = record(write=(0.1, 9.6), seconds=0.25)
    heat = posix_heatmap(1, 1, *[0] * 16, 1, 1)
    assert elapsed_of(tmp_path, file, heatmaps=[heat]) == {"write": [0.125, 0.125]}


# Not known


def test_a_log_that_cannot_show_pauses_tells_only_busy_files(tmp_path: Path) -> None:
    assert elapsed_of(tmp_path, record(write=(0, 100), seconds=60)) == {"write": [None]}
    assert elapsed_of(tmp_path, record(write=(0, 100), seconds=96)) == {"write": [100.0]}
    assert elapsed_of(tmp_path, record(write=(0, 1), seconds=0.1)) == {"write": [1.0]}


def test_a_heat_map_with_wide_bins_tells_only_busy_files(tmp_path: Path) -> None:
    wide = posix_heatmap(*[1] * 50, bin_seconds=2)
    narrow = posix_heatmap(*[1] * 100, bin_seconds=1)
    file = record(write=(0, 100), seconds=60)
    assert elapsed_of(tmp_path, file, heatmaps=[wide]) == {"write": [None]}
    assert elapsed_of(tmp_path, file, heatmaps=[narrow]) == {"write": [100.0]}


def test_pieces_of_wide_bins_may_contain_pauses(tmp_path: Path) -> None:
    heat = posix_heatmap(*[1] * 20, *[0] * 10, *[1] * 20, bin_seconds=2)
    file = record(write=(0, 100), seconds=30)
    assert elapsed_of(tmp_path, file, heatmaps=[heat]) == {"write": [None, None]}
    file = record(write=(0, 100), seconds=79)
    assert elapsed_of(tmp_path, file, heatmaps=[heat]) == {"write": [40.0, 40.0]}


def test_processes_one_after_another_show_that_there_is_no_pause(tmp_path: Path) -> None:
    files = [record(f"/{i}", write=(10 * i, 10 * i + 10)) for i in range(5)]
    idle = record("/idle", rank=1, write=(0, 50), seconds=1)
    assert elapsed_of(tmp_path, *files, idle) == {"write": [50.0]}


def test_the_end_of_the_last_access_may_be_missing(tmp_path: Path) -> None:
    assert elapsed_of(tmp_path, record(write=(5, 0), seconds=2)) == {"write": [None]}


def test_old_logs_lack_the_first_close_and_the_last_open(tmp_path: Path) -> None:
    log = log_of(tmp_path, record(write=(2, 4), read=(8, 9), opened=(1.5, 7.5), closed=(4.5, 9.5)))
    records = log.records["POSIX"]
    missing = ("POSIX_F_CLOSE_START_TIMESTAMP", "POSIX_F_OPEN_END_TIMESTAMP")
    old: Mapping[str, Records] = {
        "POSIX": replace(
            records,
            columns={name: at for name, at in records.columns.items() if name not in missing},
        )
    }
    phases = extract(replace(log, records=old)).phases
    assert [phase.elapsed_seconds for phase in phases] == [2.5, 1.5]


# Properties

TIMES = st.floats(0.001, 200).map(lambda seconds: round(seconds, 3))
HOSTILE = st.one_of(st.floats(), st.sampled_from([0.0, -1.0, 1e300, math.nan, math.inf]), TIMES)


@st.composite
def used_files(draw: st.DrawFn) -> list[dict[str, object]]:
    """Keywords of `record` for files as a program uses them: opened, written, closed."""
    files: list[dict[str, object]] = []
    for number in range(draw(st.integers(1, 5))):
        start, *steps = (draw(TIMES) for _ in range(5))
        opened, begin, end, closing, closed = np.cumsum([start, *steps]).tolist()
        share = draw(st.floats(0, 1))
        files.append(
            {
                "path": f"/{number}",
                "rank": draw(st.integers(0, 3)),
                "write": (begin, end),
                "opened": (opened, opened),
                "closed": (closing, closed),
                "seconds": share * (end - begin),
                "metadata": share * (closed - closing),
            }
        )
    return files


def shifted(file: Mapping[str, object], delay: float) -> dict[str, object]:
    spans = {
        key: tuple(time + delay for time in file[key]) for key in ("write", "opened", "closed")
    }
    return {**file, **spans}


# No sum of times in milliseconds is as long, so rounding errors do not matter.
_TIME_DISTANCE = 0.98765


def phases_with(folder: Path, files: Sequence[Mapping[str, object]]) -> list[Phase]:
    settings = ExtractionSettings(time_distance=_TIME_DISTANCE)
    return extract_phases(log_of(folder, *(record(**file) for file in files)), settings)


@given(used_files(), st.floats(0, 1000), st.randoms())
def test_times_and_order_of_records_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[dict[str, object]],
    delay: float,
    random: object,
) -> None:
    folder = tmp_path_factory.mktemp("property")
    expected = [phase.elapsed_seconds for phase in phases_with(folder, files)]
    later = [shifted(file, delay) for file in files]
    assert [p.elapsed_seconds for p in phases_with(folder, later)] == pytest.approx(
        expected, abs=1e-6
    )
    random.shuffle(files)
    assert [p.elapsed_seconds for p in phases_with(folder, files)] == expected


@given(used_files())
def test_elapsed_is_between_the_accesses_and_the_first_open_to_the_last_close(
    tmp_path_factory: pytest.TempPathFactory, files: list[dict[str, object]]
) -> None:
    phases = phases_with(tmp_path_factory.mktemp("property"), files)
    first = min(file["opened"][0] for file in files)
    last = max(file["closed"][1] for file in files)
    for phase in phases:
        if phase.elapsed_seconds is not None:
            assert phase.elapsed_seconds >= phase.end_seconds - phase.start_seconds - 1e-6
            assert phase.elapsed_seconds <= last - first + 1e-6
        else:
            # A pause may be hidden.
            assert last - first > _TIME_DISTANCE


@given(st.lists(HOSTILE, min_size=8, max_size=8))
def test_impossible_opens_and_closes_lose_nothing(
    tmp_path_factory: pytest.TempPathFactory, times: list[float]
) -> None:
    opened, closed = (times[0], times[1]), (times[2], times[3])
    file = record(
        write=(2, 4), opened=opened, closed=closed, metadata=times[4], slowest=times[5], rank=-1
    )
    [phase] = extract_phases(log_of(tmp_path_factory.mktemp("property"), file))
    assert phase.bytes == 8 * MIB
    assert phase.elapsed_seconds is None or 2 <= phase.elapsed_seconds < 1e12
