from __future__ import annotations

import csv
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchdb.measurements.curves import Curve, curves
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import store
from benchdb.store.database import open_database, transaction
from ioncast_base.errors import InputError
from predictor.curve.prediction import DecisionRules, EarlierRun, Prediction, predict
from predictor.curve.prediction_formats import to_json
from predictor.model.fitting import fit_model
from predictor.model.system_model import Model, SystemModel
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import read_log

MIB = 1 << 20
TESTBED = Path(__file__).resolve().parents[3] / "experiments" / "data" / "testbed"
IO_NODES = (0, 1, 2, 4, 8)
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


def flat(**values: float) -> dict[int, tuple[float, ...]]:
    """Make a curve with one repetition for each number of I/O nodes: n0=…, n1=…."""
    return {int(name[1:]): (value,) for name, value in values.items()}


def known(*curves: Curve) -> SystemModel:
    """Use measured curves without a model, as RR-9366 does."""
    return SystemModel(curves)


def strict_json(prediction: Prediction) -> dict:
    text = json.dumps(to_json(prediction), allow_nan=False)
    record: dict = json.loads(text)
    return record


def test_the_json_has_the_shape_that_programs_rely_on(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phases = [a_phase(), a_phase(operation="read", start_seconds=2.0)]
    record = strict_json(
        predict(phases, known(a_curve(flat(n0=50, n4=75))), system="here", nodes=8)
    )
    assert list(record) == [
        *("system", "job", "nodes", "nodes_source", "curve", "best", "decision"),
        *("own_run", "earlier_run", "phases", "warnings"),
    ]
    assert (record["system"], record["job"]) == ("here", 1)
    for point in record["curve"]:
        assert list(point) == ["io_nodes", "bandwidth_mib_s", "time_s", "basis"]
        assert list(point["bandwidth_mib_s"]) == ["p10", "median", "mean", "p90"]
    assert list(record["best"]) == ["io_nodes", "bandwidth_mib_s", "why"]
    assert list(record["decision"]) == [
        *("io_nodes", "source", "bandwidth_mib_s", "tolerance", "within_10_percent", "why")
    ]
    assert len(record["phases"]) == 2
    for phase in record["phases"]:
        assert list(phase) == ["phase", "parts", "time_s", "match"]
        assert set(phase["match"]) >= {"kind", "config", "distance"}
        assert set(phase["phase"]) >= {"start", "end", "type", "bytes", "api", "spatiality"}
        for part in phase["parts"]:
            assert set(part) >= {"request_bytes", "requests", "bytes"}
    assert all(isinstance(warning, str) for warning in record["warnings"])


def test_the_json_says_what_is_predicted(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    record = strict_json(
        predict([a_phase()], known(a_curve(flat(n0=32, n4=64))), system="here", nodes=8)
    )
    assert record["curve"] == [
        {
            "io_nodes": n,
            "bandwidth_mib_s": dict.fromkeys(("p10", "median", "mean", "p90"), bandwidth),
            "time_s": 64 / bandwidth,
            "basis": "measured",
        }
        for n, bandwidth in ((0, 32.0), (4, 64.0))
    ]
    assert record["best"]["io_nodes"] == 4
    assert record["best"]["bandwidth_mib_s"] == 64.0
    match = record["phases"][0]["match"]
    assert (match["kind"], match["distance"]) == ("exact", 0)
    assert match["config"] == "mpiexec -n 16 ior -a POSIX -w -b 4m -t 1m"
    assert record["warnings"] == []


def test_a_phase_is_said_to_match_as_its_largest_part(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phase = a_phase((16, 16 * 4096), (64, 64 * MIB))
    record = strict_json(predict([phase], known(a_curve()), system="here", nodes=8))
    [found] = record["phases"]
    assert found["match"]["kind"] == "exact"
    assert [part["match"]["kind"] for part in found["parts"]] == ["interpolated", "exact"]


def test_phases_take_their_times_one_after_the_other(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phases = [a_phase(), a_phase(operation="read")]
    curves = (a_curve(flat(n0=32, n1=16)), a_curve(flat(n0=64, n1=64), read=True))
    found = predict(phases, known(*curves), system="here", nodes=8)
    assert [(p.io_nodes, p.time_s) for p in found.curve] == [(0, 3.0), (1, 5.0)]
    assert [p.bandwidth_mib_s.mean for p in found.curve] == [128 / 3, 128 / 5]


def test_the_draws_of_a_phase_stay_the_same(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    """Their seeds come from the kind of I/O as text; with another text all intervals change."""
    curve = a_curve({0: (20.0, 21.0, 23.0, 27.0, 22.0, 21.5, 22.25)})
    smaller = a_phase((32, 32 * MIB))
    phases = [a_phase(), smaller, a_phase(start_seconds=5.5, end_seconds=6.5)]
    for order in (phases, phases[::-1]):
        [point] = predict(order, known(curve), system="here", nodes=8).curve
        found = point.bandwidth_mib_s
        assert (found.p10, found.median, found.p90) == pytest.approx(
            (20.945359930615787, 22.03374289381992, 23.881729067831287)
        )


def test_a_phase_that_nothing_resembles_is_left_out_and_said(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    known_phase = a_phase()
    unknown_phase = a_phase((16, 16 * MIB), operation="read")
    curve = a_curve(flat(n0=32, n1=16))
    found = predict([known_phase, unknown_phase], known(curve), system="here", nodes=8)
    alone = predict([known_phase], known(curve), system="here", nodes=8)
    assert [(point.io_nodes, point.time_s) for point in found.curve] == [
        (point.io_nodes, point.time_s) for point in alone.curve
    ]
    # With the second phase, not every part was measured.
    assert {point.basis for point in alone.curve} == {"measured"}
    assert {point.basis for point in found.curve} == {"model"}
    assert [phase.main.kind for phase in found.phases] == ["exact", "unknown"]
    [warning] = found.warnings
    assert "20.0%" in warning
    record = strict_json(found)["phases"][1]["match"]
    assert (record["kind"], record["config"], record["distance"]) == ("unknown", None, None)


@pytest.mark.parametrize(
    ("unknown_mib", "default", "ran_with", "answer"),
    [
        (64, 1, (), (0, "model")),
        (65, 1, (), (1, "default")),
        (64 * 49, 1, (), (1, "default")),
        (64 * 49, None, (), (None, "none")),
        # Three runs with two numbers of I/O nodes show what the unknown part does.
        (64 * 49, 1, (0, 1, 1), (0, "model")),
        (64 * 49, 1, (0, 1), (1, "default")),
        (64 * 49, 1, (1, 1, 1), (1, "default")),
    ],
)
def test_a_decision_needs_benchmarks_of_half_of_the_bytes_or_runs(
    a_phase: MakePhase,
    a_curve: MakeCurve,
    unknown_mib: int,
    default: int | None,
    ran_with: tuple[int, ...],
    answer: tuple[int | None, str],
) -> None:
    unknown_phase = a_phase((unknown_mib, unknown_mib * MIB), operation="read")
    found = predict(
        [a_phase(), unknown_phase],
        known(a_curve(flat(n0=32, n1=16))),
        system="here",
        nodes=8,
        earlier=[EarlierRun(n, 32.0 / (1 + n)) for n in ran_with],
        policy=DecisionRules(default=default),
    )
    assert (found.decision.io_nodes, found.decision.source) == answer
    # The curve of the known part stays.
    assert found.best.io_nodes == 0
    if answer[1] != "model":
        share = "2%" if unknown_mib > 65 else "49%"
        assert f"only {share} of the bytes have a benchmark" in found.decision.why


@pytest.mark.parametrize("other", [False, True])
def test_where_nothing_is_known_nothing_is_predicted(
    a_phase: MakePhase, a_curve: MakeCurve, other: bool
) -> None:
    nothing_like_it = [a_curve(read=True)] if other else []
    found = predict([a_phase()], known(*nothing_like_it), system="here", nodes=8)
    assert found.curve == ()
    assert (found.best.io_nodes, found.best.bandwidth_mib_s) == (None, None)
    assert found.best.why
    assert any("100.0%" in warning for warning in found.warnings)
    assert (found.decision.source, found.decision.io_nodes) == ("none", None)
    strict_json(found)
    told = predict(
        [a_phase()], known(*nothing_like_it), system="here", policy=DecisionRules(default=2)
    )
    assert (told.decision.source, told.decision.io_nodes) == ("default", 2)


NEVER_MEASURED = [(4, 70.0), (4, 72.0), (0, 20.0), (0, 21.0)]


@pytest.mark.parametrize("count", [0, 2, 3, 4])
def test_without_a_benchmark_runs_with_two_numbers_decide(
    a_phase: MakePhase, a_curve: MakeCurve, count: int
) -> None:
    """The benchmarks say 8 and much more, but of another kind of I/O."""
    other = known(a_curve(flat(n0=400, n4=700, n8=900), read=True))
    found = predict(
        [a_phase()],
        other,
        system="here",
        nodes=8,
        earlier=[EarlierRun(*one) for one in NEVER_MEASURED[:count]],
        policy=DecisionRules(default=0),
    )
    if count < 3:
        assert (found.curve, found.decision.source) == ((), "default")
        return
    assert found.decision.source == "model"
    assert found.decision.io_nodes != 0
    expected = {point.io_nodes: point.bandwidth_mib_s for point in found.curve}
    assert list(expected) == [0, 4, 8]
    for io_nodes, got in NEVER_MEASURED[:3]:
        assert expected[io_nodes].mean == pytest.approx(got, rel=0.2)
    # Nobody ran it with 8.
    assert expected[8].p90 / expected[8].p10 > 1.5 * expected[4].p90 / expected[4].p10
    assert "by earlier runs alone" in found.best.why
    [warning] = found.warnings
    assert "the mean of all benchmarks, corrected by earlier runs" in warning
    strict_json(found)


def test_without_a_benchmark_a_number_that_no_benchmark_had_is_not_predicted(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    other = known(a_curve(flat(n0=400, n4=700), read=True), a_curve(flat(n4=70), read=True))
    runs = [EarlierRun(*one) for one in [*NEVER_MEASURED, (2, 50.0)]]
    found = predict([a_phase()], other, system="here", earlier=runs)
    assert [point.io_nodes for point in found.curve] == [0, 4]
    asked = predict([a_phase()], other, system="here", earlier=runs, io_nodes=[4, 16])
    assert [point.io_nodes for point in asked.curve] == [4]


def test_a_run_without_io_has_no_prediction(a_curve: MakeCurve) -> None:
    found = predict([], known(a_curve()), system="here")
    assert (found.job, found.curve, found.best.io_nodes) == (None, (), None)
    assert found.best.why == "the run has no I/O phases"


def test_a_run_that_moved_no_bytes_has_no_prediction(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    found = predict([a_phase((4, 0), operation="read")], known(a_curve(read=True)), system="here")
    assert found.best.io_nodes is None
    strict_json(found)


def test_the_best_is_the_highest_mean(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    curve = a_curve({0: (10, 90), 1: (30, 30), 2: (25, 35)})
    found = predict([a_phase()], known(curve), system="here", nodes=8)
    # The mean times give 18, 30 and 29.2 MiB/s, although 0 has the highest mean of bandwidths.
    assert found.best.io_nodes == 1
    assert found.best.bandwidth_mib_s == pytest.approx(30)


@given(values=st.lists(st.integers(1, 5), min_size=1, max_size=9))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_equally_good_numbers_the_fewest_io_nodes_are_best(
    a_phase: MakePhase, a_curve: MakeCurve, values: list[int]
) -> None:
    curve = a_curve({n: (float(value),) for n, value in enumerate(values)})
    expected = values.index(max(values))
    for asked in (None, list(range(len(values)))[::-1]):
        found = predict([a_phase()], known(curve), system="here", nodes=8, io_nodes=asked)
        assert found.best.io_nodes == expected


def test_how_often_a_benchmark_was_repeated_breaks_no_tie(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    for speed in (0.1, 0.7, 30.0, 33.3):
        for repetitions in ((1, 2, 7), (3, 1, 1), (7, 3, 2), (2, 3, 5)):
            curve = a_curve({n: (speed,) * count for n, count in enumerate(repetitions)})
            found = predict([a_phase((64, 64 * MIB), (9, 5 * MIB))], known(curve), system="here")
            assert found.best.io_nodes == 0


def test_only_the_numbers_asked_for_are_predicted(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    curve = a_curve(flat(n0=10, n1=20, n2=30, n4=40))
    found = predict([a_phase()], known(curve), system="here", nodes=8, io_nodes=[1, 2])
    assert [point.io_nodes for point in found.curve] == [1, 2]
    assert found.best.io_nodes == 2
    assert found.warnings == ()


def test_a_number_that_was_not_measured_is_not_invented(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    found = predict(
        [a_phase()], known(a_curve(flat(n0=10))), system="here", nodes=8, io_nodes=[0, 3, 7]
    )
    assert [point.io_nodes for point in found.curve] == [0]
    [warning] = found.warnings
    assert "3, 7" in warning


def test_the_curve_is_where_all_benchmarks_were_measured(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    curves = (a_curve(flat(n0=10, n1=20)), a_curve(flat(n1=10, n2=20), read=True))
    phases = [a_phase(), a_phase(operation="read")]
    found = predict(phases, known(*curves), system="here", nodes=8)
    assert [point.io_nodes for point in found.curve] == [1]


def test_benchmarks_with_nothing_in_common_give_no_prediction(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    curves = (a_curve(flat(n0=10)), a_curve(flat(n2=20), read=True))
    phases = [a_phase(), a_phase(operation="read")]
    found = predict(phases, known(*curves), system="here", nodes=8)
    assert (found.curve, found.best.io_nodes) == ((), None)
    assert "do not cover" in found.best.why


def test_phases_of_several_jobs_are_rejected(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    with pytest.raises(InputError, match="2 jobs"):
        predict([a_phase(), a_phase(job=2)], known(a_curve()), system="here")


def test_curves_of_several_engines_are_rejected(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    with pytest.raises(InputError, match="several engines: fio, ior"):
        predict([a_phase()], known(a_curve(), a_curve(engine="fio")), system="here")


def test_a_job_without_its_nodes_is_predicted_with_a_warning(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    found = predict([a_phase()], known(a_curve()), system="here")
    assert found.phases[0].main.kind == "exact"
    assert any("nodes" in warning for warning in found.warnings)


def test_a_benchmark_far_off_is_said_to_be(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    curve = a_curve(transfer_size=8192)
    found = predict([a_phase()], known(curve), system="here", nodes=8)
    assert any("far off" in warning and "request size" in warning for warning in found.warnings)


def test_a_phase_that_darshan_cut_short_is_said_to_be(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    found = predict([a_phase(partial=True)], known(a_curve()), system="here", nodes=8)
    assert len(found.warnings) == 1


def test_stdio_is_said_to_be_predicted_from_posix(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    found = predict([a_phase(api="STDIO")], known(a_curve()), system="here", nodes=8)
    assert found.phases[0].main.kind == "exact"
    assert any("stdio" in warning.lower() for warning in found.warnings)


SMALL_FILES = {
    "file_access": "unique",
    "n_files": 900,
    "mode_processes": 1,
    "nprocs": 1,
    "processes": 1,
    "io_time_seconds": 0.02,
}


def test_many_small_files_are_said_and_are_not_one_file_of_a_benchmark(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    """900 files of 4 KiB of one process are 900 small files of IOR, not its file of 3.6 MB."""
    parts = (900, 900 * 4096)
    one_by_one = {"tasks": 1, "nodes": 1, "file_per_process": True, "transfer_size": 4096}
    large = a_curve(**one_by_one, block_size=900 * 4096)
    found = predict([a_phase(parts, **SMALL_FILES)], known(large), system="here", nodes=1)
    assert found.phases[0].main.kind == "interpolated"
    curve = a_curve(**one_by_one, block_size=4096)
    with_little = a_phase(parts, **SMALL_FILES, metadata_seconds=0.01)
    found = predict([with_little], known(curve), system="here", nodes=1)
    assert (found.phases[0].main.kind, found.warnings) == ("exact", ())
    assert {point.basis for point in found.curve} == {"measured"}
    with_much = a_phase(parts, **SMALL_FILES, metadata_seconds=0.345)
    found = predict([with_much], known(curve), system="here", nodes=1)
    assert found.phases[0].main.kind == "interpolated"
    assert {point.basis for point in found.curve} == {"model"}
    assert found.warnings == (
        "phase 0: metadata calls (open, close, stat and others) on its 900 files take 0.345 s,"
        " longer than its reads and writes (0.02 s); IOR only opens and closes each file, so no"
        " benchmark matches it exactly",
    )
    record = strict_json(found)
    assert record["warnings"] == list(found.warnings)
    assert record["phases"][0]["phase"]["metadata_time"] == 0.345


def test_a_phase_of_metadata_changes_nothing_for_a_phase_of_the_same_sizes(
    synthetic: Any, fitted: Model, a_phase: MakePhase
) -> None:
    measured = SystemModel(synthetic.curves, fitted)
    config = synthetic.curves[0].config
    requests = config.requests_per_process * config.tasks
    part = (requests, requests * config.transfer_size)
    usual = a_phase(
        part,
        file_access=config.file_access,
        processes=config.tasks,
        nprocs=config.tasks,
        n_files=config.tasks if config.file_per_process else 1,
        mode_processes=1 if config.file_per_process else config.tasks,
    )
    slow = replace(usual, metadata_seconds=9.0, start_seconds=1.0, end_seconds=2.0)
    alone = predict([usual], measured, system="here", nodes=config.nodes)
    both = predict([usual, slow], measured, system="here", nodes=config.nodes)
    assert [found.main.kind for found in both.phases] == ["exact", "interpolated"]
    assert both.phases[0].time_s == pytest.approx(alone.phases[0].time_s)


def test_phases_of_little_time_share_a_warning_about_metadata(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    large = a_phase(io_time_seconds=10.0)
    small = [a_phase(io_time_seconds=0.001, metadata_seconds=0.002) for _ in range(3)]
    many = a_phase(io_time_seconds=0.1, metadata_seconds=1.0)
    phases = [large, *small, many]
    found = predict(phases, known(a_curve()), system="here", nodes=8)
    assert [item.main.kind for item in found.phases] == ["exact", *["interpolated"] * 4]
    assert len(found.warnings) == 2
    assert found.warnings[0].startswith("phase 4: metadata calls")
    assert found.warnings[1] == (
        "3 phases of little time: metadata calls take 0.006 s, longer than reads and writes, so no"
        " benchmark matches exactly"
    )


def test_metadata_does_not_make_a_match_better(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    unlike = predict(
        [a_phase(metadata_seconds=9.0)], known(a_curve(read=True)), system="here", nodes=8
    )
    assert unlike.phases[0].main.kind == "unknown"


@pytest.fixture(scope="session")
def testbed_curves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Curve, ...]:
    content = (TESTBED / "benchmarks.csv").read_bytes()
    file = ResultFile("benchmarks.csv", content.decode())
    file_format, rows = read_measurements(file, ImportOptions(tasks=16, nodes=8))
    engine = open_database(tmp_path_factory.mktemp("testbed") / "bench.sqlite")
    with transaction(engine, write=True) as connection:
        store(
            connection,
            system="testbed",
            file="benchmarks.csv",
            content=content,
            file_format=file_format,
            rows=rows,
        )
        found = curves(connection, "testbed")
    engine.dispose()
    return tuple(found)


@pytest.fixture(scope="session")
def testbed_knowledge(testbed_curves: tuple[Curve, ...]) -> dict[str, SystemModel]:
    """The testbed without a model, as in RR-9366, and with one."""
    return {
        "nearest": SystemModel(testbed_curves),
        "model": SystemModel(testbed_curves, fit_model(testbed_curves)),
    }


def measured_means(path: Path, application: str) -> dict[int, float]:
    cells: dict[int, list[float]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["name"] == application:
                cells[int(row["io_nodes"])].append(float(row["bandwidth_mib_s"]))
    return {n: statistics.fmean(values) for n, values in cells.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "application", "most_regret"),
    [
        ("hacc-io-ionodes0", "hacc-io", 0.1),
        ("hacc-io-ionodes4", "hacc-io", 0.1),
        ("hacc-io-ionodes4-dxt", "hacc-io", 0.1),
        ("multiphase-ionodes0", "multiphase", 0.1),
        ("multiphase-ionodes4", "multiphase", 0.1),
        ("multiphase-ionodes4-dxt", "multiphase", 0.1),
        # Its benchmark is within a tenth with 0 and 8 I/O nodes, but in the other order.
        ("periodic-ionodes0", "periodic", 0.15),
        ("periodic-ionodes4", "periodic", 0.15),
        ("periodic-ionodes4-dxt", "periodic", 0.15),
    ],
)
@pytest.mark.parametrize("method", ["nearest", "model"])
def test_an_application_is_predicted_from_one_run(
    testbed_knowledge: dict[str, SystemModel],
    log: str,
    application: str,
    most_regret: float,
    method: str,
) -> None:
    measured = measured_means(TESTBED / "applications.csv", application)
    phases = extract_phases(read_log(TESTBED / "logs" / f"{log}.darshan"))
    found = predict(phases, testbed_knowledge[method], system="testbed", nodes=8)
    predicted = {point.io_nodes: point.bandwidth_mib_s.mean for point in found.curve}
    assert tuple(predicted) == IO_NODES
    error = statistics.fmean(abs(predicted[n] - measured[n]) / measured[n] for n in IO_NODES)
    assert error < {"nearest": 0.25, "model": 0.1}[method]
    assert found.best.io_nodes is not None
    assert 1 - measured[found.best.io_nodes] / max(measured.values()) < most_regret


@pytest.mark.parametrize("method", ["nearest", "model"])
def test_a_prediction_does_not_depend_on_the_run_it_rests_on(
    testbed_knowledge: dict[str, SystemModel], method: str
) -> None:
    knowledge = testbed_knowledge[method]
    one, *others = (
        predict(
            extract_phases(read_log(TESTBED / "logs" / f"hacc-io-{name}.darshan")),
            knowledge,
            system="testbed",
            nodes=8,
        )
        for name in ("ionodes0", "ionodes4", "ionodes4-dxt")
    )
    for other in others:
        assert other.decision.io_nodes == one.decision.io_nodes
        for point, same in zip(other.curve, one.curve, strict=True):
            assert point.time_s == pytest.approx(same.time_s, rel=0.005)
            # The time of a phase seeds its noise.
            for share in ("p10", "median", "p90"):
                assert getattr(point.bandwidth_mib_s, share) == pytest.approx(
                    getattr(same.bandwidth_mib_s, share), rel=0.05
                )


def test_the_model_is_wrong_by_less_than_a_tenth_of_an_application(
    testbed_knowledge: dict[str, SystemModel],
) -> None:
    """The errors are those of the means of reruns, for each number of I/O nodes."""
    errors = []
    for application in ("hacc-io", "multiphase", "periodic"):
        measured = measured_means(TESTBED / "applications.csv", application)
        phases = extract_phases(read_log(TESTBED / "logs" / f"{application}-ionodes0.darshan"))
        found = predict(phases, testbed_knowledge["model"], system="testbed", nodes=8)
        predicted = {point.io_nodes: point.bandwidth_mib_s.mean for point in found.curve}
        errors += [abs(predicted[n] - value) / value for n, value in measured.items()]
    assert len(errors) == 15
    assert statistics.fmean(errors) <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "possible"),
    [
        ("nearest", {"exact", "interpolated", "unknown"}),
        ("model", {"exact", "interpolated", "model", "unknown"}),
    ],
)
def test_every_real_log_is_predicted_without_inventing(
    shared_data: Path, testbed_knowledge: dict[str, SystemModel], method: str, possible: set[str]
) -> None:
    for path in sorted((shared_data / "runs" / "logs").glob("*.darshan")):
        phases = extract_phases(read_log(path))
        found = predict(phases, testbed_knowledge[method], system="testbed", nodes=8)
        strict_json(found)
        kinds = {match.kind for phase in found.phases for _, match in phase.parts}
        assert kinds <= possible, path.name
        for point in found.curve:
            assert point.basis == ("measured" if kinds == {"exact"} else "model"), path.name
        if kinds == {"unknown"}:
            assert found.best.io_nodes is None, path.name
        else:
            assert found.best.io_nodes in IO_NODES, path.name


def test_phases_keep_their_number_although_one_moved_nothing(
    a_phase: MakePhase,
) -> None:
    at_the_end_of_a_file = replace(a_phase(), bytes=0, parts=())
    in_stdio = replace(a_phase(), api="STDIO")
    found = predict([at_the_end_of_a_file, in_stdio], known(), system="here")
    assert [matched.index for matched in found.phases] == [1]
    assert any(warning.startswith("phase 1: IOR has no stdio") for warning in found.warnings)
