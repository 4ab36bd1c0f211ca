from __future__ import annotations

import csv
import math
import random
import statistics
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchdb.measurements.cells import OUTLIER_RULE, bimodal, modes, outliers, spread

# Inria RR-9366, Table 9: no I/O nodes, five runs each, MB/s.
HACC_IO = (488.3, 526.2, 331.5, 41971.4, 409.7)
HACC_IO_BENCHMARK = (370.1, 287.1, 52145.5, 50370.5, 383.0)

Forge = dict[tuple[str, ...], dict[str, list[float]]]

bandwidths = st.lists(st.floats(1e-3, 1e6), min_size=0, max_size=12)


def lognormal_cells(cv: float, repetitions: int, cells: int = 2000) -> list[list[float]]:
    """2,000 random cells of one mode with this coefficient of variation."""
    rng = random.Random(9366)
    sigma = math.sqrt(math.log(1 + cv * cv))
    return [[rng.lognormvariate(4, sigma) for _ in range(repetitions)] for _ in range(cells)]


@pytest.fixture(scope="module")
def marenostrum_gpfs(shared_data: Path) -> Forge:
    """Direct access on MareNostrum 4: bandwidths by configuration and population."""
    found: Forge = defaultdict(lambda: {"A": [], "B": []})
    with (shared_data / "forge" / "marenostrum-4-gpfs.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter=";"):
            names = ("clients", "processes", "layout", "spatiality", "request")
            key = tuple(row[name] for name in names)
            found[key][row["population"]].append(float(row["bandwidth"]))
    return found


def test_the_spread_is_the_coefficient_of_variation() -> None:
    values = [33.1, 45.9, 40.2, 38.8]
    assert spread(values) == pytest.approx(statistics.stdev(values) / statistics.fmean(values))


def test_one_repetition_has_no_spread() -> None:
    assert spread([5.0]) is None
    assert spread([]) is None
    assert spread([5.0, 5.0]) == 0


def test_hacc_io_in_the_report_is_bimodal_and_its_fast_run_not_an_outlier() -> None:
    assert bimodal(HACC_IO)
    assert modes(HACC_IO) == ((488.3, 526.2, 331.5, 409.7), (41971.4,))
    assert not any(outliers(HACC_IO))


def test_the_reports_benchmark_of_hacc_io_is_bimodal_and_has_no_outliers() -> None:
    assert modes(HACC_IO_BENCHMARK) == ((370.1, 287.1, 383.0), (52145.5, 50370.5))
    assert not any(outliers(HACC_IO_BENCHMARK))


def test_two_repetitions_are_never_two_modes() -> None:
    assert not bimodal([1.0, 1000.0])


def test_two_modes_of_two_repetitions_each_are_told_apart() -> None:
    assert modes([100.0, 210.0, 101.0, 205.0]) == ((100.0, 101.0), (210.0, 205.0))


@pytest.mark.parametrize(("last", "expected"), [(900.0, False), (1100.0, True)])
def test_a_single_repetition_is_a_mode_from_a_factor_of_ten_on(last: float, expected: bool) -> None:
    assert bimodal([98.0, 100.0, 100.0, last]) is expected


def test_a_gap_that_is_not_larger_than_the_range_of_a_mode_separates_nothing() -> None:
    assert not bimodal([10.0, 25.0, 60.0, 140.0])


@pytest.mark.parametrize("repetitions", range(2, 12))
def test_cells_of_the_usual_spread_are_never_bimodal(repetitions: int) -> None:
    assert not any(map(bimodal, lognormal_cells(0.16, repetitions)))


@pytest.mark.parametrize("repetitions", range(2, 12))
def test_hardly_any_noisy_cell_is_bimodal(repetitions: int) -> None:
    flagged = sum(map(bimodal, lognormal_cells(0.45, repetitions)))
    assert flagged <= (0.05 if repetitions < 7 else 0.02) * 2000


def test_direct_access_mixed_with_one_tenth_of_its_bandwidth_is_bimodal(
    marenostrum_gpfs: Forge,
) -> None:
    far = [
        cell["A"] + cell["B"]
        for cell in marenostrum_gpfs.values()
        if cell["A"] and cell["B"] and statistics.fmean(cell["A"]) > 7 * statistics.fmean(cell["B"])
    ]
    assert len(far) == 27
    assert sum(map(bimodal, far)) >= 24


def test_direct_access_by_itself_is_rarely_bimodal(marenostrum_gpfs: Forge) -> None:
    cells = [cell["A"] for cell in marenostrum_gpfs.values() if len(cell["A"]) > 2]
    assert sum(map(bimodal, cells)) <= 0.05 * len(cells)


def test_a_run_that_a_cache_served_is_an_outlier(shared_data: Path) -> None:
    with (shared_data / "testbed" / "benchmarks.csv").open(encoding="utf-8") as file:
        cell = [
            float(row["bandwidth_mib_s"])
            for row in csv.DictReader(file)
            if (row["name"], row["io_nodes"]) == ("r-shared-contig-1m", "2")
        ]
    assert [value for value, flag in zip(cell, outliers(cell), strict=True) if flag] == [max(cell)]
    assert max(cell) > 80


@pytest.mark.parametrize(
    "cell",
    [
        [100.0, 100.0, 100.0, 100.0, 104.0],
        [50.0, 50.001, 50.002, 49.999, 51.0, 50.0],
        [7.0] * 6,
    ],
    ids=str,
)
def test_repetitions_that_nearly_agree_have_no_outliers(cell: list[float]) -> None:
    assert not any(outliers(cell))


def test_fewer_than_five_repetitions_have_no_outliers() -> None:
    assert not any(outliers([100.0, 101.0, 99.0, 300.0]))
    assert any(outliers([100.0, 101.0, 99.0, 100.5, 300.0]))


def test_more_than_a_quarter_of_a_cell_are_no_outliers() -> None:
    assert not any(outliers([100.0, 101.0, 99.0, 102.0, 100.5, 150.0, 151.0]))
    assert sum(outliers([100.0, 101.0, 99.0, 102.0, 100.5, 100.2, 150.0, 151.0])) == 2


@pytest.mark.parametrize("cv", [0.05, 0.16, 0.45])
@pytest.mark.parametrize("repetitions", range(5, 12))
def test_the_rule_finds_an_outlier_in_at_most_one_normal_cell_of_twenty(
    cv: float, repetitions: int
) -> None:
    flagged = sum(any(outliers(cell)) for cell in lognormal_cells(cv, repetitions))
    assert flagged <= 0.06 * 2000


def test_the_rule_names_its_source_and_threshold() -> None:
    assert "Iglewicz and Hoaglin" in OUTLIER_RULE
    assert "3.5" in OUTLIER_RULE


@given(values=bandwidths)
def test_each_repetition_is_in_one_mode_and_modes_do_not_overlap(values: list[float]) -> None:
    found = modes(values)
    assert sorted(value for mode in found for value in mode) == sorted(values)
    assert bimodal(values) is (len(found) == 2)
    if len(found) == 2:
        assert max(found[0]) * 2 <= min(found[1])


@given(values=bandwidths, factor=st.sampled_from([0.25, 2.0, 1024.0]))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    scaled = [value * factor for value in values]
    assert bimodal(scaled) is bimodal(values)
    assert outliers(scaled) == outliers(values)


@given(values=bandwidths)
def test_outliers_do_not_depend_on_the_order_of_repetitions(values: list[float]) -> None:
    flags = dict(zip(values, outliers(values), strict=True))
    backwards = values[::-1]
    assert dict(zip(backwards, outliers(backwards), strict=True)) == flags
    assert len(outliers(values)) == len(values)
