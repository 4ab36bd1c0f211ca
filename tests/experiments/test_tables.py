"""The tables of data sets: the testbed's compared with its README, and small ones by hand."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import harmonic_mean

import pytest
from click.testing import CliRunner

from benchdb.measurements.storing import Measurement
from experiments.datasets import Benchmark, DataSet
from experiments.evaluation import Evaluation, evaluate
from experiments.held_back import (
    FLOOR,
    HALVES,
    LEFT_OUT,
    MODEL,
    NEAREST,
    Judged,
    hold_back,
    phase_of,
)
from experiments.provenance import Log, Machine, Provenance
from experiments.published import PrintedTable
from experiments.published_tables import (
    accuracy,
    choices,
    composed,
    composed_errors,
    dunn,
    held_back,
    means,
    phases,
    prediction_errors,
    predictions,
    random_halves,
    report_errors,
    report_phases,
    report_runs,
    tables_of,
)
from ioncast.cli import cli
from ior_configs import IorConfig
from predictor.validation.reruns import Rerun

pytestmark = pytest.mark.slow

TESTBED = Path(__file__).resolve().parents[2] / "experiments" / "data" / "testbed"
IO_NODES = (0, 1, 2, 4, 8)
SYSTEM = ("--system", "testbed", "--nodes", "8")
W_1M = "ior -a POSIX -w -F -b 4m -t 1m"
R_1M = "ior -a POSIX -r -F -b 4m -t 1m"
_CELL = re.compile(r"(\d+\.\d) \((\d+) %, (\d+)\)")


@pytest.fixture(scope="module")
def judged(evaluated: Evaluation) -> tuple[Judged, ...]:
    return tuple(hold_back(evaluated.curves))


def readme() -> dict[tuple[str, str], tuple[float, int, int]]:
    """Mean, coefficient of variation in per cent and runs of each cell in the testbed's README."""
    return {
        (name, str(n)): (float(mean), int(cv), int(runs))
        for line in (TESTBED / "README.md").read_text(encoding="utf-8").splitlines()
        if (cells := _CELL.findall(line))
        for name in [line.split("|")[1].strip()]
        for n, (mean, cv, runs) in zip(IO_NODES, cells, strict=True)
    }


def small(
    benchmarks: Mapping[str, tuple[str, Mapping[int, Sequence[float]]]],
    reruns: Mapping[int, Sequence[float]],
    work: Sequence[str],
) -> DataSet:
    """A data set of benchmarks, and of an application with the I/O of some IOR commands."""
    log = Log(file="app.darshan", application="app", io_nodes=0, source="by hand")
    configs = {
        name: IorConfig.from_command_line(ior).pattern() for name, (ior, _) in benchmarks.items()
    }
    return DataSet(
        folder=Path("small"),
        provenance=Provenance(
            study="small",
            command="ioncast experiment check",
            date="2026-11-22",
            seeds=(1,),
            scale=None,
            system="small",
            tasks=1,
            nodes=1,
            engine="ior",
            platform={},
            machine=Machine(cores=None, memory_bytes=None, kernel=None),
            versions={},
            logs=(log,),
        ),
        benchmarks=tuple(
            Benchmark(name, Measurement(config, n, run))
            for name, config in configs.items()
            for n, runs in benchmarks[name][1].items()
            for run in runs
        ),
        applications={
            "app": tuple(
                Rerun("app", n, r, run) for n, runs in reruns.items() for r, run in enumerate(runs)
            )
        },
        commands={"app": "app --small"},
        phases={log: tuple(phase_of(IorConfig.from_command_line(ior)) for ior in work)},
    )


def column(table: PrintedTable, name: str, **where: str) -> list[str]:
    return [row[name] for row in table.rows if where.items() <= row.items()]


