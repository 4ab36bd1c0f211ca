"""Figures of insights tell what a log's own counters say, and nothing that it does not."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.insights.checks.record import to_record as checks_record
from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case, Thresholds
from ioncast.insights.figures.all_figures import figures_of
from ioncast.insights.figures.drawn import LONGEST_NAME, Drawn, short_name
from ioncast.insights.figures.drawn_case import characterised_case
from ioncast.insights.figures.ranks_record import MOST_RANGES
from ioncast_base.errors import IoncastError
from ioncast_base.pages.figures import Bars
from ioncast_base.pages.svg import drawing
from tests.ioncast.insights import published_logs as published
from tests.ioncast.insights.tables.test_hostile_counters import NPROCS, hostile_records
from tests.support.checking import facts_in
from tests.support.examples import examples
from tests.support.records import (
    CounterRecord,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

MIB = 1 << 20
FIXTURES = Path(__file__).resolve().parents[3] / "summario" / "fixtures"
HACC_FILE_BYTES, HACC_PROCESSES = 28_965_824, 8


def documents(log: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    case = Case(facts_in(log), Thresholds())
    return characterised_case(case), checks_record("a", run_checks(case), case.facts)


@cache
def of_hacc_io() -> tuple[dict[str, Any], dict[str, Any]]:
    return documents(FIXTURES / "hacc-posix-fpp-8x100k.darshan")


def drawn(log: Path) -> dict[str, Drawn]:
    run, checks = documents(log)
    return {each.key: each for each in figures_of(run, checks)}


def figures(folder: Path, *records: CounterRecord, **log: Any) -> dict[str, Drawn]:
    return drawn(write_log(folder / "a.darshan", list(records), **{"nprocs": 4} | log))


def column(found: Drawn, name: str) -> list[str]:
    place = [column.name for column in found.columns].index(name)
    return [row[place] for row in found.rows]


def bars_of(found: Drawn) -> list[Bars]:
    assert found.figure is not None
    return [series for series in found.figure.series if isinstance(series, Bars)]


def test_madbench_reads_and_writes_its_matrices_as_the_paper_says(tmp_path: Path) -> None:
    """Table III: 8 reads and 8 writes a process of 18.66 MiB; 81 % of the run time in MPI-IO."""
    found = drawn(published.madbench(tmp_path))
    for key in ("sizes-posix", "sizes-mpi-io"):
        sizes = found[key]
        assert sizes.said == (
            "All 8,192 reads move 10 MiB to 100 MiB each."
            " All 8,192 writes move 10 MiB to 100 MiB each."
        )
        assert dict(zip(column(sizes, "Size"), column(sizes, "Writes"), strict=True)) == {
            size: "8,192" if size == "10 MiB to 100 MiB" else "0" for size in column(sizes, "Size")
        }
    said = "A process spent 81 s in I/O on average, 81% of the run time: writes 51% and reads 49%."
    assert found["layers"].said == said
    assert column(found["layers"], "Share of the run time") == ["81%"]


def test_chombo_writes_a_thousandth_of_a_request_above_a_mebibyte(tmp_path: Path) -> None:
    """Figure 5: most requests have 10 KB to 1 MB, and none more."""
    sizes = drawn(published.chombo(tmp_path))["sizes-posix"]
    assert column(sizes, "Size")[3:5] == ["10 KiB to 100 KiB", "100 KiB to 1 MiB"]
    assert column(sizes, "Writes") == ["3", "0", "0", "50,000", "46,780", *5 * ["0"]]
    assert sizes.said == "52% of 96,783 writes move 10 KiB to 100 KiB each."


@pytest.mark.parametrize(
    ("name", "share", "seconds"),
    [("collective", "10%", 0.6), ("independent", "99%", 1426.47), ("sieving", "44%", 4.82)],
)
def test_the_time_of_s3d_is_that_of_the_paper(
    tmp_path: Path, name: str, share: str, seconds: float
) -> None:
    """Table VI: MPI-IO time per process over the run time."""
    layers = drawn(published.s3d(tmp_path, name))["layers"]
    assert column(layers, "Share of the run time") == [share]
    [writes] = bars_of(layers)
    assert writes.ends == pytest.approx([seconds])


def test_the_processes_of_hacc_io_move_the_same(tmp_path: Path) -> None:
    """Its manifest: 8 files of 28,965,824 bytes, each written by a process of its own."""
    found = drawn(FIXTURES / "hacc-posix-fpp-8x100k.darshan")
    ranks = found["ranks"]
    assert ranks.said.startswith("All 8 processes moved the same: 27.6 MiB each. Rank ")
    [moved, *_] = bars_of(ranks)
    assert moved.ends == pytest.approx(HACC_PROCESSES * [HACC_FILE_BYTES / MIB], abs=1e-4)
    assert column(found["files"], "Bytes written") == HACC_PROCESSES * ["27.6 MiB"]


def test_the_time_of_a_file_counts_at_its_highest_layer(tmp_path: Path) -> None:
    found = figures(
        tmp_path,
        mpiio_record("/f", COLL_WRITES=4, BYTES_WRITTEN=400, F_WRITE_TIME=6, F_META_TIME=2),
        posix_record("/f", WRITES=1, BYTES_WRITTEN=400, F_WRITE_TIME=5, F_META_TIME=1),
        posix_record("/g", WRITES=1, BYTES_WRITTEN=100, F_WRITE_TIME=1.5, F_META_TIME=0.5),
        run_seconds=10,
    )
    files = found["files"]
    assert column(files, "File") == ["/f", "/g"]
    assert column(files, "Write") == ["6 s", "1.5 s"]
    assert column(files, "Metadata") == ["2 s", "0.5 s"]
    assert files.said == "One of 2 files took 80% of the time and moved 80% of the bytes."
    assert found["layers"].said == (
        "A process spent 2.5 s in I/O on average, 25% of the run time: writes 75% and metadata"
        " 25%. MPI-IO took 80% of it."
    )
    # Each layer's own time, of which POSIX's is a part of MPI-IO's.
    assert column(found["layers"], "Together") == ["2 s", "2 s"]
    assert "contains the time of POSIX" in found["layers"].note


def test_a_small_file_that_takes_long_is_not_missing(tmp_path: Path) -> None:
    large = [
        posix_record(f"/large/{n}", WRITES=1, BYTES_WRITTEN=MIB + n, F_WRITE_TIME=0.01)
        for n in range(50)
    ]
    busy = posix_record("/lock", WRITES=1, BYTES_WRITTEN=1, F_META_TIME=30)
    files = figures(tmp_path, *large, busy)["files"]
    assert column(files, "File")[0] == "/lock"
    assert files.said == (
        "One of 51 files took 98% of the time and moved less than 1% of the bytes."
        " Another one moved 2% of the bytes."
    )
    assert column(files, "File")[1] == "/large/49"
    assert len(files.rows) < 51


def test_of_many_equal_files_none_stands_out(tmp_path: Path) -> None:
    records = [
        posix_record(f"/{n}", n % 4, WRITES=1, BYTES_WRITTEN=MIB, F_WRITE_TIME=0.01)
        for n in range(100)
    ]
    said = figures(tmp_path, *records)["files"].said
    assert said.startswith("No file stands out: each of the 100 took at most 1% of the time")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ([3, 1], "One of 2 files took 75% of the time"),
        ([2, 2], "One of 2 files took 50% of the time"),
        ([45, 30, 25], "One of 3 files took 45% of the time"),
        ([35, 33, 32], "No file stands out: each of the 3 took at most 35% of the time"),
        ([4, 2, 2, 2], "One of 4 files took 40% of the time"),
        ([35, 25, 20, 20], "No file stands out: each of the 4 took at most 35% of the time"),
    ],
)
def test_of_few_files_one_with_a_large_part_of_the_time_stands_out(
    tmp_path: Path, seconds: Sequence[float], said: str
) -> None:
    records = [
        posix_record(f"/{n}", n, WRITES=1, BYTES_WRITTEN=MIB, F_WRITE_TIME=of_file)
        for n, of_file in enumerate(seconds)
    ]
    assert figures(tmp_path, *records)["files"].said.startswith(said)


def test_one_of_two_files_with_two_thirds_of_the_time_stands_out(shared_data: Path) -> None:
    files = drawn(shared_data / "runs/logs/two-shared-10s.darshan")["files"]
    assert files.said == "One of 2 files took 66% of the time and moved 50% of the bytes."


def test_seconds_from_a_trace_are_said_to_lack_metadata_calls(shared_data: Path) -> None:
    """Rank 12 took most with 0.329 s, beside a mean of 0.463 s with metadata calls."""
    ranks = drawn(shared_data / "runs/logs/mpiio-coll-contig-dxt.darshan")["ranks"]
    assert "Rank 12 took most, 0.329 s" in ranks.said
    assert "The seconds are from its trace and lack metadata calls." in ranks.note


def test_a_run_without_io_has_no_balance_of_processes(shared_data: Path) -> None:
    log = "runtime_heatmap_inactive_ranks/treddy_runtime_heatmap_inactive_ranks.darshan"
    assert "ranks" not in drawn(shared_data / "darshan-logs" / log)


def test_a_rank_that_moves_almost_everything_is_named(tmp_path: Path) -> None:
    records = [
        posix_record(f"/{n}", n, WRITES=moved // MIB, BYTES_WRITTEN=moved, F_WRITE_TIME=seconds)
        for n, moved, seconds in [(0, 96 * MIB, 1.0), (1, 2 * MIB, 1.0), (3, 2 * MIB, 4.0)]
    ]
    ranks = figures(tmp_path, *records)["ranks"]
    assert ranks.said == "Rank 0 moved 96% of the bytes. Rank 3 took 67% of the time."
    assert column(ranks, "Bytes") == ["96 MiB", "2 MiB", "0 bytes", "2 MiB"]
    assert column(ranks, "Read, write and metadata") == ["1 s", "1 s", "0 s", "4 s"]
    assert ranks.findings == ("D01",)


def test_many_processes_are_ranges_with_the_least_the_mean_and_the_most(tmp_path: Path) -> None:
    processes = 4 * MOST_RANGES
    records = [
        posix_record(f"/{n}", n, WRITES=1, BYTES_WRITTEN=(n % 4) * MIB) for n in range(processes)
    ]
    ranks = figures(tmp_path, *records, nprocs=processes)["ranks"]
    assert column(ranks, "Ranks")[:2] == ["0 to 3", "4 to 7"]
    assert column(ranks, "Ranks")[-1] == "1,020 to 1,023"
    assert set(column(ranks, "Bytes")) == {"0 bytes · 1.5 MiB · 3 MiB"}
    [bars] = bars_of(ranks)
    assert bars.ends == MOST_RANGES * [1.5]


def test_numbers_of_processes_have_few_digits_and_show_the_same(tmp_path: Path) -> None:
    """A third of a second has 16 digits, of which a page shows 3; counts keep all of theirs."""
    processes = 3 * MOST_RANGES
    records = [
        posix_record(f"/{n}", n, WRITES=123_457, BYTES_WRITTEN=28_965_824 + n, F_WRITE_TIME=n / 7)
        for n in range(processes)
    ]
    run, _ = documents(write_log(tmp_path / "a.darshan", records, nprocs=processes))
    values = run["ranks"]["values"]
    for name in ("mean", "min", "max"):
        assert all(len(str(value)) <= len("0.123456") for value in values["io_seconds"][name])
    assert values["write_seconds"]["mean"] == pytest.approx(
        [(3 * n + 1) / 7 for n in range(MOST_RANGES)], rel=1e-4
    )
    assert set(values["requests"]["max"]) == {123_457}
    assert values["bytes"]["max"] == [28_965_824 + 3 * n + 2 for n in range(MOST_RANGES)]


def test_nothing_is_drawn_about_processes_that_the_log_does_not_tell_apart(tmp_path: Path) -> None:
    shared = posix_record(
        "/f",
        WRITES=4,
        BYTES_WRITTEN=4 * MIB,
        F_WRITE_TIME=4,
        SLOWEST_RANK=2,
        SLOWEST_RANK_BYTES=MIB,
        F_SLOWEST_RANK_TIME=2.5,
    )
    ranks = figures(tmp_path, shared)["ranks"]
    assert ranks.figure is None
    assert ranks.said.startswith("The log does not tell what each process did.")
    assert ranks.rows == (("/f", "4", "1 s", "2.5 s", "2", "2.5 ×"),)


def test_nothing_is_said_about_processes_of_which_the_log_tells_nothing(tmp_path: Path) -> None:
    opened = posix_record("/f", OPENS=4, F_META_TIME=1)
    reduced = posix_record("/g", READS=4, BYTES_READ=4, SLOWEST_RANK=-1)
    assert "ranks" not in figures(tmp_path, opened, reduced)


def test_a_single_process_has_no_balance(tmp_path: Path) -> None:
    record = posix_record("/f", 0, WRITES=1, BYTES_WRITTEN=1, F_WRITE_TIME=1)
    assert "ranks" not in figures(tmp_path, record, nprocs=1)


def test_a_run_without_files_has_no_figures(tmp_path: Path) -> None:
    assert figures(tmp_path, nprocs=1) == {}


def test_the_sizes_of_stdio_are_not_recorded(tmp_path: Path) -> None:
    stdio = stdio_record("/f", 0, WRITES=4, BYTES_WRITTEN=400)
    [sizes] = [each for key, each in figures(tmp_path, stdio).items() if "sizes" in key]
    assert (sizes.figure, sizes.rows) == (None, ())
    assert sizes.said == "Darshan does not record the sizes of STDIO requests."
    both = figures(tmp_path, stdio, posix_record("/g", WRITES=1, SIZE_WRITE_0_100=1))
    assert both["sizes-posix"].note == sizes.said


def test_a_single_request_is_the_only_one(tmp_path: Path) -> None:
    record = posix_record(
        "/f", READS=1, SIZE_READ_10M_100M=1, WRITES=2, SIZE_WRITE_0_100=2, BYTES_READ=20 * MIB
    )
    assert figures(tmp_path, record)["sizes-posix"].said == (
        "The only read moves 10 MiB to 100 MiB. All 2 writes move 0 to 100 bytes each."
    )


def test_a_few_large_requests_are_visible_beside_many_small_ones(tmp_path: Path) -> None:
    record = posix_record("/f", WRITES=90_001, SIZE_WRITE_0_100=90_000, SIZE_WRITE_1G_PLUS=1)
    sizes = figures(tmp_path, record)["sizes-posix"]
    assert sizes.said == "More than 99% of 90,001 writes move 0 to 100 bytes each."
    assert sizes.figure is not None
    [panel] = sizes.figure.panels
    [bars] = bars_of(sizes)
    assert panel.values.is_log
    # A 0 has a bar without length, and says 0.
    assert [(end or 0) > panel.values.low for end in bars.ends] == [True, *8 * [False], True]
    assert bars.labels[1] == "0"


@pytest.mark.parametrize(
    "name", ["/a" * 5000, "<img src=x onerror=alert(1)>", "\n\x1b[31m", "\u202e/x", "\udcff", ""]
)
def test_any_name_fits_above_a_bar(tmp_path: Path, name: str) -> None:
    shown = short_name(name)
    assert all(each.isprintable() for each in shown)
    assert len(shown) <= LONGEST_NAME
    assert short_name("/a/" + 60 * "x" + "/out.h5").endswith("/out.h5")


@given(st.lists(hostile_records(), min_size=1, max_size=6))
@settings(max_examples=examples(200), deadline=None)
def test_any_counters_give_figures_or_one_clear_error(records: Sequence[CounterRecord]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            log = write_log(Path(folder) / "a.darshan", records, nprocs=NPROCS)
            run, checks = documents(log)
        except IoncastError as error:
            assert "\n" not in str(error)
            return
    valid(run, checks)
    assert all(found.said for found in figures_of(run, checks))


HOSTILE = st.one_of(
    st.none(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(1 << 70), 1 << 70),
)


@given(st.data())
@settings(max_examples=examples(200), deadline=None)
def test_any_numbers_in_documents_give_figures(data: st.DataObject) -> None:
    run, checks = of_hacc_io()

    def replaced(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: replaced(each) for name, each in value.items()}
        if isinstance(value, list):
            return [replaced(each) for each in value]
        is_float = isinstance(value, float)
        return data.draw(HOSTILE) if is_float and data.draw(st.integers(0, 9)) == 0 else value

    valid(replaced(run), checks)


def valid(run: Mapping[str, Any], checks: Mapping[str, Any]) -> None:
    for found in figures_of(run, checks):
        if found.figure is not None:
            drawing(found.figure, found.key)
        assert all(len(row) == len(found.columns) for row in found.rows)
