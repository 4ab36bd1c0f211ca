"""Workloads of a few jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from ioncast.worth.io_curves import IoCurve
from ioncast.worth.workload import Workload


@pytest.fixture(scope="session")
def a_workload() -> Callable[..., Workload]:
    """Make a workload of rows: submitted, nodes, compute time, MiB, curve; limits are exact."""

    def make(
        rows: Sequence[tuple[float, int, float, float, int]],
        curves: Sequence[Mapping[int, float]],
        limits: Sequence[float] | None = None,
    ) -> Workload:
        submit, nodes, compute, moved, curve = zip(*rows, strict=True)
        fastest = [max(curves[place].values()) for place in curve]
        run = [c + m / f for c, m, f in zip(compute, moved, fastest, strict=True)]
        return Workload(
            curves=(made := tuple(IoCurve(str(i), None, cells) for i, cells in enumerate(curves))),
            believed=made,
            submit_s=np.array(submit, dtype=float),
            recorded_s=np.array(run, dtype=float),
            limit_s=np.array(limits or run, dtype=float),
            nodes=np.array(nodes, dtype=np.int64),
            curve=np.array(curve, dtype=np.int64),
            compute_s=np.array(compute, dtype=float),
            moved_mib=np.array(moved, dtype=float),
            overlong=0,
        )

    return make