def test_means_are_those_of_the_readme(evaluated: Evaluation) -> None:
    published = readme()
    assert len(published) == (15 + 3) * len(IO_NODES)
    found = {(row["name"], row["io_nodes"]): row for row in means(evaluated).rows}
    assert found.keys() == published.keys()
    for cell, (mean, percent, runs) in published.items():
        assert float(found[cell]["mean_mib_s"]) == pytest.approx(mean, abs=0.0501), cell
        assert 100 * float(found[cell]["cv"]) == pytest.approx(percent, abs=0.501), cell
        assert found[cell]["runs"] == str(runs), cell


def test_phases_are_those_of_the_readme(testbed: DataSet) -> None:
    found = phases(testbed)
    log = "multiphase-ionodes0.darshan"
    # The README: 64 MiB shared in requests of 1 MiB, 64 MiB in files per process in requests of
    # 1 MiB, and 32 MiB 1D-strided in requests of 64 KiB.
    assert column(found, "bytes", log=log) == [str(64 << 20), str(64 << 20), str(32 << 20)]
    assert column(found, "type", log=log) == ["read", "write", "write"]
    assert column(found, "files", log=log) == ["shared", "unique", "shared"]
    assert column(found, "spatiality", log=log) == ["contiguous", "contiguous", "sequential"]
    assert column(found, "parts", log=log) == ["64 x 1048576", "64 x 1048576", "512 x 65536"]
    assert column(found, "phase", log="periodic-ionodes0.darshan") == ["0", "1", "2", "3"]
    # Each of 16 processes writes 38 bytes for each of 100,000 particles and a header of 24 MiB.
    # Each of nine arrays and the header is one request.
    [hacc] = [row for row in found.rows if row["log"] == "hacc-io-ionodes0.darshan"]
    assert hacc["bytes"] == str(16 * (38 * 100_000 + (24 << 20)))
    assert (hacc["requests"], hacc["n_files"]) == ("160", "16")


def test_every_log_has_phases(testbed: DataSet) -> None:
    logs = {path.name for path in (TESTBED / "logs").iterdir()}
    assert set(column(phases(testbed), "log")) == logs


@pytest.mark.parametrize("io_nodes", IO_NODES)
def test_the_multiphase_application_is_composed_of_its_three_patterns(
    evaluated: Evaluation, io_nodes: int
) -> None:
    mean = {name: cell[0] for (name, n), cell in readme().items() if n == str(io_nodes)}
    seconds = (
        64 / mean["r-shared-contig-1m"]
        + 64 / mean["w-fpp-contig-1m"]
        + 32 / mean["w-shared-strided-64k"]
    )
    [found] = column(
        composed(evaluated), "composed_mib_s", application="multiphase", io_nodes=str(io_nodes)
    )
    # The README's means have one decimal.
    assert float(found) == pytest.approx(160 / seconds, rel=0.003)


def test_the_periodic_application_is_composed_of_one_pattern(evaluated: Evaluation) -> None:
    table = composed(evaluated)
    published = readme()
    found = [float(text) for text in column(table, "composed_mib_s", application="periodic")]
    wanted = [published["w-shared-strided-128k", str(n)][0] for n in IO_NODES]
    assert found == pytest.approx(wanted, abs=0.06)
    assert set(column(table, "exact", application="periodic")) == {"4 of 4"}


def test_compositions_of_benchmarks_are_within_5_percent_of_the_reruns(
    evaluated: Evaluation,
) -> None:
    for name in ("hacc-io", "multiphase"):
        errors = list(map(float, column(composed(evaluated), "error", application=name)))
        assert sum(errors) / len(errors) <= 0.05


def test_predictions_are_within_8_percent_and_decisions_lose_at_most_5(
    evaluated: Evaluation,
) -> None:
    [row] = [row for row in choices(evaluated).rows if row["application"] == "all"]
    assert float(row["error_of_means"]) <= 0.08
    assert float(row["regret_of_decision"]) <= 0.05


def test_measured_best_numbers_are_those_of_the_readme(evaluated: Evaluation) -> None:
    found = dict(
        zip(
            column(choices(evaluated), "application"),
            column(choices(evaluated), "measured_best"),
            strict=True,
        )
    )
    assert found == {"hacc-io": "8", "multiphase": "4", "periodic": "8", "all": ""}


