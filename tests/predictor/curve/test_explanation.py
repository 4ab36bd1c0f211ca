"""The explanation of a prediction names phases and benchmarks; times are computed by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchdb.measurements.curves import Curve
from ioncast.cli import cli
from predictor.curve.explanation import explain
from predictor.curve.prediction import DecisionRules, Prediction, predict
from predictor.curve.prediction_formats import to_json
from predictor.model.system_model import Model, SystemModel
from summario.naming import phases_named
from summario.phases.values import Phase

MIB = 1 << 20
PROJECT = Path(__file__).resolve().parents[3]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
# Inria RR-9366, Table 9: HACC-IO without I/O nodes.
HACC_IO_0 = (488.3, 526.2, 331.5, 41971.4, 409.7)

MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


def predicted(phases: Sequence[Phase], *curves: Curve, **told: Any) -> Prediction:
    return predict(phases, SystemModel(curves), system="here", nodes=8, **told)


def sentence(prediction: Prediction, with_: str) -> str:
    [found] = [line for line in explain(prediction) if with_ in line]
    return found


@pytest.fixture
def two(a_phase: MakePhase, a_curve: MakeCurve) -> Callable[..., Prediction]:
    """Predict one phase that writes and one that reads, each at its own MiB/s."""

    def make(write: Mapping[int, float], read: Mapping[int, float], **told: Any) -> Prediction:
        phases = [a_phase(), a_phase(operation="read", start_seconds=2.0, end_seconds=3.0)]
        curves = [
            a_curve({n: (value,) for n, value in write.items()}),
            a_curve({n: (value,) for n, value in read.items()}, read=True),
        ]
        return predicted(phases, *curves, **told)

    return make


def test_the_phase_decides_that_gains_most_from_the_choice(two: Callable[..., Prediction]) -> None:
    # Writing takes 2 s with 0 I/O nodes and 1 s with 4; reading takes 1 s with both.
    prediction = two({0: 32, 4: 64}, {0: 64, 4: 64})
    told = sentence(prediction, "decides")
    assert told.startswith("Phase 0 (write POSIX contiguous shared) decides")
    assert "takes 1 s with 4 I/O nodes, 50% of the time, and 2 s on average" in told


def test_the_phase_that_takes_longest_is_named_where_it_does_not_decide(
    two: Callable[..., Prediction],
) -> None:
    # Reading takes 4 s with 0 and with 4 I/O nodes.
    prediction = two({0: 32, 4: 64}, {0: 16, 4: 16})
    assert sentence(prediction, "decides").startswith("Phase 0 ")
    longest = sentence(prediction, "longest")
    assert longest.startswith("Phase 1 (read POSIX ")
    assert "4 s with 4 I/O nodes, 80% of the time" in longest


def test_a_phase_that_would_rather_have_another_number_does_not_decide(
    two: Callable[..., Prediction],
) -> None:
    # Writing takes 8 s and 4 s, reading 1 s and 2 s.
    prediction = two({0: 8, 4: 16}, {0: 64, 4: 32})
    assert prediction.decision.io_nodes == 4
    assert sentence(prediction, "decides").startswith("Phase 0 ")
    assert "longest" not in " ".join(explain(prediction))


def test_phases_that_do_the_same_are_spoken_of_together(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phases = [a_phase(start_seconds=2.0 * i, end_seconds=2.0 * i + 1) for i in range(30)]
    told = explain(predicted(phases, a_curve({0: (32,), 4: (64,)}, id=7)))
    assert len(told) == 3
    assert told[1] == (
        "Phases 0 to 29 (write POSIX contiguous shared) take all of the predicted time:"
        " 30 s with 4 I/O nodes."
    )
    assert told[2].startswith("Phases 0 to 29, 100% of the time: measured by benchmark 7 ")


def test_a_measured_configuration_is_named_with_its_runs(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    curve = a_curve({0: (31.25,), 4: (60, 62.5, 61)}, id=12)
    told = sentence(predicted([a_phase()], curve), "benchmark")
    assert "benchmark 12 (mpiexec -n 16 ior -a POSIX -w -b 4m -t 1m)" in told
    assert "3 runs with 4 I/O nodes, 60 to 62.5 MiB/s" in told
    told = sentence(predicted([a_phase()], curve, policy=DecisionRules(available=0)), "benchmark")
    assert "1 run with direct access, 31.2 MiB/s" in told


def test_two_modes_are_named(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    prediction = predicted([a_phase()], a_curve({0: HACC_IO_0, 4: (2000, 2100, 1900)}))
    # 449 is the median of the four slower runs.
    told = sentence(prediction, "two modes")
    assert "With direct access" in told
    assert "4 of 5 about 449 MiB/s, 1 41,971" in told


def test_a_size_within_the_measurements_is_compared_with_the_nearest(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    # The benchmark has requests of 2 MiB instead of 1 MiB, and as many bytes.
    prediction = predicted([a_phase()], a_curve(transfer_size=2 * MIB, id=3))
    told = sentence(prediction, "benchmark")
    assert "not measured, but between measured sizes; the nearest is benchmark 3 " in told
    assert "with 2 × the request size" in told


def test_a_phase_that_is_mostly_metadata_is_not_said_to_be_measured(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    told = sentence(predicted([a_phase(metadata_seconds=9.0)], a_curve(id=3)), "benchmark")
    assert "measured" not in told
    assert "predicted from benchmark 3 (" in told
    assert told.endswith("which has its sizes but not its metadata calls.")


@pytest.mark.slow
def test_a_size_beyond_the_measurements_is_named_with_its_distance(
    a_phase: MakePhase, synthetic: Any, fitted: Model
) -> None:
    # Requests of 64 KiB to 4 MiB and 16 to 256 processes were measured.
    knowledge = SystemModel(synthetic.curves, fitted)
    phase = a_phase((16, 16 * 32 * MIB), mode_processes=8, processes=8, nprocs=8)
    prediction = predict([phase], knowledge, system="here", nodes=4)
    [(_, match)] = prediction.phases[0].parts
    assert match.kind == "model"
    told = sentence(prediction, "beyond")
    assert "beyond the measured sizes (processes 0.5 × the smallest" in told
    assert "request size 8 × the largest" in told
    assert "the nearest is benchmark" in told


def test_a_part_without_a_measurement_of_the_chosen_number_is_the_models(
    a_phase: MakePhase, synthetic: Any, fitted: Model
) -> None:
    curve = synthetic.curves[0]
    phase = a_phase(
        (16, curve.config.bytes_per_process * curve.config.tasks),
        file_access="unique" if curve.config.file_per_process else "shared",
    )
    few = Curve(curve.id, curve.config, "ior", {0: curve.bandwidths_mib_s[0]})
    knowledge = SystemModel((few, *synthetic.curves[1:]), fitted)
    part = phase.parts[0]
    requests = part.bytes // curve.config.transfer_size
    tasks = curve.config.tasks
    phase = a_phase(
        (requests, part.bytes),
        file_access=phase.file_access,
        processes=tasks,
        nprocs=tasks,
        mode_processes=tasks if phase.file_access == "shared" else 1,
        n_files=1 if phase.file_access == "shared" else tasks,
    )
    prediction = predict([phase], knowledge, system="here", nodes=curve.config.nodes, io_nodes=[4])
    assert prediction.phases[0].main.kind == "exact"
    assert "only with direct access, so the model predicts the other numbers" in sentence(
        prediction, "benchmark"
    )


def test_parts_that_take_little_time_are_not_spoken_of(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    # The small requests move 1 MiB of 401, far less than a twentieth.
    phase = a_phase((400, 400 * MIB), (16, MIB))
    curves = [a_curve({0: (50,), 4: (70,)}, block_size=25 * MIB)]
    curves += [a_curve({0: (50,), 4: (70,)}, block_size=65536, transfer_size=65536)]
    told = " ".join(explain(predicted([phase], *curves)))
    assert "400 requests of 1 MiB in phase 0" in told
    assert "16 requests" not in told


def test_many_small_phases_leave_something_to_say(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    # Thirty phases of different sizes, each of which takes a thirtieth of the time.
    phases = [
        a_phase((64, 64 * MIB * 2**i), start_seconds=2.0 * i, end_seconds=2.0 * i + 1)
        for i in range(30)
    ]
    curves = [a_curve({0: (2.0**i,)}, block_size=4 * MIB * 2**i) for i in range(30)]
    told = explain(predicted(phases, *curves))
    assert len([line for line in told if "benchmark" in line]) == 1


def test_unknown_parts_are_named_as_missing(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    phases = [a_phase(), a_phase(operation="read", start_seconds=2.0)]
    told = sentence(predicted(phases, a_curve({0: (50,)})), "unknown")
    assert told.startswith("50% of the bytes, in phase 1, are unknown")


@pytest.mark.parametrize(
    ("default", "decided"),
    [(None, "Nothing in the database"), (0, "Direct access: the"), (2, "2 I/O nodes: the")],
)
def test_where_nothing_is_known_that_is_all_there_is_to_say(
    a_phase: MakePhase, default: int | None, decided: str
) -> None:
    prediction = predicted([a_phase()], policy=DecisionRules(default=default))
    first, second = explain(prediction)
    assert first.startswith(decided)
    assert first.endswith(f"{prediction.decision.why[1:]}.")
    assert second.startswith("100% of the bytes, in phase 0, are unknown")
    assert len(explain(predicted([]))) == 1


def test_the_decision_is_said_with_its_tolerance_and_its_probability(
    two: Callable[..., Prediction],
) -> None:
    def decision(tolerance: float) -> str:
        prediction = two(*[{0: 50, 4: 97, 8: 100}] * 2, policy=DecisionRules(tolerance=tolerance))
        return explain(prediction)[0]

    assert decision(0.05).startswith("4 I/O nodes give 97 MiB/s, 97% of the best (100 MiB/s with 8")
    assert "Fewer would lose more than the tolerated 5%." in decision(0.05)
    # With one repetition each there is no doubt.
    assert "The probability of reaching at least 90% of the best bandwidth is over 99%." in (
        decision(0.05)
    )
    assert "tolerated" not in decision(0)
    # Direct access is decided for; there are no fewer I/O nodes.
    assert "Fewer" not in decision(0.6)


@pytest.mark.parametrize("speed", [0.00123456, 0.9996, 9.999, 99.97, 999.7, 1e3, 41971.4, 9.6e6])
def test_numbers_are_short_and_without_exponents(
    a_phase: MakePhase, a_curve: MakeCurve, speed: float
) -> None:
    told = sentence(predicted([a_phase()], a_curve({0: (speed,)})), "benchmark")
    number = re.search(r"direct access, (\S+) MiB/s", told)
    assert number is not None
    assert float(number[1].replace(",", "")) == pytest.approx(speed, rel=0.005)
    assert "e" not in number[1]


def test_the_earlier_run_is_said_with_what_it_got(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    # The phase moves 64 MiB in 1 s.
    curve = a_curve({0: (50, 52), 4: (70, 72)})
    told = sentence(predicted([a_phase()], curve, ran_with=4), "earlier")
    assert "got 64 MiB/s with 4 I/O nodes" in told


def test_phases_at_the_same_time_are_said_not_to_add_up(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    # The two halves of the job take 2 s each.
    half = {"processes": 8, "mode_processes": 8}
    phases = [a_phase(**half), a_phase(**half)]
    prediction = predicted(phases, a_curve({0: (32,)}, tasks=8))
    assert prediction.curve[0].time_s == pytest.approx(2)
    told = sentence(prediction, "same time")
    assert told.startswith("Phases 0 and 1 ran at the same time")
    assert "4 s instead of 2 s" in told


def test_phases_one_after_the_other_add_up_to_the_time_of_the_curve(
    two: Callable[..., Prediction],
) -> None:
    for ran_with in (None, 4):
        prediction = two({0: 32, 4: 64}, {0: 16, 4: 48}, ran_with=ran_with)
        phases = to_json(prediction)["phases"]
        for point in prediction.curve:
            n = point.io_nodes
            assert sum(phase["time_s"][n] for phase in phases) == pytest.approx(point.time_s)
            for phase in phases:
                assert sum(part["time_s"][n] for part in phase["parts"]) == phase["time_s"][n]


@given(st.sets(st.integers(0, 40), min_size=1))
def test_a_list_of_phases_is_short_and_true(indices: set[int]) -> None:
    text = phases_named(indices)
    # Five ranges of two-digit numbers, and the number of the others.
    assert len(text) < 70
    if "more" not in text:
        words = text.replace(",", "").replace("and ", "").split()[1:]
        named: set[int] = set()
        while words:
            first = int(words.pop(0))
            last = int(words[1]) if words[:1] == ["to"] else first
            words = words[2:] if words[:1] == ["to"] else words
            named |= set(range(first, last + 1))
        assert named == indices


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    location = str(tmp_path_factory.mktemp("explain") / "bench.sqlite")
    args = ["bench", "import", str(TESTBED / "benchmarks.csv"), "--system", "testbed"]
    result = CliRunner().invoke(cli, [*args, "--tasks", "16", "--nodes", "8", "--db", location])
    assert result.exit_code == 0, result.output
    return location


@pytest.mark.slow
@pytest.mark.parametrize("log", sorted((TESTBED / "logs").glob("*.darshan")), ids=lambda p: p.stem)
def test_the_command_explains_in_few_sentences_as_text_and_as_json(testbed: str, log: Path) -> None:
    args = ["predict", str(log), "--system", "testbed", "--nodes", "8", "--db", testbed]
    args += ["--ran-with", "4" if "ionodes4" in log.stem else "0", "--explain"]
    record = json.loads(CliRunner().invoke(cli, [*args, "--format", "json"]).stdout)
    told = record["explanation"]
    assert 3 <= len(told) <= 8
    assert all(line[0].isupper() or line[0].isdigit() for line in told)
    assert all(line.endswith(".") and "  " not in line for line in told)
    text = CliRunner().invoke(cli, args).stdout
    assert "\n".join(told) in text
