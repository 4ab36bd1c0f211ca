"""The limit of an uneven phase: it lasts as long as its busiest process or compute node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchdb.measurements.curves import Curve
from experiments import datasets
from experiments.evaluation import evaluate
from experiments.shipped import DATA
from ior_configs import IorConfig
from predictor.curve.prediction import predict
from predictor.matching.configurations import configuration
from predictor.matching.uneven import limits_of, placed_nodes
from predictor.model.system_model import SystemModel
from summario.phases.values import Part, Phase

MIB = 1 << 20


def curve(tasks: int, nodes: int | None, *mib_s: float, operation: str = "write") -> Curve:
    """The bandwidths of a file per process with direct access."""
    flag = "-w" if operation == "write" else "-r"
    config = IorConfig.from_command_line(f"ior -a POSIX {flag} -F -b 4m -t 1m")
    return Curve(tasks, replace(config, tasks=tasks, nodes=nodes), "ior", {0: mib_s})


# 16 processes on 8 nodes write 40 MiB; one node has 10 MiB, as much as 4 equal nodes.
UNEVEN = Phase(
    job=1,
    start_seconds=0,
    end_seconds=1,
    operation="write",
    rank=None,
    processes=16,
    nprocs=16,
    bytes=40 * MIB,
    io_time_seconds=1,
    api="POSIX",
    requests=40,
    spatiality="contiguous",
    file_access="unique",
    n_files=16,
    mode_processes=1,
    parts=(Part(40, 40 * MIB),),
    fsync="none",
    largest_process_bytes=3 * MIB,
    largest_node_bytes=10 * MIB,
    nodes=8,
)
EVEN = replace(UNEVEN, largest_process_bytes=5 * MIB // 2, largest_node_bytes=5 * MIB)
ON_8, ON_4 = curve(16, 8, 40.0, 41.0, 39.0), curve(4, 4, 20.0)


def test_a_node_is_as_fast_as_the_fastest_of_a_benchmark() -> None:
    """5 MiB/s for each of 8 nodes and of 4: with a quarter of the bytes on one, 20 MiB/s."""
    assert limits_of(UNEVEN, 8, [ON_8, ON_4]) == ((0, 20.0),)


def test_the_fastest_node_counts_even_if_it_was_measured_beside_others() -> None:
    assert limits_of(UNEVEN, 8, [ON_8, curve(4, 4, 12.0)]) == ((0, 20.0),)
    assert limits_of(UNEVEN, 8, [ON_8, curve(4, 4, 32.0)]) == ((0, 32.0),)


def test_nodes_that_share_a_busy_storage_tell_no_limit() -> None:
    assert limits_of(UNEVEN, 8, [ON_8]) == ()


@pytest.mark.parametrize("known", [curve(4, 4, 20.0, operation="read"), curve(4, None, 20.0)])
def test_benchmarks_of_another_operation_or_unknown_nodes_tell_nothing(known: Curve) -> None:
    assert limits_of(UNEVEN, 8, [ON_8, known]) == ()


def test_an_even_phase_and_one_without_a_trace_have_no_limit() -> None:
    nothing = {"largest_process_bytes": None, "largest_node_bytes": None, "nodes": None}
    assert limits_of(EVEN, 8, [ON_8, ON_4]) == ()
    assert limits_of(replace(UNEVEN, **nothing), 8, [ON_8, ON_4]) == ()


def test_a_busy_process_limits_where_nodes_are_unknown() -> None:
    """One process moves half of the bytes: twice the 5 MiB/s of a single process."""
    phase = replace(UNEVEN, largest_process_bytes=20 * MIB, largest_node_bytes=None, nodes=None)
    assert limits_of(phase, None, [curve(1, None, 5.0), curve(16, None, 40.0)]) == ((0, 10.0),)


def test_host_names_that_nodes_share_are_not_used() -> None:
    on_one = replace(UNEVEN, nodes=1, largest_node_bytes=40 * MIB)
    assert placed_nodes(on_one, 8) is None
    assert placed_nodes(on_one, 1) == 1
    assert limits_of(on_one, 8, [ON_8, ON_4, curve(1, 1, 5.0)]) == ()


def test_the_benchmark_of_a_phase_has_the_compute_nodes_of_the_phase() -> None:
    """Processes 0 to 7 of 16 on 8 nodes are on 4 of them."""
    half = replace(UNEVEN, processes=8, n_files=8, nodes=4)
    assert configuration(half, half.parts[0], 8).nodes == 4
    assert configuration(replace(half, nodes=None), half.parts[0], 8).nodes == 8


def test_the_prediction_of_an_uneven_phase_is_its_limit() -> None:
    knowledge = SystemModel((ON_8, ON_4))
    even, uneven = (predict([one], knowledge, system="s", nodes=8) for one in (EVEN, UNEVEN))
    assert even.curve[0].bandwidth_mib_s.mean == pytest.approx(40, rel=0.01)
    assert uneven.curve[0].bandwidth_mib_s.mean == pytest.approx(20, rel=0.01)
    [phase] = uneven.phases
    assert phase.time_s[0] == pytest.approx(2, rel=0.01)


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "applications").is_dir(), reason="only the repository has it")
def test_the_trace_halves_the_error_of_the_irregular_application() -> None:
    """Counters alone were 26.7 % off with direct access, and 11.5 % in the mean."""
    evaluation = evaluate(datasets.read(Path(DATA) / "applications"))
    predicted = {
        point.io_nodes: point.bandwidth_mib_s.mean
        for point in evaluation.predictions["irregular"].curve
    }
    reruns = evaluation.validated["irregular"].reruns
    off = {n: abs(predicted[n] * len(runs) / sum(runs) - 1) for n, runs in reruns.items()}
    assert off[0] < 0.267 / 2
    assert sum(off.values()) / len(off) < 0.115 / 2
