"""The order of MPI-IO requests and the aggregators, with a made-up log for each rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Dxt, Heatmap, Record
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from tests.summario.phases.test_rules import MIB, NPROCS, log_of, times

CALLS = 10
REQUESTS = NPROCS * CALLS


def above(
    path: str = "/a", *, rank: int = -1, requests: int = REQUESTS, kind: str = "COLL", **more: int
) -> Record:
    """Writes of 1 MiB through MPI-IO."""
    counters = {f"MPIIO_{kind}_WRITES": requests, "MPIIO_BYTES_WRITTEN": requests * MIB}
    counters |= {f"MPIIO_{name}": count for name, count in more.items()}
    return Record("MPI-IO", path, rank, counters, times("MPIIO", "WRITE", 0, 1, 0.25))


def below(
    path: str = "/a",
    *,
    rank: int = -1,
    requests: int = REQUESTS,
    moved: int | None = None,
    consecutive: int = 0,
    sequential: int = REQUESTS - 1,
    idle: bool = False,
    **more: int,
) -> Record:
    """POSIX writes below it, by default interleaved ones."""
    counters = {
        "POSIX_WRITES": requests,
        "POSIX_BYTES_WRITTEN": requests * MIB if moved is None else moved,
        "POSIX_CONSEC_WRITES": consecutive,
        "POSIX_SEQ_WRITES": sequential,
        "POSIX_FASTEST_RANK_BYTES": 0 if idle else MIB,
        "POSIX_OPENS": 2 * NPROCS + 1,
    }
    counters |= {f"POSIX_{name}": count for name, count in more.items()}
    return Record("POSIX", path, rank, counters, times("POSIX", "WRITE", 0, 1, 0.25))


def phase_of(folder: Path, *records: Record, **contents: object) -> Phase:
    [phase] = extract_phases(log_of(folder, records, **contents))
    return phase


@pytest.mark.parametrize("kind", ["INDEP", "NB", "COLL", "SPLIT"])
@pytest.mark.parametrize(
    ("consecutive", "sequential", "expected"),
    [(36, 39, "contiguous"), (0, 39, "sequential"), (1, 20, "random")],
)
def test_the_order_is_that_of_posix_calls_that_are_the_requests(
    kind: str, consecutive: int, sequential: int, expected: str, tmp_path: Path
) -> None:
    calls = below(consecutive=consecutive, sequential=sequential)
    # IOR makes no collective requests in random order.
    is_collective = kind in ("COLL", "SPLIT")
    found = phase_of(tmp_path, above(kind=kind), calls).order
    assert found == (None if is_collective and expected == "random" else expected)


@pytest.mark.parametrize(
    ("sequential", "strides", "expected"),
    [(11, (16, 0), "sequential"), (8, (2, 2), "random")],
    ids=["-s 3 -b 256k", "-z -b 768k"],
)
def test_few_requests_that_are_written_and_read_keep_their_order(
    sequential: int, strides: tuple[int, int], expected: str, tmp_path: Path
) -> None:
    """Counters of IOR 4.0 with Darshan 3.5 for `mpiexec -n 4 ior -a MPIIO -w -r -t 256k`.

    MPI-IO opens the file once more for each open of IOR.
    """
    size, requests, seconds = MIB // 4, 12, times("POSIX", "WRITE", 0, 1, 0.25)
    counters = {
        "POSIX_OPENS": 18,
        "POSIX_RW_SWITCHES": 4,
        "POSIX_ACCESS1_ACCESS": size,
        "POSIX_ACCESS1_COUNT": 2 * requests,
        "POSIX_STRIDE1_COUNT": strides[0],
        "POSIX_STRIDE2_COUNT": strides[1],
        "POSIX_FASTEST_RANK_BYTES": 6 * size,
    }
    calls: dict[str, int] = {}
    for name, noun in (("WRITE", "WRITTEN"), ("READ", "READ")):
        counters |= {
            f"POSIX_{name}S": requests,
            f"POSIX_BYTES_{noun}": requests * size,
            f"POSIX_MAX_BYTE_{noun}": requests * size - 1,
            f"POSIX_SEQ_{name}S": sequential,
            f"POSIX_SIZE_{name}_100K_1M": requests,
        }
        calls |= {f"MPIIO_INDEP_{name}S": requests, f"MPIIO_BYTES_{noun}": requests * size}
    log = log_of(
        tmp_path,
        [
            Record("POSIX", "/a", -1, counters, seconds | times("POSIX", "READ", 1, 2, 0.25)),
            Record(
                "MPI-IO",
                "/a",
                -1,
                calls,
                times("MPIIO", "WRITE", 0, 1, 0.25) | times("MPIIO", "READ", 1, 2, 0.25),
            ),
        ],
    )
    assert [phase.order for phase in extract_phases(log)] == [expected, expected]


@pytest.mark.parametrize(
    "calls",
    [
        below(requests=REQUESTS // 2, moved=REQUESTS * MIB, sequential=19),
        below(moved=REQUESTS * MIB + 1),
        below(moved=REQUESTS * MIB - 1),
        below(requests=2 * REQUESTS, moved=REQUESTS * MIB, sequential=79),
    ],
    ids=["fewer requests", "more bytes", "fewer bytes", "more requests"],
)
def test_other_requests_or_bytes_below_independent_ones_tell_nothing(
    calls: Record, tmp_path: Path
) -> None:
    assert phase_of(tmp_path, above(kind="INDEP"), calls).order is None


@pytest.mark.parametrize("module", ["POSIX", "MPI-IO"])
def test_records_that_are_missing_tell_nothing(module: str, tmp_path: Path) -> None:
    records = above(kind="INDEP"), below()
    assert phase_of(tmp_path, *records).order == "sequential"
    assert phase_of(tmp_path, *records, partial_modules=[module]).order is None


def test_without_posix_records_the_order_is_not_known(tmp_path: Path) -> None:
    phase = phase_of(tmp_path, above())
    assert (phase.spatiality, phase.order, phase.aggregators) == ("collective", None, None)
    other = replace(below("/b"), counters={"POSIX_OPENS": 4})
    assert phase_of(tmp_path, above(), other).order is None


def test_a_file_without_posix_records_does_not_get_the_order_of_another_file(
    tmp_path: Path,
) -> None:
    records = above("/a", kind="INDEP"), above("/b", kind="INDEP"), below("/b")
    assert phase_of(tmp_path, *records).order is None


def test_an_idle_process_does_not_make_independent_requests_aggregated(tmp_path: Path) -> None:
    assert phase_of(tmp_path, above(kind="INDEP"), below(idle=True)).order == "sequential"


@pytest.mark.parametrize(
    ("back", "expected"),
    [(0, "sequential"), (8, "sequential"), (9, None), (29, None), (30, "contiguous")],
)
def test_without_a_heat_map_all_processes_may_be_aggregators(
    back: int, expected: str | None, tmp_path: Path
) -> None:
    # After the first of 10 collective calls, 80 % of 4 processes go back 9 times in blocks.
    calls = below(moved=3 * REQUESTS * MIB, sequential=REQUESTS - back, idle=True)
    assert phase_of(tmp_path, above(), calls).order == expected


def heatmaps(*mib_of_ranks: int, bins: int = 1) -> list[Heatmap]:
    return [
        Heatmap("POSIX", rank, 1.0, [mib * MIB] * bins, [0] * bins)
        for rank, mib in enumerate(mib_of_ranks)
    ]


@pytest.mark.parametrize(
    ("back", "order"),
    [(0, "sequential"), (8, "sequential"), (9, None), (15, None), (16, "contiguous")],
)
def test_the_heat_map_counts_the_aggregators(back: int, order: str | None, tmp_path: Path) -> None:
    calls = below(sequential=REQUESTS - back, idle=True)
    phase = phase_of(tmp_path, above(), calls, heatmaps=heatmaps(20, 20, 0, 0))
    assert (phase.order, phase.aggregators) == (order, 2)


@pytest.mark.parametrize(("others", "expected"), [(4, 3), (5, None)])
def test_a_heat_map_with_many_bytes_of_other_files_counts_nothing(
    others: int, expected: int | None, tmp_path: Path
) -> None:
    maps = heatmaps(20, 20, others, 0)
    assert phase_of(tmp_path, above(), below(idle=True), heatmaps=maps).aggregators == expected


def test_the_writer_of_a_header_is_not_an_aggregator(tmp_path: Path) -> None:
    header = Heatmap("POSIX", 3, 1.0, [MIB // 10], [0])
    maps = [*heatmaps(20, 20, 0), header]
    assert phase_of(tmp_path, above(), below(idle=True), heatmaps=maps).aggregators == 2


def test_a_damaged_heat_map_counts_nothing(tmp_path: Path) -> None:
    maps = [replace(each, write_bins=[-MIB]) for each in heatmaps(20, 20, 0, 0)]
    assert phase_of(tmp_path, above(), below(idle=True), heatmaps=maps).aggregators is None


def test_records_of_single_ranks_count_the_aggregators(tmp_path: Path) -> None:
    calls = [below(rank=rank, requests=20, sequential=20 - rank) for rank in (0, 1)]
    phase = phase_of(tmp_path, above(), *calls)
    assert (phase.order, phase.aggregators) == ("sequential", 2)


def segments(*offsets_mib: int) -> list[tuple[int, int, float, float]]:
    return [
        (mib * MIB, MIB, place / 100, (place + 0.5) / 100) for place, mib in enumerate(offsets_mib)
    ]


def traced(module: str, offsets_of_ranks: Sequence[Sequence[int]]) -> list[Dxt]:
    return [
        Dxt(module, "/a", rank, "node", segments(*offsets))
        for rank, offsets in enumerate(offsets_of_ranks)
    ]


BLOCKS = [range(rank * CALLS, (rank + 1) * CALLS) for rank in range(NPROCS)]
INTERLEAVED = [range(rank, REQUESTS, NPROCS) for rank in range(NPROCS)]
BACKWARDS = [range(REQUESTS - 1 - rank, -1, -NPROCS) for rank in range(NPROCS)]


@pytest.mark.parametrize(
    ("offsets", "kind", "expected"),
    [
        (BLOCKS, "INDEP", "contiguous"),
        (INTERLEAVED, "INDEP", "sequential"),
        (BACKWARDS, "INDEP", "random"),
        (BLOCKS, "COLL", "contiguous"),
        (INTERLEAVED, "COLL", "sequential"),
        (BACKWARDS, "COLL", None),
        (BLOCKS[:3], "INDEP", None),
    ],
)
def test_a_trace_with_all_requests_tells_the_order(
    offsets: Sequence[Sequence[int]], kind: str, expected: str | None, tmp_path: Path
) -> None:
    # More bytes below than above, as with data sieving.
    calls = below(moved=3 * REQUESTS * MIB, sequential=REQUESTS - 10, idle=True)
    trace = traced("DXT_MPIIO", offsets)
    assert phase_of(tmp_path, above(kind=kind), calls, dxt=trace).order == expected


def test_a_trace_does_not_tell_where_a_view_spreads_a_request(tmp_path: Path) -> None:
    calls = below(moved=3 * REQUESTS * MIB)
    records = above(kind="INDEP", VIEWS=4), calls
    assert phase_of(tmp_path, *records, dxt=traced("DXT_MPIIO", BLOCKS)).order is None


def test_a_trace_counts_the_aggregators(tmp_path: Path) -> None:
    trace = traced("DXT_POSIX", [range(20), range(20)])
    assert phase_of(tmp_path, above(), below(idle=True), dxt=trace).aggregators == 2
    assert phase_of(tmp_path, above(), below(idle=True), dxt=trace[:1]).aggregators is None


def test_one_request_of_each_process_is_contiguous_unless_a_view_spreads_it(
    tmp_path: Path,
) -> None:
    calls = below(requests=2, moved=NPROCS * MIB, sequential=1, idle=True)
    assert phase_of(tmp_path, above(requests=NPROCS), calls).order == "contiguous"
    assert phase_of(tmp_path, above(requests=NPROCS, VIEWS=4), calls).order is None


def test_a_phase_of_files_in_different_orders_has_an_unknown_order(tmp_path: Path) -> None:
    blocks = [above("/a", kind="INDEP"), below("/a", consecutive=36)]

    def strided(requests: int) -> list[Record]:
        calls = below("/b", requests=requests, sequential=requests - 1)
        return [above("/b", kind="INDEP", requests=requests), calls]

    assert phase_of(tmp_path, *blocks, *strided(40)).order is None
    assert phase_of(tmp_path, *blocks, *strided(10)).order == "contiguous"


@pytest.mark.parametrize("count", [-1, -(2**63), 2**63 - 1])
def test_impossible_strides_change_nothing(count: int, tmp_path: Path) -> None:
    calls = below(consecutive=36, STRIDE1_COUNT=count, STRIDE2_COUNT=count)
    assert phase_of(tmp_path, above(), calls).order == "contiguous"


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    of_ranks=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=NPROCS, max_size=NPROCS
    ),
    order=st.permutations(range(NPROCS)),
    kind=st.sampled_from(["INDEP", "COLL"]),
)
def test_the_order_of_the_ranks_and_the_reduction_of_their_records_change_nothing(
    of_ranks: list[tuple[int, int]], order: list[int], kind: str
) -> None:
    def found(ranks: Sequence[int]) -> Phase:
        records = []
        for rank, (one, other) in zip(ranks, of_ranks, strict=True):
            orders = {"consecutive": min(one, other), "sequential": max(one, other)}
            records.append(above(rank=rank, requests=CALLS, kind=kind))
            records.append(below(rank=rank, requests=CALLS, OPENS=3, **orders))
        with TemporaryDirectory() as folder:
            return phase_of(Path(folder), *records)

    def reduced() -> Phase:
        consecutive = sum(map(min, of_ranks))
        sequential = sum(map(max, of_ranks))
        calls = below(consecutive=consecutive, sequential=sequential, OPENS=3 * NPROCS)
        with TemporaryDirectory() as folder:
            return phase_of(Path(folder), above(kind=kind), calls)

    assert found(order).order == found(range(NPROCS)).order == reduced().order
    assert found(order).aggregators == (NPROCS if kind == "COLL" else None)