@pytest.mark.parametrize("application", ["hacc-io", "multiphase", "periodic"])
def test_predictions_are_those_of_the_command_for_the_same_files(
    evaluated: Evaluation, tmp_path: Path, application: str
) -> None:
    database = ("--db", str(tmp_path / "bench.sqlite"))
    benchmarks = str(TESTBED / "benchmarks.csv")
    imported = CliRunner().invoke(
        cli, ["bench", "import", benchmarks, *SYSTEM, "--tasks", "16", *database]
    )
    assert imported.exit_code == 0, imported.output
    log = str(TESTBED / "logs" / f"{application}-ionodes0.darshan")
    asked = CliRunner().invoke(cli, ["predict", log, *SYSTEM, "--format", "json", *database])
    told = json.loads(asked.stdout)["curve"]
    table = predictions(evaluated)
    assert [f"{point['bandwidth_mib_s']['mean']:.2f}" for point in told] == column(
        table, "predicted_mib_s", application=application
    )
    assert [f"{point['bandwidth_mib_s']['p10']:.2f}" for point in told] == column(
        table, "p10_mib_s", application=application
    )


def test_each_rerun_has_an_error() -> None:
    # The benchmark's mean is 50, so the errors are 10 / 40, 12.5 / 62.5 and 0 / 50.
    table = composed_errors(
        evaluate(small({"w": (W_1M, {0: [40, 60]})}, {0: [40, 62.5, 50]}, [W_1M]))
    )
    [row] = [
        row
        for row in table.rows
        if row["of"] == "nearest benchmarks' means"
        and row["application"] == "app"
        and row["io_nodes"] == "all"
    ]
    assert {name: row[name] for name in ("runs", "min", "mean", "median", "max")} == {
        "runs": "3",
        "min": "0.000",
        "mean": "0.150",
        "median": "0.200",
        "max": "0.250",
    }


def test_the_noise_floor_is_the_error_of_reruns_as_predictions_of_each_other() -> None:
    # Each of the two reruns predicts the other: 10 / 40 and 10 / 50.
    table = composed_errors(evaluate(small({"w": (W_1M, {0: [40]})}, {0: [40, 50]}, [W_1M])))
    assert column(table, "mean", of="noise floor", application="app", io_nodes="all") == ["0.225"]


def test_the_times_of_two_phases_add_up() -> None:
    # 4 MiB at 10 MiB/s and 4 MiB at 40 MiB/s take 0.5 s, with 4 I/O nodes too.
    data = small(
        {
            "w": (W_1M, {0: [10], 4: [40]}),
            "r": (R_1M, {0: [40], 4: [10]}),
        },
        {0: [16], 4: [20]},
        [W_1M, R_1M],
    )
    table = composed(evaluate(data))
    assert column(table, "composed_mib_s") == ["16.00", "16.00"]
    assert column(table, "error") == ["0.000", "0.200"]
    assert column(table, "benchmarks") == ["w + r", "w + r"]


def test_an_application_with_an_unknown_phase_is_not_composed() -> None:
    data = small({"w": (W_1M, {0: [10], 4: [40]})}, {0: [16], 4: [20]}, [W_1M, R_1M])
    evaluation = evaluate(data)
    assert composed(evaluation).rows == ()
    assert "composed" not in {table.name for table in tables_of(data, evaluation)}


def test_the_chosen_number_is_judged_by_the_reruns() -> None:
    # The benchmark is best with 4 I/O nodes, but the reruns reach only 30 of 40 MiB/s there.
    data = small({"w": (W_1M, {0: [10, 10], 4: [50, 50]})}, {0: [40, 40], 4: [30, 30]}, [W_1M])
    [row, _] = choices(evaluate(data)).rows
    assert (row["measured_best"], row["best"], row["decision"]) == ("0", "4", "4")
    assert (row["regret"], row["hit_rate"]) == ("0.250", "0.000")


