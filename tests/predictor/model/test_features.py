"""The features of configurations, with expected values from IOR's command lines."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from ior_configs import IorConfig
from predictor.matching.nearest import SIZES
from predictor.model.features import FEATURES, FLAGS, pattern, with_io_nodes

NONE: dict[str, float] = dict.fromkeys(FLAGS, 0.0)


def in_numbers(line: str, nodes: int | None = 8) -> dict[str, float]:
    config = IorConfig.from_command_line(line)
    values = pattern(replace(config, nodes=nodes))
    return dict(zip((*SIZES, *FLAGS), map(float, values), strict=True))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-w", {}),
        ("-w -F", {"file per process": 1}),
        ("-r", {"read": 1}),
        ("-w -z", {"random": 1}),
        ("-w -a MPIIO", {"MPI-IO": 1}),
        ("-w -a MPIIO -c", {"MPI-IO": 1, "collective": 1}),
        ("-w --posix.odirect", {"O_DIRECT": 1}),
        ("-w -e", {"fsync at the end": 1}),
        ("-w -Y", {"fsync after each write": 1}),
        ("-r -e", {"read": 1}),
    ],
)
def test_each_option_that_tells_patterns_apart_is_a_flag(
    options: str, said: dict[str, float]
) -> None:
    found = in_numbers(f"mpiexec -n 16 ior {options} -b 4m -t 1m")
    # 16 processes, 2 on each node, requests of 2^20 bytes, 2^22 bytes per process.
    sizes = dict(zip(SIZES, (4, 1, 20, 22), strict=True))
    assert found == sizes | NONE | said


@pytest.mark.parametrize(("aggregators", "value"), [(16, 1.0), (4, 3.0), (1, 5.0)])
def test_collective_buffering_grows_with_the_processes_of_an_aggregator(
    aggregators: int, value: float
) -> None:
    hints = f"IOR_HINT__MPI__cb_nodes={aggregators} IOR_HINT__MPI__romio_cb_write=enable"
    found = in_numbers(f"mpiexec -n 16 env {hints} ior -w -a MPIIO -c -b 4m -t 1m")
    assert (found["collective buffering"], found["conditions"]) == (value, 0.0)


def test_an_unknown_fsync_is_between_none_and_one_at_the_end() -> None:
    unknown = IorConfig(write=True, fsync=None)
    found = dict(zip(FLAGS, pattern(unknown)[len(SIZES) :], strict=True))
    assert found == NONE | {"fsync at the end": 0.5}


def test_segments_of_one_request_are_strided_and_count_as_bytes() -> None:
    found = in_numbers("mpiexec -n 16 ior -w -b 8k -t 8k -s 64")
    assert (found["1D-strided"], found["request size"]) == (1, 13)
    assert found["bytes per process"] == 13 + 6


def test_an_unknown_size_is_nan() -> None:
    found = in_numbers("mpiexec -n 16 ior -w -b 4m -t 1m", nodes=None)
    assert math.isnan(found["processes per node"])
    assert found["processes"] == 4
    alone = pattern(IorConfig(write=True))
    assert np.isnan(alone[:2]).all()


def test_runs_with_a_stone_wall_have_unknown_bytes() -> None:
    config = IorConfig.from_command_line("mpiexec -n 16 ior -w -b 4m -t 1m")
    values = pattern(config, stonewalled=True)
    assert [name for name, value in zip(SIZES, values, strict=False) if math.isnan(value)] == [
        "processes per node",
        "bytes per process",
    ]


def test_io_nodes_are_told_with_the_processes_that_share_one() -> None:
    config = IorConfig.from_command_line("mpiexec -n 64 ior -w -b 4m -t 1m")
    rows = with_io_nodes(np.tile(pattern(replace(config, nodes=8)), (4, 1)), [0, 1, 4, 8])
    assert rows.shape == (4, len(FEATURES))
    columns = [FEATURES.index(n) for n in ("I/O nodes", "processes per I/O node", "direct access")]
    # Only the flag tells direct access from one I/O node.
    assert rows[:, columns].tolist() == [[0, 6, 1], [0, 6, 0], [2, 4, 0], [3, 3, 0]]


def test_large_requests_are_those_above_the_size_where_they_begin() -> None:
    sizes = (64 * 1024, 128 * 1024, 512 * 1024)
    rows = np.array([pattern(IorConfig(write=True, tasks=8, transfer_size=size)) for size in sizes])
    column = FEATURES.index("large requests")
    assert with_io_nodes(rows, [1, 1, 1], large_requests=17.0)[:, column].tolist() == [0, 0, 1]
    assert with_io_nodes(rows, [1, 1, 1])[:, column].tolist() == [0, 0, 0]
