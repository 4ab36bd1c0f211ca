"""Phases of many files take bytes / bandwidth(n) + files / rate(n), by rates of mdtest."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from benchdb.measurements.curves import Curve
from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from ior_configs import IorConfig
from predictor.curve.composing import observed_mib_s
from predictor.curve.estimates import as_expected, with_files
from predictor.curve.explanation import explain
from predictor.curve.prediction import Prediction, predict
from predictor.matching.file_times import FileTime, file_time
from predictor.model.gaussian import Posterior
from predictor.model.measurement_summary import read_summary
from predictor.model.system_model import SystemModel
from summario.phases.extract import extract_phases
from summario.phases.values import Part, Phase
from summario.reading.log import read_log

MIB = 1 << 20
CONFIG = IorConfig.from_command_line("mpiexec -n 8 ior -a POSIX -w -F -b 16m -t 1m -k").pattern()


def many_files(**changes: Any) -> Phase:
    """A phase in which 8 processes write 4,096 files of 4 KiB, 16 MiB, mostly metadata."""
    files = Phase(
        *(1, 0.0, 9.0, "write", None, 8, 8, 16 * MIB, 1.0, "POSIX", 4096, "contiguous", "unique"),
        n_files=4096,
        mode_processes=1,
        parts=(Part(4096, 16 * MIB),),
        metadata_seconds=7.0,
        fsync="none",
    )
    return replace(files, **changes)


def rate(io_nodes: int, files_per_s: float, **changes: Any) -> FileRate:
    """A rate of creating empty files with 8 processes."""
    return replace(FileRate("create", io_nodes, files_per_s, 8, 1, 512, False, 0), **changes)


def found(*rates: FileRate, phase: Phase | None = None, processes: int = 8) -> FileTime | None:
    return file_time(phase or many_files(), rates, processes, [0, 2])


def predicted(*rates: FileRate, phase: Phase | None = None) -> Prediction:
    curve = Curve(1, CONFIG, "ior", {0: (64.0,), 2: (32.0,)})
    knowledge = SystemModel((curve,), file_rates=rates)
    return predict([phase or many_files()], knowledge, system="here")


def seconds(prediction: Prediction) -> list[float]:
    return [point.time_s for point in prediction.curve]


def test_the_time_is_that_of_bytes_and_of_files() -> None:
    # 16 MiB with 64 and 32 MiB/s, and 4,096 files with 1,024 and 4,096 files/s.
    told = predicted(rate(0, 1024), rate(2, 4096))
    assert seconds(told) == pytest.approx([0.25 + 4, 0.5 + 1], rel=0.05)
    assert told.best.io_nodes == 2
    assert seconds(predicted()) == pytest.approx([0.25, 0.5])
    assert predicted().best.io_nodes == 0


def test_the_prediction_says_where_the_metadata_comes_from() -> None:
    told = " ".join(predicted(rate(0, 1024), rate(2, 4096)).warnings)
    assert "phase 0: metadata: 4,096 files, from mdtest (create, 8 processes" in told
    assert "no benchmark matches it exactly" not in told
    explained = " ".join(explain(predicted(rate(0, 1024), rate(2, 4096))))
    assert "metadata calls by the rates of mdtest" in explained
    flagged = " ".join(predicted(rate(0, 1024)).warnings)
    assert "no benchmark matches it exactly" in flagged
    assert "mdtest did not measure 2 I/O nodes, so its rates are not used" in flagged
    assert "mdtest" not in " ".join(predicted().warnings)


def test_bytes_that_mdtest_moved_have_no_bandwidth() -> None:
    whole = predicted(rate(0, 1024, bytes_per_file=4096), rate(2, 4096, bytes_per_file=4096))
    assert seconds(whole) == pytest.approx([4, 1], rel=0.05)
    half = predicted(rate(0, 1024, bytes_per_file=2048), rate(2, 4096, bytes_per_file=2048))
    assert seconds(half) == pytest.approx([0.125 + 4, 0.25 + 1], rel=0.05)


def test_rates_of_the_same_size_come_first_and_of_larger_files_never_count() -> None:
    larger = [rate(n, 1.0, bytes_per_file=1 << 20) for n in (0, 2)]
    assert found(*larger) is None
    same = [rate(n, 50.0, bytes_per_file=4096) for n in (0, 2)]
    chosen = found(*(rate(n, 99.0) for n in (0, 2)), *larger, *same)
    assert chosen is not None
    assert chosen.bytes_per_file == 4096
    # Files of 3,901 bytes take a block of 4 KiB, as files of 3,000 bytes do.
    block = [rate(n, 50.0, bytes_per_file=3901) for n in (0, 2)]
    assert found(*block, phase=many_files(bytes=4096 * 3000)) is not None


def test_the_nearest_number_of_processes_counts_and_is_corrected_by_its_root() -> None:
    near = found(
        *(rate(n, 100.0, tasks=16) for n in (0, 2)), *(rate(n, 9.0, tasks=2) for n in (0, 2))
    )
    assert near is not None
    assert near.files_per_s([0, 2]) == pytest.approx([100 / math.sqrt(2)] * 2)
    assert near.doubt == pytest.approx(math.log(2) / math.sqrt(12))
    assert found(*(rate(n, 9.0, tasks=64) for n in (0, 2))) is None


def test_numbers_between_measured_ones_are_interpolated() -> None:
    told = found(rate(0, 7.0), rate(2, 100.0), rate(8, 400.0))
    assert told is not None
    assert told.files_per_s([0, 1, 2, 4, 8, 16]) == pytest.approx([7, 100, 100, 200, 400, 400])


def test_a_wider_scatter_of_runs_makes_a_wider_interval() -> None:
    def width(*factors: float) -> float:
        rates = [rate(n, 1000.0 * by, bytes_per_file=4096) for n in (0, 2) for by in factors]
        [first, _] = predicted(*rates).curve
        return math.log(first.bandwidth_mib_s.p90 / first.bandwidth_mib_s.p10)

    # The standard deviation of ±0.5 is 0.71; p10 and p90 are 2.56 standard deviations apart, with
    # the doubt about the mean of two runs.
    wide = width(math.exp(-0.5), math.exp(0.5))
    assert wide == pytest.approx(2.56 * 0.71 * math.sqrt(1.5), rel=0.1)
    assert width(0.95, 1.05) < wide / 3


def test_the_doubt_about_rates_has_nothing_to_do_with_that_about_bandwidth() -> None:
    # Half of the time is that of bytes, half of files; both doubts are a standard deviation of 0.3.
    expected = Posterior(np.log([16.0]), np.array([[0.3**2]]), np.array([0.01]))
    random = np.random.default_rng(9366)
    [of_bytes] = as_expected(expected, [0.0], [{}], [0], random)
    of_files = FileTime("create", 1000, 0.0, 1.0, 8, 0, ((0, 16_000.0, 1),), 0.3, 0.0)
    together = with_files(of_bytes, of_files, [0])
    assert together.typical_mib_s == pytest.approx([8.0])
    assert together.doubt.std() == pytest.approx(0.3 / math.sqrt(2), rel=0.1)


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata_seconds": 0.5},
        {"metadata_seconds": None},
        {"file_access": "shared"},
        {"operation": "read"},
    ],
)
def test_other_phases_have_no_rates(changes: dict[str, Any]) -> None:
    rates = [rate(n, 100.0) for n in (0, 2)]
    assert found(*rates) is not None
    assert found(*rates, phase=many_files(**changes)) is None


def test_rates_that_are_set_apart_or_of_other_operations_do_not_count() -> None:
    assert found(*(rate(n, 9.0, used=False) for n in (0, 2))) is None
    assert found(*(rate(n, 9.0, operation="stat") for n in (0, 2))) is None
    reads = [rate(n, 9.0, operation="read") for n in (0, 2)]
    assert found(*reads, phase=many_files(operation="read")) is not None


def test_a_benchmark_of_the_same_sizes_opens_its_files_itself() -> None:
    same = replace(CONFIG, transfer_size=4096, block_size=4096, reorder_tasks=False)
    curve = Curve(1, same, "ior", {0: (64.0,), 2: (32.0,)})
    knowledge = SystemModel((curve,), file_rates=(rate(0, 1024), rate(2, 4096)))
    told = predict([many_files()], knowledge, system="here")
    assert seconds(told) == pytest.approx([0.25, 0.5])


def test_runs_of_mdtest_with_such_files_count_more_than_one_file_of_ior() -> None:
    # IOR's run of the same size has one file for each process; mdtest wrote as many as wanted.
    same = replace(CONFIG, transfer_size=4096, block_size=4096, reorder_tasks=False)
    curve = Curve(1, same, "ior", {0: (64.0,), 2: (32.0,)})
    rates = (rate(0, 1024, bytes_per_file=4096), rate(2, 4096, bytes_per_file=4096))
    told = predict([many_files()], SystemModel((curve,), file_rates=rates), system="here")
    assert seconds(told) == pytest.approx([4, 1], rel=0.05)


def test_the_rate_of_a_genuine_run_at_least_halves_the_error(shared_data: Path) -> None:
    """mdtest's own clock tells the time that Darshan measured for its 800 files."""
    text = (shared_data / "live" / "small-files.txt").read_text()
    _, rates = read_measurements(ResultFile("mdtest", text), ImportOptions("here", io_nodes=0))
    phases = extract_phases(read_log(shared_data / "live" / "small-files.darshan"))
    curve = Curve(1, replace(CONFIG, tasks=4), "ior", {0: (1500.0,)})
    got = observed_mib_s(phases)

    def error(*rates: Any) -> float:
        knowledge = SystemModel((curve,), file_rates=rates)
        [point] = predict(phases, knowledge, system="here").curve
        return abs(np.log(point.bandwidth_mib_s.mean / got))

    assert error(*rates) < error() / 2
    assert error(*rates) < 0.1


def test_a_prediction_reads_the_rates_of_its_system(database: Engine) -> None:
    rows = [Measurement(CONFIG, 0, 64.0), rate(0, 1024)]
    with transaction(database, write=True) as connection:
        store(connection, system="here", file="f", content=b"f", file_format="x", rows=rows)
    with transaction(database) as connection:
        summary = read_summary(connection, "here")
        ids = summary.near([CONFIG])
        assert summary.knowledge(connection, ids).file_rates == (rate(0, 1024),)