def test_random_halves_and_dunns_test_are_as_by_hand() -> None:
    benchmarks = {"w": (W_1M, {0: [11.0, 12.0, 13.0], 4: [30.0, 30.0]})}
    reruns = {0: [14.0, 15.0, 16.0], 4: [20.0, 40.0], 8: [10.0, 20.0]}
    evaluation = evaluate(small(benchmarks, reruns, [W_1M]))
    # Half of two runs is 100 or 50 % off the other; the benchmark's mean is that of the reruns.
    # With 8 I/O nodes there is no benchmark.
    [_, row] = random_halves(evaluation).rows
    assert row == {
        "application": "app",
        "io_nodes": "4",
        "runs": "2",
        "p10": "0.500",
        "median": "0.750",
        "p90": "1.000",
        "error": "0.000",
        "as_far": "1.000",
    }
    # Three of six ranks apart is z = 3 / sqrt(6 * 7 / 12 * 2/3), and p = 0.0495; Holm doubles it.
    # The ranks of 20, 30, 30 and 40 have the same mean on both sides.
    table = dunn(evaluation)
    assert column(table, "p_value") == ["0.099", "1.000"]
    assert column(table, "benchmark_mib_s") == ["12.00", "30.00"]
    assert column(table, "measured_mib_s") == ["15.00", "30.00"]


def test_a_pattern_left_out_is_predicted_by_the_nearest_of_its_kind() -> None:
    known = evaluate(
        small(
            {
                "w-1m": (W_1M, {0: [10, 10], 4: [40, 40]}),
                "w-2m": (W_1M.replace("1m", "2m"), {0: [20, 20], 4: [30, 30]}),
            },
            {0: [10]},
            [W_1M],
        )
    ).curves
    found = {
        (one.protocol, one.way, one.pattern): one.comparison.cell_errors for one in hold_back(known)
    }
    # The nearest pattern predicts 10 instead of 20, and 40 instead of 30.
    errors = found[LEFT_OUT, NEAREST, "w-2m"]
    assert {n: pytest.approx(values) for n, values in errors.items()} == {0: (1 / 2,), 4: (1 / 3,)}


def test_a_pattern_that_is_the_only_one_of_its_kind_is_not_predicted(
    judged: Sequence[Judged],
) -> None:
    # These patterns of the testbed are the only ones of their kind: reads of contiguous files per
    # process, of a contiguous shared file and of a strided file; a collective and a random write.
    unknown = {
        "r-fpp-contig-1m",
        "r-shared-contig-1m",
        "r-shared-strided-8k",
        "w-mpiio-coll-strided-128k",
        "w-shared-random-32k",
    }
    table = held_back(judged)
    for way in (MODEL, NEAREST):
        found = [
            row["pattern"]
            for row in table.rows
            if row["protocol"] == LEFT_OUT and row["way"] == way and not row["best"]
        ]
        assert set(found) == unknown
        assert column(accuracy(judged), "predicted", protocol=LEFT_OUT, way=way) == ["10"]


def test_the_same_number_for_all_loses_the_difference_of_the_means(
    judged: Sequence[Judged],
) -> None:
    table = held_back(judged)
    where = {"protocol": LEFT_OUT, "way": "always 8"}
    [found] = column(table, "regret", pattern="w-fpp-contig-1m", **where)
    assert float(found) == 0
    # The README has 8.7 MiB/s with 8 I/O nodes, and at best 37.6.
    [found] = column(table, "regret", pattern="r-shared-strided-8k", **where)
    assert float(found) == pytest.approx(1 - 8.7 / 37.6, abs=0.002)


@pytest.mark.parametrize("protocol", HALVES)
def test_half_of_the_runs_predict_the_others_nearly_as_well_as_noise_allows(
    judged: Sequence[Judged], protocol: str
) -> None:
    table = accuracy(judged)
    [floor] = column(table, "error_of_means", way=FLOOR)
    [halves] = column(table, "error_of_means", protocol=protocol, way=MODEL)
    assert float(halves) <= 1.2 * float(floor)


