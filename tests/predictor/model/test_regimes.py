"""Where large requests begin: on made-up systems with and without a jump."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from experiments.datasets import read
from experiments.evaluation import named_curves
from experiments.shipped import TESTBED
from ior_configs import IorConfig
from predictor.model.features import pattern
from predictor.model.fitting import fit_model
from predictor.model.regimes import large_requests
from predictor.model.system_model import measurements

KIB = 1024
SIZES_KIB = (32, 64, 128, 512, 1024, 4096)
IO_NODES = (0, 1, 2, 4, 8)


def found_on(
    jump: float, begins_kib: float, sizes_kib: tuple[int, ...] = SIZES_KIB
) -> float | None:
    """Find it on a system whose bandwidth grows with the request size, and jumps at one size."""
    random = np.random.default_rng(9366)
    rows, numbers, logarithms = [], [], []
    for size, tasks, own_files, n in product(sizes_kib, (32, 64, 128), (False, True), IO_NODES):
        config = IorConfig(
            write=True,
            transfer_size=size * KIB,
            block_size=8192 * KIB,
            tasks=tasks,
            nodes=8,
            file_per_process=own_files,
        )
        rows.append(pattern(config))
        numbers.append(n)
        level = 3 + 0.3 * np.log2(size) + 0.2 * np.log2(n + 1) + jump * (size > begins_kib)
        logarithms.append(level + random.normal(0, 0.1))
    return large_requests(np.array(rows), np.array(numbers), np.array(logarithms), smallest_gap=0.3)


@pytest.mark.parametrize("jump", [-1.0, 1.0, 2.0])
def test_a_jump_is_found_between_the_sizes_beside_it(jump: float) -> None:
    begins = found_on(jump, begins_kib=128)
    assert begins is not None
    assert 128 * KIB < 2**begins < 512 * KIB


def test_a_slope_is_not_a_jump() -> None:
    assert found_on(0.0, begins_kib=128) is None


def test_two_sizes_cannot_tell_a_jump_from_a_slope() -> None:
    assert found_on(1.0, begins_kib=128, sizes_kib=(64, 512)) is None


@pytest.mark.slow
def test_the_testbed_has_no_clear_jump() -> None:
    """Its benchmarks have few request sizes of each kind, so a jump stays in doubt."""
    curves = tuple(named_curves(read(TESTBED)).values())
    rows, io_nodes, logarithms = measurements(curves)
    assert large_requests(rows, io_nodes, logarithms, smallest_gap=0.3) is None
    assert fit_model(curves).large_requests is None
