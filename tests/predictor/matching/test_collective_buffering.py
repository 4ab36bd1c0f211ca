"""Phases of collective calls find the benchmarks that had the same aggregators.

The runs of IOR are genuine: each configuration ran twice, once with a trace. Hints, and so the
numbers of aggregators, are those of the command lines in the manifest of the runs.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from benchdb.measurements.curves import Curve
from benchdb.measurements.importers import ImportOptions, ResultFile, read_measurements
from benchdb.measurements.storing import Measurement
from ior_configs import IorConfig
from predictor.matching.configurations import Difference, Match
from predictor.matching.nearest import match
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import read_log

MIB = 1 << 20
AGGREGATORS = {
    "mpiio-coll-contig": None,
    "mpiio-coll-contig-cb4": 4,
    "mpiio-coll-strided": None,
    "mpiio-coll-strided-cb1": 1,
    "mpiio-coll-strided-read-cb4": 4,
}
HINTS = tuple(f"IOR_HINT__MPI__{hint}" for hint in ("cb_nodes=4", "romio_cb_write=enable"))


@pytest.fixture(scope="module")
def commands(shared_data: Path) -> dict[str, str]:
    with (shared_data / "runs" / "manifest.csv").open(newline="") as file:
        return {run["name"]: run["command"] for run in csv.DictReader(file)}


def measured(path: Path, command: str) -> Measurement:
    options = ImportOptions(io_nodes=0, command=command)
    _, [row] = read_measurements(ResultFile(str(path), path.read_text()), options)
    assert isinstance(row, Measurement)
    return row


@pytest.fixture(scope="module")
def curves(shared_data: Path, commands: dict[str, str]) -> list[Curve]:
    """The traced run of each configuration."""
    rows = [
        measured(shared_data / "runs" / "ior_text" / f"{name}-dxt.txt", commands[f"{name}-dxt"])
        for name in AGGREGATORS
    ]
    return [
        Curve(place, row.config, "ior", {0: (row.bandwidth_mib_s,)})
        for place, row in enumerate(rows)
    ]


def phase_of(shared_data: Path, name: str) -> Phase:
    [phase] = extract_phases(read_log(shared_data / "runs" / "logs" / f"{name}.darshan"))
    return phase


def found(phase: Phase, curves: list[Curve]) -> Match:
    return match(phase, phase.parts[0], curves)


def test_imports_read_the_hints_of_the_given_command(curves: list[Curve]) -> None:
    aggregators = [curve.config.aggregators for curve in curves]
    assert aggregators == list(AGGREGATORS.values())


def test_predictions_of_genuine_collective_runs_are_at_most_a_tenth_off(
    shared_data: Path, commands: dict[str, str], curves: list[Curve]
) -> None:
    errors = []
    for name in AGGREGATORS:
        its = found(phase_of(shared_data, name), curves)
        assert (its.kind, its.curve) == ("exact", curves[list(AGGREGATORS).index(name)])
        assert its.curve is not None
        other = measured(shared_data / "runs" / "ior_json" / f"{name}.json", commands[name])
        [predicted] = its.curve.bandwidths_mib_s[0]
        errors.append(abs(predicted / other.bandwidth_mib_s - 1))
    # One of the five differs by 24 % between its own two runs.
    assert fmean(errors) <= 0.1


def test_benchmarks_with_other_aggregators_stand_in_only_if_they_must(
    a_phase: Callable[..., Phase], a_curve: Callable[..., Curve]
) -> None:
    phase = a_phase(api="MPIIO", spatiality="collective", aggregators=4)
    plain = a_curve(api="MPIIO", collective=True)
    eight = a_curve(
        api="MPIIO", collective=True, conditions=("IOR_HINT__MPI__cb_nodes=8", HINTS[1])
    )
    larger = a_curve(api="MPIIO", collective=True, conditions=HINTS, block_size=64 * MIB)
    its = found(phase, [plain, eight, larger])
    assert (its.kind, its.curve, its.differences) == ("interpolated", larger, ())
    difference = Difference("collective buffering", "4 aggregators", "8 aggregators")
    assert found(phase, [eight]).differences == (difference,)


def test_a_phase_without_aggregators_takes_the_benchmark_without_hints(
    a_phase: Callable[..., Phase], a_curve: Callable[..., Curve]
) -> None:
    phase = a_phase(api="MPIIO", spatiality="collective", aggregators=16)
    hinted = a_curve(api="MPIIO", collective=True, conditions=HINTS)
    its = found(phase, [hinted])
    assert its.kind == "interpolated"
    assert its.differences == (Difference("collective buffering", None, "4 aggregators"),)
    plain = a_curve(api="MPIIO", collective=True, block_size=64 * MIB)
    assert found(phase, [hinted, plain]).curve is plain


def test_hints_of_an_unknown_number_of_aggregators_are_a_condition() -> None:
    line = "mpiexec -n 16 env IOR_HINT__MPI__romio_cb_write=enable ior -a MPIIO -w -c"
    config = IorConfig.from_command_line(line)
    assert (config.aggregators, config.conditions) == (None, (HINTS[1],))