def test_a_single_run_of_a_cell_is_known_and_not_compared_with_itself() -> None:
    """Compared with itself, its error would be 0."""
    known = evaluate(
        small(
            {
                "w-1m": (W_1M, {0: [10, 12], 4: [40]}),
                "w-2m": (W_1M.replace("1m", "2m"), {0: [20]}),
            },
            {0: [10]},
            [W_1M],
        )
    ).curves
    found = [one for one in hold_back(known) if one.protocol in HALVES and one.way == NEAREST]
    errors = {(one.protocol, one.pattern): one.comparison.cell_errors for one in found}
    assert {
        key: {n: pytest.approx(values) for n, values in cells.items()}
        for key, cells in errors.items()
    } == {
        (HALVES[0], "w-1m"): {0: (2 / 12,)},
        (HALVES[1], "w-1m"): {0: (2 / 10,)},
    }


def test_runs_are_left_out_by_their_place_and_not_by_their_number() -> None:
    known = evaluate(small({"w": (W_1M, {0: [1, 2, 3, 4, 5], 4: [9]})}, {0: [1]}, [W_1M])).curves
    [even, odd] = [
        one
        for protocol in ("even runs left out", "odd runs left out")
        for one in hold_back(known)
        if (one.protocol, one.way) == (protocol, NEAREST)
    ]
    # The even runs are the second and the fourth. The harmonic mean of 1, 3 and 5 predicts them.
    mean = harmonic_mean([1, 3, 5])
    assert even.comparison.run_errors[0] == pytest.approx(((2 - mean) / 2, (4 - mean) / 4))
    mean = harmonic_mean([2, 4])
    assert odd.comparison.run_errors[0] == pytest.approx((mean - 1, (3 - mean) / 3, (5 - mean) / 5))


def test_the_results_of_the_report_stand_beside_ours(
    testbed: DataSet, evaluated: Evaluation
) -> None:
    for table in (
        report_phases(testbed),
        report_errors(evaluated),
        report_runs(testbed, evaluated),
    ):
        assert set(column(table, "application")) == {"hacc-io"}
        whose = [of.partition(",")[0] for of in column(table, "of")]
        assert list(dict.fromkeys(whose)) == ["RR-9366", "here"]


def test_our_phases_have_the_same_units_as_those_of_the_report(testbed: DataSet) -> None:
    [report, here] = report_phases(testbed).rows
    assert (report["of"], report["bytes"], report["start"]) == (
        "RR-9366",
        str(64 * (38 * 100_000 + (24 << 20))),
        "0.032241",
    )
    assert (here["of"], here["bytes"]) == ("here", str(16 * (38 * 100_000 + (24 << 20))))


def test_table_9_is_published_with_our_runs(testbed: DataSet, evaluated: Evaluation) -> None:
    table = report_runs(testbed, evaluated)
    assert column(table, "bandwidth_mib_s", of="RR-9366, HACC-IO", run="4") == ["41971.4"]
    with (TESTBED / "applications.csv").open(encoding="utf-8", newline="") as file:
        direct = [
            row
            for row in csv.DictReader(file)
            if (row["name"], row["io_nodes"]) == ("hacc-io", "0")
        ]
    # The table has MiB/s.
    assert column(table, "bandwidth_mib_s", of=f"here, {direct[0]['command']}") == [
        f"{int(row['bytes']) / float(row['time_s']) / (1 << 20):.1f}" for row in direct
    ]


def test_every_row_of_a_table_has_a_different_name(
    testbed: DataSet, evaluated: Evaluation, judged: Sequence[Judged]
) -> None:
    of_measurements = (means, composed, composed_errors, predictions, prediction_errors, choices)
    for table in (
        phases(testbed),
        report_phases(testbed),
        report_errors(evaluated),
        report_runs(testbed, evaluated),
        *(make(evaluated) for make in of_measurements),
        held_back(judged),
        accuracy(judged),
    ):
        named = [table.named(row) for row in table.rows]
        assert len(named) == len(set(named)), table.name
        assert all(tuple(row) == table.columns for row in table.rows), table.name
